"""A journal as the page shows it: what was said, done and answered, and what each step cost.

Only what follows the last start counts, as in `results`; calls of a real model count wherever they
stand, since they are made once however often a run is resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from amemgym_env.models.client import Usage
from amemgym_env.models.journal import Event

Step = tuple[str, int, int, int]
"""(kind, period, session, round); session and round are 0 at exams and probes."""


@dataclass
class StepLog:
    """The steps of one scenario's latest play."""

    turns: list[Event] = field(default_factory=list)
    exams: dict[int, Event] = field(default_factory=dict)
    probes: dict[int, Event] = field(default_factory=dict)
    costs: dict[Step, Usage] = field(default_factory=dict)
    reference: Usage = field(default_factory=Usage)
    """Cost of the upper bound and of the floor that asks without a memory."""


def step_log(events: Sequence[Event]) -> StepLog:
    """Return the steps that a journal's events tell of."""
    starts = [index for index, event in enumerate(events) if event["event"] == "start"]
    last = starts[-1] if starts else 0
    log = StepLog()
    pending = Usage()
    for index, event in enumerate(events):
        kind = event["event"]
        if kind == "call":
            if "usage" in event and (event["key"] is not None or index >= last):
                pending += Usage(**event["usage"])
                pending += Usage(**(event.get("retries") or {}))
            continue
        if kind in ("turn", "exam", "probe"):
            step = (kind, event["period"], event.get("session", 0), event.get("round", 0))
            log.costs[step] = log.costs.get(step, Usage()) + pending
            if index >= last:
                _keep(log, kind, event)
        elif kind == "reference":
            log.reference += pending
        pending = Usage()
    return log


def _keep(log: StepLog, kind: str, event: Event) -> None:
    if kind == "turn":
        log.turns.append(event)
    elif kind == "exam":
        log.exams[event["period"]] = event
    else:
        log.probes[event["period"]] = event


def compact(usage: Usage) -> list[Any]:
    """Return [calls, tokens, dollars or None, seconds]."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    dollars = None if usage.usd is None else round(usage.usd, 6)
    return [usage.calls, tokens, dollars, round(usage.seconds, 3)]
