"""Speed of random play in `AMemGym-v0`, relative to a no-op environment with the same spaces."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, NamedTuple

import gymnasium as gym

from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.envs.text.spaces import action_space, observation_space
from experiments.benchmark.timing import Stopwatch


class StepRate(NamedTuple):
    """Steps a second on one core; actions are sampled beforehand and not timed."""

    environment: float
    no_op: float
    sampling: float
    """Samples of the action space a second."""

    @property
    def ratio(self) -> float:
        """How much faster the no-op environment is."""
        return self.no_op / self.environment


class NoOpEnv(gym.Env[Any, Any]):
    """Has the spaces of `AMemGym-v0`, shows one observation and never ends."""

    def __init__(self) -> None:
        self.observation_space = observation_space()
        self.action_space = action_space()
        self._observation = self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Return the observation."""
        return dict(self._observation), {}

    def step(self, action: Mapping[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Return the observation."""
        return dict(self._observation), 0.0, False, False, {}


def random_play(scenarios: Any, steps: int = 10_000, seed: int = 0, **settings: Any) -> StepRate:
    """Return the step rates of random play; resets are played within the steps' time.

    `settings` go to `AMemGymEnv`. Each observation is checked to lie in its space, untimed.
    """
    env = AMemGymEnv(scenarios, **settings)
    env.action_space.seed(seed)
    with Stopwatch(perf_counter) as watch:
        actions = [env.action_space.sample() for _ in range(steps)]
    sampling = steps / watch.seconds
    seconds = _play(env, actions, seed)
    return StepRate(steps / seconds, steps / _play(NoOpEnv(), actions, seed), sampling)


def _play(env: gym.Env[Any, Any], actions: list[Any], seed: int) -> float:
    observations = []
    with Stopwatch(perf_counter) as watch:
        env.reset(seed=seed)
        for action in actions:
            observation, _, terminated, truncated, _ = env.step(action)
            observations.append(observation)
            if terminated or truncated:
                env.reset()
    for observation in observations:
        if observation not in env.observation_space:
            raise AssertionError(f"outside of its space: {observation!r:.500}")
    return watch.seconds
