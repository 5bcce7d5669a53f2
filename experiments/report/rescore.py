"""Scoring of a run from its journals, without any call.

For a run that was stopped, or whose scoring has changed since: the present code scores the
journals and writes results.json.

    python -m experiments.report rescore runs/evaluate-0001
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from amemgym_env.errors import AMemGymError, InputError, RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import evaluate
from experiments.app.composition import compose
from experiments.app.factories import backends
from experiments.app.run_folder import RunFolder
from experiments.app.settings import checked
from experiments.app.terminal import print_comparison
from experiments.evaluate.agents import agent_maker
from experiments.evaluate.run import game_of, roles
from experiments.evaluate.settings import EvaluateSettings


def rescore(run: str | Path) -> ResultsFile:
    """Return a run's results from its journals, and write them.

    Raises:
        RunError: there is no run.
    """
    file = Path(run) / "config.yaml"
    try:
        identity = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{run}: expected the folder of a run, found none ({error})") from error
    known = EvaluateSettings.model_fields
    given = {name: value for name, value in identity.items() if name in known}
    settings = checked(EvaluateSettings, {**compose("evaluate"), **given, "out": str(run)})
    folder = RunFolder(Path(run))
    found = evaluate(
        agent_maker(settings.agent),
        settings.scenarios,
        game=game_of(settings),
        backends=backends(settings.backend, roles(settings), offline=True),
        limit=settings.limit,
        journal=lambda scenario: nullcontext(folder.journal(scenario)),
        settings=identity,
        recorded=settings.traces,
        score_only=True,
    )
    results = found.file()
    folder.save_results(results)
    return results


def main(arguments: Sequence[str]) -> int:
    """Score a run again and print its table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="report rescore", description="Score a run again from its journals."
    )
    parser.add_argument("run", help="folder of a run")
    try:
        print_comparison([rescore(parser.parse_args(list(arguments)).run)])
    except AMemGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return 0
