"""The reader: from what memory entries give away to a distribution over a question's choices.

One function serves all: the array environment takes its expectation, the simulated model draws
from it. A needed variable is read as the newest value that the entries give away; where another
value stands beside it, that stale one is taken instead with probability `confusion`. The answer is
a uniform draw over the choices that agree with the most values read; with nothing known these are
all choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.scenarios.model import Question


class ReaderParameters(NamedTuple):
    """Weaknesses of the reader."""

    confusion: float = 0.0
    """Probability in [0, 1] of taking the stale value that stands beside the newest one."""


class Reading(NamedTuple):
    """What a reader finds out about one variable."""

    newest: str
    stale: str | None
    """The newest among the other values given away, if any."""


def readings(entries: Iterable[Iterable[tuple[str, str]]]) -> dict[str, Reading]:
    """Return what entries, oldest first, give away: for each variable newest and stale value."""
    found: dict[str, Reading] = {}
    for exposures in entries:
        for variable, value in exposures:
            known = found.get(variable)
            if known is None:
                found[variable] = Reading(value, None)
            elif known.newest != value:
                found[variable] = Reading(value, known.newest)
    return found


def agreeing_choices(question: Question, known: Mapping[str, str]) -> tuple[int, ...]:
    """Return the stored indices of the choices that agree with the most known values."""
    matches = [
        sum(
            known.get(variable) == value
            for variable, value in zip(question.required_info, choice.state, strict=True)
        )
        for choice in question.answer_choices
    ]
    most = max(matches)
    return tuple(index for index, count in enumerate(matches) if count == most)


def choice_probabilities(
    entries: Sequence[Iterable[tuple[str, str]]],
    question: Question,
    parameters: ReaderParameters,
) -> npt.NDArray[np.float64]:
    """Return the probability of each stored choice, shape (choices,), summing to 1.

    `entries` are what the retrieved entries give away, last written last.
    """
    found = readings(entries)
    options: list[list[tuple[str | None, float]]] = []
    for variable in question.variables:
        reading = found.get(variable)
        if reading is None:
            options.append([(None, 1.0)])
        elif reading.stale is None or parameters.confusion == 0.0:
            options.append([(reading.newest, 1.0)])
        else:
            options.append(
                [
                    (reading.newest, 1.0 - parameters.confusion),
                    (reading.stale, parameters.confusion),
                ]
            )
    probabilities = np.zeros(len(question.answer_choices))
    for combination in product(*options):
        weight = 1.0
        known: dict[str, str] = {}
        for variable, (value, probability) in zip(question.variables, combination, strict=True):
            weight *= probability
            if value is not None:
                known[variable] = value
        agreeing = agreeing_choices(question, known)
        probabilities[list(agreeing)] += weight / len(agreeing)
    return probabilities
