"""Fit of the simulated model's error rates to failure rates: plays, cost function, pattern search.

Everything is deterministic: the model's draws are keyed, the search visits its parameters in a
fixed order, and the random walk to equally good sets has a keyed generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from amemgym_env.envs.rewards import Floats
from amemgym_env.evaluation.metrics import MemoryScore, memory_score, uniform_guess
from amemgym_env.evaluation.run import Game, evaluate
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.seeding import generator
from amemgym_env.simulated.model import SimulatedModel
from amemgym_env.simulated.profiles import ErrorRates
from amemgym_env.simulated.recognition import Recogniser
from experiments.calibrate.paper_figures import FAILURE_RATES
from experiments.evaluate.agents import agent_maker, agent_settings

RANGES: dict[str, tuple[float, float]] = {
    "comprehension_miss": (0.0, 0.5),
    "extraction_miss": (0.0, 0.4),
    "irrelevant_writes": (0.0, 1.0),
    "rewrite_loss": (0.0, 0.15),
    "dilution": (0.0, 4.0),
    "stale": (0.0, 0.4),
    "answer_error": (0.0, 0.18),
    "echo": (0.0, 1.0),
}
"""Bounds of the search; that of `answer_error` keeps the upper bound above .8."""

START = ErrorRates(0.12, 0.15, 0.9, 0.08, 0.8, 0.05, 0.1, 0.6)
MEMORY_ONLY = frozenset({"extraction_miss", "irrelevant_writes", "rewrite_loss"})
"""Rates that do not affect agents without a written memory."""


class UserPlay(NamedTuple):
    """Results of one agent on one scenario; arrays have shape (periods, questions)."""

    accuracy: Floats
    upper_bound: Floats
    guess: Floats
    failures: Floats
    """Counts of write, read and utilization failures."""


class Played(NamedTuple):
    """Results of one agent on several scenarios."""

    users: tuple[UserPlay, ...]

    @property
    def rates(self) -> Floats:
        """Write, read and utilization failures over all cells, shape (3,)."""
        cells = sum(user.accuracy.size for user in self.users)
        total = np.sum([user.failures for user in self.users], axis=0) / cells
        return np.asarray(total, np.float64)

    @property
    def memory(self) -> float:
        """The memory score: mean of ratios over users and periods."""
        return self._score.mean_of_ratios()

    @property
    def memory_by_period(self) -> tuple[float, ...]:
        """The memory score after each period."""
        return self._score.by_period

    @property
    def upper_bound(self) -> float:
        """Mean score with the truth in the prompt."""
        return float(np.mean([user.upper_bound.mean() for user in self.users]))

    @property
    def _score(self) -> MemoryScore:
        users = self.users
        return memory_score(
            [user.accuracy for user in users],
            [user.guess for user in users],
            [user.upper_bound for user in users],
        )


@dataclass
class AgentRunner:
    """Plays agents through fixed scenarios under any error rates, with a cache of results."""

    scenarios: Sequence[Scenario]
    game: Game = field(default_factory=Game)
    workers: int = 1

    def __post_init__(self) -> None:
        """Start the worker processes."""
        self._known: dict[tuple[object, ...], Played] = {}
        self._pool = ProcessPoolExecutor(self.workers) if self.workers > 1 else None

    def close(self) -> None:
        """Stop the worker processes."""
        if self._pool is not None:
            self._pool.shutdown()

    def played(self, label: str, rates: ErrorRates) -> Played:
        """Return the results of an agent, by its label."""
        relevant = {
            name: value
            for name, value in asdict(rates).items()
            if not (name in MEMORY_ONLY and label.startswith(("native", "rag")))
        }
        key = (label, *relevant.items())
        if key not in self._known:
            jobs = [(label, scenario, rates, self.game) for scenario in self.scenarios]
            mapped: Iterable[UserPlay] = (
                map(_play, jobs) if self._pool is None else self._pool.map(_play, jobs)
            )
            self._known[key] = Played(tuple(mapped))
        return self._known[key]

    def cost(
        self,
        rates: ErrorRates,
        targets: Mapping[str, Sequence[float]],
        limit: float = float("inf"),
    ) -> float:
        """Return the root mean square error of the agents' failure rates.

        Infinity as soon as it must be above `limit`, without playing the other agents.
        """
        count = sum(map(len, targets.values()))
        total = 0.0
        for label, wanted in targets.items():
            errors = self.played(label, rates).rates - np.array(wanted)
            total += float(np.square(errors).sum())
            if np.sqrt(total / count) > limit:
                return float("inf")
        return float(np.sqrt(total / count))


def search(
    bench: AgentRunner,
    start: ErrorRates = START,
    *,
    rounds: int = 3,
    step: float = 0.1,
    targets: Mapping[str, Sequence[float]] = FAILURE_RATES,
) -> tuple[ErrorRates, float]:
    """Return the rates that a pattern search ends at, and their cost.

    Each round moves one number at a time by `step` of its range, keeps what lowers the cost, and
    then halves the step.
    """
    best, lowest = start, bench.cost(start, targets)
    for _ in range(rounds):
        for name in RANGES:
            for direction in (1.0, -1.0):
                moved = _moved(best, {name: direction * step})
                cost = bench.cost(moved, targets)
                if cost < lowest:
                    best, lowest = moved, cost
                    break
        step /= 2
    return best, lowest


def equally_good(
    bench: AgentRunner,
    best: ErrorRates,
    count: int,
    *,
    tolerance: float,
    step: float = 0.06,
    targets: Mapping[str, Sequence[float]] = FAILURE_RATES,
) -> list[ErrorRates]:
    """Return `count` sets whose cost exceeds the best one's by `tolerance` at most.

    A random walk from the best set that steps only among sets which are good enough; of twenty
    times `count` proposals at most, so that it ends.
    """
    limit = bench.cost(best, targets) + tolerance
    draws = generator("equally good weaknesses")
    found, place = [best], best
    for _ in range(20 * count):
        if len(found) >= count:
            break
        shifts = dict(zip(RANGES, draws.normal(0.0, step, len(RANGES)), strict=True))
        moved = _moved(place, shifts)
        if bench.cost(moved, targets, limit) <= limit:
            place = moved
            found.append(moved)
    return found


def _moved(rates: ErrorRates, shifts: Mapping[str, float]) -> ErrorRates:
    values = {}
    for name, shift in shifts.items():
        low, high = RANGES[name]
        value = getattr(rates, name) + shift * (high - low)
        values[name] = round(float(min(max(value, low), high)), 4)
    return rates.changed(**values)


def _play(job: tuple[str, Scenario, ErrorRates, Game]) -> UserPlay:
    label, scenario, rates, game = job
    results = evaluate(
        agent_maker(agent_settings(label)),
        [scenario],
        game=game,
        backends=lambda script: {"assistant": SimulatedModel(script, rates, _reader(script))},
    )
    found = results.scenarios[0]
    failures = np.array(
        [
            sum(row.count(name) for row in found.diagnosis.failure)
            for name in ("write", "read", "utilization")
        ],
        np.float64,
    )
    return UserPlay(found.accuracy, found.upper_bound, uniform_guess(scenario), failures)


_readers: dict[str, Recogniser] = {}
"""Cache of this process, by script."""


def _reader(script: Script) -> Recogniser:
    if script.key not in _readers:
        _readers[script.key] = Recogniser(script)
    return _readers[script.key]
