"""Validation of scenarios, before anything is played.

`problems` lists violations that make a scenario unplayable or its scores wrong; `lints` lists
oddities that a user may accept. Both name the period, the field, the expected and the found value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from amemgym_env.scenarios.model import Period, Question, Scenario
from amemgym_env.scenarios.timestamps import instant


def problems(scenario: Scenario) -> tuple[str, ...]:
    """Return one line for each broken rule, in the order of the file; empty when valid."""
    return tuple(_problems(scenario))


def lints(scenario: Scenario) -> tuple[str, ...]:
    """Return one line for each thing that is allowed but probably not meant."""
    return tuple(_lints(scenario))


def _problems(scenario: Scenario) -> Iterator[str]:
    if not scenario.state_schema:
        yield "state_schema: expected at least one variable, found none"
    for variable, values in scenario.state_schema.items():
        if not values or len(set(values)) != len(values):
            yield f"state_schema.{variable}: expected distinct values, found {values}"
    if not scenario.periods:
        yield "periods: expected at least period 0, found none"
    if not scenario.qas:
        yield "qas: expected at least one question, found none"
    yield from _time_problems(scenario)
    previous: dict[str, str] = {}
    for index, period in enumerate(scenario.periods):
        yield from _period_problems(scenario, index, period, previous)
        previous = period.state
    for index, question in enumerate(scenario.qas):
        yield from _question_problems(scenario, index, question)


def _period_problems(
    scenario: Scenario, index: int, period: Period, previous: dict[str, str]
) -> Iterator[str]:
    place = f"period {index}"
    schema = scenario.state_schema
    for variable in schema:
        if variable not in period.state:
            yield f"{place}, state: expected a value for {variable!r}, found none"
    for variable, value in period.state.items():
        yield from _value_problems(scenario, variable, value, f"{place}, state")
    replayed = dict(previous)
    for variable, change in period.updates.items():
        field = f"{place}, updates.{variable}"
        yield from _value_problems(scenario, variable, change.new, field)
        if change.old != previous.get(variable):
            yield f"{field}.old: expected {previous.get(variable)!r}, found {change.old!r}"
        replayed[variable] = change.new
    for variable in schema:
        found, after = period.state.get(variable), replayed.get(variable)
        if found is not None and found != after:
            yield (
                f"{place}, state.{variable}: expected {after!r} after the updates, found {found!r}"
            )
    for number, session in enumerate(period.sessions):
        field = f"{place}, session {number}, exposed_states"
        for variable, value in session.exposed_states.items():
            if variable not in schema:
                yield f"{field}: expected a variable of the schema, found {variable!r}"
            elif value != period.state.get(variable):
                expected = period.state.get(variable)
                yield f"{field}.{variable}: expected the state {expected!r}, found {value!r}"


def _value_problems(scenario: Scenario, variable: str, value: str, field: str) -> Iterator[str]:
    allowed = scenario.state_schema.get(variable)
    if allowed is None:
        yield f"{field}: expected a variable of the schema, found {variable!r}"
    elif value not in allowed:
        yield f"{field}.{variable}: expected one of {allowed}, found {value!r}"


def _question_problems(scenario: Scenario, index: int, question: Question) -> Iterator[str]:
    place = f"question {index}"
    if not question.required_info:
        yield f"{place}, required_info: expected at least one variable, found none"
        return
    unknown = [name for name in question.required_info if name not in scenario.state_schema]
    if unknown:
        yield f"{place}, required_info: expected variables of the schema, found {unknown}"
        return
    size = len(question.required_info)
    for number, choice in enumerate(question.answer_choices):
        field = f"{place}, choice {number}, state"
        if len(choice.state) != size:
            yield f"{field}: expected {size} values, found {len(choice.state)}"
            continue
        for variable, value in zip(question.required_info, choice.state, strict=True):
            if value not in scenario.state_schema[variable]:
                allowed = scenario.state_schema[variable]
                yield f"{field}: expected one of {allowed} for {variable!r}, found {value!r}"
    combinations = Counter(tuple(choice.state) for choice in question.answer_choices)
    for combination, count in combinations.items():
        if count > 1:
            yield f"{place}, answer_choices: expected one choice for {combination}, found {count}"
    for number, period in enumerate(scenario.periods):
        truth = tuple(period.state.get(variable, "") for variable in question.required_info)
        if truth not in combinations:
            yield f"{place}, period {number}: expected a choice for the true {truth}, found none"


def _time_problems(scenario: Scenario) -> Iterator[str]:
    yield from _unreadable_time(scenario.start_time, "start_time")
    last: datetime | None = None
    for index, period in enumerate(scenario.periods):
        place = f"period {index}"
        bounds = [("period_start", period.period_start), ("period_end", period.period_end)]
        times = {name: text for name, text in bounds if text is not None}
        times |= {
            f"session {number}, session_time": session.session_time
            for number, session in enumerate(period.sessions)
        }
        unreadable = [line for name, text in times.items() for line in _unreadable_time(text, name)]
        if unreadable:
            yield from (f"{place}, {line}" for line in unreadable)
            continue
        end = instant(period.period_end)
        start = None if period.period_start is None else instant(period.period_start)
        if start is not None and start > end:
            expected = f"expected no earlier than {period.period_start}"
            yield f"{place}, period_end: {expected}, found {period.period_end}"
        for number, session in enumerate(period.sessions):
            moment = instant(session.session_time)
            field = f"{place}, session {number}, session_time"
            # Periods are bounded by days: a session on the evening of the last day belongs to it.
            if moment.date() > end.date() or (start is not None and moment.date() < start.date()):
                yield (
                    f"{field}: expected within {period.period_start}..{period.period_end}, "
                    f"found {session.session_time}"
                )
            if last is not None and moment < last:
                yield f"{field}: expected no earlier than the session before, found {moment}"
            last = moment


def _unreadable_time(text: str, field: str) -> Iterator[str]:
    try:
        instant(text)
    except ValueError:
        yield f"{field}: expected an ISO 8601 date or time, found {text!r}"


def _lints(scenario: Scenario) -> Iterator[str]:
    exposed: dict[str, str] = {}
    for index, period in enumerate(scenario.periods):
        for session in period.sessions:
            exposed |= session.exposed_states
        for variable, value in period.state.items():
            if exposed.get(variable) != value:
                yield f"period {index}: no session up to here exposes {variable!r} = {value!r}"
    for index, question in enumerate(scenario.qas):
        if len(question.variables) != len(question.required_info):
            yield f"question {index}, required_info: a variable is named twice; it counts once"
        texts = [choice.answer for choice in question.answer_choices]
        if len(set(texts)) != len(texts):
            yield f"question {index}, answer_choices: two choices have the same text"
        if len(texts) < 2:
            yield f"question {index}, answer_choices: one choice only, every answer is right"
