"""A finished scenario as the JSON object of a scenario file, in the benchmark's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amemgym_env.generation.offline.sessions import session_times
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.plan import Matters, Place


def item(
    person: Person,
    matters: Matters,
    events: Mapping[Place, str],
    openers: Mapping[Place, str],
    answers: Mapping[int, tuple[str, ...]],
) -> dict[str, Any]:
    """Return the scenario of one person; texts are by session, answers by question."""
    settings, draws = matters.settings, matters.draws("times")
    periods = []
    for number, places in enumerate(matters.sessions):
        times = session_times(settings.bound(number), len(places), draws)
        sessions: list[dict[str, Any]] = [
            {
                "event": events.get(place),
                "exposed_states": dict(matters.telling(place).exposes),
                "query": openers[place],
                "messages": [],
                "session_time": time,
            }
            for place, time in zip(places, times, strict=True)
        ]
        periods.append(_period(matters, number, sessions))
    return {
        "id": person.id,
        "start_time": settings.start,
        "user_profile": dict(person.profile),
        "state_schema": {variable.name: list(variable.values) for variable in matters.schema},
        "periods": periods,
        "qas": [
            _question(matters, number, answers[number]) for number in range(len(matters.drafts))
        ],
    }


def _period(matters: Matters, number: int, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    before = matters.state(number - 1) if number else {}
    state = matters.state(number)
    told = [session["event"] for session in sessions if session["event"] is not None]
    return {
        "period_start": matters.end(number - 1) if number else None,
        "period_end": matters.end(number),
        "period_summary": " ".join(told) or None,
        "sessions": sessions,
        "state": state,
        "updates": {
            name: {"old": before.get(name), "new": value}
            for name, value in state.items()
            if before.get(name) != value
        },
        # The benchmark's files hold the totals of the whole life in every period.
        "update_cnts": {name: len(matters.held(name)) - 1 for name in state},
    }


def _question(matters: Matters, number: int, answers: tuple[str, ...]) -> dict[str, Any]:
    draft = matters.drafts[number]
    combinations = matters.combinations(number).items()
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
