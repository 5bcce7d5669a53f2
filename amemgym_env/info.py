"""What a step of `AMemGym-v0` reports beside its observation: reward, info, privileged truth."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from amemgym_env.episode import Action, Episode, ExamResult
from amemgym_env.memory import Applied, Status
from amemgym_env.scoring import Floats, exam_scores, mean
from amemgym_env.turn import Phase

Info = dict[str, Any]


def scores_of(episode: Episode, exam: ExamResult) -> Floats:
    """Return the score of each answer of an exam, shape (questions,); NaN where unscored."""
    return exam_scores(exam.answers, episode.script.right_shown[exam.period])


def reward(episode: Episode, scores: Floats | None, mode: Literal["period", "terminal"]) -> float:
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


def step_info(
    episode: Episode,
    exams: tuple[float | None, ...],
    applied: tuple[Applied, ...],
    scores: Floats | None,
    missing: int,
    surplus: int,
) -> Info:
    """Return the info of a step that led to `episode`, a new dict without any truth.

    `exams` are the accuracies so far, `scores` those of an exam just answered.
    """
    done = sum(item.status in (Status.APPLIED, Status.REFRESHED) for item in applied)
    return {
        "scenario": episode.script.scenario.id,
        "seed": episode.script.seed,
        "operations": applied,
        "applied": done,
        "refused": sum(item.status.refused for item in applied),
        "accuracy": None if scores is None else accuracy(scores),
        "scored": 0 if scores is None else int((~np.isnan(scores)).sum()),
        "exams": exams,
        "missing": missing,
        "surplus": surplus,
    }


def missing_and_surplus(episode: Episode, read: Action) -> tuple[int, int]:
    """Return how many answers or values an action lacks, and how many it has too many."""
    phase = episode.place.phase
    if phase is Phase.DIALOGUE:
        return 0, 0
    questions = episode.script.scenario.qas
    if phase is Phase.EXAM:
        pairs = [(len(questions), len(read.answers))]
    else:
        wanted = [len(question.variables) for question in questions]
        given = [len(row) for row in read.values]
        pairs = list(zip_longest(wanted, given, fillvalue=0))
    missing = sum(max(0, wanted - given) for wanted, given in pairs)
    return missing, sum(max(0, given - wanted) for wanted, given in pairs)


def truth(episode: Episode, scores: Floats | None) -> dict[str, Any]:
    """Return what no agent may see: the state, what is given away now, and the right choices."""
    period = episode.place.period
    utterance = episode.utterance
    return {
        "state": dict(episode.script.scenario.periods[period].state),
        "exposures": () if utterance is None else utterance.exposures,
        "kind": "" if utterance is None else utterance.kind.value,
        "right": episode.script.right_shown[period],
        "scores": () if scores is None else tuple(scores.tolist()),
    }
