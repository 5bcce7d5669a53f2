"""Checks of the constructor arguments that environments share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from amemgym_env.errors import ConfigError, ScenarioError, near
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.validation import problems

Limit = int | Literal["all"] | None
"""A number of entries, "all" (no limit), or None: what the difficulty says."""

T = TypeVar("T")


def refuse_unknown(unknown: Iterable[str], accepting: Callable[..., Any]) -> None:
    """Refuse arguments that a constructor does not have.

    Raises:
        ConfigError: there is one; names the nearest argument.
    """
    for name in unknown:
        names = [
            known
            for known, parameter in inspect.signature(accepting).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD and known != "self"
        ]
        raise ConfigError(f"argument: expected one of {names}, found {name!r}{near(name, names)}")


def checked_scenarios(
    scenarios: str | os.PathLike[str] | Sequence[Scenario], limit: int | None
) -> tuple[Scenario, ...]:
    """Return the scenarios of a set's name, a path or a sequence, valid and with distinct ids.

    Raises:
        ConfigError: no such set, or something that is neither a name nor scenarios.
        ScenarioError: a scenario breaks a rule; lists every offender.
    """
    checked_limit("limit", limit, None, least=1)
    if isinstance(scenarios, str | os.PathLike):
        return tuple(named_scenarios(scenarios, limit))
    found = tuple(scenarios)[:limit]
    if not found:
        raise ConfigError("scenarios: expected at least one scenario, found none")
    offenders: list[str] = []
    seen: set[str] = set()
    for number, scenario in enumerate(found):
        if not isinstance(scenario, Scenario):
            raise ConfigError(
                f"scenarios[{number}]: expected a Scenario, found {type(scenario).__name__}; "
                "scenario_files.parse makes scenarios of JSON objects"
            )
        place = f"scenario {number} ({scenario.id!r})"
        offenders.extend(f"{place}, {line}" for line in problems(scenario))
        if scenario.id in seen:
            offenders.append(f"{place}, id: expected a unique id, found it twice")
        seen.add(scenario.id)
    if offenders:
        raise ScenarioError(f"scenarios: {len(offenders)} problems", tuple(offenders))
    return found


def checked_limit(name: str, given: Limit, default: int | None, *, least: int) -> int | None:
    """Return a limit as a number; None: no limit.

    Raises:
        ConfigError: neither an integer of at least `least`, nor "all", nor None.
    """
    if given is None:
        return default
    if given == "all":
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ConfigError(
            f"{name}: expected an integer of at least {least}, 'all' or None, found {given!r}"
        )
    return given


def one_of(name: str, given: T, allowed: Sequence[T]) -> T:
    """Return `given` when it is allowed.

    Raises:
        ConfigError: it is not.
    """
    if given not in allowed:
        alike = near(given, [word for word in allowed if isinstance(word, str)])
        raise ConfigError(f"{name}: expected one of {list(allowed)}, found {given!r}{alike}")
    return given
