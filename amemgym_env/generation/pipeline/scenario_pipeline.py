"""Pipeline that generates one persona's scenario with a language model, step by step.

Steps: questions, schema conflicts, initial state, updates, events, opening utterances, answers. A
model reads each text back without context. A misread text is refined; a question whose text stays
misread is dropped and replaced by a spare question. Dropped questions are reported.

Departure from the paper: the variables that change in a period are drawn uniformly, so that the
course of a question carries no signal; the model chooses the new values and the reasons.
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
from amemgym_env.generation.pipeline.plan import Place, ScenarioPlan
from amemgym_env.generation.pipeline.repair import RepairingClient
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
class PipelineOptions:
    """Options of the pipeline.

    Raises:
        ConfigError: a number is out of range.
    """

    language: str = "English"
    """Language of all texts; names of variables and values stay English."""
    repairs: int = 3
    """Further attempts at a step after a reply that breaks a rule."""
    refinements: int = 3
    """Further attempts at a schema with conflicts, and at a misread text."""
    spare_questions: int = 2
    """Additional questions that replace dropped ones."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("repairs", "refinements", "spare_questions"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected at least 0, found {getattr(self, name)}")
        if not self.language.strip():
            raise ConfigError("language: expected the name of a language, found none")


class DroppedQuestion(NamedTuple):
    """A dropped question, the step that failed and the reason."""

    question: str
    step: str
    reason: str


class PipelineResult(NamedTuple):
    """A finished scenario and the questions dropped on the way."""

    scenario: Scenario
    given_up: tuple[DroppedQuestion, ...]
    refined: int
    """Number of texts that needed a refinement."""


class ScenarioPipeline:
    """Pipeline of one persona's scenario; all calls go through `models`."""

    def __init__(
        self,
        person: Person,
        settings: Settings,
        options: PipelineOptions,
        models: Models,
        seed: int = 0,
    ) -> None:
        self.person = person
        self.settings = settings
        self.options = options
        self.given_up: list[DroppedQuestion] = []
        self._ask = RepairingClient(models, options.repairs)
        self._key = ("made", seed, person.id)
        self._events: dict[Place, str] = {}
        self._openers: dict[Place, str] = {}
        self._answers: dict[int, tuple[str, ...]] = {}
        self._refined = 0

    def made(self) -> PipelineResult:
        """Return the finished scenario.

        Raises:
            GenerationError: a step failed, or too few questions are left; names the step.
            BudgetExceeded: the budget is spent, or the generation was stopped.
        """
        wanted = self.settings.questions
        drafts = self._drafts()
        self._enough(len(drafts))
        self._plan = ScenarioPlan(self._key, self.settings, drafts[:wanted])
        spares = drafts[wanted:]
        new: set[int] = set(range(wanted))
        while new:
            failed = self._generate(new)
            self._enough(wanted - len(failed) + len(spares))
            for question in sorted(failed):
                self._plan.replace(question, spares.pop(0))
            new = failed
        scenario = Scenario.model_validate(
            item(self.person, self._plan, self._events, self._openers, self._answers)
        )
        wrong = (*problems(scenario), *lints(scenario))
        if wrong:
            raise GenerationError("validation", "; ".join(wrong))
        return PipelineResult(scenario, tuple(self.given_up), self._refined)

    def _enough(self, left: int) -> None:
        if left < self.settings.questions:
            why = "; ".join(f"{g.question!r} ({g.step}: {g.reason})" for g in self.given_up)
            raise GenerationError(
                "questions",
                f"{self.settings.questions} wanted + {self.options.spare_questions} spare - "
                f"{len(self.given_up)} dropped leave too few; dropped: {why}",
            )

    def _drafts(self) -> list[Draft]:
        """Return the questions, spare ones included, with consistent variables."""
        count = self.settings.questions + self.options.spare_questions
        shape = DraftShape(count, self.settings.variables_per_question, self.settings.min_choices)
        profile, language = self.person.text, self.options.language
        drafts = self._ask.one("questions", QuestionDrafts(profile, shape, language))
        for left in range(self.options.refinements, -1, -1):
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
        """Return the questions without those whose conflicts were not resolved.

        One question of each conflict is kept, unless it conflicts with itself.
        """
        kept = list(drafts)
        for conflict in conflicts:
            names = set(conflict.variables)
            touched = [d for d in drafts if not names.isdisjoint(v.name for v in d.variables)]
            left = [draft for draft in touched if draft in kept]
            for draft in left[int(len(touched) > 1) :]:
                kept.remove(draft)
                self.given_up.append(DroppedQuestion(draft.query, "conflicts", conflict.reason))
        return tuple(kept)

    def _generate(self, questions: set[int]) -> set[int]:
        """Generate all parts of some questions; return the questions to drop."""
        self._generate_values(questions)
        self._generate_events(questions)
        failed = self._generate_openers(questions)
        return failed | self._generate_answers(questions - failed)

    def _generate_values(self, questions: Collection[int]) -> None:
        """Generate the values of some questions' variables, period by period."""
        plan, profile = self._plan, self.person.text
        variables = plan.variables(questions)
        initial = self._ask.one("initial state", InitialState(profile, self._end(0), variables))
        plan.courses |= {name: [value] for name, value in initial.items()}
        for period in range(1, self.settings.periods + 1):
            changing = plan.changing(period, questions)
            new: dict[str, str] = {}
            if changing:
                prompt = PeriodUpdates(
                    profile,
                    self._end(period - 1),
                    self._end(period),
                    plan.state(period - 1),
                    changing,
                    {v.name: plan.held(v.name) for v in changing},
                )
                new = self._ask.one(f"updates of period {period}", prompt)
            for variable in variables:
                course = plan.courses[variable.name]
                course.append(new.get(variable.name, course[-1]))

    def _generate_events(self, questions: Collection[int]) -> None:
        """Generate the events that explain the changes, all periods at once."""
        by_period = self._by_period(questions)
        by_period.pop(0, None)
        prompts = [
            LifeEvents(
                self.person.text,
                self._end(period - 1),
                self._end(period),
                tuple(self._plan.changes(place) for place in places),
                self.options.language,
            )
            for period, places in by_period.items()
        ]
        told = self._ask.all("events", prompts)
        for places, events in zip(by_period.values(), told, strict=True):
            self._events |= dict(zip(places, events, strict=True))

    def _generate_openers(self, questions: set[int]) -> set[int]:
        """Generate and read back the opening utterances of some questions' sessions."""
        by_period = self._by_period(questions)
        for place in self._plan.places(questions):
            self._openers.pop(place, None)
        prompts = [
            OpeningUtterances(
                self.person.text,
                self._end(period),
                tuple(self._plan.content_of(p, self._events.get(p)) for p in places),
                self.options.language,
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
            self._ask, self.options, self.person.text, self._plan, self._events,
            frozenset(self._openers.values()),
        )  # fmt: skip
        kept, misread = trip.run(texts)
        self._openers |= kept
        self._refined += trip.refined
        return self._drop({self._plan.question(place): why for place, why in misread.items()})

    def _generate_answers(self, questions: set[int]) -> set[int]:
        """Generate and read back the answers of some questions."""
        order = sorted(questions)
        prompts = [
            PersonalAnswers(
                self.person.text,
                self._plan.drafts[question].query,
                self._plan.drafts[question].variables,
                tuple(self._plan.combinations(question)),
                self.options.language,
            )
            for question in order
        ]
        told = self._ask.all("answers", prompts)
        trip = AnswerTrip(self._ask, self.options, prompts)
        kept, misread = trip.run(
            {(n, i): text for n, found in enumerate(told) for i, text in enumerate(found)}
        )
        self._refined += trip.refined
        for number, question in enumerate(order):
            count = len(prompts[number].combinations)
            if all((number, index) in kept for index in range(count)):
                self._answers[question] = tuple(kept[number, index] for index in range(count))
        return self._drop({order[number]: why for (number, _), why in misread.items()})

    def _drop(self, misread: dict[int, Misread]) -> set[int]:
        for question, why in sorted(misread.items()):
            query = self._plan.drafts[question].query
            self.given_up.append(DroppedQuestion(query, why.step, f"{why.problem}: {why.text!r}"))
        return set(misread)

    def _by_period(self, questions: Collection[int]) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = {}
        for place in self._plan.places(questions):
            found.setdefault(place.period, []).append(place)
        return found

    def _end(self, period: int) -> str:
        return self.settings.bound(period).date().isoformat()
