"""Several evaluations in one command (`-m`): their folders, and the table that ends them.

A sweep has one folder. Each job's own folder in it is named by its label and a hash of its
settings, so a sweep that is run again continues its jobs and never mixes with another's.
`jobs.jsonl` lists the folders of the present sweep alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from experiments.run_folder import _numbered
from experiments.settings import EvaluateSettings
from experiments.tables import print_comparison

_FOLDER = "AMEMGYM_SWEEP"
"""Tells jobs, which may run in other processes, where their sweep writes."""


def prepare(arguments: list[str], job: str) -> None:
    """Make the folder of a sweep when the command line asks for one; starts its list anew."""
    if not {"-m", "--multirun"} & set(arguments):
        return
    given = [word.partition("=")[2] for word in arguments if word.startswith("out=")]
    path = Path(given[-1]) if given else _numbered(f"{job}-sweep")
    path.mkdir(parents=True, exist_ok=True)
    os.environ[_FOLDER] = str(path.resolve())
    (path / "jobs.jsonl").write_text("", encoding="utf-8")
    arguments.append(f"hydra.sweep.dir={path}")


def folder(settings: EvaluateSettings) -> Path:
    """Return the folder of one job of the present sweep."""
    identity = json.dumps(settings.identity(), sort_keys=True)
    name = settings.agent.name
    digest = hashlib.sha256(identity.encode()).hexdigest()[:10]
    return Path(os.environ[_FOLDER]) / f"{name}-{digest}"


def note(path: str) -> None:
    """Add a finished job to the sweep's list."""
    with (Path(os.environ[_FOLDER]) / "jobs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"folder": path}) + "\n")


def finish() -> None:
    """Print one table of the sweep's jobs, if this was a sweep."""
    if _FOLDER not in os.environ:
        return
    path = Path(os.environ[_FOLDER])
    lines = (path / "jobs.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [
        json.loads((Path(json.loads(line)["folder"]) / "results.json").read_text(encoding="utf-8"))
        for line in lines
    ]
    if documents:
        print_comparison(documents)
        print(f"written to {path}")
