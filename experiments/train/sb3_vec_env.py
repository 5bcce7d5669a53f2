"""Stable-Baselines3 `VecEnv` over a native batch of a memory environment.

SB3 expects SAME_STEP autoreset, a list of infos, the last observation under `terminal_observation`,
`TimeLimit.truncated`, and `episode` with return and length. Only environments that end an episode
or an exam get an info dict of their own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from amemgym_env.envs.memory.episode_draws import series_seeds
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.errors import ConfigError

Floats = npt.NDArray[np.float32]


class NativeVecEnv(VecEnv):
    """The adapter; `venv` must have been made with autoreset SAME_STEP.

    Observations are float32, rewards float32, as SB3 keeps them. `env_method("action_masks")` and
    `get_attr` answer for single environments, so MaskablePPO works. `info["episode"]` holds r, l
    and t (seconds since the adapter was made), as SB3's `VecMonitor` has it.

    Raises:
        ConfigError: another autoreset mode.
    """

    def __init__(self, venv: BaseMemoryVectorEnv) -> None:
        if venv.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ConfigError(
                "venv: expected autoreset_mode=AutoresetMode.SAME_STEP, which SB3 relies on, "
                f"found {venv.autoreset_mode}"
            )
        self.venv = venv
        self._actions: Any = None
        self._returns = np.zeros(venv.num_envs)
        self._lengths = np.zeros(venv.num_envs, np.int64)
        self._start = time.perf_counter()
        super().__init__(venv.num_envs, venv.single_observation_space, venv.single_action_space)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seed the next `reset`; series of different seeds are independent (`series_seeds`)."""
        if seed is None:
            seed = int(np.random.default_rng().integers(2**32))
        self._seeds = series_seeds(seed, self.num_envs).tolist()
        return list(self._seeds)

    def reset(self) -> Floats:
        """Begin new episodes; seeds set by `seed` are used once."""
        seeds = self._seeds
        given = None if all(seed is None for seed in seeds) else seeds
        observation, infos = self.venv.reset(seed=given)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        ids = infos["scenario"].tolist()
        self.reset_infos = [{"scenario": scenario} for scenario in ids]
        return observation

    def step_async(self, actions: npt.NDArray[np.integer[Any]]) -> None:
        """Take the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step all episodes."""
        observation, reward, terminated, truncated, infos = self.venv.step(self._actions)
        self._returns += reward
        self._lengths += 1
        done = terminated | truncated
        listed: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if "accuracy" in infos:
            for index in infos["_accuracy"].nonzero()[0].tolist():
                listed[index]["accuracy"] = float(infos["accuracy"][index])
        if done.any():
            self._report(done, truncated, infos, listed)
        return observation, reward.astype(np.float32), done, listed

    def _report(
        self,
        done: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        infos: dict[str, Any],
        listed: list[dict[str, Any]],
    ) -> None:
        """Fill in the infos of the episodes that have ended."""
        last = infos["final_info"]
        elapsed = round(time.perf_counter() - self._start, 6)
        for index in done.nonzero()[0].tolist():
            info = listed[index]
            info["terminal_observation"] = infos["final_obs"][index]
            info["TimeLimit.truncated"] = bool(truncated[index])
            info["episode"] = {
                "r": float(self._returns[index]),
                "l": int(self._lengths[index]),
                "t": elapsed,
            }
            for name in last.keys() & {"accuracy", "accuracies", "masked_actions"}:
                if last[f"_{name}"][index]:
                    info[name] = last[name][index]
            self.reset_infos[index] = {"scenario": infos["scenario"][index]}
        self._returns[done] = 0.0
        self._lengths[done] = 0

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions do something now, shape (N, actions)."""
        return self.venv.action_masks()

    def close(self) -> None:
        """Close the batch."""
        self.venv.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the batch, once for each index."""
        value = getattr(self if attr_name == "action_masks" else self.venv, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refuse: the environments of a batch have no attributes of their own."""
        raise AttributeError(
            f"{attr_name}: a native batch has no attributes of single environments"
        )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call `action_masks` for the given environments; others do not exist one by one."""
        if method_name != "action_masks":
            raise AttributeError(
                f"{method_name}: expected 'action_masks', the one method of single environments"
            )
        masks = self.action_masks()
        return [masks[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """Return whether the adapter does what a wrapper does: it keeps episodes as Monitor."""
        from stable_baselines3.common.monitor import Monitor

        is_monitor = isinstance(wrapper_class, type) and issubclass(wrapper_class, Monitor)
        return [is_monitor for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """Return nothing: there is nothing to see."""
        return [None] * self.num_envs
