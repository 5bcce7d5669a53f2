"""Sections of the page; each function returns the HTML of one section, or None."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from amemgym_env.evaluation.statistics import Interval
from experiments.app.terminal import ORACLE, ORACLE_NOTE, shown
from experiments.report.page import charts
from experiments.report.page import tables as page_tables
from experiments.report.page.charts import Dot
from experiments.report.page.measures import Measures, Series
from experiments.report.page.runs import Run
from experiments.report.page.tables import Table
from experiments.report.page.training_runs import Generation, Study

Measured = Sequence[tuple[Run, Measures]]


class Section(NamedTuple):
    """A part of the page with its pictures, which are written as files too."""

    key: str
    title: str
    body: str
    pictures: Mapping[str, str]


def sections(measured: Measured, studies: Sequence[Study]) -> list[Section]:
    """Return the sections that runs and studies fill, in the order of the page."""
    makers = (_leaderboard, _periods, _failures, _cost, _positions, _policies)
    found = [maker(measured) for maker in makers] if measured else []
    found += [_curves(studies), _lineages(studies)]
    return [section for section in found if section is not None]


def _leaderboard(measured: Measured) -> Section:
    runs = [run for run, _ in measured]
    pictures: dict[str, str] = {}
    for key, name in (("overall", "Overall score"), ("memory_score", "Memory score")):
        rows = [
            Dot(run.name, _nan(getattr(run.document, key)), _pair(run, key))
            for run in runs
            if getattr(run.document, key) is not None
        ]
        floors = _floors(runs) if key == "overall" else {}
        if rows:
            pictures[key] = charts.dots(name, rows, floors)
    titles = {"overall": "Overall", "memory_score": "Memory score"}
    body = "<p>Overall is the share of right answers; the memory score puts it between a random "
    body += "guess (0) and the same model given the truth (1). Floors need no memory: the best of "
    body += "them is what a score must beat. "
    if any(ORACLE in run.document.floors for run in runs):
        body += ORACLE_NOTE
    body += "</p>"
    body += page_tables.html(page_tables.leaderboard(runs))
    body += _figures({titles[key]: svg for key, svg in pictures.items()})
    return Section("leaderboard", "Leaderboard", body, pictures)


def _floors(runs: Sequence[Run]) -> dict[str, float]:
    known = next((run.document for run in runs if run.document.floors), None)
    if known is None:
        return {}
    floors = {name: value for name, value in known.floors.items() if value is not None}
    lines = {"random": floors["random"]} if "random" in floors else {}
    without_memory = [name for name in floors if name != ORACLE]
    if without_memory:
        best = max(without_memory, key=lambda name: floors[name])
        lines[shown(best)] = floors[best]
    return lines | ({} if known.upper_bound is None else {"upper bound": known.upper_bound})


def _periods(measured: Measured) -> Section:
    pictures: dict[str, str] = {}
    maps = numbers = ""
    shown = {}
    for key, name in (("accuracy", "Accuracy"), ("memory", "Memory score")):
        rows = [(run.name, getattr(measures, key)) for run, measures in measured]
        rows = [(label, series) for label, series in rows if not _empty(series.values)]
        if not rows:
            continue
        values = [(label, series.values) for label, series in rows]
        heat = charts.heat_map(f"{name} by agent and period", values)
        lines = charts.lines(f"{name} by period", rows)
        pictures |= {f"{key}_heat_map": heat, f"{key}_by_period": lines}
        shown[f"{name} by period, with intervals"] = lines
        maps += _wide(f"{name} by agent and period", heat)
        numbers += _numbers(page_tables.by_period(f"{name} by period", values))
    body = f'<div class="charts maps">{maps}</div>{_figures(shown)}{numbers}'
    return Section("periods", "Over the periods", body, pictures)


def _failures(measured: Measured) -> Section | None:
    known = [
        (run, one)
        for run, one in measured
        if any(v > 0 for values in one.failures.values() for v in values)
    ]
    if not known:
        return None
    keys = "".join(
        f'<li><span class="swatch {kind}"></span>{name}</li>'
        for kind, name in charts.FAILURE_NAMES.items()
    )
    columns = [column for _, one in known for column in zip(*one.failures.values(), strict=True)]
    most = max(map(charts.sum_of, columns))
    pictures = {run.name: charts.stacked(run.name, one.failures, most) for run, one in known}
    body = "<p>Each column is 1 - overall of its period, split by where the failure happened: the "
    body += "value was never usably written, was written and not found, or was known and not used."
    body += f'</p><ul class="keys">{keys}</ul>' + _figures(pictures)
    runs, measures = [run for run, _ in known], [one for _, one in known]
    body += _numbers(page_tables.failures(runs, measures))
    named = {f"failures_{number}": svg for number, svg in enumerate(pictures.values(), start=1)}
    return Section("failures", "Failures", body, named)


def _cost(measured: Measured) -> Section:
    runs, measures = [run for run, _ in measured], [one for _, one in measured]
    costs = [one.cost.cost for one in measures]
    by_price = all(cost.usd is not None and not cost.estimated for cost in costs)
    by_price = by_price and any(cost.usd for cost in costs)
    unit, axis = ("$", "US$ a scenario") if by_price else ("", "tokens a scenario")
    points = [
        (run.name, (one.cost.cost.usd or 0.0) if by_price else one.cost.cost.tokens, _best(run))
        for run, one in measured
    ]
    picture = charts.scatter("Cost against score", points, unit, axis)
    body = (
        "<p>What the agent's own calls cost for one scenario (one user, all periods): replies, "
        "memory and exam answers, retries included. Probes, the upper bound and the simulated user "
        "are left out."
    )
    if any(one.cost.cost.estimated for one in measures):
        body += " Dollars of simulated runs are tokens at gpt-4.1-mini's list price; none was paid."
    body += "</p>"
    body += _figures({"Memory score (or overall, without one) against cost": picture})
    body += _numbers(page_tables.costs(runs, measures))
    return Section("cost", "Cost", body, {"cost": picture})


def _positions(measured: Measured) -> Section | None:
    known = [(run, one.positions) for run, one in measured if one.positions is not None]
    if not known:
        return None
    pictures = {
        run.name: charts.bars(run.name, found.chosen, found.right, number)
        for number, (run, found) in enumerate(known)
    }
    body = (
        "<p>How often each position was chosen (bars) and was right (ticks). A bar far above its "
    )
    body += "tick is a habit, not knowledge.</p>" + _figures(pictures)
    runs, measures = [run for run, _ in measured], [one for _, one in measured]
    body += _numbers(page_tables.positions(runs, measures))
    named = {f"positions_{number}": svg for number, svg in enumerate(pictures.values(), start=1)}
    return Section("positions", "Position bias", body, named)


def _policies(measured: Measured) -> Section | None:
    runs = [run for run, _ in measured]
    pairs = [
        (one.document.label, one, other)
        for one in runs
        for other in runs
        if (one.document.mode, other.document.mode) == ("on_policy", "off_policy")
        and one.document.label == other.document.label
    ]
    if not pairs:
        return None
    rows = []
    for label, one, other in pairs:
        rows.append(Dot(f"{label} on", _nan(one.document.memory_score), _pair(one, "memory_score")))
        score = _nan(other.document.memory_score)
        rows.append(Dot(f"{label} off", score, _pair(other, "memory_score")))
    picture = charts.dots("Memory score on- and off-policy", rows, {})
    body = "<p>Off-policy, the memory is built from another assistant's recorded dialogue.</p>"
    body += page_tables.html(page_tables.policies(pairs)) + _figures({"On and off": picture})
    return Section("policies", "On- and off-policy", body, {"policies": picture})


def _curves(studies: Sequence[Study]) -> Section | None:
    pictures, body = {}, ""
    for name, curve, _ in studies:
        if curve is None:
            continue
        x = curve.x
        rows = {key: [_nan(v) for v in values] for key, values in curve.y.items()}
        pictures[name] = charts.curve(name, x, rows)
        cells = [
            [page_tables.Cell(f"{x[i]:g}", x[i]), *(page_tables.score(v[i]) for v in rows.values())]
            for i in range(len(x))
        ]
        body += _numbers(Table(f"Learning curve of {name}", ["step", *rows], cells))
    if not pictures:
        return None
    named = {f"curve_{number}": svg for number, svg in enumerate(pictures.values(), start=1)}
    return Section("curves", "Learning curves", _figures(pictures) + body, named)


def _lineages(studies: Sequence[Study]) -> Section | None:
    body = "".join(
        f"<h3>{escape(one.name)}</h3>{_descent(one.lineage.generations, None)}"
        for one in studies
        if one.lineage is not None
    )
    return Section("lineages", "Evolution", body, {}) if body else None


def _descent(nodes: Sequence[Generation], parent: str | None) -> str:
    """Return what descends from a node as nested lists."""
    items = ""
    for node in nodes:
        if node.parent == parent:
            label = escape(node.label or node.id)
            label += "" if node.score is None else f": {page_tables.score(node.score).shown}"
            text = escape(node.text or "")
            shown = (
                f"<details><summary>its text</summary><pre>{text}</pre></details>" if text else ""
            )
            items += f"<li>{label}{shown}{_descent(nodes, node.id)}</li>"
    return f'<ul class="lineage">{items}</ul>' if items else ""


def _figures(pictures: Mapping[str, str]) -> str:
    shown = "".join(
        f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>"
        for name, svg in pictures.items()
    )
    return f'<div class="charts">{shown}</div>'


def _wide(name: str, svg: str) -> str:
    label = escape(name)
    return (
        f'<figure class="wide"><figcaption>{label}</figcaption>'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{svg}</div></figure>'
    )


def _numbers(table: Table) -> str:
    name = escape(table.name[:1].lower() + table.name[1:])
    return f"<details><summary>Numbers: {name}</summary>{page_tables.html(table)}</details>"


def _best(run: Run) -> float:
    return _nan(
        run.document.overall if run.document.memory_score is None else run.document.memory_score
    )


def _pair(run: Run, key: str) -> Interval:
    low, high = run.document.confidence_interval.get(key, (None, None))
    return Interval(_nan(low), _nan(high))


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _empty(values: Sequence[float]) -> bool:
    return all(math.isnan(value) for value in values)


__all__ = ["Section", "Series", "sections"]
