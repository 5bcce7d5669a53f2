"""Repeats of an evaluation under several seeds, and the share of variance between seeds.

Seeds are nested in scenarios: each scenario is played once under each seed (options' order, the
simulated model's luck, a real model's seed where it takes one). The run's results are those of the
first seed, with the summary; every seed's run has a folder below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from amemgym_env.envs.rewards import mean
from amemgym_env.evaluation.results_file import Repeats, ResultsFile, without_nan
from amemgym_env.evaluation.statistics import mean_interval, variance_shares
from experiments.app.run_folder import RunFolder
from experiments.evaluate.settings import EvaluateSettings


def repeated(
    settings: EvaluateSettings,
    folder: RunFolder,
    play: Callable[[EvaluateSettings], ResultsFile],
) -> ResultsFile:
    """Play every seed in a folder of its own, write the summary, and return it."""
    runs = []
    for seed in range(settings.seed, settings.seed + settings.repeats):
        out = str(Path(folder.path) / f"seed-{seed}")
        one = settings.model_copy(update={"seed": seed, "repeats": 1, "out": out, "resume": True})
        runs.append(play(one))
    changes = {"settings": settings.identity(), "repeats": summary(runs)}
    results = runs[0].model_copy(update=changes)
    folder.save_results(results)
    return results


def summary(runs: Sequence[ResultsFile]) -> Repeats:
    """Return the summary of several seeds of one evaluation."""
    scores = np.array(
        [[mean(run.cells(name)) for run in runs] for name in runs[0].scenarios]
    )  # (scenarios, seeds)
    overall = [run.overall for run in runs]
    memory = [run.memory_score for run in runs]
    found = {
        "seeds": [run.seed for run in runs],
        "overall": overall,
        "memory_score": memory,
        "overall_mean": float(np.mean(scores)),
        "overall_interval": mean_interval(scores.mean(axis=1)),
        "overall_sd_of_seeds": float(np.std(np.array(overall, np.float64), ddof=1)),
        "memory_score_mean": float(np.mean(np.array(memory, np.float64))),
        "variance_share": variance_shares(scores)._asdict(),
    }
    return Repeats.model_validate(without_nan(found))


def lines(found: Repeats) -> list[str]:
    """Return the summary as lines to print."""

    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    low, high = found.overall_interval
    shares = found.variance_share
    return [
        f"{len(found.seeds)} seeds: overall {text(found.overall_mean)}, 95 % {text(low)} to "
        f"{text(high)} (BCa over scenarios), sd between seeds {text(found.overall_sd_of_seeds)}",
        f"variance of a scenario's score: {text(shares.scenarios)} between scenarios, "
        f"{text(shares.seeds)} between seeds",
    ]
