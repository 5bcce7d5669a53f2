"""Multirun (`-m`): folder layout, job status files, and the closing summary.

A sweep has one folder:

```
sweep.json              what was asked for, and after the end every job with its score and cost
sweep.csv, sweep.svg    the closing table and picture
jobs/<sweep>-<job>.json how each job of a sweep went; a rerun begins a new number of sweep
<agent>-<hash>/         one run's folder, named by a hash of its settings, with its job.json, and
                        traceback.txt where it failed
```

A job whose folder already holds its finished run is read, not played; the other jobs of an earlier
sweep stay where they are and are not looked at. Jobs may run in other processes and on other
machines that see the same folder.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.errors import RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.redaction import redacted
from experiments.app.file_lock import locked
from experiments.app.pareto import Cost, Point, cost, front, varied
from experiments.app.run_folder import numbered, write
from experiments.app.scatter_svg import picture
from experiments.app.sweep_tables import Row, print_sweep

Document = dict[str, Any]


class Place(NamedTuple):
    """Which job of which sweep is being played."""

    path: Path
    """The sweep's folder."""
    number: int
    overrides: tuple[str, ...]
    launcher: str
    """Name of the class that launched it: what was used, not what was asked for."""


def begin(out: str | None, job: str, jobs: Sequence[Sequence[str]]) -> Path:
    """Return the folder of a sweep, new or continued, with its jobs written down.

    Raises:
        RunError: the folder holds something else.
    """
    path = numbered(f"{job}-sweep") if out is None else Path(out)
    number = 1
    if path.exists() and any(path.iterdir()):
        try:
            number += int(json.loads((path / "sweep.json").read_text(encoding="utf-8"))["sweep"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            found = "a single run's" if (path / "config.yaml").exists() else "neither"
            raise RunError(
                f"out={path}: expected an empty folder or a sweep's own, found {found}; choose "
                "another out="
            ) from error
    listed = [list(words) for words in jobs]
    write(path / "sweep.json", json.dumps({"sweep": number, "asked": listed}, indent=1))
    return path.resolve()


def folder(sweep: Path, name: str, identity: Mapping[str, Any]) -> Path:
    """Return the folder of a run with this agent's name and these settings."""
    text = json.dumps(identity, sort_keys=True)
    return sweep / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def play(place: Place, path: Path, run: Callable[[], ResultsFile]) -> float:
    """Run one job and return its objective, the memory score; NaN without one.

    Whatever goes wrong is this job's alone: it is written down, and the sweep goes on.
    """
    record = {
        "folder": path.name,
        "overrides": list(place.overrides),
        "launcher": place.launcher,
        "status": "playing",
        "error": None,
    }
    asked = json.loads((place.path / "sweep.json").read_text(encoding="utf-8"))
    noted = place.path / "jobs" / f"{asked['sweep']}-{place.number:04d}.json"

    def note(**changes: Any) -> None:
        record.update(changes)
        for file in (noted, path / "job.json"):
            write(file, json.dumps(record, indent=1))

    score = float("nan")
    # A worker that outlived a killed sweep may still play this job.
    with locked(path / "job", wait=True):
        note()
        try:
            results = run()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a sweep outlives any job
            write(path / "traceback.txt", redacted(traceback.format_exc()))
            note(status="failed", error=redacted(f"{type(error).__name__}: {error}"))
        else:
            (path / "traceback.txt").unlink(missing_ok=True)
            note(status="done" if not results.stopped else "stopped")
            if results.memory_score is not None:
                score = results.memory_score
    told = f"job {place.number}: {' '.join(place.overrides)}: {record['status']}"
    told += f" ({record['error']})" if record["error"] else f", memory {score:.3f}"
    print(told, file=sys.stderr, flush=True)
    return score


def finish(path: Path) -> int:
    """Print table, front and failures of the present sweep; returns its exit status.

    Only jobs of this sweep count, whatever else the folder holds.
    """
    asked = json.loads((path / "sweep.json").read_text(encoding="utf-8"))
    records = _records(path, asked["sweep"])
    jobs: list[Document] = []
    rows: list[Row] = []
    runs: list[ResultsFile] = []
    if not records and asked["asked"]:
        print(f"nothing was played; {path} holds no job of this sweep", file=sys.stderr)
        return 1
    for number, words in enumerate(asked["asked"]):
        records.setdefault(number, {"overrides": words, "status": "missing", "error": None})
    names = varied(records[number]["overrides"] for number in sorted(records))
    for name, number in zip(names, sorted(records), strict=True):
        record = records[number]
        job = {"job": number, "name": name, **record}
        if record["status"] in ("done", "stopped"):
            results = ResultsFile.read(path / record["folder"])
            spent = cost(results)
            job |= {
                "memory_score": results.memory_score,
                "overall": results.overall,
                "tokens_per_user": spent.tokens,
                "usd_per_user": spent.usd,
                "usd_estimated": spent.estimated,
            }
            rows.append(_row(number, name, results, spent))
            runs.append(results)
        jobs.append(job)
    by_tokens = front([Point(row.score, row.cost.tokens) for row in rows])
    by_usd = front([Point(row.score, row.cost.usd) for row in rows])
    fronts = {
        "tokens": [rows[place].number for place in by_tokens],
        "usd": [rows[place].number for place in by_usd],
    }
    whole = {**asked, "jobs": jobs, "pareto_front": fronts}
    write(path / "sweep.json", json.dumps(whole, indent=1))
    write(path / "sweep.csv", _csv(jobs).rstrip("\n"))
    if rows:
        write(path / "sweep.svg", _svg(rows))
        print_sweep(rows, runs[0], fronts)
    launchers = sorted({record["launcher"] for record in records.values() if "launcher" in record})
    print(f"{len(rows)} of {len(jobs)} jobs finished ({', '.join(launchers) or 'no launcher'})")
    here = Path.cwd()
    print(f"written to {path.relative_to(here) if path.is_relative_to(here) else path}")
    failed = [job for job in jobs if job["status"] not in ("done", "stopped")]
    for job in failed:
        where = f"; see {path / job['folder'] / 'traceback.txt'}" if job["error"] else ""
        said = job["error"] or "did not come to an end; the same command continues"
        print(f"{job['status']}: {' '.join(job['overrides'])}: {said}{where}", file=sys.stderr)
    return 1 if failed else 0


def _records(path: Path, sweep: int) -> dict[int, Document]:
    found = {}
    for file in sorted((path / "jobs").glob(f"{sweep}-*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["status"] == "playing":
            record["status"] = "interrupted"
        found[int(file.stem.split("-")[1])] = record
    return found


def _row(number: int, name: str, results: ResultsFile, spent: Cost) -> Row:
    told = " " not in name and name.startswith("agent=")
    return Row(
        number,
        results.label if told or not name else name,
        results.label,
        results.overall,
        results.memory_score,
        results.confidence_interval["memory_score"],
        spent,
    )


def _csv(jobs: Sequence[Document]) -> str:
    columns = ["job", "name", "folder", "status", "memory_score", "overall"]
    columns += ["tokens_per_user", "usd_per_user"]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(jobs)
    return file.getvalue()


def _svg(rows: Sequence[Row]) -> str:
    estimated = " (estimated)" if any(row.cost.estimated for row in rows) else ""
    panels = [
        ("memory score, tokens a user", [Point(row.score, row.cost.tokens) for row in rows]),
        (f"memory score, US$ a user{estimated}", [Point(row.score, row.cost.usd) for row in rows]),
    ]
    return picture(panels, [row.name for row in rows])


def objective(score: float | None) -> float:
    """Return a score as sweepers want it: NaN, a failed trial, where there is none."""
    return math.nan if score is None else score
