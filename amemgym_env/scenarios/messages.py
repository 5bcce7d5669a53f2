"""Messages chosen among several compositions by their form.

A composition draws phrases evenly, and people do not. Of some draws one is chosen, likelier the
more its form resembles that of real openers. The weights of forms are data: linear log-odds, fitted
against figures of twelve users of `v1.base`; no text of theirs is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Literal

from amemgym_env.scenarios import composition
from amemgym_env.scenarios.form import score
from amemgym_env.scenarios.library import Topic
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.scenarios.small_talk import small_talk as small_talk_draw

Kind = Literal["statement", "minimal_pair", "question", "small_talk"]
"""What is composed: a statement of values, a minimal pair, or neither."""

DRAWS = 60
"""Compositions from which an opener is chosen."""

SCRIPT_DRAWS = 24
"""Compositions from which a message of a script is chosen."""


def opener(about: Topic, pairs: composition.Pairs, draws: Draws, *, initial: bool) -> str:
    """Return an opener that exposes one or two values of a topic."""
    return _chosen(
        lambda offered: composition.statement(about, pairs, draws, offered, initial=initial),
        weights("statement", initial=initial),
        draws,
        DRAWS,
    )


def statement(about: Topic, pairs: composition.Pairs, draws: Draws, *, initial: bool) -> str:
    """Return a later message that exposes one or two values of a topic."""
    return _chosen(
        lambda offered: composition.statement(about, pairs, draws, offered, initial=initial),
        weights("statement", initial=initial),
        draws,
        SCRIPT_DRAWS,
    )


def minimal_pair(about: Topic, name: str, value: str, draws: Draws, *, initial: bool) -> str:
    """Return a message that names a value and exposes none."""
    return _chosen(
        lambda offered: composition.minimal_pair(
            about, name, value, draws, offered, initial=initial
        ),
        weights("minimal_pair", initial=initial),
        draws,
        SCRIPT_DRAWS,
    )


def question(about: Topic, name: str, draws: Draws, *, initial: bool) -> str:
    """Return a message about a variable that states no value."""
    return _chosen(
        lambda offered: composition.question_only(about, name, draws, offered, initial=initial),
        weights("question", initial=initial),
        draws,
        SCRIPT_DRAWS,
    )


def small_talk(draws: Draws, *, initial: bool) -> str:
    """Return a message about nothing that a scenario asks for."""
    return _chosen(
        lambda offered: small_talk_draw(draws, offered, initial=initial),
        weights("small_talk", initial=initial),
        draws,
        SCRIPT_DRAWS,
    )


def _chosen(
    compose: Callable[[composition.Generic], str],
    weight: dict[str, float],
    draws: Draws,
    count: int,
) -> str:
    offered = composition.generic(draws)
    texts = [compose(offered) for _ in range(count)]
    scores = [score(text, weight) for text in texts]
    highest = max(scores)
    return draws.weighted(texts, [math.exp(value - highest) for value in scores])


def weights(kind: Kind, *, initial: bool) -> dict[str, float]:
    """Return the weights of form features for messages of period 0 (`initial`) or later ones."""
    return _tables().get(f"{kind}, {'initial' if initial else 'later'}", {})


@cache
def _tables() -> dict[str, dict[str, float]]:
    file = resources.files("amemgym_env").joinpath("scenarios", "library_data", "form.json")
    tables: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8"))
    return tables
