"""Cases from the field that belong to no single part: counted failures, names, stale facts."""

from __future__ import annotations

from typing import Any

import pytest

from agents import RAG
from amemgym_env.agent import Entry, Operation
from amemgym_env.errors import ScenarioError
from amemgym_env.evaluation.run import evaluate, simulated
from amemgym_env.memory.bank import Bank
from amemgym_env.memory.index import MemoryIndex
from amemgym_env.models.client import Call, Completion, Models
from amemgym_env.prompts.memory import MemoryDecision
from amemgym_env.scenarios.files import parse
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from amemgym_env.simulated.model import SimulatedModel, fact_text
from experiments.app.terminal import notes


class Mumbling(SimulatedModel):
    """Answers every exam question of period 0 in words that name no choice."""

    def complete(self, call: Call) -> Completion:
        done = super().complete(call)
        if call.kind == "exam_answer" and "black coffee" not in str(call.messages):
            return done._replace(text="I think the second or the third would do.")
        return done


def test_b08_06_unreadable_answers_are_wrong_and_counted_in_any_order(
    tiny: list[Scenario],
) -> None:
    def play(scenarios: list[Scenario]) -> dict[str, Any]:
        results = evaluate(
            RAG, scenarios, backends=lambda script: {"assistant": Mumbling(script, "exact")}
        )
        return results.to_json()

    one, other = play(tiny), play(tiny[::-1])
    assert one["causes"]["unreadable"] > 0
    assert one["accuracy"] == other["accuracy"]
    assert one["causes"] == other["causes"]
    assert one["unscored"] == 0


def test_b08_08_an_unknown_kind_of_choice_is_refused(tiny_items: list[dict[str, Any]]) -> None:
    tiny_items[0]["qas"][0]["answer_choices"][0]["type"] = "7"
    with pytest.raises(ScenarioError, match=r"answer_choices\[0\]\.type.*'experience' or 'random'"):
        parse(tiny_items)


def test_b08_13_retrieval_of_nearly_everything_is_told(tiny: list[Scenario]) -> None:
    def told(top_k: int) -> tuple[float, list[str]]:
        results = evaluate(
            lambda models: RAG(models, freq=2, ns=0, top_k=top_k),
            tiny,
            backends=simulated("exact"),
            settings={"agent": {"top_k": top_k}},
        )
        file = results.file()
        return file.retrieved_share or 0.0, notes(file)

    share, lines = told(50)
    assert share == 1.0
    assert "100% of the memory is retrieved: top_k leaves next to nothing out" in lines
    share, lines = told(1)
    assert 0 < share < 0.9
    assert not [line for line in lines if "of the memory is retrieved" in line]


def test_b10_02_of_three_values_over_time_one_current_entry_is_left(
    tiny: list[Scenario],
) -> None:
    script = build(tiny[0])
    name = tiny[0].variables[0]
    models = Models({"assistant": SimulatedModel(script, "exact")})
    first, second = tiny[0].state_schema[name][:2]
    bank = Bank()
    for turn, value in enumerate((first, second, first)):
        fact = fact_text(name, value)
        decided = models.ask(MemoryDecision((fact,), bank.entries)).value or ()
        bank, _ = bank.apply_all(decided, f"2024-0{turn + 1}-01", turn)
    assert [entry.text for entry in bank.entries] == [fact_text(name, first)]
    assert bank.entries[0].turn == 2
    index = MemoryIndex()
    index.load(bank)
    assert [entry.text for entry in index.search(name, 2)] == [fact_text(name, first)]


def test_b10_07_only_facts_of_the_same_attribute_are_superseded(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    one, other = tiny[0].variables[:2]
    models = Models({"assistant": SimulatedModel(script, "exact")})
    stored = tuple(
        Entry(str(number), fact_text(name, tiny[0].state_schema[name][0]), "2024", "2024", number)
        for number, name in enumerate((one, other))
    )
    new = fact_text(other, tiny[0].state_schema[other][1])
    decided = models.ask(MemoryDecision((new,), stored)).value
    assert decided == (Operation.update("1", new),)


def test_b10_14_the_same_fact_twice_is_one_entry_and_ids_are_never_shared() -> None:
    same = [Operation.add("likes tea")] * 2
    assert len(Bank().apply_all(same, "2024-01-01", 0)[0].entries) == 1
    different = [Operation.add("likes tea"), Operation.add("likes rain")]
    entries = Bank().apply_all(different, "2024-01-01", 0)[0].entries
    assert len({entry.id for entry in entries}) == 2
