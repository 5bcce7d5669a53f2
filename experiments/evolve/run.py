"""The job `evolve`: an agent that improves its own memory prompt from feedback.

Question: does the feedback improve the prompt? Swept: the content of the feedback. Baselines: the
policy that does not evolve (paired, by user), and controls with the same loop and other
information: another user's feedback, random types, the list of required types (oracle), blank user
messages, feedback on five questions and scores on five others. Reproduces the paper's Section 5.

    python -m experiments.evolve agent=awi guard=none feedback=[question_only,complete]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amemgym_env.evaluation.evolution_feedback import switches
from amemgym_env.evaluation.run import Game
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.events import WritingPolicy
from amemgym_env.prompts.evolution import EVOLVING
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import digest
from experiments.app import hydra_app as job
from experiments.app.factories import backends
from experiments.app.run_folder import RunFolder, write
from experiments.app.settings import checked
from experiments.evaluate.agents import agent_maker
from experiments.evolve import population
from experiments.evolve.conditions import (
    CONTROLS,
    Experiment,
    Played,
    control,
    emptied,
    guard,
    length,
    oracle,
    play,
)
from experiments.evolve.loop import WRITERS, FromFeedback
from experiments.evolve.measures import (
    Users,
    mean_over_seeds,
    measures,
    print_summaries,
    summary,
)
from experiments.evolve.settings import EvolveSettings

HALF = "half_of_the_questions"


def run(settings: EvolveSettings) -> dict[str, Any]:
    """Play every condition of every seed, write the run's folder, and return its summary."""
    for name in settings.feedback:
        switches(name)
    scenarios = list(named_scenarios(settings.scenarios, settings.limit))
    if settings.population == "shared":
        population.divisions(scenarios, settings.folds)
    roles = {
        "user": settings.user_backend,
        "memory": settings.memory_backend,
        "judge": settings.judge_backend,
    }
    of_script = backends(settings.backend, roles)
    identity = settings.identity()
    identity["scenarios_hash"] = _hash(scenarios)
    identity["prompts"] = {prompt.kind: prompt.version for prompt in EVOLVING}
    folder = RunFolder.open(settings.out, "evolve", identity, settings.resume)
    found: dict[str, list[Users]] = {}
    checks: list[dict[str, Any]] = []
    steps: dict[str, Any] = {}
    for seed in settings.seeds:
        stage = Experiment(
            agent_maker(settings.agent),
            WRITERS[settings.agent.name],
            of_script,
            Game(
                seed=seed,
                rounds_initial=settings.rounds_initial,
                rounds_update=settings.rounds_update,
            ),
            Path(folder.path) / f"seed-{seed}",
            settings.workers or (1 if settings.backend.name == "simulated" else 20),
        )
        one = _each if settings.population == "each" else _shared
        rows, check, lineage = one(settings, stage, scenarios)
        for name, users in rows.items():
            found.setdefault(name, []).append(users)
        checks.append({"seed": seed, **check})
        steps[f"seed-{seed}"] = lineage
    means = {name: mean_over_seeds(seeds) for name, seeds in found.items()}
    document = {
        "settings": identity,
        "simulated": settings.backend.name == "simulated",
        "conditions": {
            name: summary(users, means[_baseline(name)]) for name, users in means.items()
        },
        "users": means,
        "emptied_dialogues": checks,
    }
    plain = json.loads(json.dumps(document), parse_constant=lambda _: None)
    write(folder.path / "evolve.json", json.dumps(plain, indent=1))
    write(folder.path / "lineage.json", json.dumps(steps, indent=1))
    return {**plain, "folder": str(folder.path)}


def _baseline(name: str) -> str:
    return f"none_{HALF}" if name.endswith(HALF) else "none"


Rows = tuple[dict[str, Users], dict[str, Any], dict[str, Any]]


def _each(settings: EvolveSettings, stage: Experiment, scenarios: Sequence[Scenario]) -> Rows:
    """Every user evolves a policy of their own, after every exam."""
    if settings.cadence == "episode":
        return _between_episodes(settings, stage, scenarios)
    held_out = list(named_scenarios(settings.held_out)) if settings.guard == "held_out" else []
    score = guard(stage, held_out) if held_out else None
    plain = play(stage, "none", scenarios)
    rows, lineage = {"none": measures(plain)}, {}
    main, improve = plain, None
    for name in (name for name in settings.feedback if name != "none"):
        improve = FromFeedback(
            switches(name), stage.kind, settings.target, settings.proposals, score
        )
        main = play(stage, name, scenarios, improve=improve)
        rows[name], lineage[name] = measures(main), _without_entries(main)
    if improve is None or not settings.controls:
        return rows, {}, lineage
    for name in CONTROLS:
        played = control(stage, scenarios, name, improve, plain, main)
        lineage[name] = _without_entries(played)
        if name == HALF:
            rows[f"none_{HALF}"] = measures(plain, untold=True)
            rows[name] = measures(played, untold=True)
        else:
            rows[name] = measures(played)
    return rows, _emptied(stage, scenarios, main), lineage


def _between_episodes(
    settings: EvolveSettings, stage: Experiment, scenarios: Sequence[Scenario]
) -> Rows:
    """Every user's policy evolves between their own episodes; the last is measured."""
    plain = play(stage, "none", scenarios)
    rows: dict[str, Users] = {"none": measures(plain)}
    lineage: dict[str, Any] = {}
    policies: dict[str, WritingPolicy] = {}
    held_out = list(named_scenarios(settings.held_out)) if settings.guard == "held_out" else []
    parts = [population.Division([item], held_out, [item]) for item in scenarios]

    def evolved(name: str, how: population.Shared, *, untold: bool = False) -> None:
        rows[name], lineage[name] = {}, {}
        for item, part in zip(scenarios, parts, strict=True):
            place = f"{name}/{item.id}"
            steps = population.evolve(stage, place, part, how)
            lineage[name][item.id] = population.lineage_json(steps)
            policies[item.id] = population.last(steps)
            played = population.measured(stage, place, part, policies[item.id])
            rows[name] |= measures(played, untold=untold)

    names = [name for name in settings.feedback if name != "none"]
    for name in names:
        evolved(name, _how(settings, name))
    if not names or not settings.controls:
        return rows, {}, lineage
    last, equal = dict(policies), 0
    others = dict(zip(last, [*list(last)[1:], next(iter(last))], strict=True))
    for item, part in zip(scenarios, parts, strict=True):
        # What a stranger's own episodes taught is a policy from another user's feedback.
        place = f"another_users_feedback/{item.id}"
        strange = population.measured(stage, place, part, last[others[item.id]])
        rows.setdefault("another_users_feedback", {}).update(measures(strange))
        count = length(last[item.id], stage.kind)
        drawn = population.random_policy(stage, f"random_types/{item.id}", part, count)
        rows.setdefault("random_types", {}).update(measures(drawn))
        main = population.measured(stage, f"{names[-1]}/{item.id}", part, last[item.id])
        equal += _emptied(stage, [item], main)["equal_to_never_write"]
    rows["oracle_types"] = measures(play(stage, "oracle_types", scenarios, start=oracle))
    rows[f"none_{HALF}"] = measures(plain, untold=True)
    evolved(HALF, _how(settings, names[-1])._replace(half=True), untold=True)
    return rows, {"equal_to_never_write": equal, "users": len(scenarios)}, lineage


def _shared(settings: EvolveSettings, stage: Experiment, scenarios: Sequence[Scenario]) -> Rows:
    """One policy for all, evolved between episodes and measured on users that it never saw."""
    plain = play(stage, "none", scenarios)
    rows: dict[str, Users] = {"none": measures(plain)}
    lineage: dict[str, Any] = {}
    equal = total = 0
    for name in (name for name in settings.feedback if name != "none"):
        rows[name], lineage[name] = {}, {}
        for number, part in enumerate(population.divisions(scenarios, settings.folds)):
            place = f"{name}/fold-{number}"
            steps = population.evolve(stage, place, part, _how(settings, name))
            policy = population.last(steps)
            played = population.measured(stage, place, part, policy)
            rows[name] |= measures(played)
            lineage[name][f"fold-{number}"] = population.lineage_json(steps)
            if settings.controls:
                count = length(policy, stage.kind)
                drawn = population.random_policy(stage, place, part, count)
                rows.setdefault(f"random_types_for_{name}", {}).update(measures(drawn))
                check = _emptied(stage, part.unseen, played)
                equal, total = equal + check["equal_to_never_write"], total + check["users"]
    if settings.controls:
        rows["oracle_types"] = measures(play(stage, "oracle_types", scenarios, start=oracle))
    return rows, {"equal_to_never_write": equal, "users": total}, lineage


def _how(settings: EvolveSettings, name: str) -> population.Shared:
    return population.Shared(
        switches(name),
        settings.target,
        settings.proposals,
        settings.guard == "held_out",
        settings.generations,
    )


def _emptied(stage: Experiment, scenarios: Sequence[Scenario], main: Played) -> dict[str, Any]:
    """Return the number of users whose emptied dialogues score as never writing does."""
    results = [emptied(stage, item, main.policy(item.id)).scenarios[0] for item in scenarios]
    equal = sum(
        np.array_equal(result.accuracy, result.never_write, equal_nan=True) for result in results
    )
    return {"equal_to_never_write": equal, "users": len(results)}


def _without_entries(played: Played) -> dict[str, Any]:
    return {name: [step.lineage_json() for step in steps] for name, steps in played.steps.items()}


def _hash(scenarios: list[Scenario]) -> str:
    return digest(*(json.dumps(item.to_json(), sort_keys=True) for item in scenarios)).hex()


def main(composed: dict[str, Any]) -> float | None:
    """Run the job and print its table; returns the gain of the last feedback."""
    settings = checked(EvolveSettings, composed)
    document = run(settings)
    seeds = f"{len(settings.seeds)} seed{'s' if len(settings.seeds) > 1 else ''}"
    heading = f"{settings.agent.name}, {Path(settings.scenarios).name}, {seeds}; gains over none"
    if document["simulated"]:
        heading += "\nSIMULATED model: not a real model's scores"
    if settings.population == "shared":
        heading += "\none policy for all, measured on users that it never saw"
    print_summaries(document["conditions"], heading)
    for check in document["emptied_dialogues"]:
        if "users" in check:
            told = f"{check['equal_to_never_write']} of {check['users']} users"
            print(f"emptied dialogues, seed {check['seed']}: {told} score what never-write scores")
    print(f"written to {document['folder']}")
    names = [name for name in settings.feedback if name in document["conditions"]]
    gain: float | None = document["conditions"][names[-1]]["gain"] if names else None
    return gain


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("evolve", main, check=lambda composed: checked(EvolveSettings, composed))
