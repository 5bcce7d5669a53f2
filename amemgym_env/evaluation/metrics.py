"""Memory score and the score of a uniform guess.

A cell is one question at one period. A cell that could not be asked is NaN, not zero. Means are
taken over scored cells. Paper: AMemGym, Section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from amemgym_env.envs.rewards import Floats, mean
from amemgym_env.evaluation.statistics import Interval, Rows, bca_interval, ratios
from amemgym_env.scenarios.model import Scenario

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

    def mean_of_ratios(self) -> float:
        """Return the mean over users and periods: the paper's figure."""
        return mean(self.ratios)

    def ratio_of_means(self) -> float:
        """Return the ratio of the means, which no small denominator can dominate."""
        overall, guess, best = (mean(self.means[..., part]) for part in range(3))
        return (overall - guess) / (best - guess) if best > guess else float("nan")

    def resampled(self, rows: Rows) -> Floats:
        """Return the mean of ratios of each resample; `rows` are (resamples, users) indices."""
        known = ~np.isnan(self.ratios)
        sums = np.stack([np.nansum(self.ratios, axis=1), known.sum(axis=1)], axis=1)
        return ratios(sums[rows])

    def resampled_ratio_of_means(self, rows: Rows) -> Floats:
        """Return the ratio of means of each resample; `rows` are (resamples, users) indices."""
        known = ~np.isnan(self.means[..., 0])
        sums = np.nansum(self.means, axis=1)[rows].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall, guess, best = (sums / known.sum(axis=1)[rows].sum(axis=1)[:, None]).T
            return np.where(best > guess, (overall - guess) / (best - guess), np.nan)

    @property
    def interval(self) -> Interval:
        """The interval of the mean of ratios."""
        return bca_interval(self.resampled, len(self.ratios))

    def difference_interval(self, other: MemoryScore) -> Interval:
        """Return the interval of this score minus another of the same users, paired by user."""
        return bca_interval(
            lambda rows: self.resampled(rows) - other.resampled(rows), len(self.ratios)
        )

    @property
    def by_user(self) -> Floats:
        """Mean over the periods of each user, NaN without a score."""
        return np.array([mean(row) for row in self.ratios])

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
