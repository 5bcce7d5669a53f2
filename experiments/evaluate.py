"""How well does a memory serve an assistant? Plays agents through scenarios and scores them.

Baseline: the floors (scores without a memory) and the upper bound (the truth in the prompt).
Answers the paper's main table (Section 4.2) and its diagnosis (Section 4.3).

    python -m experiments.evaluate scenarios=base agent=awe
    python -m experiments.evaluate -m agent=native,rag,awe,awi
"""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

from amemgym_env.evaluation import Game, evaluate, script_of
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.prompt import BUILT_IN, Templates
from amemgym_env.prompts import KINDS
from amemgym_env.randomness import digest
from amemgym_env.scenario import Scenario
from experiments import job, sweep
from experiments.models import agent_maker, backends
from experiments.progress import Progress
from experiments.run_folder import RunFolder
from experiments.settings import EvaluateSettings, checked
from experiments.tables import print_comparison

GROUPS = ("agent", "backend", "user_backend", "memory_backend", "judge_backend")


def run(settings: EvaluateSettings) -> dict[str, Any]:
    """Play what settings describe, write the run's folder, and return its results."""
    identity = settings.identity()
    make_agent = agent_maker(settings.agent)
    roles = {
        "user": settings.user_backend,
        "memory": settings.memory_backend,
        "judge": settings.judge_backend,
    }
    of_script = backends(settings.backend, roles)
    templates = (
        BUILT_IN if settings.templates is None else Templates.from_folder(settings.templates, KINDS)
    )
    chosen = list(named_scenarios(settings.scenarios, settings.limit))
    identity["scenarios_hash"] = _hash(chosen)
    workers = settings.workers or (1 if settings.backend.name == "simulated" else 20)
    game = Game(
        difficulty=settings.difficulty,
        seed=settings.seed,
        rounds_initial=settings.rounds_initial,
        rounds_update=settings.rounds_update,
        shuffle_choices=settings.shuffle_choices,
        diagnosis=settings.diagnosis,
        upper_bound=settings.upper_bound,
        capacity=settings.capacity,
        question_blind=settings.question_blind,
    )
    script_of(chosen[0], game, chosen)  # a wrong setting is refused before a folder is made
    folder = RunFolder.open(settings.out, "evaluate", identity, settings.resume)
    with Progress(len(chosen)) as progress:
        results = evaluate(
            make_agent,
            chosen,
            game=game,
            backends=of_script,
            templates=templates,
            workers=workers,
            journal=folder.journal,
            progress=progress.event,
            settings=identity,
        )
    document = results.to_json()
    folder.save_results(document)
    document["folder"] = str(folder.path)
    return document


def _hash(scenarios: list[Scenario]) -> str:
    """Return a hash of the scenarios' whole content, in any order."""
    return digest(*sorted(json.dumps(item.to_json(), sort_keys=True) for item in scenarios)).hex()


def main(composed: dict[str, Any]) -> float | None:
    """Run one job and print its table; returns the memory score, the objective of sweeps."""
    settings = checked(EvaluateSettings, composed)
    if job.is_sweep():
        settings = settings.model_copy(update={"out": str(sweep.folder(settings))})
    document = run(settings)
    if job.is_sweep():
        sweep.note(document["folder"])
    else:
        print_comparison([document])
        Console(highlight=False, soft_wrap=True).print(
            f"written to {document['folder']}", markup=False
        )
    score: float | None = document["memory_score"]
    return score


if __name__ == "__main__":
    sweep.prepare(sys.argv, "evaluate")
    job.run("evaluate", main, GROUPS)
    sweep.finish()
