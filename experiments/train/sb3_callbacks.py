"""SB3 callback and shaped environment of the training job.

Imports SB3; imported when a training begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from experiments.train.reward_shaping import Shaping
from experiments.train.sb3_vec_env import Floats, NativeVecEnv
from experiments.train.settings import TrainSettings

_REPORTS = 16
"""Steps of the batch between two reports."""


class TrainingVecEnv(NativeVecEnv):
    """Adapter with shaped rewards; `info["episode"]` reports the environment's returns."""

    def __init__(self, venv: BaseMemoryVectorEnv, shaping: Shaping | None) -> None:
        super().__init__(venv)
        self._shaping = shaping

    def reset(self) -> Floats:
        """Begin new episodes."""
        observation = super().reset()
        if self._shaping is not None:
            self._shaping.begin()
        return observation

    def step_wait(self) -> VecEnvStepReturn:
        """Step all episodes."""
        observation, reward, done, infos = super().step_wait()
        if self._shaping is not None:
            reward = reward + self._shaping.pay(done).astype(np.float32)
        return observation, reward, done, infos


class TrainingCallback(BaseCallback):
    """Callback: validation, pool refreshes, reports, and critic warm-up."""

    def __init__(
        self,
        validate: Callable[[], float],
        refresh: Callable[[], None],
        settings: TrainSettings,
        report: Report,
        critic_steps: int,
    ) -> None:
        super().__init__()
        self._validate = validate
        self._refresh = refresh
        self._settings = settings
        self._report = report
        self._critic_steps = critic_steps
        self._calls = 0

    def _on_training_start(self) -> None:
        settings = self._settings
        self._begun = int(self.num_timesteps)
        self._next_look = self._begun + settings.evaluate_every
        self._next_refresh = self._begun + (settings.refresh_every or 0)
        if self._critic_steps:
            self._actor(False)

    def _actor(self, learns: bool) -> None:
        policy: Any = self.model.policy
        for name, values in policy.named_parameters():
            if "critic" not in name and "value" not in name:
                values.requires_grad = learns

    def _on_rollout_start(self) -> None:
        if self._critic_steps and self.num_timesteps - self._begun >= self._critic_steps:
            self._actor(True)
            self._critic_steps = 0

    def _on_step(self) -> bool:

        settings = self._settings
        self._calls += 1
        if settings.refresh_every and self.num_timesteps >= self._next_refresh:
            self._next_refresh += settings.refresh_every
            self._refresh()
        if self._calls % _REPORTS == 0:
            self._report(int(self.num_timesteps), reward(self.model))
        if self.num_timesteps >= self._next_look:
            self._next_look += settings.evaluate_every
            self.logger.record("validation/accuracy", self._validate())
        return True


Report = Callable[[int, float], None]
"""Callback with the rounds played and the mean return of recent episodes."""


def reward(model: Any) -> float:
    """Return the mean return of recent training episodes; NaN before the first ends."""
    ended = [info["r"] for info in (model.ep_info_buffer or ())]
    return float(np.mean(ended)) if ended else float("nan")
