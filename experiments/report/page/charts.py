"""Charts of the report as SVG text, for the page and for picture files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amemgym_env.evaluation.statistics import Interval
from experiments.app.svg import (
    Scale,
    band,
    box,
    color,
    line,
    marker,
    path,
    picture,
    short,
    text,
    ticks,
)
from experiments.app.terminal import number
from experiments.report.page.measures import Series

WIDTH = 440.0
LEFT = 150.0
FAILURE_NAMES = {
    "write": "write",
    "read": "read",
    "utilization": "utilization",
    "unattributed": "unattributed",
}


class Dot(NamedTuple):
    """A score with its interval."""

    label: str
    value: float
    interval: Interval


def dots(name: str, rows: Sequence[Dot], floors: Mapping[str, float]) -> str:
    """Return scores as dots with intervals, and floors as lines across."""
    height = 58.0 + 30 * len(rows) + 16 * max(0, len(floors) - 1)
    bottom, left = 16.0 + 30 * len(rows), _left([row.label for row in rows])
    bounds = [*floors.values(), 0.0, 1.0]
    bounds += [part for row in rows for part in (row.value, *row.interval) if not math.isnan(part)]
    x = Scale(min(bounds), max(bounds), left, WIDTH - 16)
    parts = _x_axis(x, 16, bottom)
    parts += _floors(x, floors, bottom)
    for index, row in enumerate(rows):
        y = 32 + 30 * index
        low, high = row.interval
        parts.append(text(short(row.label), left - 10, y + 4, "label", "end"))
        if not math.isnan(low):
            parts.append(line(x(low), y, x(high), y, f"whisker {color(index)}"))
        tip = f"{row.label}: {number(row.value)} [{number(low, 2)}, {number(high, 2)}]"
        parts.append(marker(index, x(row.value), y, tip, 5.5))
    spoken = "; ".join(f"{row.label} {number(_or_none(row.value))}" for row in rows)
    return picture(name, spoken, WIDTH, height, *parts)


def heat_map(name: str, rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return agents by periods, darker is better; every cell shows its number."""
    columns = max((len(values) for _, values in rows), default=0)
    left, side = _left([label for label, _ in rows]), 36.0
    width, height = left + side * max(columns, 8) + 6, 30 + 30.0 * len(rows)
    parts = [
        text(str(period), left + side * (period + 0.5), 16, "small", "middle")
        for period in range(columns)
    ]
    parts.append(text("period", left - 10, 16, "small", "end"))
    for index, (label, values) in enumerate(rows):
        y = 24 + 30 * index
        parts.append(text(short(label), left - 10, y + 18, "label", "end"))
        for period, value in enumerate(values):
            x = left + side * period
            if math.isnan(value):
                parts.append(
                    box(x + 1, y, side - 2, 27, "heat empty", f"{label}, period {period}: none")
                )
                continue
            step = max(0, min(6, int(value * 7)))
            tip = f"{label}, period {period}: {number(value)}"
            parts.append(box(x + 1, y, side - 2, 27, f"heat h{step}", tip))
            parts.append(text(number(value, 2), x + side / 2, y + 18, f"cell t{step}", "middle"))
    said = "Agents by periods; the numbers are in the table."
    # Beyond what a phone is wide the picture scrolls; before that it shrinks.
    return picture(
        name, said, width, height, *parts, class_="chart many" if columns > 12 else "chart"
    )


def lines(name: str, rows: Sequence[tuple[str, Series]], axis: str = "period") -> str:
    """Return one line an agent over periods, with its interval as a band."""
    count = max((len(series.values) for _, series in rows), default=1)
    seen = [v for _, series in rows for v in series.values if not math.isnan(v)]
    x = Scale(0, max(1, count - 1), 40, WIDTH - 14)
    y = Scale(min([0.0, *seen]), max([1.0, *seen]), 232, 14)
    parts = _y_axis(y, 40, WIDTH - 14)
    parts += [
        text(str(period), x(period), 250, "small", "middle")
        for period in range(0, count, 1 if count < 14 else 2)
    ]
    parts.append(text(axis, WIDTH - 14, 266, "small", "end"))
    for index, (_, series) in enumerate(rows):
        low = [(x(i), y(pair[0])) for i, pair in enumerate(series.intervals)]
        high = [(x(i), y(pair[1])) for i, pair in enumerate(series.intervals)]
        parts.append(band(low, high, f"band {color(index)}"))
    for index, (label, series) in enumerate(rows):
        points = [(x(i), y(v)) for i, v in enumerate(series.values)]
        parts.append(path(points, f"line {color(index)}"))
        for period, ((left, top), value) in enumerate(zip(points, series.values, strict=True)):
            tip = f"{label}, {axis} {period}: {number(_or_none(value))}"
            parts.append(marker(index, left, top, tip, 3.4))
    names = [label for label, _ in rows]
    return picture(
        name, _last(rows), WIDTH, 276 + _legend_height(names), *parts, *legend(names, 280)
    )


def stacked(name: str, parts_by_kind: Mapping[str, Sequence[float]], most: float) -> str:
    """Return failures by period, stacked: their height is 1 - overall, on an axis up to `most`."""
    count = max((len(values) for values in parts_by_kind.values()), default=1)
    x = Scale(0, count, 34, WIDTH - 10)
    top = 0.1 * math.ceil(10 * max(0.05, most))
    y = Scale(0, top, 156, 10)
    shapes = _y_axis(y, 34, WIDTH - 10)
    for period in range(count):
        base = 0.0
        for kind, values in parts_by_kind.items():
            value = values[period]
            if math.isnan(value) or value <= 0:
                continue
            tip = f"{name}, period {period}: {kind} {number(value)}"
            left, height = x(period) + 2, y(base) - y(base + value)
            shapes.append(box(left, y(base + value), x(1) - x(0) - 4, height, f"fail {kind}", tip))
            base += value
        if count < 14 or period % 2 == 0:
            shapes.append(text(str(period), x(period + 0.5), 172, "small", "middle"))
    totals = [sum_of(column) for column in zip(*parts_by_kind.values(), strict=True)]
    said = "; ".join(f"period {p} {number(total)}" for p, total in enumerate(totals))
    return picture(f"Failures of {name}", said, WIDTH, 180, *shapes)


def sum_of(values: Sequence[float]) -> float:
    """Return the sum of the values that are known."""
    return sum(value for value in values if not math.isnan(value))


def scatter(name: str, points: Sequence[tuple[str, float, float]], unit: str, axis: str) -> str:
    """Return cost against score, cost on a logarithmic axis."""
    costs = [max(cost, 1e-9) for _, cost, _ in points]
    x = Scale(math.log10(min(costs) / 1.6), math.log10(max(costs) * 1.6), 44, WIDTH - 20)
    scores = [score for _, _, score in points if not math.isnan(score)]
    y = Scale(min([0.0, *scores]), max([1.0, *scores]), 214, 14)
    parts = _y_axis(y, 44, WIDTH - 20)
    for tick in _round_costs(10**x.low, 10**x.high):
        at = x(math.log10(tick))
        parts.append(line(at, 14, at, 214, "grid"))
        parts.append(text(_short_cost(tick, unit), at, 232, "small", "middle"))
    parts.append(text(axis, WIDTH - 20, 250, "small", "end"))
    for index, (label, cost, score) in enumerate(points):
        tip = f"{label}: {unit}{cost:,.4g}, {number(_or_none(score))}"
        parts.append(marker(index, x(math.log10(max(cost, 1e-9))), y(score), tip, 6))
    names = [label for label, _, _ in points]
    said = "; ".join(
        f"{label}: {unit}{cost:,.4g}, {number(_or_none(s))}" for label, cost, s in points
    )
    return picture(name, said, WIDTH, 262 + _legend_height(names), *parts, *legend(names, 268))


def bars(name: str, chosen: Sequence[float], right: Sequence[float], series: int) -> str:
    """Return how often each position was chosen, with a tick at the right answer."""
    top = max([0.3, *chosen, *right])
    x, y = Scale(0, len(chosen), 34, WIDTH - 10), Scale(0, top, 126, 10)
    parts = _y_axis(y, 34, WIDTH - 10)
    for index, (one, other) in enumerate(zip(chosen, right, strict=True)):
        left, wide = x(index) + 6, x(1) - x(0) - 12
        tip = f"position {index + 1}: chosen {number(one)}, right {number(other)}"
        parts.append(box(left, y(one), wide, y(0) - y(one), f"bar {color(series)}", tip))
        parts.append(line(left - 3, y(other), left + wide + 3, y(other), "truth"))
        parts.append(text(str(index + 1), x(index + 0.5), 142, "small", "middle"))
    said = "Share of answers by position as shown; ticks: position of the right answer."
    return picture(f"Positions chosen by {name}", said, WIDTH, 150, *parts)


def curve(name: str, x_values: Sequence[float], rows: Mapping[str, Sequence[float]]) -> str:
    """Return a learning curve: one line a measure over steps."""
    seen = [v for values in rows.values() for v in values if not math.isnan(v)] or [0.0]
    x = Scale(min(x_values), max(x_values), 44, WIDTH - 20)
    y = Scale(min([0.0, *seen]), max([1.0, *seen]), 214, 14)
    parts = _y_axis(y, 44, WIDTH - 20)
    for tick in ticks(x.low, x.high, 5):
        parts.append(text(f"{tick:,.4g}", x(tick), 232, "small", "middle"))
    for index, values in enumerate(rows.values()):
        points = [(x(a), y(b)) for a, b in zip(x_values, values, strict=True)]
        parts.append(path(points, f"line {color(index)}"))
        parts.append(marker(index, *points[-1], size=4))
    said = "; ".join(f"{label} ends at {values[-1]:.3g}" for label, values in rows.items())
    height = 246 + _legend_height(list(rows))
    return picture(
        f"Learning curve of {name}", said, WIDTH, height, *parts, *legend(list(rows), 250)
    )


def legend(names: Sequence[str], top: float) -> list[str]:
    """Return the legend of the series, two a row."""
    parts = []
    for index, label in enumerate(names):
        x, y = 24 + (WIDTH - 30) / 2 * (index % 2), top + 10 + 20 * (index // 2)
        parts += [marker(index, x, y - 4, size=5), text(short(label, 26), x + 12, y, "label")]
    return parts


def _legend_height(names: Sequence[str]) -> float:
    return 20.0 * math.ceil(len(names) / 2)


def _floors(x: Scale, floors: Mapping[str, float], bottom: float) -> list[str]:
    """Return a line for each floor, its name on a row of its own below the axis."""
    parts = []
    middle = (x.start + x.end) / 2
    left = sorted((one for one in floors if x(floors[one]) <= middle), key=lambda n: -floors[n])
    right = sorted((one for one in floors if x(floors[one]) > middle), key=lambda n: floors[n])
    # In this order no line crosses the name of another.
    for row, floor in enumerate([*left, *right]):
        value = floors[floor]
        at, y = x(value), bottom + 34 + 16 * row
        parts.append(line(at, 12, at, bottom, "floor"))
        parts.append(line(at, bottom + 20, at, y - 12, "floor"))
        anchor = "end" if at > middle else "start"
        parts.append(text(f"{floor} {number(value)}", at, y, "small", anchor))
    return parts


def _x_axis(x: Scale, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in ticks(x.low, x.high):
        parts.append(line(x(tick), top, x(tick), bottom, "grid"))
        parts.append(text(_tick(tick), x(tick), bottom + 16, "small", "middle"))
    return parts


def _y_axis(y: Scale, left: float, right: float) -> list[str]:
    parts = []
    for tick in ticks(y.low, y.high, 5):
        parts.append(line(left, y(tick), right, y(tick), "grid"))
        parts.append(text(_tick(tick), left - 6, y(tick) + 4, "small", "end"))
    return parts


def _tick(value: float) -> str:
    return number(value, 2).rstrip("0").rstrip(".") or "0"


def _left(labels: Sequence[str]) -> float:
    """Return the room that labels need at the left."""
    return min(LEFT, 20 + 8.0 * max((len(short(label)) for label in labels), default=0))


def _round_costs(low: float, high: float) -> list[float]:
    """Return round values between two costs, powers of ten where these are enough."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [step * 10.0**power for power in powers for step in steps]
        shown = [value for value in found if low <= value <= high]
        if len(shown) >= 3:
            break
    return shown


def _short_cost(value: float, unit: str) -> str:
    if value >= 1e6:
        return f"{unit}{value / 1e6:g}M"
    return f"{unit}{value / 1e3:g}k" if value >= 1e3 else f"{unit}{value:g}"


def _last(rows: Sequence[tuple[str, Series]]) -> str:
    ends = [f"{name} {number(_or_none(s.values[-1]))}" for name, s in rows if s.values]
    return "Last period: " + "; ".join(ends)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
