"""Scatter plot of scores against costs as SVG, with the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from experiments.app.pareto import Point, front
from experiments.app.svg import Scale, ticks

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 14, 34, 46
INK, QUIET, DOT, FRONT = "#222222", "#cccccc", "#5b7fa6", "#c0392b"


def picture(panels: Sequence[tuple[str, Sequence[Point]]], labels: Sequence[str]) -> str:
    """Return an SVG document with a panel for each kind of cost; `labels` name the points."""
    body = [
        f'<g transform="translate({number * WIDTH} 0)">{_panel(title, points, labels)}</g>'
        for number, (title, points) in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11" role="img" '
        'aria-label="memory score against cost">'
        '<rect width="100%" height="100%" fill="white"/>' + "".join(body) + "</svg>"
    )


def _panel(title: str, points: Sequence[Point], labels: Sequence[str]) -> str:
    known = [
        (number, point.cost, point.score)
        for number, point in enumerate(points)
        if point.cost is not None and point.score is not None
    ]
    heading = f'<text x="{LEFT}" y="20" fill="{INK}" font-size="13">{escape(title)}</text>'
    if not known:
        return heading + f'<text x="{LEFT}" y="60" fill="{INK}">nothing to show</text>'
    across = _axis([cost for _, cost, _ in known], LEFT, WIDTH - RIGHT)
    up = _axis([score for _, _, score in known], HEIGHT - BOTTOM, TOP)
    parts = [heading, *_grid(across, up)]
    best = front(points)
    places = {number: (across(cost), up(score)) for number, cost, score in known}
    steps: list[str] = []
    for number in best:
        x, y = places[number]
        steps += [f"{x:.1f},{steps[-1].split(',')[1]}"] if steps else []
        steps.append(f"{x:.1f},{y:.1f}")
    parts.append(
        f'<polyline points="{" ".join(steps)}" fill="none" stroke="{FRONT}" stroke-width="1.5"/>'
    )
    for number, (x, y) in places.items():
        colour = FRONT if number in best else DOT
        said = f"{labels[number]}: {points[number].score:.3f} for {points[number].cost:.4g}"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity=".8">'
            f"<title>{escape(said)}</title></circle>"
        )
    for number in best:
        x, y = places[number]
        end = ' text-anchor="end"' if x > WIDTH * 0.6 else ""
        parts.append(
            f'<text x="{x:.1f}" y="{y - 8:.1f}"{end} fill="{INK}">{escape(labels[number])}</text>'
        )
    return "".join(parts)


def _grid(across: Scale, up: Scale) -> list[str]:
    lines = []
    for value in ticks(across.low, across.high, 4):
        x = across(value)
        lines.append(
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="{QUIET}"/>'
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" fill="{INK}">'
            f"{value:,.10g}</text>"
        )
    for value in ticks(up.low, up.high, 4):
        y = up(value)
        lines.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{QUIET}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{INK}">{value:.10g}'
            "</text>"
        )
    return lines


def _axis(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale with some room at both ends."""
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return Scale(low - room, high + room, start, end)
