"""Baselines of a training: tuned on its scenarios, scored on its sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from experiments.baselines import rules as baselines
from experiments.baselines import tuning
from experiments.baselines.benchmark import PolicyBenchmark, PolicyFn, Scores
from experiments.baselines.oracles import plan, true_writer
from experiments.baselines.rules import ExposureClassifier

BAR, ALIKE = (-1.0, -0.5, 0.0, 0.5, 1.0), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)

HAND, SUPERVISED, TRUTH, PLANNING = (
    "best hand rule",
    "supervised writer",
    "truth, add or update",
    "truth, planning",
)


_SEARCHED = 64
"""Number of scripts on which hand rules are compared."""


class Tuned(NamedTuple):
    """The baselines of `AMemGymMemory-v0`, and the supervised writer for either environment."""

    choosers: Mapping[str, PolicyFn]
    slots_writer: PolicyFn
    mixes: Mapping[str, PolicyFn]
    """Constant mixes of actions, the best policies without observations."""


def tuned(
    bench: PolicyBenchmark, hand_candidates: int, planning: bool, say: Callable[[str], None]
) -> Tuned:
    """Return the baselines, tuned on a bench of training scenarios."""
    say("tuning the supervised writer")
    classifier = tuning.exposure_classifier(bench)
    bar, alike = _writer(classifier, bench)
    say(f"tuning the best hand rule: {hand_candidates} candidates")
    hand = tuning.hand_rule(bench.window(0, _SEARCHED), hand_candidates)
    say("tuning the rules that are told the truth")
    truth = tuning.best_of([true_writer(value) for value in ALIKE], bench)
    similar = tuning.best_of([baselines.similar_openers(value) for value in ALIKE], bench)
    choosers: dict[str, PolicyFn] = {
        "never": baselines.never,
        "random": baselines.constant_mix(np.ones(4)),
        "ADD everything": baselines.always,
        "ADD openers": baselines.openers,
        "add or update openers": similar,
        HAND: hand,
        SUPERVISED: classifier.writer(bar, alike),
        TRUTH: truth,
    }
    if planning:
        choosers[PLANNING] = plan(truth)
    mixes = {f"ADD {chance:.0%}": baselines.constant_mix(_mix(chance)) for chance in _ADDS}
    return Tuned(choosers, classifier.slots_writer(bar, alike), mixes)


_ADDS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def _mix(add: float) -> baselines.Weights:
    return np.array([1.0 - add, add, 0.0, 0.0])


def _writer(classifier: ExposureClassifier, bench: PolicyBenchmark) -> tuple[float, float]:
    """Return the best threshold, then the best similarity."""
    bars = {bar: float(bench.score(classifier.writer(bar, 0.8)).mean()) for bar in BAR}
    bar = max(bars, key=bars.__getitem__)
    alikes = {alike: float(bench.score(classifier.writer(bar, alike)).mean()) for alike in ALIKE}
    return bar, max(alikes, key=alikes.__getitem__)


def scored(
    choosers: Mapping[str, PolicyFn], bench: PolicyBenchmark, skip: frozenset[str]
) -> dict[str, Scores]:
    """Return the scores of each baseline on a benchmark, without those to skip."""
    return {name: bench.score(choose) for name, choose in choosers.items() if name not in skip}
