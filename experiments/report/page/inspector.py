"""Data of the inspector: the truth of a scenario, and the record of each run that played it.

A cell is a state variable at a period. Its letter, from the probes of the questions that need it:

    K  known: every such probe named the true value
    U  used wrongly: known, and a question was answered wrong although all it needs was known
    W  write failure: unknown, and already unknown when the value was new
    R  read failure: unknown, though it was known when the value was new
    ?  not scored: a probe that is needed was not answered for outside reasons, or none took place
    -  no question needs the variable

The letters agree with the failures of `results`: a question is a write failure when one of its
variables is W in that question's own probes, and so on (tests compare them cell by cell).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amemgym_env.agent import NO_ANSWER, UNSCORED
from amemgym_env.evaluation.diagnosis import write_positions
from amemgym_env.evaluation.scenario_result import ScenarioResult
from amemgym_env.models.events import (
    Event,
    ExamEvent,
    ProbeEvent,
    RecordedOperation,
    ReferenceEvent,
    TurnEvent,
)
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.script import Kind, Script
from experiments.report.page.write_attribution import likely_writes
from experiments.report.step_log import StepLog, step_log

Record = dict[str, Any]
"""A JSON object of the page's data."""


def truth(script: Script) -> Record:
    """Return what a script fixes: variables, states, questions as shown, and every utterance."""
    scenario = script.scenario
    number = {name: index for index, name in enumerate(scenario.variables)}
    positions = write_positions(scenario)
    turns = []
    for period, conversations in enumerate(script.periods):
        for session, conversation in enumerate(conversations):
            for turn, utterance in enumerate(conversation.utterances):
                exposed = [[number[name], value] for name, value in utterance.exposures]
                kind = utterance.kind.value
                time = conversation.time
                turns.append([period, session, turn, time, kind, utterance.text, exposed])
    return {
        "id": scenario.id,
        "name": str(scenario.user_profile.get("name") or ""),
        "profile": scenario.profile_text,
        "seed": script.seed,
        "difficulty": script.difficulty.name,
        "variables": [[name, list(scenario.state_schema[name])] for name in scenario.variables],
        "ends": [period.period_end for period in scenario.periods],
        "states": [
            [period.state[name] for name in scenario.variables] for period in scenario.periods
        ],
        "positions": [list(positions[name]) for name in scenario.variables],
        "questions": [
            {
                "text": question.query,
                "variables": [number[name] for name in question.variables],
                "choices": list(script.choices_shown(index)),
                "right": [row[index] for row in script.right_shown],
            }
            for index, question in enumerate(scenario.qas)
        ],
        "turns": turns,
    }


def play(script: Script, result: ScenarioResult, events: Sequence[Event]) -> Record:
    """Return what one run made of a script, aligned with the turns of `truth`."""
    log = step_log(events)
    ids = {
        (period, session, turn): utterance.id
        for period, conversations in enumerate(script.periods)
        for session, conversation in enumerate(conversations)
        for turn, utterance in enumerate(conversation.utterances)
    }
    count = len(script.utterances)
    replies: list[str | None] = [None] * count
    operations: list[tuple[RecordedOperation, ...]] = [()] * count
    retrieved: list[tuple[str, ...]] = [()] * count
    costs: list[list[Any] | None] = [None] * count
    worded: dict[str, str] = {}
    for event in log.play.turns:
        turn = ids[event.place]
        replies[turn] = event.reply
        operations[turn] = event.operations
        retrieved[turn] = event.retrieved
        costs[turn] = compact(log.cost(TurnEvent, *event.place))
        if event.message != script.utterances[turn].text:
            worded[str(turn)] = event.message
    return {
        "replies": replies,
        "worded": worded,
        "operations": operations,
        "retrieved": retrieved,
        "costs": costs,
        "exams": _exams(log, len(script.scenario.periods)),
        "probes": _probes(log, len(script.scenario.periods)),
        "cells": cells(script, result, log.play.probes),
        "failures": [list(row) for row in result.diagnosis.failure],
        "scores": [[None if s != s else int(s) for s in row] for row in result.accuracy.tolist()],
        "traces": _traces(script, operations),
        "reference": compact(log.cost(ReferenceEvent)),
        "error": result.error,
    }


def _exams(log: StepLog, periods: int) -> list[Record | None]:
    found: list[Record | None] = [None] * periods
    for period, exam in log.play.exams.items():
        found[period] = {
            "answers": exam.answers,
            "causes": exam.causes,
            "retrieved": exam.retrieved,
            "cost": compact(log.cost(ExamEvent, period)),
        }
    return found


def _probes(log: StepLog, periods: int) -> list[Record | None]:
    found: list[Record | None] = [None] * periods
    for period, probe in log.play.probes.items():
        found[period] = {
            "values": probe.values,
            "window": probe.window or (),
            "cost": compact(log.cost(ProbeEvent, period)),
        }
    return found


def compact(usage: Usage) -> list[Any]:
    """Return [calls, tokens, dollars or None, seconds]."""
    dollars = None if usage.usd is None else round(usage.usd, 6)
    return [usage.calls, usage.tokens, dollars, round(usage.seconds, 3)]


def cells(script: Script, result: ScenarioResult, probes: Mapping[int, ProbeEvent]) -> list[str]:
    """Return a string of letters, one a period, for each state variable."""
    positions = write_positions(script.scenario)
    periods = len(script.scenario.periods)
    rows = []
    for variable in script.scenario.variables:
        asking = [
            number
            for number, question in enumerate(script.scenario.qas)
            if variable in question.variables
        ]
        letters = ""
        for period in range(periods):
            then = positions[variable][period]
            found = {
                letter(
                    named(script, probes, period, number, variable),
                    named(script, probes, then, number, variable),
                    result.diagnosis.failure[period][number] == "utilization",
                )
                for number in asking
            }
            letters += next((one for one in "WRU?K" if one in found), "-")
        rows.append(letters)
    return rows


def letter(now: bool | None, then: bool | None, misused: bool) -> str:
    """Return a cell's letter for one question: known now, known when new, answered wrong."""
    if now is None:
        return "?"
    if now:
        return "U" if misused else "K"
    if then is None:
        return "?"
    return "R" if then else "W"


def named(
    script: Script, probes: Mapping[int, ProbeEvent], period: int, question: int, variable: str
) -> bool | None:
    """Return whether a question's probe named a variable's true value; None: not scored."""
    if period not in probes:
        return None
    rows = probes[period].values
    row = rows[question] if question < len(rows) else ()
    column = script.scenario.qas[question].variables.index(variable)
    index = row[column] if column < len(row) else NO_ANSWER
    if index == UNSCORED:
        return None
    values = script.scenario.state_schema[variable]
    state = script.scenario.periods[period].state
    return 0 <= index < len(values) and values[index] == state[variable]


def _traces(script: Script, operations: Sequence[Sequence[RecordedOperation]]) -> Record:
    """Return the likely writers of each value, by "variable.period" of the period it begins in."""
    scenario = script.scenario
    written = [
        (turn, number, text)
        for turn, parts in enumerate(operations)
        for number, (_, _, text, _) in enumerate(parts)
        if text
    ]
    first = [min((u.id for c in row for u in c.utterances), default=0) for row in script.periods]
    first.append(len(script.utterances))
    positions = write_positions(scenario)
    found: Record = {}
    for index, variable in enumerate(scenario.variables):
        begins = sorted(set(positions[variable]))
        for begin, end in zip(begins, [*begins[1:], len(scenario.periods)], strict=True):
            value = scenario.periods[begin].state[variable]
            said = [
                utterance
                for utterance in script.utterances[first[begin] : first[end]]
                if (variable, value) in utterance.exposures
            ]
            if not said:
                continue
            texts = [u.text for u in said if u.kind is not Kind.RE_MENTION or len(said) == 1]
            later = [item for item in written if said[0].id <= item[0] < first[end]]
            likely = likely_writes(variable, value, texts, later)
            if likely:
                found[f"{index}.{begin}"] = [list(trace) for trace in likely]
    return found
