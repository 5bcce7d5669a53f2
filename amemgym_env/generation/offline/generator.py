"""Scenarios without end, offline: scenario n of a split and seed, in the benchmark's own shape.

Persona, fitting topics, questions, schema, initial state, evolution, events, sessions with times
and choices, each from its own named stream of draws. Scenario n depends on split, seed, settings
and n alone, so a set streams and any part of it can be made anew.
Paper: AMemGym, Section 3.2 (structured data generation), with a library in place of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from functools import lru_cache
from itertools import count
from math import prod
from typing import Any

from amemgym_env.errors import ConfigError, near
from amemgym_env.generation.offline.personas import Persona, personas
from amemgym_env.generation.offline.scenario_builder import Life
from amemgym_env.generation.offline.settings import BASE, SHAPES, Settings
from amemgym_env.scenarios.library import SPLITS, Split, Topic, topics
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import Key, digest

_RELATED = 0.9
"""Probability that a user's next topic shares its domain with an earlier one."""


class Generator:
    """The scenarios of one split, seed and settings, numbered from 0 without end.

    Raises:
        ConfigError: no such split, or too few of its topics fit the settings.
    """

    def __init__(self, split: Split, seed: int = 0, settings: Settings = BASE) -> None:
        if split not in SPLITS:
            raise ConfigError(
                f"split: expected one of {', '.join(SPLITS)}, found {split!r}{near(split, SPLITS)}"
            )
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ConfigError(f"seed: expected an integer of at least 0, found {seed!r}")
        self.split = split
        self.seed = seed
        self.settings = settings
        self._name = f"{split}-{seed}{_shape_suffix(settings)}"
        self._suitable = _suitable(topics(split), split, settings)
        self._people = self._eligible()

    def item(self, number: int) -> dict[str, Any]:
        """Return scenario `number` (>= 0) as the JSON object of a scenario file."""
        persona = self._persona(number)
        key: tuple[Key, ...] = (self.split, self.seed, number)
        fitting = self._fitting(persona)
        chosen = _related(fitting, self.settings.questions, Draws(*key, "topics"))
        return Life(f"{self._name}-{number}", key, self.settings, persona, chosen).item()

    def items(self, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the scenarios 0..limit-1, or without end, as JSON objects."""
        numbers = count() if limit is None else range(limit)
        return (self.item(number) for number in numbers)

    def scenario(self, number: int) -> Scenario:
        """Return scenario `number` (>= 0)."""
        return Scenario.model_validate(self.item(number))

    def scenarios(self, limit: int | None = None) -> Iterator[Scenario]:
        """Yield the scenarios 0..limit-1, or without end."""
        return (Scenario.model_validate(item) for item in self.items(limit))

    def _eligible(self) -> tuple[Persona, ...]:
        pool = personas(self.split)
        needed = self.settings.questions
        counts = [len(self._fitting(persona)) for persona in pool]
        found = tuple(p for p, fits in zip(pool, counts, strict=True) if fits >= needed)
        if not found:
            raise ConfigError(
                f"questions: {needed} questions, each of its own topic, are more than the "
                f"{max(counts)} suitable topics of split {self.split!r} that fit any one persona "
                f"({len(self._suitable)} of {len(topics(self.split))} topics have "
                f"{self.settings.variables_per_question} variables and "
                f"{self.settings.min_choices} combinations)"
            )
        return found

    def _fitting(self, persona: Persona) -> list[Topic]:
        return [topic for topic in self._suitable if topic.fits.suits(persona.age, persona.has)]

    def _persona(self, number: int) -> Persona:
        # All personas come once before any comes twice.
        turn, place = divmod(number, len(self._people))
        return self._people[_order(self.split, self.seed, turn, len(self._people))[place]]


def _related(found: Sequence[Topic], count: int, draws: Draws) -> list[Topic]:
    """Return `count` topics of which many share their domain, as those of one person do."""
    left = draws.shuffled(found)
    chosen: list[Topic] = []
    while len(chosen) < count:
        domains = {topic.domain for topic in chosen}
        near = [topic for topic in left if topic.domain in domains]
        pool = near if near and draws.chance(_RELATED) else left
        topic = draws.pick(pool)
        left.remove(topic)
        chosen.append(topic)
    return chosen


@lru_cache(maxsize=8)
def _order(split: Split, seed: int, turn: int, size: int) -> list[int]:
    return Draws(split, seed, turn, "personas").shuffled(range(size))


def _shape_suffix(settings: Settings) -> str:
    for name, shape in SHAPES.items():
        if settings == shape:
            return "" if name == "base" else f"-{name}"
    return f"-{digest('settings', *map(str, astuple(settings))).hex()[:8]}"


def _suitable(found: Sequence[Topic], split: Split, settings: Settings) -> list[Topic]:
    size, least = settings.variables_per_question, settings.min_choices
    enough = {
        topic.id: prod(len(v.values) for v in list(topic.variables.values())[:size])
        for topic in found
        if len(topic.variables) >= size
    }
    if enough and max(enough.values()) < least:
        raise ConfigError(
            f"min_choices: {least} choices are more than the {max(enough.values())} combinations "
            f"that any question of split {split!r} with {size} variables has"
        )
    return [topic for topic in found if enough.get(topic.id, 0) >= least]
