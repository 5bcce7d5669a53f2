"""Measures of a run that results.json does not hold: by period, by answer position, and cost.

Numbers in results.json are taken from there and never computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from amemgym_env.envs.rewards import Floats
from amemgym_env.evaluation.diagnosis import FAILURES
from amemgym_env.evaluation.statistics import Interval, ratio_interval, ratios
from experiments.app import pareto
from experiments.report.page.runs import Run

NO_INTERVAL = Interval(float("nan"), float("nan"))


class Series(NamedTuple):
    """One number a period, NaN where there is none."""

    values: tuple[float, ...]
    intervals: tuple[Interval, ...]


class AgentCost(NamedTuple):
    """Cost of an agent's own calls for one scenario."""

    cost: pareto.Cost
    calls: float
    seconds: float
    counted: bool
    """Whether a provider counted the tokens; else their number is estimated from the text."""


class Positions(NamedTuple):
    """Shares of answered cells by position as shown, from the first."""

    chosen: tuple[float, ...]
    right: tuple[float, ...]
    no_answer: float


class Measures(NamedTuple):
    """All of them for one run."""

    accuracy: Series
    memory: Series
    failures: Mapping[str, tuple[float, ...]]
    """By kind, a share of the period's cells; they sum to 1 - accuracy."""
    cost: AgentCost
    positions: Positions | None
    """None without journals or scenarios."""


def measure(run: Run) -> Measures:
    """Return what the page shows of a run; call it when its journals have been read."""
    cells = [run.document.cells(name) for name in run.document.scenarios]
    upper = [run.document.upper_bound_cells(name) for name in run.document.scenarios]
    asked = any(not np.isnan(array).all() for array in upper)
    masks = [
        ~np.isnan(one) & (~np.isnan(best) if asked else True)
        for one, best in zip(cells, upper, strict=True)
    ]
    failures: dict[str, tuple[float, ...]] = {}
    for kind in FAILURES:
        flags = [
            np.array([[float(cell == kind) for cell in row] for row in run.document.failure[name]])
            for name in run.document.scenarios
        ]
        failures[kind] = _means(_by_period(flags, masks))
    return Measures(
        accuracy=_series(_by_period(cells, masks)),
        memory=_memory(run),
        failures=failures,
        cost=_cost(run),
        positions=_positions(run),
    )


def _by_period(arrays: Sequence[Floats], masks: Sequence[Any]) -> Floats:
    """Return (users, periods, 2) sums and counts over the cells that count."""
    longest = max((len(array) for array in arrays), default=0)
    found = np.zeros((len(arrays), longest, 2))
    for user, (array, mask) in enumerate(zip(arrays, masks, strict=True)):
        found[user, : len(array), 0] = np.where(mask, array, 0.0).sum(axis=1)
        found[user, : len(array), 1] = mask.sum(axis=1)
    return found


def _means(sums: Floats) -> tuple[float, ...]:
    return tuple(ratios(sums.transpose(1, 0, 2)).tolist())


def _series(sums: Floats) -> Series:
    periods = sums.transpose(1, 0, 2)
    return Series(_means(sums), tuple(ratio_interval(period) for period in periods))


def _memory(run: Run) -> Series:
    """Return the memory score by period; without scenarios its intervals are unknown."""
    names = run.document.scenarios
    values = tuple(
        float("nan") if score is None else score for score in run.document.memory_score_by_period
    )
    if any(name not in run.results for name in names):
        return Series(values, (NO_INTERVAL,) * len(values))
    scenarios = {name: run.results[name].script.scenario for name in names}
    found = run.document.memory_scores(scenarios).ratios.T
    sums = [np.stack([np.nan_to_num(row), ~np.isnan(row)], axis=1) for row in found]
    return Series(values, tuple(ratio_interval(part) for part in sums))


def _cost(run: Run) -> AgentCost:
    usage = pareto.paid_usage(run.document)
    count = max(1, len(run.document.scenarios))
    return AgentCost(pareto.cost(run.document), usage.calls / count, usage.seconds / count,
                     counted=not usage.estimated)  # fmt: skip


def _positions(run: Run) -> Positions | None:
    results = [run.results[name] for name in run.document.scenarios if name in run.results]
    if not results:
        return None
    width = max(len(order) for result in results for order in result.script.option_orders)
    chosen, right = np.zeros(width), np.zeros(width)
    silent = asked = 0
    for result in results:
        rights = np.array(result.script.right_shown)
        scored = ~np.isnan(result.accuracy)
        picks = result.chosen[scored]
        chosen += np.bincount(picks[picks >= 0], minlength=width)
        right += np.bincount(rights[scored], minlength=width)
        silent += int((picks < 0).sum())
        asked += int(scored.sum())
    total = max(1, asked)
    return Positions(
        tuple((chosen / total).tolist()), tuple((right / total).tolist()), silent / total
    )
