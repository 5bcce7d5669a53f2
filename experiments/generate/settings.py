"""Settings of `python -m experiments.generate`; conf/generate.yaml says what they mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from amemgym_env.errors import ConfigError, near
from amemgym_env.generation.offline.settings import SHAPES
from amemgym_env.generation.offline.settings import Settings as Shape
from amemgym_env.generation.pipeline.scenario_pipeline import PipelineOptions
from amemgym_env.scenarios.library import Split
from experiments.app.settings import Count, LitellmBackend, SameBackend, Settings

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
    """What is made, of what shape and by whom; or what is audited."""

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
    source: Literal["library", "model"]
    personas: str | None
    language: str
    repairs: int
    refinements: int
    spare_questions: int
    templates: str | None
    dry_run: bool
    workers: Count
    backend: LitellmBackend
    judge_backend: Annotated[LitellmBackend | SameBackend, Field(discriminator="name")]
    audit: str | None
    reference: str | None
    judged: Count
    judge_sample: Count

    def shaped(self) -> Shape:
        """Return the generator's settings: the named shape with what is set besides.

        Raises:
            ConfigError: no such shape, or settings that no scenario can meet.
        """
        if self.shape not in SHAPES:
            raise ConfigError(
                f"shape: expected one of {', '.join(SHAPES)}, found {self.shape!r}"
                f"{near(self.shape, SHAPES)}"
            )
        given = {name: getattr(self, name) for name in SHAPE_KEYS}
        return replace(SHAPES[self.shape], **{k: v for k, v in given.items() if v is not None})

    def options(self) -> PipelineOptions:
        """Return how a model makes scenarios.

        Raises:
            ConfigError: a number is out of range.
        """
        return PipelineOptions(self.language, self.repairs, self.refinements, self.spare_questions)

    def file(self) -> Path:
        """Return the file to write.

        Raises:
            ConfigError: none is named, or it is no scenario file.
        """
        if self.out is None:
            raise ConfigError("out: expected the file to write, such as out=my.json, found none")
        path = Path(self.out)
        if path.suffix not in (".json", ".jsonl"):
            raise ConfigError(f"out: expected a .json or .jsonl file, found {self.out!r}")
        if path.is_dir():
            raise ConfigError(f"out: expected a file, found the folder {self.out!r}")
        return path

    def identity(self) -> dict[str, Any]:
        """Return what the scenarios depend on, for their report."""
        backend = self.judge_backend if isinstance(self.judge_backend, LitellmBackend) else None
        return {
            "source": self.source,
            "personas": self.personas,
            "split": self.split,
            "seed": self.seed,
            "n": self.n,
            "shape": self.shape,
            **{name: getattr(self, name) for name in SHAPE_KEYS},
            "language": self.language,
            "repairs": self.repairs,
            "refinements": self.refinements,
            "spare_questions": self.spare_questions,
            "templates": self.templates,
            "model": self.backend.model,
            "judge_model": self.backend.model if backend is None else backend.model,
        }
