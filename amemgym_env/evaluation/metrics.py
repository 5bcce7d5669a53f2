"""What answers are worth: exam scores, memory score, and where a failure happened.

A cell is one question at one period. Scores start as NaN and stay NaN where nothing could be
asked: unscored is not zero. Means are taken over scored cells.
Paper: AMemGym, Sections 3.4 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.rewards import Floats, mean
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import generator

LEAST_HEADROOM = 0.1
"""Upper bound minus random below this gives no memory score: the ratio would be noise."""


def uniform_guess(scenario: Scenario) -> Floats:
    """Return the expected score of a uniform guess, shape (periods, questions)."""
    row = [1.0 / len(question.answer_choices) for question in scenario.qas]
    return np.tile(np.array(row), (len(scenario.periods), 1))


class MemoryScore(NamedTuple):
    """The memory score of some users and periods, with what it is made of."""

    ratios: Floats
    """(users, periods): (overall - random) / (upper bound - random); NaN without a score."""
    means: Floats
    """(users, periods, 3): overall, random and upper bound over the same cells; NaN unscored."""

    def mean_of_ratios(self, users: npt.NDArray[np.int64] | None = None) -> float:
        """Return the mean over users and periods: the paper's figure."""
        return mean(self.ratios if users is None else self.ratios[users])

    def ratio_of_means(self, users: npt.NDArray[np.int64] | None = None) -> float:
        """Return the ratio of the means, which no small denominator can dominate."""
        chosen = self.means if users is None else self.means[users]
        overall, guess, best = (mean(chosen[..., part]) for part in range(3))
        return (overall - guess) / (best - guess) if best > guess else float("nan")

    @property
    def by_period(self) -> tuple[float, ...]:
        """Mean over users for each period, NaN without a score."""
        return tuple(mean(column) for column in self.ratios.T)

    def without(self, periods: Sequence[int]) -> int:
        """Return how many user-periods have no score, given each user's number of periods."""
        return int(sum(periods) - (~np.isnan(self.ratios)).sum())


def memory_score(
    accuracy: Sequence[Floats], random: Sequence[Floats], upper_bound: Sequence[Floats]
) -> MemoryScore:
    """Return the memory score; each argument holds one (periods, questions) array a user.

    All three means of a user and period are taken over the same cells: those scored both in the
    exam and for the upper bound. Users may differ in periods and questions. Paper: Section 3.4.
    """
    longest = max((len(rows) for rows in accuracy), default=0)
    ratios = np.full((len(accuracy), longest), np.nan)
    means = np.full((len(accuracy), longest, 3), np.nan)
    for user, parts in enumerate(zip(accuracy, random, upper_bound, strict=True)):
        for period, rows in enumerate(zip(*parts, strict=True)):
            cells = np.stack(rows)
            both = ~np.isnan(cells).any(axis=0)
            if not both.any():
                continue
            overall, guess, best = means[user, period] = cells[:, both].mean(axis=1)
            if best - guess >= LEAST_HEADROOM:
                ratios[user, period] = (overall - guess) / (best - guess)
    return MemoryScore(ratios, means)


def bootstrap(
    statistic: Callable[[npt.NDArray[np.int64]], float],
    count: int,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return a percentile interval of a statistic over resampled scenarios, never cells.

    `statistic` maps indices of scenarios, shape (count,), to a number; NaN resamples are left
    out. With fewer than two scenarios there is no interval: (NaN, NaN).
    """
    if count < 2:
        return float("nan"), float("nan")
    draws = generator("bootstrap", seed, count).integers(0, count, size=(resamples, count))
    values = np.array([statistic(row) for row in draws])
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
