"""Sampling weights of the topic library's neutral texts, by entropy balancing against exposures."""

from __future__ import annotations

from functools import cache
from itertools import product

from amemgym_env.scenarios.entropy_balancing import weights
from amemgym_env.scenarios.library import DISTRACTOR_KINDS, Fits, Split, Topic, topics, utterances

_JOINT_INITIAL = 0.6
_JOINT_LATER = {"opener": 0.17, "follow_up": 0.08, "distractor": 0.17}
"""Share of exposing utterances that expose two values at once: in period 0, and later by the kind
of the neutral text."""

_INNER = 1.5
"""Relative frequency of changes to a value with two neighbours; changes are mostly gradual."""


@cache
def form_weights(splits: tuple[Split, ...], *, initial: bool) -> dict[str, float]:
    """Return the sampling weights of the neutral texts of some splits.

    Distractors, openers and follow-ups are each balanced against the exposures of a topic's first
    two variables, as they occur in period 0 (`initial`) or later.
    """
    return {text: weight for split in splits for text, weight in _fitted(split, initial).items()}


def _fitted(split: Split, initial: bool) -> dict[str, float]:
    met: dict[str, dict[str, float]] = {"exposure": {}, "joint": {}}
    shares: list[float] = []
    pools: dict[str, list[list[str]]] = {"opener": [], "follow_up": [], "distractor": []}
    for found in topics(split):
        # Topics without conditions occur about twice as often as those that need a garden or a car.
        shares.append(1.0 if found.fits == Fits() else 0.5)
        for kind, odds in _exposing(found, inner=1.0 if initial else _INNER).items():
            total = sum(odds.values())
            met[kind] |= {text: shares[-1] * odd / total for text, odd in odds.items()}
        pools["opener"].append(list(found.openers))
        pools["follow_up"].append(list(found.follow_ups))
        pools["distractor"].append([t for t, kind in utterances(found) if kind in DISTRACTOR_KINDS])
    drawn: dict[str, float] = {}
    for kind, pool in pools.items():
        joint = _JOINT_INITIAL if initial else _JOINT_LATER[kind]
        masses = [mass * (1 - joint) for mass in met["exposure"].values()]
        masses += [mass * joint for mass in met["joint"].values()]
        drawn |= weights(pool, shares, [*met["exposure"], *met["joint"]], masses)
    return drawn


def _exposing(found: Topic, inner: float) -> dict[str, dict[str, float]]:
    """Return the odds of each exposure, and of each joint one, of a topic's first two variables.

    Those of a value with two neighbours count `inner`.
    """
    first, second = list(found.variables)[:2]
    odds = {
        name: {value: inner if 0 < place < len(values) - 1 else 1.0
               for place, value in enumerate(values)}
        for name, values in found.variables.items()
    }  # fmt: skip
    return {
        "exposure": {
            text: odds[name][value]
            for name in (first, second)
            for value, material in found.variables[name].items()
            for text in material.exposures
        },
        "joint": {
            text: odds[first][one] * odds[second][other]
            for one, other in product(odds[first], odds[second])
            for text in found.joint_utterances(first, second, (one, other))
        },
    }
