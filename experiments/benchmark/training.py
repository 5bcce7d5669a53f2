"""Training speed of PPO (stable-baselines3) over the native batch and over DummyVecEnv.

The same PPO, 64 environments, batches of 1,024. Processor time of alternating turns; the fastest
turn of each counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from gymnasium.vector import AutoresetMode

from amemgym_env.envs.memory.env import AMemGymMemoryEnv
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.vector_env import AMemGymMemoryVectorEnv
from experiments.benchmark.memory_env import train_pool
from experiments.benchmark.timing import Stopwatch, markdown


class TrainingSpeed(NamedTuple):
    """Rounds of single environments a second while PPO learns, and where the time goes."""

    name: str
    rounds_a_second: float
    environment: float
    """Share of the processor time that is spent inside of the `VecEnv`'s step."""
    deciding: float
    """Share of choosing actions and filling the buffer: the rest of collecting rounds."""
    learning: float
    """Share of the updates of the network."""


class _Trainer:
    """A PPO that is trained in turns with others, and timed."""

    def __init__(self, name: str, env: Any) -> None:
        from stable_baselines3 import PPO
        from stable_baselines3.common.logger import Logger

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SB3 advises on sizes, which are the ones asked for
            self.model = PPO("MlpPolicy", env, n_steps=64, batch_size=1024, seed=0, device="cpu")
        self.model.set_logger(Logger(None, []))  # SB3's own would leave a folder behind
        self.name = name
        self.best: TrainingSpeed | None = None
        self._inside = _timed(env, "step_wait")
        self._updating = _timed(self.model, "train")

    def turn(self, rounds: int) -> None:
        """Train for some rounds more; keep the figures of the fastest turn."""
        self._inside.seconds = self._updating.seconds = 0.0
        before = self.model.num_timesteps
        with Stopwatch() as whole:
            self.model.learn(rounds, reset_num_timesteps=False)
        shares = self._inside.seconds / whole.seconds, self._updating.seconds / whole.seconds
        speed = (self.model.num_timesteps - before) / whole.seconds
        if self.best is None or speed > self.best.rounds_a_second:
            self.best = TrainingSpeed(
                self.name, speed, shares[0], 1.0 - shares[0] - shares[1], shares[1]
            )


def _timed(owner: Any, method: str) -> Stopwatch:
    """Return the stopwatch that from now on runs within a method."""
    real, watch = getattr(owner, method), Stopwatch()

    def timed(*args: Any, **more: Any) -> Any:
        with watch:
            return real(*args, **more)

    setattr(owner, method, timed)
    return watch


def training_speeds(
    num_envs: int = 64, rounds: int = 32_768, turns: int = 3, pool: Pool | None = None
) -> list[TrainingSpeed]:
    """Return the speeds of PPO over DummyVecEnv and over the adapter, in this order."""
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv

    from experiments.train.sb3_vec_env import NativeVecEnv

    torch.set_num_threads(1)
    shared = train_pool() if pool is None else pool
    native = AMemGymMemoryVectorEnv(num_envs, shared, autoreset_mode=AutoresetMode.SAME_STEP)
    trainers = [
        _Trainer("DummyVecEnv", DummyVecEnv([lambda: AMemGymMemoryEnv(shared)] * num_envs)),
        _Trainer("native batch", NativeVecEnv(native)),
    ]
    for _ in range(turns):
        for trainer in trainers:
            trainer.turn(rounds)
    return [trainer.best for trainer in trainers if trainer.best is not None]


def training_table(speeds: Sequence[TrainingSpeed]) -> str:
    """Return speeds as a Markdown table; ratios are to the first."""
    return markdown(
        ("PPO over", "rounds/s", "ratio", "environment", "deciding", "learning"),
        (
            (
                speed.name,
                f"{speed.rounds_a_second:,.0f}",
                f"{speed.rounds_a_second / speeds[0].rounds_a_second:.2f}",
                *(f"{part:.0%}" for part in (speed.environment, speed.deciding, speed.learning)),
            )
            for speed in speeds
        ),
    )
