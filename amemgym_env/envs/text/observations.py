"""Observations of `AMemGym-v0`, with the retrieved entries.

`Observer` makes observations (dicts of immutable values); `turn_from`, `exam_from` and `probe_from`
convert them to the types of `agent.py`. The retrieval query is the whole text as the assistant sees
it: the message with its time, a question with its choices, a state query with its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amemgym_env.agent import (
    Entry,
    Exam,
    Phase,
    Probe,
    ProbedQuestion,
    Question,
    Turn,
    Variable,
    shown_message,
)
from amemgym_env.episode import Episode
from amemgym_env.memory.embedding import Vectors
from amemgym_env.memory.index import MemoryIndex
from amemgym_env.scenarios.script import Script

Observation = dict[str, Any]


class Observer:
    """Observations of one episode; exam and probe queries are embedded once."""

    def __init__(
        self, script: Script, index: MemoryIndex, top_k: int | None, question_blind: bool
    ) -> None:
        self._index = index
        self._top_k = top_k
        self._question_blind = question_blind
        scenario = script.scenario
        self._questions = tuple(
            Question(question.query, script.choices_shown(number))
            for number, question in enumerate(scenario.qas)
        )
        self._probed = tuple(
            ProbedQuestion(
                tuple(Variable(name, tuple(scenario.state_schema[name])) for name in item.variables)
            )
            for item in scenario.qas
        )
        self._vectors: dict[Phase, Vectors] = {}

    def observe(self, episode: Episode, retrieve: bool = True) -> Observation:
        """Return a new observation; without `retrieve`, or after the end, no entries in it.

        Raises:
            BackendError: an embedding or the store failed.
        """
        phase, period, session, turn = episode.place
        memory: tuple[Entry, ...] = ()
        questions: tuple[Question | ProbedQuestion, ...] = ()
        if episode.over:
            pass
        elif phase is Phase.DIALOGUE:
            memory = self._for_message(episode) if retrieve else ()
        elif phase is Phase.EXAM:
            found = self._for_all(phase, retrieve)
            questions = tuple(
                Question(question.text, question.choices, entries)
                for question, entries in zip(self._questions, found, strict=True)
            )
        else:
            found = self._for_all(phase, retrieve)
            questions = tuple(
                ProbedQuestion(question.variables, entries)
                for question, entries in zip(self._probed, found, strict=True)
            )
        return {
            "phase": int(phase),
            "period": period,
            "session": session,
            "round": turn,
            "time": episode.time,
            "message": episode.message,
            "memory": memory,
            "stored": len(episode.bank.entries),
            "questions": questions,
            "asked": () if self._question_blind else episode.asked,
        }

    def _for_message(self, episode: Episode) -> tuple[Entry, ...]:
        if self._top_k is None:
            return self._index.entries()
        query = shown_message(episode.message, episode.time, episode.place.round == 0)
        return self._index.search(query, self._top_k)

    def _for_all(self, phase: Phase, retrieve: bool) -> list[tuple[Entry, ...]]:
        shown = [item.shown for item in (self._questions if phase is Phase.EXAM else self._probed)]
        entries = self._index.entries()
        if not retrieve or not entries or self._top_k == 0:
            return [()] * len(shown)
        if self._top_k is None:
            return [entries] * len(shown)
        if phase not in self._vectors:
            self._vectors[phase] = self._index.embedder(shown)
        return self._index.search_vectors(self._vectors[phase], self._top_k)


def turn_from(observation: Mapping[str, Any]) -> Turn:
    """Return the user turn that an observation of `AMemGym-v0` holds, through any wrapper.

    Raises:
        ValueError: the observation is an exam's or a probe's.
    """
    _expect(observation, Phase.DIALOGUE)
    return Turn(
        int(observation["period"]),
        int(observation["session"]),
        int(observation["round"]),
        observation["time"],
        observation["message"],
        tuple(observation["memory"]),
        tuple(observation["asked"]),
    )


def exam_from(observation: Mapping[str, Any]) -> Exam:
    """Return the exam that an observation of `AMemGym-v0` holds.

    Raises:
        ValueError: the observation is of another phase.
    """
    _expect(observation, Phase.EXAM)
    return Exam(int(observation["period"]), observation["time"], tuple(observation["questions"]))


def probe_from(observation: Mapping[str, Any]) -> Probe:
    """Return the state query that an observation of `AMemGym-v0` holds.

    Raises:
        ValueError: the observation is of another phase.
    """
    _expect(observation, Phase.PROBE)
    return Probe(int(observation["period"]), observation["time"], tuple(observation["questions"]))


def _expect(observation: Mapping[str, Any], phase: Phase) -> None:
    found = Phase(observation["phase"])
    if found is not phase:
        raise ValueError(
            f"expected an observation of phase {phase.name}, found {found.name}; "
            'look at observation["phase"] first'
        )
