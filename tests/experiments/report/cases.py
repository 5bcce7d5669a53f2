"""Run folders for the tests of the report, and what its pages hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from amemgym_env.evaluation.results_file import ResultsFile
from experiments.app.pareto import cost
from experiments.app.settings import CONF, checked
from experiments.app.terminal import interval, number, shown
from experiments.evaluate.run import run
from experiments.evaluate.settings import EvaluateSettings


def run_folder(out: Path, *words: str) -> Path:
    """Play an evaluation into a folder, as the job does."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = OmegaConf.to_container(compose("evaluate", overrides=[*words, f"out={out}"]))
    run(checked(EvaluateSettings, composed), quiet=True)  # type: ignore[arg-type]
    return out


def two_runs(root: Path) -> dict[str, Path]:
    """Play two agents that fail in different ways; return their folders by name."""
    return {
        agent: run_folder(root / agent, "scenarios=base", "limit=2", f"agent={agent}")
        for agent in ("awe", "rag")
    }


def results(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    return document


class PageReader(HTMLParser):
    """Reads a page: its tables as rows of texts, its JSON scripts by id, and all its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.scripts: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.pictures: list[str] = []
        """What each picture says to those who do not see it."""
        self._rows: list[list[str]] | None = None
        self._cell = False
        self._script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "svg":
            self.pictures.append(given.get("aria-label") or "")
        if tag == "table" and given.get("data-copy"):
            self._rows = self.tables.setdefault(str(given["data-copy"]), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th") and self._rows is not None:
            self._rows[-1].append("")
            self._cell = True
        elif tag == "script":
            self._script = given.get("id") or "code"

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._rows = None
        elif tag in ("td", "th"):
            self._cell = False
        elif tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        elif self._cell and self._rows is not None:
            self._rows[-1][-1] += data


def read_page(path: Path) -> PageReader:
    reader = PageReader()
    reader.feed(path.read_text("utf-8"))
    reader.close()
    return reader


def numbers_are_those_of(page: PageReader, folders: Sequence[Path]) -> None:
    """Assert that whatever a page shows of results.json stands there: table, data and pictures."""
    entries = json.loads(page.scripts["report-data"])["runs"]
    data = {entry["folder"]: entry["results"] for entry in entries}
    header, *rows = page.tables["Leaderboard"]
    board = {row[0]: row for row in rows}
    costs = {row[0]: row for row in page.tables["Cost a scenario"]}
    for folder in folders:
        truth = results(folder)
        for key, value in data[folder.name].items():
            assert value == truth[key], key
        row = dict(zip(header[3:], board[truth["label"]][3:], strict=True))  # 95 % stands twice
        assert row == {
            "memory": number(truth["memory_score"]),
            "95 %": interval(truth["confidence_interval"]["memory_score"]),
            "of means": number(truth["memory_score_ratio_of_means"]),
            "write": number(truth["failures"]["write"]),
            "read": number(truth["failures"]["read"]),
            "util.": number(truth["failures"]["utilization"]),
            "unattr.": number(truth["failures"]["unattributed"]),
            "lucky": number(truth["lucky"]),
            "unscored": str(truth["unscored"]),
            "users": str(len(truth["scenarios"])),
            "mode": truth["mode"].replace("_", "-"),
            "model": f"simulated: {truth['settings']['backend']['profile']}",
        }
        overall = [number(truth["overall"]), interval(truth["confidence_interval"]["overall"])]
        assert board[truth["label"]][1:3] == overall
        accuracy = f"{truth['label']} {number(truth['overall'])}"
        assert any(accuracy in label for label in page.pictures), accuracy
        spent = cost(ResultsFile.read(folder))
        assert f"{spent.tokens:,.0f}" in costs[truth["label"]][2]
        assert f"{spent.usd:.3f}" in costs[truth["label"]][3]
    for name, value in {"upper bound": truth["upper_bound"], **truth["floors"]}.items():
        assert board[shown(name)][1] == number(value)


HOSTILE = "</script><img src=x onerror=\"document.title='hit'\"><!--"


@cache
def hostile_items() -> str:
    """Return the tiny scenarios as JSON, with markup in names, utterances, values and questions."""
    from importlib import resources

    text = resources.files("amemgym_env").joinpath("scenarios", "tiny.json").read_text("utf-8")
    items = json.loads(text)
    first = items[0]
    variable, values = next(iter(first["state_schema"].items()))
    swapped = json.dumps(first).replace(json.dumps(values[0]), json.dumps(values[0] + HOSTILE))
    swapped = swapped.replace(json.dumps(variable), json.dumps(variable + HOSTILE))
    item = json.loads(swapped)
    item["id"] += HOSTILE
    item["user_profile"]["name"] = HOSTILE
    item["user_profile"]["formatted_str"] += HOSTILE
    for question in item["qas"]:
        question["query"] += HOSTILE
        for choice in question["answer_choices"]:
            choice["answer"] += HOSTILE
    for period in item["periods"]:
        for session in period["sessions"]:
            session["query"] += HOSTILE
    return json.dumps([item])
