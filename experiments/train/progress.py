"""Progress of a training on standard error: one line per stage, and a bar on terminals."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.app.progress import Live

Say = Callable[[str], None]
"""Callback with a progress message."""


class TrainProgress(Live):
    """Lines with the seconds since the job began, and a bar over the rounds of all seeds."""

    def __init__(self, rounds: int, console: Console | None = None) -> None:
        self._console = console or Console(
            stderr=True, highlight=False, emoji=False, soft_wrap=True
        )
        self._began = time.monotonic()
        super().__init__(
            Progress(
                TextColumn("training"),
                BarColumn(bar_width=20),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} rounds {task.fields[state]}"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=self._console,
                transient=True,
                disable=not sys.stderr.isatty(),
            )
        )
        self._task = self._bar.add_task("", total=rounds, state="")

    def say(self, doing: str) -> None:
        """Write a line above the bar."""
        self._console.print(f"{time.monotonic() - self._began:5.0f} s  {doing}", markup=False)

    def of(self, number: int, seed: int, rounds: int) -> Callable[[int, float], None]:
        """Return the report callback of a seed, after `number` finished seeds."""

        def report(steps: int, reward: float) -> None:
            # Before the first episode has ended there is no reward.
            state = f"seed {seed}" if math.isnan(reward) else f"seed {seed}, reward {reward:.2f}"
            self._bar.update(
                self._task, completed=number * rounds + min(steps, rounds), state=state
            )

        return report
