"""Live progress: what is counted, and that its line fits a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from amemgym_env.evaluation.run import evaluate
from amemgym_env.models.events import CallEvent, EndEvent, ExamEvent, TurnEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.model import Scenario
from experiments.app.progress import Progress

TURN = TurnEvent(0, 0, 0, "", "", "")
EXAM = ExamEvent(0, (), ())
END = EndEvent(None, None)


def call(usd: float | None) -> CallEvent:
    return CallEvent("exam_answer", "exam", None, 0, usage=Usage(usd=usd))


def test_turns_calls_and_dollars_are_counted(tiny: list[Scenario]) -> None:
    progress = Progress(2, shown=False)
    for event in (TURN, call(0.25), call(0.5), EXAM):
        progress.event(tiny[0], event)
    assert progress.counts() == "0/2 scenarios, 1 turns, 2 calls, $0.75"
    progress.event(tiny[0], END)
    assert progress.counts().startswith("1/2 scenarios")


def test_an_unknown_price_is_no_zero(tiny: list[Scenario]) -> None:
    progress = Progress(1, shown=False)
    for event in (call(0.25), call(None), call(0.25)):
        progress.event(tiny[0], event)
    assert progress.counts().endswith("$?")


def test_the_bar_moves_while_no_scenario_has_ended(tiny: list[Scenario]) -> None:
    progress = Progress(2, shown=False)
    progress.event(tiny[0], EXAM)
    task = progress._bar.tasks[0]
    assert 0 < task.completed < 1
    progress.event(tiny[0], END)
    assert task.completed == 1


def test_the_line_fits_80_columns(tiny: list[Scenario], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    with Progress(1000, console=console) as progress:
        progress._turns, progress._calls, progress._ended = 94_000, 518_000, 999
        progress._spend(Usage(usd=1234.5))
        progress.event(tiny[0], EXAM)
    lines = [line for line in out.getvalue().replace("\r", "\n").splitlines() if "turns" in line]
    assert lines
    assert any("$1,234.50" in line for line in lines)


def test_a_resumed_run_counts_what_it_holds_already(tiny: list[Scenario]) -> None:
    from contextlib import nullcontext

    from agents import RAG

    journals = {scenario.id: MemoryJournal() for scenario in tiny}
    ended = []

    def play() -> None:
        evaluate(
            RAG,
            tiny,
            journal=lambda scenario: nullcontext(journals[scenario.id]),
            progress=lambda scenario, event: ended.append(isinstance(event, EndEvent)),
        )

    play()
    assert sum(ended) == len(tiny)
    ended.clear()
    play()
    assert ended == [True] * len(tiny)
