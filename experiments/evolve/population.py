"""Cross-user evolution: one policy for many users, measured on held-out users.

The users are divided several times, so that each is unseen once: a part evolves the policy, a part
is held out for the guard, and a part is only measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.evolution_feedback import Switch, feedback
from amemgym_env.models.client import Models, Recorded
from amemgym_env.models.events import EvolutionStep, WritingPolicy, read_step
from amemgym_env.models.journal import FileJournal
from amemgym_env.scenarios.model import Scenario
from experiments.app.run_folder import write
from experiments.evolve.conditions import Experiment, Played, foreign_variables, guard, play
from experiments.evolve.loop import Target, drawn_types, step


class Division(NamedTuple):
    """Who does what in one fold."""

    evolving: list[Scenario]
    held_out: list[Scenario]
    unseen: list[Scenario]


def divisions(scenarios: Sequence[Scenario], folds: int) -> list[Division]:
    """Return the folds; every user is unseen in exactly one.

    Raises:
        ConfigError: too few users or folds for three parts.
    """
    if folds < 3 or len(scenarios) < folds:
        raise ConfigError(
            f"folds: expected at least 3, and as many users, found {folds} folds and "
            f"{len(scenarios)} users"
        )
    parts = [list(scenarios[number::folds]) for number in range(folds)]
    return [
        Division(
            [
                item
                for place, part in enumerate(parts)
                if place not in (number, held)
                for item in part
            ],
            parts[held],
            parts[number],
        )
        for number, held in ((number, (number + 1) % folds) for number in range(folds))
    ]


class Shared(NamedTuple):
    """How a shared policy evolves."""

    switches: frozenset[Switch]
    target: Target
    proposals: int
    guarded: bool
    generations: int
    half: bool = False
    """Whether the feedback is about every second question only, from the first."""


def evolve(stage: Experiment, name: str, part: Division, how: Shared) -> list[EvolutionStep]:
    """Return the steps of one fold, continued from those that its folder holds."""
    file = stage.path / name / "lineage.json"
    steps: list[EvolutionStep] = []
    if file.exists():
        steps = [read_step(item) for item in json.loads(file.read_text(encoding="utf-8"))]
    script = next(iter(stage.scripts(part.evolving[:1]).values()))
    judged = part.held_out if how.guarded else part.evolving
    scored = guard(stage, judged) if how.guarded or how.proposals > 1 else None
    with FileJournal(stage.path / name / "evolution.jsonl") as journal:
        models = Models(
            stage.backends(script), recorder=journal.write, recorded=Recorded(journal.read())
        )
        while len(steps) < how.generations:
            policy = last(steps)
            played = play(
                stage,
                f"{name}/generation-{len(steps)}",
                part.evolving,
                start=lambda _, policy=policy: policy,  # type: ignore[misc]
            )
            told = [seen[max(seen)] for seen in played.evidence.values()]
            if how.half:
                told = [seen.only(range(0, len(seen.asked), 2)) for seen in told]
            text = feedback(told, how.switches)
            steps.append(step(models, policy, stage.kind, how.target, text, how.proposals, scored))
            write(file, json.dumps(lineage_json(steps), indent=1))
    return steps


def lineage_json(steps: Sequence[EvolutionStep]) -> list[dict[str, Any]]:
    """Return the steps of one fold as `lineage.json` lists them."""
    return [
        {"period": None, "generation": number, **taken.to_json()}
        for number, taken in enumerate(steps)
    ]


def last(steps: Sequence[EvolutionStep]) -> WritingPolicy:
    """Return the policy after some steps."""
    return steps[-1].after if steps else WritingPolicy()


def measured(stage: Experiment, name: str, part: Division, policy: WritingPolicy) -> Played:
    """Play a fold's unseen users with a policy."""
    return play(stage, f"{name}/unseen", part.unseen, start=lambda script: policy)


def random_policy(stage: Experiment, name: str, part: Division, count: int) -> Played:
    """Play a fold's unseen users with as many random types."""
    variables = foreign_variables()
    return play(
        stage,
        f"{name}/random",
        part.unseen,
        start=lambda script: WritingPolicy(drawn_types(script, variables, count)),
    )
