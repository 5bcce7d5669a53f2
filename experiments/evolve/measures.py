"""Measures of evolution: scores by user, means over seeds, paired gains with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.table import Table

from amemgym_env.evaluation.metrics import memory_score, uniform_guess
from amemgym_env.evaluation.statistics import mean_interval
from experiments.app.terminal import WIDTH, number, signed, terminal
from experiments.evolve.conditions import Played

MEASURES = ("memory", "overall", "write", "read", "utilization", "recall")
Users = dict[str, dict[str, float]]
"""Measures of each user; NaN where there is none."""

PAPER = {
    "none": (0.172, 0.293, 0.242, 0.118),
    "question_only": (0.197, 0.291, 0.235, 0.110),
    "complete": (0.197, 0.263, 0.237, 0.136),
}
"""The paper's AWI (gpt-4.1-mini): memory score, write, read and utilization failures."""


def measures(played: Played, *, untold: bool = False) -> Users:
    """Return the measures of each user; `untold`: over questions that half feedback left out."""
    users: Users = {}
    for result in played.results.scenarios:
        columns = list(range(result.accuracy.shape[1]))[int(untold) :: 1 + int(untold)]
        accuracy, best = result.accuracy[:, columns], result.upper_bound[:, columns]
        guess = uniform_guess(result.script.scenario)[:, columns]
        scored = ~np.isnan(accuracy) & ~np.isnan(best)
        found = {
            "memory": memory_score([accuracy], [guess], [best]).mean_of_ratios(),
            "overall": _mean(accuracy[scored]),
        }
        failures = np.array([[str(cell) for cell in row] for row in result.diagnosis.failure])[
            :, columns
        ]
        for name in ("write", "read", "utilization"):
            found[name] = _mean((failures == name)[scored].astype(np.float64))
        name = result.script.scenario.id
        steps = played.steps.get(name, ())
        total = sum(step.recall[1] for step in steps)
        stated = sum(step.recall[0] for step in steps)
        found["recall"] = stated / total if total else float("nan")
        users[name] = found
    return users


def _known(values: Sequence[float]) -> npt.NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    return array[~np.isnan(array)]


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")


def mean_over_seeds(seeds: Sequence[Users]) -> Users:
    """Return each user's measures as means over seeds."""
    return {
        user: {name: float(np.mean([found[user][name] for found in seeds])) for name in MEASURES}
        for user in seeds[0]
    }


def summary(users: Users, plain: Users) -> dict[str, Any]:
    """Return means over users, and the gain in memory score over `plain` with its interval."""
    document: dict[str, Any] = {
        name: _mean(_known([found[name] for found in users.values()])) for name in MEASURES
    }
    pairs = [
        found["memory"] - plain[user]["memory"]
        for user, found in users.items()
        if not np.isnan(found["memory"] - plain[user]["memory"])
    ]
    gains = np.array(pairs)
    document["gain"] = float(gains.mean()) if gains.size else None
    document["interval"] = mean_interval(gains).to_json()
    document["users"] = len(users)
    return document


def print_summaries(rows: Mapping[str, Mapping[str, Any]], heading: str) -> None:
    """Print a table of conditions, their gains over the first, and the paper's figures."""
    console = terminal()
    table = Table(
        title=heading, title_justify="left", width=WIDTH, box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("condition", ratio=1, min_width=22, overflow="fold")
    for name in ("memory", "gain", "95 %", "write", "read", "util.", "recall"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, row in rows.items():
        low, high = row["interval"]
        bounds = "-" if low is None else f"{signed(low)} {signed(high)}"
        cells = [number(row[key]) for key in ("write", "read", "utilization", "recall")]
        gain = "-" if row["gain"] is None else signed(row["gain"])
        table.add_row(name.replace("_", " "), number(row["memory"]), gain, bounds, *cells)
    console.print(table)
    for name, (memory, *failures) in PAPER.items():
        said = ", ".join(number(value) for value in failures)
        label = name.replace("_", " ")
        console.print(
            f"paper, AWI with gpt-4.1-mini, {label}: {number(memory)}; {said}", style="dim"
        )
