"""Reading and writing scenario files: the benchmark's JSON list, and JSON Lines as a stream.

Everything is validated before anything runs; one error lists all offenders of the file.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from amemgym_env.errors import ScenarioError
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.validation import problems

_MOST_PROBLEMS = 50
"""A file of another kind would otherwise print thousands of lines; the rest is counted."""


def load(path: str | Path) -> list[Scenario]:
    """Return the scenarios of a `.json` (list) or `.jsonl` (one a line) file, all validated.

    Raises:
        ScenarioError: the file is missing, not UTF-8, not JSON, or a scenario breaks a rule; lists
            every offender with scenario, period and field.
    """
    return list(stream(path))


def stream(path: str | Path) -> Iterator[Scenario]:
    """Yield the scenarios of a file one by one; memory stays flat for `.jsonl`.

    Raises:
        ScenarioError: as `load`. Scenarios in front of the first offender are yielded before.
    """
    return _valid(_items(Path(path)), str(path))


def parse(items: Iterable[Any], source: str = "scenarios") -> list[Scenario]:
    """Return validated scenarios from JSON objects already in memory.

    Raises:
        ScenarioError: lists every offender of all items.
    """
    return list(_valid(enumerate(items), source))


def save(scenarios: Iterable[Scenario], path: str | Path) -> int:
    """Write scenarios as UTF-8: a JSON list, or JSON Lines when the name ends in `.jsonl`.

    The file appears whole or not at all. Returns the number of scenarios written.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    lines = target.suffix == ".jsonl"
    count = 0
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write("" if lines else "[\n")
        for scenario in scenarios:
            file.write("" if lines or count == 0 else ",\n")
            file.write(json.dumps(scenario.to_json(), ensure_ascii=False))
            file.write("\n" if lines else "")
            count += 1
        file.write("" if lines else "\n]\n")
    partial.replace(target)
    return count


def slug(scenario_id: str) -> str:
    """Return a safe and unique name for files about a scenario: readable part and hash.

    Any id has one, and distinct ids have distinct ones, also where case does not count.
    """
    plain = unicodedata.normalize("NFKD", scenario_id).encode("ascii", "ignore").decode().lower()
    readable = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "scenario"
    return f"{readable}-{hashlib.sha256(scenario_id.encode('utf-8', 'replace')).hexdigest()[:10]}"


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    if not path.exists():
        raise ScenarioError(
            f"scenarios: expected a file or the name of a set, found nothing at {str(path)!r}; "
            "check the path"
        )
    if path.is_dir():
        raise ScenarioError(f"scenarios: expected a file, found the folder {str(path)!r}")
    try:
        if path.suffix == ".jsonl":
            yield from _lines(path)
            return
        # `utf-8-sig` also reads files without a byte order mark.
        document = _decode(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x} at "
            f"offset {error.start}; save the file as UTF-8"
        ) from error
    if not isinstance(document, list):
        raise ScenarioError(
            f"{path}: expected a JSON list of scenarios, found {type(document).__name__}"
        )
    yield from enumerate(document)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        number = 0
        for row, line in enumerate(file, start=1):
            if line.strip():
                yield number, _decode(line, f"{path}, line {row}")
                number += 1


def _decode(text: str, place: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ScenarioError(f"{place}: expected JSON, found: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _valid(items: Iterable[tuple[int, Any]], source: str) -> Iterator[Scenario]:
    """Yield valid scenarios up to the first offender; then look for all others, and raise."""
    offenders: list[str] = []
    first: dict[str, int] = {}
    for number, item in items:
        scenario, found = _validated(item, number)
        offenders.extend(found)
        if scenario is None:
            continue
        if scenario.id in first:
            offenders.append(
                f"{_place(item, number)}, id: expected a unique id, "
                f"found it in item {first[scenario.id]} too"
            )
        first.setdefault(scenario.id, number)
        if not offenders:
            yield scenario
    if offenders:
        raise _error(source, tuple(offenders))
    if not first:
        raise ScenarioError(f"{source}: expected at least one scenario, found none")


def _validated(item: Any, number: int) -> tuple[Scenario | None, tuple[str, ...]]:
    place = _place(item, number)
    try:
        scenario = Scenario.model_validate(item)
    except ValidationError as error:
        return None, tuple(f"{place}, {_field(line)}" for line in error.errors())
    found = problems(scenario)
    try:
        json.dumps(scenario.to_json(), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        found = (*found, f"expected Unicode text, found half of a surrogate pair: {error}")
    return scenario, tuple(f"{place}, {line}" for line in found)


def _field(line: Any) -> str:
    path = ""
    for part in line["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    found = "" if line["type"] == "missing" else f", found {line['input']!r:.80}"
    return f"{path.lstrip('.')}: {line['msg']}{found}"


def _place(item: Any, number: int) -> str:
    name = item.get("id") if isinstance(item, dict) else None
    return f"scenario {number} ({name!r})" if isinstance(name, str) else f"scenario {number}"


def _error(source: str, offenders: tuple[str, ...]) -> ScenarioError:
    shown = offenders[:_MOST_PROBLEMS]
    if len(offenders) > len(shown):
        shown = (*shown, f"and {len(offenders) - len(shown)} more")
    count = f"{len(offenders)} problem{'s' if len(offenders) != 1 else ''}"
    return ScenarioError(f"{source}: {count}; nothing was played", shown)
