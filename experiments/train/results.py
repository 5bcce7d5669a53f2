"""Results of a training: means with intervals over scenarios, and all baselines.

A scenario's score is the mean over seeds, so intervals are over scenarios; the spread of seeds is
reported separately. Differences are paired by scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from amemgym_env.evaluation.statistics import mean_estimate
from experiments.app.terminal import WIDTH, terminal
from experiments.baselines.benchmark import Scores
from experiments.train.baseline_scores import HAND, PLANNING
from experiments.train.learning_curve import Curve

EXPECTED = (
    "Accuracies are expected ones: all that goes wrong in reading is that a stale value may be "
    "taken. experiments.evaluate draws answers from its simulated model, which errs in more ways "
    "(backend.profile=confusion_only: in this one alone): a policy scores lower there."
)
"""Note on the difference between training scores and evaluation scores."""

PolicyScores = Mapping[str, Sequence[Scores]]
"""For each set, the scores of each seed."""

BaselineScores = Mapping[str, Mapping[str, Scores]]
"""For each set, the scores of each baseline."""


def final(
    policies: PolicyScores,
    baselines: BaselineScores,
    controls: Mapping[str, Scores],
    curves: Sequence[Curve],
) -> dict[str, Any]:
    """Return the results of a training as JSON."""
    return {
        "sets": {name: _set(policies[name], baselines[name]) for name in policies},
        "controls": {name: _json(scores) for name, scores in controls.items()},
        "seeds": [
            {
                "validation": curve.best,
                "steps": curve.steps[-1],
                "processor_seconds": round(curve.seconds, 1),
                **{name: float(policies[name][number].mean()) for name in policies},
            }
            for number, curve in enumerate(curves)
        ],
    }


def _set(seeds: Sequence[Scores], baselines: Mapping[str, Scores]) -> dict[str, Any]:
    policy = np.mean(seeds, axis=0)
    found: dict[str, Any] = {
        "scenarios": len(policy),
        "policy": _json(policy),
        "seed_means": [float(scores.mean()) for scores in seeds],
        "baselines": {name: _json(scores) for name, scores in baselines.items()},
        "differences": {name: _json(policy - scores) for name, scores in baselines.items()},
    }
    if PLANNING in baselines:
        bottom, top = float(baselines[HAND].mean()), float(baselines[PLANNING].mean())
        found["gap_closed"] = (
            (float(policy.mean()) - bottom) / (top - bottom) if top > bottom else None
        )
    return found


def _json(scores: Scores) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 5) for value in mean_estimate(scores)]


def table(document: Mapping[str, Any], name: str, label: str) -> Table:
    """Return one set's scores, best first, with the policy's difference to each baseline."""
    found = document["sets"][name]
    title = f"{name}: {found['scenarios']} scenarios, expected accuracy"
    made = Table(title=title, title_justify="left", width=WIDTH, box=SIMPLE_HEAD)
    made.add_column("", ratio=1)
    for heading in ("accuracy", "95 %", "policy has more", "95 %"):
        made.add_column(heading, justify="right", no_wrap=True)
    rows = [(label, found["policy"], None)]
    rows += [
        (baseline, scores, found["differences"][baseline])
        for baseline, scores in found["baselines"].items()
    ]
    for row, scores, difference in sorted(rows, key=lambda item: -item[1][0]):
        style = "bold" if difference is None else None
        more = ("", "") if difference is None else (_signed(difference[0]), _pair(difference, True))
        made.add_row(row, f"{scores[0]:.3f}", _pair(scores), *more, style=style)
    return made


def _signed(value: float) -> str:
    return f"{value:+.3f}"


def _pair(values: Sequence[float | None], signed: bool = False) -> str:
    low, high = values[1:]
    if low is None or high is None:
        return "-"
    return f"{low:+.3f} {high:+.3f}" if signed else f"{low:.3f} {high:.3f}"


def show(document: Mapping[str, Any], label: str, folder: str) -> None:
    """Print the tables, the closed share of the gap, and the control."""
    console = terminal()
    for name in document["sets"]:
        console.print(table(document, name, label))
    for name, found in document["sets"].items():
        if found.get("gap_closed") is not None:
            share = f"{found['gap_closed']:.0%}"
            console.print(f"{name}: {share} of the way from the {HAND} to planning with the truth")
    for name, values in document["controls"].items():
        console.print(f"control, {name}: {values[0]:.3f} ({_pair(values)})")
    for number, seed in enumerate(document["seeds"]):
        console.print(
            f"seed {number}: {seed['steps']:,} rounds in {seed['processor_seconds']:.0f} "
            f"processor seconds, best on validation {seed['validation']:.3f}"
        )
    console.print(EXPECTED, style="dim")
    console.print(f"written to {folder}", soft_wrap=True)
