"""How much mere form tells: can exposing utterances be picked out without understanding a word?

A classifier sees length, place and punctuation of the utterances of played scripts, and is asked
which of them expose. Openers and follow-ups are judged apart, and so is period 0, whose sessions
have one round and no late exposures. What exposes is decided by the text, not by the script's
labels: a text exposes when it contains a session's opener of the scenario file or a clause of the
topic library that states a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from amemgym_env.generation.audit.classifiers import auc, held_out_scores
from amemgym_env.generation.audit.marks import FORM, form
from amemgym_env.scenarios.library import Topic, topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.samples import stated
from amemgym_env.scenarios.script import Script

FEATURES = (*FORM, "session", "session squared", "round")


class Played(NamedTuple):
    """One utterance of a script, where it stands, and whether its text exposes a value."""

    scenario: str
    text: str
    period: int
    session: float
    """Place among the period's sessions, 0..1."""
    round: int
    exposes: bool

    @property
    def group(self) -> str:
        """`initial openers`, `openers` or `follow-ups`: what is judged together."""
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


def played(scenario: Scenario, script: Script) -> Iterator[Played]:
    """Yield every utterance of a script; one that repeats an exposing opener in it exposes."""
    openers = exposing_openers(scenario)
    topics = scenario_topics(scenario)
    for number, conversations in enumerate(script.periods):
        last = max(1, len(conversations) - 1)
        for place, conversation in enumerate(conversations):
            for turn, utterance in enumerate(conversation.utterances):
                text = utterance.text
                exposes = any(opener in text for opener in openers) or any(
                    stated(found, text).keys() & scenario.state_schema.keys() for found in topics
                )
                yield Played(scenario.id, text, number, place / last, turn, exposes)


def form_leaks(utterances: Iterable[Played]) -> dict[str, float]:
    """Return for each group the AUC of the held-out classifier; NaN where all are of one kind."""
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
