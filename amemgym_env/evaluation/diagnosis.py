"""Attribution of wrong answers to writing, reading or using the memory (paper: Section 4.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from amemgym_env.envs.rewards import Floats
from amemgym_env.scenarios.model import Scenario

Failure = Literal["write", "read", "utilization", "unattributed"]


FAILURES: tuple[Failure, ...] = ("write", "read", "utilization", "unattributed")


def write_positions(scenario: Scenario) -> dict[str, tuple[int, ...]]:
    """Return for each variable, by period, the latest period in which its value changed."""
    positions: dict[str, list[int]] = {variable: [] for variable in scenario.variables}
    for index, period in enumerate(scenario.periods):
        for variable, row in positions.items():
            changed = index == 0 or (
                period.state[variable] != scenario.periods[index - 1].state[variable]
            )
            row.append(index if changed else row[-1])
    return {variable: tuple(row) for variable, row in positions.items()}


Known = Callable[[int, int, str], bool | None]
"""(period, question, variable) -> whether the probe named the true value; None: not scored."""


class Diagnosis(NamedTuple):
    """Where each wrong cell failed, and which right cells were luck."""

    failure: tuple[tuple[Failure | None, ...], ...]
    """`[period][question]`; None for right and unscored cells."""
    lucky: tuple[tuple[bool | None, ...], ...]
    """`[period][question]`: right with a variable unknown; None unless right and probed."""


def diagnose(scenario: Scenario, accuracy: Floats, known: Known) -> Diagnosis:
    """Attribute each wrong cell to writing, reading or using the memory.

    Utilization: all variables of the question were known at the period. Else write, when one
    that is unknown now was already unknown at its write position (the end of the period of its
    latest change), judged by the same question's probe there. Else read. Without a scored probe
    where one is needed: unattributed. Paper: Section 4.3.
    """
    positions = write_positions(scenario)
    failures: list[tuple[Failure | None, ...]] = []
    lucky: list[tuple[bool | None, ...]] = []
    for period in range(len(scenario.periods)):
        failure_row: list[Failure | None] = []
        lucky_row: list[bool | None] = []
        for number, question in enumerate(scenario.qas):
            now = {name: known(period, number, name) for name in question.variables}
            score = accuracy[period, number]
            lucky_row.append(
                not all(now.values()) if score == 1.0 and None not in now.values() else None
            )
            if score != 0.0:
                failure_row.append(None)
                continue
            then = [
                known(positions[name][period], number, name)
                for name, is_known in now.items()
                if is_known is False
            ]
            failure_row.append(_attribute(list(now.values()), then))
        failures.append(tuple(failure_row))
        lucky.append(tuple(lucky_row))
    return Diagnosis(tuple(failures), tuple(lucky))


def _attribute(now: list[bool | None], then: list[bool | None]) -> Failure:
    if None in now:
        return "unattributed"
    if all(now):
        return "utilization"
    if False in then:
        return "write"
    return "unattributed" if None in then else "read"
