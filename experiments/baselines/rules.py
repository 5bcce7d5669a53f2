"""Rule policies of a few lines for `AMemGymMemory-v0`.

Each is a `PolicyFn` (see `benchmark.py`): observations of N environments to N actions. `tuning.py`
tunes their parameters on training scenarios; `oracles.py` contains policies with hidden state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Bools, Ints
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.policies.actions import MemoryAction
from amemgym_env.policies.features import FeatureSet, Floats
from amemgym_env.seeding import generator
from experiments.baselines.benchmark import PolicyFn

Weights = npt.NDArray[np.float64]


def never(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
    """Write nothing."""
    return np.zeros(len(observation), np.int64)


def always(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
    """ADD every message."""
    return np.full(len(observation), MemoryAction.ADD, np.int64)


def constant_mix(chances: Weights, seed: int = 0) -> PolicyFn:
    """Draw actions with constant probabilities; `random` is the uniform mix."""
    draws = generator("constant mix", seed)
    bounds = np.cumsum(chances / chances.sum())[:-1]

    def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        return np.searchsorted(bounds, draws.random(len(observation))).astype(np.int64)

    return choose


def openers(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
    """ADD every session's first message."""
    return np.where(
        column(env, observation, "message.opening") > 0, MemoryAction.ADD, MemoryAction.NOOP
    )


def add_or_update(
    write: Bools, env: BaseMemoryVectorEnv, observation: Floats, alike: float
) -> Ints:
    """UPDATE the nearest entry if it is as similar as `alike`, else ADD, where `write` says so."""
    near = column(env, observation, "nearest.similarity") >= alike
    near &= column(env, observation, "memory.fill") > 0
    return np.where(write, np.where(near, MemoryAction.UPDATE, MemoryAction.ADD), MemoryAction.NOOP)


def similar_openers(alike: float) -> PolicyFn:
    """Write every session's first message by `add_or_update`."""

    def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        return add_or_update(
            column(env, observation, "message.opening") > 0, env, observation, alike
        )

    return choose


HAND_NAMES = ("message.opening", "message.words", "message.asked", "message.asks")
HAND_SIZE = len(HAND_NAMES) + 6


@dataclass(frozen=True)
class HandRule:
    """A rule of four operations over opening, length, question mark and question similarity.

    Write a message whose weighted sum exceeds a bar; UPDATE the nearest entry when it is similar,
    or belongs to the same question, or (in a full bank) fairly similar, else ADD. A message that
    is not worth writing but resembles an old entry has it deleted.
    """

    weights: Weights  # (HAND_SIZE,)

    def __call__(self, env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        """Choose an action for each environment; weights may have an axis of environments."""
        names = {name: column(env, observation, name) for name in _HAND_COLUMNS}
        number = len(HAND_NAMES)
        w = self.weights
        worth = sum(w[..., i] * names[name] for i, name in enumerate(HAND_NAMES))
        worth = worth - w[..., number] - w[..., number + 1] * (names["questions_known"] > 0)
        near = names["nearest.similarity"] + w[..., number + 2] * names["nearest.same_question"]
        bar = w[..., number + 3] - w[..., number + 4] * names["memory.full"]
        update = (near >= bar) & (names["memory.fill"] > 0)
        forget = (near >= bar + w[..., number + 5]) & (names["memory.fill"] > 0)
        written = np.where(update, MemoryAction.UPDATE, MemoryAction.ADD)
        return np.where(
            worth > 0, written, np.where(forget, MemoryAction.DELETE, MemoryAction.NOOP)
        )


_HAND_COLUMNS = (
    *HAND_NAMES,
    "questions_known",
    "nearest.similarity",
    "nearest.same_question",
    "memory.full",
    "memory.fill",
)


class ExposureClassifier(NamedTuple):
    """Classifier of exposing messages from their features: one or two layers."""

    layers: tuple[tuple[Weights, Weights], ...]  # (in, out), (out,)
    columns: int
    """The first columns of an observation are the message's."""

    def logits(self, observation: Floats) -> Weights:
        """Return the log odds of an exposure, shape (N,)."""
        hidden = observation[..., : self.columns].astype(np.float64)
        for number, (weights, bias) in enumerate(self.layers):
            hidden = (np.maximum(hidden, 0.0) if number else hidden) @ weights + bias
        return hidden[..., 0]

    def writer(self, bar: float, alike: float) -> PolicyFn:
        """Write messages whose log odds of exposure are at least `bar`, by `add_or_update`."""

        def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
            return add_or_update(self.logits(observation) >= bar, env, observation, alike)

        return choose

    def slots_writer(self, bar: float, alike: float) -> PolicyFn:
        """As `writer`, with the actions of `AMemGymSlots-v0`; evicts the oldest entry."""

        def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
            names = env.features.slot_names
            entries = observation[:, 1:]
            similarity = entries[:, :, names.index("similarity")]
            near = entries[:, :, names.index("nearest")].argmax(axis=1)
            old = entries[:, :, names.index("oldest")].argmax(axis=1)
            rows = np.arange(len(near))
            alike_there = similarity[rows, near] >= alike
            alike_there &= entries[rows, near, names.index("present")] > 0
            full = env.episodes.count >= env.settings.capacity
            instead = np.where(full, 2 + old, 1)
            write = np.where(alike_there, 2 + near, instead)
            return np.where(self.logits(observation[:, 0]) >= bar, write, 0)

        return choose


def column(env: BaseMemoryVectorEnv, observation: Floats, name: str) -> npt.NDArray[np.float32]:
    """Return a column of observations of `AMemGymMemory-v0` by its name, shape (N,)."""
    return observation[:, _number(env.features, name)]


def _number(features: FeatureSet, name: str) -> int:
    return features.feature_names.index(name)
