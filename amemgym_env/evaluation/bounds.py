"""Upper bound (the true values in the prompt) and never-write floor (an empty memory).

The upper bound is asked once for every choice of every question, and looked up by the true
combination of a period. The floor is asked once for every question. Paper: Section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from amemgym_env.agent import NO_ANSWER, UNSCORED, Question
from amemgym_env.models.client import Models, Outcome
from amemgym_env.models.events import ReferenceEvent
from amemgym_env.prompts.assistant import Context, ExamAnswer, InformedAnswer
from amemgym_env.prompts.base import Role
from amemgym_env.scenarios.script import Script


def reference(script: Script, models: Models) -> ReferenceEvent:
    """Ask for both bounds and return the answers as the journal's event."""
    asked = [
        Question(question.query, script.choices_shown(number))
        for number, question in enumerate(script.scenario.qas)
    ]
    informed = [
        InformedAnswer(Context(_values(question.required_info, choice.state)), shown)
        for question, shown in zip(script.scenario.qas, asked, strict=True)
        for choice in question.answer_choices
    ]
    outcomes = iter(models.ask_all(informed))
    rows = tuple(
        tuple(_score(next(outcomes), order.index(stored)) for stored in range(len(order)))
        for order in script.option_orders
    )
    blind = models.ask_all([UninformedAnswer(Context(()), shown) for shown in asked])
    return ReferenceEvent(rows, tuple(_choice(outcome) for outcome in blind))


@dataclass(frozen=True)
class UninformedAnswer(ExamAnswer):
    """An exam question with an empty memory: what the model guesses."""

    kind: ClassVar[str] = "uninformed_answer"
    role: ClassVar[Role] = "upper_bound"


def _values(variables: list[str], values: list[str]) -> tuple[str, ...]:
    return tuple(f"{name}: {value}" for name, value in zip(variables, values, strict=True))


def _score(outcome: Outcome[int], right: int) -> float | None:
    return None if outcome.error is not None else float(outcome.value == right)


def _choice(outcome: Outcome[int]) -> int:
    if outcome.error is not None:
        return UNSCORED
    return NO_ANSWER if outcome.value is None else outcome.value
