"""The audit of user turns: planted leaks and silences, paraphrased so that no script holds them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from agents import Native
from amemgym_env.backend import Backend, Call, Completion, Models, Usage
from amemgym_env.errors import ParseError
from amemgym_env.evaluation import evaluate
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.journal import MemoryJournal
from amemgym_env.judge_prompts import ExposureJudgement
from amemgym_env.scenario import Scenario
from amemgym_env.script import Script, build
from amemgym_env.topics import topic
from amemgym_env.turn import Variable
from amemgym_env.turn_audit import TextReader, audit_turns


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return next(iter(named_scenarios("test:1:7")))


def events_of(scenario: Scenario) -> list[dict[str, Any]]:
    journal = MemoryJournal()
    evaluate(Native, [scenario], journal=lambda _: nullcontext(journal))
    return journal.read()


def test_a_run_in_the_scripts_own_words_is_without_fault(scenario: Scenario) -> None:
    script = build(scenario)
    audit = audit_turns(script, events_of(scenario), TextReader(script))
    assert audit.findings == ()
    assert audit.turns == audit.scripted == len(script.utterances)


def planted(script: Script, events: list[dict[str, Any]], place: Any, text: str) -> Any:
    assert text not in {utterance.text for utterance in script.utterances}
    known = topic(script.scenario.qas[0].topic or "")
    assert all(
        text not in value.exposures for row in known.variables.values() for value in row.values()
    )
    spoilt = [dict(event) for event in events]
    for event in spoilt:
        if (event["event"], *(event.get(k) for k in ("period", "session", "round"))) == (
            "turn",
            *place,
        ):
            event["message"] = text
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


def test_b08_17_a_planted_leak_is_found_with_its_turn(scenario: Scenario) -> None:
    script = build(scenario)
    assert scenario.qas[0].topic == "air_travel"
    place = follow_up_place(script)
    leak = "By the way, my air travel nerves leave me panicked whenever I board. What helps?"
    audit = planted(script, events_of(scenario), place, leak)
    finding = next(item for item in audit.findings if item.variable == "air_travel_nerves")
    assert finding[:4] == (*place, "leak")
    assert (finding.expected, finding.found) == (None, "panicked")
    assert finding.message == leak


def test_b08_17_a_leak_that_names_nothing_is_found_too(scenario: Scenario) -> None:
    script = build(scenario)
    place = follow_up_place(script)
    leak = "My hands shake from take-off until we land and I cannot speak to anyone on the plane."
    audit = planted(script, events_of(scenario), place, leak)
    assert [(f[:3], f.fault) for f in audit.findings] == [(place, "leak")]


def test_a_planted_silence_is_found_with_its_turn(scenario: Scenario) -> None:
    script = build(scenario)
    place = opener_place(script, "air_travel_nerves")
    silence = "Somebody at the office asked me about the airport yesterday. What should one know?"
    audit = planted(script, events_of(scenario), place, silence)
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
