"""Statistics over scenarios: bootstrap intervals, sign-flip tests, Holm's correction, variances.

Scenarios are resampled, never cells: the cells of one scenario share a persona and a script. All
draws come from keyed generators, so the same data give the same interval and p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.rewards import Floats
from amemgym_env.seeding import generator

Rows = npt.NDArray[np.int64]
Statistic = Callable[[Rows], Floats]
"""(resamples, scenarios) indices of scenarios -> (resamples,) values."""

EXACT_UP_TO = 12
"""Scenarios up to which all sign flips are gone through."""
POWER = 0.8
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """A confidence interval; NaN bounds where there is none."""

    low: float
    high: float

    def to_json(self) -> list[float | None]:
        """Return the bounds, null where there is none."""
        return [None if np.isnan(bound) else float(bound) for bound in self]


class MeanEstimate(NamedTuple):
    """A mean over scenarios with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return mean and interval with three digits."""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_estimate(scores: Floats) -> MeanEstimate:
    """Return the mean of one score (or difference) per scenario, with its BCa interval."""
    return MeanEstimate(float(scores.mean()), *mean_interval(scores))


def paired_differences(a: Sequence[Floats], b: Sequence[Floats]) -> Floats:
    """Return for each scenario the mean of b minus a over the cells scored in both, NaN without.

    `a[i]` and `b[i]` are the scores of scenario i, equal shapes, NaN unscored.

    Raises:
        ValueError: shapes differ.
    """
    found = []
    for one, other in zip(a, b, strict=True):
        if one.shape != other.shape:
            raise ValueError(f"expected scores of one shape, found {one.shape} and {other.shape}")
        difference = (other - one)[~np.isnan(other - one)]
        found.append(float(difference.mean()) if difference.size else float("nan"))
    return np.array(found)


def bca_interval(
    statistic: Statistic,
    count: int,
    *,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval of a statistic (Efron 1987).

    `statistic` maps scenario indices, shape (resamples, scenarios), to one value per resample; NaN
    values are left out. Fewer than two scenarios: NaN. No variation: the one value.
    """
    if count < 2:
        return Interval(float("nan"), float("nan"))
    rows = generator("bca", seed, count).integers(0, count, size=(resamples, count))
    everything = np.arange(count)
    (observed,) = statistic(everything[None])
    drawn = np.sort(_known(statistic(rows)))
    if not drawn.size or np.isnan(observed):
        return Interval(float("nan"), float("nan"))
    if drawn[0] == drawn[-1]:
        return Interval(float(drawn[0]), float(drawn[-1]))
    # Ties count half, so that a symmetric discrete statistic is not corrected.
    below = (np.sum(drawn < observed) + 0.5 * np.sum(drawn == observed)) / len(drawn)
    bias = _NORMAL.inv_cdf(float(np.clip(below, 1 / len(drawn), 1 - 1 / len(drawn))))
    left_out = _known(statistic(np.array([np.delete(everything, row) for row in everything])))
    centred = left_out.mean() - left_out
    spread = float(np.sum(centred**2)) ** 1.5
    acceleration = float(np.sum(centred**3)) / (6 * spread) if spread else 0.0
    bounds = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + _NORMAL.inv_cdf(tail)
        corrected = _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))
        bounds.append(float(np.quantile(drawn, corrected)))
    return Interval(*bounds)


def mean_interval(values: Floats, *, resamples: int = 4000) -> Interval:
    """Return the BCa interval of the mean of one value per scenario, without NaN."""
    return bca_interval(lambda rows: values[rows].mean(axis=1), len(values), resamples=resamples)


def ratio_interval(sums: Floats) -> Interval:
    """Return the BCa interval of a ratio of sums; `sums` are (scenarios, 2) sums and counts."""
    return bca_interval(lambda rows: ratios(sums[rows]), len(sums))


def ratios(sums: Floats) -> Floats:
    """Return the ratios of sums, shape (..., scenarios, 2) -> (...); NaN when nothing counts."""
    total = sums.sum(axis=-2)
    found = np.full(total.shape[:-1], np.nan)
    np.divide(total[..., 0], total[..., 1], out=found, where=total[..., 1] > 0)
    return found


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def two_way_interval(
    values: Floats,
    personas: Sequence[str],
    topics: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of a mean when personas and topics are both resampled.

    `values[i]` belongs to a persona and a topic; a cell weighs the product of how often each was
    drawn (the pigeonhole bootstrap, Owen 2007). NaN values are left out; with fewer than two
    personas or topics there is no interval.
    """
    kept = ~np.isnan(values)
    names = [np.unique(np.array(list(group))[kept], return_inverse=True) for group in
             (personas, topics)]  # fmt: skip
    if min(len(unique) for unique, _ in names) < 2:
        return Interval(float("nan"), float("nan"))
    draws = generator("two-way", seed, len(values))
    weights = np.ones((resamples, int(kept.sum())))
    for unique, place in names:
        count = len(unique)
        drawn = draws.multinomial(count, np.full(count, 1 / count), size=resamples)
        weights *= drawn[:, place]
    total = weights.sum(axis=1)
    means = (weights @ values[kept])[total > 0] / total[total > 0]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def sign_flip_p(differences: Floats, *, flips: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p-value of a mean difference when signs are exchangeable.

    Exact for few scenarios, else from random flips (the observed one counted, so never 0). NaN
    without a scored scenario.
    """
    scored = differences[~np.isnan(differences)]
    count = len(scored)
    if not count:
        return float("nan")
    observed = abs(scored.sum())
    slack = 1e-12 * max(1.0, float(np.abs(scored).sum()))
    if count <= EXACT_UP_TO:
        signs = np.array(list(product((-1.0, 1.0), repeat=count)))
        return float(np.mean(np.abs(signs @ scored) >= observed - slack))
    signs = generator("sign flips", seed, count).integers(0, 2, size=(flips, count)) * 2.0 - 1.0
    as_far = int(np.sum(np.abs(signs @ scored) >= observed - slack))
    return (as_far + 1) / (flips + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the given order; NaN stays NaN and is not counted."""
    order = sorted(
        (index for index, p in enumerate(p_values) if not np.isnan(p)), key=lambda i: p_values[i]
    )
    adjusted = [float("nan")] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def detectable_difference(differences: Floats, *, alpha: float = 0.05) -> float:
    """Return the true mean difference that this many scenarios would show with probability .8.

    Two-sided, normal approximation; NaN with fewer than two scored scenarios.
    """
    scored = differences[~np.isnan(differences)]
    if len(scored) < 2:
        return float("nan")
    factor = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(POWER)
    return float(factor * scored.std(ddof=1) / np.sqrt(len(scored)))


class VarianceShares(NamedTuple):
    """Where a score's variance comes from; shares sum to 1, NaN without variance."""

    scenarios: float
    seeds: float
    """Between seeds within a scenario: what repeating tells."""


def variance_shares(scores: Floats) -> VarianceShares:
    """Return variance components of scores, shape (scenarios, seeds), seeds nested in scenarios.

    One-way random effects; a negative component counts as 0. NaN rows are left out.
    """
    table = scores[~np.isnan(scores).any(axis=1)]
    if len(table) < 2 or table.shape[1] < 2:
        return VarianceShares(float("nan"), float("nan"))
    within = float(table.var(axis=1, ddof=1).mean())
    between = max(0.0, float(table.mean(axis=1).var(ddof=1)) - within / table.shape[1])
    total = within + between
    if total == 0.0:
        return VarianceShares(float("nan"), float("nan"))
    return VarianceShares(between / total, within / total)


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Kendall's tau-b of two rankings; NaN where one of them is all ties."""
    x, y = np.array(a, np.float64), np.array(b, np.float64)
    upper = np.triu_indices(len(x), 1)
    signs_x = np.sign(x[:, None] - x[None, :])[upper]
    signs_y = np.sign(y[:, None] - y[None, :])[upper]
    scale = float(np.sqrt(np.sum(signs_x != 0) * np.sum(signs_y != 0)))
    return float(np.sum(signs_x * signs_y)) / scale if scale else float("nan")
