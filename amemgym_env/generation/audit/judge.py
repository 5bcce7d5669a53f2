"""Ratings of a scenario set by a judge model, compared with the human ratings of the paper.

Utterances, quiet turns and questions are sampled by keyed draws, so a set and seed always give the
same items. Items that the judge failed to rate are counted.
Paper: AMemGym, Section 3.5 (meta-evaluation).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from amemgym_env.errors import GenerationError
from amemgym_env.generation.audit.form_leaks import played
from amemgym_env.generation.audit.report import Figure
from amemgym_env.generation.pipeline.repair import RepairingClient
from amemgym_env.prompts.generation.ratings import AnswerAgreement, ExposureRating, IntegrityRating
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.seeding import permutation, uniform

P = TypeVar("P")

PEOPLE = {"exposure": 0.991, "integrity": 0.992, "agreement": 0.95}
"""The paper's figures: 200 utterances, 748 turns, 100 questions (two people: .96 and .94)."""


class _Asked(NamedTuple):
    """A question at a period and the shown index of its right choice."""

    prompt: AnswerAgreement
    right: int


def judge(
    scenarios: Iterable[Scenario],
    script_of: Callable[[Scenario], Script],
    ask: RepairingClient,
    sample: int,
    seed: int = 0,
) -> tuple[Figure, ...]:
    """Return the figures of at most `sample` items of each kind.

    Raises:
        GenerationError: a call failed for good. BudgetExceeded: the budget is spent.
    """
    chosen = list(scenarios)
    scripts = [(scenario, script_of(scenario)) for scenario in chosen]
    exposures = _sample(_exposures(chosen), sample, seed)
    quiet = _sample(_quiet(scripts), sample, seed)
    asked = _sample(_questions(chosen, seed), sample, seed)
    exposed = ask.each("exposure ratings", exposures)
    kept = ask.each("integrity ratings", quiet)
    answered = ask.each("answers", [item.prompt for item in asked])
    agreeing = [
        found if isinstance(found, GenerationError) else int(found == item.right)
        for item, found in zip(asked, answered, strict=True)
    ]
    return (
        _figure("exposure, rated by the judge", exposed, 2, PEOPLE["exposure"]),
        _figure("state integrity, rated by the judge", kept, 1, PEOPLE["integrity"]),
        _figure("judge's agreement with the answers", agreeing, 1, PEOPLE["agreement"]),
    )


def _figure(
    name: str, ratings: Sequence[int | GenerationError], most: int, people: float
) -> Figure:
    scored = [rating for rating in ratings if not isinstance(rating, GenerationError)]
    mean = sum(scored) / (most * len(scored)) if scored else float("nan")
    note = f"{len(scored)} rated, {len(ratings) - len(scored)} not; v1.base as rated by people"
    return Figure(name, mean, v1_base=people, note=note)


def _sample(items: Iterator[tuple[str, P]], count: int, seed: int) -> list[P]:
    ranked = ((uniform("judged", seed, key), key, item) for key, item in items)
    return [item for _, _, item in heapq.nsmallest(count, ranked, key=lambda found: found[:2])]


def _exposures(scenarios: Sequence[Scenario]) -> Iterator[tuple[str, ExposureRating]]:
    for scenario in scenarios:
        for number, period in enumerate(scenario.periods):
            for place, session in enumerate(period.sessions):
                if session.exposed_states:
                    values = {n: tuple(scenario.state_schema[n]) for n in session.exposed_states}
                    yield (
                        f"{scenario.id} {number} {place}",
                        ExposureRating(session.query, dict(session.exposed_states), values),
                    )


def _quiet(scripts: Sequence[tuple[Scenario, Script]]) -> Iterator[tuple[str, IntegrityRating]]:
    for scenario, script in scripts:
        for place, spoken in enumerate(played(scenario, script)):
            if not spoken.exposes:
                state = scenario.periods[spoken.period].state
                yield f"{scenario.id} {place}", IntegrityRating(spoken.text, dict(state))


def _questions(scenarios: Sequence[Scenario], seed: int) -> Iterator[tuple[str, _Asked]]:
    for scenario in scenarios:
        for number, period in enumerate(scenario.periods):
            for place, question in enumerate(scenario.qas):
                key = f"{scenario.id} {number} {place}"
                order = permutation(len(question.answer_choices), "judged", seed, key)
                known = {name: period.state[name] for name in question.variables}
                choices = tuple(question.answer_choices[index].answer for index in order)
                right = order.index(scenario.right_choices[number][place])
                yield key, _Asked(AnswerAgreement(question.query, known, choices), right)
