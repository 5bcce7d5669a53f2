"""Feedback and what the simulated model makes of it: labels, switches, recall, attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents import AWE
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.evolution_feedback import (
    NAMED,
    SWITCHES,
    Evidence,
    feedback,
    gather,
    recall,
    switches,
)
from amemgym_env.models.client import Models
from amemgym_env.models.events import WritingPolicy
from amemgym_env.prompts.base import BUILT_IN, message
from amemgym_env.prompts.evolution import PromptEvolution, TypesEvolution, repaired
from amemgym_env.prompts.memory import INFORMATION_TYPES, DictionaryUpdate, FactExtraction
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from amemgym_env.simulated.evolution import better_prompt, better_types
from amemgym_env.simulated.information_types import InformationTypeEffect, listed_types, named
from amemgym_env.simulated.model import SimulatedModel
from experiments.evolve.loop import apply_policy


def evidence(tiny: list[Scenario]) -> Evidence:
    script = build(tiny[0])
    count = len(tiny[0].qas)
    return gather(script, 0, [0] * count, [["1"]] * count, {"1": "home: a boat"})


def test_labels_in_the_feedback_are_those_that_the_agent_saw(tiny: list[Scenario]) -> None:
    script = build(tiny[0], seed=3)
    right = list(script.right_shown[1])
    text = feedback([gather(script, 1, right, [], {})], switches("complete"))
    for number, label in enumerate(right, start=1):
        assert f"The assistant's answer to question {number}: {label + 1}\n" in text
        assert f"The right answer to question {number}: {label + 1}" in text
    for number, _ in enumerate(tiny[0].qas):
        for label, choice in enumerate(script.choices_shown(number), start=1):
            assert f"\n{label}. {choice}" in text
    unanswered = gather(script, 1, [-1] * len(right), [], {})
    assert "answer to question 1: none" in feedback([unanswered], switches("answers"))


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_tells_its_part_and_no_other(switch: str, tiny: list[Scenario]) -> None:
    parts = {
        "questions": "Question 1: ",
        "choices": "\n1. ",
        "answers": "The assistant's answer",
        "truth": "The right answer",
        "memories": "Memories retrieved",
        "exposed": "What the user gave away",
    }
    text = "\n" + feedback([evidence(tiny)], switches(switch))
    assert [name for name, part in parts.items() if part in text] == [switch]


def test_named_feedback_is_what_the_paper_says_and_what_its_configurations_do() -> None:
    assert NAMED["none"] == frozenset()
    assert NAMED["question_only"] == {"questions"}
    assert NAMED["complete"] == set(SWITCHES)
    assert "memories" in NAMED["released_question_only"]
    assert not NAMED["released_complete"] & {"truth", "exposed"}
    assert switches("questions+truth") == {"questions", "truth"}
    with pytest.raises(ConfigError, match="joined by"):
        switches("questions+answer_key")


def test_recall_counts_newly_exposed_values_that_memories_state(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    pairs = [
        (utterance, pair)
        for conversation in script.periods[0]
        for utterance in conversation.utterances
        for pair in utterance.exposures
    ]
    assert recall(script, 0, []) == (0, len(pairs))
    assert recall(script, 0, [utterance.text for utterance, _ in pairs]) == (len(pairs),) * 2
    _, (variable, value) = pairs[0]
    one, _ = recall(script, 0, [f"{variable}: {value.replace('_', ' ').upper()}"])
    assert one >= 1


# The simulated model


def test_the_general_list_and_a_prompt_without_a_list_change_nothing() -> None:
    attention = InformationTypeEffect()
    for base in (0.0, 0.3, 1.0):
        assert attention.miss(base, "pet_name", INFORMATION_TYPES) == base
        assert attention.miss(base, "pet_name", None) == base
    (sent,) = FactExtraction((message("user", "x"),)).render(BUILT_IN)
    assert listed_types(sent["content"]) == INFORMATION_TYPES


def test_naming_helps_narrowing_hurts_and_length_costs() -> None:
    attention = InformationTypeEffect()
    general = INFORMATION_TYPES
    plain = attention.miss(0.3, "garden_watering_days", general)
    in_part = attention.miss(0.3, "garden_watering_days", (*general, "gardens"))
    in_full = attention.miss(0.3, "garden_watering_days", (*general, "garden watering days"))
    assert in_full < in_part < plain
    assert attention.miss(0.3, "garden_watering_days", ("jazz records",)) > plain
    others = tuple(f"jazz record number {number}" for number in range(20))
    assert attention.miss(0.3, "garden_watering_days", (*general, *others)) > plain
    assert named("garden_watering_days", general) == 0.0


def test_proposals_come_from_the_text_of_the_feedback_alone(tiny: list[Scenario]) -> None:
    told = feedback([evidence(tiny)], switches("complete"))
    (sent,) = TypesEvolution(INFORMATION_TYPES, told).render(BUILT_IN)
    one = better_types(sent["content"], lambda *key: 0.5)
    assert one[: len(INFORMATION_TYPES)] == list(INFORMATION_TYPES)
    given = {name.replace("_", " ") for name, _ in evidence(tiny).exposed}
    assert given <= set(one)
    values = {value.replace("_", " ") for _, value in evidence(tiny).exposed}
    assert not values & set(one)
    (empty,) = TypesEvolution(INFORMATION_TYPES, "").render(BUILT_IN)
    assert better_types(empty["content"], lambda *key: 0.5) == list(INFORMATION_TYPES)
    for script in (build(tiny[0]), build(tiny[1])):  # whose model it is does not matter
        asked = Models({"assistant": SimulatedModel(script)})
        assert list(asked.ask(TypesEvolution(INFORMATION_TYPES, told)).value or ()) == one


def test_wrong_questions_come_first_where_the_feedback_tells_which(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    right = list(script.right_shown[0])
    answers = [right[0] + 1, *right[1:]]
    seen = replace(gather(script, 0, answers, [], {}), exposed=())
    (sent,) = TypesEvolution(INFORMATION_TYPES, feedback([seen], switches("complete"))).render(
        BUILT_IN
    )
    added = better_types(sent["content"], lambda *key: 0.5)[len(INFORMATION_TYPES) :]
    assert len([kind for kind in added if kind.startswith("matters of")]) == 1


def test_a_whole_prompt_evolves_and_is_read(tiny: list[Scenario]) -> None:
    told = feedback([evidence(tiny)], switches("exposed"))
    for kind in (FactExtraction, DictionaryUpdate):
        asked = PromptEvolution(kind.template, kind.placeholders, told)
        (sent,) = asked.render(BUILT_IN)
        prompt = better_prompt(sent["content"], lambda *key: 0.5)
        assert repaired(kind, prompt).added == ()
        agent = AWE(Models({"assistant": SimulatedModel(build(tiny[0]))}))
        apply_policy(WritingPolicy(prompt=prompt), agent, kind.kind)
        call: Any = DictionaryUpdate((), ()) if kind is DictionaryUpdate else FactExtraction(())
        (rendered,) = call.render(agent.models.templates)
        given = {name.replace("_", " ") for name, _ in evidence(tiny).exposed}
        assert given <= set(listed_types(rendered["content"]) or ())
