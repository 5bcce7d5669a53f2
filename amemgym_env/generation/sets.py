"""Names of scenario sets, usable wherever a path is.

```
tiny                            hand-solvable, stored in the package
base, extra                     20 scenarios in the paper's shapes, from test topics
train, validation, test         500, 100 and 100 scenarios of a split, shape base
SPLIT:COUNT[:SEED[:SHAPE]]      a generator: train:500:7, validation:50:1:extra
anything else                   a path of a .json or .jsonl file
```

Generated sets are made while they are iterated, and are the same each time. `base`, `extra` and
whatever comes from `test` topics is for tests: see `is_test`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path

from amemgym_env.errors import ConfigError, near
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.generation.offline.settings import SHAPES
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios.library import SPLITS, Split, topics
from amemgym_env.scenarios.model import Scenario


@dataclass(frozen=True, slots=True)
class Recipe:
    """A generated set: the scenarios 0..count-1 of a split, seed and shape."""

    split: Split
    count: int
    seed: int = 0
    shape: str = "base"

    def generator(self) -> Generator:
        """Return the generator that makes the set."""
        return Generator(self.split, self.seed, SHAPES[self.shape])


# Seeds are the first three digits of pi, a number that nobody has chosen for its luck.
RECIPES: dict[str, Recipe] = {
    "base": Recipe("test", 20, 314),
    "extra": Recipe("test", 20, 314, "extra"),
    "train": Recipe("train", 500),
    "validation": Recipe("validation", 100),
    "test": Recipe("test", 100),
}

NAMES: tuple[str, ...] = ("tiny", *RECIPES)
"""The named sets; generators and paths come on top."""


class ScenarioSet:
    """An iterable of scenarios that can be gone through any number of times."""

    def __init__(self, name: str, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ConfigError(f"limit: expected at least 1 scenario or none, found {limit}")
        self.name = name
        self._limit = limit
        self._recipe = recipe(name)
        if self._recipe is not None:
            self._generator = self._recipe.generator()
        elif name != "tiny":
            _check_path(name)

    def __iter__(self) -> Iterator[Scenario]:
        """Yield the scenarios one by one; files are validated as they are read."""
        return islice(self._all(), self._limit)

    def _all(self) -> Iterator[Scenario]:
        if self._recipe is not None:
            return self._generator.scenarios(self._recipe.count)
        if self.name == "tiny":
            file = resources.files("amemgym_env").joinpath("scenarios", "tiny.json")
            with resources.as_file(file) as path:
                return iter(scenario_files.load(path))
        return scenario_files.stream(self.name)


def scenarios(name_or_path: str | os.PathLike[str], limit: int | None = None) -> ScenarioSet:
    """Return the set of a name, generator name or path; `limit` keeps its first scenarios.

    Raises:
        ConfigError: neither a set's name, nor a generator's, nor an existing file; or the
            generator's split, count, seed or shape is wrong. While it is iterated, a file may
            raise ScenarioError.
    """
    return ScenarioSet(os.fspath(name_or_path), limit)


def recipe(name: str) -> Recipe | None:
    """Return how a generated set is made; None for `tiny` and paths.

    Raises:
        ConfigError: the name has a generator's form, but a part of it is wrong.
    """
    if name in RECIPES:
        return RECIPES[name]
    head, *parts = name.split(":")
    if not parts or "/" in head or "\\" in head or len(head) == 1 or Path(name).exists():
        # Paths contain colons too; a single letter before one is a drive.
        return None
    return _parsed(name, head, parts)


def is_test(name_or_path: str | os.PathLike[str]) -> bool:
    """Return whether a set holds test topics, so that nothing may be trained or tuned on it.

    A file is read to its end (or to its first test topic).
    """
    name = os.fspath(name_or_path)
    made = recipe(name)
    if made is not None:
        return made.split == "test"
    return name != "tiny" and any(is_test_scenario(scenario) for scenario in scenarios(name))


def is_test_scenario(scenario: Scenario) -> bool:
    """Return whether a question of the scenario comes from a test topic."""
    held_out = {topic.id for topic in topics("test")}
    return any(question.topic in held_out for question in scenario.qas)


def _parsed(name: str, head: str, parts: list[str]) -> Recipe:
    form = "expected SPLIT:COUNT[:SEED[:SHAPE]], such as train:500:7"
    split = next((split for split in SPLITS if split == head), None)
    if split is None:
        raise ConfigError(
            f"scenarios: {form}; found split {head!r} in {name!r}{near(head, SPLITS)}"
        )
    if len(parts) > 3:
        raise ConfigError(f"scenarios: {form}; found {len(parts) + 1} parts in {name!r}")
    numbers = []
    for what, text, least in zip(("count", "seed"), parts[:2], (1, 0), strict=False):
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ConfigError(f"scenarios: {form}; found {what} {text!r} in {name!r}")
        numbers.append(int(text))
    shape = parts[2] if len(parts) == 3 else "base"
    if shape not in SHAPES:
        raise ConfigError(
            f"scenarios: {form}; found shape {shape!r} in {name!r}{near(shape, SHAPES)}"
        )
    return Recipe(split, numbers[0], numbers[1] if len(numbers) > 1 else 0, shape)


def _check_path(name: str) -> None:
    path = Path(name)
    if path.is_file():
        return
    if path.is_dir():
        raise ConfigError(f"scenarios: expected a set's name or a file, found the folder {name!r}")
    if path.suffix in (".json", ".jsonl"):
        raise ConfigError(f"scenarios: expected a file, found nothing at {name!r}; check the path")
    raise ConfigError(
        f"scenarios: expected one of {', '.join(NAMES)}, a generator such as train:500:7, or the "
        f"path of a .json or .jsonl file, found {name!r}{near(name, NAMES)}"
    )
