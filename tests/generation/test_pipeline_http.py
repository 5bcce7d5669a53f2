"""The generation job against a local model server with faults: what comes out, and the bill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.generation.offline.settings import BASE
from amemgym_env.generation.pipeline.mock_model import MockModel
from amemgym_env.scenarios import files as scenario_files
from experiments.app.settings import CONF, LitellmBackend
from experiments.generate import run as generate
from tests.experiments.generate.test_generate import settings
from tests.generation.cases import valid
from tests.generation.server import FAULTS, GenerationServer
from tests.support.chat_server import Behaviour, Faults

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GenerationServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-CANARY")
    with GenerationServer(Behaviour(), MockModel(clumsy=0.1)) as running:
        yield running


def job_settings(server: GenerationServer, **given: Any) -> dict[str, Any]:
    backend = {
        "name": "litellm", "model": "openai/gpt-4.1-mini", "api_base": server.address,
        "timeout": 2.0, "first_delay": 0.01,
    }  # fmt: skip
    shape = {"periods": 2, "questions": 3, "changes_per_period": 2}
    made = {"source": "model", "n": 3, "repairs": 6, "out": "my.json"}
    return settings(**{**shape, **made, "backend": backend, **given})


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("my.json.calls/report.json").read_text("utf-8"))
    return found


def test_with_faults_on_a_third_of_the_calls_all_scenarios_come_out_and_all_calls_are_accounted(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behaviour.faults = Faults(1 / 3, FAULTS)
    generate.main(job_settings(server))
    printed = capsys.readouterr().out
    assert "written to my.json: 3 of 3 scenarios" in printed
    found = scenario_files.load("my.json")
    assert len(found) == 3
    shape = replace(BASE, periods=2, questions=3, changes_per_period=2)
    for scenario in found:
        valid(scenario, shape)
    assert set(server.faults) == set(FAULTS)
    hits = sum(server.hits.values())
    assert 0.2 < server.faults.total() / hits < 0.45
    bill = report()["bill"]
    # On a busy machine an attempt may also time out by itself, before the server has seen it.
    slow = bill["retries"]["calls"] - server.faults["hang"] - server.faults["server_error"]
    assert 0 <= sum(usage["calls"] for usage in bill.values()) - hits <= slow
    assert bill["generation"]["usd"] > 0
    faulty = Path("my.json").read_bytes()
    everything = [path.read_text("utf-8") for path in Path("my.json.calls").iterdir()]
    assert "CANARY" not in printed + "".join(everything) + faulty.decode()
    # Without a fault the same scenarios come out; and a rerun asks nothing.
    server.behaviour.faults = Faults()
    generate.main(job_settings(server))
    assert sum(server.hits.values()) == hits
    Path("my.json").unlink()
    generate.main(job_settings(server, out="other.json"))
    assert Path("other.json").read_bytes() == faulty


def test_fewer_than_n_end_with_status_1_and_none_write_no_file(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behaviour.faults = Faults(1.0, ("refused",), ())
    with pytest.raises(SystemExit) as caught:
        generate.main(job_settings(server, n=1, repairs=1))
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "questions: no reply of 2 could be used; the last: it was refused" in printed
    assert "nothing was written: 0 of 1 scenarios" in printed
    assert not Path("my.json").exists()
    assert report()["failed"][0]["step"] == "questions"


def test_a_spent_budget_stops_and_more_continues(server: GenerationServer) -> None:
    given = job_settings(server, n=2)
    with pytest.raises(SystemExit) as caught:
        generate.main({**given, "backend": {**given["backend"], "budget_tokens": 3000}})
    assert caught.value.code == 1
    assert "budget_tokens=3000" in report()["stopped"]
    hits = sum(server.hits.values())
    generate.main(given)
    assert report()["stopped"] is None
    assert sum(u["calls"] for u in report()["bill"].values()) >= sum(server.hits.values()) > hits


def test_an_audit_with_a_judge_shows_its_figures_and_asks_once(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = job_settings(server)["backend"]
    given = settings(audit="train:1", judge_sample=5, judge_backend=backend, out="ratings.jsonl")
    generate.main(given)
    printed = capsys.readouterr().out
    assert "exposure, rated by the judge" in printed
    assert "5 rated, 0 not; v1.base as rated by people" in printed
    hits = sum(server.hits.values())
    assert hits == 15
    generate.main(given)
    assert sum(server.hits.values()) == hits


@pytest.mark.skipif(os.name != "posix", reason="nothing is killed like this elsewhere")
def test_a_killed_process_costs_what_was_under_way_and_the_same_file_comes_out(
    server: GenerationServer,
) -> None:
    backend = {**job_settings(server)["backend"], "seed": 0}  # as the command's own is
    generate.main(job_settings(server, out="whole.json", backend=backend))
    whole = sum(server.hits.values())
    shape = ["periods=2", "questions=3", "changes_per_period=2", "n=3", "repairs=6"]
    model = ["backend.model=openai/gpt-4.1-mini", f"backend.api_base={server.address}"]
    command = [sys.executable, "-m", "experiments.generate", "source=model", "out=my.json"]
    root = {**os.environ, "PYTHONPATH": str(CONF.parent)}
    with subprocess.Popen([*command, *shape, *model], env=root, stderr=subprocess.DEVNULL) as first:
        while sum(server.hits.values()) < whole + whole // 2 and first.poll() is None:
            time.sleep(0.005)
        first.kill()
    assert first.returncode == -signal.SIGKILL
    assert not Path("my.json").exists()
    generate.main(job_settings(server, backend=backend))
    assert Path("my.json").read_bytes() == Path("whole.json").read_bytes()
    assert {path.suffix for path in Path().iterdir()} == {".json", ".calls"}
    assert sum(usage["calls"] for usage in report()["bill"].values()) == whole
    under_way = LitellmBackend(name="litellm", model="").max_concurrency
    assert sum(server.hits.values()) <= 2 * whole + under_way


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"backend": {"name": "litellm", "model": ""}}, "backend.model: expected a litellm model"),
        ({"personas": "none.csv"}, "found none at 'none.csv'"),
        ({"changes_per_period": 9}, "9 changes a period are more than the 3 questions x 2"),
        ({"n": 601}, "n=601 scenarios, each of its own persona, are more than the 600"),
        ({"spare_questions": -1}, "spare_questions: expected at least 0, found -1"),
        ({"language": " "}, "language: expected the name of a language"),
        ({"source": "library"}, "backend.model: expected source=model with it"),
        ({"backend": {"name": "simulated"}}, "backend.name"),
    ],
    ids=["model", "file", "changes", "people", "spare", "language", "library", "simulated"],
)
def test_wrong_settings_are_refused_before_anything_is_asked(
    server: GenerationServer, wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        generate.main(job_settings(server, **wrong))
    assert expected in str(caught.value)
    assert not list(Path().iterdir())
    assert not server.hits


def test_a_dry_run_shows_an_estimate_and_asks_nothing(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    generate.main(job_settings(server, dry_run=True))
    printed = capsys.readouterr().out
    assert printed.startswith("estimate for 3 scenarios, rehearsed offline")
    assert "dollars" in printed.splitlines()[-1]
    assert not server.hits
    assert not list(Path().iterdir())


@pytest.mark.evidence
def test_twenty_base_scenarios_come_out_of_a_server_that_fails_a_third_of_its_calls(
    server: GenerationServer,
) -> None:
    server.behaviour.faults = Faults(1 / 3, FAULTS)
    shape = {"periods": None, "questions": None, "changes_per_period": None}
    generate.main(job_settings(server, n=20, workers=20, **shape))
    found = scenario_files.load("my.json")
    assert len(found) == 20
    for scenario in found:
        valid(scenario, BASE)
    bill = report()["bill"]
    slow = bill["retries"]["calls"] - server.faults["hang"] - server.faults["server_error"]
    assert 0 <= sum(usage["calls"] for usage in bill.values()) - sum(server.hits.values()) <= slow
