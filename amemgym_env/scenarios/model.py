"""Immutable model of a scenario, in the shape of the benchmark's files.

Field names are those of the benchmark's JSON, so that loading and saving is the identity; fields
that this project does not know are kept. `validation.py` checks it.
Paper: AMemGym, Section 3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, StrictStr

from amemgym_env.seeding import digest

State = Mapping[str, str]
"""A value for each variable of the schema."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class Choice(_Part):
    """One answer of a question: right when the needed variables have the values `state`."""

    state: list[StrictStr]
    """Values, in the order of the question's `required_info`."""
    answer: str
    type: Literal["experience", "random"] | None = None
    """Whether the persona lives through the combination, or it fills the list up."""


class Question(_Part):
    """A question whose right answer depends on the values of some variables."""

    query: str
    required_info: list[StrictStr]
    answer_choices: list[Choice]
    topic: str | None = None
    """Id of the library topic that the question comes from, in generated scenarios."""

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The needed variables without repetition, in order."""
        return tuple(dict.fromkeys(self.required_info))

    def right_choice(self, state: State) -> int:
        """Return the stored index of the choice that answers `state`.

        Raises:
            KeyError: no choice has the combination (a validated scenario always has one).
        """
        wanted = [state[variable] for variable in self.required_info]
        for index, choice in enumerate(self.answer_choices):
            if choice.state == wanted:
                return index
        raise KeyError(f"no choice of {self.query!r} answers {wanted}")


class Session(_Part):
    """One conversation: when it takes place, its opener and what the opener exposes."""

    query: str
    exposed_states: dict[str, StrictStr]
    session_time: str
    event: str | None = None
    messages: list[Any] = []


class Change(_Part):
    """A variable's value before and after a period's change; `old` is null at the beginning."""

    new: StrictStr
    old: StrictStr | None = None


class Period(_Part):
    """A stretch of life: what changed in it, the state at its end, and its sessions."""

    period_end: str
    state: dict[str, StrictStr]
    updates: dict[str, Change]
    sessions: list[Session]
    period_start: str | None = None
    period_summary: str | None = None
    update_cnts: dict[str, int] = {}


class Library(_Part):
    """The topic library that a generated scenario draws its other utterances from."""

    name: str
    version: int


class Scenario(_Part):
    """One persona's profile, schema, states of periods 0..N_p, sessions and questions."""

    id: str
    start_time: str
    user_profile: dict[str, Any]
    state_schema: dict[str, list[StrictStr]]
    periods: list[Period]
    qas: list[Question]
    library: Library | None = None

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Names of the state variables, in the order of the schema."""
        return tuple(self.state_schema)

    @cached_property
    def key(self) -> str:
        """Hex digest of the whole scenario: equal keys are equal scenarios."""
        return digest("scenario", json.dumps(self.to_json(), sort_keys=True)).hex()

    @cached_property
    def right_choices(self) -> tuple[tuple[int, ...], ...]:
        """Stored index of the right choice, `[period][question]`."""
        return tuple(
            tuple(question.right_choice(period.state) for question in self.qas)
            for period in self.periods
        )

    @property
    def profile_text(self) -> str:
        """The persona's profile as text."""
        known = self.user_profile.get("formatted_str")
        if isinstance(known, str):
            return known
        return "\n".join(f"{key}: {value}" for key, value in self.user_profile.items())

    def to_json(self) -> dict[str, Any]:
        """Return the scenario as the JSON object that it was loaded from."""
        return self.model_dump(exclude_unset=True)
