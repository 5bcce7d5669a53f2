"""Potential-based reward shaping for training.

The potential of a bank is the expected accuracy of the next exam if it were held now. It uses
hidden state, so it serves as a training reward only. A step adds `scale` times
`discount * potential after - potential before`, which does not change the optimal policy (Ng,
Harada and Russell, 1999). Potentials are recomputed for changed banks and new exams only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Bools, Ints
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv

Floats = npt.NDArray[np.float64]


class Shaping:
    """Potentials of the current episodes."""

    def __init__(self, env: BaseMemoryVectorEnv, scale: float, discount: float) -> None:
        self._env = env
        self._scale = scale
        self._discount = discount
        self._version = -1
        self._numbers: list[int] = []

    def begin(self) -> None:
        """Compute the potentials of the current episodes."""
        number = self._env.num_envs
        self._potential = np.zeros(number)
        self._coming = self._coming_exam()
        self._slots = self._env.episodes.slots.copy()
        self._update(np.arange(number))

    def pay(self, ended: Bools) -> Floats:
        """Return the shaping reward of the last step, (N,); `ended` episodes were reset."""
        episodes = self._env.episodes
        before = self._potential.copy()
        coming = self._coming_exam()
        if episodes.slots.shape != self._slots.shape:
            changed = np.ones(self._env.num_envs, np.bool_)
        else:
            changed = (episodes.slots != self._slots).any(axis=0)
        changed |= coming != self._coming
        self._coming = coming
        self._slots = episodes.slots.copy()
        self._update(np.flatnonzero(changed | ended))
        # What follows the end is worth nothing; what stands there is the next episode.
        after = np.where(ended, 0.0, self._potential)
        paid: Floats = self._scale * (self._discount * after - before)
        return paid

    def _update(self, which: Ints) -> None:
        if which.size:
            episodes = self._env.episodes
            self._potential[which] = episodes.expected_accuracy(
                which, self._coming[which], episodes.readings(which)
            )

    def _coming_exam(self) -> Ints:
        """Return the period of the first exam from the present round on, (N,)."""
        pool, episodes = self._env.pool, self._env.episodes
        if self._version != pool.version or self._numbers != pool.numbers:
            self._version, self._numbers = pool.version, list(pool.numbers)
            self._table = coming_exams(pool)
        found: Ints = self._table[episodes.script, np.minimum(episodes.turn + 1, pool.texts - 1)]
        return found


def coming_exams(pool: Pool) -> Ints:
    """Return the period of the first exam that follows each text, or the last, (rows, texts)."""
    exam = np.where(pool.exam >= 0, pool.exam, np.iinfo(np.int16).max)
    coming = np.minimum.accumulate(exam[:, ::-1], axis=1)[:, ::-1]
    last = np.maximum(pool.last_exam.max(axis=1, keepdims=True), 0)
    found: Ints = np.minimum(coming, last).astype(np.int64)
    return found
