"""SVG primitives as text. Colours are classes of `charts.css`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

Attribute = str | float


def element(tag: str, *content: str, **attributes: Attribute) -> str:
    """Return an element; content is markup, attributes are escaped (`class_` is `class`)."""
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"'
        for name, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{tag}{pairs}>{inner}</{tag}>" if inner else f"<{tag}{pairs}/>"


def text(content: str, x: float, y: float, class_: str = "", anchor: str = "start") -> str:
    """Return a line of text; `anchor` is start, middle or end."""
    return element("text", escape(content), x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, tip: str = "") -> str:
    """Return a rectangle, with a tip that shows under the pointer."""
    shape = {"x": x, "y": y, "width": width, "height": height}
    return element("rect", _title(tip), **shape, class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    """Return a line through points; where a coordinate is NaN, the line is interrupted."""
    steps, pen = [], "M"
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        steps.append(f"{pen}{_shown(x)} {_shown(y)}")
        pen = "L"
    return element("path", d="".join(steps), class_=class_)


def band(lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], c: str) -> str:
    """Return the area between two lines without gaps."""
    corners = [*lower, *reversed(upper)]
    if not corners or any(math.isnan(y) for _, y in corners):
        return ""
    return element(
        "polygon", points=" ".join(f"{_shown(x)},{_shown(y)}" for x, y in corners), class_=c
    )


def marker(series: int, x: float, y: float, tip: str = "", size: float = 4.5) -> str:
    """Return the mark of a series: its form tells it apart where colours cannot."""
    if math.isnan(x) or math.isnan(y):
        return ""
    class_ = f"mark {color(series)}"
    if series % 4 == 0:
        return element("circle", _title(tip), cx=x, cy=y, r=size, class_=class_)
    corners = {
        1: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        2: ((0, -1.25), (1.2, 0.95), (-1.2, 0.95)),
        3: ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    }[series % 4]
    points = " ".join(f"{_shown(x + size * a)},{_shown(y + size * b)}" for a, b in corners)
    return element("polygon", _title(tip), points=points, class_=class_)


def color(series: int) -> str:
    """Return the class of a series' colour."""
    return f"s{series % 8}"


class Scale(NamedTuple):
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round values within [low, high], at most about `most` of them."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * power for m in (1, 2, 5, 10) if span / (m * power) <= most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def picture(
    name: str,
    description: str,
    width: float,
    height: float,
    *content: str,
    class_: str = "chart",
) -> str:
    """Return a whole picture with its name and description for those who do not see it."""
    return element(
        "svg",
        element("title", escape(name)),
        element("desc", escape(description)),
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_shown(width)} {_shown(height)}",
        role="img",
        aria_label=f"{name}. {description}",
        class_=class_,
    )


def short(label: str, most: int = 18) -> str:
    """Return a label that fits, its middle left out."""
    if len(label) <= most:
        return label
    half = (most - 1) // 2
    return f"{label[: most - 1 - half]}…{label[-half:]}"


def _title(tip: str) -> str:
    return element("title", escape(tip)) if tip else ""


def _shown(value: Attribute) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
