"""Endless series of scripts for a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build


class Scripts:
    """An endless series of scripts over some scenarios: number n is a function of n alone.

    Each scenario comes once with one script seed before any comes with the next.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        difficulty: str | Difficulty = "default",
        *,
        seed: int = 0,
        rounds_initial: int = 1,
        rounds_update: int = 2,
        shuffle_choices: bool = True,
    ) -> None:
        self.scenarios = scenarios
        self.difficulty = named_difficulty(difficulty)
        self.seed = seed
        self._settings: dict[str, Any] = {
            "rounds_initial": rounds_initial,
            "rounds_update": rounds_update,
            "shuffle_choices": shuffle_choices,
        }

    def __call__(self, number: int) -> Script:
        """Return script `number` (>= 0)."""
        turn, place = divmod(number, len(self.scenarios))
        scenario = self.scenarios[place]
        others = self.scenarios if scenario.library is None else ()
        return build(scenario, self.difficulty, self.seed + turn, others=others, **self._settings)


class ScriptSource(Protocol):
    """Where a pool's scripts come from; must pickle for use in other processes."""

    def __call__(self, number: int) -> Script:
        """Return script `number` (>= 0), the same for the same number."""
        ...
