"""Comparison of runs, paired by scenario: intervals, p-values and an exit status.

    python -m experiments.report compare BASELINE RUN ... --fail-if-worse

The first run is the baseline of all comparisons. Intervals are BCa bootstraps over scenarios; where
the scenarios are generated, a second one resamples personas and topics. P-values flip the signs of
the scenarios' differences, and are Holm-corrected over the comparisons asked for. Exit status: 0,
1 with `--fail-if-worse` when a run is worse, 2 for an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from amemgym_env.envs.rewards import Floats
from amemgym_env.errors import AMemGymError, RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.statistics import (
    Interval,
    detectable_difference,
    holm,
    mean_interval,
    paired_differences,
    sign_flip_p,
    two_way_interval,
)
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.model import Scenario
from experiments.app.terminal import terminal

Metric = Literal["overall", "memory_score"]
ALPHA = 0.05


class Run(NamedTuple):
    """A run to compare: where it lies, and its results."""

    path: str
    results: ResultsFile

    @classmethod
    def read(cls, path: str) -> Run:
        """Return the run in a folder; RunError if there is none."""
        return cls(path, ResultsFile.read(Path(path)))


@dataclass(frozen=True)
class Comparison:
    """A run beside the baseline; differences are run minus baseline."""

    baseline: Run
    run: Run
    differences: Floats
    """One for each common scenario."""
    interval: Interval
    two_way: Interval | None
    """Over personas and topics, for generated scenarios."""
    p: float

    @property
    def mean(self) -> float:
        """The mean difference over scenarios."""
        scored = self.differences[~np.isnan(self.differences)]
        return float(scored.mean()) if scored.size else float("nan")

    def worse(self, adjusted_p: float, margin: float | None) -> bool:
        """Whether the run is worse: significantly or, with a margin, not shown to be no worse."""
        if margin is not None:
            return not self.interval.low > -margin
        return self.mean < 0 and adjusted_p < ALPHA


def compare(baseline: Run, run: Run, metric: Metric = "overall") -> Comparison:
    """Return what sets a run apart from the baseline, over their common scenarios.

    Raises:
        RunError: they have no scenario in common, or one of other shape.
    """
    common = [name for name in baseline.results.scenarios if name in run.results.accuracy]
    if not common:
        raise RunError(
            f"{run.path}: expected scenarios of {baseline.path}, found none in common; "
            "compare runs of the same scenarios"
        )
    known = _scenarios(baseline, common)
    try:
        if metric == "overall":
            differences = paired_differences(
                [baseline.results.cells(name) for name in common],
                [run.results.cells(name) for name in common],
            )
        else:
            differences = _memory(run, known, common) - _memory(baseline, known, common)
    except ValueError as error:
        raise RunError(f"{run.path}: {error}") from error
    scored = differences[~np.isnan(differences)]
    two_way = None
    if metric == "overall" and known and all(item.library for item in known.values()):
        two_way = _two_way(baseline, run, known)
    return Comparison(
        baseline, run, differences, mean_interval(scored), two_way, sign_flip_p(differences)
    )


def _memory(run: Run, known: dict[str, Scenario], names: Sequence[str]) -> Floats:
    """Return the memory score of each scenario, NaN without one."""
    missing = [name for name in names if name not in known]
    if missing:
        raise RunError(
            f"{run.path}: expected its scenarios at {run.results.settings}, found none of "
            f"{missing[0]!r}; the memory score needs their questions"
        )
    scores = run.results.memory_scores(known).by_user
    return scores[[run.results.scenarios.index(name) for name in names]]


def _two_way(baseline: Run, run: Run, known: dict[str, Scenario]) -> Interval:
    values, personas, topics = [], [], []
    for name, scenario in known.items():
        cells = run.results.cells(name) - baseline.results.cells(name)
        for column, question in zip(cells.T, scenario.qas, strict=True):
            scored = column[~np.isnan(column)]
            values.append(float(scored.mean()) if scored.size else float("nan"))
            personas.append(str(scenario.user_profile.get("uuid", name)))
            topics.append(str(question.topic))
    return two_way_interval(np.array(values), personas, topics)


def _scenarios(run: Run, names: Sequence[str]) -> dict[str, Scenario]:
    """Return the run's scenarios by id; none where their set is not there any more."""
    source = run.results.settings.get("scenarios")
    if not isinstance(source, str):
        return {}
    try:
        found = {item.id: item for item in named_scenarios(source)}
    except AMemGymError:
        return {}
    return {name: found[name] for name in names} if set(names) <= set(found) else {}


def notes(comparison: Comparison) -> list[str]:
    """Return what makes two runs less than comparable, one line each."""
    ours, theirs = comparison.baseline.results, comparison.run.results
    lines = [
        f"{key} differs: {ours.settings.get(key)!r} and {theirs.settings.get(key)!r}"
        for key in ("seed", "difficulty", "rounds_initial", "rounds_update", "scenarios_hash")
        if ours.settings.get(key) != theirs.settings.get(key)
    ]
    if ours.mode != theirs.mode:
        lines.append(f"mode differs: {ours.mode} and {theirs.mode}")
    left = len(ours.accuracy) + len(theirs.accuracy) - 2 * len(comparison.differences)
    if left:
        lines.append(f"{left} scenarios stand in one of the runs alone and are left out")
    if ours.simulated or theirs.simulated:
        lines.append("simulated model: not a real model's scores")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the comparisons and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="report compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("baseline", help="folder of the run that the others are compared with")
    parser.add_argument("runs", nargs="+", help="folders of the other runs")
    parser.add_argument("--metric", choices=("overall", "memory_score"), default="overall")
    parser.add_argument("--fail-if-worse", action="store_true", help="exit 1 if a run is worse")
    parser.add_argument(
        "--margin", type=float, help="a run is worse unless its interval lies above -MARGIN"
    )
    given = parser.parse_args(list(arguments))
    try:
        if given.margin is not None and given.margin < 0:
            raise RunError(f"--margin: expected 0 or more, found {given.margin}")
        baseline = Run.read(given.baseline)
        found = [compare(baseline, Run.read(path), given.metric) for path in given.runs]
    except AMemGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    worse = _print(found, given.metric, given.margin)
    return int(given.fail_if_worse and worse)


def _print(found: Sequence[Comparison], metric: Metric, margin: float | None) -> bool:
    console = terminal(None)
    adjusted = holm([comparison.p for comparison in found])
    any_worse = False
    for comparison, p in zip(found, adjusted, strict=True):
        worse = comparison.worse(p, margin)
        any_worse |= worse
        low, high = comparison.interval
        one, other = comparison.run, comparison.baseline
        console.print(
            f"{one.results.label} ({one.path}) minus {other.results.label} ({other.path})"
        )
        console.print(
            f"  {metric} {comparison.mean:+.4f}, 95 % {low:+.4f} to {high:+.4f} (BCa over "
            f"{np.sum(~np.isnan(comparison.differences))} scenarios)"
        )
        if comparison.two_way is not None:
            low, high = comparison.two_way
            console.print(f"  95 % {low:+.4f} to {high:+.4f} over personas and topics")
        console.print(
            f"  p {comparison.p:.4f} (sign flips), {p:.4f} after Holm's correction over "
            f"{len(found)}; could have detected "
            f"{detectable_difference(comparison.differences):.4f}"
        )
        if margin is not None:
            verdict = "not shown to be no worse" if worse else "no worse"
            console.print(f"  margin {margin}: {verdict}")
        else:
            better = comparison.mean > 0 and p < ALPHA
            console.print("  worse" if worse else "  better" if better else "  no winner")
        for line in notes(comparison):
            console.print(f"  note: {line}")
    return any_worse
