from __future__ import annotations

import json

import pytest

from amemgym_env.agent import NO_ANSWER, UNSCORED, Operation, Phase
from amemgym_env.episode import Action, Episode, ExamResult, Place, ProbeResult, plan
from amemgym_env.errors import ConfigError, EpisodeOver
from amemgym_env.memory.bank import Bank, Status
from amemgym_env.scenarios.difficulty import Difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build

TALK, EXAM, PROBE = Phase.DIALOGUE, Phase.EXAM, Phase.PROBE


@pytest.fixture
def ada(tiny: list[Scenario]) -> Episode:
    return Episode.start(build(tiny[0], shuffle_choices=False), Bank(), diagnosis=True)


def played(episode: Episode, *actions: Action) -> Episode:
    for action in actions:
        episode = episode.advance(action).episode
    return episode


def test_the_whole_state_machine_of_ada_as_a_table(ada: Episode) -> None:
    assert plan(ada.script, diagnosis=True) == (
        Place(TALK, 0, 0, 0),
        Place(TALK, 0, 1, 0),
        Place(EXAM, 0),
        Place(PROBE, 0),
        Place(TALK, 1, 0, 0),
        Place(TALK, 1, 0, 1),
        Place(EXAM, 1),
        Place(PROBE, 1),
    )
    without = plan(ada.script, diagnosis=False)
    assert without == tuple(place for place in ada.places if place.phase is not PROBE)


def test_a_round_writes_at_the_sessions_time_and_turn(ada: Episode) -> None:
    action = Action("Shortbread.", (Operation.add("green tea"), Operation.delete("7")))
    after, applied, exam, probe = ada.advance(action)
    assert [item.status for item in applied] == [Status.APPLIED, Status.UNKNOWN]
    assert (exam, probe) == (None, None)
    (entry,) = after.bank.entries
    assert entry == ("1", "green tea", "2024-01-20T08:10:00", "2024-01-20T08:10:00", 0)
    assert (after.place, after.turn, after.dialogue) == (Place(TALK, 0, 1, 0), 1, ())
    assert ada.bank.entries == ()  # advancing is pure


def test_the_dialogue_lasts_a_session(ada: Episode) -> None:
    episode = played(ada, *[Action()] * 4, Action("Finely."))
    assert episode.place == Place(TALK, 1, 0, 1)
    opener = ada.script.periods[1][0].utterances[0].text
    assert episode.dialogue == ((opener, "Finely."),)
    assert played(episode, Action("Sure.")).dialogue == ()


def test_exam_and_probe_change_neither_memory_nor_dialogue(ada: Episode) -> None:
    before = played(ada, Action("", (Operation.add("tea"),)), Action())
    meddling = Action("hello", (Operation.add("stolen"), Operation.delete("1")), (0, 0), ((0,),))
    after = played(before, meddling, meddling)
    assert (after.bank, after.dialogue, after.turn) == (before.bank, before.dialogue, before.turn)
    assert after.exams == (ExamResult(0, (0, 0), 0, 0),)
    assert after.probes == (ProbeResult(0, ((0,), (NO_ANSWER,))),)


@pytest.mark.parametrize(
    ("given", "read", "missing", "surplus"),
    [
        ((0, 1), (0, 1), 0, 0),
        ((1,), (1, NO_ANSWER), 1, 0),
        ((), (NO_ANSWER, NO_ANSWER), 2, 0),
        ((0, 1, 1, 0), (0, 1), 0, 2),
        ((2, -3), (NO_ANSWER, NO_ANSWER), 0, 0),
        ((UNSCORED, NO_ANSWER), (UNSCORED, NO_ANSWER), 0, 0),
    ],
    ids=["right", "one missing", "all missing", "surplus", "B01-08 out of range", "marks"],
)
def test_answers_are_read_and_never_guessed(
    ada: Episode, given: tuple[int, ...], read: tuple[int, ...], missing: int, surplus: int
) -> None:
    result = played(ada, Action(), Action()).advance(Action(answers=given)).exam
    assert result == ExamResult(0, read, missing, surplus)


def test_a_users_words_replace_a_plain_follow_up_alone(tiny: list[Scenario]) -> None:
    episode = Episode.start(build(tiny[0]), Bank())
    first = episode.advance(Action(), "mine").episode
    assert first.message == tiny[0].periods[0].sessions[1].query
    opener = played(episode, *[Action()] * 3)
    assert opener.next_is_follow_up
    assert opener.advance(Action(), "mine").episode.message == "mine"
    late = build(tiny[0], Difficulty("late", late=1.0))
    before = played(Episode.start(late, Bank()), *[Action()] * 3)
    assert not before.next_is_follow_up
    after = before.advance(Action(), "mine").episode
    assert after.message == tiny[0].periods[1].sessions[0].query


def test_questions_count_as_asked_after_the_first_exam(ada: Episode) -> None:
    assert played(ada, Action(), Action()).asked == ()
    asked = played(ada, Action(), Action(), Action()).asked
    assert asked == tuple(question.query for question in ada.script.scenario.qas)


def test_an_episode_ends_after_its_last_step(ada: Episode) -> None:
    end = played(ada, *[Action()] * 8)
    assert end.over
    assert (end.message, end.utterance) == ("", None)
    with pytest.raises(EpisodeOver):
        end.advance(Action())


def test_a_digest_depends_on_all_that_was_said_done_and_answered(ada: Episode) -> None:
    base = [Action("a", (Operation.add("x"),)), Action("b"), Action(answers=(0, 1))]
    digests = {
        played(ada, *actions).digest()
        for actions in (
            base,
            [base[0]._replace(reply="A"), *base[1:]],
            [base[0]._replace(memory=()), *base[1:]],
            [*base[:2], Action(answers=(1, 1))],
            base[:2],
        )
    }
    assert len(digests) == 5
    assert played(ada, *base).digest() == played(ada, *base).digest()


def test_a_snapshot_is_json_and_goes_on_the_same(ada: Episode) -> None:
    actions = [Action("é🙂", (Operation.add("x"),), (0, 5), ((0,),))] * 8
    for cut in range(9):
        middle = played(ada, *actions[:cut])
        restored = Episode.restore(ada.script, json.loads(json.dumps(middle.to_json())))
        one, two = played(middle, *actions[cut:]), played(restored, *actions[cut:])
        assert one.digest() == two.digest()
        assert (one.bank, one.exams, one.probes) == (two.bank, two.exams, two.probes)


def test_a_snapshot_of_another_script_is_refused(ada: Episode, tiny: list[Scenario]) -> None:
    with pytest.raises(ConfigError, match="snapshot: expected one of script"):
        Episode.restore(build(tiny[1]), ada.to_json())
