"""Sample messages of a topic: a fixed stock of what composition says about it.

For readers, mock models and audits that need examples of a topic's messages with their kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

from amemgym_env.scenarios import composition, messages
from amemgym_env.scenarios.library import Topic
from amemgym_env.scenarios.random_stream import Draws

SampleKind = Literal["exposure", "joint", "question", "minimal_pair"]

_A_VALUE = 5
"""Samples for each value; joint values and minimal pairs have fewer."""


@cache
def exposures(topic: Topic, variable: str, value: str, count: int = _A_VALUE) -> tuple[str, ...]:
    """Return messages that expose one value, each different."""
    return _statements(topic, ((variable, value),), count)


@cache
def joint_exposures(topic: Topic, pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return messages that expose two values, each different."""
    return _statements(topic, pairs, 2)


@cache
def questions(topic: Topic, count: int = 12) -> tuple[str, ...]:
    """Return messages about a topic that state no value, each different."""
    draws = Draws("samples", topic.id, "questions")
    found: dict[str, None] = {}
    while len(found) < count:
        name = draws.pick(tuple(topic.variables))
        found[messages.question(topic, name, draws, initial=False)] = None
    return tuple(found)


def utterances(topic: Topic) -> Iterator[tuple[str, SampleKind]]:
    """Yield the sample messages of a topic with their kinds."""
    for name, variable in topic.variables.items():
        for value in variable.values:
            yield from ((text, "exposure") for text in exposures(topic, name, value))
            draws = Draws("samples", topic.id, name, value, "minimal pairs")
            for _ in range(3):
                text = composition.minimal_pair(
                    topic, name, value, draws, composition.generic(draws), initial=False
                )
                yield text, "minimal_pair"
    first, second = list(topic.variables)[:2]
    for one, other in product(topic.variables[first].values, topic.variables[second].values):
        for text in joint_exposures(topic, ((first, one), (second, other))):
            yield text, "joint"
    yield from ((text, "question") for text in questions(topic))


def stated(topic: Topic, text: str) -> dict[str, str]:
    """Return the values that a composed message states, by the clauses of the library in it."""
    lower = text.lower()
    found: dict[str, str] = {}
    for name, clauses in _clauses(topic):
        rest = lower
        for clause in clauses.quiet:
            rest = rest.replace(clause, "")
        for value, stating in clauses.stating:
            if any(clause in rest for clause in stating):
                found[name] = value
    return found


class _Clauses(NamedTuple):
    quiet: tuple[str, ...]
    stating: tuple[tuple[str, tuple[str, ...]], ...]


@cache
def _clauses(topic: Topic) -> tuple[tuple[str, _Clauses], ...]:
    """Return for each variable its clauses in lower case: the quiet ones, and those that state."""
    every = [m for variable in topic.variables.values() for m in variable.values.values()]
    quiet = tuple(clause.lower() for material in every for clause in material.quiet)
    return tuple(
        (
            name,
            _Clauses(
                quiet,
                tuple(
                    (value, tuple(clause.lower() for clause in (*m.says, *m.phrases)))
                    for value, m in variable.values.items()
                ),
            ),
        )
        for name, variable in topic.variables.items()
    )


def _statements(topic: Topic, pairs: composition.Pairs, count: int) -> tuple[str, ...]:
    draws = Draws("samples", topic.id, *(part for pair in pairs for part in pair))
    found: dict[str, None] = {}
    while len(found) < count:
        offered = composition.generic(draws)
        text = composition.statement(topic, pairs, draws, offered, initial=len(found) % 3 == 0)
        found[text] = None
    return tuple(found)
