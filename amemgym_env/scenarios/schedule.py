"""Schedule of episodes: the scenario and script of the n-th episode as a function of seed and n.

The sub-environments of a vector environment are therefore independent, and any episode can be
played again.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from amemgym_env.errors import ConfigError
from amemgym_env.scenarios.difficulty import Difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.seeding import digest, permutation


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


class Schedule:
    """The scripts of a set of scenarios under one difficulty.

    Raises:
        ConfigError: a setting that `script.build` refuses.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        *,
        difficulty: Difficulty,
        rounds_initial: int,
        rounds_update: int,
        shuffle_choices: bool,
    ) -> None:
        self._scenarios = scenarios
        self._settings: dict[str, Any] = {
            "difficulty": difficulty,
            "rounds_initial": rounds_initial,
            "rounds_update": rounds_update,
            "shuffle_choices": shuffle_choices,
        }
        # A wrong setting is refused here, before anything is played.
        self._build(scenarios[0], 0)

    def script(self, seed: int, number: int, options: Mapping[str, Any]) -> Script:
        """Return the script of episode `number`.

        `options` may name its "scenario" by id, or give a "script" to play instead.

        Raises:
            ConfigError: an unknown option or scenario.
        """
        if len(options) > 1 or any(name not in ("scenario", "script") for name in options):
            raise ConfigError(f"options: expected 'scenario' or 'script', found {list(options)}")
        if "script" in options:
            given = options["script"]
            if not isinstance(given, Script):
                raise ConfigError(f"options, script: expected a Script, found {given!r:.80}")
            return given
        if "scenario" in options:
            return self.build(options["scenario"], script_seed(seed, number))
        index = scenario_index(len(self._scenarios), seed, number)
        return self._build(self._scenarios[index], script_seed(seed, number))

    def build(self, scenario_id: str, seed: int) -> Script:
        """Return the script of a scenario for a script seed.

        Raises:
            ConfigError: no scenario has the id.
        """
        for scenario in self._scenarios:
            if scenario.id == scenario_id:
                return self._build(scenario, seed)
        ids = [scenario.id for scenario in self._scenarios]
        near = difflib.get_close_matches(str(scenario_id), ids) or ids[:3]
        raise ConfigError(
            f"scenario: expected an id of the {len(ids)} scenarios, found {scenario_id!r}; "
            f"there are {', '.join(map(repr, near))}"
        )

    def _build(self, scenario: Scenario, seed: int) -> Script:
        return build(scenario, seed=seed, others=self._scenarios, **self._settings)
