"""Makes scenario sets, and measures the quality of any set.

The paper's pipeline asks a model for every scenario (Section 3.2): `source=model`, see
`model_generation.py`. By default the topic library stands in for the model, so that scenarios have
no end and cost nothing.

    python -m experiments.generate n=20 seed=7 out=my.json
    python -m experiments.generate n=10000 shape=extra out=many.jsonl
    python -m experiments.generate audit=my.json
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from amemgym_env.errors import ConfigError
from amemgym_env.generation.audit import report as audits
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.generation.sets import scenarios
from amemgym_env.scenarios import files as scenario_files
from experiments.app import hydra_app as job
from experiments.app.file_lock import sole_writer
from experiments.app.settings import LitellmBackend, checked
from experiments.app.terminal import terminal
from experiments.generate.settings import GenerateSettings
from experiments.generate.with_model import generate_by_model, judged

GROUPS = ("backend", "judge_backend")

_SHOWN = 5
"""Offending texts that are printed for a figure; the rest is counted."""


def generate(settings: GenerateSettings) -> Path:
    """Write the scenarios that the settings describe, as a stream, and return the file.

    Raises:
        ConfigError: no file is named, its name has another ending, or no scenario can be made so.
        RunError: another process writes the file.
    """
    path = settings.file()
    generator = Generator(settings.split, settings.seed, settings.shaped())
    with sole_writer(path):
        scenario_files.save(generator.scenarios(settings.n), path)
    return path


def audit(settings: GenerateSettings) -> audits.Audit:
    """Return the audit of the set that the settings name."""
    reference = None if settings.reference is None else list(scenarios(settings.reference))
    return audits.audit(
        scenarios(settings.audit or ""), judged=settings.judged, reference=reference
    )


def _print_audit(found: audits.Audit, console: Console) -> None:
    console.print(found.table(), markup=False)
    for name, texts in found.offenders.items():
        console.print(f"\n{name} ({len(texts)}):", markup=False)
        for text in texts[:_SHOWN]:
            console.print(f"  - {text}", markup=False)
        if len(texts) > _SHOWN:
            console.print(f"  and {len(texts) - _SHOWN} more", markup=False)
    if found.foreign:
        console.print(
            "\nwithout the topic library: figures by form compare the file's openers with general "
            "phrases and other users' openers, which stand in for what exposes nothing; these "
            "figures and shared stems have no limits",
            markup=False,
        )
    if not found.passed and found.scenarios < audits.JUDGED:
        console.print(
            f"\nlimits are meant for {audits.JUDGED} scenarios: {found.scenarios} may leave them "
            "by chance",
            markup=False,
        )


def main(composed: dict[str, Any]) -> None:
    """Generate or audit.

    Ends with status 1 when a model made fewer scenarios than asked for, or when an audit of enough
    scenarios leaves its limits.
    """
    settings = checked(GenerateSettings, composed)
    console = terminal(None)
    if settings.audit is not None:
        _audit(settings, console)
    elif settings.source == "library":
        _refuse_model_settings(settings)
        console.print(f"written to {generate(settings)}: {settings.n} scenarios", markup=False)
    else:
        try:
            status = generate_by_model(settings, console)
        except KeyboardInterrupt:
            print("interrupted; the same command continues", file=sys.stderr)
            status = 130
        if status:
            sys.exit(status)


def _audit(settings: GenerateSettings, console: Console) -> None:
    found = audit(settings)
    if isinstance(settings.judge_backend, LitellmBackend):
        chosen = list(islice(scenarios(settings.audit or ""), settings.judged))
        found = found._replace(figures=(*found.figures, *judged(settings, chosen, console)))
    _print_audit(found, console)
    if not found.passed and found.scenarios >= audits.JUDGED:
        sys.exit(1)


def _refuse_model_settings(settings: GenerateSettings) -> None:
    """Raise ConfigError for settings that only a model would heed."""
    heedless = {
        "backend.model": bool(settings.backend.model),
        "personas": settings.personas is not None,
        "language": settings.language != "English",
        "dry_run": settings.dry_run,
    }
    named = [name for name, given in heedless.items() if given]
    if named:
        raise ConfigError(
            f"{', '.join(named)}: expected source=model with it, found source=library"
        )


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("generate", main, GROUPS)
