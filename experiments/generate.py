"""Makes scenario sets offline from the topic library, and measures the quality of any set.

The paper's pipeline asks a model for every scenario (Section 3.2); the library stands in for the
model, so that scenarios have no end and cost nothing.

    python -m experiments.generate n=20 seed=7 out=my.json
    python -m experiments.generate n=10000 shape=extra out=many.jsonl
    python -m experiments.generate audit=my.json
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from rich.console import Console

from amemgym_env import scenario_files
from amemgym_env.errors import ConfigError
from amemgym_env.generation import audit as audits
from amemgym_env.generation.generator import Generator
from amemgym_env.generation.sets import scenarios
from amemgym_env.generation.settings import SHAPES
from amemgym_env.generation.settings import Settings as Shape
from amemgym_env.topics import Split
from experiments import job
from experiments.settings import Count, Settings, checked

_SHOWN = 5
"""Offending texts that are printed for a figure; the rest is counted."""

SHAPE_KEYS = (
    "periods",
    "questions",
    "variables_per_question",
    "period_months",
    "start",
    "changes_per_period",
    "max_changes_per_variable",
    "min_choices",
)


class GenerateSettings(Settings):
    """Settings of `python -m experiments.generate`; conf/generate.yaml says what they mean."""

    out: str | None
    n: Count
    seed: Annotated[int, Field(ge=0)]
    split: Split
    shape: str
    periods: int | None
    questions: int | None
    variables_per_question: int | None
    period_months: int | None
    start: str | None
    changes_per_period: int | None
    max_changes_per_variable: int | None
    min_choices: int | None
    audit: str | None
    judged: Count

    def shaped(self) -> Shape:
        """Return the generator's settings: the named shape with what is set besides.

        Raises:
            ConfigError: no such shape, or settings that no scenario can meet.
        """
        if self.shape not in SHAPES:
            raise ConfigError(f"shape: expected one of {', '.join(SHAPES)}, found {self.shape!r}")
        given = {name: getattr(self, name) for name in SHAPE_KEYS}
        return replace(SHAPES[self.shape], **{k: v for k, v in given.items() if v is not None})


def generate(settings: GenerateSettings) -> Path:
    """Write the scenarios that the settings describe, as a stream, and return the file.

    Raises:
        ConfigError: no file is named, its name has another ending, or no scenario can be made so.
    """
    if settings.out is None:
        raise ConfigError("out: expected the file to write, such as out=my.json, found none")
    path = Path(settings.out)
    if path.suffix not in (".json", ".jsonl"):
        raise ConfigError(f"out: expected a .json or .jsonl file, found {settings.out!r}")
    if path.is_dir():
        raise ConfigError(f"out: expected a file, found the folder {settings.out!r}")
    generator = Generator(settings.split, settings.seed, settings.shaped())
    scenario_files.save(generator.scenarios(settings.n), path)
    return path


def audit(settings: GenerateSettings) -> audits.Audit:
    """Return the audit of the set that the settings name."""
    return audits.audit(scenarios(settings.audit or ""), judged=settings.judged)


def _print_audit(found: audits.Audit, console: Console) -> None:
    console.print(found.table(), markup=False)
    for name, texts in found.offenders.items():
        console.print(f"\n{name} ({len(texts)}):", markup=False)
        for text in texts[:_SHOWN]:
            console.print(f"  - {text}", markup=False)
        if len(texts) > _SHOWN:
            console.print(f"  and {len(texts) - _SHOWN} more", markup=False)
    if not found.passed and found.scenarios < audits.JUDGED:
        console.print(
            f"\nlimits are meant for {audits.JUDGED} scenarios: {found.scenarios} may leave them "
            "by chance",
            markup=False,
        )


def main(composed: dict[str, Any]) -> None:
    """Generate or audit. An audit of enough scenarios outside its limits ends with status 1."""
    settings = checked(GenerateSettings, composed)
    console = Console(highlight=False, soft_wrap=True)
    if settings.audit is None:
        console.print(f"written to {generate(settings)}: {settings.n} scenarios", markup=False)
        return
    found = audit(settings)
    _print_audit(found, console)
    if not found.passed and found.scenarios >= audits.JUDGED:
        sys.exit(1)


if __name__ == "__main__":
    job.run("generate", main)
