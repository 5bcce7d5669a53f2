"""Ctrl-C, a second process and places that cannot be written to: told in one line, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.journal import FileJournal
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.app.terminal import notes
from experiments.evaluate.run import run
from experiments.evaluate.settings import EvaluateSettings
from experiments.report.transcript import of_run
from tests.support.chat_server import Behaviour, Faults, ModelServer
from tests.support.cli import ROOT, calls, command, compared, environment, finished, results

pytestmark = pytest.mark.filterwarnings("ignore")


def started(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "experiments.evaluate", *words],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def written(out: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in out.glob("journals/*.jsonl"))


def until(out: Path, lines: int) -> None:
    """Wait until a run has written so much."""
    deadline = time.monotonic() + 120
    while written(out) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_c_begins_no_further_call_scores_what_is_there_and_can_be_continued(
    tmp_path: Path,
) -> None:
    with ModelServer(Behaviour(latency=0.15), scenarios="tiny") as server:
        finished(command(server, tmp_path / "whole"))
        out = tmp_path / "run"
        words = command(server, out, "backend.max_concurrency=2")
        child = started(words)
        until(out, 12)
        sent = sum(server.hits.values())
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        assert child.returncode == 130
        assert "Traceback" not in said
        assert "stopped by Ctrl-C; the same command continues" in said
        # Two were under way; one more may have begun while the signal was on its way.
        assert sum(server.hits.values()) - sent <= 4
        half = results(out)
        assert half["stopped"].startswith("Ctrl-C")
        assert half["unscored"] == sum(half["unscored_causes"].values()) > 0
        assert half["unscored_causes"].keys() <= {"stopped", "not_played"}
        finished(words)
    assert compared(results(out)) == compared(results(tmp_path / "whole"))
    assert set(calls(out).values()) == {1}


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_attempts_that_are_yet_to_come(tmp_path: Path) -> None:
    with ModelServer(scenarios="tiny") as server:
        server.behaviour.faults = Faults(1.0, ("rate_limit",))
        server.behaviour.retry_after = "100"
        out = tmp_path / "run"
        child = started(command(server, out, "backend.retries=9"))
        deadline = time.monotonic() + 60
        while not server.hits:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        child.communicate(timeout=60)
        assert time.monotonic() - begun < 20
        assert child.returncode == 130
    assert results(out)["stopped"].startswith("Ctrl-C")


@pytest.mark.slow
def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with ModelServer(Behaviour(latency=0.2), scenarios="tiny") as server:
        out = tmp_path / "run"
        words = command(server, out)
        first = started(words)
        until(out, 4)
        second = started(words)
        _, said = second.communicate(timeout=60)
        assert second.returncode == 2
        assert f"out={out}: expected to be the only writer, found another process" in said
        first.communicate(timeout=120)
        assert first.returncode == 0
    assert set(calls(out).values()) == {1}
    assert not list(out.glob("*.lock"))


def test_an_embedding_that_is_away_from_the_start_leaves_all_unscored(tmp_path: Path) -> None:
    with ModelServer(scenarios="tiny") as server:
        away = "embedding.api_base=http://127.0.0.1:9/v1"
        model = ("embedding=litellm", "embedding.model=openai/text-embedding-3-small")
        words = command(server, tmp_path / "run", *model, away, "embedding.retries=0")
        finished(words)
    found = results(tmp_path / "run")
    assert found["unscored_causes"] == {"disconnect": found["unscored"]}
    assert found["overall"] is None


@pytest.mark.slow
def test_follow_ups_that_failed_are_told(tmp_path: Path) -> None:
    with ModelServer(scenarios="tiny") as server:
        server.behaviour.faults = Faults(1.0, ("disconnect",), calls=["user_follow_up"])
        finished(command(server, tmp_path / "run", "backend.retries=0"))
    found = results(tmp_path / "run")
    assert found["follow_up_failures"] > 0
    told = f"{found['follow_up_failures']} follow-ups of the user model failed"
    assert any(told in line for line in notes(ResultsFile.of(found)))


@pytest.mark.parametrize("line", ["[1, 2]", '{"time": 1}', "3"])
def test_a_line_of_a_journal_that_is_no_event_is_one_error(line: str, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(f'{line}\n{{"event": "end"}}\n', "utf-8")
    with pytest.raises(ValueError, match="line 1: expected a JSON object"):
        FileJournal(path).read()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written_to_is_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here", "utf-8")
    child = started(["scenarios=tiny", "agent=rag", f"out={tmp_path / place}"])
    _, said = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "Traceback" not in said
    assert "expected a path that can be used" in said


@pytest.mark.slow
def test_the_transcript_command_prints_a_scenario_by_its_id(tmp_path: Path) -> None:
    words = ["scenarios=tiny", "agent=awe", f"out={tmp_path / 'run'}"]
    run(checked(EvaluateSettings, compose("evaluate", words)), quiet=True)

    def printed(*more: str) -> Any:
        program = [sys.executable, "-m", "experiments.transcript", str(tmp_path / "run"), *more]
        return subprocess.run(
            program, cwd=ROOT, capture_output=True, text=True, env={**os.environ}, timeout=60
        )

    done = printed("tiny-ben")
    assert done.stdout == of_run(tmp_path / "run", "tiny-ben") + "\n"
    assert "== exam after period 0: chosen" in done.stdout
    assert printed().stdout.startswith(of_run(tmp_path / "run")[:100])
    wrong = printed("tiny-bem")
    assert wrong.returncode == 2
    assert "did you mean tiny-ben" in wrong.stderr
