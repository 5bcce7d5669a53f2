"""The rule of the game: an episode as an immutable value, and its one transition.

```
for each period:  for each session:  round, round, ...     DIALOGUE
                  exam                                     EXAM
                  probe, with diagnosis on                 PROBE
```

No I/O, no embedding, no model: `Episode.advance` is a pure function. Exam and probe change neither
the memory nor the dialogue. Every timestamp in memory is a session's; turn numbers break ties.
Paper: AMemGym, Section 3.4.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from amemgym_env.agent import NO_ANSWER, UNSCORED, Operation, Phase
from amemgym_env.errors import ConfigError, EpisodeOver
from amemgym_env.memory.bank import Applied, Bank
from amemgym_env.scenarios.script import Conversation, Kind, Script, Utterance


class Action(NamedTuple):
    """What an agent does in a step; fields foreign to the phase are ignored."""

    reply: str = ""
    memory: tuple[Operation, ...] = ()
    answers: tuple[int, ...] = ()
    """Shown index of a choice for each question, NO_ANSWER or UNSCORED."""
    values: tuple[tuple[int, ...], ...] = ()
    """Value index for each probed variable of each question, NO_ANSWER or UNSCORED."""


class Place(NamedTuple):
    """One step of an episode. Session and round are 0 at exam and probe."""

    phase: Phase
    period: int
    session: int = 0
    round: int = 0


class ExamResult(NamedTuple):
    """The answers of one exam as read: shown indices, and how many were missing or too many."""

    period: int
    answers: tuple[int, ...]
    missing: int
    surplus: int


class ProbeResult(NamedTuple):
    """The values named at one probe, as indices into the schema's values."""

    period: int
    values: tuple[tuple[int, ...], ...]


class Transition(NamedTuple):
    """What a step led to."""

    episode: Episode
    applied: tuple[Applied, ...] = ()
    exam: ExamResult | None = None
    probe: ProbeResult | None = None


_Trail = tuple[Any, Any]
"""A linked list (before, record) of the steps so far; hashed only when asked for."""


@lru_cache(maxsize=256)
def _plan(sizes: tuple[tuple[int, ...], ...], diagnosis: bool) -> tuple[Place, ...]:
    places: list[Place] = []
    for period, sessions in enumerate(sizes):
        for session, rounds in enumerate(sessions):
            places.extend(Place(Phase.DIALOGUE, period, session, turn) for turn in range(rounds))
        places.append(Place(Phase.EXAM, period))
        if diagnosis:
            places.append(Place(Phase.PROBE, period))
    return tuple(places)


def plan(script: Script, diagnosis: bool) -> tuple[Place, ...]:
    """Return every step of an episode in order: the whole state machine as a table."""
    sizes = tuple(
        tuple(len(conversation.utterances) for conversation in conversations)
        for conversations in script.periods
    )
    return _plan(sizes, diagnosis)


@dataclass(frozen=True)
class Episode:
    """A position in a script, with the memory bank and all that was said and answered."""

    script: Script
    bank: Bank
    diagnosis: bool = False
    places: tuple[Place, ...] = ()
    position: int = 0
    turn: int = 0
    """Number of rounds played; the present round's number in the memory's time order."""
    spoken: str | None = None
    """The present follow-up as a user model worded it; None: the script's own words."""
    dialogue: tuple[tuple[str, str], ...] = ()
    """(user, assistant) messages of the present session so far."""
    exams: tuple[ExamResult, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
    trail: _Trail = ("", None)

    @classmethod
    def start(cls, script: Script, bank: Bank, diagnosis: bool = False) -> Episode:
        """Return the episode at its first step."""
        return cls(script, bank, diagnosis, plan(script, diagnosis))

    @property
    def over(self) -> bool:
        """Whether the scenario has ended."""
        return self.position >= len(self.places)

    @property
    def place(self) -> Place:
        """The step that is played next; after the end, the last one."""
        return self.places[min(self.position, len(self.places) - 1)]

    @property
    def conversation(self) -> Conversation | None:
        """The present session; None at exam and probe."""
        phase, period, session, _ = self.place
        return self.script.periods[period][session] if phase is Phase.DIALOGUE else None

    @property
    def utterance(self) -> Utterance | None:
        """The script's present utterance; None at exam and probe, and after the end."""
        conversation = None if self.over else self.conversation
        return None if conversation is None else conversation.utterances[self.place.round]

    @property
    def message(self) -> str:
        """The user's present message; empty at exam and probe, and after the end."""
        utterance = self.utterance
        if utterance is None:
            return ""
        return utterance.text if self.spoken is None else self.spoken

    @property
    def time(self) -> str:
        """Scenario time of the present step (ISO 8601): the session's, or the period's end."""
        conversation = self.conversation
        if conversation is not None:
            return conversation.time
        return self.script.scenario.periods[self.place.period].period_end

    @property
    def asked(self) -> tuple[str, ...]:
        """Texts of the questions of past exams, in the order of the scenario."""
        return tuple(question.query for question in self.script.scenario.qas) if self.exams else ()

    @property
    def goes_on(self) -> bool:
        """Whether the next step is a further round of this session."""
        after = self.position + 1
        return after < len(self.places) and self.places[after].round > 0

    @property
    def next_is_follow_up(self) -> bool:
        """Whether the user's next message is a plain follow-up, which a user model may word.

        Late exposures and re-mentions stay the script's, because exposures are hidden state.
        """
        conversation = self.conversation
        if conversation is None or not self.goes_on:
            return False
        return conversation.utterances[self.place.round + 1].kind is Kind.FOLLOW_UP

    def advance(self, action: Action, next_user_text: str | None = None) -> Transition:
        """Return the episode after `action`, and what became of it.

        `next_user_text` replaces the script's next utterance, where `next_is_follow_up`.

        Raises:
            EpisodeOver: the episode has ended.
        """
        if self.position >= len(self.places):
            raise EpisodeOver("the episode is over; call reset() to begin another")
        phase = self.places[self.position].phase
        if phase is Phase.DIALOGUE:
            return self._talk(action, next_user_text)
        if phase is Phase.EXAM:
            return self._examine(action)
        return self._probe(action)

    def _talk(self, action: Action, next_user_text: str | None) -> Transition:
        _, period, session, number = self.places[self.position]
        conversation = self.script.periods[period][session]
        bank, applied = self.bank.apply_all(action.memory, conversation.time, self.turn)
        spoken = self.spoken
        message = conversation.utterances[number].text if spoken is None else spoken
        follows = next_user_text is not None and self.next_is_follow_up
        goes_on = number + 1 < len(conversation.utterances)
        episode = self._with(
            bank=bank,
            position=self.position + 1,
            turn=self.turn + 1,
            spoken=next_user_text if follows else None,
            dialogue=(*self.dialogue, (message, action.reply)) if goes_on else (),
            trail=(self.trail, (message, action.reply, action.memory)),
        )
        return Transition(episode, applied)

    def _with(self, **changes: Any) -> Episode:
        """Return a copy with changes: `dataclasses.replace` without its price, in every step."""
        episode = object.__new__(Episode)
        vars(episode).update(vars(self))
        vars(episode).update(changes)
        return episode

    def _examine(self, action: Action) -> Transition:
        questions = self.script.scenario.qas
        given = action.answers[: len(questions)]
        missing = len(questions) - len(given)
        sizes = [len(question.answer_choices) for question in questions]
        answers = _within((*given, *(NO_ANSWER,) * missing), sizes)
        surplus = max(0, len(action.answers) - len(questions))
        result = ExamResult(self.place.period, answers, missing, surplus)
        episode = self._with(
            position=self.position + 1,
            exams=(*self.exams, result),
            trail=(self.trail, ("exam", answers)),
        )
        return Transition(episode, exam=result)

    def _probe(self, action: Action) -> Transition:
        schema = self.script.scenario.state_schema
        rows = []
        for number, question in enumerate(self.script.scenario.qas):
            row = action.values[number] if number < len(action.values) else ()
            sizes = [len(schema[variable]) for variable in question.variables]
            padded = (*row[: len(sizes)], *(NO_ANSWER,) * (len(sizes) - len(row)))
            rows.append(_within(padded, sizes))
        result = ProbeResult(self.place.period, tuple(rows))
        episode = self._with(
            position=self.position + 1,
            probes=(*self.probes, result),
            trail=(self.trail, ("probe", result.values)),
        )
        return Transition(episode, probe=result)

    def digest(self) -> str:
        """Return a hash of everything said, done and answered so far, and of the script."""
        running = hashlib.sha256(self.script.key.encode())
        for record in self.records():
            running = hashlib.sha256(running.digest() + json.dumps(record).encode())
        return running.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return a snapshot as a JSON object; `restore` continues from it."""
        return {
            "script": self.script.key,
            "diagnosis": self.diagnosis,
            "position": self.position,
            "turn": self.turn,
            "spoken": self.spoken,
            "dialogue": [list(pair) for pair in self.dialogue],
            "exams": [list(exam) for exam in self.exams],
            "probes": [list(probe) for probe in self.probes],
            "bank": self.bank.to_json(),
            "trail": json.loads(json.dumps(self.records())),
        }

    def records(self) -> list[Any]:
        """Return the records of all steps so far, first step first."""
        records = []
        before, record = self.trail
        while record is not None:
            records.append(record)
            before, record = before
        return records[::-1]

    @classmethod
    def restore(cls, script: Script, state: Mapping[str, Any]) -> Episode:
        """Return the episode that `to_json` described.

        Raises:
            ConfigError: the snapshot was taken from another script.
        """
        if state["script"] != script.key:
            raise ConfigError(
                f"snapshot: expected one of script {script.key!r}, found {state['script']!r}; "
                "restore it in an environment with the same scenario, seed and settings"
            )
        trail: _Trail = ("", None)
        for record in state["trail"]:
            trail = (trail, record)
        return cls(
            script,
            Bank.from_json(state["bank"]),
            state["diagnosis"],
            plan(script, state["diagnosis"]),
            state["position"],
            state["turn"],
            state["spoken"],
            tuple((user, assistant) for user, assistant in state["dialogue"]),
            tuple(
                ExamResult(period, tuple(answers), missing, surplus)
                for period, answers, missing, surplus in state["exams"]
            ),
            tuple(
                ProbeResult(period, tuple(tuple(row) for row in rows))
                for period, rows in state["probes"]
            ),
            trail,
        )


def _within(indices: tuple[int, ...], sizes: list[int]) -> tuple[int, ...]:
    """Return indices with everything outside its range as NO_ANSWER; never another choice."""
    return tuple(
        index if index == UNSCORED or 0 <= index < size else NO_ANSWER
        for index, size in zip(indices, sizes, strict=True)
    )
