"""Settings that the number environments share, checked before anything is played.

| argument | default | meaning |
|---|---|---|
| scenarios | "train" | name of a set, path of a file, a sequence of `Scenario`, or a `Pool` |
| limit | None | keep the first `limit` >= 1 scenarios; None: all |
| difficulty | "default" | none, easy, default, hard, or a `Difficulty` |
| capacity | None | entries the bank holds, an integer >= 1; None: the difficulty's |
| top_k | None | entries read for a question, an integer >= 1 or "all"; None: the difficulty's |
| confusion | None | probability in [0, 1] of reading a stale value; None: the difficulty's |
| reward | "period" | "period": every exam pays; "terminal": the last pays the mean of all |
| max_steps | None | truncate after this many steps >= 1 |
| pool_size | None | scripts held in memory; None: 64, or more for equally many of each |
| script_seed | 0 | seed of the first script of every scenario |
| rounds_initial, rounds_update | 1, 2 | rounds a session in period 0 and in later ones, >= 1 |
| profile, embedding, question_blind, privileged | False | see `features.FeatureSet` |
| embedder | `embedding.DEFAULT` | turns texts into integer vectors |

Environments that are made with equal settings in one process share one pool. With a `Pool`, the
settings of scripts and features are the pool's.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, overload

from amemgym_env.envs.arguments import Limit, checked_limit, checked_scenarios, one_of
from amemgym_env.envs.memory.pool import Pool, Scripts
from amemgym_env.errors import ConfigError
from amemgym_env.generation.sets import recipe
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.policies.features import FeatureSet
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.model import Scenario

_POOL_SIZE = 64
_MOST_POOLS = 8
_MOST_ENTRIES = 65536
_pools: OrderedDict[Hashable, tuple[object, Pool]] = OrderedDict()


class GeneratedScenarios(Sequence[Scenario]):
    """The scenarios of a generated set, each made when it is asked for; few are kept."""

    def __init__(self, name: str, limit: int | None = None) -> None:
        found = recipe(name)
        if found is None:
            raise ConfigError(f"scenarios: expected a generated set, found {name!r}")
        self._name = name
        self._count = found.count if limit is None else min(limit, found.count)
        self._limit = limit
        self._prepare()

    def _prepare(self) -> None:
        found = recipe(self._name)
        assert found is not None
        self._scenario = lru_cache(maxsize=32)(found.generator().scenario)

    def __reduce__(self) -> tuple[type[GeneratedScenarios], tuple[str, int | None]]:
        """Pickle the name: scenarios can be made anew."""
        return GeneratedScenarios, (self._name, self._limit)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Scenario: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Scenario]: ...
    def __getitem__(self, index: int | slice) -> Scenario | Sequence[Scenario]:
        if isinstance(index, slice):
            return [self._scenario(number) for number in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._scenario(index % self._count)


@dataclass(frozen=True)
class NumberSettings:
    """The settings of a number environment, checked."""

    pool: Pool
    capacity: int
    top_k: int
    """No limit is the largest integer that matters: the bank's capacity."""
    confusion: float
    reward: Literal["period", "terminal"]
    max_steps: int | None

    @classmethod
    def of(
        cls,
        scenarios: str | os.PathLike[str] | Sequence[Scenario] | Pool = "train",
        *,
        limit: int | None = None,
        difficulty: str | Difficulty = "default",
        quiet_messages: str | None = None,
        capacity: int | None = None,
        top_k: Limit = None,
        confusion: float | None = None,
        reward: Literal["period", "terminal"] = "period",
        max_steps: int | None = None,
        pool_size: int | None = None,
        script_seed: int = 0,
        rounds_initial: int = 1,
        rounds_update: int = 2,
        profile: bool = False,
        embedding: bool = False,
        question_blind: bool = False,
        privileged: bool = False,
        embedder: Embedder = DEFAULT,
        keep_scripts: bool = False,
    ) -> NumberSettings:
        """Return the settings; see the table of this module.

        `keep_scripts` is for environments that play scripts and not tables alone.

        Raises:
            ConfigError: a value outside its range; ScenarioError: a scenario breaks a rule.
        """
        level = named_difficulty(difficulty, quiet_messages)
        held = checked_limit("capacity", capacity, level.capacity, least=1)
        if held is None or held > _MOST_ENTRIES:
            raise ConfigError(
                f"capacity: expected an integer of 1..{_MOST_ENTRIES}, found {held!r}; number "
                f"environments need a bound, and difficulty {level.name!r} may have none"
            )
        read = checked_limit("top_k", top_k, level.top_k, least=1)
        chance = level.confusion if confusion is None else confusion
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise ConfigError(f"confusion: expected a number in [0, 1], found {chance!r}")
        size = checked_limit("pool_size", pool_size, None, least=1)
        one_of("reward", reward, ("period", "terminal"))
        steps = checked_limit("max_steps", max_steps, None, least=1)
        if isinstance(scenarios, Pool):
            pool = scenarios
        else:
            features = FeatureSet.of(
                embedder,
                profile=profile,
                embedding=embedding,
                question_blind=question_blind,
                privileged=privileged,
            )
            given = (level, script_seed, rounds_initial, rounds_update)
            pool = _shared_pool(scenarios, limit, given, size, features, embedder, keep_scripts)
        return cls(pool, held, held if read is None else read, float(chance), reward, steps)


def _shared_pool(
    scenarios: str | os.PathLike[str] | Sequence[Scenario],
    limit: int | None,
    given: tuple[Difficulty, int, int, int],
    size: int | None,
    features: FeatureSet,
    embedder: Embedder,
    keep_scripts: bool,
) -> Pool:
    """Return the pool of these settings, of an earlier environment where there is one."""
    named = isinstance(scenarios, str | os.PathLike)
    identity: Hashable = os.fspath(scenarios) if named else id(scenarios)  # type: ignore[arg-type]
    if named and os.path.exists(str(identity)):
        identity = (identity, os.stat(str(identity)).st_mtime_ns)
    key = (identity, limit, given, size, features, id(embedder))
    if key in _pools:
        _pools.move_to_end(key)
        return _pools[key][1]
    level, script_seed, rounds_initial, rounds_update = given
    checked_limit("limit", limit, None, least=1)
    found: Sequence[Scenario]
    if isinstance(scenarios, str) and recipe(scenarios) is not None:
        found = GeneratedScenarios(scenarios, limit)
    else:
        found = checked_scenarios(scenarios, limit)
    source = Scripts(
        found,
        level,
        seed=script_seed,
        rounds_initial=rounds_initial,
        rounds_update=rounds_update,
    )
    count = len(found)
    rows = size or (_POOL_SIZE if count >= _POOL_SIZE else -(-_POOL_SIZE // count) * count)
    pool = Pool(source, rows, features, embedder, keep_scripts=keep_scripts)
    # The given object is kept with its pool, so that its id stays its own.
    _pools[key] = ((scenarios, embedder), pool)
    while len(_pools) > _MOST_POOLS:
        _pools.popitem(last=False)
    return pool
