"""Folder of a run: settings, a journal for each scenario, results; protected from other runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from amemgym_env.errors import RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.events import Event
from amemgym_env.models.journal import FileJournal
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario

RUNS = Path("runs")
SWEEP_NOTES = frozenset(("job.json", "job.lock", "traceback.txt"))
"""Status files of a sweep; they may exist before the run begins."""


class RunFolder:
    """The folder of one run, new or continued."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(
        cls, out: str | None, job: str, identity: Mapping[str, Any], resume: bool
    ) -> RunFolder:
        """Return the folder of a run: `out`, or a new numbered one under runs/.

        Raises:
            RunError: the folder holds another run's results, or something else.
        """
        if out is None:
            return cls(numbered(job))._begun(identity)
        folder = cls(Path(out))
        if folder._empty():
            folder.path.mkdir(parents=True, exist_ok=True)
            return folder._begun(identity)
        known = folder._settings()
        if not resume:
            raise RunError(
                f"out={out}: expected a new folder, as resume=false says, found a run in it"
            )
        unlike = _unlike(identity, known)
        if unlike:
            raise RunError(
                f"out={out}: expected a new folder or this run's own, found another run's results "
                f"({unlike}); choose another out=, or the settings of {folder.path / 'config.yaml'}"
            )
        return folder

    def journal(self, scenario: Scenario) -> FileJournal:
        """Return a scenario's journal."""
        file = self.path / "journals" / f"{slug(scenario.id)}.jsonl"
        return FileJournal(inside(self.path, file))

    def save_results(self, results: ResultsFile) -> Path:
        """Write results.json, whole or not at all."""
        text = json.dumps(results.to_json(), indent=1, allow_nan=False)
        return write(self.path / "results.json", text)

    def _empty(self) -> bool:
        """Whether the folder holds nothing but a sweep's status files."""
        if not self.path.exists():
            return True
        return all(entry.name in SWEEP_NOTES for entry in self.path.iterdir())

    def finished(self, versions: Mapping[str, Any]) -> ResultsFile | None:
        """Return the results of a run that was played to its end by the same versions, if any."""
        file = self.path / "results.json"
        if not file.exists():
            return None
        found = ResultsFile.read(file)
        return found if found.complete and found.versions == versions else None

    def _begun(self, identity: Mapping[str, Any]) -> RunFolder:
        # JSON is YAML too, and keeps 'no', '0' and null what they are.
        write(self.path / "config.yaml", json.dumps(identity, indent=2))
        return self

    def _settings(self) -> dict[str, Any]:
        file = self.path / "config.yaml"
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            found = "a sweep's" if (self.path / "sweep.json").exists() else f"neither ({error})"
            raise RunError(
                f"out={self.path}: expected an empty folder or a single run's, found {found}; "
                "choose another out="
            ) from error
        if not isinstance(known, dict):
            raise RunError(f"{file}: expected settings, found {type(known).__name__}")
        return known


def _unlike(asked: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return the first setting in which two runs differ, and how many more do; "" if none."""
    one, other = dict(_leaves(asked)), dict(_leaves(known))
    unlike = [key for key in {**one, **other} if one.get(key, _ABSENT) != other.get(key, _ABSENT)]
    if not unlike:
        return ""
    first, more = unlike[0], len(unlike) - 1
    there, here = (f"{found.get(first, _ABSENT)!r:.50}" for found in (other, one))
    rest = f", and {more} more setting{'s' if more > 1 else ''}" if more else ""
    return f"{first}: {there} there, {here} here{rest}"


class _Absent:
    """A setting that one of two runs does not have."""

    def __repr__(self) -> str:
        return "unset"


_ABSENT = _Absent()


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings by their keys as they are typed, in their order."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def calls_of(run: str) -> Callable[[Scenario], list[Event]]:
    """Return what reads the recorded calls of a scenario in another run's folder.

    Raises:
        RunError: there is no run.
    """
    folder = RunFolder(Path(run))
    if not (folder.path / "journals").is_dir():
        raise RunError(f"replay={run}: expected the folder of a run, found no journals in it")
    return lambda scenario: folder.journal(scenario).read()


def inside(folder: Path, path: Path) -> Path:
    """Return a path that must lie in a folder, also where links lead.

    Raises:
        RunError: a link leads out of the folder.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RunError(
            f"{path}: expected a file or folder in {folder}, found a link that leads out of it; "
            "remove the link"
        )
    return path


def write(path: Path, text: str) -> Path:
    """Write a file whole or not at all, as UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text + "\n", encoding="utf-8")
    os.replace(partial, path)
    return path


def numbered(job: str) -> Path:
    """Make the next folder under runs/; two jobs started at once get two folders."""
    RUNS.mkdir(exist_ok=True)
    number = 1 + max((_number(path, job) for path in RUNS.iterdir()), default=0)
    while True:
        path = RUNS / f"{job}-{number:04d}"
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def _number(path: Path, job: str) -> int:
    name, _, number = path.name.rpartition("-")
    return int(number) if name == job and number.isdecimal() else 0
