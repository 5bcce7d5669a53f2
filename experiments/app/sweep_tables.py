"""Closing tables of a sweep: the jobs by memory score, and the Pareto front by cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from amemgym_env.evaluation.results_file import ResultsFile
from experiments.app.pareto import Cost
from experiments.app.terminal import (
    ORACLE,
    ORACLE_NOTE,
    interval,
    number,
    plain_table,
    references,
    shown,
    terminal,
    title,
)

COST_NOTE = (
    "Cost of one user, all periods: tokens in and out of replies, memory and answers; "
    "without the upper bound, probes and the simulated user"
)


class Row(NamedTuple):
    """One finished job."""

    number: int
    name: str
    """The words of its command that not all jobs share."""
    label: str
    overall: float | None
    score: float | None
    interval: Sequence[float | None]
    cost: Cost


def print_sweep(
    rows: Sequence[Row], first: ResultsFile, fronts: Mapping[str, Sequence[int]]
) -> None:
    """Print the closing table, best memory score first, with the floors below it, and the front."""
    console = terminal()
    ranked = sorted(rows, key=lambda row: (row.score is None, -(row.score or 0.0), row.number))
    console.print(_table(title(first), ranked, fronts))
    told = [f"{shown(name)} {number(value)}" for name, value in references(first)]
    console.print(f"{', '.join(told)}.", style="dim")
    if ORACLE in first.floors:
        console.print(ORACLE_NOTE, style="dim")
    best = [row for row in rows if row.number in {*fronts["tokens"], *fronts["usd"]}]
    if len(best) > 1:
        cheapest = sorted(best, key=lambda row: row.cost.tokens)
        console.print(_table("Pareto front, cheapest first", cheapest, fronts))
    console.print(COST_NOTE, style="dim")
    if any(row.cost.estimated for row in rows):
        console.print("US$: estimated at gpt-4.1-mini's list price; nothing was paid", style="dim")


def _table(heading: str, rows: Sequence[Row], fronts: Mapping[str, Sequence[int]]) -> Table:
    columns = ("settings", "overall", "memory", "95 %", "tokens/user", "US$/user", "front")
    table = plain_table(*columns, title=heading)
    for row in rows:
        usd = row.cost.usd
        marks = [name for name in ("tokens", "usd") if row.number in fronts[name]]
        table.add_row(
            row.name,
            number(row.overall),
            number(row.score),
            interval(row.interval),
            f"{row.cost.tokens:,.0f}",
            "-" if usd is None else f"{usd:.3f}",
            "both" if len(marks) == 2 else "".join(marks),
        )
    return table
