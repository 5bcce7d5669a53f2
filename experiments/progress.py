"""Live progress of an evaluation on standard error; silent where nobody looks."""

from __future__ import annotations

import sys
import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from amemgym_env.journal import Event
from amemgym_env.scenario import Scenario


class Progress:
    """A bar over scenarios with the turns, calls and dollars so far."""

    def __init__(self, scenarios: int, *, shown: bool = True) -> None:
        self._lock = threading.Lock()
        self._turns = self._calls = 0
        self._usd = 0.0
        self._bar = Bar(
            TextColumn("scenarios"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not (shown and sys.stderr.isatty()),
        )
        self._task = self._bar.add_task("", total=scenarios, counts="")

    def event(self, scenario: Scenario, event: Event) -> None:
        """Count an event; called from the threads that play."""
        with self._lock:
            if event["event"] == "turn":
                self._turns += 1
            elif event["event"] == "call":
                self._calls += 1
                self._usd += (event.get("usage") or {}).get("usd") or 0.0
            if event["event"] == "end":
                self._bar.advance(self._task)
            counts = f"{self._turns} turns, {self._calls} calls, ${self._usd:.2f}"
            self._bar.update(self._task, counts=counts)

    def __enter__(self) -> Progress:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        self._bar.stop()
