"""One user's result files of the benchmark's own code, scored by our rules.

What the files tell of the scenario (questions, choices, the state of each period) is put together
first; then exams, probes and upper bound are scored as ours are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amemgym_env.agent import NO_ANSWER, UNSCORED
from amemgym_env.errors import RunError
from amemgym_env.evaluation.diagnosis import diagnose
from amemgym_env.evaluation.scenario_result import ScenarioResult
from amemgym_env.models.client import Usage
from amemgym_env.scenarios.difficulty import DIFFICULTIES
from amemgym_env.scenarios.model import Choice, Period, Question, Scenario
from amemgym_env.scenarios.script import Script
from experiments.report.page.official.files import (
    DIAGNOSIS,
    OVERALL,
    UTILIZATION,
    Cell,
    Informed,
    InformedCell,
    Overall,
    Probes,
    parsed,
)


class Scored(NamedTuple):
    """One user's result."""

    result: ScenarioResult
    unreadable: int
    """Replies that could not be read."""
    unprobed: str | None
    """Why there are no probes, if there are none."""


def score(folder: Path, informed: Informed | None) -> Scored:
    """Return one user's result."""
    file = folder / OVERALL
    cells: Overall = parsed(file, Overall)
    width = len(cells[0]) if cells else 0
    if not width or any(len(row) != width for row in cells):
        raise RunError(f"{file}: expected as many questions in each period, found a ragged table")
    known = [next((cell for cell in column if cell), None) for column in zip(*cells, strict=True)]
    if None in known:
        raise RunError(f"{file}: question {known.index(None)} was not asked in any period")
    queries = [cell.query for cell in known if cell is not None]
    rows = _rows(informed, queries, folder)
    probes: Probes | None = None
    unprobed = None
    try:
        probes = _probes(folder / DIAGNOSIS, [width] * len(cells))
    except RunError as error:
        unprobed = str(error)
    scenario = _scenario(folder, queries, cells, probes, rows)
    chosen = np.array([[_choice(cell, scenario, q) for q, cell in enumerate(r)] for r in cells])
    right = np.array(scenario.right_choices)
    asked = np.where(chosen == UNSCORED, np.nan, (chosen == right) & (chosen >= 0))
    upper = _upper_bound(rows, scenario, cells)
    orders = tuple(tuple(range(len(q.answer_choices))) for q in scenario.qas)
    periods: tuple[tuple[Any, ...], ...] = tuple(() for _ in cells)
    unreadable = int((chosen == NO_ANSWER).sum())
    result = ScenarioResult(
        script=Script(scenario, DIFFICULTIES["none"], 0, 1, 2, periods, orders),
        accuracy=asked,
        upper_bound=upper,
        never_write=np.full(asked.shape, np.nan),
        diagnosis=diagnose(scenario, asked, _known(scenario, probes)),
        chosen=chosen,
        causes=+Counter(unreadable=unreadable),
        unscored_causes=+Counter(other=int((chosen == UNSCORED).sum())),
        probe_causes=Counter(),
        unreadable_calls=+Counter({"exam_answer.unreadable": unreadable}),
        retrieved=(0.0, 0),
        in_window=(0, 0),
        index_recall=(0, 0),
        unrecognised=0,
        follow_up_failures=0,
        usage={"exam": _usage(cells)},
        hash=None,
        error=None,
    )
    return Scored(result, unreadable, unprobed)


def _probes(file: Path, shape: list[int]) -> Probes:
    if not file.exists():
        raise RunError(f"{file}: not there")
    probes: Probes = parsed(file, Probes)
    if [len(row) for row in probes] != shape:
        raise RunError(f"{file}: its shape is not that of {OVERALL}")
    return probes


def _rows(
    informed: Informed | None, queries: list[str], folder: Path
) -> list[list[InformedCell | None]] | None:
    """Return a user's rows of the upper bound's file, which knows users by questions alone."""
    if informed is None:
        return None
    for rows in informed:
        asked = [next((cell.query for cell in row if cell), None) for row in rows]
        if asked == queries:
            return rows
    raise RunError(
        f"{folder}: expected its {len(queries)} questions in {UTILIZATION}, found no user with "
        "them; the upper bound is of another set"
    )


def _scenario(
    folder: Path,
    queries: list[str],
    cells: Overall,
    probes: Probes | None,
    rows: list[list[InformedCell | None]] | None,
) -> Scenario:
    """Return what results tell of a scenario: questions, choices, the state of each period."""
    variables = [_variables(q, probes, cells) for q in range(len(queries))]
    choices: list[dict[tuple[str, ...], str]] = [{} for _ in queries]
    for question, row in enumerate(rows or []):
        for informed in row:
            if informed is None:
                raise RunError(
                    f"{folder}: {UTILIZATION}: question {question} is unfinished; the command that "
                    "began it continues it"
                )
            choices[question][tuple(informed.answer_state)] = informed.answer_choice
    for line in cells:
        for question, cell in enumerate(line):
            if cell is not None:
                choices[question].setdefault(tuple(cell.answer_state), cell.answer_choice)
                choices[question].setdefault(tuple(cell.response_state), cell.response_choice)
    states: list[dict[str, str]] = []
    first = {
        variable: value
        for line in reversed(cells)
        for names, cell in zip(variables, line, strict=True)
        if cell is not None
        for variable, value in zip(names, cell.answer_state, strict=False)
    }
    for line in cells:
        state = dict(states[-1] if states else first)
        for question, cell in enumerate(line):
            if cell is not None:
                if len(cell.answer_state) != len(variables[question]):
                    raise RunError(f"{folder}: question {question}: states differ in size")
                state |= dict(zip(variables[question], cell.answer_state, strict=True))
        states.append(state)
    schema: dict[str, list[str]] = {}
    for names, known in zip(variables, choices, strict=True):
        for combination in known:
            for variable, value in zip(names, combination, strict=True):
                if value not in schema.setdefault(variable, []):
                    schema[variable].append(value)
    return Scenario(
        id=folder.name,
        start_time="",
        user_profile={},
        state_schema=schema,
        periods=[Period(period_end="", state=s, updates={}, sessions=[]) for s in states],
        qas=[
            Question(
                query=query,
                required_info=names,
                answer_choices=[Choice(state=list(s), answer=text) for s, text in known.items()],
            )
            for query, names, known in zip(queries, variables, choices, strict=True)
        ],
    )


def _variables(question: int, probes: Probes | None, cells: Overall) -> list[str]:
    for row in probes or []:
        probe = row[question]
        if probe is not None:
            return [named.info_type for named in probe.results]
    size = next(len(row[question].answer_state) for row in cells if row[question])  # type: ignore[union-attr]
    return [f"question {question}, variable {number}" for number in range(size)]


def _choice(cell: Cell | None, scenario: Scenario, question: int) -> int:
    """Return the index of the chosen choice; nothing is guessed for a reply that names none."""
    if cell is None:
        return UNSCORED
    given = cell.response
    if cell.json_error or isinstance(given, bool) or not isinstance(given, int) or given < 1:
        return NO_ANSWER
    states = [choice.state for choice in scenario.qas[question].answer_choices]
    return states.index(cell.response_state)


def _upper_bound(
    rows: list[list[InformedCell | None]] | None, scenario: Scenario, cells: Overall
) -> Any:
    shape = (len(cells), len(scenario.qas))
    found = np.full(shape, np.nan)
    for period, rights in enumerate(scenario.right_choices):
        for question, right in enumerate(rights):
            if rows is None:
                continue
            state = scenario.qas[question].answer_choices[right].state
            for cell in rows[question]:
                if cell is not None and cell.answer_state == state:
                    found[period, question] = not cell.json_error and cell.response_state == state
                    break
    return found


def _known(scenario: Scenario, probes: Probes | None) -> Any:
    def known(period: int, question: int, variable: str) -> bool | None:
        probe = None if probes is None else probes[period][question]
        for named in () if probe is None else probe.results:
            if named.info_type == variable:
                return not named.json_error and named.response_state == named.answer_state
        return None

    return known


def _usage(cells: Sequence[Sequence[Cell | None]]) -> Usage:
    total = Usage()
    for row in cells:
        for cell in row:
            if cell is not None:
                spent = cell.llm_usage_statistics
                shown = int(spent.get("input_tokens", 0))
                written = max(0, int(spent.get("output_tokens", 0)) - shown)
                seconds = float(spent.get("time_elapsed", 0.0))
                total += Usage(1, shown, written, seconds=seconds, usd=None)
    return total
