"""Oracle policies for `AMemGymMemory-v0`: baselines with access to the hidden state.

They know which messages expose a value that a question needs, and `plan` tries every action on
copies of the environment. They bound the gain from detecting exposures and from choosing evictions.
"""

from __future__ import annotations

import numpy as np

from amemgym_env.envs.memory.batch_state import Bools, Ints
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.policies.features import Floats
from experiments.baselines.benchmark import PolicyFn, Scores
from experiments.baselines.rules import add_or_update


def exposes(env: BaseMemoryVectorEnv) -> Bools:
    """Return whether the current messages expose a value that a question needs, (N,)."""
    episodes = env.episodes
    given = env.pool.pairs[episodes.script, episodes.turn + 1] >= 0
    return np.asarray(given.any(axis=1), np.bool_)


def true_writer(alike: float) -> PolicyFn:
    """Write exactly the exposing messages, by `add_or_update`."""

    def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        return add_or_update(exposes(env), env, observation, alike)

    return choose


def plan(base: PolicyFn, horizon: int | None = None) -> PolicyFn:
    """Try every action on a copy, go on with `base` for `horizon` rounds, and take the best.

    None plays to the end. Ties go to the action that `base` takes, so planning never loses to it
    by chance. Only messages that give something away are planned for.
    """

    def choose(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        actions = base(env, observation).astype(np.int64)
        which = np.flatnonzero(exposes(env) & ~env.episodes.over())
        if not which.size:
            return actions
        masks = env.action_masks()[which]
        number = masks.shape[1]
        values = returns(
            env, np.repeat(which, number), np.tile(np.arange(number), len(which)), base, horizon
        )
        values = np.where(masks, values.reshape(-1, number), -np.inf)
        rows = np.arange(len(which))
        values[rows, actions[which]] += 1e-9
        actions[which] = values.argmax(axis=1)
        return actions

    return choose


def returns(
    env: BaseMemoryVectorEnv, which: Ints, actions: Ints, base: PolicyFn, horizon: int | None
) -> Scores:
    """Return the returns of copied environments with a first action and `base` after it, (n,)."""
    copy = env.fork(which)
    total = np.zeros(len(which))
    running = np.ones(len(which), np.bool_)
    steps = 0
    while running.any() and (horizon is None or steps < horizon):
        observation, reward, terminated, truncated, _ = copy.step(actions)
        total += reward * running
        running &= ~(terminated | truncated)
        steps += 1
        if running.any():
            actions = base(copy, observation)
    return total
