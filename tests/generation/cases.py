"""A model whose calls are counted, people and settings, for tests of the generation."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from amemgym_env.errors import BudgetExceeded
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.pipeline.mock_model import MockModel
from amemgym_env.generation.pipeline.personas import people
from amemgym_env.generation.pipeline.runner import PipelineRunner
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios import validation as rules
from amemgym_env.scenarios.model import Scenario

SMALL = Settings(periods=2, questions=3, changes_per_period=2, max_changes_per_variable=2)
PEOPLE = people(None, "train", 3, 0)


class Model(MockModel):
    """A rehearsal that is recorded like a real model, and may fail or misanswer."""

    simulated = False
    concurrency = 1

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.asked: Counter[str] = Counter()
        self.wrong: Mapping[str, str | Exception] = {}
        """By a fragment of the first message: what is said, or raised, in place of the answer."""
        self.last: int | None = None
        self._guard = threading.Lock()

    def complete(self, call: Call) -> Completion:
        with self._guard:
            if self.last is not None and self.asked.total() >= self.last:
                raise BudgetExceeded("enough")
            self.asked[json.dumps(call.messages)] += 1
        for fragment, instead in self.wrong.items():
            if fragment in call.messages[0]["content"]:
                if isinstance(instead, Exception):
                    raise instead
                return Completion(instead, Usage(1, 10, 10))
        return super().complete(call)


def campaign(model: Model, shape: Settings = SMALL, **given: Any) -> PipelineRunner:
    return PipelineRunner({"assistant": model}, shape, **given)


def tokens(bill: Mapping[str, Usage]) -> dict[str, tuple[int, int]]:
    return {role: (used.calls, used.tokens) for role, used in bill.items()}


def valid(scenario: Scenario, shape: Settings) -> None:
    assert rules.problems(scenario) == rules.lints(scenario) == ()
    assert len(scenario.qas) == shape.questions
    assert len(scenario.state_schema) == shape.variables
    assert all(len(q.answer_choices) >= shape.min_choices for q in scenario.qas)
    assert all(
        shape.changes_per_period <= len(period.updates) <= shape.most_changes
        for period in scenario.periods[1:]
    )
    for name in scenario.state_schema:
        changes = sum(name in period.updates for period in scenario.periods[1:])
        assert changes <= shape.max_changes_per_variable
        assert scenario.periods[0].update_cnts[name] == changes
