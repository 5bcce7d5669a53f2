from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios.difficulty import DIFFICULTIES, QUIET_KINDS, Difficulty, named_difficulty
from amemgym_env.scenarios.library import topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.samples import stated
from amemgym_env.scenarios.script import Kind, Script, build
from amemgym_env.scenarios.timestamps import instant


def hard(tiny: list[Scenario], index: int, seed: int = 0) -> Script:
    return build(tiny[index], "hard", seed, rounds_initial=2, rounds_update=3, others=tiny)


def test_without_difficulty_a_script_is_the_scenario_as_it_is(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    assert [
        [(conversation.time, len(conversation.utterances)) for conversation in period]
        for period in script.periods
    ] == [[("2024-01-20T08:10:00", 1), ("2024-01-24T18:30:00", 1)], [("2024-02-12T08:05:00", 2)]]
    openers = [conversation.utterances[0] for period in script.periods for conversation in period]
    sessions = [session for period in tiny[0].periods for session in period.sessions]
    assert [opener.text for opener in openers] == [session.query for session in sessions]
    assert [dict(opener.exposures) for opener in openers] == [
        session.exposed_states for session in sessions
    ]
    assert [utterance.id for utterance in script.utterances] == [0, 1, 2, 3]


def test_a_script_is_a_function_of_scenario_difficulty_and_seed(tiny: list[Scenario]) -> None:
    assert hard(tiny, 2).key == hard(tiny, 2).key
    assert hard(tiny, 2).key != hard(tiny, 2, seed=1).key
    assert hard(tiny, 2).key != build(tiny[2], rounds_initial=2, rounds_update=3).key
    hard(tiny, 0, seed=5)
    assert hard(tiny, 2).periods == hard(tiny, 2).periods


@pytest.mark.parametrize("index", [0, 1, 2], ids=["ada", "ben", "chen"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_difficulty_everything_is_given_away_once_in_time(
    tiny: list[Scenario], index: int, seed: int
) -> None:
    script = hard(tiny, index, seed)
    for period, conversations in enumerate(script.periods):
        times = [instant(conversation.time) for conversation in conversations]
        assert times == sorted(times)
        said = Counter(
            pair
            for conversation in conversations
            for utterance in conversation.utterances
            if utterance.kind in (Kind.OPENER, Kind.LATE)
            for pair in utterance.exposures
        )
        expected = Counter(
            pair
            for session in tiny[index].periods[period].sessions
            for pair in session.exposed_states.items()
        )
        assert said == expected
        for conversation in conversations:
            for utterance in conversation.utterances:
                if utterance.kind in (Kind.DISTRACTOR, Kind.FOLLOW_UP):
                    assert utterance.exposures == ()
                state = tiny[index].periods[period].state
                assert all(state[name] == value for name, value in utterance.exposures)


def test_distractors_of_a_set_without_a_library_are_other_users_openers(
    tiny: list[Scenario],
) -> None:
    level = named_difficulty("hard", "other_users")
    script = build(tiny[0], level, 0, others=tiny)
    others = {
        session.query
        for scenario in tiny[1:]
        for period in scenario.periods
        for session in period.sessions
    }
    texts = [item.text for item in script.utterances if item.kind is Kind.DISTRACTOR]
    assert len(texts) == 2 * DIFFICULTIES["hard"].distractor_sessions
    assert set(texts) <= others


@pytest.mark.parametrize("kind", [*QUIET_KINDS, "mixed"])
def test_every_kind_of_quiet_messages_exposes_nothing(tiny: list[Scenario], kind: str) -> None:
    generated = [Generator("train", 5).scenario(number) for number in range(2)]
    for scenario, others in ((tiny[0], tiny), (generated[0], generated)):
        script = build(scenario, named_difficulty("default", kind), 1, others=others)
        again = build(scenario, named_difficulty("default", kind), 1, others=others)
        assert script.utterances == again.utterances
        quiet = [item for item in script.utterances if item.kind is Kind.DISTRACTOR]
        assert len(quiet) == 2 * len(script.periods)
        assert len({item.text for item in quiet}) >= 0.7 * len(quiet)
        for item in quiet:
            assert item.exposures == ()
            for question in scenario.qas:
                if scenario.library is not None and question.topic is not None:
                    assert stated(topic(question.topic), item.text) == {}, item.text


def test_an_unknown_kind_of_quiet_messages_is_refused() -> None:
    with pytest.raises(ConfigError, match="quiet_messages: expected one of minimal_pairs"):
        named_difficulty("default", "loud")


def test_a_late_exposure_follows_an_opener_that_gives_nothing_away(tiny: list[Scenario]) -> None:
    late = Difficulty("late", late=1.0)
    script = build(tiny[0], late, rounds_update=3)
    conversation = script.periods[1][0]
    assert conversation.utterances[0].exposures == ()
    assert [item.kind for item in conversation.utterances].count(Kind.LATE) == 1
    # Sessions of one round have no later place.
    assert all(item.utterances[0].kind is Kind.OPENER for item in script.periods[0])
    assert all(item.utterances[0].exposures for item in script.periods[0])


def test_a_re_mention_repeats_a_value_that_still_holds(tiny: list[Scenario]) -> None:
    script = build(tiny[0], Difficulty("again", re_mentions=1), rounds_update=2)
    again = [item for item in script.utterances if item.kind is Kind.RE_MENTION]
    assert [item.exposures for item in again] == [(("walking_pace", "slow"),)]


def test_options_are_shown_in_one_order_keyed_by_seed_scenario_and_question(
    tiny: list[Scenario],
) -> None:
    orders = {build(tiny[1], seed=seed).option_orders[0] for seed in range(60)}
    assert orders == {(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)}
    assert build(tiny[1], shuffle_choices=False).option_orders == ((0, 1, 2),)
    assert (
        build(tiny[1], "hard", 7, others=tiny).option_orders == build(tiny[1], seed=7).option_orders
    )


def test_b08_10_the_right_choice_stands_anywhere(tiny: list[Scenario]) -> None:
    places = Counter(build(tiny[1], seed=seed).right_shown[0][0] for seed in range(600))
    assert set(places) == {0, 1, 2}
    assert all(150 < count < 250 for count in places.values())


def test_what_is_shown_as_right_is_the_stored_right_choice(tiny: list[Scenario]) -> None:
    for seed in range(5):
        script = build(tiny[1], seed=seed)
        for period, (shown,) in enumerate(script.right_shown):
            text = script.choices_shown(0)[shown]
            stored = tiny[1].qas[0].answer_choices[tiny[1].right_choices[period][0]]
            assert text == stored.answer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"difficulty": "brutal"}, "expected one of .*'brutal'"),
        ({"rounds_initial": 0}, "rounds_initial: expected at least 1"),
        ({"rounds_update": -1}, "rounds_update: expected at least 1"),
        ({"difficulty": named_difficulty("default", "other_users")}, "at least two scenarios"),
    ],
    ids=["difficulty", "initial", "update", "nothing to distract with"],
)
def test_a_setting_outside_its_range_is_refused(
    tiny: list[Scenario], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build(tiny[0], **settings)  # type: ignore[arg-type]


def test_scripts_do_not_depend_on_the_hash_seed(real_data: Path) -> None:
    program = (
        "import sys; from amemgym_env.scenarios import files as scenario_files\n"
        "from amemgym_env.scenarios import script\n"
        "some = scenario_files.load(sys.argv[1])[:3]; "
        "print(script.build(some[0], 'hard', 3, others=some).key)"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", program, str(real_data)],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout.strip()
        for seed in ("0", "77")
    }
    some = scenario_files.load(real_data)[:3]
    assert keys == {build(some[0], "hard", 3, others=some).key}
