"""Transcript of a scenario as plain text: turns, operations, exams, and the cost of each call.

Reads a journal alone. Each turn, exam and probe is followed by its calls.

    python -m experiments.report transcript RUN            # the first scenario
    python -m experiments.report transcript RUN SCENARIO
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from amemgym_env.errors import InputError, RunError, near
from amemgym_env.models.events import (
    CallEvent,
    EndEvent,
    Event,
    ExamEvent,
    ProbeEvent,
    ReferenceEvent,
    StartEvent,
    TurnEvent,
)
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.usage import Usage
from experiments.app.run_folder import inside
from experiments.report.step_log import step_log

_SHORT = 160


def transcript(events: Sequence[Event]) -> str:
    """Return the last attempt at a scenario, with the calls of all attempts.

    Calls that a resumed run did not repeat are listed before the start.
    """
    log = step_log(events)
    lines: list[str] = []
    if log.play.earlier_calls:
        count = len(log.play.earlier_calls)
        lines.append(f"== {count} calls were made before the run was resumed ==")
        lines += _calls(log.play.earlier_calls)
    for step in log.steps:
        lines += _event(step.event)
        lines += _calls(step.calls)
    total = sum((call.usage or Usage() for call in log.play.calls), Usage())
    lines.append(f"== in all: {_cost(total)} ==")
    return "\n".join(lines)


def _event(event: Event | None) -> Iterator[str]:
    match event:
        case StartEvent():
            yield f"== scenario {event.scenario} =="
        case ReferenceEvent():
            yield "== upper bound: every question with the true values =="
        case TurnEvent():
            place = f"period {event.period}, session {event.session}, round {event.round}"
            yield f"-- {place}, {event.time} --"
            yield f"user: {event.message}"
            yield f"assistant: {event.reply}"
            if event.retrieved:
                yield f"  retrieved: {', '.join(event.retrieved)}"
            for operation, entry_id, text, status in event.operations:
                named = operation if entry_id is None else f"{operation} {entry_id}"
                yield f"  memory: {named}{'' if text is None else f' {text!r}'}: {status}"
        case ExamEvent():
            shown = [
                f"{choice + 1}" if choice >= 0 else str(cause or "not asked")
                for choice, cause in zip(event.answers, event.causes, strict=True)
            ]
            yield f"== exam after period {event.period}: chosen {', '.join(shown)} =="
        case ProbeEvent():
            yield f"== probe after period {event.period} =="
        case EndEvent():
            yield f"== end{': ' + event.error if event.error else ''} =="


def _calls(calls: Sequence[CallEvent]) -> Iterator[str]:
    for call in calls:
        flat = " ".join((call.error or call.text or "").split())
        shown = flat if len(flat) <= _SHORT else f"{flat[:_SHORT]}..."
        mark = f" [{call.cause}]" if call.cause else ""
        failed = " [failed]" if call.failed else ""
        cost = _cost(call.usage or Usage())
        yield f"  call {call.kind} ({call.role}), {cost}{mark}{failed}: {shown}"


def _cost(usage: Usage) -> str:
    dollars = "price unknown" if usage.usd is None else f"${usage.usd:.6f}"
    about = "about " if usage.estimated else ""
    return (
        f"{usage.calls} calls, {about}{usage.prompt_tokens} + {usage.completion_tokens} tokens, "
        f"{dollars}, {usage.seconds:.2f} s"
    )


def of_run(run: Path, scenario: str | None = None) -> str:
    """Return the transcript of a scenario of a run, by its id; None: the first.

    Raises:
        RunError: there is no run, or no such scenario in it.
    """
    known: dict[str, Path] = {}
    for path in sorted((run / "journals").glob("*.jsonl")):
        events = FileJournal(inside(run, path)).read()
        known.update({event.scenario: path for event in events if isinstance(event, StartEvent)})
    if not known:
        raise RunError(f"{run}: expected the folder of a run, found no scenario that was played")
    chosen = next(iter(known)) if scenario is None else scenario
    if chosen not in known:
        raise RunError(
            f"{run}: expected one of its {len(known)} scenarios, found {chosen!r}"
            f"{near(chosen, known)}"
        )
    return transcript(FileJournal(known[chosen]).read())


def main(arguments: Sequence[str]) -> int:
    """Print a scenario of a run; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="report transcript", description="Print a scenario of a run with its costs."
    )
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("scenario", nargs="?", help="its id; default: the first")
    given = parser.parse_args(list(arguments))
    try:
        print(of_run(given.run, given.scenario))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
