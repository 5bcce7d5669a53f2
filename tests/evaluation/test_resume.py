"""A run that is killed at any moment continues, loses nothing and repeats what was in flight."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amemgym_env.seeding import uniform
from tests.support.chat_server import Behaviour, ModelServer
from tests.support.cli import (
    CONCURRENCY,
    ROOT,
    calls,
    command,
    compared,
    environment,
    finished,
    results,
)

pytestmark = pytest.mark.filterwarnings("ignore")


def killed(words: list[str], out: Path, lines: int) -> bool:
    """Start a run and kill it once its journals hold so many lines; whether it was still going."""
    start = [sys.executable, "-W", "ignore", "-m", "experiments.evaluate", *words]
    child = subprocess.Popen(
        start, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and child.poll() is None:
        written = sum(path.read_bytes().count(b"\n") for path in out.glob("journals/*.jsonl"))
        if written >= lines:
            break
        time.sleep(0.005)
    child.kill()
    return child.wait(30) == -signal.SIGKILL


def check_kills(tmp_path: Path, moments: int, *more: str) -> None:
    with ModelServer(Behaviour(latency=0.01), scenarios="tiny") as server:
        finished(command(server, tmp_path / "whole", *more))
        whole = calls(tmp_path / "whole")
        assert set(whole.values()) == {1}
        lines = sum(
            path.read_bytes().count(b"\n") for path in (tmp_path / "whole").glob("journals/*.jsonl")
        )
        expected = compared(results(tmp_path / "whole"))
        for moment in range(moments):
            out = tmp_path / f"killed-{moment}"
            server.hits.clear()
            words = command(server, out, *more)
            stopped = killed(words, out, 1 + int(uniform("moment", moment) * lines * 0.95))
            sent = sum(server.hits.values())
            known = calls(out)
            finished(words)
            assert stopped, "the run ended before it was killed"
            assert compared(results(out)) == expected
            # Nothing finished is lost or made again; only what was in flight is.
            assert calls(out) == whole
            assert sum(server.hits.values()) - sent == len(whole) - len(known)
            assert sent - len(known) <= CONCURRENCY


@pytest.mark.slow
def test_a_killed_run_continues(tmp_path: Path) -> None:
    check_kills(tmp_path, 1)


@pytest.mark.evidence
def test_a_run_killed_at_twenty_moments_continues(tmp_path: Path) -> None:
    check_kills(tmp_path, 20)


@pytest.mark.evidence
def test_a_killed_run_with_chroma_continues(tmp_path: Path) -> None:
    check_kills(tmp_path, 3, "store=chroma")


@pytest.mark.slow
def test_a_run_is_repeated_from_its_journals_without_network(tmp_path: Path) -> None:
    with ModelServer(scenarios="tiny") as server:
        words = command(server, tmp_path / "first")
        finished(words)
    again = command(server, tmp_path / "again", f"replay={tmp_path / 'first'}")
    finished(again)
    assert compared(results(tmp_path / "again")) == compared(results(tmp_path / "first"))
    assert calls(tmp_path / "again") == calls(tmp_path / "first")


@pytest.mark.slow
def test_a_spent_budget_stops_cleanly_and_more_of_it_continues(tmp_path: Path) -> None:
    with ModelServer(scenarios="tiny") as server:
        finished(command(server, tmp_path / "whole"))
        whole = results(tmp_path / "whole")
        spent = sum(
            part["prompt_tokens"] + part["completion_tokens"] for part in whole["usage"].values()
        )
        out = tmp_path / "budget"
        finished(command(server, out, f"backend.budget_tokens={spent // 2}"))
        half = results(out)
        assert "budget_tokens" in half["stopped"]
        assert half["unscored"] == sum(half["unscored_causes"].values()) > 0
        assert half["unscored_causes"].keys() <= {"stopped", "not_played"}
        used = sum(
            part["prompt_tokens"] + part["completion_tokens"] for part in half["usage"].values()
        )
        assert spent // 4 < used <= spent // 2 + 2_000
        finished(command(server, out, f"backend.budget_tokens={spent + 2_000}"))
    assert compared(results(out)) == compared(whole)
