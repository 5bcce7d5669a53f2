"""Personas for the pipeline: the built-in pool, or a table with Nemotron-Personas' columns.

A table is a CSV, JSON Lines or Parquet file. Text columns whose names end in `_list` hold a list
written as text (`"['chess', 'rowing']"`), which is read as a literal and never evaluated. Every row
is checked before anything is generated, and read as a stream: of a large file only the sampled
rows stay in memory.
"""

from __future__ import annotations

import ast
import csv
import heapq
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.generation.offline.personas import personas
from amemgym_env.scenarios.library import Split
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import digest, uniform

_MOST_PROBLEMS = 20
"""Wrong rows that one error names; the rest is counted."""

_STORIES = (
    "persona",
    "professional_persona",
    "sports_persona",
    "arts_persona",
    "travel_persona",
    "culinary_persona",
    "cultural_background",
    "career_goals_and_ambitions",
    "complementary_info",
)
"""Columns of free text about the person; a row needs one of them at least."""

_LONGEST_FIELD = 10_000_000
"""Characters of a field of a CSV file; Python's own limit would refuse long stories."""


class Person(NamedTuple):
    """One person that a scenario is made for."""

    id: str
    profile: dict[str, Any]

    @property
    def text(self) -> str:
        """The profile as text."""
        return str(self.profile["formatted_str"])


def people(source: str | None, split: Split, count: int, seed: int) -> list[Person]:
    """Return `count` people of a table, or of our pool's split where `source` is None.

    The same seed gives the same people, and the first ones do not depend on `count`.

    Raises:
        ConfigError: the file cannot be read, a row of it is malformed, or it has too few.
    """
    if source is None:
        pool = [Person(f"{split}-{p.profile['uuid']}", dict(p.profile)) for p in personas(split)]
        found = Draws("people", split, seed).shuffled(pool)[:count]
        available = len(pool)
    else:
        found, available = _sampled(_people(Path(source)), source, count, seed)
    if len(found) < count:
        raise ConfigError(
            f"personas: n={count} scenarios, each of its own persona, are more than the "
            f"{available} personas of {source or f'our pool of split {split!r}'}"
        )
    return found


def _sampled(
    rows: Iterator[tuple[str, Person | ConfigError]], source: str, count: int, seed: int
) -> tuple[list[Person], int]:
    problems: list[str] = []
    places: dict[bytes, str] = {}

    def ranked() -> Iterator[tuple[float, str, Person]]:
        for place, found in rows:
            if isinstance(found, ConfigError):
                problems.append(f"{place}, {found}")
                continue
            hashed = digest(found.id)
            if hashed in places:
                problems.append(f"{place}, uuid: {found.id!r} is that of {places[hashed]} too")
            places[hashed] = place
            yield uniform("people", seed, found.id), found.id, found

    chosen = [person for _, _, person in heapq.nsmallest(count, ranked(), key=lambda r: r[:2])]
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more")
        lines = "\n".join(f"  - {line}" for line in shown)
        raise ConfigError(f"personas: {source}: nothing was generated\n{lines}")
    return chosen, len(places)


def _people(path: Path) -> Iterator[tuple[str, Person | ConfigError]]:
    """Yield each row's place and its person, or what is wrong with it."""
    for number, row in enumerate(_rows(path), start=1):
        try:
            yield f"row {number}", person(row)
        except ConfigError as error:
            yield f"row {number}", error


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise ConfigError(f"personas: expected a file, found none at {str(path)!r}")
    readers = {".csv": _csv_rows, ".jsonl": _json_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"personas: expected a {', '.join(readers)} file, found {str(path)!r}")
    try:
        yield from reader(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"personas: {path}: expected UTF-8 text, found {error}") from error


def _csv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(_LONGEST_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            yield from csv.DictReader(file, strict=True)
        except csv.Error as error:
            raise ConfigError(f"personas: {path}: expected CSV, found: {error}") from error


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"personas: {path}, line {number}: {error}") from error
            if not isinstance(row, dict):
                raise ConfigError(f"personas: {path}, line {number}: expected an object")
            yield row


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(
            "personas: a Parquet file needs pyarrow; pip install 'amemgym-env[parquet]'"
        ) from error
    try:
        batches: Iterable[Any] = parquet.ParquetFile(path).iter_batches(batch_size=1000)
        for batch in batches:
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise ConfigError(f"personas: {path}: expected a Parquet file, found: {error}") from error


def person(row: Mapping[str, Any]) -> Person:
    """Return the person that a row describes, with a profile in the benchmark's shape.

    Raises:
        ConfigError: a column is missing or malformed; names the column.
    """
    stories = {name: text for name in _STORIES if (text := _text(row, name))}
    if not stories:
        raise ConfigError(f"expected text in one of {', '.join(_STORIES)}, found none")
    facts = {
        "name": _text(row, "name") or _name(tuple(stories.values())),
        "age": _age(row.get("age")),
        "gender": _text(row, "gender") or _text(row, "sex"),
        "marital_status": _text(row, "marital_status"),
        "education_level": _text(row, "education_level"),
        "occupation": _text(row, "occupation"),
        "hobbies_and_interests": ", ".join(_list(row, "hobbies_and_interests")),
        "skills_and_expertise": ", ".join(_list(row, "skills_and_expertise")),
        "complementary_info": " ".join(dict.fromkeys(stories.values())),
    }
    profile = {name: value for name, value in facts.items() if value not in ("", None)}
    lines = "\n".join(f"{name}: {value}" for name, value in profile.items())
    uuid = _text(row, "uuid") or digest("persona", lines).hex()
    return Person(uuid, {"uuid": uuid, **profile, "formatted_str": lines})


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"{name}: expected text, found {value!r:.80}")
    return " ".join(value.split())


def _age(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,3}\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 130:
        raise ConfigError(f"age: expected a whole number of years, found {value!r:.80}")
    return value


def _list(row: Mapping[str, Any], name: str) -> list[str]:
    """Return a list-valued column, `<name>_list` where there is one; else its text as one item."""
    value = row.get(f"{name}_list")
    if value is None:
        text = _text(row, name)
        return [text] if text else []
    return list_of_texts(value, f"{name}_list")


def list_of_texts(value: Any, name: str) -> list[str]:
    """Return a list of texts that may be written as text: JSON or a Python literal, '' is empty.

    Raises:
        ConfigError: it is something else.
    """
    found = value
    if isinstance(value, str):
        if not value.strip():
            return []
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            try:
                found = ast.literal_eval(value.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                found = None
    if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
        raise ConfigError(f"{name}: expected a list such as ['a', 'b'], found {value!r:.80}")
    return [" ".join(item.split()) for item in found if item.strip()]


def _name(stories: tuple[str, ...]) -> str:
    """Return the first name with which at least two of the stories begin; empty where none is."""
    first = [match[0] for text in stories if (match := re.match(r"[^\W\d_][\w'\u2019-]*", text))]
    named = [word for word in dict.fromkeys(first) if first.count(word) > 1 and word[0].isupper()]
    return named[0] if named and named[0] not in ("A", "An", "The") else ""
