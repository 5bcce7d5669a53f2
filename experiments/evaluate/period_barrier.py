"""Barrier after each period of a run, at which the run can be pruned.

Each scenario is played in its own thread. After an exam a thread waits for the others; then the
accuracy so far is reported, and the run continues or is pruned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from amemgym_env.agent import UNSCORED
from amemgym_env.models.events import Event, ExamEvent
from amemgym_env.models.journal import Journal
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script

Report = Callable[[int, float], bool]
"""(period, accuracy over all exams so far) -> whether to prune the run."""


class RunPruned(Exception):
    """The run was pruned: its results so far are behind other runs."""


class PeriodBarrier:
    """Give `journal` and `event` to an evaluation that plays all scenarios side by side."""

    def __init__(self, scripts: Mapping[str, Script], report: Report) -> None:
        self.scripts = scripts
        self.report = report
        self._playing = set(scripts)
        self._arrived: dict[int, set[str]] = {}
        self._decided: dict[int, bool] = {}
        self._right = self._scored = 0
        self._condition = threading.Condition()

    def journal(
        self, opened: Callable[[Scenario], AbstractContextManager[Journal]]
    ) -> Callable[[Scenario], AbstractContextManager[Journal]]:
        """Return journals that report the end of their scenario, in whatever way it ends."""

        @contextmanager
        def around(scenario: Scenario) -> Iterator[Journal]:
            try:
                with opened(scenario) as journal:
                    yield journal
            finally:
                with self._condition:
                    self._playing.discard(scenario.id)
                    self._settle()

        return around

    def event(self, scenario: Scenario, event: Event) -> None:
        """Wait after an exam until all scenarios have had it.

        Raises:
            RunPruned: the report prunes the run.
        """
        if not isinstance(event, ExamEvent):
            return
        period = event.period
        right = self.scripts[scenario.id].right_shown[period]
        with self._condition:
            for answer, truth in zip(event.answers, right, strict=False):
                self._right += answer == truth
                self._scored += answer != UNSCORED
            self._arrived.setdefault(period, set()).add(scenario.id)
            self._settle()
            while period not in self._decided:
                self._condition.wait()
            if self._decided[period]:
                raise RunPruned(f"after period {period}")

    def _settle(self) -> None:
        for period, names in self._arrived.items():
            if period not in self._decided and self._playing <= names:
                accuracy = self._right / self._scored if self._scored else float("nan")
                self._decided[period] = self.report(period, accuracy)
                self._condition.notify_all()
