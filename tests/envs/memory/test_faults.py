"""Faults of the memory environments that users met, by id."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from amemgym_env.envs.memory.text_wrapper import MemoryOperations
from amemgym_env.errors import ActionError, ConfigError, EpisodeOver
from amemgym_env.generation.sets import scenarios
from tests.envs.memory.cases import PAIRS, batch, scalar


def wrapped(**settings: Any) -> MemoryOperations:
    few = tuple(scenarios("train", 1))
    env = gym.make("amemgym_env:AMemGym-v0", scenarios=few, difficulty="default", **settings)
    return MemoryOperations(env)


def played(env: Any, action: int = 1) -> list[tuple[float, dict[str, Any]]]:
    env.reset(seed=0)
    steps, over = [], False
    while not over:
        _, reward, terminated, truncated, info = env.step(action)
        steps.append((reward, info))
        over = terminated or truncated
    return steps


def test_h2_the_wrapper_pays_terminal_rewards_as_the_environment_does() -> None:
    period, terminal = played(wrapped()), played(wrapped(reward="terminal"))
    accuracies = period[-1][1]["accuracies"]
    assert len(accuracies) == sum(reward > 0 for reward, _ in period) == 11
    assert [reward for reward, _ in terminal[:-1]] == [0.0] * (len(terminal) - 1)
    assert terminal[-1][0] == pytest.approx(sum(accuracies) / len(accuracies))


@pytest.mark.parametrize("action", [7, -1, 1.9, True, "1", None, [1], np.timedelta64(1), 4])
def test_h2_the_wrapper_and_the_environment_refuse_the_same_actions(action: Any) -> None:
    for env in (wrapped(), scalar("memory")):
        env.reset(seed=0)
        with pytest.raises(ActionError, match=r"expected an integer in 0\.\.3"):
            env.step(action)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("reward", ["period", "terminal"])
def test_o1_the_last_info_holds_the_accuracies_of_all_exams(kind: str, reward: str) -> None:
    steps = played(scalar(kind, reward=reward))
    held = [info["accuracy"] for _, info in steps if "accuracy" in info]
    assert list(steps[-1][1]["accuracies"]) == held
    assert not any("accuracies" in info for _, info in steps[:-1])
    env = batch(kind, 2, reward=reward, autoreset_mode="SameStep")
    env.reset(seed=[0, 1])
    while True:
        infos = env.step(np.ones(2, np.int64))[4]
        if "final_info" in infos and infos["_final_info"][0]:
            assert infos["final_info"]["accuracies"][0] == steps[-1][1]["accuracies"]
            break


@pytest.mark.parametrize("kind", PAIRS)
def test_f11_masked_actions_are_counted(kind: str) -> None:
    env = scalar(kind, max_steps=5)
    env.reset(seed=0)
    infos = [env.step(action)[4] for action in (2, 0, 3, 1, 2)]
    assert [info.get("masked", False) for info in infos] == [True, False, True, False, False]
    assert infos[-1]["masked_actions"] == 2
    assert "masked_actions" not in infos[0]


@pytest.mark.parametrize("seed", [2**64, -1, 5.0, "3", True, timedelta(1), np.timedelta64(1)])
def test_o5_a_wrong_seed_is_our_own_error(seed: Any) -> None:
    text = gym.make("amemgym_env:AMemGym-v0").unwrapped
    for env in (text, scalar("memory"), batch("memory", 2)):
        with pytest.raises(ConfigError, match=r"seed: expected an integer in 0"):
            env.reset(seed=seed)
    with pytest.raises(ConfigError, match="seed"):
        batch("memory", 2).reset(seed=[seed, 1])


@pytest.mark.parametrize("actions", [[[0], [1, 2]], [[0, 1]], [0], None, [None, 1], [0.5, 1]])
def test_o5_ragged_actions_are_our_own_error(actions: Any) -> None:
    env = batch("memory", 2)
    env.reset(seed=0)
    with pytest.raises(ActionError, match="2 integers"):
        env.step(actions)


def test_a_step_before_the_first_reset_and_after_the_end_is_refused() -> None:
    env = scalar("memory", max_steps=1)
    with pytest.raises(EpisodeOver):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(EpisodeOver):
        env.step(0)


@pytest.mark.parametrize("name", ["AMemGym-v0", "AMemGymMemory-v0", "AMemGymSlots-v0"])
def test_s12_a_mistyped_argument_of_make_names_the_nearest(name: str) -> None:
    with pytest.raises(ConfigError, match=r"found 'dificulty'.*difficulty"):
        gym.make(f"amemgym_env:{name}", dificulty="default")
