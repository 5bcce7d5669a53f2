"""Command line of the page: `python -m experiments.report RUN …`.

Exit status 0 when at least one run could be read (what could not is told on standard error and on
the page), 2 when none could.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from experiments.report.page.html import build, save
from experiments.report.page.runs import load, ranked
from experiments.report.page.scenario_records import scenario_records


def main(arguments: Sequence[str]) -> int:
    """Write the page that a command line asks for; return the exit status."""
    options = _parser().parse_args(arguments)
    folders: list[Path] = options.runs
    runs, warnings, studies, home = load(folders)
    if home is None:
        for text in warnings:
            print(f"error: {text}", file=sys.stderr)
        return 2
    out: Path = options.out or home / "report.html"
    if out.is_dir():
        out = out / "report.html"
    runs = ranked(runs)
    most = max((len(run.document.scenarios) for run in runs), default=0)
    records = list(
        track(
            scenario_records(runs, warnings, options.scenarios),
            "reading journals",
            total=most,
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
    )
    for text in warnings:
        print(f"warning: {text}", file=sys.stderr)
    # The page may be passed on: it names folders, not where they lie on this machine.
    paths = [*folders, *(run.path for run in runs)]
    shown = [_without_parents(text, paths) for text in warnings]
    for run in runs:
        for note in run.notes:
            print(f"note: {run.name}: {note}", file=sys.stderr)
        run.notes = [_without_parents(note, paths) for note in run.notes]
    page = build(runs, records, shown, f"{out.stem}_data", studies)
    files = save(page, out, options.pictures)
    print(f"written to {files[0]}")
    if page.beside:
        beside = out.parent / f"{out.stem}_data"
        print(f"  and {len(page.beside)} files in {beside}: keep them beside it")
    if options.pictures:
        print(f"  and {len(page.pictures)} pictures in {out.parent / f'{out.stem}_pictures'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.report",
        description="Writes one HTML page that shows runs: scores, failures, cost, and an "
        "inspector of every value, from the utterance that gave it away to the answer.",
        epilog="Other reports: compare, credit, audit (each with --help).",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="a run's folder, a sweep's, or an agent's result folder of the benchmark's own code",
    )
    parser.add_argument("--out", type=Path, help="the page; default: report.html in the first RUN")
    parser.add_argument(
        "--pictures", action="store_true", help="write the pictures as SVG files too"
    )
    parser.add_argument(
        "--scenarios", help="the set that was played, where it is not where the settings say"
    )
    return parser


def _without_parents(text: str, paths: Sequence[Path]) -> str:
    for path in sorted(paths, key=lambda one: -len(str(one))):
        text = text.replace(str(path), path.name)
    return text
