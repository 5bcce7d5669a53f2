"""Behaviour cloning of the supervised writer, as a warm start.

The writer plays the training scenarios with some random actions, so that the network also sees
states off the writer's path; the targets are the writer's actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Ints
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.policies.features import Floats
from amemgym_env.seeding import generator
from experiments.baselines.benchmark import PolicyBenchmark, PolicyFn, Which

_EXPLORED = 0.1
_SCALED = 32
"""Number of scripts for the scales of features."""
_BATCH = 512
_ENTROPY = 0.02
"""Entropy bonus that keeps the cloned policy stochastic for further learning."""


def scales(bench: PolicyBenchmark, which: Which) -> Floats:
    """Return the standard deviation of every feature under random play, in an observation's shape.

    Entries of `AMemGymSlots-v0` share one scale, so that their order stays irrelevant.
    """
    random = generator("scales")
    seen: list[Floats] = []

    def watch(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        seen.append(observation[~env.episodes.over()])
        masks = env.action_masks()
        drawn: Ints = np.where(masks, random.random(masks.shape), -1.0).argmax(axis=1)
        return drawn

    bench.window(0, _SCALED).score(watch, which)
    observations = np.concatenate(seen)
    if which == "memory":
        return _spread(observations)
    entries = observations[:, 1:].reshape(-1, observations.shape[2])
    rows = [_spread(observations[:, 0])]
    rows += [_spread(entries)] * (observations.shape[1] - 1)
    return np.stack(rows)


def _spread(rows: Floats) -> Floats:
    spread: Floats = np.maximum(rows.std(axis=0), 0.05).astype(np.float32)
    return spread


def demonstrations(
    bench: PolicyBenchmark, teacher: PolicyFn, which: Which, seed: int
) -> tuple[Floats, Ints, npt.NDArray[np.bool_]]:
    """Return observations (n, …), the teacher's actions (n,) and legal actions (n, actions)."""
    random = generator("demonstrations", seed)
    seen: list[Floats] = []
    done: list[Ints] = []
    legal: list[npt.NDArray[np.bool_]] = []

    def watch(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        actions = teacher(env, observation).astype(np.int64)
        alive = ~env.episodes.over()
        masks = env.action_masks()
        seen.append(observation[alive])
        done.append(actions[alive])
        legal.append(masks[alive])
        explored = random.random(len(actions)) < _EXPLORED
        drawn = np.where(masks, random.random(masks.shape), -1.0).argmax(axis=1)
        return np.where(explored, drawn, actions)

    bench.score(watch, which)
    return np.concatenate(seen), np.concatenate(done), np.concatenate(legal)


def imitate(
    policy: Any,
    examples: tuple[Floats, Ints, npt.NDArray[np.bool_]],
    masked: bool,
    seed: int,
    updates: int,
) -> float:
    """Train an actor-critic policy of SB3 on demonstrations; return the last cross entropy."""
    import torch

    observations, actions, masks = examples
    random = generator("imitation", seed)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    loss = torch.zeros(())
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 - 0.9 * update / updates)
        rows = random.integers(0, len(actions), _BATCH)
        seen = torch.as_tensor(observations[rows])
        more = {"action_masks": masks[rows]} if masked else {}
        chances = policy.get_distribution(seen, **more)
        loss = -chances.log_prob(torch.as_tensor(actions[rows])).mean()
        # mypy cannot see into torch's distributions.
        total: Any = loss - _ENTROPY * chances.entropy().mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return float(loss.detach())
