"""Position and length bias of an agent's answers, compared with the correct answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.scenarios.script import Script


class Bias(NamedTuple):
    """Means over answered cells; `NaN` where nothing was answered."""

    first: float
    """Share of first choices (as shown) minus the share of a uniform draw."""
    last: float
    """The same of last choices."""
    position: float
    """Mean place from 0 (first) to 1 (last); a uniform draw has .5."""
    longest: float
    """Share of longest choices minus the share of a uniform draw."""
    length: float
    """Mean length relative to the mean of the question's choices, minus 1."""


def answer_bias(
    played: Iterable[tuple[Script, npt.NDArray[np.int64]]],
) -> dict[str, dict[str, float]]:
    """Return the bias of the `chosen` answers and of the `right` ones, over answered cells.

    `played` holds for each scenario its script and the shown indices chosen, shape
    (periods, questions), negative where nothing was chosen.
    """
    rows = [row for script, chosen in played for row in _rows(script, chosen)]
    table = np.array(rows, np.float64).reshape(-1, 2, len(Bias._fields))
    means = table.mean(axis=0) if len(table) else np.full(table.shape[1:], np.nan)
    return {
        name: Bias(*(float(value) for value in values))._asdict()
        for name, values in zip(("chosen", "right"), means, strict=True)
    }


def _rows(script: Script, chosen: npt.NDArray[np.int64]) -> Iterator[tuple[Bias, Bias]]:
    lengths = [
        np.array([len(text) for text in script.choices_shown(number)], np.float64)
        for number in range(len(script.scenario.qas))
    ]
    for row, rights in zip(chosen.tolist(), script.right_shown, strict=True):
        for choice, right, sizes in zip(row, rights, lengths, strict=True):
            if choice >= 0:
                yield _bias(choice, sizes), _bias(right, sizes)


def _bias(choice: int, lengths: npt.NDArray[np.float64]) -> Bias:
    count = len(lengths)
    longest = lengths == lengths.max()
    return Bias(
        (choice == 0) - 1 / count,
        (choice == count - 1) - 1 / count,
        choice / (count - 1) if count > 1 else 0.5,
        float(longest[choice]) - float(longest.mean()),
        float(lengths[choice] / max(1.0, lengths.mean())) - 1,
    )
