"""Info dict of a step of `AMemGym-v0`, and the privileged hidden state."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from amemgym_env.agent import Phase
from amemgym_env.envs.rewards import Floats, accuracy
from amemgym_env.episode import Action, Episode
from amemgym_env.memory.bank import Applied, Status

Info = dict[str, Any]


def step_info(
    episode: Episode,
    exams: tuple[float | None, ...],
    applied: tuple[Applied, ...],
    scores: Floats | None,
    missing: int,
    surplus: int,
) -> Info:
    """Return the info of a step that led to `episode`, without hidden information.

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
    """Return the numbers of missing and of surplus answers or values of an action."""
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
    """Return hidden information: state, current exposures and right choices. Not for agents."""
    period = episode.place.period
    utterance = episode.utterance
    return {
        "state": dict(episode.script.scenario.periods[period].state),
        "exposures": () if utterance is None else utterance.exposures,
        "kind": "" if utterance is None else utterance.kind.value,
        "right": episode.script.right_shown[period],
        "scores": () if scores is None else tuple(scores.tolist()),
    }
