"""The audit of user turns: planted leaks and silences, paraphrased so that no script holds them."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents import Native
from amemgym_env.agent import Variable
from amemgym_env.errors import ParseError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.evaluation.user_audit import TextReader, audit_turns
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.models.events import Event, TurnEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.prompts.judge import ExposureJudgement
from amemgym_env.scenarios import neutral_texts as neutral
from amemgym_env.scenarios.library import topic, topic_index, utterances
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.evaluate.run import run as play
from experiments.evaluate.settings import EvaluateSettings
from experiments.report import run as report

LEAK = "By the way, my air travel nerves leave me panicked whenever I board. What helps?"
NAMELESS_LEAK = (
    "My hands shake from take-off until we land and I cannot speak to anyone on the plane."
)
SILENCE = "Somebody at the office asked me about the airport yesterday. What should one know?"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return next(iter(named_scenarios("test:1:7")))


def events_of(scenario: Scenario) -> list[Event]:
    journal = MemoryJournal()
    evaluate(Native, [scenario], journal=lambda _: nullcontext(journal))
    return journal.read()


def test_a_run_in_the_scripts_own_words_is_without_fault(scenario: Scenario) -> None:
    script = build(scenario)
    audit = audit_turns(script, events_of(scenario), TextReader(script))
    assert audit.findings == ()
    assert audit.turns == audit.scripted == len(script.utterances)


def planted(script: Script, events: list[Event], place: Any, text: str) -> Any:
    assert text not in {utterance.text for utterance in script.utterances}
    known = topic(script.scenario.qas[0].topic or "")
    assert all(
        text not in value.exposures for row in known.variables.values() for value in row.values()
    )
    spoilt = [
        replace(event, message=text)
        if isinstance(event, TurnEvent) and event.place == tuple(place)
        else event
        for event in events
    ]
    return audit_turns(script, spoilt, TextReader(script))


def follow_up_place(script: Script) -> tuple[int, int, int]:
    return next(
        (period, session, number)
        for period, conversations in enumerate(script.periods)
        for session, conversation in enumerate(conversations)
        for number, utterance in enumerate(conversation.utterances)
        if number and not utterance.exposures
    )


def opener_place(script: Script, variable: str) -> tuple[int, int, int]:
    return next(
        (period, session, 0)
        for period, conversations in enumerate(script.periods)
        for session, conversation in enumerate(conversations)
        if variable in dict(conversation.utterances[0].exposures)
    )


@pytest.mark.slow
def test_b08_17_a_planted_leak_is_found_with_its_turn(scenario: Scenario) -> None:
    script = build(scenario)
    assert scenario.qas[0].topic == "air_travel"
    place = follow_up_place(script)
    audit = planted(script, events_of(scenario), place, LEAK)
    finding = next(item for item in audit.findings if item.variable == "air_travel_nerves")
    assert finding[:4] == (*place, "leak")
    assert (finding.expected, finding.found) == (None, "panicked")
    assert finding.message == LEAK


def test_b08_17_a_leak_that_names_nothing_is_found_too(scenario: Scenario) -> None:
    script = build(scenario)
    place = follow_up_place(script)
    audit = planted(script, events_of(scenario), place, NAMELESS_LEAK)
    assert [(f[:3], f.fault) for f in audit.findings] == [(place, "leak")]


def test_a_planted_silence_is_found_with_its_turn(scenario: Scenario) -> None:
    script = build(scenario)
    place = opener_place(script, "air_travel_nerves")
    audit = planted(script, events_of(scenario), place, SILENCE)
    finding = next(item for item in audit.findings if item.variable == "air_travel_nerves")
    assert finding[:4] == (*place, "silence")


def test_honest_follow_ups_in_other_words_are_no_leaks(scenario: Scenario) -> None:
    script = build(scenario)
    events = events_of(scenario)
    for text in (
        "Thank you. Could you say a little more about the second point?",
        "I see what you mean, and I will think it over at the weekend.",
        "That sounds like a plan. Where would you start?",
    ):
        audit = planted(script, events, follow_up_place(script), text)
        assert audit.findings == ()
        assert audit.read == 1


UNSEEN_LEAKS = (
    (
        "air_travel_nerves",
        "They had to walk me back down the jetway because I was sobbing "
        "before we had even pushed back.",
    ),
    (
        "air_travel_nerves",
        "Turbulence rocks me to sleep, and the cabin crew have to shake me when we have arrived.",
    ),
    (
        "air_travel_frequency",
        "I last sat in an aeroplane when my youngest was still in nappies, "
        "and he finished school this year.",
    ),
    (
        "debt_repayment_count",
        "I gave up on my list of creditors after the twelfth name, and the letters keep coming.",
    ),
    (
        "debt_repayment_slack",
        "On the last day of each month my purse is empty, I have nothing that I could put on top.",
    ),
    (
        "coffee_at_home_method",
        "I spoon powder out of a jar into my mug and fill it up from the kettle.",
    ),
    (
        "coffee_at_home_amount",
        "I refill my mug from dawn to dusk and stopped counting somewhere past eight.",
    ),
    (
        "weekend_getaways_spending",
        "I ask for the best suite in the house and never look at the bill when I leave.",
    ),
    ("bird_watching_spot", "I watch the feeder from my armchair, behind glass, with a pot of tea."),
    ("stiff_back_mattress_feel", "My bed sinks in the middle so badly that I wake up in a valley."),
    (
        "cycling_fitness_bike_kind",
        "I press a button and the motor pushes me uphill, my bike hangs at the socket every night.",
    ),
    (
        "cycling_fitness_road_type",
        "I ride along the trunk road with trucks thundering past my shoulder.",
    ),
    (
        "home_workout_gear",
        "I have not a single dumbbell or band at home, I use the floor and my own weight.",
    ),
    (
        "official_letters_timing",
        "I should have answered the office three weeks ago "
        "and the envelope is still lying unopened here.",
    ),
    (
        "cat_absence_helper",
        "There is no friend or neighbour whom I could ask to feed my cat while I am gone.",
    ),
)
"""Written without a look at what the reader makes of them; first the variable given away."""
UNSEEN_FOLLOW_UPS = (
    "Okay, that helps me already. Which of the two would you try before the other?",
    "I will sleep on it and come back to you. Is there a book that you would name?",
    "Hm, I am not convinced yet. What speaks against doing it the other way round?",
    "Could you repeat the middle part in simpler words, please?",
    "My thanks for the patience. What should I ask a professional about this?",
    "Right, and where do most people go wrong with it?",
    "I like the idea. How long does it usually take until one notices something?",
    "Let me write that down. Was there a third point as well?",
    "A colleague said the opposite last week, who is right?",
    "I had expected something more complicated. Is it really that simple?",
    "What would you do in the first week?",
    "Fine, I follow you so far. Please go on with the next step.",
)


def phrases(text: str) -> set[tuple[str, ...]]:
    """Return all runs of seven words."""
    said = re.findall(r"[a-z']+", text.lower())
    return {tuple(said[start : start + 7]) for start in range(len(said) - 6)}


def test_what_is_planted_stands_in_no_script_and_in_no_library() -> None:
    known = {text for about in topic_index().values() for text, _ in utterances(about)}
    written = set.union(*map(phrases, {*known, *neutral.FOLLOW_UPS, *neutral.OPENERS}))
    leaks = [text for _, text in UNSEEN_LEAKS]
    for text in (*leaks, *UNSEEN_FOLLOW_UPS, LEAK, NAMELESS_LEAK, SILENCE):
        assert text not in known
        assert not phrases(text) & written, text


def test_most_unseen_leaks_are_found_and_few_honest_turns_are_taken_for_one(
    scenario: Scenario,
) -> None:
    script = build(scenario)
    events, place = events_of(scenario), follow_up_place(script)
    assert {variable for variable, _ in UNSEEN_LEAKS} <= set(scenario.state_schema)
    found = [planted(script, events, place, text).findings for _, text in UNSEEN_LEAKS]
    assert all(item[:4] == (*place, "leak") for findings in found for item in findings)
    assert sum(map(bool, found)) == 11  # of 15; see docs/simulated-model.md
    named = [
        variable in {item.variable for item in findings}
        for (variable, _), findings in zip(UNSEEN_LEAKS, found, strict=True)
    ]
    assert sum(named) == 8
    wrong = [planted(script, events, place, text).findings for text in UNSEEN_FOLLOW_UPS]
    assert sum(map(bool, wrong)) <= 1


def test_b08_17_the_command_finds_what_is_planted_in_a_runs_folder(
    scenario: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    composed = compose("evaluate", ["scenarios=test:1:7", "agent=native", "diagnosis=false"])
    folder = tmp_path / "run"
    play(checked(EvaluateSettings, {**composed, "out": str(folder)}), quiet=True)
    assert report.main(["audit", str(folder), "--fail-if-faulty"]) == 0
    script = build(scenario)
    leak, silence = follow_up_place(script), opener_place(script, "air_travel_nerves")
    (journal,) = (folder / "journals").iterdir()
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for event in lines:
        if event["event"] == "turn":
            place = (event["period"], event["session"], event["round"])
            event["message"] = {leak: NAMELESS_LEAK, silence: SILENCE}.get(place, event["message"])
    journal.write_text("".join(json.dumps(event) + "\n" for event in lines), encoding="utf-8")
    assert report.main(["audit", str(folder)]) == 0
    assert report.main(["audit", str(folder), "--fail-if-faulty"]) == 1
    said = capsys.readouterr().out
    for fault, place, text in (("leak", leak, NAMELESS_LEAK), ("silence", silence, SILENCE)):
        where = "period {} session {} round {}".format(*place)
        assert re.search(rf"{fault}: \S+ {where}, .*{re.escape(text[:40])}", said)


def test_wording_alone_cannot_tell_where_there_is_no_library(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    reader = TextReader(script)
    assert reader("What shall I do about it?") is None
    assert reader("My morning drink is black coffee now.") == {"morning_drink": "black_coffee"}


class Scripted(Backend):
    name = "scripted"

    def __init__(self, text: str) -> None:
        self.text = text

    def complete(self, call: Call) -> Completion:
        assert call.role == "judge"
        return Completion(self.text, Usage(calls=1))


VARIABLES = (Variable("morning_drink", ("green_tea", "black_coffee")),)


def test_a_judge_model_is_read_by_the_common_reader() -> None:
    models = Models({"assistant": Scripted('{"Morning drink": "Black coffee"}')})
    found = models.ask(ExposureJudgement("I brew beans.", VARIABLES)).value
    assert found == {"morning_drink": "black_coffee"}


@pytest.mark.parametrize("text", ['{"evening": "x"}', '{"morning_drink": "cocoa"}', "none"])
def test_a_judge_who_invents_is_unreadable(text: str) -> None:
    with pytest.raises(ParseError):
        ExposureJudgement("I brew beans.", VARIABLES).parse(text)
