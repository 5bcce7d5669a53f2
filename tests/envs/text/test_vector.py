from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from amemgym_env.agent import UNSCORED, Operation
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from experiments.benchmark.text_env import random_play

# ---- vector environments, rendering, pickling


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_b06_01_vector_environments_show_what_single_ones_show(mode: str) -> None:
    kwargs = {"shared_memory": False} if mode == "async" else {}
    vector = gym.make_vec(
        "AMemGym-v0", num_envs=2, vectorization_mode=mode, vector_kwargs=kwargs, top_k=2
    )
    singles = [AMemGymEnv("tiny", top_k=2) for _ in range(2)]
    observations, _ = vector.reset(seed=7)
    expected = [env.reset(seed=7 + number)[0] for number, env in enumerate(singles)]
    vector.action_space.seed(0)
    ended = [False, False]
    for _ in range(25):
        assert observations in vector.observation_space
        for number, single in enumerate(expected):
            for name, value in single.items():
                assert observations[name][number] == value, (name, number)
        actions = vector.action_space.sample()
        observations, *_ = vector.step(actions)
        for number, env in enumerate(singles):
            if ended[number]:
                expected[number], ended[number] = env.reset()[0], False
                continue
            action = {name: actions[name][number] for name in actions}
            expected[number], _, over, _, _ = env.step(action)
            ended[number] = over
    vector.close()


def test_rendering_shows_times_operations_and_exam_results(ada: Any) -> None:
    env = ada(render_mode="ansi", capacity=1, diagnosis=True)
    env.step(say("Shortbread.", Operation.add("green tea"), Operation.add("too much")))
    env.step(say("Boots."))
    env.step(answers([env.episode.script.right_shown[0][0], UNSCORED]))
    text = env.render()
    assert isinstance(text, str)
    for line in (
        "-- period 0, session 0, 2024-01-20T08:10:00 --",
        "assistant: Shortbread.",
        "  ADD 1 'green tea': applied",
        "  ADD 'too much': full",
        "== exam after period 0, 2024-01-31: 1 of 1 right (accuracy 1.000) ==",
        "    not asked",
    ):
        assert line in text.splitlines()
    assert "[right]" not in text
    env.step(values([[0], [0]]))
    assert "== probe after period 0 ==" in str(env.render())


def test_human_rendering_prints_every_step_once(
    ada: Any, right: Any, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    env = ada(render_mode="human", privileged=True)
    run(env, right)
    printed = capsys.readouterr().out
    assert printed.count("== exam after period") == 2
    assert printed.count("[right]") == 4
    assert printed.rstrip().endswith("== end ==")


def test_b06_10_an_environment_pickles_before_and_after_reset() -> None:
    env = AMemGymEnv("tiny", top_k=1)
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(env))
        one, two = env.reset(seed=4), copy.reset(seed=4)
        assert one == two
        action = say("", Operation.add("x"))
        assert env.step(action) == copy.step(action)


def test_no_two_steps_share_anything_that_can_change(ada: Any, run: Any) -> None:
    env = ada(privileged=True)
    steps = run(env, lambda env: env.action_space.sample())

    def mutable(value: Any) -> set[int]:
        if isinstance(value, Mapping):
            return {id(value)}.union(*map(mutable, value.values()), set())
        if isinstance(value, list | np.ndarray | set):
            return {id(value)}
        return set().union(*map(mutable, value)) if isinstance(value, tuple) else set()

    seen = [mutable((step[0], step[4])) for step in steps]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_b06_03_shared_memory_is_refused_and_not_frozen() -> None:
    with pytest.raises(ValueError, match="shared_memory"):
        gym.make_vec("AMemGym-v0", num_envs=1, vectorization_mode="async")


def test_b06_09_workers_that_are_spawned_find_the_environment() -> None:
    make = functools.partial(gym.make, "amemgym_env:AMemGym-v0", top_k=1)
    vector = gym.vector.AsyncVectorEnv([make, make], shared_memory=False, context="spawn")
    observations, infos = vector.reset(seed=3)
    singles = [AMemGymEnv("tiny", top_k=1).reset(seed=seed) for seed in (3, 4)]
    assert observations["message"] == tuple(single[0]["message"] for single in singles)
    assert infos["scenario"].tolist() == [single[1]["scenario"] for single in singles]
    vector.close()


def test_random_play_over_a_set_stays_inside_the_spaces_at_speed() -> None:
    rate = random_play("tiny", steps=2000, diagnosis=True, top_k=3)
    assert rate.environment > 500  # the target, 5,000, is for an idle core
    assert rate.ratio > 1
