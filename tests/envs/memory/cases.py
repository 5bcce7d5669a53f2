"""Scenarios and pools that the tests of the number environments share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from amemgym_env.envs.memory.env import AMemGymMemoryEnv, AMemGymSlotsEnv, BaseMemoryEnv
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.envs.memory.vector_env import AMemGymMemoryVectorEnv, AMemGymSlotsVectorEnv
from amemgym_env.generation.sets import scenarios
from amemgym_env.scenarios.model import Scenario

PAIRS: dict[str, tuple[type[BaseMemoryEnv], type[BaseMemoryVectorEnv]]] = {
    "memory": (AMemGymMemoryEnv, AMemGymMemoryVectorEnv),
    "slots": (AMemGymSlotsEnv, AMemGymSlotsVectorEnv),
}


@lru_cache(maxsize=1)
def few() -> tuple[Scenario, ...]:
    """Return four generated scenarios of the `train` split."""
    return tuple(scenarios("train", 4))


@lru_cache(maxsize=4)
def pool(difficulty: str = "default") -> Pool:
    """Return a pool of eight scripts over them; not for tests that refresh it."""
    return Pool(Scripts(few(), difficulty), 8, keep_scripts=True)


def scalar(kind: str, **settings: Any) -> BaseMemoryEnv:
    return PAIRS[kind][0](settings.pop("scenarios", None) or pool(), **settings)


def batch(kind: str, num_envs: int, **settings: Any) -> BaseMemoryVectorEnv:
    return PAIRS[kind][1](num_envs, settings.pop("scenarios", None) or pool(), **settings)
