"""The search for a rule of operations on the number environment, by the cross-entropy method."""

from __future__ import annotations

from typing import Any

import numpy as np

from amemgym_env.evaluation.statistics import mean_estimate
from experiments.baselines import rules as baselines
from experiments.baselines import tuning
from experiments.baselines.benchmark import PolicyBenchmark
from experiments.search.settings import SearchSettings

ROWS = 128
"""Scripts of the training set on which rules are tried."""


def search_rules(settings: SearchSettings) -> dict[str, Any]:
    """Search rules from several seeds, choose one on validation, look at test once."""
    training = PolicyBenchmark(settings.train, difficulty=settings.difficulty)
    validation = PolicyBenchmark(settings.validation, difficulty=settings.difficulty)
    rows = training.first(min(ROWS, training.size))
    rules = [
        tuning.hand_rule(rows, settings.candidates, settings.seed + number)
        for number in range(settings.restarts)
    ]
    finalists: list[dict[str, Any]] = [
        {
            "words": [f"seed {settings.seed + number}"],
            "train": [float(rows.score(rule).mean())],
            "validation": float(validation.score(rule).mean()),
            "weights": [float(weight) for weight in rule.weights],
        }
        for number, rule in enumerate(rules)
    ]
    best = int(np.argmax([found["validation"] for found in finalists]))
    document: dict[str, Any] = {
        "settings": settings.identity(),
        "candidates": settings.restarts * settings.candidates,
        "trials": [],
        "finalists": finalists,
        "chosen": finalists[best]["words"],
        "test": None,
    }
    if settings.test is not None:
        test = PolicyBenchmark(settings.test, difficulty=settings.difficulty)
        chosen, untuned = test.score(rules[best]), test.score(tuning.untuned())
        gain = mean_estimate(chosen - untuned)
        document["test"] = {
            "chosen": float(chosen.mean()),
            "default": float(untuned.mean()),
            "never_write": float(test.score(baselines.never).mean()),
            "difference": gain.mean,
            "interval": [gain.low, gain.high],
            "scenarios": len(chosen),
            "looks": 1,
        }
    return document
