"""Assembly of a generated scenario as the JSON object of a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amemgym_env.generation.offline.sessions import session_times
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.plan import Place, ScenarioPlan


def item(
    person: Person,
    plan: ScenarioPlan,
    events: Mapping[Place, str],
    openers: Mapping[Place, str],
    answers: Mapping[int, tuple[str, ...]],
) -> dict[str, Any]:
    """Return the scenario of one person; texts are by session, answers by question."""
    settings, draws = plan.settings, plan.draws("times")
    periods = []
    for number, places in enumerate(plan.sessions):
        times = session_times(settings.bound(number), len(places), draws)
        sessions: list[dict[str, Any]] = [
            {
                "event": events.get(place),
                "exposed_states": dict(plan.content_of(place).exposes),
                "query": openers[place],
                "messages": [],
                "session_time": time,
            }
            for place, time in zip(places, times, strict=True)
        ]
        periods.append(_period(plan, number, sessions))
    return {
        "id": person.id,
        "start_time": settings.start,
        "user_profile": dict(person.profile),
        "state_schema": {variable.name: list(variable.values) for variable in plan.schema},
        "periods": periods,
        "qas": [_question(plan, number, answers[number]) for number in range(len(plan.drafts))],
    }


def _period(plan: ScenarioPlan, number: int, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    before = plan.state(number - 1) if number else {}
    state = plan.state(number)
    told = [session["event"] for session in sessions if session["event"] is not None]
    return {
        "period_start": plan.end(number - 1) if number else None,
        "period_end": plan.end(number),
        "period_summary": " ".join(told) or None,
        "sessions": sessions,
        "state": state,
        "updates": {
            name: {"old": before.get(name), "new": value}
            for name, value in state.items()
            if before.get(name) != value
        },
        # The benchmark's files hold the totals of the whole life in every period.
        "update_cnts": {name: len(plan.held(name)) - 1 for name in state},
    }


def _question(plan: ScenarioPlan, number: int, answers: tuple[str, ...]) -> dict[str, Any]:
    draft = plan.drafts[number]
    combinations = plan.combinations(number).items()
    return {
        "query": draft.query,
        "required_info": [variable.name for variable in draft.variables],
        "answer_choices": [
            {
                "state": list(combination),
                "answer": answer,
                "type": "experience" if lived else "random",
            }
            for (combination, lived), answer in zip(combinations, answers, strict=True)
        ],
    }
