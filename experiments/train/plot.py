"""Plot of the learning curves: seeds, their mean, and baselines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.app.run_folder import write
from experiments.app.terminal import number
from experiments.train.learning_curve import Curve

_QUIET, _BOLD = "#9db3c8", "#1f4e79"
_POLICY = "policy"


def data(curves: Sequence[Curve], lines: Mapping[str, float]) -> dict[str, Any]:
    """Return x (rounds played) and y by name; baselines are constant."""
    steps = min((curve.steps for curve in curves), key=len)
    found: dict[str, list[float]] = {
        f"seed {seed}": [score.mean for score in curve.scores[: len(steps)]]
        for seed, curve in enumerate(curves)
    }
    found = {"mean": np.mean(list(found.values()), axis=0).tolist(), **found}
    found |= {name: [value] * len(steps) for name, value in lines.items()}
    return {"x": list(steps), "y": found}


def draw(document: Mapping[str, Any], lines: Mapping[str, float], folder: Path, title: str) -> Path:
    """Write curve.json and curve.png into a folder; return the picture's path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    write(folder / "curve.json", json.dumps(document))
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    steps = np.array(document["x"]) / 1000
    for name, values in document["y"].items():
        if name.startswith("seed "):
            axes.plot(steps, values, color=_QUIET, linewidth=1)
    axes.plot(steps, document["y"]["mean"], color=_BOLD, linewidth=2.5)
    end = max(float(steps[-1]), 1.0)
    for value in lines.values():
        axes.axhline(value, color="#777777", linewidth=0.8, linestyle="--")
    low, high = axes.get_ylim()
    ends = {**lines, _POLICY: document["y"]["mean"][-1]}
    for name, place in _apart(ends, (high - low) * 0.035).items():
        axes.annotate(
            f"{name} {number(ends[name])}",  # a crowd is not told apart by its places alone
            (end, place),
            xytext=(4, -3),
            textcoords="offset points",
            fontsize=8,
            fontweight="bold" if name == _POLICY else "normal",
        )
    axes.set_xlim(0, end)
    axes.set_xlabel("rounds played (thousands)")
    axes.set_ylabel("expected accuracy, validation")
    axes.set_title(title, loc="left", fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    path = folder / "curve.png"
    figure.savefig(path)
    return path


def _apart(lines: Mapping[str, float], least: float) -> dict[str, float]:
    """Return label positions: near their values, without overlap.

    Pushed up from the lowest and down from the highest, and in the middle of both: a crowd stays
    where its lines are.
    """
    order = sorted(lines, key=lambda name: lines[name])
    up: dict[str, float] = {}
    down: dict[str, float] = {}
    last = float("-inf")
    for name in order:
        last = up[name] = max(lines[name], last + least)
    last = float("inf")
    for name in reversed(order):
        last = down[name] = min(lines[name], last - least)
    return {name: (up[name] + down[name]) / 2 for name in order}
