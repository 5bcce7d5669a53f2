"""Which scenario and script an environment plays as its n-th episode: a function of seed and n.

Nothing else enters, so the sub-environments of a vector environment do not depend on each other,
and an episode can be named and played again.
"""

from __future__ import annotations

from functools import lru_cache

from amemgym_env.randomness import digest, permutation


def script_seed(seed: int, number: int) -> int:
    """Return the seed of the script of episode `number`, counted from 0 since `reset(seed=…)`.

    Episode 0 has the seed itself, so that `build(scenario, difficulty, seed)` is its script.
    """
    if number == 0:
        return seed
    return int.from_bytes(digest("script seed", seed, number)[:8], "big") >> 1


def scenario_index(count: int, seed: int, number: int) -> int:
    """Return which of `count` scenarios episode `number` plays: each once, then in a new order."""
    epoch, place = divmod(number, count)
    return _order(count, seed, epoch)[place]


@lru_cache(maxsize=64)
def _order(count: int, seed: int, epoch: int) -> tuple[int, ...]:
    return permutation(count, "scenario order", seed, epoch)
