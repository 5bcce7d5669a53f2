"""Counterfactual credit of a run: the most valuable and the most harmful operations.

    python -m experiments.report credit runs/evaluate-0001

Every exam is replayed without one operation (or, with `--entries`, without one entry), everything
else as it was. Baseline: the run itself. A credit of .01 is .01 of its scenario's overall score.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from amemgym_env.errors import AMemGymError, RunError
from amemgym_env.evaluation.credit import Credit, CreditReplay, RecordedPlay
from experiments.app.terminal import terminal
from experiments.report.recorded_run import RecordedRun


class Found(NamedTuple):
    """A credit with the scenario that it belongs to."""

    scenario: str
    credit: Credit


def credits_of(run: RecordedRun, scenario: str | None = None, *, entries: bool) -> list[Found]:
    """Return the credits of a run's operations, or entries, in order of play.

    Raises:
        RunError: the run has no such scenario, or its agent keeps its memory to itself.
    """
    found = []
    scripts = [item for item in run.scripts if scenario in (None, item.scenario.id)]
    if not scripts:
        raise RunError(
            f"--scenario: expected one of {[item.scenario.id for item in run.scripts][:20]}, "
            f"found {scenario!r}"
        )
    for script in scripts:
        events = run.events(script)
        recording = RecordedPlay.of(script, events)
        agent = run.agent(run.models(script, events))
        if getattr(agent, "memory", "external") == "external":
            raise RunError(f"{run.path}: expected an agent that writes to the bank, found its own")
        capacity = run.settings.capacity or script.difficulty.capacity
        replay = CreditReplay(recording, agent, run.top_k(agent), capacity)
        credits = replay.entries() if entries else replay.operations()
        found += [Found(script.scenario.id, credit) for credit in credits]
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the most valuable and most harmful operations; return the exit status."""
    parser = argparse.ArgumentParser(prog="report credit")
    parser.add_argument("run", help="folder of an evaluation")
    parser.add_argument("--scenario", help="id of one scenario; default: all")
    parser.add_argument("--entries", action="store_true", help="credit entries, not operations")
    parser.add_argument("--top", type=int, default=10, help="how many of each to print")
    parser.add_argument("--json", help="a file for all credits, as JSON Lines")
    given = parser.parse_args(list(arguments))
    try:
        found = credits_of(RecordedRun.open(given.run), given.scenario, entries=given.entries)
    except AMemGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(_plain(item)) + "\n" for item in found)
    _print(found, given.top, "entries" if given.entries else "operations")
    return 0


def _print(found: Sequence[Found], top: int, what: str) -> None:
    console = terminal(None)
    ranked = sorted(found, key=lambda item: -item.credit.value)
    sums: dict[str, list[float]] = defaultdict(list)
    for item in found:
        sums[item.credit.step.operation.op].append(item.credit.value)
    for op, values in sorted(sums.items()):
        harmful = sum(value < 0 for value in values)
        idle = sum(value == 0 for value in values)
        console.print(
            f"{op}: {len(values)} {what}, mean credit {sum(values) / len(values):+.4f}, "
            f"{idle} without effect, {harmful} harmful"
        )
    for title, rows in (
        ("most valuable", [item for item in ranked if item.credit.value > 0][:top]),
        ("most harmful", [item for item in ranked[::-1] if item.credit.value < 0][:top]),
    ):
        console.print(f"\n{title} {what}")
        for item in rows:
            console.print(f"  {_line(item)}")
        if not rows:
            console.print("  none")


def _line(item: Found) -> str:
    step, value, gained, lost = item.credit
    text = " ".join((step.operation.text or "").split())
    return (
        f"{value:+.4f} (+{gained} -{lost})  {item.scenario} period {step.period} session "
        f"{step.session} round {step.round}  {step.operation.op} [{step.entry_id}] {text:.90}"
    )


def _plain(item: Found) -> dict[str, object]:
    step, value, gained, lost = item.credit
    return {
        "scenario": item.scenario,
        "period": step.period,
        "session": step.session,
        "round": step.round,
        "number": step.number,
        "op": step.operation.op,
        "entry": step.entry_id,
        "text": step.operation.text,
        "worth": value,
        "gained": gained,
        "lost": lost,
    }
