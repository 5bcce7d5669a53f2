"""Exam scores, and the rewards of a step. A cell is one question at one period; NaN is unscored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import NO_ANSWER, UNSCORED
from amemgym_env.episode import Episode, ExamResult

Floats = npt.NDArray[np.float64]
RewardMode = Literal["period", "terminal"]


def exam_scores(choices: Sequence[int], right: Sequence[int]) -> Floats:
    """Return 1.0 for a right choice, 0.0 for a wrong one or NO_ANSWER, NaN for UNSCORED."""
    scores = [
        float("nan") if choice == UNSCORED else float(choice == truth and choice != NO_ANSWER)
        for choice, truth in zip(choices, right, strict=True)
    ]
    return np.array(scores, dtype=np.float64)


def mean(scores: Floats) -> float:
    """Return the mean over scored cells, NaN when there are none."""
    scored = scores[~np.isnan(scores)]
    return float(scored.mean()) if scored.size else float("nan")


def scores_of(episode: Episode, exam: ExamResult) -> Floats:
    """Return the score of each answer of an exam, shape (questions,); NaN where unscored."""
    return exam_scores(exam.answers, episode.script.right_shown[exam.period])


def reward(episode: Episode, scores: Floats | None, mode: RewardMode) -> float:
    """Return what a step pays, in [0, 1]; `scores` are those of an exam just answered, or None.

    "period": the mean over the exam's scored cells. "terminal": at the last exam, the mean over
    the scored cells of all exams. 0.0 without a scored cell.
    """
    if scores is None:
        return 0.0
    if mode == "terminal":
        if len(episode.exams) < len(episode.script.periods):
            return 0.0
        scores = np.concatenate([scores_of(episode, exam) for exam in episode.exams])
    return accuracy(scores) or 0.0


def accuracy(scores: Floats) -> float | None:
    """Return the mean over scored cells, None when there are none."""
    value = mean(scores)
    return None if np.isnan(value) else value


def accuracies(episode: Episode) -> tuple[float | None, ...]:
    """Return the accuracy of each exam so far."""
    return tuple(accuracy(scores_of(episode, exam)) for exam in episode.exams)


class ExpectedRewards:
    """Expected accuracies of an episode's exams, and the rewards they pay.

    "period": a step pays the accuracies of the exams it leads to. "terminal": the last step pays
    the mean over all exams.
    """

    def __init__(self, mode: RewardMode, accuracies: Sequence[float] = ()) -> None:
        self.mode = mode
        self.accuracies = list(accuracies)
        """Expected accuracy of each exam so far, in [0, 1]."""

    def pay(self, held: Sequence[float], terminated: bool, info: dict[str, Any]) -> float:
        """Return the reward of a step that led to the exams `held`, and complete its info.

        Info: `accuracy`, the mean over `held`; in the last step `accuracies` of all exams.
        """
        self.accuracies += held
        if terminated:
            info["accuracies"] = tuple(self.accuracies)
        if not held:
            return 0.0
        info["accuracy"] = sum(held) / len(held)
        if self.mode == "period":
            return sum(held)
        return sum(self.accuracies) / len(self.accuracies) if terminated else 0.0
