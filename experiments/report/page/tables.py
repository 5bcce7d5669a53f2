"""Tables of the page: cells with their sort values, and their HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from experiments.app.terminal import MEANINGS, interval, number, rates, references, shown
from experiments.report.page.measures import Measures
from experiments.report.page.runs import Run


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted by where that is another thing."""

    shown: str
    value: float | None = None


class Table(NamedTuple):
    """A table with its name; the first column names the rows."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    floors: Sequence[Sequence[Cell]] = ()
    """Rows below the others, whatever the sort order."""
    meanings: Mapping[str, str] = {}
    """What names of columns and of rows mean."""


def html(table: Table) -> str:
    """Return a table in a box that scrolls, so that the page never does sideways."""
    head = "".join(
        f'<th scope="col"{_tip(table, name)}>{escape(name)}</th>' for name in table.header
    )
    body = "".join(_row(table, row) for row in table.rows)
    below = "".join(_row(table, row) for row in table.floors)
    rest = f'<tbody class="floors">{below}</tbody>' if below else ""
    label = escape(table.name)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f'<table data-copy="{label}"><caption class="visually-hidden">{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{rest}</table></div>{_legend(table)}"
    )


def _row(table: Table, cells: Sequence[Cell]) -> str:
    first, *rest = cells
    shown = "".join(f"<td{_value(cell)}>{escape(cell.shown)}</td>" for cell in rest)
    name = first.shown
    return f'<tr><th scope="row"{_tip(table, name)}>{escape(name)}</th>{shown}</tr>'


def _tip(table: Table, name: str) -> str:
    return f' title="{escape(table.meanings[name])}"' if name in table.meanings else ""


def _legend(table: Table) -> str:
    """Return the meanings for those who cannot hover, folded."""
    parts = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in table.meanings.items()
    )
    if not parts:
        return ""
    return (
        "<details><summary>What the columns and rows mean</summary>"
        f'<dl class="meanings">{parts}</dl></details>'
    )


def _value(cell: Cell) -> str:
    return "" if cell.value is None else f' data-value="{cell.value!r}"'


def score(value: float | None, digits: int = 3) -> Cell:
    """Return a score as it is shown in the terminal too."""
    known = None if value is None or math.isnan(value) else float(value)
    return Cell(number(known, digits), known)


def between(pair: Sequence[float | None]) -> Cell:
    """Return an interval, sorted by its middle."""
    known = [part for part in pair if part is not None and not math.isnan(part)]
    if len(known) < 2:
        return Cell("-")
    return Cell(interval(known), sum(known) / 2)


def leaderboard(runs: Sequence[Run]) -> Table:
    """Return runs with their scores as results.json has them, and the floors of the first."""
    header = ["agent", "overall", "95 %", "memory", "95 %", "of means", "write", "read"]
    header += ["util.", "unattr.", "lucky", "unscored", "users", "mode", "model"]
    rows = []
    for run in runs:
        of, failures = run.document, rates(run.document.failures)
        intervals = of.confidence_interval
        external = " (external memory)" if of.memory == "external" else ""
        simulated = "simulated: " if of.simulated else ""
        rows.append(
            [
                Cell(run.name + external),
                score(of.overall),
                between(intervals.get("overall", ())),
                score(of.memory_score),
                between(intervals.get("memory_score", ())),
                score(of.memory_score_ratio_of_means),
                *(score(failures.get(name)) for name in ("write", "read", "utilization")),
                score(failures.get("unattributed")),
                score(of.lucky),
                Cell(str(of.unscored), of.unscored),
                Cell(str(len(of.scenarios)), len(of.scenarios)),
                Cell(of.mode.replace("_", "-")),
                Cell(simulated + run.model),
            ]
        )
    first = next((run.document for run in runs if run.document.floors), runs[0].document)
    compared = references(first)
    below = [
        [Cell(shown(name)), score(value), *[Cell("")] * (len(header) - 2)]
        for name, value in compared
        if value is not None
    ]
    told = {shown(name): MEANINGS.get(name, "") for name, _ in compared}
    return Table("Leaderboard", header, rows, below, {**COLUMNS, **told})


COLUMNS = {
    "overall": "the share of right answers",
    "95 %": "BCa bootstrap interval over scenarios",
    "memory": "overall between a random guess (0) and the upper bound (1), by user and period, "
    "averaged",
    "of means": "the memory score from means over all users, not the mean of their ratios",
    "write": "wrong because a value was not known even when it was new",
    "read": "wrong because a value was known when it was new, and not found now",
    "util.": "wrong although everything the question needs was known",
    "unattr.": "wrong, and no probe tells where it failed",
    "lucky": "right although not all that the question needs was known",
    "unscored": "questions that could not be asked; they do not count",
}
"""What the leaderboard's columns say."""


def by_period(name: str, rows: Sequence[tuple[str, Sequence[float]]]) -> Table:
    """Return one number an agent and period."""
    count = max((len(values) for _, values in rows), default=0)
    header = ["agent", *(f"period {period}" for period in range(count))]
    return Table(name, header, [[Cell(label), *map(score, values)] for label, values in rows])


def failures(runs: Sequence[Run], measures: Sequence[Measures]) -> Table:
    """Return the failures of every agent and period."""
    rows = [
        [Cell(run.name), Cell(kind), *map(score, values)]
        for run, measured in zip(runs, measures, strict=True)
        for kind, values in measured.failures.items()
    ]
    count = max((len(row) for row in rows), default=2) - 2
    header = ["agent", "failure", *(f"period {period}" for period in range(count))]
    return Table("Failures by period", header, rows)


def costs(runs: Sequence[Run], measures: Sequence[Measures]) -> Table:
    """Return cost per scenario and score by agent."""
    header = ["agent", "calls", "tokens", "US$", "seconds", "overall", "memory"]
    rows = []
    for run, measured in zip(runs, measures, strict=True):
        agent, cost = measured.cost, measured.cost.cost
        dollars = "unknown" if cost.usd is None else f"{cost.usd:.3f}"
        about = "" if agent.counted else "about "
        rows.append(
            [
                Cell(run.name),
                Cell(f"{agent.calls:,.1f}", agent.calls),
                Cell(f"{about}{cost.tokens:,.0f}", cost.tokens),
                Cell(f"about {dollars}" if cost.estimated else dollars, cost.usd),
                Cell(f"{agent.seconds:,.1f}", agent.seconds),
                score(run.document.overall),
                score(run.document.memory_score),
            ]
        )
    return Table("Cost a scenario", header, rows)


def positions(runs: Sequence[Run], measures: Sequence[Measures]) -> Table:
    """Return how often each position was chosen, and how often it was right."""
    known = [(r, m.positions) for r, m in zip(runs, measures, strict=True) if m.positions]
    count = max((len(found.chosen) for _, found in known), default=0)
    header = ["agent", "share", *(f"position {number + 1}" for number in range(count)), "no answer"]
    rows = []
    for run, found in known:
        rows.append([Cell(run.name), Cell("chosen"), *map(score, found.chosen)])
        rows[-1] += [Cell("")] * (count - len(found.chosen)) + [score(found.no_answer)]
        rows.append([Cell(run.name), Cell("right"), *map(score, found.right)])
        rows[-1] += [Cell("")] * (count - len(found.right)) + [Cell("")]
    return Table("Answers by position", header, rows)


def policies(pairs: Sequence[tuple[str, Run, Run]]) -> Table:
    """Return on- against off-policy memory scores, and how ranks change among the pairs."""

    def ranks(scores: Sequence[float | None]) -> list[int]:
        return [1 + sum((o or -9) > (s or -9) for o in scores) for s in scores]

    on = [run.document.memory_score for _, run, _ in pairs]
    off = [run.document.memory_score for _, _, run in pairs]
    rows = []
    for index, ((label, *_), before, after) in enumerate(
        zip(pairs, ranks(on), ranks(off), strict=True)
    ):
        one, other = on[index], off[index]
        change = None if one is None or other is None else other - one
        moved = before - after
        shown = "0" if not moved else f"{'up' if moved > 0 else 'down'} {abs(moved)}"
        rows.append([Cell(label), score(one), score(other), score(change), Cell(shown, moved)])
    header = ["agent", "on-policy", "off-policy", "difference", "change of rank"]
    return Table("Memory score on- and off-policy", header, rows)
