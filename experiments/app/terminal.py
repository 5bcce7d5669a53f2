"""Terminal tables, 80 columns wide: agents as rows, with the floors below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from amemgym_env.evaluation.results_file import ResultsFile

WIDTH = 80

MEANINGS = {
    "upper_bound": "the same model, given the true values",
    "one_period_late": "an oracle: answers with the true values of the previous period",
    "random": "a uniform guess",
    "first_shown": "always the first choice as shown",
    "first_stored": "always the first choice as the file has it",
    "longest": "always the longest choice",
    "choice_only": "a classifier that sees nothing but the choices",
    "initial_state": "the values of period 0 for ever",
    "never_write": "the same model, and a memory that stays empty",
}
"""Explanations of the rows below the agents, in order."""

ORACLE = "one_period_late"
"""The one row that is an oracle, not a floor: it needs the true values."""
NAMES = {ORACLE: "previous period's truth (oracle)"}
"""Names of rows that differ from their keys."""
ORACLE_NOTE = "The oracle answers with the previous period's true values; it is not a floor."


def terminal(width: int | None = WIDTH) -> Console:
    """Return the terminal, with texts as they are: `set:100:3` is no emoji, `[a]` no markup.

    Without a width long lines are left to the terminal, so that paths can be copied.
    """
    soft = width is None
    return Console(width=width, soft_wrap=soft, highlight=False, markup=False, emoji=False)


def plain_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: a first column of text and further columns of numbers."""
    table = Table(
        title=title, title_justify="left", width=WIDTH, box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column(columns[0], ratio=1, min_width=16, overflow="fold")
    for name in columns[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def comparison(runs: Sequence[ResultsFile]) -> Table:
    """Return agents as rows, best memory score first, and the floors of the first below them."""
    ranked = sorted(runs, key=_rank)
    columns = ("agent", "overall", "95 %", "memory", "95 %", "write", "read", "util.")
    table = plain_table(*columns, title=title(ranked[0]))
    table.columns[0].overflow = "ellipsis"
    for run in ranked:
        intervals, failures = run.confidence_interval, rates(run.failures)
        table.add_row(
            _label(run),
            number(run.overall),
            interval(intervals["overall"]),
            number(run.memory_score),
            interval(intervals["memory_score"]),
            *(number(failures[name]) for name in ("write", "read", "utilization")),
        )
    table.add_section()
    for name, value in references(ranked[0]):
        table.add_row(shown(name), number(value), style="dim")
    return table


def shown(name: str) -> str:
    """Return the name of a row as tables show it."""
    return NAMES.get(name, name.replace("_", " "))


def rates(failures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the rates of failures; none where no probe attributed any, as without diagnosis."""
    known = any(value for name, value in failures.items() if name != "unattributed")
    blind = not known and bool(failures.get("unattributed"))
    return {
        name: None if blind and name != "unattributed" else value
        for name, value in failures.items()
    }


def references(run: ResultsFile) -> list[tuple[str, float | None]]:
    """Return what agents are compared with, by name: upper bound, oracle, floors."""
    found = {"upper_bound": run.upper_bound, **run.floors}
    order = [*MEANINGS, *found]
    return sorted(found.items(), key=lambda item: order.index(item[0]))


def title(run: ResultsFile) -> str:
    """Return what was played, and by which kind of model."""
    settings = run.settings
    name = PurePath(str(settings.get("scenarios", "given"))).name
    played = f"{len(run.scenarios)} scenarios ({name})"
    if run.simulated:
        profile = settings.get("backend", {}).get("profile", "")
        return f"{played}\nSIMULATED model ({profile}): not a real model's scores"
    return f"{played}\nmodel {settings.get('backend', {}).get('model', 'given')}"


def notes(run: ResultsFile) -> list[str]:
    """Return notes on the scores, one line each."""
    lines = without_score(run)
    if run.causes:
        lines.append("wrong without a choice" + _by_cause(run.causes))
    if run.upper_bound is None:
        asked = run.settings.get("upper_bound", False)
        why = "no scored cell has an upper bound" if asked else "no upper bound was asked"
        lines.append(f"{why}, so there is no memory score")
    elif run.without_memory_score:
        lines.append(f"{run.without_memory_score} user-periods have no memory score")
    unattributed = run.failures["unattributed"]
    if unattributed:
        lines.append(f"failures that no probe attributes: {number(unattributed)}")
    share = run.retrieved_share
    if share is not None and share >= 0.9 and _chooses(run):
        lines.append(f"{share:.0%} of the memory is retrieved: top_k leaves next to nothing out")
    recall = run.index_recall
    if recall is not None:
        lines.append(f"the approximate index found {recall:.1%} of the nearest entries")
    if run.unreadable_calls:
        lines.append("unreadable replies" + _by_cause(run.unreadable_calls))
    lines += [f"scenario {name!r}: {error}" for name, error in run.errors.items()][:5]
    if run.stopped:
        lines.append(f"stopped: {run.stopped}")
    return lines


def without_score(run: ResultsFile) -> list[str]:
    """Return what could not be asked, and why: a line for cells, calls and follow-ups each."""
    lines = []
    if run.unscored:
        text = f"{run.unscored} cells unscored (not counted as wrong)"
        lines.append(text + _by_cause(run.unscored_causes))
    if run.failed_calls:
        text = f"{run.failed_calls} calls failed for good"
        text += _by_cause(run.failed_call_causes)
        lines.append(f"{text}; the same command asks them again")
    if run.cut_prompts:
        lines.append(
            f"{run.cut_prompts} prompts were cut by the provider, by its token counts; enlarge its "
            "window (docs/real-models.md)"
        )
    if run.follow_up_failures:
        lines.append(
            f"{run.follow_up_failures} follow-ups of the user model failed; the script's "
            "words took their place for good"
        )
    return lines


def _by_cause(counts: Mapping[str, int] | None) -> str:
    return ": " + ", ".join(f"{n} {name}" for name, n in counts.items()) if counts else ""


def _chooses(run: ResultsFile) -> bool:
    """Whether the agent means to see a part of its memory, not all of it."""
    return bool(run.settings.get("agent", {}).get("top_k", -1) > 0)


def print_comparison(runs: Sequence[ResultsFile], console: Console | None = None) -> None:
    """Print the table and its notes."""
    console = console or terminal()
    console.print(comparison(runs))
    if ORACLE in runs[0].floors:
        console.print(ORACLE_NOTE, style="dim")
    for run in runs:
        for line in notes(run):
            prefix = f"{_label(run)}: " if len(runs) > 1 else ""
            console.print(f"{prefix}{line}", style="yellow", markup=False)


def number(value: float | None, digits: int = 3) -> str:
    """Return a score without its leading zero; a dash where there is none."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def interval(pair: Sequence[float | None]) -> str:
    """Return an interval as low-high with two digits; a dash where there is none."""
    return "-" if None in pair else "-".join(number(bound, 2) for bound in pair)


def _label(run: ResultsFile) -> str:
    return f"{run.label}{' (external)' if run.memory == 'external' else ''}"


def _rank(run: ResultsFile) -> tuple[float, float, str]:
    memory, overall = run.memory_score, run.overall
    return (-(memory if memory is not None else -9), -(overall or 0.0), run.label)


def signed(value: float) -> str:
    """Return a difference with its sign and without the leading zero."""
    return f"{value:+.3f}".replace("0.", ".", 1)
