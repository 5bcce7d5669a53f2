"""The disk cache: by model, parameters and messages; safe among processes and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amemgym_env.errors import ConfigError, TransportError
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.cache import CallCache
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.usage import Usage
from amemgym_env.seeding import digest, text_digest
from tests.support.chat_server import Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]


def ask(text: str) -> Call:
    return Call("assistant_reply", "assistant", [{"role": "user", "content": text}])


def test_a_call_is_made_once_for_model_parameters_and_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer() as server:

        def model(name: str = "openai/gpt-4.1-mini", temperature: float = 0.0) -> LitellmModel:
            return LitellmModel(
                name, api_base=server.address, cache=tmp_path, temperature=temperature
            )

        first = model().complete(ask("a"))
        again = model().complete(ask("a"))
        assert (again.text, again.usage) == (first.text, Usage())
        assert again.details is not None
        assert again.details["cached"] is True
        assert sum(server.hits.values()) == 1
        model().complete(ask("b"))
        model(temperature=1.0).complete(ask("a"))
        model("openai/gpt-4.1").complete(ask("a"))
        assert sum(server.hits.values()) == 4
        offline = LitellmModel(
            "openai/gpt-4.1-mini", api_base=server.address, cache=tmp_path, offline=True
        )
        assert offline.complete(ask("a")).text == first.text
        with pytest.raises(TransportError, match="offline"):
            offline.complete(ask("new"))
        assert sum(server.hits.values()) == 4


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=[])), min_size=1))
def test_a_digest_of_texts_is_the_digest_of_its_parts(texts: list[str]) -> None:
    assert text_digest(texts) == digest(*texts)


def test_faults_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer() as server:
        model = LitellmModel("openai/gpt-4.1-mini", api_base=server.address, cache=tmp_path)
        server.behaviour.faults = Faults(1.0, ("empty",))
        assert model.complete(ask("a")).cause == "empty"
        server.behaviour.faults = Faults()
        assert model.complete(ask("a")).cause is None


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = CallCache(tmp_path)

    def one(number: int) -> str:
        cache.put(str(number % 10), Completion(f"text {number % 10}", Usage()))
        found = cache.get(str(number % 10))
        return "" if found is None else found.text

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(200))) == [f"text {number % 10}" for number in range(200)]


WRITER = """
    import sys
    from amemgym_env.models.usage import Usage
    from amemgym_env.models.cache import CallCache
    from amemgym_env.models.backend import Completion
    cache = CallCache(sys.argv[1])
    for number in range(100_000):
        cache.put(f"{sys.argv[2]}-{number}", Completion(str(number), Usage()))
        print(number, flush=True)
"""


def test_processes_share_a_cache_and_a_kill_loses_nothing_stored(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path), name],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for name in ("a", "b")
    ]
    last = {}
    for name, child in zip("ab", children, strict=True):
        assert child.stdout is not None
        for line in child.stdout:
            last[name] = int(line)
            if last[name] >= 30:
                break
    for child in children:
        os.kill(child.pid, signal.SIGKILL)
        child.wait(10)
        assert child.stdout is not None
        child.stdout.close()
    cache = CallCache(tmp_path)
    for name, number in last.items():
        for stored in range(number + 1):
            found = cache.get(f"{name}-{stored}")
            assert found is not None
            assert found.text == str(stored)
    cache.close()


def test_a_folder_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"backend\.cache"):
        CallCache(tmp_path / "file").get("key")
