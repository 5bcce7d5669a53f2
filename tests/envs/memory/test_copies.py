"""Copies of environments continue exactly as the original; series of different seeds differ."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest

from amemgym_env.envs.memory.episode_draws import series_seeds
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.text.actions import answers, say
from tests.envs.memory.cases import PAIRS, batch, few, scalar

COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "cloudpickle": lambda env: cloudpickle.loads(cloudpickle.dumps(env)),
}


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", PAIRS)
def test_p03_a_copied_batch_goes_on_as_the_original(kind: str, how: Callable[[Any], Any]) -> None:
    env = batch(kind, 3, scenarios=Pool(Scripts(few()), 8), autoreset_mode="SameStep")
    env.reset(seed=0)
    generator = np.random.default_rng(0)
    for _ in range(50):
        env.step(generator.integers(0, 4, 3))
    other = how(env)
    actions = generator.integers(0, 4, (300, 3))
    env.pool.refresh(2)  # the copy has a pool of its own
    original = how(other)
    paid = 0.0
    for row in actions:
        one, two = original.step(row), other.step(row)
        paid += float(one[1].sum())
        for mine, theirs in zip(one[:4], two[:4], strict=True):
            assert np.array_equal(mine, theirs)
        assert one[4].keys() == two[4].keys()
    assert paid > 5.0


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", PAIRS)
def test_p03_a_copied_scalar_goes_on_as_the_original(kind: str, how: Callable[[Any], Any]) -> None:
    env = scalar(kind)
    env.reset(seed=3)
    for action in (1, 1, 2, 1):
        env.step(action)
    other = how(env)
    for step in range(300):
        one, two = env.step(step % 4), other.step(step % 4)
        assert np.array_equal(one[0], two[0])
        assert one[1:] == two[1:]
        if one[2]:
            assert np.array_equal(env.reset()[0], other.reset()[0])


@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
def test_p03_a_copied_text_environment_goes_on_as_the_original(how: Callable[[Any], Any]) -> None:
    env = gym.make("amemgym_env:AMemGym-v0", scenarios="tiny")
    observation, _ = env.reset(seed=1)
    from amemgym_env.agent import Operation

    env.step(say("Noted.", Operation.add(observation["message"])))
    other = how(env)
    ended = False
    while not ended:
        number = len(observation["questions"])
        action = answers([1] * number) if number else say("Noted.")
        one, two = env.step(action), other.step(action)
        observation, ended = one[0], one[2]
        assert one == two
    assert one[4]["hash"] == two[4]["hash"]


def test_p24_batches_of_different_seeds_share_no_series() -> None:
    seeds = np.stack([series_seeds(seed, 256) for seed in range(100)])
    assert len(np.unique(seeds)) == seeds.size
    assert np.array_equal(series_seeds(7, 4), series_seeds(7, 256)[:4])
    played = [set(batch("memory", 8).reset(seed=seed)[1]["seed"].tolist()) for seed in (0, 1)]
    assert all(played)
