"""Assembly of the page: sections, data, styles and scripts in one self-contained file.

Above `MOST_INLINE` scenarios their records are in script files next to the page, one each, which
the page loads when a reader asks for them; so it opens as quickly with a thousand scenarios.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.version import VERSION
from experiments.app.run_folder import write
from experiments.report.page.measures import measure
from experiments.report.page.runs import Run
from experiments.report.page.scenario_records import ScenarioRecord
from experiments.report.page.sections import Section, sections
from experiments.report.page.training_runs import Study

HERE = Path(__file__).parent / "static"
STYLES = ("charts.css", "page.css", "inspector.css")
SCRIPTS = (
    "dom.js",
    "theme.js",
    "tables.js",
    "history.js",
    "grid.js",
    "detail.js",
    "dialogue.js",
    "inspector.js",
)
MOST_INLINE = 50


class Page(NamedTuple):
    """A page and its accompanying files, by name."""

    html: str
    beside: Mapping[str, str]
    pictures: Mapping[str, str]


def build(
    runs: Sequence[Run],
    records: Iterable[ScenarioRecord],
    warnings: Sequence[str],
    folder_name: str,
    studies: Sequence[Study] = (),
    most_inline: int = MOST_INLINE,
) -> Page:
    """Return the page of some runs. `records` are read before anything is measured."""
    scenarios = list(records)
    measured = [(run, measure(run)) for run in runs]
    parts = sections(measured, studies)
    inline = len(scenarios) <= most_inline
    beside = {}
    entries = []
    for record in scenarios:
        file = None if inline else f"{folder_name}/{record.key}.js"
        if file is not None:
            call = f"amemgymRecord({json.dumps(record.key)}, {in_script(record.content)});"
            beside[file] = call
        entries.append({"key": record.key, "title": record.title, "file": file})
    data = {
        "runs": [
            {"name": run.name, "folder": run.path.name, "results": _summary(run)} for run in runs
        ],
        "scenarios": entries,
        "first": scenarios[0].first if scenarios else [0, 0],
    }
    style = "\n".join((HERE / name).read_text("utf-8") for name in STYLES)
    code = "\n".join((HERE / name).read_text("utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{code}\n}})();'
    html = _filled(
        (HERE / "page.html").read_text("utf-8"),
        {
            "policy": _policy(script),
            "title": escape(_title([run.name for run in runs] or [one.name for one in studies])),
            "style": style,
            "badge": _badge(runs),
            "navigation": _navigation(parts, bool(scenarios), bool(runs)),
            "warnings": _warnings(runs, warnings),
            "sections": "\n".join([*map(_section, parts), _inspector(scenarios), _settings(runs)]),
            "version": VERSION,
            "data": in_script(json.dumps(data)),
            "scenarios": "\n".join(
                f'<script type="application/json" id="scenario-{number}">'
                f"{in_script(record.content)}</script>"
                for number, record in enumerate(scenarios)
                if inline
            ),
            "script": script,
        },
    )
    pictures = {name: _file(svg) for part in parts for name, svg in part.pictures.items()}
    return Page(html, beside, pictures)


def save(page: Page, out: Path, pictures: bool) -> list[Path]:
    """Write a page and its accompanying files; return the files, the page first."""
    files = [write(out, page.html)]
    files += [write(out.parent / name, text) for name, text in page.beside.items()]
    if pictures:
        folder = out.parent / f"{out.stem}_pictures"
        files += [write(folder / f"{name}.svg", svg) for name, svg in page.pictures.items()]
    return files


def in_script(content: str) -> str:
    """Return JSON that cannot end its script element."""
    return (
        content.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Fill a template in a single pass, so that braces in content are content."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _policy(script: str) -> str:
    """Return a policy under which nothing runs but the page's own script, and nothing is fetched.

    Record files next to the page are `file:` or the page's own origin; texts of scenarios cannot
    become code even if a browser read them as markup.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        f"form-action 'none'; script-src 'sha256-{digest}' 'self' file:"
    )


def _summary(run: Run) -> dict[str, Any]:
    cells = {"accuracy", "upper_bound_accuracy", "failure"}
    return {key: value for key, value in run.document.to_json().items() if key not in cells}


def _title(names: Sequence[str]) -> str:
    return f"AMemGym-env report: {', '.join(names[:4])}{', …' if len(names) > 4 else ''}"


def _badge(runs: Sequence[Run]) -> str:
    simulated = [run.name for run in runs if run.document.simulated]
    if not simulated:
        return ""
    which = "" if len(simulated) == len(runs) else f" ({', '.join(simulated)})"
    return f'<p class="badge">SIMULATED model{escape(which)}: not a real model\'s scores</p>'


def _navigation(parts: Sequence[Section], inspector: bool, runs: bool) -> str:
    entries = [(part.key, part.title) for part in parts]
    entries += [("inspector", "Inspector")] if inspector else []
    entries += [("settings", "Settings")] if runs else []
    return "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in entries)


def _warnings(runs: Sequence[Run], warnings: Sequence[str]) -> str:
    lines = [*warnings, *(f"{run.name}: {note}" for run in runs for note in run.notes)]
    if not lines:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in lines)
    return f'<div class="warnings"><strong>To be known</strong><ul>{items}</ul></div>'


def _section(part: Section) -> str:
    title = escape(part.title)
    return f'<section id="{part.key}" aria-label="{title}"><h2>{title}</h2>{part.body}</section>'


def _inspector(scenarios: Sequence[ScenarioRecord]) -> str:
    if not scenarios:
        return ""
    parts = "".join(
        f'<div id="inspector-{name}"></div>' for name in ("controls", "grids", "detail", "dialogue")
    )
    return (
        '<section id="inspector" aria-label="Inspector"><h2>Inspector</h2><p>Each row is a state '
        "variable, each column a period. Choose a cell (click, or arrow keys and Enter) to see who "
        "said the value, what was written, what was found at the exam, and why it counts.</p>"
        f'<div id="inspector-root">{parts}</div></section>'
    )


def _settings(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    shown = "".join(
        f"<details><summary>{escape(run.name)}</summary><pre>"
        f"{escape(json.dumps(run.document.settings, indent=1, ensure_ascii=False))}</pre></details>"
        for run in runs
    )
    return f'<section id="settings" aria-label="Settings"><h2>Settings</h2>{shown}</section>'


def _file(svg: str) -> str:
    """Return a picture as a file of its own: with its colours and a background."""
    style = (HERE / "charts.css").read_text("utf-8")
    ground = '<rect class="backdrop" width="100%" height="100%"/>'
    opening, rest = svg.split(">", 1)
    return f"{opening}><style>{style}</style>{ground}{rest}"
