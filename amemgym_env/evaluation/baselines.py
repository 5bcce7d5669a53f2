"""Trivial baselines (floors): scores without a memory, and the previous period's truth (oracle).

No baseline here needs a model. Each function returns a (periods, questions) array of scores.
`choice_only` is a classifier that sees only the choices, trained on the other scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from amemgym_env.envs.rewards import Floats
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.scenarios.script import Script

FLOORS: tuple[str, ...] = (
    "random",
    "first_shown",
    "first_stored",
    "longest",
    "choice_only",
    "initial_state",
    "one_period_late",
    "never_write",
)


def first_shown(script: Script) -> Floats:
    """Return the scores of always choosing the first choice as shown."""
    return np.array([[float(right == 0) for right in row] for row in script.right_shown])


def first_stored(script: Script) -> Floats:
    """Return the scores of always choosing the first choice as stored in the file."""
    rows = script.scenario.right_choices
    return np.array([[float(right == 0) for right in row] for row in rows])


def longest(script: Script) -> Floats:
    """Return the scores of always choosing the longest choice (the first of them as stored)."""
    picked = [
        max(
            range(len(question.answer_choices)),
            key=lambda i: (len(question.answer_choices[i].answer), -i),
        )
        for question in script.scenario.qas
    ]
    return _always(script, picked)


def initial_state(script: Script) -> Floats:
    """Return the scores of one who knows the state of period 0 and nothing later."""
    return _always(script, script.scenario.right_choices[0])


def one_period_late(script: Script) -> Floats:
    """Return the scores of one who always answers for the period before (period 0: its own)."""
    rights = script.scenario.right_choices
    late = [rights[0], *rights[:-1]]
    return np.array(
        [
            [float(got == right) for got, right in zip(*rows, strict=True)]
            for rows in zip(late, rights, strict=True)
        ]
    )


def choice_only(scripts: Sequence[Script]) -> list[Floats] | None:
    """Return for each script the scores of a classifier that sees only choices; None with one.

    A logistic regression on position, length, similarity to the other choices, and frequency of
    shared words, trained on all other scripts.
    """
    if len(scripts) < 2:
        return None
    features = [
        [_choice_features(script, q) for q in range(len(script.scenario.qas))] for script in scripts
    ]
    rates = [
        [
            np.bincount(
                [row[q] for row in script.scenario.right_choices],
                minlength=len(question.answer_choices),
            )
            / len(script.scenario.periods)
            for q, question in enumerate(script.scenario.qas)
        ]
        for script in scripts
    ]
    grams = [
        sum((_gram(x, y) for x, y in zip(*parts, strict=True)), start=_zero(features))
        for parts in zip(features, rates, strict=True)
    ]
    total = sum(grams[1:], start=grams[0])
    scores = []
    for script, own, rows in zip(scripts, grams, features, strict=True):
        gram = total - own
        weights = np.linalg.solve(gram[:, :-1] + 1e-3 * np.eye(gram.shape[0]), gram[:, -1])
        scores.append(_always(script, [int(np.argmax(row @ weights)) for row in rows]))
    return scores


def _gram(features: Floats, rates: Floats) -> Floats:
    """Return the normal equations of a question's choices, with the target as last column."""
    return np.asarray(features.T @ np.column_stack([features, rates]))


def _zero(features: list[list[Floats]]) -> Floats:
    width = features[0][0].shape[1]
    return np.zeros((width, width + 1))


def _choice_features(script: Script, question: int) -> Floats:
    """Return what can be seen of a question's stored choices, shape (choices, features)."""
    texts = [choice.answer for choice in script.scenario.qas[question].answer_choices]
    count = len(texts)
    vectors = DEFAULT(texts)
    similarity = vectors @ vectors.T / max(1.0, float(np.abs(vectors).max()) ** 2)
    lengths = np.array([len(text) for text in texts], float)
    shown = np.argsort(script.option_orders[question])
    columns = [
        np.ones(count) / count,
        lengths / lengths.mean() - 1.0,
        (similarity.sum(1) - similarity.diagonal()) / max(1, count - 1),
        np.arange(count) == 0,
        np.arange(count) / count,
        shown == 0,
        shown / count,
    ]
    stacked = np.column_stack(columns).astype(np.float64)
    return np.asarray(stacked - np.concatenate([[0.0], stacked[:, 1:].mean(0)]))


def _always(script: Script, picked: Sequence[int]) -> Floats:
    rows = script.scenario.right_choices
    return np.array(
        [[float(got == right) for got, right in zip(picked, row, strict=True)] for row in rows]
    )
