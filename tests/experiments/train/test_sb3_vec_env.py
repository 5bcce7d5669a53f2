"""Stable-Baselines3 over the native batch: what it is told, and that its algorithms run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.errors import ConfigError
from tests.envs.memory.cases import PAIRS, batch, pool, scalar

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from experiments.train.sb3_vec_env import NativeVecEnv


def adapted(kind: str, num_envs: int, **settings: Any) -> NativeVecEnv:
    return NativeVecEnv(batch(kind, num_envs, autoreset_mode="SameStep", **settings))


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("limit", [None, 37], ids=["to the end", "cut short"])
def test_the_adapter_says_what_sb3s_own_says(kind: str, limit: int | None) -> None:
    mine = adapted(kind, 3, max_steps=limit)
    theirs = DummyVecEnv([lambda: scalar(kind, max_steps=limit) for _ in range(3)])
    theirs._seeds = mine.seed(5)  # the adapter hashes seed and index (P24)
    assert np.array_equal(mine.reset(), theirs.reset())
    generator = np.random.default_rng(0)
    ended, returns = 0, np.zeros(3)
    for _ in range(150):
        actions = generator.integers(0, mine.action_space.n, 3)
        one, two = mine.step(actions), theirs.step(actions)
        assert one[0].dtype == two[0].dtype == np.float32
        assert one[1].dtype == two[1].dtype
        for a, b in zip(one[:3], two[:3], strict=True):
            assert np.array_equal(a, b)
        returns += one[1]
        for index, (info, other) in enumerate(zip(one[3], two[3], strict=True)):
            for name in ("accuracy", "accuracies", "masked_actions"):
                assert info.get(name) == other.get(name)
            if one[2][index]:
                ended += 1
                assert info["TimeLimit.truncated"] == other["TimeLimit.truncated"] == bool(limit)
                assert np.array_equal(info["terminal_observation"], other["terminal_observation"])
                assert info["episode"]["r"] == pytest.approx(returns[index], rel=1e-5)
                assert mine.reset_infos[index]["scenario"] == theirs.reset_infos[index]["scenario"]
                returns[index] = 0.0
    assert ended >= 3


def test_p24_neighbouring_seeds_share_no_series() -> None:
    one, two = adapted("memory", 256), adapted("memory", 256)
    assert not set(one.seed(0)) & set(two.seed(1))


def test_masks_reach_maskable_ppo_b06_13() -> None:
    env = adapted("slots", 4)
    env.reset()
    masks = np.stack(env.env_method("action_masks"))
    assert masks.shape == (4, 26)
    assert masks[:, :2].all()
    assert not masks[:, 2:].any()
    assert env.has_attr("action_masks")
    assert env.env_method("action_masks", indices=[1])[0].tolist() == masks[1].tolist()
    with pytest.raises(AttributeError, match="action_masks"):
        env.env_method("fly")


ALGORITHMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PPO": (PPO, {"n_steps": 16, "batch_size": 64, "n_epochs": 1}),
    "MaskablePPO": (MaskablePPO, {"n_steps": 16, "batch_size": 64, "n_epochs": 1}),
    "DQN": (DQN, {"learning_starts": 16, "buffer_size": 256, "batch_size": 16}),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_run_through_the_adapter(name: str, kind: str) -> None:
    make, settings = ALGORITHMS[name]
    model = make("MlpPolicy", adapted(kind, 4, max_steps=20), seed=0, **settings)
    model.learn(200)
    assert model.num_timesteps >= 200
    assert len(model.ep_info_buffer) > 0


def test_another_autoreset_mode_is_one_clear_error() -> None:
    env: BaseMemoryVectorEnv = batch("memory", 2, scenarios=pool())
    with pytest.raises(ConfigError, match="SAME_STEP"):
        NativeVecEnv(env)
