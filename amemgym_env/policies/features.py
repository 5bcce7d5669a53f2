"""Observation features of memory policies: the current message and the memory bank.

Features are computed from texts and the bank alone, so an agent can compute them without a scenario
(`TextFeatures`); the memory environments read the same values from tables. None contains hidden
state, except `message.exposes` and the like with `privileged`, for diagnosis.

An observation of `AMemGymMemory-v0` has three parts of equal width: the present message with where
the episode stands, the entry most similar to it and the entry written longest ago, each with facts
about the bank. One of `AMemGymSlots-v0` is a matrix: first the message, then every entry in the
bank's order. After the end of an episode all are 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import Entry
from amemgym_env.memory.embedding import DEFAULT, SCALE, Embedder, Vectors
from amemgym_env.policies.wording import LIMIT, WORDING_NAMES, wording

Floats = npt.NDArray[np.float32]

UNIT = SCALE * SCALE
"""Inner product of a vector with itself, before rounding: similarities are divided by it."""

PLACE_NAMES = ("progress", "period", "session", "round", "questions_known")
NEAREST_NAMES = (
    "nearest.similarity",
    "nearest.age",
    "nearest.same_question",
    "memory.fill",
    "memory.full",
)
OLDEST_NAMES = (
    "oldest.similarity",
    "oldest.age",
    "oldest.same_question",
    "memory.similarity",
    "memory.age",
)
SLOT_NAMES = (
    "present",
    "similarity",
    "age",
    "same_question",
    "nearest",
    "oldest",
    "newer_similarity",
    "superseded",
)
MESSAGE_NAMES = (*PLACE_NAMES, "fill", "full", "mean_similarity")
"""What the message's row of the slots observation holds in the place of `SLOT_NAMES`."""


@dataclass(frozen=True)
class FeatureSet:
    """Which features an observation holds."""

    profile: bool = False
    """Similarity to the user's profile, which an assistant in `AMemGym-v0` is not shown."""
    embedding: bool = False
    """The message's embedding, scaled to length 1, at the end (`AMemGymMemory-v0` only)."""
    question_blind: bool = False
    """The questions of past exams are withheld."""
    privileged: bool = False
    """Hidden state: number of needed variables that a text exposes. For diagnosis only."""
    embedder: str = DEFAULT.name
    width: int = DEFAULT.width

    @classmethod
    def of(cls, embedder: Embedder, **flags: bool) -> FeatureSet:
        """Return the set with these flags, under an embedder."""
        return cls(embedder=embedder.name, width=embedder.width, **flags)

    @cached_property
    def text_names(self) -> tuple[str, ...]:
        """Names of the features of one text, in order."""
        extra = ("profile",) * self.profile + ("exposes",) * self.privileged
        return (*WORDING_NAMES, "asked", *extra)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of an observation of `AMemGymMemory-v0`, in order."""
        parts = (("message", PLACE_NAMES), ("nearest", NEAREST_NAMES), ("oldest", OLDEST_NAMES))
        names = (
            name
            for who, more in parts
            for name in (*(f"{who}.{name}" for name in self.text_names), *more)
        )
        return (*names, *(f"embedding.{column}" for column in range(self.width * self.embedding)))

    @cached_property
    def slot_names(self) -> tuple[str, ...]:
        """Names of the columns of an entry's row of `AMemGymSlots-v0`."""
        return (*self.text_names, *SLOT_NAMES)

    @cached_property
    def message_names(self) -> tuple[str, ...]:
        """Names of the columns of the message's row of `AMemGymSlots-v0`."""
        return (*self.text_names, *MESSAGE_NAMES)

    @property
    def asked_column(self) -> int:
        """Column of a text's similarity to the questions asked; unknown before the first exam."""
        return len(WORDING_NAMES)

    @cached_property
    def key(self) -> str:
        """Fingerprint (hex digest) of names and settings, which a checkpoint must match."""
        parts = {
            "set": asdict(self),
            "names": self.feature_names,
            "slots": self.slot_names,
            "message": self.message_names,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class ObservationInputs(NamedTuple):
    """Inputs of an observation: one message and one bank of n entries."""

    message: Floats  # (texts + places,) a text's row with the position of its round
    rows: Floats  # (any, texts + places) rows, those of the entries among them
    numbers: Sequence[int]  # n, which row is an entry's
    similarities: Sequence[int]  # n, integers
    turns: Sequence[int]  # n, when each entry was written
    turn: int
    capacity: int
    known: bool
    """Whether the questions are known."""
    question: int
    """Number of the question most similar to the message; -1: none."""
    questions: Sequence[int]  # n, the same for each entry


def place_row(turn: int, period: int, session: int, round_: int, known: bool) -> Floats:
    """Return the position of a round, shape (5,), values in 0..`LIMIT`."""
    row = np.array([turn / (turn + 64), period / 10, session / 10, round_ / 4, known], np.float32)
    return np.minimum(row, np.float32(LIMIT))


def text_rows(
    shown: Sequence[str], vectors: Vectors, asked: Vectors, profile: Vectors | None
) -> Floats:
    """Return what is known of each text, shape (texts, columns), without `exposes`.

    `vectors` has shape (texts, width), `asked` (questions, width), `profile` (1, width).
    """
    columns = [np.stack([wording(text) for text in shown]).astype(np.float64)]
    if len(asked):
        columns.append((vectors @ asked.T).max(axis=1, keepdims=True) / np.float64(UNIT))
    else:
        columns.append(np.zeros((len(shown), 1)))
    if profile is not None:
        columns.append((vectors @ profile.T) / np.float64(UNIT))
    return np.concatenate(columns, axis=1).astype(np.float32)


def nearest_questions(vectors: Vectors, asked: Vectors) -> npt.NDArray[np.int16]:
    """Return for each text the question most similar to it, the first of equals; -1: none."""
    if not len(asked):
        return np.full(len(vectors), -1, np.int16)
    scores = vectors @ asked.T
    return np.where(scores.max(axis=1) > 0, scores.argmax(axis=1), -1).astype(np.int16)


def nearest_entry(similarities: Sequence[int]) -> int:
    """Return the position of the most similar entry, the first added of equals."""
    return similarities.index(max(similarities)) if similarities else 0


def memory_observation(features: FeatureSet, inputs: ObservationInputs) -> Floats:
    """Return the observation of `AMemGymMemory-v0`, shape (features,), without an embedding."""
    message, rows, numbers, similarities, turns, turn, capacity, known, question, questions = inputs
    width = len(message)
    own = width - len(PLACE_NAMES)
    out = np.zeros(3 * width, np.float32)
    out[:width] = message
    count = len(turns)
    if count:
        best, last = max(similarities), min(turns)
        near, old = similarities.index(best), turns.index(last)
        near_age, old_age = turn - turns[near], turn - last
        asking = known and question >= 0
        mean_age = (count * turn - sum(turns)) / count
        out[width : 2 * width] = rows[numbers[near]]
        out[2 * width :] = rows[numbers[old]]
        first, second = width + own, 2 * width + own
        # One by one: faster than a slice from a tuple.
        out[first] = best / UNIT
        out[first + 1] = near_age / (near_age + 16)
        out[first + 2] = asking and questions[near] == question
        out[first + 3] = count / capacity
        out[first + 4] = count >= capacity
        out[second] = similarities[old] / UNIT
        out[second + 1] = old_age / (old_age + 16)
        out[second + 2] = asking and questions[old] == question
        out[second + 3] = sum(similarities) / (count * UNIT)
        out[second + 4] = mean_age / (mean_age + 16)
    if not known:
        out[features.asked_column :: width] = 0.0
    return out


def slots_observation(
    features: FeatureSet, inputs: ObservationInputs, between: npt.NDArray[np.integer]
) -> Floats:
    """Return the observation of `AMemGymSlots-v0`, shape (1 + capacity, columns).

    `between` holds the similarities of the entries to each other, shape (n, n).
    """
    width = len(inputs.message)
    own = width - len(PLACE_NAMES)
    out = np.zeros((1 + inputs.capacity, own + len(SLOT_NAMES)), np.float32)
    similarities, count = inputs.similarities, len(inputs.turns)
    mean = sum(similarities) / (count * UNIT) if count else 0.0
    out[0, :width] = inputs.message
    out[0, width:] = (count / inputs.capacity, count >= inputs.capacity, mean)
    if count:
        near, last = nearest_entry(similarities), min(inputs.turns)
        out[1 : 1 + count, :width] = inputs.rows[list(inputs.numbers)]
        for position, turn in enumerate(inputs.turns):
            newer = [other for other in range(count) if inputs.turns[other] > turn]
            question = inputs.questions[position] if inputs.known else -1
            age = inputs.turn - turn
            out[1 + position, own:] = (
                1.0,
                similarities[position] / UNIT,
                age / (age + 16),
                question >= 0 and question == inputs.question,
                position == near,
                turn == last,
                max(0, *(int(between[position, other]) for other in newer), 0) / UNIT,
                question >= 0 and any(inputs.questions[other] == question for other in newer),
            )
    if not inputs.known:
        out[:, features.asked_column] = 0.0
    return out


class TextFeatures:
    """Observations from texts, for agents with a trained policy."""

    def __init__(
        self,
        features: FeatureSet,
        capacity: int,
        embedder: Embedder = DEFAULT,
        profile: str | None = None,
    ) -> None:
        self.features = features
        self.capacity = capacity
        self._embedder = embedder
        self._profile = embedder([profile or ""]) if features.profile else None

    def memory(
        self,
        shown: str,
        turn: int,
        place: tuple[int, int, int],
        entries: Sequence[Entry],
        asked: Sequence[str],
    ) -> Floats:
        """Return the observation of `AMemGymMemory-v0`, shape (features,).

        `shown` is the message as the assistant sees it, `turn` counts rounds from 0 over the
        episode, `place` is (period, session, round), `asked` the questions of past exams.
        """
        inputs, vectors = self._inputs(shown, turn, place, entries, asked)
        out = memory_observation(self.features, inputs)
        if not self.features.embedding:
            return out
        return np.concatenate([out, vectors[0] / np.float32(SCALE)])

    def slots(
        self,
        shown: str,
        turn: int,
        place: tuple[int, int, int],
        entries: Sequence[Entry],
        asked: Sequence[str],
    ) -> Floats:
        """Return the observation of `AMemGymSlots-v0`, shape (1 + capacity, columns)."""
        inputs, vectors = self._inputs(shown, turn, place, entries, asked)
        between = (vectors[1:] @ vectors[1:].T).astype(np.int64)
        return slots_observation(self.features, inputs, between)

    def nearest(self, shown: str, entries: Sequence[Entry]) -> int:
        """Return the position of the entry that is most similar to a message; 0 without any."""
        vectors = self._embedder([shown, *(entry.text for entry in entries)])
        return nearest_entry((vectors[1:] @ vectors[0]).astype(int).tolist())

    def _inputs(
        self,
        shown: str,
        turn: int,
        place: tuple[int, int, int],
        entries: Sequence[Entry],
        asked: Sequence[str],
    ) -> tuple[ObservationInputs, Vectors]:
        texts = [shown, *(entry.text for entry in entries)]
        vectors = self._embedder(texts)
        questions = self._embedder(list(() if self.features.question_blind else asked))
        rows = text_rows(texts, vectors, questions, self._profile)
        if self.features.privileged:
            # Exposures are unknown to those who see texts alone.
            rows = np.concatenate([rows, np.zeros((len(rows), 1), np.float32)], axis=1)
        nearest = nearest_questions(vectors, questions).tolist()
        here = place_row(turn, *place, len(questions) > 0)
        rows = np.concatenate([rows, np.tile(here, (len(rows), 1))], axis=1)
        inputs = ObservationInputs(
            message=rows[0],
            rows=rows[1:],
            numbers=range(len(entries)),
            similarities=(vectors[1:] @ vectors[0]).astype(int).tolist(),
            turns=[entry.turn for entry in entries],
            turn=turn,
            capacity=self.capacity,
            known=len(questions) > 0,
            question=nearest[0],
            questions=nearest[1:],
        )
        return inputs, vectors
