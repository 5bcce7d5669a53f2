"""Plain counts of a scenario set: its shape, its variety, and words where none should be.

Everything is added up scenario by scenario, so a set is read once, as a stream.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from amemgym_env.scenarios.library import topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.samples import stated
from amemgym_env.scenarios.validation import lints, problems


@dataclass
class Counts:
    """What has been counted so far."""

    scenarios: int = 0
    of_library: int = 0
    """Scenarios whose texts are the topic library's."""
    problems: int = 0
    lints: int = 0
    periods: int = 0
    questions: int = 0
    choices: int = 0
    sessions: int = 0
    exposures: int = 0
    changes: int = 0
    gradual: int = 0
    openers: Counter[str] = field(default_factory=Counter)
    distinct: list[float] = field(default_factory=list)
    """Share of distinct openers of each scenario."""
    topics: list[frozenset[str]] = field(default_factory=list)
    variables: set[int] = field(default_factory=set)
    evolution: set[int] = field(default_factory=set)
    """Numbers of variables, and of periods after period 0, that scenarios have."""

    def add(self, scenario: Scenario) -> None:
        """Count one scenario."""
        self.scenarios += 1
        self.of_library += scenario.library is not None
        self.problems += len(problems(scenario))
        self.lints += len(lints(scenario))
        self.periods += len(scenario.periods)
        self.questions += len(scenario.qas)
        self.choices += sum(len(question.answer_choices) for question in scenario.qas)
        self.variables.add(len(scenario.variables))
        self.evolution.add(len(scenario.periods) - 1)
        self.topics.append(frozenset(q.topic or q.query for q in scenario.qas))
        for period in scenario.periods[1:]:
            self.changes += len(period.updates)
            for name, change in period.updates.items():
                values = scenario.state_schema[name]
                old = values.index(change.old) if change.old in values else -9
                self.gradual += abs(values.index(change.new) - old) == 1
        sessions = [session for period in scenario.periods for session in period.sessions]
        self.sessions += len(sessions)
        self.exposures += sum(len(session.exposed_states) for session in sessions)
        texts = [session.query for session in sessions]
        self.openers.update(texts)
        self.distinct.append(len(set(texts)) / max(1, len(texts)))

    @property
    def topic_overlap(self) -> float:
        """Mean share of a scenario's topics that the next scenario has too; NaN for one alone."""
        shares = [len(a & b) / max(1, len(a)) for a, b in pairwise(self.topics)]
        return float(np.mean(shares)) if shares else float("nan")


def contradictions(scenario: Scenario, period: int, text: str) -> bool:
    """Return whether a text states a library value that does not hold at the period."""
    if scenario.library is None:
        return False
    state = scenario.periods[period].state
    return any(
        state.get(variable, value) != value
        for question in scenario.qas
        if question.topic is not None
        for variable, value in stated(topic(question.topic), text).items()
    )
