"""The same evaluation under several seeds: how much of the variance is luck?

Seeds are nested in scenarios: each scenario is played once under each seed (options' order, the
simulated model's luck, a real model's seed where it takes one). The run's results are those of the
first seed, with the summary beside them; every seed's own run stands in a folder below.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from amemgym_env.envs.rewards import mean
from amemgym_env.evaluation.statistics import bca_interval, variance_shares
from experiments.app.run_folder import RunFolder
from experiments.evaluate.settings import EvaluateSettings


def repeated(
    settings: EvaluateSettings,
    folder: RunFolder,
    play: Callable[[EvaluateSettings], dict[str, Any]],
) -> dict[str, Any]:
    """Play every seed in a folder of its own, write the summary, and return it."""
    documents = []
    for seed in range(settings.seed, settings.seed + settings.repeats):
        out = str(Path(folder.path) / f"seed-{seed}")
        one = settings.model_copy(update={"seed": seed, "repeats": 1, "out": out, "resume": True})
        documents.append(play(one))
    document = {**documents[0], "settings": settings.identity(), "repeats": summary(documents)}
    document.pop("folder", None)
    folder.save_results(document)
    return {**document, "folder": str(folder.path)}


def summary(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what several seeds of one evaluation say together; null where there is nothing."""
    names = documents[0]["scenarios"]
    scores = np.array(
        [
            [mean(np.array(document["accuracy"][name], np.float64)) for document in documents]
            for name in names
        ]
    )  # (scenarios, seeds)
    shares = variance_shares(scores)
    overall = [document["overall"] for document in documents]
    memory = [document["memory_score"] for document in documents]
    return {
        "seeds": [document["seed"] for document in documents],
        "overall": overall,
        "memory_score": memory,
        "overall_mean": _number(float(np.mean(scores))),
        "overall_interval": [_number(bound) for bound in bca_interval(scores.mean(axis=1))],
        "overall_sd_of_seeds": _number(float(np.std(np.array(overall, np.float64), ddof=1))),
        "memory_score_mean": _number(float(np.mean(np.array(memory, np.float64)))),
        "variance_share": {
            "scenarios": _number(shares.scenarios),
            "seeds": _number(shares.seeds),
        },
    }


def lines(found: dict[str, Any]) -> list[str]:
    """Return the summary as lines to print."""

    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    low, high = found["overall_interval"]
    shares = found["variance_share"]
    return [
        f"{len(found['seeds'])} seeds: overall {text(found['overall_mean'])}, 95 % {text(low)} to "
        f"{text(high)} (BCa over scenarios), sd between seeds {text(found['overall_sd_of_seeds'])}",
        f"variance of a scenario's score: {text(shares['scenarios'])} between scenarios, "
        f"{text(shares['seeds'])} between seeds",
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
