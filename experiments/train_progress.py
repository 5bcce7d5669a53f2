"""Live progress of a training on standard error; silent where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class TrainProgress:
    """A bar over rounds with the seed and the return of late training episodes."""

    def __init__(self, rounds: int) -> None:
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} rounds {task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("", total=rounds, state="")

    def of(self, number: int, seed: int, rounds: int) -> Callable[[int, float], None]:
        """Return what the training of a seed reports to, `number` of them being done."""

        def report(steps: int, reward: float) -> None:
            state = f"seed {seed}, reward {reward:.2f}"
            self._bar.update(
                self._task, completed=number * rounds + min(steps, rounds), state=state
            )

        return report

    def __enter__(self) -> TrainProgress:
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
