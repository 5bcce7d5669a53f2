"""Infos, snapshots and autoreset modes of the native vector environments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from amemgym_env.envs.memory.batch_state import Bools, Ints, Snapshot
from amemgym_env.envs.memory.batch_state import Floats as Rewards
from amemgym_env.errors import ConfigError


class BatchSnapshot(NamedTuple):
    """A copy of everything that the next steps of a vector environment depend on."""

    episodes: Snapshot
    seeds: npt.NDArray[np.uint64]  # (N,)
    numbers: npt.NDArray[np.uint64]  # (N,) episodes begun since the seed
    steps: Ints  # (N,)
    ended: Bools  # (N,) NEXT_STEP: the next step begins a new episode
    exams: Rewards  # (periods, N) accuracies so far
    held: Ints  # (N,) exams so far
    masked: Ints  # (N,) masked actions of the episode


def checked_autoreset(mode: AutoresetMode | str) -> AutoresetMode:
    """Return an autoreset mode that a native batch supports.

    Raises:
        ConfigError: neither NEXT_STEP nor SAME_STEP.
    """
    try:
        found = AutoresetMode(mode)
    except ValueError:
        found = AutoresetMode.DISABLED
    if found is AutoresetMode.DISABLED:
        raise ConfigError(
            f"autoreset_mode: expected AutoresetMode.NEXT_STEP or SAME_STEP, found {mode!r}"
        )
    return found


def final_infos(infos: dict[str, Any], ended: Bools) -> dict[str, Any]:
    """Move the infos of episodes that have ended out of `infos`, and return them."""
    last: dict[str, Any] = {}
    for name in ("accuracy", "masked", "masked_actions", "accuracies"):
        if name not in infos:
            continue
        values, mask = infos.pop(name), infos.pop(f"_{name}")
        nothing = None if values.dtype == object else values.dtype.type()
        for part, kept in ((last, mask & ended), (infos, mask & ~ended)):
            if kept.any():
                part[name], part[f"_{name}"] = np.where(kept, values, nothing), kept
    return last
