"""Deep copies of environments that play a pool."""

from __future__ import annotations

import copy
from typing import Any, Protocol, TypeVar

from amemgym_env.envs.memory.pool import Pool

E = TypeVar("E", bound="PoolEnv")


class PoolEnv(Protocol):
    """An environment that plays a pool and can take over a state."""

    pool: Pool

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        ...


def copied(env: E, memo: dict[int, Any]) -> E:
    """Return a deep copy of an environment that plays a pool, with a copy of its pool."""
    pool = env.pool
    if memo.get(id(pool), pool) is pool:
        memo[id(pool)] = pool.copy()
    other = memo[id(env)] = object.__new__(type(env))
    state = {name: copy.deepcopy(value, memo) for name, value in vars(env).items()}
    state["pool"] = memo[id(pool)]
    other.__setstate__(state)
    return other
