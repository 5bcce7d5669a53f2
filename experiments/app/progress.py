"""Progress bar of an evaluation on standard error; off when it is not a terminal."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from amemgym_env.models.events import CallEvent, EndEvent, Event, ExamEvent, TurnEvent
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.model import Scenario


class Live:
    """A bar on standard error that goes away when its work is done."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def __enter__(self) -> Self:
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


class Progress(Live):
    """A bar with scenarios, turns, calls, dollars and the time left.

    The bar moves with every period of every scenario: with many scenarios side by side, none may
    end for an hour.
    """

    def __init__(
        self, scenarios: int, *, shown: bool = True, console: Console | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._total = scenarios
        self._turns = self._calls = self._ended = 0
        self._usd: float | None = 0.0
        self._share: dict[str, float] = {}
        console = console or Console(stderr=True)
        super().__init__(
            Bar(
                BarColumn(bar_width=10),
                TextColumn("{task.fields[counts]}"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=console,
                transient=True,
                disable=not (shown and sys.stderr.isatty()),
            )
        )
        self._task = self._bar.add_task("", total=float(scenarios), counts=self.counts())

    def event(self, scenario: Scenario, event: Event) -> None:
        """Count an event; called from the threads that play."""
        with self._lock:
            if isinstance(event, TurnEvent):
                self._turns += 1
            elif isinstance(event, CallEvent):
                self._calls += 1
                self._spend(event.usage or Usage())
            elif isinstance(event, EndEvent):
                self._ended += 1
                self._share[scenario.id] = 1.0
            elif isinstance(event, ExamEvent):
                self._share[scenario.id] = (event.period + 1) / (len(scenario.periods) + 1)
            done = sum(self._share.values())
            self._bar.update(self._task, completed=done, counts=self.counts())

    def counts(self) -> str:
        """Return the counts so far; an unknown price is no zero."""
        dollars = "$?" if self._usd is None else f"${self._usd:,.2f}"
        scenarios = f"{self._ended}/{self._total} scenarios"
        return f"{scenarios}, {_short(self._turns)} turns, {_short(self._calls)} calls, {dollars}"

    def _spend(self, usage: Usage) -> None:
        unknown = self._usd is None or usage.usd is None
        self._usd = None if unknown else (self._usd or 0.0) + (usage.usd or 0.0)


def _short(count: int) -> str:
    """Return a count that keeps the line within 80 columns."""
    return f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"
