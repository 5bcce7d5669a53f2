"""Arrays of a script: all that the memory environments need, computed once.

Texts are numbered by round, from 1; 0 is an empty slot of a bank: a text without features that is
similar to nothing and exposes nothing. A memory entry is the number of the round that wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import Phase, shown_message, shown_question
from amemgym_env.episode import plan
from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import Embedder, Vectors
from amemgym_env.policies.features import FeatureSet, nearest_questions, place_row, text_rows
from amemgym_env.policies.wording import LIMIT
from amemgym_env.scenarios.model import Question, Scenario
from amemgym_env.scenarios.script import Script

NOTHING = -32768
"""Similarity of an empty place: below that of any text."""

Bytes = npt.NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class ScriptTables:
    """The arrays of one script with U rounds, Q questions and P periods.

    A question's needed variables are numbered 0..M-1, their values from 1; 0 is unknown. A text
    exposes at most E values, counted for each question that needs them.
    """

    scenario_id: str
    script_seed: int
    rows: npt.NDArray[np.float32]  # (U + 1, columns) features of each text and its round
    similarity: npt.NDArray[np.int16]  # (U + 1, U + 1) of text to text
    question_similarity: npt.NDArray[np.int16]  # (Q, U + 1) of the exam's query to text
    pairs: npt.NDArray[np.int16]  # (U + 1, E) what a text exposes: variable * Q + question, -1
    codes: Bytes  # (U + 1, E) the values exposed
    nearest_question: npt.NDArray[np.int16]  # (U + 1,) question most similar to a text, -1: none
    duplicate_of: npt.NDArray[np.int32]  # (U + 1,) first round with the same text
    counts: Bytes  # (Q, choices, *(values + 1,) * M) see `agreement_counts`
    right: npt.NDArray[np.int16]  # (P, Q) stored index of the right choice
    questions_known: npt.NDArray[np.bool_]  # (U + 1,) whether an exam came before the round
    exam: npt.NDArray[np.int16]  # (U + 1,) period whose exam follows the round, -1: none
    last_exam: npt.NDArray[np.int16]  # (U + 1,) period of the last exam that follows, -1: none
    embedding: npt.NDArray[np.int8] | None  # (U + 1, width)

    @property
    def rounds(self) -> int:
        """Number of rounds, U."""
        return len(self.rows) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays)


def shown_texts(script: Script) -> list[str]:
    """Return every user message as the assistant sees it, in order of play."""
    return [
        shown_message(utterance.text, conversation.time, number == 0)
        for conversations in script.periods
        for conversation in conversations
        for number, utterance in enumerate(conversation.utterances)
    ]


def exam_queries(script: Script) -> list[str]:
    """Return every question as the exam shows it: with its choices, in the script's order."""
    return [
        shown_question(question.query, script.choices_shown(number))
        for number, question in enumerate(script.scenario.qas)
    ]


def script_tables(script: Script, features: FeatureSet, embedder: Embedder) -> ScriptTables:
    """Return the arrays of a script.

    Raises:
        ConfigError: a similarity is too large for the tables, or the script says nothing.
    """
    scenario = script.scenario
    shown = shown_texts(script)
    if not shown or any(not text.strip() for text in shown):
        raise ConfigError(
            f"scenario {scenario.id!r}: expected a message in every round, found none"
        )
    vectors = embedder(shown)
    asked = embedder([question.query for question in scenario.qas])
    profile = embedder([scenario.profile_text]) if features.profile else None
    # Without the questions a policy is not to see them; the reader always does.
    seen = asked[:0] if features.question_blind else asked
    rows = text_rows(shown, vectors, seen, profile)
    pairs, codes = exposed_pairs(script)
    if features.privileged:
        exposes = (codes > 0).sum(axis=1, dtype=np.float32)[1:, None]
        rows = np.concatenate([rows, np.minimum(exposes, np.float32(LIMIT))], axis=1)
    similarity = _integers(vectors @ vectors.T)
    places, known, exam, last_exam = _rounds(script, features.question_blind)
    rows = np.concatenate([rows, places], axis=1)
    first: dict[str, int] = {}
    duplicate_of = [first.setdefault(text, number) for number, text in enumerate(shown, start=1)]
    embedding = _front(vectors.astype(np.int8), 0) if features.embedding else None
    return ScriptTables(
        scenario.id,
        script.seed,
        rows=_front(rows, 0),
        similarity=np.pad(similarity, ((1, 0), (1, 0)), constant_values=NOTHING),
        question_similarity=np.pad(
            _integers(embedder(exam_queries(script)) @ vectors.T),
            ((0, 0), (1, 0)),
            constant_values=NOTHING,
        ),
        pairs=pairs,
        codes=codes,
        nearest_question=_front(nearest_questions(vectors, seen), -1),
        duplicate_of=np.array([0, *duplicate_of], np.int32),
        counts=agreement_counts(scenario),
        right=np.array(scenario.right_choices, np.int16),
        questions_known=np.array([False, *known]),
        exam=np.array([-1, *exam], np.int16),
        last_exam=np.array([-1, *last_exam], np.int16),
        embedding=embedding,
    )


def agreement_counts(scenario: Scenario) -> Bytes:
    """Return for each question, choice and reading how many choices agree as well as it does.

    The reader draws uniformly from the choices that agree with most of what it read, so a choice
    has probability 1 / count, or 0 where the count is 0. Shape (Q, choices, *(values + 1,) * M);
    places beyond a question's own choices, variables and values are 0.
    """
    questions = scenario.qas
    sizes = [len(scenario.state_schema[name]) for item in questions for name in item.variables]
    depth = max(len(item.variables) for item in questions)
    choices = max(len(item.answer_choices) for item in questions)
    if choices > 255 or max(sizes) > 254:
        raise ConfigError(
            f"scenario {scenario.id!r}: expected at most 255 choices and 254 values, found "
            f"{choices} and {max(sizes)}"
        )
    shape = (max(sizes) + 1,) * depth
    counts = np.zeros((len(questions), choices, *shape), np.uint8)
    flat = counts.reshape(len(questions), choices, -1)
    for number, item in enumerate(questions):
        values = [range(len(scenario.state_schema[name]) + 1) for name in item.variables]
        # A variable that is named twice counts twice, as in `reader.agreeing_choices`.
        places = [item.variables.index(name) for name in item.required_info]
        states = _choice_codes(scenario, item)
        for reading in product(*values):
            matches = (states == np.array([reading[place] for place in places])).sum(axis=1)
            best = matches == matches.max()
            index = np.ravel_multi_index((*reading, *(0,) * (depth - len(reading))), shape)
            flat[number, : len(best), index] = np.where(best, best.sum(), 0)
    return counts


def _choice_codes(scenario: Scenario, question: Question) -> npt.NDArray[np.int64]:
    """Return the values of each choice, numbered from 1, shape (choices, needed)."""
    return np.array(
        [
            [
                scenario.state_schema[name].index(value) + 1
                for name, value in zip(question.required_info, choice.state, strict=True)
            ]
            for choice in question.answer_choices
        ]
    )


def exposed_pairs(script: Script) -> tuple[npt.NDArray[np.int16], Bytes]:
    """Return the needed variables that each text exposes and their values, (U + 1, E) each."""
    scenario = script.scenario
    needed: dict[str, list[int]] = {}
    for number, item in enumerate(scenario.qas):
        for place, variable in enumerate(item.variables):
            needed.setdefault(variable, []).append(place * len(scenario.qas) + number)
    found: list[list[tuple[int, int]]] = [[]]
    for utterance in script.utterances:
        found.append(
            [
                (pair, scenario.state_schema[variable].index(value) + 1)
                for variable, value in utterance.exposures
                for pair in needed.get(variable, ())
            ]
        )
    most = max(1, *(len(given) for given in found))
    pairs = np.full((len(found), most), -1, np.int16)
    codes = np.zeros((len(found), most), np.uint8)
    for text, given in enumerate(found):
        for place, (pair, code) in enumerate(given):
            pairs[text, place], codes[text, place] = pair, code
    return pairs, codes


def _rounds(
    script: Script, question_blind: bool
) -> tuple[npt.NDArray[np.float32], list[bool], list[int], list[int]]:
    """Return for each round its place, whether exams came before, and which follow it."""
    places: list[npt.NDArray[np.float32]] = []
    known: list[bool] = []
    exam: list[int] = []
    last_exam: list[int] = []
    exams = 0
    for phase, period, session, number in plan(script, diagnosis=False):
        if phase is Phase.DIALOGUE:
            known.append(exams > 0 and not question_blind)
            places.append(place_row(len(places), period, session, number, known[-1]))
            exam.append(-1)
            last_exam.append(-1)
            continue
        exams += 1
        if exam:
            exam[-1] = period if exam[-1] < 0 else exam[-1]
            last_exam[-1] = period
    return np.stack(places), known, exam, last_exam


def _integers(products: Vectors) -> npt.NDArray[np.int16]:
    if products.size and np.abs(products).max() > -NOTHING - 1:
        raise ConfigError(
            "embedder: expected vectors of length about 127, found an inner product of "
            f"{int(np.abs(products).max())}; quantize them (embedding.quantize)"
        )
    return products.astype(np.int16)


def _front(array: npt.NDArray[T], value: float) -> npt.NDArray[T]:
    """Return an array with a row of `value` in front, for the empty slot."""
    return np.pad(array, ((1, 0), *((0, 0),) * (array.ndim - 1)), constant_values=value)
