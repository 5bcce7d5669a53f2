"""Stopwatch of the benchmark, and its Markdown tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self


class Stopwatch:
    """Sums the seconds spent in its `with` blocks; processor time unless another clock is given."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._start = 0.0

    def __enter__(self) -> Self:
        """Start the clock."""
        self._start = self._clock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the clock."""
        self.seconds += self._clock() - self._start


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]], names: int = 1) -> str:
    """Return a Markdown table whose first `names` columns are text, the others numbers."""
    rule = ["---"] * names + ["--:"] * (len(columns) - names)
    lines = [f"| {' | '.join(columns)} |", f"|{'|'.join(rule)}|"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])
