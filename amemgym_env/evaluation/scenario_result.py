"""Result of one scenario, computed from its journal: scores, failures, retrievals, usage.

A fresh, a resumed and a re-scored run read the same events and cannot differ.
Paper: AMemGym, Sections 3.4 and 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import NO_ANSWER, UNSCORED
from amemgym_env.envs.rewards import Floats, exam_scores
from amemgym_env.evaluation.diagnosis import Diagnosis, diagnose, write_positions
from amemgym_env.models.client import Usage
from amemgym_env.models.events import (
    CallEvent,
    EndEvent,
    Event,
    ExamEvent,
    ProbeEvent,
    ReferenceEvent,
)
from amemgym_env.models.last_play import calls_in, last_play
from amemgym_env.scenarios.script import Kind, Script


@dataclass(frozen=True)
class ScenarioResult:
    """Result of one scenario. Arrays have shape (periods, questions), NaN unscored."""

    script: Script
    accuracy: Floats
    upper_bound: Floats
    never_write: Floats
    diagnosis: Diagnosis
    chosen: npt.NDArray[np.int64]
    """Shown index that was chosen, NO_ANSWER or UNSCORED (also where no exam took place)."""
    causes: Counter[str]
    """Wrong cells without a choice, by cause."""
    unscored_causes: Counter[str]
    """Cells without a score, by what kept them from being asked: a `Reason`, or `not_played`."""
    probe_causes: Counter[str]
    """Probed values that were not named, by cause; only `no_answer` says that one was not known."""
    unreadable_calls: Counter[str]
    """Replies of any kind that could not be read, by `kind.cause`."""
    retrieved: tuple[float, int]
    """Sum over exam questions of the share of the bank that was retrieved, and their number."""
    in_window: tuple[int, int]
    """Write-position probes whose exposure still stood in the window, and all such probes."""
    index_recall: tuple[int, int]
    """Nearest entries that an approximate index found, and those it was asked for; else zeros."""
    unrecognised: int
    """Memories shown in which the simulated model recognised nothing."""
    follow_up_failures: int
    usage: Mapping[str, Usage]
    hash: str | None
    error: str | None
    """Why the scenario was not played to its end, if so."""
    failed_calls: Counter[str] = field(default_factory=Counter)
    """Calls that could not be answered the last time, by `Reason`; a resumed run asks again."""
    dropped: tuple[str, ...] = ()
    """Parameters that a model refused and that were not applied."""
    cut_prompts: int = 0
    """Calls of which the provider counted far fewer prompt tokens than were sent."""

    @property
    def complete(self) -> bool:
        """Whether it was played to its end and every cell that was asked for is scored."""
        return self.hash is not None and self.unscored == 0 and not self.failed_calls

    @property
    def unscored(self) -> int:
        """Cells without a score."""
        return int(np.isnan(self.accuracy).sum())


def scenario_result(script: Script, events: Sequence[Event]) -> ScenarioResult:
    """Return the result of the last attempt in a journal."""
    play = last_play(events)
    shape = (len(script.scenario.periods), len(script.scenario.qas))
    end = play.end or EndEvent(None, None)
    chosen, causes, unscored = _answers(play.exams, shape, _unasked(end))
    accuracy = np.stack(
        [
            exam_scores(row.tolist(), right)
            for row, right in zip(chosen, script.right_shown, strict=True)
        ]
    )
    return ScenarioResult(
        script=script,
        accuracy=accuracy,
        upper_bound=_upper_bound(script, play.reference),
        never_write=_never_write(script, play.reference),
        diagnosis=diagnose(script.scenario, accuracy, _known(script, play.probes)),
        chosen=chosen,
        causes=causes,
        unscored_causes=unscored,
        probe_causes=Counter(
            cause or "no_answer"
            for event in play.probes.values()
            for row, causes in zip(event.values, event.causes, strict=True)
            for index, cause in zip(row, causes, strict=True)
            if index == NO_ANSWER
        ),
        unreadable_calls=Counter(end.unreadable),
        retrieved=_retrieved(play.exams),
        in_window=_in_window(script, play.probes),
        index_recall=end.index_recall or (0, 0),
        unrecognised=end.unrecognised,
        follow_up_failures=end.follow_up_failures,
        usage=_usage(play.calls),
        hash=end.hash,
        error=end.error,
        failed_calls=Counter(
            # A follow-up that failed is settled: the script's words took its place.
            call.reason
            for call in play.of(CallEvent)
            if call.failed and call.role != "user"
        ),
        dropped=tuple(sorted({name for call in calls_in(events) for name in call.dropped})),
        cut_prompts=sum("prompt_shortfall" in call.details for call in play.calls),
    )


def _answers(
    exams: Mapping[int, ExamEvent], shape: tuple[int, int], unasked: str
) -> tuple[npt.NDArray[np.int64], Counter[str], Counter[str]]:
    """Return the chosen indices, and the cells without a choice by cause: wrong, and unscored.

    `unasked` is the cause of cells whose exam did not take place.
    """
    periods, questions = shape
    chosen = np.full(shape, UNSCORED, np.int64)
    wrong: Counter[str] = Counter()
    unscored = Counter({unasked: periods * questions})
    for period, event in exams.items():
        row = list(event.answers)[:questions]
        row += [NO_ANSWER] * (questions - len(row))
        chosen[period] = row
        unscored[unasked] -= questions
        for got, cause in zip(row, [*event.causes, *[None] * questions], strict=False):
            if got == NO_ANSWER:
                wrong[cause or "no_answer"] += 1
            elif got == UNSCORED:
                unscored[cause or "other"] += 1
    return chosen, wrong, +unscored


def _unasked(end: EndEvent) -> str:
    """Return why exams did not take place, from the scenario's last event."""
    return "not_played" if end.error is None else end.reason or "other"


def _upper_bound(script: Script, reference: ReferenceEvent | None) -> Floats:
    """Return the score of the informed answer for the true combination of each cell."""
    informed = None if reference is None else reference.informed
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


def _never_write(script: Script, reference: ReferenceEvent | None) -> Floats:
    unasked = (UNSCORED,) * len(script.scenario.qas)
    chosen = unasked if reference is None else reference.never_write
    return np.stack([exam_scores(chosen, right) for right in script.right_shown])


def _known(
    script: Script, probes: Mapping[int, ProbeEvent]
) -> Callable[[int, int, str], bool | None]:
    scenario = script.scenario
    # An unreadable reply is no evidence about the memory.
    unread = {
        period: {
            (number, column)
            for number, row in enumerate(event.causes)
            for column, cause in enumerate(row)
            if cause not in (None, "no_answer")
        }
        for period, event in probes.items()
    }

    def known(period: int, number: int, variable: str) -> bool | None:
        if period not in probes:
            return None
        rows = probes[period].values
        column = scenario.qas[number].variables.index(variable)
        row = rows[number] if number < len(rows) else ()
        index = row[column] if column < len(row) else NO_ANSWER
        if index == UNSCORED or (number, column) in unread[period]:
            return None
        values = scenario.state_schema[variable]
        named = values[index] if 0 <= index < len(values) else None
        return named == scenario.periods[period].state[variable]

    return known


def _retrieved(exams: Mapping[int, ExamEvent]) -> tuple[float, int]:
    """Return sum and number of the shares of a non-empty bank that exam questions showed."""
    shares = [
        len(ids) / event.stored
        for event in exams.values()
        if event.stored
        for ids in event.retrieved
    ]
    return sum(shares), len(shares)


def _in_window(script: Script, probes: Mapping[int, ProbeEvent]) -> tuple[int, int]:
    positions = write_positions(script.scenario)
    standing = total = 0
    for period, event in probes.items():
        window = set(event.window or ())
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


def _usage(calls: Sequence[CallEvent]) -> dict[str, Usage]:
    """Return usage by role."""
    usage: dict[str, Usage] = {}
    for call in calls:
        for role, part in ((call.role, call.usage), ("retries", call.retries)):
            if part is not None:
                usage[role] = usage.get(role, Usage()) + part
    return usage
