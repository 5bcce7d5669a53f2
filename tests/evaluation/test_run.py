"""Evaluation: known scores, accounts that add up, and a run that can be killed anywhere."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AWE, AWI, RAG, Native
from amemgym_env.agent import Agent, Exam, Operation, Probe, Turn
from amemgym_env.errors import BudgetExceeded, RunError, TransportError
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.run import Game, evaluate, simulated
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.models.journal import FileJournal, MemoryJournal
from amemgym_env.scenarios.files import load, slug
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.simulated.model import SimulatedModel


class Faulty(SimulatedModel):
    """The exact simulated model, with errors on command."""

    def __init__(self, script: Script, error: Callable[[Call], Exception | None]) -> None:
        super().__init__(script, "exact")
        self.error = error

    def complete(self, call: Call) -> Completion:
        error = self.error(call)
        if error is not None:
            raise error
        return super().complete(call)


def without_times(results: Results) -> str:
    return json.dumps(results.to_json(), sort_keys=True)


@pytest.mark.parametrize("agent", [Native, AWI, AWE], ids=lambda kind: kind.name)
def test_with_exact_reading_a_complete_memory_scores_one(
    tiny: list[Scenario], agent: type[Agent]
) -> None:
    document = evaluate(agent, tiny, backends=simulated("exact")).to_json()
    assert document["overall"] == document["upper_bound"] == document["memory_score"] == 1.0
    assert document["unscored"] == 0
    assert document["simulated"] is True


class Silent:
    """Remembers nothing, so it answers as the model guesses."""

    def __init__(self, models: Models) -> None:
        self.inner = RAG(models, freq=2, ns=0, top_k=0)
        self.top_k = 0

    def reset(self, view: Any) -> None:
        self.inner.reset(view)

    def reply(self, turn: Turn) -> str:
        return "Yes."

    def write(self, turn: Turn, reply: str) -> list[Operation]:
        return []

    def answer(self, exam: Exam) -> Any:
        return self.inner.answer(exam)

    def probe(self, probe: Probe) -> Any:
        return self.inner.probe(probe)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        pass


def test_an_agent_that_never_writes_scores_the_never_write_floor(tiny: list[Scenario]) -> None:
    for profile in ("exact", "confusion_only"):
        document = evaluate(Silent, tiny, backends=simulated(profile)).to_json()
        assert document["overall"] == document["floors"]["never_write"]


@pytest.mark.parametrize("agent", [Native, RAG, AWE, AWI], ids=lambda kind: kind.name)
@pytest.mark.parametrize("difficulty", ["none", "default"])
def test_failures_sum_to_what_is_wrong(
    tiny: list[Scenario], agent: type[Agent], difficulty: str
) -> None:
    document = evaluate(agent, tiny, game=Game(difficulty)).to_json()
    assert math.isclose(sum(document["failures"].values()), 1 - document["overall"], abs_tol=1e-9)


def test_the_seed_of_a_game_matters(tiny: list[Scenario]) -> None:
    hashes = {
        json.dumps(evaluate(AWE, tiny, game=Game(seed=seed)).to_json()["hashes"])
        for seed in range(3)
    }
    assert len(hashes) == 3


@pytest.mark.parametrize("workers", [2, 8])
def test_results_do_not_depend_on_order_or_on_workers(tiny: list[Scenario], workers: int) -> None:
    game = Game("default", seed=5)
    one = evaluate(AWE, tiny, game=game).to_json()
    other = evaluate(AWE, tiny[::-1], game=game, workers=workers).to_json()
    for part in ("accuracy", "hashes", "failure"):
        assert one[part] == other[part]


PROGRAM = """
import json, sys
from agents import AWE
from amemgym_env.evaluation.run import Game, evaluate
document = evaluate(AWE, "tiny", game=Game("default", seed=3)).to_json()
print(json.dumps([document["accuracy"], document["hashes"]], sort_keys=True))
"""


@pytest.mark.slow
def test_two_processes_give_the_same_bytes_whatever_the_hash_seed() -> None:
    root = str(Path(__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root, "TZ": zone},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed, zone in (("1", "UTC"), ("4711", "Asia/Tokyo"))
    }
    assert len(outputs) == 1


def test_b08_14_what_could_not_be_asked_is_unscored_and_counted(tiny: list[Scenario]) -> None:
    asked = [0]

    def every_second_exam(call: Call) -> Exception | None:
        if call.kind != "exam_answer":
            return None
        asked[0] += 1
        return TransportError("gone") if asked[0] % 2 else None

    document = evaluate(
        Native, tiny, backends=lambda script: {"assistant": Faulty(script, every_second_exam)}
    ).to_json()
    cells = [cell for rows in document["accuracy"].values() for row in rows for cell in row]
    assert document["unscored"] == cells.count(None) == sum(range(2)) + (len(cells) + 1) // 2 - 1
    assert document["overall"] == 1.0
    assert "NaN" not in json.dumps(document)


def test_a_scenario_that_fails_in_the_dialogue_keeps_what_was_scored(tiny: list[Scenario]) -> None:
    last = tiny[0].periods[-1].sessions[-1].query

    def late(call: Call) -> Exception | None:
        spoken = call.kind == "assistant_reply" and last in call.messages[-1]["content"]
        return TransportError("connection refused") if spoken else None

    document = evaluate(
        Native, tiny, backends=lambda script: {"assistant": Faulty(script, late)}
    ).to_json()
    rows = document["accuracy"][tiny[0].id]
    assert rows[-1] == [None] * len(tiny[0].qas)
    assert None not in [cell for row in rows[:-1] for cell in row]
    assert document["errors"] == {tiny[0].id: "connection refused"}
    assert document["hashes"][tiny[0].id] is None
    assert document["hashes"][tiny[1].id] is not None


def test_a_spent_budget_stops_and_says_so(tiny: list[Scenario]) -> None:
    calls = [0]

    def spent(call: Call) -> Exception | None:
        calls[0] += 1
        return BudgetExceeded("budget of $1 is spent") if calls[0] > 40 else None

    results = evaluate(Native, tiny, backends=lambda script: {"assistant": Faulty(script, spent)})
    document = results.to_json()
    assert document["stopped"] == "budget of $1 is spent"
    assert 0 < document["unscored"] < sum(np.size(rows) for rows in document["accuracy"].values())


class Counting(Backend):
    """A model that counts its calls as a real one does: its calls are recorded with a key."""

    name = "counting"
    made = 0
    stop_after: int | None = None

    def __init__(self, script: Script) -> None:
        self.inner = SimulatedModel(script, "confusion_only")

    def complete(self, call: Call) -> Completion:
        if Counting.stop_after is not None and Counting.made >= Counting.stop_after:
            raise KeyboardInterrupt
        Counting.made += 1
        return Completion(self.inner.complete(call).text, Usage(1, 10, 2, usd=0.01))


@pytest.mark.parametrize("share", [0.01, 0.2, 0.6, 0.98])
def test_b08_02_b08_03_b08_04_a_stopped_run_continues_without_repeating_a_call(
    tiny: list[Scenario], share: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(folder: Path) -> str:
        results = evaluate(
            AWE,
            tiny,
            backends=lambda script: {"assistant": Counting(script)},
            journal=lambda scenario: FileJournal(folder / f"{slug(scenario.id)}.jsonl"),
        )
        document = results.to_json()
        for usage in document["usage"].values():
            usage["seconds"] = 0
        return json.dumps(document)

    monkeypatch.setattr(Counting, "made", 0)
    whole = run(tmp_path / "whole")
    needed = Counting.made
    monkeypatch.setattr(Counting, "made", 0)
    monkeypatch.setattr(Counting, "stop_after", int(share * needed))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped")
    for file in (tmp_path / "stopped").iterdir():
        file.write_bytes(file.read_bytes() + b'{"event": "turn", "per')  # torn by the kill
    monkeypatch.setattr(Counting, "stop_after", None)
    assert run(tmp_path / "stopped") == whole
    assert Counting.made == needed
    assert run(tmp_path / "stopped") == whole
    assert Counting.made == needed


def test_b08_02_a_line_torn_in_the_middle_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    start = '{"event": "start", "scenario": "a", "script": "b"}'
    file.write_text(f'{start}\n{{"event": "tur\n{start}\n', encoding="utf-8")
    with pytest.raises(RunError, match="line 2"):
        FileJournal(file).read()


def test_a_journal_of_another_script_is_refused(tiny: list[Scenario]) -> None:
    journals = {scenario.id: MemoryJournal() for scenario in tiny}

    def play(seed: int) -> Results:
        return evaluate(
            Native,
            tiny,
            game=Game(seed=seed),
            journal=lambda scenario: nullcontext(journals[scenario.id]),
        )

    play(0)
    with pytest.raises(RunError, match="another run"):
        play(1)


def test_b04_06_scenarios_of_different_sizes_are_not_padded(tiny: list[Scenario]) -> None:
    results = evaluate(RAG, tiny, backends=simulated("exact"))
    document = results.to_json()
    for scenario in tiny:
        rows = document["accuracy"][scenario.id]
        assert (len(rows), len(rows[0])) == (len(scenario.periods), len(scenario.qas))
    longest = max(len(scenario.periods) for scenario in tiny)
    assert len(document["memory_score_by_period"]) == longest


def test_floors_on_the_real_set(real_data: Path) -> None:
    document = evaluate(
        Silent, load(real_data), game=Game(diagnosis=False, upper_bound=False)
    ).to_json()
    assert round(document["random"], 6) == 0.230762
    assert round(document["floors"]["first_stored"], 4) == 0.2568
    assert document["memory_score"] is None


def test_exact_native_and_awi_are_perfect_on_the_real_set(real_data: Path) -> None:
    scenarios = load(real_data)[:3]
    for agent in (Native, AWI):
        document = evaluate(agent, scenarios, backends=simulated("exact")).to_json()
        assert document["overall"] == document["upper_bound"] == 1.0
