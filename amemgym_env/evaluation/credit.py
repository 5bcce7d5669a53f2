"""Counterfactual credit of memory operations: exams replayed without one operation or entry.

The dialogue, the later operations and the short-term window stay as recorded. The bank is rebuilt
without one operation (or one entry), and the questions whose retrieved entries differ are asked
again. Credit is the mean accuracy over all scored cells with the operation, minus without. Credits
do not add up where two operations carry the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from amemgym_env.agent import UNSCORED, Agent, Answer, Entry, Exam, Op, Operation, Question, Turn
from amemgym_env.envs.rewards import exam_scores
from amemgym_env.errors import RunError
from amemgym_env.memory.bank import Bank, Status
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.memory.index import MemoryIndex, ReadOnlyView
from amemgym_env.models.events import Event, ExamEvent, TurnEvent
from amemgym_env.models.last_play import last_play
from amemgym_env.scenarios.script import Script


class AppliedOperation(NamedTuple):
    """One recorded operation that changed the bank, with the place where it was applied."""

    period: int
    session: int
    round: int
    number: int
    """Among the round's operations."""
    operation: Operation
    entry_id: str
    """The entry that it wrote, changed or removed."""


class Credit(NamedTuple):
    """Credit of one operation or entry."""

    step: AppliedOperation
    value: float
    """Mean accuracy over all scored cells with it, minus without."""
    gained: int
    """Cells that are right with it and wrong without."""
    lost: int
    """Cells that are wrong with it and right without."""


@dataclass(frozen=True)
class RecordedPlay:
    """What a journal says of one scenario's last play, as far as credit needs it."""

    script: Script
    turns: tuple[TurnEvent, ...]
    exams: Mapping[int, ExamEvent]

    @classmethod
    def of(cls, script: Script, events: Sequence[Event]) -> RecordedPlay:
        """Return what the last play of a scenario left.

        Raises:
            RunError: it was not played, or is another script's.
        """
        play = last_play(events)
        if play.start is None:
            raise RunError(f"scenario {script.scenario.id!r}: expected a journal, found no play")
        if play.start.script != script.key:
            raise RunError(
                f"scenario {script.scenario.id!r}: expected the journal of script {script.key}, "
                f"found {play.start.script}"
            )
        return cls(script, play.turns, play.exams)

    def steps(self) -> Iterator[AppliedOperation]:
        """Yield the operations that changed the bank, in order."""
        for event in self.turns:
            for number, (op, entry_id, text, status) in enumerate(event.operations):
                if status in (Status.APPLIED, Status.REFRESHED) and entry_id is not None:
                    yield AppliedOperation(
                        *event.place, number, Operation(Op(op), entry_id, text), entry_id
                    )


class CreditReplay:
    """Replays the exams of one recorded scenario with changed memories.

    `agent` is a fresh agent like the recorded one, `top_k` what it is shown (negative: all). Its
    answers must depend on the exam and its own window alone, not on the bank behind them.
    """

    def __init__(
        self, recording: RecordedPlay, agent: Agent, top_k: int, capacity: int | None = None
    ) -> None:
        self._recording = recording
        self._agent = agent
        self._top_k = top_k
        self._capacity = capacity
        self._index = MemoryIndex()
        self._states: dict[int, Any] = {}
        self._memories: dict[int, list[tuple[Entry, ...]]] = {}
        self._answers: dict[int, list[int]] = {}
        self._play()

    def operations(self) -> list[Credit]:
        """Return the credit of each operation, in order of play."""
        return [self._credit(step, entry=False) for step in self._recording.steps()]

    def entries(self) -> list[Credit]:
        """Return the credit of each entry: exams without it, whatever its text at the time."""
        first: dict[str, AppliedOperation] = {}
        for step in self._recording.steps():
            first.setdefault(step.entry_id, step)
        return [self._credit(step, entry=True) for step in first.values()]

    def _credit(self, left_out: AppliedOperation, *, entry: bool) -> Credit:
        gained = lost = cells = 0
        for period, bank in self._banks(left_out, entry=entry):
            event = self._recording.exams[period]
            right = self._recording.script.right_shown[period]
            factual = exam_scores(event.answers[: len(right)], right)
            cells += int((~np.isnan(factual)).sum())
            if period < left_out.period:
                continue
            changed = self._changed(period, bank)
            without = exam_scores(self._answered(period, bank, changed), right)
            for number in changed:
                gained += factual[number] == 1.0 and without[number] == 0.0
                lost += factual[number] == 0.0 and without[number] == 1.0
        value = (gained - lost) / cells if cells else float("nan")
        return Credit(left_out, float(value), int(gained), int(lost))

    def _banks(
        self, left_out: AppliedOperation | None = None, *, entry: bool = False
    ) -> Iterator[tuple[int, Bank]]:
        """Yield (period, bank) at each exam, with one operation undone or one entry away."""
        bank = Bank(capacity=self._capacity)
        clock = 0
        turns = iter(self._recording.turns)
        held = next(turns, None)
        for period in sorted(self._recording.exams):
            while held is not None and held.period <= period:
                bank = _applied(bank, held, clock, None if entry else left_out)
                clock += 1
                held = next(turns, None)
            if entry and left_out is not None:
                kept = tuple(item for item in bank.entries if item.id != left_out.entry_id)
                yield period, bank._replace(entries=kept)
            else:
                yield period, bank

    def _play(self) -> None:
        """Bring the agent to every exam, by the recorded dialogue, and keep its states there."""
        self._agent.reset(ReadOnlyView(self._index))
        bank = Bank(capacity=self._capacity)
        self._index.load(bank)
        turns = self._recording.turns
        for clock, event in enumerate(turns):
            held = {entry.id: entry for entry in bank.entries}
            memory = tuple(held[name] for name in event.retrieved if name in held)
            turn = Turn(*event.place, event.time, event.message, memory)
            self._agent.write(turn, event.reply)
            bank = _applied(bank, event, clock, None)
            self._index.load(bank)
            after = turns[clock + 1].period if clock + 1 < len(turns) else None
            if event.period != after:
                self._states[event.period] = dict(self._agent.state_dict())
        for period, factual in self._banks():
            self._memories[period] = self._retrieved(factual)

    def _changed(self, period: int, bank: Bank) -> list[int]:
        """Return the questions for which other entries are retrieved than were."""
        return [
            number
            for number, (now, then) in enumerate(
                zip(self._retrieved(bank), self._memories[period], strict=True)
            )
            if now != then
        ]

    def _answered(self, period: int, bank: Bank, changed: Sequence[int]) -> list[int]:
        """Return shown indices: those of changed questions asked again, the rest unscored."""
        answers = [UNSCORED] * len(self._recording.script.scenario.qas)
        if not changed:
            return answers
        self._agent.load_state_dict(self._states[period])
        memories = self._retrieved(bank)
        asked = tuple(
            Question(question.text, question.choices, memories[number])
            for number, question in enumerate(self._questions())
            if number in changed
        )
        time = self._recording.script.scenario.periods[period].period_end
        given = self._agent.answer(Exam(period, time, asked))
        for number, answer in zip(changed, given, strict=True):
            answers[number] = answer.choice if isinstance(answer, Answer) else int(answer)
        return answers

    def _questions(self) -> list[Question]:
        script = self._recording.script
        return [
            Question(question.query, script.choices_shown(number))
            for number, question in enumerate(script.scenario.qas)
        ]

    def _retrieved(self, bank: Bank) -> list[tuple[Entry, ...]]:
        questions = self._questions()
        if self._top_k < 0:
            return [bank.entries] * len(questions)
        if self._top_k == 0 or not bank.entries:
            return [()] * len(questions)
        self._index.load(bank)
        vectors = DEFAULT([question.shown for question in questions])
        return self._index.search_vectors(vectors, self._top_k)


def _applied(bank: Bank, event: TurnEvent, clock: int, left_out: AppliedOperation | None) -> Bank:
    """Return the bank after a turn's recorded operations; ids stay those of the record."""
    for number, (op, entry_id, text, status) in enumerate(event.operations):
        if status not in (Status.APPLIED, Status.REFRESHED):
            continue
        if left_out is not None and (*event.place, number) == left_out[:4]:
            continue
        if op == Op.ADD:
            # An entry keeps its recorded id whatever was left out before it.
            bank = bank._replace(next_id=int(str(entry_id)))
        operation = Operation(Op(op), None if op == Op.ADD else entry_id, text)
        bank, _ = bank.apply(operation, event.time, clock)
    return bank
