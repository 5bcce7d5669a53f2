"""Validation accuracy over training steps, and the best checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amemgym_env.evaluation.statistics import MeanEstimate


@dataclass
class Curve:
    """Validation scores of a training, and the best of them."""

    steps: list[int] = field(default_factory=list)
    scores: list[MeanEstimate] = field(default_factory=list)
    before: int = 0
    """Rounds of the warm start, included in `steps`."""
    seconds: float = 0.0
    """Processor time of training, without validation."""

    @property
    def best(self) -> float:
        """Best mean so far."""
        return max((score.mean for score in self.scores), default=-1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the curve as JSON."""
        scores = [list(score) for score in self.scores]
        return {
            "steps": self.steps,
            "scores": scores,
            "before": self.before,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Curve:
        """Read a curve."""
        scores = [MeanEstimate(*score) for score in document["scores"]]
        before, seconds = int(document["before"]), float(document["seconds"])
        return cls(list(document["steps"]), scores, before, seconds)
