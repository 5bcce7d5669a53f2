"""Answer model: the probability of each choice of a question, given what entries expose.

A variable is read as the newest value that the entries expose. Where they also expose another
value, that stale value is read instead with probability `confusion`. The answer is a uniform draw
over the choices that agree with the most values read; with no value known, over all choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.scenarios.model import Question


class AnswerModelParameters(NamedTuple):
    """Error rates of the answer model."""

    confusion: float = 0.0
    """Probability in [0, 1] of choosing the stale value instead of the newest."""


class Reading(NamedTuple):
    """Values read for one variable."""

    newest: str
    stale: str | None
    """The newest of the other exposed values, if any."""


def readings(entries: Iterable[Iterable[tuple[str, str]]]) -> dict[str, Reading]:
    """Return the newest and the stale value of each variable that entries expose."""
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
    parameters: AnswerModelParameters,
) -> npt.NDArray[np.float64]:
    """Return the probability of each stored choice, shape (choices,), summing to 1.

    `entries` are the (variable, value) pairs that the retrieved entries expose, oldest first.
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
