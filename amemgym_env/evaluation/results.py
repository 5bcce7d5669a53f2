"""Results of a run: the summary of its scenarios' results.

`Results.file()` is the content of `results.json`. Paper: AMemGym, Sections 3.4 and 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.rewards import Floats
from amemgym_env.evaluation import baselines as floor
from amemgym_env.evaluation.answer_bias import answer_bias
from amemgym_env.evaluation.diagnosis import FAILURES
from amemgym_env.evaluation.metrics import MemoryScore, memory_score, uniform_guess
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.scenario_result import ScenarioResult
from amemgym_env.evaluation.statistics import bca_interval, ratio_interval, ratios
from amemgym_env.models.client import Usage


@dataclass(frozen=True)
class Results:
    """The results of one agent on some scenarios."""

    label: str
    memory: str
    simulated: bool
    settings: Mapping[str, Any]
    versions: Mapping[str, Any]
    scenarios: Sequence[ScenarioResult]
    mode: str = "on_policy"
    seed: int = 0
    stopped: str | None = None
    """Why the run stopped before its end (budget), if so."""
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_upper_bound(self) -> bool:
        """Whether any cell has an upper bound."""
        return any(not np.isnan(result.upper_bound).all() for result in self.scenarios)

    def scored(self, result: ScenarioResult) -> npt.NDArray[np.bool_]:
        """Return which cells count: scored in the exam, and (where asked) for the upper bound."""
        mask = ~np.isnan(result.accuracy)
        if self.has_upper_bound:
            mask &= ~np.isnan(result.upper_bound)
        return mask

    @property
    def memory_score(self) -> MemoryScore:
        """The memory score by user and period."""
        if "memory_score" not in self._cache:
            self._cache["memory_score"] = memory_score(
                [result.accuracy for result in self.scenarios],
                [uniform_guess(result.script.scenario) for result in self.scenarios],
                [result.upper_bound for result in self.scenarios],
            )
        found: MemoryScore = self._cache["memory_score"]
        return found

    def floors(self) -> dict[str, list[Floats]]:
        """Return for each floor the scores of every scenario; `random` are expected scores."""
        scripts = [result.script for result in self.scenarios]
        found = {
            "random": [uniform_guess(script.scenario) for script in scripts],
            "first_shown": [floor.first_shown(script) for script in scripts],
            "first_stored": [floor.first_stored(script) for script in scripts],
            "longest": [floor.longest(script) for script in scripts],
            "initial_state": [floor.initial_state(script) for script in scripts],
            "one_period_late": [floor.one_period_late(script) for script in scripts],
            "never_write": [result.never_write for result in self.scenarios],
        }
        classifier = floor.choice_only(scripts)
        if classifier is not None:
            found["choice_only"] = classifier
        return {name: found[name] for name in floor.FLOORS if name in found}

    def cells(self, arrays: Sequence[Floats]) -> Floats:
        """Return (users, 2) sums and counts over the cells that count, for means and bootstraps."""
        rows = []
        for array, result in zip(arrays, self.scenarios, strict=True):
            mask = self.scored(result) & ~np.isnan(array)
            rows.append([array[mask].sum(), mask.sum()])
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of `results.json`; NaN is null."""
        return self.file().to_json()

    def file(self) -> ResultsFile:
        """Return the contents of `results.json`."""
        score = self.memory_score
        parts = self._parts()
        intervals = {name: ratio_interval(parts[name]) for name in ("overall", *FAILURES)}
        intervals["memory_score"] = score.interval
        intervals["memory_score_ratio_of_means"] = bca_interval(
            score.resampled_ratio_of_means, len(self.scenarios)
        )
        standing = np.array([result.in_window for result in self.scenarios], float).reshape(-1, 2)
        document = {
            "label": self.label,
            "memory": self.memory,
            "simulated": self.simulated,
            "mode": self.mode,
            "seed": self.seed,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "scenarios": [result.script.scenario.id for result in self.scenarios],
            "overall": _ratio(parts["overall"]),
            "random": _ratio(parts["random"]),
            "upper_bound": _ratio(parts["upper_bound"]),
            "memory_score": score.mean_of_ratios(),
            "memory_score_ratio_of_means": score.ratio_of_means(),
            "without_memory_score": score.without([len(r.accuracy) for r in self.scenarios]),
            "floors": {name: _ratio(self.cells(arrays)) for name, arrays in self.floors().items()},
            "answer_bias": answer_bias((r.script, r.chosen) for r in self.scenarios),
            "failures": {name: _ratio(parts[name]) for name in FAILURES},
            "lucky": _ratio(parts["lucky"]),
            "in_window_share": _ratio(standing),
            "retrieved_share": _ratio(
                np.array([result.retrieved for result in self.scenarios], float).reshape(-1, 2)
            ),
            "index_recall": _ratio(
                np.array([result.index_recall for result in self.scenarios], float).reshape(-1, 2)
            ),
            "causes": _total(result.causes for result in self.scenarios),
            "probe_causes": _total(result.probe_causes for result in self.scenarios),
            "unreadable_calls": _total(result.unreadable_calls for result in self.scenarios),
            "unrecognised": sum(result.unrecognised for result in self.scenarios),
            "follow_up_failures": sum(result.follow_up_failures for result in self.scenarios),
            "unscored": sum(result.unscored for result in self.scenarios),
            "unscored_causes": _total(result.unscored_causes for result in self.scenarios),
            "failed_calls": sum(result.failed_calls.total() for result in self.scenarios),
            "failed_call_causes": _total(result.failed_calls for result in self.scenarios),
            "dropped_parameters": sorted({n for r in self.scenarios for n in r.dropped}),
            "cut_prompts": sum(r.cut_prompts for r in self.scenarios),
            "confidence_interval": intervals,
            "accuracy": {r.script.scenario.id: r.accuracy.tolist() for r in self.scenarios},
            "upper_bound_accuracy": {
                r.script.scenario.id: r.upper_bound.tolist() for r in self.scenarios
            },
            "failure": {
                r.script.scenario.id: [list(row) for row in r.diagnosis.failure]
                for r in self.scenarios
            },
            "memory_score_by_period": list(score.by_period),
            "usage": self._usage(),
            "hashes": {r.script.scenario.id: r.hash for r in self.scenarios},
            "errors": {r.script.scenario.id: r.error for r in self.scenarios if r.error},
            "stopped": self.stopped,
        }
        return ResultsFile.of(document)

    def _parts(self) -> dict[str, Floats]:
        """Return (users, 2) sums and counts of everything that is a mean over cells."""
        scenarios = self.scenarios
        parts = {
            "overall": self.cells([result.accuracy for result in scenarios]),
            "random": self.cells([uniform_guess(result.script.scenario) for result in scenarios]),
            "upper_bound": self.cells([result.upper_bound for result in scenarios]),
            "lucky": self.cells([_flags(result.diagnosis.lucky, True) for result in scenarios]),
        }
        for name in FAILURES:
            parts[name] = self.cells(
                [_flags(result.diagnosis.failure, name) for result in scenarios]
            )
        return parts

    def _usage(self) -> dict[str, Usage]:
        total: dict[str, Usage] = {}
        for result in self.scenarios:
            for role, usage in result.usage.items():
                total[role] = total.get(role, Usage()) + usage
        return dict(sorted(total.items()))


def _total(counts: Iterable[Counter[str]]) -> dict[str, int]:
    return dict(sorted(sum(counts, Counter()).items()))


def _flags(rows: Sequence[Sequence[Any]], wanted: Any) -> Floats:
    return np.array([[float(cell == wanted) for cell in row] for row in rows])


def _ratio(sums: Floats) -> float:
    """Return the mean from (users, 2) sums and counts; NaN when nothing counts."""
    return float(ratios(sums))


def means(results: Results, arrays: Sequence[Floats]) -> float:
    """Return the mean of (periods, questions) arrays over the cells that count."""
    return _ratio(results.cells(arrays))
