"""Tuning of one output bias per action type (ADD, UPDATE, DELETE) by coordinate search.

Pretrained values assume that nothing is written later, which biases each action type, and the
maximum of many uncertain values is too large. The search raises the score on training scripts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amemgym_env.policies.checkpoint import Policy
from amemgym_env.policies.networks import Weights
from experiments.baselines.benchmark import PolicyBenchmark, chooser

_STEPS = (2.0, 1.0, 0.5)
"""Step sizes, in units of a policy's scores; see `value_pretraining.py`."""
_LEAST = 1e-4
"""Smaller gains count as noise."""


def calibrated(policy: Policy, bench: PolicyBenchmark) -> Policy:
    """Return a policy with action biases tuned on a benchmark."""

    def score(candidate: Policy) -> float:
        return float(bench.score(chooser(candidate), policy.kind).mean())

    best, value = policy, score(policy)
    for step in _STEPS:
        for kind in range(3):
            for sign in (-1.0, 1.0):
                while True:
                    candidate = replace(best, weights=_moved(best, kind, sign * step))
                    found = score(candidate)
                    if found <= value + _LEAST:
                        break
                    best, value = candidate, found
    return best


def _moved(policy: Policy, kind: int, by: float) -> Weights:
    """Return the weights with the bias of one action type moved: 0 ADD, 1 UPDATE, 2 DELETE."""
    weights = dict(policy.weights)
    if policy.kind == "slots":
        name, place = ("whole.bias", 1) if kind == 0 else ("scored.bias", kind - 1)
    else:
        depth = sum(name.endswith(".bias") for name in weights)
        name, place = f"layer.{depth - 1}.bias", kind + 1
    bias = np.array(weights[name])
    bias[place] += by
    weights[name] = bias
    return weights
