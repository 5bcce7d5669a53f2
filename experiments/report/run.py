"""The command `report`: an HTML page of runs, and subcommands that analyse runs.

    python -m experiments.report runs/evaluate-0001 runs/evaluate-0002
    python -m experiments.report compare runs/evaluate-0001 runs/evaluate-0002

A plain command line. Each subcommand is a module of its own, imported on demand.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from amemgym_env.errors import near

COMMANDS = {
    "page": "experiments.report.page.command",
    "compare": "experiments.report.compare",
    "credit": "experiments.report.credit",
    "audit": "experiments.report.user_audit",
    "rescore": "experiments.report.rescore",
    "transcript": "experiments.report.transcript",
}
"""Module of each subcommand, with `main(arguments) -> exit status`; `page` is the default."""


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand that `arguments` begin with, else the page; return the exit status."""
    name, rest = "page", list(arguments)
    if rest and rest[0] in COMMANDS:
        name, rest = rest[0], rest[1:]
    elif rest and not rest[0].startswith("-") and not Path(rest[0]).exists():
        alike = near(rest[0], COMMANDS)
        if alike:
            print(f"error: {rest[0]}: no folder, and no subcommand{alike}", file=sys.stderr)
            return 2
    status: int = importlib.import_module(COMMANDS[name]).main(rest)
    return status


def command() -> None:
    """Run the job with the settings of the command line."""
    sys.exit(main(sys.argv[1:]))
