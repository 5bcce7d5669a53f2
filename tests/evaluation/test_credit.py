"""Credit of memory operations on the hand-solvable set, each value worked out by hand.

tiny-ada has two periods and two questions, one about each variable: four cells. The agent below
answers a question when its memory holds a note for every variable, by the newest note, and else
gives no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from amemgym_env.agent import NO_ANSWER, Answer, Exam, Op, Operation, Probe, Turn, Value
from amemgym_env.errors import RunError
from amemgym_env.evaluation.credit import CreditReplay, RecordedPlay
from amemgym_env.evaluation.run import Game, evaluate
from amemgym_env.models.events import StartEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build


class Notes:
    """Writes what it is told to; answers by the newest note of each variable, or not at all."""

    memory = "bank"
    top_k = -1

    def __init__(
        self, script: Script, written: dict[tuple[int, int, int], list[Operation]]
    ) -> None:
        self.script = script
        self.written = written

    def reset(self, view: Any) -> None:
        pass

    def reply(self, turn: Turn) -> str:
        return "Noted."

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        return self.written.get((turn.period, turn.session, turn.round), [])

    def answer(self, exam: Exam) -> list[Answer]:
        found = []
        for asked in exam.questions:
            known = dict(
                entry.text.split("=") for entry in sorted(asked.memory, key=lambda e: e.turn)
            )
            number = [q.query for q in self.script.scenario.qas].index(asked.text)
            question = self.script.scenario.qas[number]
            try:
                right = question.right_choice(known)
            except KeyError:
                found.append(Answer(NO_ANSWER, "no_answer"))
                continue
            found.append(Answer(self.script.option_orders[number].index(right)))
        return found

    def probe(self, probe: Probe) -> list[list[Value]]:
        return [[Value(NO_ANSWER)] * len(asked.variables) for asked in probe.questions]

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        pass


def replay(
    scenario: Scenario, written: dict[tuple[int, int, int], list[Operation]]
) -> CreditReplay:
    script = build(scenario)
    journal = MemoryJournal()
    evaluate(
        lambda models: Notes(script, written),
        [scenario],
        game=Game(),
        journal=lambda _: nullcontext(journal),
    )
    return CreditReplay(RecordedPlay.of(script, journal.read()), Notes(script, written), -1)


def test_each_operation_is_worth_its_hand_worked_value(tiny: list[Scenario]) -> None:
    ada = tiny[0]
    drink, pace = ada.variables
    assert [p.state[drink] for p in ada.periods] == ["green_tea", "black_coffee"]
    assert [p.state[pace] for p in ada.periods] == ["slow", "slow"]
    assert [q.variables for q in ada.qas] == [(drink,), (pace,)]
    credits = replay(
        ada,
        {
            (0, 0, 0): [Operation.add(f"{drink}=green_tea")],
            (0, 1, 0): [Operation.add(f"{pace}=slow"), Operation.add("colour=blue")],
            (1, 0, 0): [Operation.update("1", f"{drink}=black_coffee")],
        },
    ).operations()
    worths = {credit.step.operation.text: credit for credit in credits}
    # Without the first ADD drink is unknown for ever, as its UPDATE then finds nothing.
    assert worths[f"{drink}=green_tea"].value == 2 / 4
    # Pace is asked about in both periods.
    assert worths[f"{pace}=slow"].value == 2 / 4
    assert worths["colour=blue"].value == 0.0
    # Without the UPDATE drink is stale in period 1: one wrong cell.
    assert worths[f"{drink}=black_coffee"].value == 1 / 4
    assert [(c.gained, c.lost) for c in credits] == [(2, 0), (2, 0), (0, 0), (1, 0)]


def test_a_harmful_operation_has_a_negative_worth(tiny: list[Scenario]) -> None:
    ada = tiny[0]
    drink, pace = ada.variables
    credits = replay(
        ada,
        {
            (0, 0, 0): [Operation.add(f"{drink}=green_tea")],
            (0, 1, 0): [Operation.add(f"{pace}=slow")],
            (1, 0, 0): [Operation.add(f"{drink}=black_coffee"), Operation.delete("2")],
        },
    ).operations()
    # The DELETE costs the question about pace in period 1, and nothing before it.
    assert credits[-1].step.operation.op is Op.DELETE
    assert (credits[-1].value, credits[-1].lost) == (-1 / 4, 1)


def test_an_entry_is_worth_what_the_exams_lose_without_it(tiny: list[Scenario]) -> None:
    ada = tiny[0]
    drink, pace = ada.variables
    credits = replay(
        ada,
        {
            (0, 0, 0): [Operation.add(f"{drink}=green_tea")],
            (0, 1, 0): [Operation.add(f"{pace}=slow")],
            (1, 0, 0): [Operation.add(f"{drink}=black_coffee")],
        },
    ).entries()
    # Entry 1 matters in period 0 alone, entry 2 in both, entry 3 in period 1.
    assert [credit.value for credit in credits] == [1 / 4, 2 / 4, 1 / 4]


def test_the_journal_of_another_script_is_refused(tiny: list[Scenario]) -> None:
    events = [StartEvent("tiny-ada", "other")]
    with pytest.raises(RunError, match="expected the journal of script"):
        RecordedPlay.of(build(tiny[0]), events)
    with pytest.raises(RunError, match="found no play"):
        RecordedPlay.of(build(tiny[0]), [])
