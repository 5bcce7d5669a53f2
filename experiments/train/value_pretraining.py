"""Value pretraining: regression of action scores on privileged one-step values, with DAgger.

In training the hidden state is known, so every action can be tried on the current bank. Its value
is the expected accuracy of the next exams, discounted, if nothing else is written. A network that
predicts these values from observations learns to detect exposures, outdated entries and entries to
evict. Later writes are left to reinforcement learning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Ints
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.policies.features import Floats
from amemgym_env.seeding import derived, generator
from experiments.baselines.benchmark import PolicyBenchmark, PolicyFn, Which
from experiments.train.reward_shaping import coming_exams

Values = npt.NDArray[np.float32]
Masks = npt.NDArray[np.bool_]


_BATCH = 256
_SCALE = 100.0
"""Scale from values to scores: a value difference of .01 is a factor of e in probability."""
_EXAMS, _DISCOUNT = 2, 0.7
_EXPLORED = 0.1
_SCRIPTS = 128
"""Number of scripts played between two updates."""


class Examples(NamedTuple):
    """Training data of the regression."""

    observations: Floats  # (n, …)
    values: Values  # (n, actions) what an action is worth, less what NOOP is worth
    legal: Masks  # (n, actions)


def values(env: BaseMemoryVectorEnv, which: Ints, exams: int, discount: float) -> Values:
    """Return the advantage of each action over NOOP, (n, actions), of environments `which`.

    The sum over the next `exams` exams of the expected accuracy, exam k weighed by `discount`**k.
    """
    actions = env.action_masks().shape[1]
    copy = env.fork(np.repeat(which, actions))
    table = coming_exams(env.pool)
    coming = np.repeat(table[env.episodes.script[which], env.episodes.turn[which] + 1], actions)
    copy.apply(np.tile(np.arange(actions), len(which)))
    everyone = copy.episodes.columns
    readings = copy.episodes.readings(everyone)
    last = table[copy.episodes.script, -1]
    total = np.zeros(len(everyone))
    for number in range(exams):
        period = coming + number
        there = period <= last
        scored = copy.episodes.expected_accuracy(everyone, np.minimum(period, last), readings)
        total += np.where(there, discount**number * scored, 0.0)
    worth = total.reshape(-1, actions)
    found: Values = (worth - worth[:, :1]).astype(np.float32)
    return found


def warm(
    policy: Any,
    play: Callable[[], PolicyFn],
    bench: PolicyBenchmark,
    teacher: PolicyFn,
    which: Which,
    seed: int,
    *,
    rounds: int,
    updates: int,
    after: Callable[[int, bool], None],
) -> None:
    """Pretrain an SB3 policy (DAgger): values of the teacher's states first, then of its own.

    `play()` returns the policy as it stands; `after` is told the rounds played, and whether more
    follow. Method: DAgger (Ross, Gordon and Bagnell, 2011).
    """
    data: list[Examples] = []
    for number in range(rounds):
        player = play() if number else teacher
        scripts = bench.window(number * _SCRIPTS, _SCRIPTS)
        data.append(examples(scripts, player, which, derived(seed, "examples", number)))
        every = Examples(*(np.concatenate(part) for part in zip(*data, strict=True)))
        learn(policy, every, updates, derived(seed, "updates", number))
        after(len(data[-1].values), number < rounds - 1)


def examples(bench: PolicyBenchmark, player: PolicyFn, which: Which, seed: int) -> Examples:
    """Return all states of a policy's episodes with their values; some actions are random."""
    random = generator("foresight", seed)
    parts: list[Examples] = []

    def watch(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        actions = player(env, observation).astype(np.int64)
        masks = env.action_masks()
        alive = np.flatnonzero(~env.episodes.over())
        if alive.size:
            valued = values(env, alive, _EXAMS, _DISCOUNT)
            parts.append(Examples(observation[alive], valued, masks[alive]))
        drawn = np.where(masks, random.random(masks.shape), -1.0).argmax(axis=1)
        return np.where(random.random(len(actions)) < _EXPLORED, drawn, actions)

    bench.score(watch, which)
    return Examples(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def learn(policy: Any, data: Examples, updates: int, seed: int, rate: float = 1e-3) -> float:
    """Fit the scores of an SB3 actor to the scaled values; return the last loss."""
    import torch

    from experiments.train.networks import action_scores

    random = generator("foresight, batches", seed)
    optimizer = torch.optim.Adam(policy.parameters(), rate)
    loss = torch.zeros(())
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - 0.95 * update / updates)
        rows = random.integers(0, len(data.values), _BATCH)
        scores = action_scores(policy, torch.as_tensor(data.observations[rows]))
        wanted = torch.as_tensor(data.values[rows]) * _SCALE
        legal = torch.as_tensor(data.legal[rows])
        error = (scores - scores[:, :1] - wanted)[legal]
        loss = (error**2).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return float(loss.detach())
