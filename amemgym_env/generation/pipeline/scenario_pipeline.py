"""One persona's scenario, made by a model step by step: the paper's pipeline.

Questions, conflicts and their resolution, initial state, updates, events, opening utterances,
answers. Every text is read back by a model that sees it alone; what is not understood as it should
be is refined, and a question of which a text stays misunderstood is given up: a spare question is
worked out in its place. Nothing is kept that failed, and what was given up is reported.

Departures from the paper: which variables change in a period is drawn (evenly, so that the course
of a question tells nothing), and the model decides to what and why.
Paper: AMemGym, Section 3.2 (structured data generation).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from amemgym_env.errors import ConfigError, GenerationError
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.pipeline.assembly import item
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.plan import Matters, Place
from amemgym_env.generation.pipeline.repair import Asker
from amemgym_env.generation.pipeline.round_trip import AnswerTrip, Misread, UtteranceTrip
from amemgym_env.models.client import Models
from amemgym_env.prompts.generation.questions import (
    Conflict,
    Draft,
    DraftShape,
    QuestionDrafts,
    SchemaConflicts,
    SchemaRefinement,
)
from amemgym_env.prompts.generation.state import InitialState, LifeEvents, PeriodUpdates
from amemgym_env.prompts.generation.texts import OpeningUtterances, PersonalAnswers
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.validation import lints, problems


@dataclass(frozen=True, slots=True)
class Manner:
    """How a scenario is made.

    Raises:
        ConfigError: a number is out of range.
    """

    language: str = "English"
    """Of all texts; names of variables and values stay English."""
    repairs: int = 3
    """Further attempts at a step after a reply that breaks a rule."""
    refinements: int = 3
    """Further attempts at a schema with conflicts, and at a text that is not understood."""
    spare_questions: int = 2
    """Questions beyond those wanted, for those that have to be given up."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("repairs", "refinements", "spare_questions"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected at least 0, found {getattr(self, name)}")
        if not self.language.strip():
            raise ConfigError("language: expected the name of a language, found none")


class GivenUp(NamedTuple):
    """A question that was given up, and why."""

    question: str
    step: str
    reason: str


class Made(NamedTuple):
    """A finished scenario, and what was given up on the way."""

    scenario: Scenario
    given_up: tuple[GivenUp, ...]
    refined: int
    """Texts that were understood only after a refinement."""


class Making:
    """The making of one persona's scenario; all calls go through `models`."""

    def __init__(
        self, person: Person, settings: Settings, manner: Manner, models: Models, seed: int = 0
    ) -> None:
        self.person = person
        self.settings = settings
        self.manner = manner
        self.given_up: list[GivenUp] = []
        self._ask = Asker(models, manner.repairs)
        self._key = ("made", seed, person.id)
        self._events: dict[Place, str] = {}
        self._openers: dict[Place, str] = {}
        self._answers: dict[int, tuple[str, ...]] = {}
        self._refined = 0

    def made(self) -> Made:
        """Return the finished scenario.

        Raises:
            GenerationError: a step failed, or too few questions are left; names the step.
            BudgetExceeded: the budget is spent, or the generation was stopped.
        """
        wanted = self.settings.questions
        drafts = self._drafts()
        self._enough(len(drafts))
        self._matters = Matters(self._key, self.settings, drafts[:wanted])
        spares = drafts[wanted:]
        new: set[int] = set(range(wanted))
        while new:
            failed = self._work_out(new)
            self._enough(wanted - len(failed) + len(spares))
            for question in sorted(failed):
                self._matters.replace(question, spares.pop(0))
            new = failed
        scenario = Scenario.model_validate(
            item(self.person, self._matters, self._events, self._openers, self._answers)
        )
        wrong = (*problems(scenario), *lints(scenario))
        if wrong:
            raise GenerationError("validation", "; ".join(wrong))
        return Made(scenario, tuple(self.given_up), self._refined)

    def _enough(self, left: int) -> None:
        if left < self.settings.questions:
            why = "; ".join(f"{g.question!r} ({g.step}: {g.reason})" for g in self.given_up)
            raise GenerationError(
                "questions",
                f"{self.settings.questions} wanted + {self.manner.spare_questions} spare - "
                f"{len(self.given_up)} given up leave too few; given up: {why}",
            )

    def _drafts(self) -> list[Draft]:
        """Return the questions, spare ones included, with variables that stand together."""
        count = self.settings.questions + self.manner.spare_questions
        shape = DraftShape(count, self.settings.variables_per_question, self.settings.min_choices)
        profile, language = self.person.text, self.manner.language
        drafts = self._ask.one("questions", QuestionDrafts(profile, shape, language))
        for left in range(self.manner.refinements, -1, -1):
            conflicts = self._ask.one("conflicts", SchemaConflicts(profile, drafts))
            if not conflicts:
                break
            if left:
                prompt = SchemaRefinement(profile, drafts, conflicts, shape, language)
                drafts = self._ask.one("schema", prompt)
                continue
            drafts = self._without(drafts, conflicts)
        return list(drafts)

    def _without(
        self, drafts: tuple[Draft, ...], conflicts: tuple[Conflict, ...]
    ) -> tuple[Draft, ...]:
        """Return the questions without those whose conflicts could not be resolved.

        One question of each conflict stays, unless it is at odds with itself.
        """
        kept = list(drafts)
        for conflict in conflicts:
            names = set(conflict.variables)
            touched = [d for d in drafts if not names.isdisjoint(v.name for v in d.variables)]
            left = [draft for draft in touched if draft in kept]
            for draft in left[int(len(touched) > 1) :]:
                kept.remove(draft)
                self.given_up.append(GivenUp(draft.query, "conflicts", conflict.reason))
        return tuple(kept)

    def _work_out(self, questions: set[int]) -> set[int]:
        """Make everything about some questions; returns those that have to be given up."""
        self._live(questions)
        self._explain(questions)
        failed = self._open(questions)
        return failed | self._answer(questions - failed)

    def _live(self, questions: Collection[int]) -> None:
        """Make the course of some questions' variables."""
        matters, profile = self._matters, self.person.text
        variables = matters.variables(questions)
        initial = self._ask.one("initial state", InitialState(profile, self._end(0), variables))
        matters.courses |= {name: [value] for name, value in initial.items()}
        for period in range(1, self.settings.periods + 1):
            changing = matters.changing(period, questions)
            new: dict[str, str] = {}
            if changing:
                prompt = PeriodUpdates(
                    profile,
                    self._end(period - 1),
                    self._end(period),
                    matters.state(period - 1),
                    changing,
                    {v.name: matters.held(v.name) for v in changing},
                )
                new = self._ask.one(f"updates of period {period}", prompt)
            for variable in variables:
                course = matters.courses[variable.name]
                course.append(new.get(variable.name, course[-1]))

    def _explain(self, questions: Collection[int]) -> None:
        """Make the events behind the changes, all periods at once."""
        by_period = self._by_period(questions)
        by_period.pop(0, None)
        prompts = [
            LifeEvents(
                self.person.text,
                self._end(period - 1),
                self._end(period),
                tuple(self._matters.changes(place) for place in places),
                self.manner.language,
            )
            for period, places in by_period.items()
        ]
        told = self._ask.all("events", prompts)
        for places, events in zip(by_period.values(), told, strict=True):
            self._events |= dict(zip(places, events, strict=True))

    def _open(self, questions: set[int]) -> set[int]:
        """Make the opening utterances of some questions' sessions, each read back."""
        by_period = self._by_period(questions)
        for place in self._matters.places(questions):
            self._openers.pop(place, None)
        prompts = [
            OpeningUtterances(
                self.person.text,
                self._end(period),
                tuple(self._matters.telling(p, self._events.get(p)) for p in places),
                self.manner.language,
            )
            for period, places in by_period.items()
        ]
        told = self._ask.all("opening utterances", prompts)
        texts = {
            place: text
            for places, found in zip(by_period.values(), told, strict=True)
            for place, text in zip(places, found, strict=True)
        }
        trip = UtteranceTrip(
            self._ask, self.manner, self.person.text, self._matters, self._events,
            frozenset(self._openers.values()),
        )  # fmt: skip
        kept, misread = trip.run(texts)
        self._openers |= kept
        self._refined += trip.refined
        return self._give_up({self._matters.question(place): why for place, why in misread.items()})

    def _answer(self, questions: set[int]) -> set[int]:
        """Make the answers of some questions, each read back."""
        order = sorted(questions)
        prompts = [
            PersonalAnswers(
                self.person.text,
                self._matters.drafts[question].query,
                self._matters.drafts[question].variables,
                tuple(self._matters.combinations(question)),
                self.manner.language,
            )
            for question in order
        ]
        told = self._ask.all("answers", prompts)
        trip = AnswerTrip(self._ask, self.manner, prompts)
        kept, misread = trip.run(
            {(n, i): text for n, found in enumerate(told) for i, text in enumerate(found)}
        )
        self._refined += trip.refined
        for number, question in enumerate(order):
            count = len(prompts[number].combinations)
            if all((number, index) in kept for index in range(count)):
                self._answers[question] = tuple(kept[number, index] for index in range(count))
        return self._give_up({order[number]: why for (number, _), why in misread.items()})

    def _give_up(self, misread: dict[int, Misread]) -> set[int]:
        for question, why in sorted(misread.items()):
            query = self._matters.drafts[question].query
            self.given_up.append(GivenUp(query, why.step, f"{why.problem}: {why.text!r}"))
        return set(misread)

    def _by_period(self, questions: Collection[int]) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = {}
        for place in self._matters.places(questions):
            found.setdefault(place.period, []).append(place)
        return found

    def _end(self, period: int) -> str:
        return self.settings.bound(period).date().isoformat()
