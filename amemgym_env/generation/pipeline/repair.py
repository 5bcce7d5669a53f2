"""Model calls with repair: an unusable reply is sent back with its problem, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar, cast

from amemgym_env.errors import Cause, GenerationError, ParseError
from amemgym_env.models.client import Models, Outcome
from amemgym_env.prompts.base import Prompt

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_CAUSES: dict[Cause, str] = {
    "empty": "it is empty",
    "filtered": "it was refused",
    "unreadable": "it broke off before its end",
    "context_exceeded": "the call is longer than the model's context",
}


class Repairable(Protocol[T_co]):
    """A prompt that can be asked again with the problem of the last reply."""

    def parse(self, text: str) -> T_co:
        """Return what a reply says; raises ParseError."""
        ...

    def repaired(self, reply: str, problem: str) -> Self:
        """Return the same call after one more unusable reply."""
        ...


class RepairingClient:
    """Client that makes up to `repairs` further attempts at each step."""

    def __init__(self, models: Models, repairs: int) -> None:
        self._models = models
        self._repairs = repairs

    def one(self, step: str, prompt: Repairable[T]) -> T:
        """Return a step's result.

        Raises:
            GenerationError: no reply could be used, or a call failed for good.
            BudgetExceeded: the budget is spent, or the generation was stopped.
        """
        return self.all(step, [prompt])[0]

    def all(self, step: str, prompts: Sequence[Repairable[T]]) -> list[T]:
        """Return the results of independent calls, in order, asked at once.

        Raises:
            GenerationError, BudgetExceeded: as `one`.
        """
        results = []
        for found in self.each(step, prompts):
            if isinstance(found, GenerationError):
                raise found
            results.append(found)
        return results

    def each(self, step: str, prompts: Sequence[Repairable[T]]) -> list[T | GenerationError]:
        """Return the result of each call, or the error when no reply could be used.

        Raises:
            GenerationError: a call failed for good, so nothing is known of its reply; the same
                command asks it again.
            BudgetExceeded: as `one`.
        """
        results: dict[int, T | GenerationError] = {}
        asked = dict(enumerate(prompts))
        for left in range(self._repairs, -1, -1):
            outcomes = self._models.ask_all([_as_prompt(prompt) for prompt in asked.values()])
            again: dict[int, Repairable[T]] = {}
            for (place, prompt), outcome in zip(asked.items(), outcomes, strict=True):
                if outcome.error is not None:
                    raise GenerationError(step, f"a call failed: {outcome.error}")
                if outcome.cause is None:
                    results[place] = cast(T, outcome.value)
                    continue
                problem = _problem(prompt, outcome)
                if left and outcome.cause != "context_exceeded":
                    again[place] = prompt.repaired(outcome.text, problem)
                    continue
                said = f"no reply of {self._repairs + 1} could be used; the last: {problem}"
                results[place] = GenerationError(step, said)
            asked = again
            if not asked:
                break
        return [results[place] for place in range(len(prompts))]


def _as_prompt(prompt: Any) -> Prompt[Any]:
    assert isinstance(prompt, Prompt)
    return prompt


def _problem(prompt: Repairable[Any], outcome: Outcome[Any]) -> str:
    """Return the problem of a reply, in words for the model."""
    if outcome.cause in ("filtered", "context_exceeded") or not outcome.text.strip():
        return _CAUSES[outcome.cause or "empty"]
    try:
        prompt.parse(outcome.text)
    except ParseError as error:
        return str(error)
    return _CAUSES["unreadable"]
