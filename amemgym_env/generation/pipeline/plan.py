"""Plan of one generated scenario: variable changes by period, and the session of each change.

The plan is drawn before any text is made, for variable positions 0..M-1. A spare question takes
over the positions of a question that is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from amemgym_env.agent import Variable
from amemgym_env.generation.offline.sessions import session_groups
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.offline.state_evolution import Course, change_plan
from amemgym_env.prompts.generation.questions import Draft
from amemgym_env.prompts.generation.texts import Combination, SessionContent
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import Key

Group = tuple[int, ...]
"""Positions (0..M-1) of the variables that one session exposes."""


class Place(NamedTuple):
    """A session: its period and the variables it exposes."""

    period: int
    group: Group


class ScenarioPlan:
    """The questions of one persona, the plan of changes and the values by period."""

    def __init__(self, key: tuple[Key, ...], settings: Settings, drafts: Sequence[Draft]) -> None:
        self.settings = settings
        self.drafts = list(drafts)
        self._key = key
        self._size = settings.variables_per_question
        self.changing_positions = [[], *change_plan(settings, Draws(*key, "plan"))]
        """For each period, the positions of the variables that change."""
        draws = Draws(*key, "sessions")
        everything = list(range(settings.variables))
        groups = [session_groups(everything, settings, draws, initial=True)]
        groups += [
            session_groups(changing, settings, draws) for changing in self.changing_positions[1:]
        ]
        self.sessions = [
            [Place(period, group) for group in found] for period, found in enumerate(groups)
        ]
        """The sessions of each period, in order."""
        self.courses: dict[str, list[str]] = {}
        """The values of each variable, by period."""

    def variable(self, place: int) -> Variable:
        """Return the variable at a place (0..M-1)."""
        question, position = divmod(place, self._size)
        return self.drafts[question].variables[position]

    def question(self, place: Place) -> int:
        """Return the question that a session is about."""
        return place.group[0] // self._size

    def replace(self, question: int, draft: Draft) -> None:
        """Replace a question by another, whose values are not yet generated."""
        for variable in self.drafts[question].variables:
            self.courses.pop(variable.name, None)
        self.drafts[question] = draft

    def variables(self, questions: Collection[int]) -> tuple[Variable, ...]:
        """Return the variables of some questions, in the order of the schema."""
        return tuple(v for q, draft in enumerate(self.drafts) if q in questions
                     for v in draft.variables)  # fmt: skip

    @property
    def schema(self) -> tuple[Variable, ...]:
        """All variables, in order."""
        return self.variables(range(len(self.drafts)))

    def changing(self, period: int, questions: Collection[int]) -> tuple[Variable, ...]:
        """Return the variables of some questions that change in a period."""
        places = (
            place for place in self.changing_positions[period] if place // self._size in questions
        )
        return tuple(self.variable(place) for place in places)

    def state(self, period: int) -> dict[str, str]:
        """Return the values generated for a period, in the order of the schema."""
        found = {}
        for variable in self.schema:
            course = self.courses.get(variable.name, [])
            if period < len(course):
                found[variable.name] = course[period]
        return found

    def held(self, name: str) -> tuple[str, ...]:
        """Return the values of a variable so far, in order, without repetition of neighbours."""
        course = self.courses[name]
        return tuple(v for i, v in enumerate(course) if i == 0 or v != course[i - 1])

    def places(self, questions: Collection[int]) -> list[Place]:
        """Return the sessions about some questions, in order."""
        return [p for period in self.sessions for p in period if self.question(p) in questions]

    def content_of(self, place: Place, event: str | None = None) -> SessionContent:
        """Return the values that a session must expose."""
        variables = tuple(self.variable(one) for one in place.group)
        exposes = {v.name: self.courses[v.name][place.period] for v in variables}
        return SessionContent(exposes, variables, event)

    def changes(self, place: Place) -> dict[str, tuple[str, str]]:
        """Return the changes that a session reports: old and new value by variable."""
        now, before = place.period, place.period - 1
        names = [self.variable(one).name for one in place.group]
        return {name: (self.courses[name][before], self.courses[name][now]) for name in names}

    def combinations(self, question: int) -> dict[Combination, bool]:
        """Return a question's combinations, each with whether it occurs in the scenario.

        The order is random. Occurring combinations are filled up to `min_choices`.
        """
        draft = self.drafts[question]
        sizes = [len(variable.values) for variable in draft.variables]
        indices = [
            tuple(v.values.index(self.courses[v.name][period]) for v in draft.variables)
            for period in range(len(self.changing_positions))
        ]
        draws = Draws(*self._key, "choices", question, draft.query)
        course = Course(sizes, self.settings.gradual, draws)
        course.path = list(dict.fromkeys(indices))
        return {
            tuple(v.values[index] for v, index in zip(draft.variables, combination, strict=True)):
            combination in course.path
            for combination in draws.shuffled(course.filled(self.settings.min_choices))
        }  # fmt: skip

    def end(self, period: int) -> str:
        """Return the day on which a period ends."""
        return self.settings.bound(period).date().isoformat()

    def draws(self, purpose: str) -> Draws:
        """Return a stream of draws for one purpose."""
        return Draws(*self._key, purpose)
