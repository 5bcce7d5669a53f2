"""Evolving memory policies: proposals, guard, resume, controls (B02-03, B02-07, B02-08)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agents import AWE, AWI
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.evolution_feedback import Evidence, switches
from amemgym_env.evaluation.run import Game, simulated
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.models.events import EvolutionStep, WritingPolicy, read_policy
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.prompts.base import BUILT_IN, message
from amemgym_env.prompts.evolution import (
    EVOLVING,
    MOST_CHARACTERS,
    PromptEvolution,
    TypesEvolution,
    repaired,
)
from amemgym_env.prompts.memory import INFORMATION_TYPES, DictionaryUpdate, FactExtraction
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from amemgym_env.simulated.model import SimulatedModel
from amemgym_env.simulated.profiles import ErrorRates
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.evolve import loop as evolution
from experiments.evolve import population
from experiments.evolve import run as evolve
from experiments.evolve.conditions import Experiment, emptied, oracle, play
from experiments.evolve.loop import FromFeedback, apply_policy, propose, step
from experiments.evolve.settings import EvolveSettings

FORGETFUL = ErrorRates(extraction_miss=0.4)


class Scripted(Backend):
    """Gives prepared replies, in order."""

    name = "scripted"
    simulated = True

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    def complete(self, call: Call) -> Completion:
        return Completion(self.replies.pop(0), Usage(calls=1))


def models(*replies: str) -> Models:
    return Models({"assistant": Scripted(*replies)})


def stage(path: Path, kind: str = "awi", seed: int = 0) -> Experiment:
    def of(script: Any) -> dict[str, Backend]:
        return {"assistant": SimulatedModel(script, FORGETFUL)}

    agent = {"awi": AWI, "awe": AWE}[kind]
    return Experiment(agent, evolution.WRITERS[kind], of, Game(seed=seed), path)


# Prompts


def test_golden_types_evolution() -> None:
    (sent,) = TypesEvolution(("homes", "pets"), "Question 1: {why}?", 2, 3).render(BUILT_IN)
    assert sent["content"].startswith("A personal assistant keeps a memory of its user.")
    assert (
        "\nThe list now:\n- homes\n- pets\n\nFeedback:\nQuestion 1: {why}?\n\n" in sent["content"]
    )
    assert "This is proposal 2 of 3: let proposals differ." in sent["content"]
    assert sent["content"].endswith('{"information_types": ["...", ...]}')


def test_golden_prompt_evolution() -> None:
    prompt = PromptEvolution("Note {messages}.", ("messages",), "told", 1, 1)
    (sent,) = prompt.render(BUILT_IN)
    assert "<prompt>\nNote {messages}.\n</prompt>\n\nFeedback:\ntold\n" in sent["content"]
    assert "where their contents belong: {messages}. " in sent["content"]
    assert sent["content"].endswith('{"prompt": "..."}')


def test_prompts_of_an_evolution_have_their_placeholders() -> None:
    for prompt in EVOLVING:
        assert all(f"{{{name}}}" in prompt.template for name in prompt.placeholders)


@pytest.mark.parametrize(
    "text", ["output {{}} if nothing is new", "call me {{name}}", "a {{messages}} b \\1 $& {x}"]
)
def test_b02_03_braces_are_the_same_after_any_number_of_cycles(text: str) -> None:
    prompt = f"{text}\nLook for:\n{{information_types}}\n\n{{messages}}"
    said = (message("user", "hello"),)

    def rendered(policy: WritingPolicy) -> str:
        agent = AWE(models())
        apply_policy(policy, agent, "fact_extraction")
        (sent,) = FactExtraction(said, agent.information_types).render(agent.models.templates)
        return sent["content"]

    policy = WritingPolicy(("pets",), prompt)
    first = rendered(policy)
    assert text.replace("{messages}", "user: hello") in first
    for _ in range(3):
        policy = read_policy(json.loads(json.dumps(policy.to_json())))
        reply = json.dumps({"prompt": policy.prompt})
        kept = propose(models(reply), policy, "fact_extraction", "prompt", "", 1, 1)
        assert kept.status == "no change"
        assert rendered(policy) == first


@pytest.mark.parametrize(
    ("reply", "status", "changed"),
    [
        ({"prompt": "Look for:\n{information_types}"}, "accepted", True),
        ({"prompt": "{messages} {information_types} {messages}"}, "accepted", True),
        ({"prompt": ""}, "empty", False),
        ({"prompt": "{messages}{information_types}" + "x" * 60_000}, "unreadable", False),
        ({"prompt": FactExtraction.template}, "no change", False),
        ({"prompt": None}, "unreadable", False),
    ],
    ids=["i-missing", "ii-twice", "iii-empty", "iv-long", "v-same", "vi-null"],
)
def test_b02_07_a_prompt_that_a_model_wrote(
    reply: dict[str, Any], status: str, changed: bool
) -> None:
    record = step(models(json.dumps(reply)), WritingPolicy(), "fact_extraction", "prompt", "told")
    assert record.status == status
    after = record.after
    assert (after != WritingPolicy()) is changed
    if changed:
        agent = AWE(models())
        apply_policy(after, agent, "fact_extraction")
        said = (message("user", "hello"),)
        (sent,) = FactExtraction(said).render(agent.models.templates)
        assert "user: hello" in sent["content"]
        assert len(after.prompt or "") <= MOST_CHARACTERS


def test_b02_07_a_missing_placeholder_is_added_once() -> None:
    fixed = repaired(DictionaryUpdate, "Only {memories}.")
    assert fixed.added == ("information_types", "messages")
    assert repaired(DictionaryUpdate, fixed.text).added == ()
    record = step(
        models(json.dumps({"prompt": "{messages}"})),
        WritingPolicy(),
        "fact_extraction",
        "prompt",
        "",
    )
    assert (record.proposals or ())[0].status == "repaired"


def test_b02_08_a_resumed_run_goes_on_from_the_evolved_policy(
    tiny: list[Scenario], tmp_path: Path
) -> None:
    told = FromFeedback(switches("complete"), "dictionary_update")
    whole = play(stage(tmp_path / "whole"), "complete", tiny, improve=told)
    steps = 0

    class Dies(Exception):
        pass

    def dying(script: Any, agent: Any, policy: WritingPolicy, seen: Evidence) -> EvolutionStep:
        nonlocal steps
        steps += 1
        if steps == 4:
            raise Dies
        return told(script, agent, policy, seen)

    with pytest.raises(Dies):
        play(stage(tmp_path / "cut"), "complete", tiny, improve=dying)
    resumed = play(stage(tmp_path / "cut"), "complete", tiny, improve=told)
    assert resumed.steps == whole.steps
    assert resumed.results.to_json()["hashes"] == whole.results.to_json()["hashes"]
    for scenario in tiny:
        history = resumed.steps[scenario.id]
        assert len(history) == len(scenario.periods)
        for before, after in pairwise(history):
            assert (after.before or after.after) == before.after
        assert resumed.policy(scenario.id) != WritingPolicy()


def test_b02_08_a_shared_policy_goes_on_from_its_lineage(
    tiny: list[Scenario], tmp_path: Path
) -> None:
    (part, *_) = population.divisions(tiny, 3)
    how = population.Shared(switches("complete"), "types", 1, False, 3)
    whole = population.evolve(stage(tmp_path / "whole"), "fold", part, how)
    population.evolve(stage(tmp_path / "cut"), "fold", part, how._replace(generations=1))
    resumed = population.evolve(stage(tmp_path / "cut"), "fold", part, how)
    assert resumed == whole
    assert len(resumed) == 3
    assert resumed[1].before == resumed[0].after != WritingPolicy()


# The loop


def test_the_guard_rejects_what_does_worse_and_takes_the_best() -> None:
    replies = [json.dumps({"information_types": [name]}) for name in ("bad", "best", "good")]
    worth = {(): 0.0, ("bad",): 0.1, ("good",): 0.6, ("best",): 0.7, INFORMATION_TYPES: 0.5}

    def score(policy: WritingPolicy) -> float:
        return worth[policy.information_types]

    record = step(models(*replies), WritingPolicy(), "dictionary_update", "types", "", 3, score)
    assert record.after.information_types == ("best",)
    assert [item.score for item in record.proposals or ()] == [0.1, 0.7, 0.6]
    assert "+- best" in (record.difference or ())
    rejected = step(models(replies[0]), WritingPolicy(), "dictionary_update", "types", "", 1, score)
    assert rejected.status == "rejected"
    assert rejected.after == WritingPolicy()
    unguarded = step(models(replies[0]), WritingPolicy(), "dictionary_update", "types", "")
    assert unguarded.after.information_types == ("bad",)


@pytest.mark.parametrize("kind", ["awi", "awe"])
def test_emptied_dialogues_score_what_never_write_scores(
    kind: str, tiny: list[Scenario], tmp_path: Path
) -> None:
    hiding = [f"user: {utterance.text}" for utterance in build(tiny[0]).utterances][:40]
    answers = [choice.answer for asked in tiny[0].qas for choice in asked.answer_choices][:15]
    for policy in (oracle(build(tiny[0])), WritingPolicy((*INFORMATION_TYPES, *hiding, *answers))):
        (result,) = emptied(stage(tmp_path, kind), tiny[0], policy).scenarios
        assert (result.accuracy == result.never_write).all()


def test_every_user_is_unseen_once_and_never_evolves_what_measures_it() -> None:
    users: Sequence[Any] = [f"user {number}" for number in range(11)]
    parts = population.divisions(users, 4)
    unseen: list[Any] = [name for part in parts for name in part.unseen]
    assert sorted(unseen) == sorted(users)
    for part in parts:
        names: list[Any] = [*part.evolving, *part.held_out, *part.unseen]
        assert sorted(names) == sorted(users)
    with pytest.raises(ConfigError, match="folds"):
        population.divisions(users, 2)


def settings(**changes: Any) -> EvolveSettings:
    composed = compose("evolve", changes.pop("words", ()))
    return checked(EvolveSettings, {**composed, **changes})


def test_the_job_plays_every_control_and_a_second_call_plays_nothing(tmp_path: Path) -> None:
    given = settings(
        scenarios="tiny", feedback=["question_only", "complete"], guard="none", out="E"
    )
    document = evolve.run(given)
    assert list(document["conditions"]) == [
        "none",
        "question_only",
        "complete",
        "another_users_feedback",
        "random_types",
        "oracle_types",
        "none_half_of_the_questions",
        "half_of_the_questions",
    ]
    assert document["emptied_dialogues"] == [{"seed": 0, "equal_to_never_write": 3, "users": 3}]
    assert document["conditions"]["none"]["gain"] == 0.0
    lineage = json.loads((tmp_path / "E" / "lineage.json").read_text(encoding="utf-8"))
    steps = lineage["seed-0"]["complete"]["tiny-ada"]
    assert steps[0]["feedback"].startswith("Question 1: ")
    assert steps[0]["difference"]
    before = {path: path.stat().st_size for path in tmp_path.rglob("*.jsonl")}
    assert evolve.run(given) == document
    assert {path: path.stat().st_size for path in tmp_path.rglob("*.jsonl")} == before


@pytest.mark.parametrize("guard", ["none", "held_out"])
def test_a_shared_policy_is_measured_on_unseen_users(guard: str) -> None:
    given = settings(
        scenarios="tiny", population="shared", cadence="episode", guard=guard, folds=3,
        generations=2, proposals=2, out="E", words=["agent=awe"],
    )  # fmt: skip
    document = evolve.run(given)
    assert document["conditions"]["complete"]["users"] == 3
    assert document["emptied_dialogues"] == [{"seed": 0, "equal_to_never_write": 3, "users": 3}]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"words": ["agent=rag"]}, "expected agent=awe or awi"),
        ({"population": "shared"}, "add cadence=episode"),
        ({"proposals": 2, "guard": "none"}, "need scores to choose by"),
        ({"seeds": []}, "at least 1"),
    ],
    ids=["agent", "shared", "proposals", "seeds"],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(**changes)


def test_journals_hold_the_lineage(tiny: list[Scenario], tmp_path: Path) -> None:
    told = FromFeedback(switches("question_only"), "fact_extraction")
    played = play(stage(tmp_path, "awe"), "x", tiny[:1], improve=told)
    journal = FileJournal(next((tmp_path / "x" / "journals").iterdir()))
    assert last_play(journal.read()).evolution == played.steps[tiny[0].id]
    assert simulated("exact")(build(tiny[0]))["assistant"].simulated
