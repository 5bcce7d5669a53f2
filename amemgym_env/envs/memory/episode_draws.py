"""Draws of the script that an episode plays, from the seed of its series and its number alone.

The n-th episode of an environment is therefore the same alone or in a batch. `draw` and `draw_many`
are the same hash (SplitMix64) in Python and in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from amemgym_env.seeding import digest

_MASK = 2**64 - 1
_SEED_STEP, _NUMBER_STEP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def series_seeds(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return the seeds of the `count` series of a batch, shape (count,).

    Seed and index are hashed together, so batches of different seeds share no series.
    """
    drawn = (digest("series", seed, index)[:8] for index in range(count))
    return np.array([int.from_bytes(part, "big") for part in drawn], np.uint64)


def draw(seed: int, number: int, size: int) -> int:
    """Return a number in 0..size-1 for episode `number` of the series `seed`."""
    mixed = (seed * _SEED_STEP + number * _NUMBER_STEP) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * _MIX_1) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * _MIX_2) & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 32) * size) >> 32


def draw_many(
    seeds: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64], size: int
) -> npt.NDArray[np.int64]:
    """Return `draw` for each pair, shape (n,)."""
    # Plain integers: numpy takes them as unsigned ones here, and spares their making.
    mixed: npt.NDArray[Any] = seeds * _SEED_STEP + numbers * _NUMBER_STEP
    mixed = (mixed ^ (mixed >> 30)) * _MIX_1
    mixed = (mixed ^ (mixed >> 27)) * _MIX_2
    mixed ^= mixed >> 31
    return (((mixed >> 32) * size) >> 32).astype(np.int64)
