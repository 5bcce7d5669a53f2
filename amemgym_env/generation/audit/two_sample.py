"""Two-sample tests: can a classifier without topic tell which of two sets an opener is from?

Features are form, function words, punctuation and similarities; no topic is among them. As many
openers of each set as `v1.base` has; ten folds keep a user together. A companion classifies 1- to
3-grams of general words with all other words masked. Needs scikit-learn (`pip install
amemgym-env[audit]`), which this module alone imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from amemgym_env.errors import ConfigError
from amemgym_env.generation.audit.classifiers import Floats, auc
from amemgym_env.generation.audit.marks import form
from amemgym_env.generation.audit.realism import SAMPLE, openers, similarities
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.scenarios.form import GENERAL_WORDS, words
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import permutation

FOLDS = 10


class TwoSample(NamedTuple):
    """Areas under the ROC curve of three classifiers; .5 where the sets cannot be told apart."""

    logistic: float
    boosting: float
    grams: float

    @property
    def features(self) -> float:
        """The larger area of the two classifiers of the features."""
        return max(self.logistic, self.boosting)


def two_sample(ours: Sequence[Scenario], theirs: Sequence[Scenario]) -> TwoSample:
    """Return how well the openers of two sets are told apart.

    Raises:
        ConfigError: scikit-learn is not installed, or a set has fewer than ten users.
    """
    rows: list[list[float]] = []
    texts: list[str] = []
    groups: list[int] = []
    theirs_from = 0
    for side in (ours, theirs):
        if len(side) < FOLDS:
            raise ConfigError(
                f"two-sample test: expected at least {FOLDS} users, found {len(side)}"
            )
        theirs_from = len(texts)
        start = len(texts)
        for number, scenario in enumerate(side):
            said = list(openers([scenario]))
            for opener, likeness in zip(said, similarities(scenario, DEFAULT), strict=True):
                rows.append([*_features(opener.text), *np.nan_to_num(likeness, nan=-1.0)])
                texts.append(opener.text)
                groups.append(number % FOLDS)
            if len(texts) - start >= SAMPLE:
                break
    labels = np.arange(len(texts)) >= theirs_from
    parts = np.array(groups)
    table = np.array(rows)
    linear, trees, grams = _classifiers()
    masked = np.array([_masked(text) for text in texts], dtype=object)
    return TwoSample(
        _area(linear, table, labels, parts),
        _area(trees, table, labels, parts),
        _area(grams, masked, labels, parts),
    )


def halves(scenarios: Sequence[Scenario]) -> TwoSample:
    """Return how well the two halves of one set are told apart, users shuffled."""
    order = permutation(len(scenarios), "halves")
    users = [scenarios[index] for index in order]
    return two_sample(users[: len(users) // 2], users[len(users) // 2 :])


def _features(text: str) -> list[float]:
    found = words(text)
    counts = dict.fromkeys(GENERAL_WORDS, 0.0)
    for word in found:
        if word in counts:
            counts[word] += 1.0
    first = text.find("?")
    place = first / len(text) if first >= 0 else -1.0
    return [*form(text), place, text.count("—"), text.count("-"), *counts.values()]


def _masked(text: str) -> str:
    return " ".join(word if word in _GENERAL else "_" for word in words(text))


_GENERAL = frozenset(GENERAL_WORDS)


def _classifiers() -> tuple[Any, Any, Any]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise ConfigError(
            "two-sample test: scikit-learn is not installed; pip install amemgym-env[audit]"
        ) from error
    return (
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)),
        HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15, random_state=0),
        make_pipeline(
            CountVectorizer(ngram_range=(1, 3), min_df=3, token_pattern=r"[^ ]+", binary=True),
            LogisticRegression(C=0.1, max_iter=500),
        ),
    )


def _area(model: Any, table: Any, labels: Any, parts: Any) -> float:
    scores: Floats = np.zeros(len(labels))
    for part in range(FOLDS):
        inside = parts == part
        model.fit(table[~inside], labels[~inside])
        scores[inside] = model.predict_proba(table[inside])[:, 1]
    return auc(scores, labels)
