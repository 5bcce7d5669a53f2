"""Run folders: reading of single runs, of sweeps, and of the benchmark's own results.

A folder that cannot be read gives one message and never keeps the others from being shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from amemgym_env.errors import InputError, RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import Game, script_of
from amemgym_env.evaluation.scenario_result import ScenarioResult
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.script import Script
from experiments.app.terminal import without_score
from experiments.report.page.official import folder as benchmark_folder
from experiments.report.page.training_runs import Study, study


@dataclass
class Run:
    """One run as the page shows it."""

    path: Path
    document: ResultsFile
    origin: Literal["amemgym_env", "benchmark"] = "amemgym_env"
    name: str = ""
    """Its name on the page, unlike all others."""
    results: dict[str, ScenarioResult] = field(default_factory=dict)
    """What the journals say, by scenario id; filled while the inspection is made."""
    notes: list[str] = field(default_factory=list)
    """Notes on the scores."""

    @property
    def journals(self) -> Path:
        """The folder of its journals; of several seeds, that of the first, whose results it has."""
        own = self.path / "journals"
        return own if own.exists() else self.path / f"seed-{self.document.seed}" / "journals"

    @property
    def model(self) -> str:
        """The model that answered, as its settings name it."""
        backend = self.document.settings.get("backend", {})
        kind = backend.get("profile") if self.document.simulated else backend.get("model")
        return str(kind or "unknown")


class Loaded(NamedTuple):
    """What was found in folders."""

    runs: list[Run]
    warnings: list[str]
    """A message for everything that could not be read."""
    studies: list[Study]
    home: Path | None
    """The first folder of those given in which anything could be read."""


def load(folders: Iterable[Path]) -> Loaded:
    """Return what can be read in the folders, and what cannot."""
    runs: list[Run] = []
    warnings: list[str] = []
    studies: list[Study] = []
    home: Path | None = None
    for folder in folders:
        try:
            found = list(_expanded(folder))
        except InputError as error:
            warnings.append(str(error))
            continue
        for path in found:
            try:
                told = _study(path)
                if told is not None:
                    studies.append(told)
                if told is None or _is_evaluation(path):
                    runs.append(_run(path))
                home = home or folder
            except InputError as error:
                warnings.append(str(error))
    _name(runs)
    return Loaded(runs, warnings, studies, home)


def _expanded(folder: Path) -> Iterator[Path]:
    """Yield a run's folder itself, or the runs in the folder of a sweep."""
    if not folder.is_dir():
        raise RunError(f"{folder}: expected a run's folder, found nothing there; check the path")
    own = ("results.json", "curve.json", "lineage.json")
    if any((folder / name).exists() for name in own) or benchmark_folder.is_one(folder):
        yield folder
        return
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and _is_run(path))
    if inner:
        yield from inner
    elif (folder / "config.yaml").exists():
        yield folder
    else:
        raise RunError(
            f"{folder}: expected results.json, or the benchmark's overall_results.json in a folder "
            "for each user; found neither"
        )


def _is_run(path: Path) -> bool:
    known = (path / "results.json").exists() or (path / "config.yaml").exists()
    return known or benchmark_folder.is_one(path)


def _run(path: Path) -> Run:
    file = path / "results.json"
    if not file.exists() and benchmark_folder.is_one(path):
        document, notes = benchmark_folder.read(path)
        return Run(path, document, "benchmark", notes=notes)
    if not file.exists():
        raise RunError(
            f"{path}: expected results.json, found a run that has not ended; the command that "
            "began it continues it"
        )
    found = ResultsFile.read(file)
    return Run(path, found, notes=without_score(found))


def _study(path: Path) -> Study | None:
    curve, lineage = path / "curve.json", path / "lineage.json"
    return study(
        path,
        read_json(curve) if curve.exists() else None,
        read_json(lineage) if lineage.exists() else None,
    )


def _is_evaluation(path: Path) -> bool:
    """Whether a folder with a curve or a lineage is an evaluation too; trainings are none."""
    file = path / "results.json"
    return file.exists() and "accuracy" in read_json(file)


def read_json(file: Path) -> Any:
    """Return a file's JSON value.

    Raises:
        RunError: it is not there, or damaged.
    """
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise RunError(f"{file}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise RunError(f"{file}: expected JSON, found a damaged file ({error})") from error


def _name(runs: Sequence[Run]) -> None:
    """Name runs by their labels, with as much of their folders as tells equal ones apart."""
    for run in runs:
        same = [other for other in runs if other.document.label == run.document.label]
        run.name = run.document.label
        if len(same) > 1:
            parts = [run.document.mode.replace("_", "-")] if len(_modes(same)) > 1 else []
            folders = [other.path.name for other in same]
            unlike = len(_modes(same)) < len(same)
            parts += [run.path.name] if unlike else []
            if unlike and len(set(folders)) < len(folders):
                parts.append(str(runs.index(run) + 1))
            run.name += f" ({', '.join(parts)})"


def ranked(runs: Sequence[Run]) -> list[Run]:
    """Return runs, best memory score first; those without one by their overall score behind."""

    def key(run: Run) -> tuple[bool, float, str]:
        memory, overall = run.document.memory_score, run.document.overall
        return memory is None, -(overall or 0.0) if memory is None else -memory, run.name

    return sorted(runs, key=key)


def _modes(runs: Sequence[Run]) -> set[str]:
    return {run.document.mode for run in runs}


def scripts(run: Run, override: str | None = None) -> dict[str, Script]:
    """Return the scripts that a run was played with, by scenario id.

    `override` names the scenarios when they are not where the run's settings say.

    Raises:
        InputError: the scenarios cannot be found, or are no longer those of the run.
    """
    settings = run.document.settings
    source = override or settings.get("scenarios")
    if not isinstance(source, str):
        raise RunError("its settings name no scenarios; give them with --scenarios")
    chosen = list(named_scenarios(source, settings.get("limit")))
    missing = set(run.document.scenarios) - {scenario.id for scenario in chosen}
    if missing:
        raise RunError(f"{source} does not hold scenario {sorted(missing)[0]!r}")
    wanted = set(run.document.scenarios)
    known = {part.name: settings[part.name] for part in fields(Game) if part.name in settings}
    game = Game(**known)
    return {item.id: script_of(item, game, chosen) for item in chosen if item.id in wanted}
