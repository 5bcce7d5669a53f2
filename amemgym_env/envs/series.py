"""Series of episodes: the seed, the number of the current episode, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amemgym_env.errors import ConfigError, EpisodeOver

MOST_SEED = 2**64 - 1


def checked_seed(seed: Any) -> int:
    """Return a seed as an integer.

    Raises:
        ConfigError: not an integer in 0..2**64 - 1.
    """
    integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool | np.timedelta64)
    if not integer or not 0 <= int(seed) <= MOST_SEED:
        raise ConfigError(f"seed: expected an integer in 0..2**64 - 1, found {seed!r:.80}")
    return int(seed)


class EpisodeSeries:
    """Position of an environment in its series of episodes.

    Episode n of a series depends on the seed and n alone. `max_steps` truncates episodes; None: no
    limit.
    """

    def __init__(self, max_steps: int | None) -> None:
        self.max_steps = max_steps
        self.seed: int | None = None
        self.number = -1
        """Number of the current episode since the seed, from 0; -1: none has begun."""
        self.steps = 0
        self.ended = True

    def begin(self, seed: int | None, generator: np.random.Generator) -> int:
        """Begin the next episode and return the series' seed.

        `seed` begins a new series; without any, the first seed is drawn from `generator`.
        """
        if seed is not None:
            self.seed, self.number = seed, -1
        elif self.seed is None:
            self.seed = int(generator.integers(2**63))
        self.number += 1
        self.steps, self.ended = 0, False
        return self.seed

    def check(self) -> None:
        """Raise EpisodeOver when no episode is under way."""
        if self.ended:
            raise EpisodeOver("the episode is over; call reset() to begin another")

    def step(self, terminated: bool, failed: bool = False) -> bool:
        """Count a step and return whether it truncates the episode; `failed` truncates as well."""
        self.steps += 1
        limited = self.max_steps is not None and self.steps >= self.max_steps
        truncated = not terminated and (limited or failed)
        self.ended = terminated or truncated
        return truncated

    def get_state(self, generator: np.random.Generator) -> dict[str, Any]:
        """Return the position and the generator's state as JSON values."""
        return {
            "steps": self.steps,
            "ended": self.ended,
            "seed": self.seed,
            "number": self.number,
            "generator": generator.bit_generator.state,
        }

    def set_state(self, state: Mapping[str, Any], generator: np.random.Generator) -> None:
        """Take over a position and the generator's state.

        Raises:
            ConfigError: a part is missing or has the wrong type; nothing was changed.
        """
        try:
            steps, ended, number = int(state["steps"]), bool(state["ended"]), int(state["number"])
            seed = None if state["seed"] is None else checked_seed(state["seed"])
            generator.bit_generator.state = state["generator"]
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"snapshot: expected the return value of get_state(), found {error!r} in it"
            ) from error
        self.steps, self.ended, self.number, self.seed = steps, ended, number, seed
