"""Speed and memory of the memory environments, relative to Gymnasium's CartPole-v1.

Every figure is a ratio of processor times within one run. Slices of CartPole and of our
environments alternate, and the fastest slice of each counts. Actions are random and drawn
beforehand. Async runs in child processes, so its times are wall times.
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.memory.settings import GeneratedScenarios
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.policies.features import FeatureSet
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from experiments.benchmark.timing import Stopwatch, markdown

IDS = ("AMemGymMemory-v0", "AMemGymSlots-v0")
REFERENCE = "CartPole-v1"
COUNTS = (1, 64, 1024, 8192)
_SLICE = 0.15
"""Seconds of one slice."""
_ACTIONS = 64


class Speed(NamedTuple):
    """Steps of single environments a second."""

    name: str
    mode: str
    num_envs: int
    steps_a_second: float
    ratio: float
    """To CartPole-v1 in the same mode and number."""


class Runner:
    """An environment that is stepped in slices."""

    def __init__(self, make: Callable[[], Any], num_envs: int | None, wall: bool = False) -> None:
        self.env = make()
        self.num_envs = num_envs
        self._clock = time.perf_counter if wall else time.process_time
        self.env.reset(seed=0)
        self.env.action_space.seed(0)
        actions = [self.env.action_space.sample() for _ in range(_ACTIONS)]
        self._actions = cycle(actions if num_envs else [int(action) for action in actions])
        self.best = float("inf")
        self._steps = 1
        for _ in range(3):
            self.slice()  # caches are filled, the number of steps a slice settles
        self.best = float("inf")

    def slice(self) -> None:
        """Run for about `_SLICE` seconds and keep the best time of a step."""
        with Stopwatch(self._clock) as watch:
            for action in islice(self._actions, self._steps):
                _, _, terminated, truncated, _ = self.env.step(action)
                if self.num_envs is None and (terminated or truncated):
                    self.env.reset()
        seconds = max(watch.seconds, 1e-9) / self._steps
        self.best = min(self.best, seconds)
        self._steps = max(1, min(100_000, int(_SLICE / seconds)))

    @property
    def steps_a_second(self) -> float:
        """Steps of single environments a second, in the best slice."""
        return (self.num_envs or 1) / self.best


def in_turns(runners: Sequence[Runner], slices: int = 8) -> None:
    """Alternate slices of all runners; other load on the machine then affects all alike."""
    for _ in range(slices):
        for runner in runners:
            runner.slice()


def train_pool(
    size: int = 64,
    scenarios: int = 64,
    difficulty: str | Difficulty = "default",
    rounds_update: int = 2,
) -> Pool:
    """Return a pool over generated `train` scenarios, as the environments are trained with."""
    source = Scripts(
        GeneratedScenarios(f"train:{scenarios}"), difficulty, rounds_update=rounds_update
    )
    return Pool(source, size, FeatureSet.of(DEFAULT), keep_scripts=True)


def scalar(pool: Pool, slices: int = 8) -> list[Speed]:
    """Return the speeds of single environments, with the wrappers of `gym.make`."""
    runners = {REFERENCE: Runner(lambda: gym.make(REFERENCE), None)}
    for name in IDS:
        runners[name] = Runner(lambda name=name: gym.make(name, scenarios=pool), None)  # type: ignore[misc]
    in_turns(list(runners.values()), slices)
    return _speeds(runners, "scalar", 1)


def vector(pool: Pool, mode: str, num_envs: int, slices: int = 8) -> list[Speed]:
    """Return the speeds in a mode of `gym.make_vec`: sync, async or vector_entry_point."""

    def make(name: str, **settings: Any) -> Callable[[], Any]:
        return lambda: gym.make_vec(name, num_envs, mode, **settings)

    runners = {}
    for name in (REFERENCE, *IDS):
        settings = {} if name == REFERENCE else {"scenarios": pool}
        runners[name] = Runner(make(name, **settings), num_envs, wall=mode == "async")
    in_turns(list(runners.values()), slices)
    for runner in runners.values():
        runner.env.close()
    return _speeds(runners, mode, num_envs)


def _speeds(runners: dict[str, Runner], mode: str, num_envs: int) -> list[Speed]:
    reference = runners[REFERENCE].steps_a_second
    return [
        Speed(name, mode, num_envs, runner.steps_a_second, runner.steps_a_second / reference)
        for name, runner in runners.items()
    ]


def peak_memory(pool_size: int, mode: str, num_envs: int, steps: int = 200) -> float:
    """Return the peak memory in MB of a fresh process that makes and steps an environment."""
    # An executor's processes may have children, as Async needs; those of a Pool may not.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as workers:
        return workers.submit(_peak, pool_size, mode, num_envs, steps).result()


def _peak(pool_size: int, mode: str, num_envs: int, steps: int) -> float:
    pool = train_pool(pool_size, pool_size)
    env: Any
    if mode == "scalar":
        env = gym.make(IDS[0], scenarios=pool)
    else:
        env = gym.make_vec(IDS[0], num_envs, mode, scenarios=pool)
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if mode == "scalar" and (terminated or truncated):
            env.reset()
    env.close()
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if mode == "async" else 0
    return _high_water_mark() + num_envs * workers / 1024


def _high_water_mark() -> float:
    """Return this process's peak memory in MB."""
    # `ru_maxrss` of a new process begins with what its parent held; Linux's VmHWM does not.
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Growth(NamedTuple):
    """Cost of a step at one size of a capacity, set or script."""

    what: str
    value: int
    microseconds: float
    """Of a step of one environment, 1,024 at once."""
    pool_megabytes: float


def growth(
    capacities: Iterable[int] = (12, 64, 512, 4096),
    scenarios: Iterable[int] = (20, 200, 2000, 10000),
    rounds: Iterable[int] = (2, 4, 8),
    num_envs: int = 1024,
) -> list[Growth]:
    """Return the cost of a step as capacity, the number of scenarios and rounds grow."""
    found = []

    def measure(what: str, value: int, pool: Pool, refresh: bool = False, **settings: Any) -> None:
        env = gym.make_vec(IDS[0], num_envs, "vector_entry_point", scenarios=pool, **settings)
        runner = Runner(lambda: env, num_envs)
        for _ in range(4):
            if refresh:
                pool.refresh(8)
            runner.slice()
        found.append(Growth(what, value, runner.best / num_envs * 1e6, pool.nbytes / 2**20))

    pool = train_pool()
    for capacity in capacities:
        measure("capacity", capacity, pool, capacity=capacity)
    for count in scenarios:
        measure("scenarios", count, train_pool(64, count), refresh=True)
    for count in rounds:
        measure("rounds_update", count, train_pool(rounds_update=count))
    return found


def flat_memory(steps: int = 10_000_000, num_envs: int = 1024, refresh_every: int = 256) -> Any:
    """Return the peak memory in MB after a tenth of the steps, and after all of them."""
    pool = train_pool(64, 10_000)
    env: Any = gym.make_vec(IDS[0], num_envs, "vector_entry_point", scenarios=pool)
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(_ACTIONS)]
    total = max(10, steps // num_envs)
    marks = []
    for number in range(total):
        env.step(actions[number % _ACTIONS])
        if number % refresh_every == refresh_every - 1:
            pool.refresh(4)
        if number in (total // 10, total - 1):
            marks.append(_high_water_mark())
    return tuple(marks)


def table(speeds: Iterable[Speed]) -> str:
    """Return speeds as a Markdown table."""
    columns = ("environment", "mode", "environments", "steps/s", "of CartPole-v1")
    return markdown(
        columns,
        (
            (s.name, s.mode, f"{s.num_envs:,}", f"{s.steps_a_second:,.0f}", f"{s.ratio:.3f}")
            for s in speeds
        ),
        names=2,
    )


def growth_table(rows: Iterable[Growth]) -> str:
    """Return the cost of growth as a Markdown table."""
    columns = ("what grows", "to", "µs a step", "pool, MB")
    return markdown(
        columns,
        (
            (row.what, f"{row.value:,}", f"{row.microseconds:.3f}", f"{row.pool_megabytes:.1f}")
            for row in rows
        ),
    )


def measured(difficulty: str = "default", counts: Sequence[int] = COUNTS) -> list[Speed]:
    """Return all speeds: scalar, and each mode at each number of environments that it can hold."""
    pool = train_pool(difficulty=named_difficulty(difficulty))
    speeds = scalar(pool)
    for count in counts:
        # More scalar environments add no information; a process for each would be too many.
        if count <= 1024:
            speeds += vector(pool, "sync", count, slices=4)
        if count <= 64:
            speeds += vector(pool, "async", min(count, 8), slices=4)
        speeds += vector(pool, "vector_entry_point", count)
    return speeds
