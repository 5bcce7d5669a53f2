"""Records of the inspector, read from the journals of all runs, one scenario at a time.

Only one scenario's journals are in memory at a time. What each run's journals say is kept on the
run as results, which the measures by period and position need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from amemgym_env.errors import InputError, RunError
from amemgym_env.evaluation.scenario_result import scenario_result
from amemgym_env.models.events import Event, StartEvent
from amemgym_env.models.journal import FileJournal
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.script import Script
from experiments.report.page.inspector import Record, play, truth
from experiments.report.page.runs import Run, scripts


class ScenarioRecord(NamedTuple):
    """One scenario of the inspector."""

    key: str
    """A safe and unique name for a file."""
    title: str
    content: str
    """JSON: {truth, plays by run name}."""
    first: list[int]
    """[variable, period] of the first failure."""


def scenario_records(
    runs: Sequence[Run], warnings: list[str], scenarios: str | None = None
) -> Iterator[ScenarioRecord]:
    """Yield a record for each script that a run was played with; `warnings` grows.

    Runs share a record where they played the same script, and can be put side by side there.
    """
    played: dict[str, tuple[Script, list[Run]]] = {}
    for run in runs:
        if run.origin != "amemgym_env":
            continue
        try:
            found = scripts(run, scenarios)
        except InputError as error:
            warnings.append(
                f"{run.name}: not in the inspector: {str(error).splitlines()[0]}; "
                "--scenarios names the set that it was played on"
            )
            continue
        for script in found.values():
            played.setdefault(script.key, (script, []))[1].append(run)
    failed: dict[tuple[str, str], list[str]] = {}
    ids = [script.scenario.id for script, _ in played.values()]
    for key, (script, players) in played.items():
        plays = {}
        for run in players:
            try:
                plays[run.name] = _play(run, script)
            except (InputError, KeyError, TypeError, ValueError, IndexError) as error:
                failed.setdefault((run.name, _reason(error)), []).append(script.scenario.id)
        if plays:
            many = ids.count(script.scenario.id) > 1
            yield _record(script, plays, key if many else None)
    for (run_name, reason), names in failed.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        warnings.append(f"{run_name}: scenario {names[0]!r}{more} not in the inspector: {reason}")


def _play(run: Run, script: Script) -> Record:
    name = script.scenario.id
    journal = FileJournal(run.journals / f"{slug(name)}.jsonl")
    if not journal.path.exists():
        raise RunError("its journal is missing")
    events = journal.read()
    _check(events, script)
    result = scenario_result(script, events)
    expected = run.document.accuracy[name]
    told = [[None if cell != cell else cell for cell in row] for row in result.accuracy.tolist()]
    if told != expected:
        raise RunError(
            "its journal does not give the scores of results.json; the folder is mixed from "
            "several runs, or the run goes on"
        )
    made = play(script, result, events)
    run.results[name] = result
    return made


def _check(events: Sequence[Event], script: Script) -> None:
    starts = [event for event in events if isinstance(event, StartEvent)]
    if not starts:
        raise RunError("its journal is empty")
    if any(event.script != script.key for event in starts):
        raise RunError("its journal is of another script (other settings, or the set has changed)")


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error).splitlines()[0]
    return f"its journal is damaged ({type(error).__name__}: {error})"


def _record(script: Script, plays: dict[str, Record], key: str | None) -> ScenarioRecord:
    scenario = script.scenario
    name = str(scenario.user_profile.get("name") or "")
    title = f"{name}, {scenario.id[:12]}" if name and name not in scenario.id else scenario.id
    if key is not None:
        title += f" (seed {script.seed}, {script.difficulty.name})"
    file = slug(scenario.id) + ("" if key is None else f"-{key[:8]}")
    content = json.dumps({"truth": truth(script), "plays": plays}, separators=(",", ":"))
    return ScenarioRecord(file, title, content, _first(next(iter(plays.values()))["cells"]))


def _first(cells: Sequence[str]) -> list[int]:
    for wanted in ("WRU", "K"):
        for variable, row in enumerate(cells):
            for period, letter in enumerate(row):
                if letter in wanted:
                    return [variable, period]
    return [0, 0]
