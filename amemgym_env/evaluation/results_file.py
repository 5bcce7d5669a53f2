"""Contents of `results.json`, the summary of a run: one class with its reader and writer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amemgym_env.envs.rewards import Floats
from amemgym_env.errors import RunError
from amemgym_env.evaluation.metrics import MemoryScore, memory_score, uniform_guess
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.model import Scenario

Score = Annotated[float, Field(allow_inf_nan=False)] | None
"""A score; null where there is none."""
Cells = dict[str, list[list[Score]]]
"""Scores of each scenario by id, `[period][question]`; null is unscored."""
Bounds = tuple[Score, Score]


class VarianceShare(BaseModel):
    """Shares of the variance of a scenario's score."""

    model_config = ConfigDict(frozen=True)

    scenarios: Score
    seeds: Score


class Repeats(BaseModel):
    """Summary of the same evaluation under several seeds."""

    model_config = ConfigDict(frozen=True)

    seeds: list[int]
    overall: list[Score]
    memory_score: list[Score]
    overall_mean: Score
    overall_interval: Bounds
    overall_sd_of_seeds: Score
    memory_score_mean: Score
    variance_share: VarianceShare


class ResultsFile(BaseModel):
    """Contents of `results.json`. Fields with defaults are missing in files of older versions."""

    model_config = ConfigDict(frozen=True)

    label: str
    memory: Literal["bank", "external"]
    """Where the agent keeps its memory."""
    simulated: bool
    """Whether any model was simulated."""
    mode: Literal["on_policy", "off_policy"]
    seed: int = 0
    settings: dict[str, Any]
    versions: dict[str, Any] = {}
    scenarios: list[str]
    """Ids, in order of play."""
    overall: Score = None
    """Share of right answers over the scored cells."""
    random: Score = None
    """Expected score of a uniform guess."""
    upper_bound: Score = None
    """Score of the same model given the true values."""
    memory_score: Score = None
    """(overall - random) / (upper bound - random) by user and period, averaged."""
    memory_score_ratio_of_means: Score = None
    without_memory_score: int = 0
    """User-periods without a memory score."""
    floors: dict[str, Score] = {}
    """Scores without a memory, and of a perfect memory of the previous period."""
    answer_bias: dict[str, dict[str, Score]] = {}
    failures: dict[str, Score] = {}
    """Rate of each kind of failure; they sum to 1 - overall."""
    lucky: Score = None
    """Rate of right cells with a variable unknown."""
    in_window_share: Score = None
    retrieved_share: Score = None
    index_recall: Score = None
    causes: dict[str, int] = {}
    """Wrong cells without a choice, by cause."""
    probe_causes: dict[str, int] = {}
    unreadable_calls: dict[str, int] = {}
    unrecognised: int = 0
    follow_up_failures: int = 0
    unscored: int = 0
    unscored_causes: dict[str, int] = {}
    failed_calls: int = 0
    failed_call_causes: dict[str, int] = {}
    dropped_parameters: list[str] = []
    cut_prompts: int = 0
    """Calls of which the provider counted far fewer prompt tokens than were sent."""
    confidence_interval: dict[str, Bounds] = {}
    """95 % BCa bootstrap intervals over scenarios."""
    accuracy: Cells
    upper_bound_accuracy: Cells
    failure: dict[str, list[list[str | None]]] = {}
    """Kind of failure of each wrong cell, `[period][question]`."""
    memory_score_by_period: list[Score] = []
    usage: dict[str, Usage] = {}
    """By role, and `retries`."""
    hashes: dict[str, str | None] = {}
    """Hash of each episode; null where it was not played to its end."""
    errors: dict[str, str] = {}
    stopped: str | None = None
    """Why the run stopped before its end."""
    repeats: Repeats | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> ResultsFile:
        """Return results from values; NaN becomes null."""
        return cls.model_validate(without_nan(content))

    @classmethod
    def read(cls, path: Path) -> ResultsFile:
        """Return the results in a run's folder, or in a file.

        Raises:
            RunError: there are none, or they are damaged or of another shape.
        """
        file = path / "results.json" if path.is_dir() else path
        found = _checked(cls, _content(file), file)
        names = set(found.scenarios)
        for key in ("accuracy", "upper_bound_accuracy", "failure"):
            cells: dict[str, list[list[Any]]] = getattr(found, key)
            if cells and set(cells) != names:
                raise RunError(
                    f"{file}: expected {key} of the {len(names)} scenarios, found {len(cells)}; "
                    "the file is damaged or mixed from several runs"
                )
            for name, rows in cells.items():
                if [len(row) for row in rows] != [len(row) for row in found.accuracy[name]]:
                    raise RunError(
                        f"{file}: {key} and accuracy of scenario {name!r} differ in shape"
                    )
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        found: dict[str, Any] = without_nan(self.model_dump())
        if self.repeats is None:
            del found["repeats"]
        return found

    @property
    def complete(self) -> bool:
        """Whether every scenario was played to its end and every cell is scored."""
        return not (self.stopped or self.errors or self.unscored or self.failed_calls)

    def cells(self, scenario: str) -> Floats:
        """Return a scenario's scores, shape (periods, questions), NaN unscored."""
        return np.array(self.accuracy[scenario], np.float64)

    def upper_bound_cells(self, scenario: str) -> Floats:
        """Return the upper bound of a scenario's cells, NaN where there is none."""
        return np.array(self.upper_bound_accuracy[scenario], np.float64)

    def memory_scores(self, scenarios: Mapping[str, Scenario]) -> MemoryScore:
        """Return the memory score by user and period; `scenarios` are those played, by id."""
        return memory_score(
            [self.cells(name) for name in self.scenarios],
            [uniform_guess(scenarios[name]) for name in self.scenarios],
            [self.upper_bound_cells(name) for name in self.scenarios],
        )


def without_nan(value: Any) -> Any:
    """Return a value as JSON has it: numbers that are not finite as null, tuples as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(part) for part in value]
    return value


def _content(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(
            f"{file}: expected the results of a finished run, found none ({error.strerror})"
        ) from error
    except ValueError as error:
        raise RunError(f"{file}: expected JSON, found a damaged file ({error})") from error


def _checked(model: type[ResultsFile], content: Any, file: Path) -> ResultsFile:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, line['loc'])) or 'file'}: {line['msg']}"
            for line in error.errors()[:3]
        ]
        raise RunError(
            f"{file}: expected what a run of this project writes, found another shape: "
            + "; ".join(lines)
        ) from error
