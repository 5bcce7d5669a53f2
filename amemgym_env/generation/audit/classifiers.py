"""The small classifiers that look for leaks: numpy alone, deterministic, cross-validated.

Folds keep a group together (a scenario, a topic), since texts recur within one: a classifier that
has seen a text before would find a leak where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from amemgym_env.seeding import below

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5


def folds(groups: Sequence[str]) -> Ints:
    """Return the fold, 0..FOLDS-1, of each row: the same for all rows of a group."""
    return np.array([below(FOLDS, "fold", group) for group in groups], np.int64)


def auc(scores: Floats, positive: npt.NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: how often a positive row outscores a negative one.

    Ties count half. NaN when there is no positive or no negative row.
    """
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def standardized(rows: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1; a constant column becomes 0."""
    spread = rows.std(axis=0)
    scaled: Floats = (rows - rows.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf)
    return scaled


def logistic(
    rows: Floats,
    targets: Floats,
    ridge: float = 1.0,
    steps: int = 25,
) -> Floats:
    """Return the weights, the constant last, of a logistic regression by Newton's method.

    `rows` (N, F) standardized; `targets` (N,) in 0..1; `ridge` the penalty of all
    weights but the constant.
    """
    design = np.hstack([rows, np.ones((len(rows), 1))])
    fitted = np.zeros(design.shape[1])
    penalty = ridge * np.eye(len(fitted))
    penalty[-1, -1] = 1e-6
    for _ in range(steps):
        chances = 1 / (1 + np.exp(-np.clip(design @ fitted, -30, 30)))
        slope = design.T @ (targets - chances) - penalty @ fitted
        curved = (design * (chances * (1 - chances))[:, None]).T @ design + penalty
        step = np.linalg.solve(curved, slope)
        fitted = fitted + step
        if float(np.abs(step).max()) < 1e-8:
            break
    return fitted


def held_out_scores(rows: Floats, targets: Floats, groups: Sequence[str]) -> Floats:
    """Return for each row the score of a logistic regression that has not seen its group.

    Scores of different folds are made comparable by their rank in the fold, in 0..1.
    """
    rows = standardized(rows)
    parts = folds(groups)
    scores = np.zeros(len(rows))
    for part in range(FOLDS):
        inside = parts == part
        if not inside.any() or inside.all():
            continue
        weights = logistic(rows[~inside], targets[~inside])
        scores[inside] = _ranks(rows[inside] @ weights[:-1])
    return scores


def _ranks(scores: Floats) -> Floats:
    _, inverse, counts = np.unique(np.round(scores, 9), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - counts / 2)[inverse] / len(scores)
    return ranks
