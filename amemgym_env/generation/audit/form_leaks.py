"""Leaks of form: AUC of a classifier that finds exposing utterances by length and punctuation.

Openers, follow-ups and the openers of period 0 are tested separately. An utterance exposes when
its text contains an opener of the scenario file or an exposure of the topic library; the script's
labels are not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from amemgym_env.generation.audit.classifiers import auc, held_out_scores
from amemgym_env.scenarios.entropy_balancing import FORM, form
from amemgym_env.scenarios.library import Topic, topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script

FEATURES = (*FORM, "session", "session squared", "round")


class Played(NamedTuple):
    """One utterance of a script, its position, and whether its text exposes a value."""

    scenario: str
    text: str
    period: int
    session: float
    """Place among the period's sessions, 0..1."""
    round: int
    exposes: bool

    @property
    def group(self) -> str:
        """Group that is tested together: `initial openers`, `openers` or `follow-ups`."""
        if self.round > 0:
            return "follow-ups"
        return "openers" if self.period else "initial openers"


def scenario_topics(scenario: Scenario) -> tuple[Topic, ...]:
    """Return the library topics of a scenario's questions; empty where it has no library."""
    if scenario.library is None:
        return ()
    named = dict.fromkeys(question.topic for question in scenario.qas)
    return tuple(topic(name) for name in named if name is not None)


def exposing_openers(scenario: Scenario) -> frozenset[str]:
    """Return the openers of the file's sessions that expose a value."""
    return frozenset(
        session.query
        for period in scenario.periods
        for session in period.sessions
        if session.exposed_states
    )


def library_exposures(scenario: Scenario) -> frozenset[str]:
    """Return the library's exposures of all values of the scenario's topics."""
    return frozenset(
        text
        for found in scenario_topics(scenario)
        for values in found.variables.values()
        for value in values.values()
        for text in value.exposures
    )


def played(scenario: Scenario, script: Script) -> Iterator[Played]:
    """Yield every utterance of a script; one that repeats an exposing opener in it exposes."""
    openers = exposing_openers(scenario)
    known = openers | library_exposures(scenario)
    for number, conversations in enumerate(script.periods):
        last = max(1, len(conversations) - 1)
        for place, conversation in enumerate(conversations):
            for turn, utterance in enumerate(conversation.utterances):
                text = utterance.text
                exposes = text in known or any(opener in text for opener in openers)
                yield Played(scenario.id, text, number, place / last, turn, exposes)


def form_leaks(utterances: Iterable[Played]) -> dict[str, float]:
    """Return for each group the AUC of the held-out classifier; NaN with one label only."""
    groups: dict[str, list[Played]] = {"initial openers": [], "openers": [], "follow-ups": []}
    for utterance in utterances:
        groups[utterance.group].append(utterance)
    return {name: _leak(rows) for name, rows in groups.items()}


def _leak(rows: list[Played]) -> float:
    exposes = np.array([row.exposes for row in rows], bool)
    if exposes.all() or not exposes.any():
        return float("nan")
    table = np.array([_features(row) for row in rows])
    scores = held_out_scores(table, exposes.astype(float), [row.scenario for row in rows])
    return auc(scores, exposes)


def _features(row: Played) -> list[float]:
    return [*form(row.text), row.session, row.session**2, row.round]
