"""Algorithms of stable-baselines3 by name, with their constructor arguments."""

from __future__ import annotations

import importlib
from typing import Any

from amemgym_env.errors import ConfigError
from experiments.train.settings import OffPolicy, OnPolicy, OwnAlgorithm


def class_of(algorithm: OnPolicy | OffPolicy | OwnAlgorithm) -> tuple[Any, dict[str, Any]]:
    """Return an algorithm's class and the arguments of its constructor."""
    path = {
        "ppo": "stable_baselines3:PPO",
        "maskable_ppo": "sb3_contrib:MaskablePPO",
        "dqn": "stable_baselines3:DQN",
        "own": getattr(algorithm, "path", ""),
    }[algorithm.name]
    module, colon, name = path.partition(":")
    if not colon:
        start, _, end = path.rpartition(".")
        meant = f"; did you mean {start}:{end}?" if start else ""
        raise ConfigError(f"algorithm.path: expected package.module:Class, found {path!r}{meant}")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"algorithm: expected {path} to be there, found {error}; "
            "pip install 'amemgym-env[train]' brings stable-baselines3"
        ) from error
    if isinstance(algorithm, OwnAlgorithm):
        return kind, dict(algorithm.arguments)
    arguments = algorithm.model_dump(exclude={"name", "num_envs", "hidden"})
    rate = arguments["learning_rate"]
    arguments["learning_rate"] = lambda left: rate * max(left, 0.05)
    return kind, arguments
