"""Controls of an evolution: each shares the loop and not its information, whatever evolves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.models.events import WritingPolicy, read_policy
from amemgym_env.prompts.evolution import WRITES
from amemgym_env.prompts.memory import INFORMATION_TYPES
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.evolve import run as evolve
from experiments.evolve.conditions import length
from experiments.evolve.loop import WRITERS
from experiments.evolve.settings import EvolveSettings


def run(*words: str) -> dict[str, Any]:
    given = ("scenarios=tiny", "guard=none", "out=E", *words)
    return evolve.run(checked(EvolveSettings, compose("evolve", given)))


def steps(folder: Path, name: str, scenario: str) -> list[dict[str, Any]]:
    lineage = json.loads((folder / "E" / "lineage.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = lineage["seed-0"][name][scenario]
    return found


@pytest.mark.parametrize("kind", sorted(WRITERS.values()))
def test_a_prompt_is_as_long_as_the_types_that_have_its_words(kind: str) -> None:
    text = WRITES[kind].template
    assert length(WritingPolicy(), kind) == len(INFORMATION_TYPES)
    assert length(WritingPolicy((*INFORMATION_TYPES, "cats")), kind) == len(INFORMATION_TYPES) + 1
    assert length(WritingPolicy(prompt=text), kind) == len(INFORMATION_TYPES)
    longer = f"{text}\n- morning drink of choice\n- pace of walking uphill"
    assert length(WritingPolicy(prompt=longer), kind) == len(INFORMATION_TYPES) + 2
    assert length(WritingPolicy(prompt="short"), kind) == len(INFORMATION_TYPES)


@pytest.mark.parametrize("target", ["types", "prompt"])
def test_random_types_are_as_many_as_an_evolution_taught(target: str, tmp_path: Path) -> None:
    run(f"target={target}")
    (evolved, *_), (drawn, *_) = (
        steps(tmp_path, name, "tiny-ada") for name in ("complete", "random_types")
    )
    taught = read_policy(evolved["after"])
    types = drawn["after"]["information_types"]
    assert len(types) == length(taught, WRITERS["awi"])
    assert len(types) > len(INFORMATION_TYPES)
    assert (taught.prompt is None) == (target == "types")
    assert drawn["after"]["prompt"] is None


@pytest.mark.parametrize("agent", ["awe", "awi"])
def test_policies_that_evolve_between_episodes_have_every_control(
    agent: str, tmp_path: Path
) -> None:
    document = run("cadence=episode", "generations=1", f"agent={agent}")
    assert list(document["conditions"]) == [
        "none",
        "complete",
        "another_users_feedback",
        "random_types",
        "oracle_types",
        "none_half_of_the_questions",
        "half_of_the_questions",
    ]
    assert all(row["users"] == 3 for row in document["conditions"].values())
    assert document["emptied_dialogues"] == [{"seed": 0, "equal_to_never_write": 3, "users": 3}]
    (told,) = steps(tmp_path, "complete", "tiny-ada")
    (half,) = steps(tmp_path, "half_of_the_questions", "tiny-ada")
    assert "Question 2" in told["feedback"]
    assert "Question 2" not in half["feedback"]
