"""What a run found out: one result a scenario, read from its journal alone, and their summary.

A fresh run, a resumed one and a re-scored one read the same events, so they cannot differ.
`Results.to_json()` is the format of `results.json`. Paper: AMemGym, Sections 3.4 and 4.3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from amemgym_env import floors as floor
from amemgym_env.answer_bias import answer_bias
from amemgym_env.backend import Usage
from amemgym_env.journal import Event
from amemgym_env.scoring import (
    FAILURES,
    Diagnosis,
    Floats,
    MemoryScore,
    bootstrap,
    diagnose,
    exam_scores,
    mean,
    memory_score,
    uniform_guess,
    write_positions,
)
from amemgym_env.script import Kind, Script
from amemgym_env.turn import NO_ANSWER, UNSCORED


@dataclass(frozen=True)
class ScenarioResult:
    """What one scenario's journal says. Arrays have shape (periods, questions), NaN unscored."""

    script: Script
    accuracy: Floats
    upper_bound: Floats
    never_write: Floats
    diagnosis: Diagnosis
    chosen: npt.NDArray[np.int64]
    """Shown index that was chosen, NO_ANSWER or UNSCORED (also where no exam took place)."""
    causes: Counter[str]
    """Wrong cells without a choice, by cause."""
    unreadable_calls: Counter[str]
    """Replies of any kind that could not be read, by `kind.cause`."""
    retrieved: tuple[float, int]
    """Sum over exam questions of the share of the bank that was retrieved, and their number."""
    in_window: tuple[int, int]
    """Write-position probes whose exposure still stood in the window, and all such probes."""
    unrecognised: int
    """Memories shown in which the simulated model recognised nothing."""
    follow_up_failures: int
    usage: Mapping[str, Usage]
    hash: str | None
    error: str | None
    """Why the scenario was not played to its end, if so."""
    failed_calls: int = 0
    """Calls of the last attempt that could not be answered and are asked again on resume."""
    dropped: tuple[str, ...] = ()
    """Parameters that a model refused and that were not applied."""

    @property
    def complete(self) -> bool:
        """Whether it was played to its end and every cell that was asked for is scored."""
        return self.hash is not None and self.unscored == 0 and self.failed_calls == 0

    @property
    def unscored(self) -> int:
        """Cells without a score."""
        return int(np.isnan(self.accuracy).sum())


def scenario_result(script: Script, events: Sequence[Event]) -> ScenarioResult:
    """Return what a journal's events say about a scenario."""
    starts = [index for index, event in enumerate(events) if event["event"] == "start"]
    last = starts[-1] if starts else 0
    latest = events[last:]
    shape = (len(script.scenario.periods), len(script.scenario.qas))
    chosen = np.full(shape, UNSCORED, np.int64)
    causes: Counter[str] = Counter()
    for event in latest:
        if event["event"] == "exam":
            row = list(event["answers"])[: shape[1]]
            row += [NO_ANSWER] * (shape[1] - len(row))
            chosen[event["period"]] = row
            given = [*event["causes"], *[None] * shape[1]]
            causes.update(
                given[number] or "no_answer" for number, got in enumerate(row) if got == NO_ANSWER
            )
    accuracy = np.stack(
        [
            exam_scores(row.tolist(), right)
            for row, right in zip(chosen, script.right_shown, strict=True)
        ]
    )
    reference = _last(latest, "reference")
    end = _last(latest, "end")
    probes = {event["period"]: event for event in latest if event["event"] == "probe"}
    return ScenarioResult(
        script=script,
        accuracy=accuracy,
        upper_bound=_upper_bound(script, reference),
        never_write=_never_write(script, reference),
        diagnosis=diagnose(script.scenario, accuracy, _known(script, probes)),
        chosen=chosen,
        causes=causes,
        unreadable_calls=Counter(end.get("unreadable", {})),
        retrieved=_retrieved(latest),
        in_window=_in_window(script, probes),
        unrecognised=int(end.get("unrecognised", 0)),
        follow_up_failures=int(end.get("follow_up_failures", 0)),
        usage=_usage(events, last),
        hash=end.get("hash"),
        error=end.get("error"),
        failed_calls=sum(_failed(event) for event in latest),
        dropped=tuple(sorted({name for event in events for name in event.get("dropped") or ()})),
    )


def _failed(event: Event) -> bool:
    """Whether a call failed for good; a follow-up that failed is settled by the script's words."""
    return event["event"] == "call" and "error" in event and event["role"] != "user"


def _last(events: Sequence[Event], kind: str) -> Event:
    return next((event for event in reversed(events) if event["event"] == kind), {})


def _upper_bound(script: Script, reference: Event) -> Floats:
    """Return the score of the informed answer for the true combination of each cell."""
    informed = reference.get("informed")
    rows = [
        [
            float("nan") if informed is None else _score(informed[number][right])
            for number, right in enumerate(rights)
        ]
        for rights in script.scenario.right_choices
    ]
    return np.array(rows)


def _score(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _never_write(script: Script, reference: Event) -> Floats:
    chosen = reference.get("never_write", [UNSCORED] * len(script.scenario.qas))
    return np.stack([exam_scores(chosen, right) for right in script.right_shown])


def _known(script: Script, probes: Mapping[int, Event]) -> Callable[[int, int, str], bool | None]:
    scenario = script.scenario

    def known(period: int, number: int, variable: str) -> bool | None:
        if period not in probes:
            return None
        rows = probes[period]["values"]
        column = scenario.qas[number].variables.index(variable)
        row = rows[number] if number < len(rows) else []
        index = row[column] if column < len(row) else NO_ANSWER
        if index == UNSCORED:
            return None
        values = scenario.state_schema[variable]
        named = values[index] if 0 <= index < len(values) else None
        return named == scenario.periods[period].state[variable]

    return known


def _retrieved(events: Sequence[Event]) -> tuple[float, int]:
    """Return how much of the bank the exams' questions were shown; banks without entries apart."""
    shares = [
        len(ids) / event["stored"]
        for event in events
        if event["event"] == "exam" and event.get("stored")
        for ids in event["retrieved"]
    ]
    return sum(shares), len(shares)


def _in_window(script: Script, probes: Mapping[int, Event]) -> tuple[int, int]:
    positions = write_positions(script.scenario)
    standing = total = 0
    for period, event in probes.items():
        window = {tuple(place) for place in event.get("window") or ()}
        exposed: dict[str, bool] = {}
        for session, conversation in enumerate(script.periods[period]):
            for turn, utterance in enumerate(conversation.utterances):
                for variable, _ in () if utterance.kind is Kind.RE_MENTION else utterance.exposures:
                    exposed[variable] = (session, turn) in window
        for question in script.scenario.qas:
            for variable in question.variables:
                if positions[variable][period] == period:
                    total += 1
                    standing += exposed.get(variable, False)
    return standing, total


def _usage(events: Sequence[Event], last: int) -> dict[str, Usage]:
    """Return usage by role. Real calls are made once however often a run is resumed."""
    usage: dict[str, Usage] = {}
    for index, event in enumerate(events):
        if event["event"] != "call" or (event["key"] is None and index < last):
            continue
        parts = {event["role"]: event["usage"]} if "usage" in event else {}
        if event.get("retries"):
            parts["retries"] = event["retries"]
        for role, part in parts.items():
            usage[role] = usage.get(role, Usage()) + Usage(**part)
    return usage


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
        score = self.memory_score
        parts = self._parts()
        intervals = {
            name: bootstrap(lambda users, rows=rows: _ratio(rows[users]), len(rows))  # type: ignore[misc]
            for name, rows in parts.items()
            if name in ("overall", *FAILURES)
        }
        count = len(self.scenarios)
        intervals["memory_score"] = bootstrap(score.mean_of_ratios, count)
        intervals["memory_score_ratio_of_means"] = bootstrap(score.ratio_of_means, count)
        causes: Counter[str] = Counter()
        unreadable: Counter[str] = Counter()
        for result in self.scenarios:
            causes.update(result.causes)
            unreadable.update(result.unreadable_calls)
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
            "causes": dict(sorted(causes.items())),
            "unreadable_calls": dict(sorted(unreadable.items())),
            "unrecognised": sum(result.unrecognised for result in self.scenarios),
            "follow_up_failures": sum(result.follow_up_failures for result in self.scenarios),
            "unscored": sum(result.unscored for result in self.scenarios),
            "failed_calls": sum(result.failed_calls for result in self.scenarios),
            "dropped_parameters": sorted({n for r in self.scenarios for n in r.dropped}),
            "confidence_interval": {name: list(pair) for name, pair in intervals.items()},
            "accuracy": {r.script.scenario.id: r.accuracy.tolist() for r in self.scenarios},
            "upper_bound_accuracy": {
                r.script.scenario.id: r.upper_bound.tolist() for r in self.scenarios
            },
            "failure": {
                r.script.scenario.id: [list(row) for row in r.diagnosis.failure]
                for r in self.scenarios
            },
            "memory_score_by_period": list(score.by_period),
            "usage": self._usage_json(),
            "hashes": {r.script.scenario.id: r.hash for r in self.scenarios},
            "errors": {r.script.scenario.id: r.error for r in self.scenarios if r.error},
            "stopped": self.stopped,
        }
        plain: dict[str, Any] = _without_nan(document)
        return plain

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

    def _usage_json(self) -> dict[str, Any]:
        total: dict[str, Usage] = {}
        for result in self.scenarios:
            for role, usage in result.usage.items():
                total[role] = total.get(role, Usage()) + usage
        return {role: usage.to_json() for role, usage in sorted(total.items())}


def _flags(rows: Sequence[Sequence[Any]], wanted: Any) -> Floats:
    return np.array([[float(cell == wanted) for cell in row] for row in rows])


def _ratio(sums: Floats) -> float:
    """Return the mean from (users, 2) sums and counts; NaN when nothing counts."""
    total, count = sums.sum(axis=0) if len(sums) else (0.0, 0.0)
    return float(total / count) if count else float("nan")


def means(results: Results, arrays: Sequence[Floats]) -> float:
    """Return the mean of (periods, questions) arrays over the cells that count."""
    return _ratio(results.cells(arrays))


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return value


__all__ = ["Results", "ScenarioResult", "mean", "means", "scenario_result"]
