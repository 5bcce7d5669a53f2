"""What a memory policy scores: every script of a set played once, on the native batch.

The score of a scenario is the mean of its exams' expected accuracies, over its scripts; intervals
resample scenarios, never exams. Differences between policies are taken scenario by scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Ints, Snapshot
from amemgym_env.envs.memory.pool import Pool, Scripts
from amemgym_env.envs.memory.settings import GeneratedScenarios
from amemgym_env.envs.memory.vector_base import BatchSnapshot, NumberVectorEnv
from amemgym_env.envs.memory.vector_env import AMemGymMemoryVectorEnv, AMemGymSlotsVectorEnv
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.metrics import bootstrap
from amemgym_env.generation.sets import recipe
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.policies.checkpoint import Policy
from amemgym_env.policies.features import FeatureSet, Floats
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import generator

Which = Literal["memory", "slots"]
Scores = npt.NDArray[np.float64]

Chooser = Callable[[NumberVectorEnv, Floats], Ints]
"""Chooses an action for each environment from the observations (N, …); some look at the truth."""

KINDS: dict[Which, type[NumberVectorEnv]] = {
    "memory": AMemGymMemoryVectorEnv,
    "slots": AMemGymSlotsVectorEnv,
}


class Interval(NamedTuple):
    """A mean over scenarios with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return mean and interval with three digits."""
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def interval(scores: Scores) -> Interval:
    """Return the mean of one score (or difference) a scenario, with its interval."""
    low, high = bootstrap(lambda rows: float(scores[rows].mean()), len(scores))
    return Interval(float(scores.mean()), low, high)


class Bench:
    """A set of scenarios, each with the same number of scripts, on which policies are scored.

    Args:
        scenarios: a set's name, a path, or scenarios.
        scripts: scripts a scenario, seeds `script_seed`, `script_seed` + 1, …
        limit: the first scenarios only.
        size: scripts in the pool, if it is to be refreshed; None: every script of every scenario.
        features: what policies observe.

    Raises:
        ConfigError: a difficulty without a capacity, a wrong name.
    """

    def __init__(
        self,
        scenarios: str | Sequence[Scenario],
        *,
        difficulty: str | Difficulty = "default",
        quiet_messages: str | None = None,
        scripts: int = 1,
        limit: int | None = None,
        script_seed: int = 0,
        size: int | None = None,
        features: FeatureSet | None = None,
    ) -> None:
        found: Sequence[Scenario]
        if not isinstance(scenarios, str):
            found = list(scenarios)[:limit]
        elif recipe(scenarios) is not None:
            found = GeneratedScenarios(scenarios, limit)
        else:
            found = list(named_scenarios(scenarios, limit))
        self.difficulty = named_difficulty(difficulty, quiet_messages)
        self.count = len(found)
        self.scripts = scripts
        source = Scripts(found, self.difficulty, seed=script_seed)
        if self.difficulty.capacity is None:
            raise ConfigError(
                "difficulty: expected one with a bounded memory (easy, default, hard), found "
                f"{self.difficulty.name!r}"
            )
        self.pool = Pool(source, size or self.count * scripts, features)
        self._rows = np.arange(self.pool.size)

    def head(self, count: int) -> Bench:
        """Return a bench of the first `count` scripts, with the same pool."""
        found = copy(self)
        found._rows = self._rows[:count]
        return found

    def part(self, first: int, count: int) -> Bench:
        """Return a bench of `count` scripts from `first` on, around the end."""
        found = copy(self)
        found._rows = np.unique((first + np.arange(count)) % self.pool.size)
        return found

    @property
    def size(self) -> int:
        """Number of scripts."""
        return len(self._rows)

    @property
    def rules(self) -> dict[str, Any]:
        """The settings of an environment that plays the pool at its difficulty."""
        level = self.difficulty
        return {
            "capacity": level.capacity,
            "top_k": "all" if level.top_k is None else level.top_k,
            "confusion": level.confusion,
        }

    def begin(
        self, which: Which = "memory", rows: Ints | None = None
    ) -> tuple[NumberVectorEnv, Floats]:
        """Return an environment in which every row of the pool (or of `rows`) begins."""
        chosen = self._rows if rows is None else rows
        env = KINDS[which](len(chosen), self.pool, **self.rules)
        return env, env.restore(start(chosen, env))

    def score(self, choose: Chooser, which: Which = "memory") -> Scores:
        """Return the accuracy of each scenario, shape (scenarios,)."""
        accuracies = play(*self.begin(which), choose)
        # Rows go through all scenarios with one script seed before any comes with the next.
        whole = len(accuracies) % self.count == 0
        rows = accuracies.reshape(-1, self.count) if whole else accuracies[None]
        means: Scores = rows.mean(axis=0)
        return means


def chooser(policy: Policy) -> Chooser:
    """Return a policy as what plays a batch."""

    def choose(env: NumberVectorEnv, observation: Floats) -> Ints:
        return policy.act(observation, env.action_masks())

    return choose


def start(rows: Ints, env: NumberVectorEnv) -> BatchSnapshot:
    """Return the state in which each environment stands at the beginning of a row of the pool."""
    number = len(rows)
    zeros = np.zeros(number, np.int32)
    slots = np.zeros(env.episodes.slots.shape, np.int32)
    return BatchSnapshot(
        Snapshot(np.asarray(rows, np.int64), zeros, slots, zeros),
        np.arange(number, dtype=np.uint64),
        np.ones(number, np.uint64),
        np.zeros(number, np.int64),
        np.zeros(number, np.bool_),
        np.zeros((2, number)),
    )


def play(env: NumberVectorEnv, observation: Floats, choose: Chooser) -> Scores:
    """Play the episodes under way to their ends; return the mean accuracy of each, shape (N,)."""
    total, exams = np.zeros(env.num_envs), np.zeros(env.num_envs)
    running = ~env.episodes.over()
    while running.any():
        observation, _, terminated, truncated, info = env.step(choose(env, observation))
        if "accuracy" in info:
            counted = info["_accuracy"] & running
            # After `n` exams in a row the info holds their mean.
            total[counted] += info["accuracy"][counted]
            exams[counted] += 1
        running &= ~(terminated | truncated)
    return total / np.maximum(exams, 1)


def shuffled(choose: Chooser, seed: int) -> Chooser:
    """Return the control: each environment is played by the observation of another one."""
    random: Any = generator("shuffled observations", seed)

    def choose_blindly(env: NumberVectorEnv, observation: Floats) -> Ints:
        return choose(env, observation[random.permutation(len(observation))])

    return choose_blindly
