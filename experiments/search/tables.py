"""Closing tables of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from experiments.app.terminal import WIDTH, number, signed, terminal


def print_search(document: Mapping[str, Any]) -> None:
    """Print how many candidates were tried, the finalists, and what the chosen one is worth."""
    console = terminal()
    states = Counter(trial["state"] for trial in document["trials"])
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    table = Table(
        title=f"{document['candidates']} candidates tried{f' ({told})' if told else ''}; "
        "best on train, as validation sees them",
        title_justify="left",
        width=WIDTH,
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("setting", ratio=1, overflow="fold")
    for name in ("train", "validation", "chosen"):
        table.add_column(name, justify="right", no_wrap=True)
    for item in document["finalists"]:
        chosen = "*" if item["words"] == document["chosen"] else ""
        words = " ".join(word.removeprefix("agent.") for word in item["words"])
        table.add_row(words, number(item["train"][0]), number(item["validation"]), chosen)
    console.print(table)
    for trial in document["trials"]:
        if trial["error"]:
            console.print(f"trial {trial['number']}: {trial['error']}", style="yellow")
    test = document["test"]
    if test is not None:
        low, high = test["interval"]
        bounds = "no interval" if low is None else f"95 %: {signed(low)} to {signed(high)}"
        console.print(
            f"test, {test['scenarios']} scenarios, looked at {test['looks']} time(s): chosen "
            f"{number(test['chosen'])}, default {number(test['default'])}, difference "
            f"{signed(test['difference'])} ({bounds})"
        )
    console.print(f"written to {document['folder']}", markup=False)
