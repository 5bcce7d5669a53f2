"""Faults of transport and of content change what they must, and nothing else.

The same checks play the tiny set, and as evidence all twenty users of `v1.base`:
`pytest -m evidence tests/test_faults.py -s` prints what docs/real-models.md tells.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.events import ExamEvent, StartEvent
from amemgym_env.models.journal import FileJournal
from experiments.app.terminal import notes
from tests.support.chat_server import CONTENT, TRANSPORT, Faults, ModelServer
from tests.support.cli import calls, command, compared, finished, results

pytestmark = pytest.mark.filterwarnings("ignore")

REASONS: Final = {"rate_limit", "server_error", "disconnect", "timeout"}
UNREAD = tuple(name for name in CONTENT if name != "blocks")
"""Faults that leave nothing to read; of blocks the text is read."""
NO_CHOICE: Final = {"empty", "filtered", "unreadable", "context_exceeded", "no_answer"}


class Checked:
    """The runs of one set of scenarios, each in a folder of its own."""

    def __init__(self, server: ModelServer, folder: Path, scenarios: str, *more: str) -> None:
        self.server, self.folder, self.scenarios = server, folder, scenarios
        self.more = ("agent=native", "backend.first_delay=0.001", *more)

    def words(self, name: str, *more: str) -> list[str]:
        out = self.folder / name
        return command(self.server, out, *self.more, *more, scenarios=self.scenarios)

    def run(self, name: str, *more: str, faults: Faults | None = None) -> dict[str, Any]:
        """Play, or continue, under faults."""
        self.server.behaviour.faults = faults or Faults()
        finished(self.words(name, *more))
        return results(self.folder / name)

    def told(self, name: str, document: dict[str, Any]) -> None:
        kept = ("overall", "unscored", "unscored_causes", "failed_calls", "causes")
        figures = {key: document[key] for key in kept}
        attempts = document["usage"].get("retries", {"calls": 0})["calls"]
        print(f"{name}: {figures}, failed attempts {attempts}")


def cells(document: dict[str, Any]) -> list[float | None]:
    return [cell for rows in document["accuracy"].values() for row in rows for cell in row]


def unpaid(document: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what failed attempts cost."""
    usage = {role: part for role, part in document["usage"].items() if role != "retries"}
    return compared({**document, "usage": usage})


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the follow-ups that failed: the script's words took their place."""
    usage = {role: part for role, part in unpaid(document)["usage"].items() if role != "user"}
    return {**unpaid(document), "usage": usage, "follow_up_failures": None}


def check_transport(runs: Checked, count: int) -> None:
    faults = Faults(1 / 3, TRANSPORT)
    clean = runs.run("clean")
    assert clean["unscored"] == clean["failed_calls"] == 0
    assert len(cells(clean)) == count
    many = runs.run("many-retries", "backend.retries=9", faults=faults)
    runs.told("clean", clean)
    runs.told("retries=9", many)
    assert many["usage"]["retries"]["calls"] > count / 10
    assert cells(many) == cells(clean)
    assert unpaid(many) == unpaid(clean)

    few = runs.run("few-retries", "backend.retries=1", faults=faults)
    runs.told("retries=1", few)
    known = [(got, right) for got, right in zip(cells(few), cells(clean), strict=True)]
    assert all(got == right for got, right in known if got is not None)
    assert few["unscored"] == cells(few).count(None) == sum(few["unscored_causes"].values()) > 0
    assert few["unscored_causes"].keys() <= REASONS
    assert few["failed_calls"] == sum(few["failed_call_causes"].values()) > 0
    told = " ".join(notes(ResultsFile.of(few)))
    assert all(f"{count} {name}" in told for name, count in few["unscored_causes"].items())
    made = calls(runs.folder / "few-retries")
    runs.server.hits.clear()
    again = runs.run("few-retries", "backend.retries=1")
    runs.told("resumed", again)
    assert settled(again) == settled(clean)
    total = calls(runs.folder / "few-retries")
    assert set(total.values()) == {1}  # nothing that had been answered was asked again
    assert sum(runs.server.hits.values()) == len(total) - len(made)


def check_content(runs: Checked, count: int) -> None:
    # The upper bound and the floor of no memory are asked in the same words: not asked here.
    clean = runs.run("unbounded", "upper_bound=false")
    runs.server.faults.clear()
    faults = Faults(0.3, UNREAD, calls=["exam_answer"])
    faulty = runs.run("content", "upper_bound=false", faults=faults)
    runs.told("content faults in 3 of 10 exam calls", faulty)
    print(f"served: {dict(runs.server.faults)}")
    marred = causes(runs.folder / "content", faulty)
    assert len(marred) == count
    # Every marred reply was asked for once, and is counted once.
    assert sum(runs.server.faults.values()) == sum(faulty["causes"].values()) > 0
    assert Counter(cause for cause in marred if cause) == faulty["causes"]
    assert faulty["causes"].keys() <= NO_CHOICE
    assert faulty["unscored"] == faulty["failed_calls"] == 0
    assert "retries" not in faulty["usage"]
    assert cells(faulty) == [
        right if cause is None else 0.0 for right, cause in zip(cells(clean), marred, strict=True)
    ]


def causes(out: Path, document: dict[str, Any]) -> list[str | None]:
    """Return why each cell has no choice, in the order of `cells`; None: it has one."""
    found: dict[str, list[str | None]] = {}
    for path in out.glob("journals/*.jsonl"):
        events = FileJournal(path).read()
        rows = [event.causes for event in events if isinstance(event, ExamEvent)]
        scenario = next(event.scenario for event in events if isinstance(event, StartEvent))
        found[scenario] = [cause for row in rows for cause in row]
    return [cause for name in document["accuracy"] for cause in found[name]]


@pytest.fixture
def tiny_runs(tmp_path: Path) -> Any:
    with ModelServer(scenarios="tiny") as server:
        yield Checked(server, tmp_path, "tiny", "backend.timeout=0.5")


@pytest.fixture
def real_runs(tmp_path: Path, real_data: Path) -> Any:
    more = ("backend.timeout=5", "backend.max_concurrency=64", "backend.processes=2")
    with ModelServer(scenarios=str(real_data), profile="calibrated") as server:
        yield Checked(server, tmp_path, str(real_data), *more)


def test_transport_faults_cost_attempts_or_scores_but_never_change_one(tiny_runs: Checked) -> None:
    check_transport(tiny_runs, len(cells(tiny_runs.run("clean"))))


def test_content_faults_in_exams_are_wrong_by_cause_and_nothing_else_changes(
    tiny_runs: Checked,
) -> None:
    check_content(tiny_runs, len(cells(tiny_runs.run("clean"))))


@pytest.mark.evidence
def test_transport_faults_on_all_users_of_the_benchmark(real_runs: Checked) -> None:
    check_transport(real_runs, 2_200)


@pytest.mark.evidence
def test_content_faults_on_all_users_of_the_benchmark(real_runs: Checked) -> None:
    check_content(real_runs, 2_200)
