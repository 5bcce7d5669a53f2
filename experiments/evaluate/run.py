"""The job `evaluate`: agents played through scenarios and scored.

Question: how well does a memory serve an assistant? Baselines: the floors (scores without a
memory) and the upper bound (the true values in the prompt). Reproduces the paper's main table
(Section 4.2) and its diagnosis (Section 4.3).

    python -m experiments.evaluate scenarios=base agent=awe
    python -m experiments.evaluate -m agent=native,rag,awe,awi
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import Backends, Game, Interrupted, evaluate, script_of
from amemgym_env.evaluation.traces import fingerprint, traces
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.backend import Backend
from amemgym_env.prompts import assistant as prompts
from amemgym_env.prompts.assistant import KINDS
from amemgym_env.prompts.base import BUILT_IN, Templates
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.seeding import digest
from amemgym_env.version import VERSION
from experiments.app import hydra_app as job
from experiments.app import memory_factories, sweep
from experiments.app.exit_status import exit_status
from experiments.app.factories import backends
from experiments.app.file_lock import sole_writer
from experiments.app.progress import Progress
from experiments.app.run_folder import RunFolder, calls_of
from experiments.app.settings import RoleSettings, checked
from experiments.app.terminal import print_comparison, terminal
from experiments.evaluate import cost_estimate as estimate
from experiments.evaluate.agents import agent_maker
from experiments.evaluate.period_barrier import PeriodBarrier
from experiments.evaluate.preflight import preflight
from experiments.evaluate.repeats import lines, repeated
from experiments.evaluate.settings import EvaluateSettings


class EvaluatedRun(NamedTuple):
    """A run with its folder."""

    results: ResultsFile
    folder: Path


class Variation(NamedTuple):
    """A change of scenarios and simulated user that settings do not express."""

    name: str
    """Part of the run's identity."""
    scenario: Callable[[Scenario], Scenario]
    user: Callable[[Script], Backend]


BarrierMaker = Callable[[Mapping[str, Script]], PeriodBarrier]
"""Makes the barrier of a run from the scripts of its scenarios, by scenario id."""


def run(
    settings: EvaluateSettings,
    *,
    quiet: bool = False,
    barrier: BarrierMaker | None = None,
    variation: Variation | None = None,
) -> EvaluatedRun:
    """Play what settings describe, write the run's folder, and return its results.

    A finished run in the folder is read, not played again. `quiet`: no progress bar. The barrier
    may delay scenarios, or prune the run.
    """
    identity = settings.identity()
    make_agent = agent_maker(settings.agent)
    of_script = backends(settings.backend, roles(settings), offline=settings.replay is not None)
    templates = (
        BUILT_IN if settings.templates is None else Templates.from_folder(settings.templates, KINDS)
    )
    chosen = list(named_scenarios(settings.scenarios, settings.limit))
    if variation is not None:
        identity["user"] = variation.name
        chosen = list(map(variation.scenario, chosen))
        of_script = _with_user(of_script, variation.user)
    identity["scenarios_hash"] = _hash(chosen)
    _check_mode(settings)
    workers = settings.workers or (1 if settings.backend.name == "simulated" else 20)
    game = game_of(settings)
    script_of(chosen[0], game, chosen)  # refuses wrong settings before a folder is made
    if settings.traces is not None:
        dialogues = traces(settings.traces, [script_of(item, game, chosen) for item in chosen])
        identity["traces_hash"] = fingerprint(dialogues)
    folder = RunFolder.open(settings.out, "evaluate", identity, settings.resume)
    versions = {"amemgym_env": VERSION, "prompts": prompts.versions()}
    known = folder.finished(versions) if settings.resume else None
    if known is not None:
        return EvaluatedRun(known, folder.path)
    if settings.repeats > 1:
        results = repeated(settings, folder, lambda one: run(one, quiet=quiet).results)
        return EvaluatedRun(results, folder.path)
    if settings.preflight and settings.replay is None:
        preflight(of_script(script_of(chosen[0], game, chosen)), folder.path)
    scripts = {item.id: script_of(item, game, chosen) for item in chosen} if barrier else {}
    gate = barrier(scripts) if barrier else None
    bar = Progress(len(chosen), shown=not quiet)
    with sole_writer(folder.path / "run", folder.path), kept(folder), bar as progress:
        found = evaluate(
            make_agent,
            chosen,
            game=game,
            backends=of_script,
            templates=templates,
            workers=workers,
            journal=folder.journal if gate is None else gate.journal(folder.journal),
            progress=progress.event if gate is None else gate.event,
            settings=identity,
            recorded=settings.traces,
            repeated=None if settings.replay is None else calls_of(settings.replay),
            embedder=memory_factories.embedder(settings.embedding, folder.path),
            store=memory_factories.store(settings.store, folder.path),
        )
        results = found.file()
        folder.save_results(results)
    return EvaluatedRun(results, folder.path)


def _with_user(known: Backends, user: Callable[[Script], Backend]) -> Backends:
    return lambda script: {**known(script), "user": user(script)}


@contextmanager
def kept(folder: RunFolder) -> Iterator[None]:
    """Save the results of a run that Ctrl-C stops, then raise again."""
    try:
        yield
    except Interrupted as stopped:
        folder.save_results(stopped.results.file())
        print(f"stopped by Ctrl-C; the same command continues {folder.path}", file=sys.stderr)
        stopped.told = True
        raise


def estimated(settings: EvaluateSettings) -> list[estimate.Estimate]:
    """Return what the calls of a run would cost, by role, without making any."""
    chosen = list(named_scenarios(settings.scenarios, settings.limit))
    of_script = backends(settings.backend, roles(settings))
    return estimate.estimate(agent_maker(settings.agent), chosen, game_of(settings), of_script)


def roles(settings: EvaluateSettings) -> dict[str, RoleSettings]:
    """Return the settings of the models of all roles but the assistant's."""
    return {
        "user": settings.user_backend,
        "memory": settings.memory_backend,
        "judge": settings.judge_backend,
    }


def game_of(settings: EvaluateSettings) -> Game:
    """Return the episode settings of an evaluation."""
    return Game(
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


def _check_mode(settings: EvaluateSettings) -> None:
    """Raise ConfigError unless traces are given exactly where they are replayed."""
    if (settings.mode == "off_policy") != (settings.traces is not None):
        raise ConfigError(
            "traces: expected a run's folder with mode=off_policy and none with mode=on_policy, "
            f"found mode={settings.mode} traces={settings.traces}"
        )


def _hash(scenarios: list[Scenario]) -> str:
    """Return a hash of the scenarios' whole content, in any order."""
    return digest(*sorted(json.dumps(item.to_json(), sort_keys=True) for item in scenarios)).hex()


def main(composed: dict[str, Any]) -> float:
    """Run one job and print its table; returns the memory score, NaN where there is none."""
    settings = checked(EvaluateSettings, composed)
    if settings.dry_run:
        terminal().print(estimate.table(estimated(settings)))
        return sweep.objective(None)
    results, folder = run(settings)
    print_comparison([results])
    for line in [] if results.repeats is None else lines(results.repeats):
        print(line)
    terminal(None).print(f"written to {folder}")
    status = exit_status(results, settings.allow_unscored)
    if status:
        sys.exit(status)
    return sweep.objective(results.memory_score)


def swept(composed: dict[str, Any], place: sweep.Place) -> float:
    """Run one job of a sweep in a folder of its own; returns what `main` does."""
    settings = checked(EvaluateSettings, composed)
    folder = sweep.folder(place.path, settings.agent.name, settings.identity())
    at = settings.model_copy(update={"out": str(folder)})
    # The bars of several jobs at once would overwrite each other.
    alone = place.launcher == "BasicLauncher"
    return sweep.play(place, folder, lambda: run(at, quiet=not alone).results)


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run(
        "evaluate",
        main,
        check=lambda composed: checked(EvaluateSettings, composed),
        swept=swept,
    )
