"""Sending processes: the results of one process, no orphans, no lost call, no key but theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agents
from amemgym_env.errors import ConfigError, TransportError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.litellm import event_loop as loop_thread
from amemgym_env.models.litellm import worker_pool as litellm_senders
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.litellm.library import facts
from amemgym_env.scenarios.model import Scenario
from tests.support.chat_server import CONTENT, Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
ROOT = Path(__file__).parents[2]
CANARY = "sk-test-CANARY-0123456789"
PRICED = "openai/gpt-4.1-mini"
EXAM = Call(
    "exam_answer",
    "exam",
    [{"role": "user", "content": "Which? {} \\ \u2028 \U0001f378"}],
    {"type": "object", "additionalProperties": False},
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with ModelServer(scenarios="tiny") as running:
        yield running


@pytest.fixture(autouse=True, scope="module")
def ended() -> Iterator[None]:
    yield
    loop_thread.shared().submit(litellm_senders.close_shared()).result(20)


def model(server: ModelServer, processes: int = 1, **settings: Any) -> LitellmModel:
    settings = {"first_delay": 0.001, "timeout": 20.0, "retries": 3, **settings}
    return LitellmModel(PRICED, api_base=server.address, processes=processes, **settings)


def children() -> list[int]:
    return litellm_senders.shared(0).pids


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return False


def outcome(asked: LitellmModel) -> Any:
    """Return all that one call led to, but for the time it took."""
    try:
        done = asked.complete(EXAM)
    except (TransportError, ConfigError) as error:
        return type(error), str(error), getattr(error, "attempts", None)
    usage, retries = done.usage.to_json(), done.retries.to_json()
    return done._replace(usage=None, retries=None), [  # type: ignore[arg-type]
        {**part, "seconds": 0} for part in (usage, retries)
    ]


def fails(*kinds: str) -> dict[str, Any]:
    return {"faults": Faults(1.0, kinds)}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="clean"),
        pytest.param({"faults": Faults(first=2)}, id="twice"),
        *(pytest.param(fails(kind), id=kind) for kind in ("server_error", "disconnect", *CONTENT)),
        pytest.param({**fails("rate_limit"), "retry_after": "0.02"}, id="rate_limit"),
        pytest.param({"refuses": ["response_format", "temperature"]}, id="refused_parameters"),
        pytest.param({"usage": None}, id="no_usage"),
        pytest.param({"key": "another"}, id="refused_key"),
        pytest.param({"echo": f"bad header 'Bearer {CANARY}'"}, id="echoed_key"),
        pytest.param({"answer": f"half \ud83d of {CANARY}"}, id="strange_answer"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_a_server_does_leads_to_the_same(
    server: ModelServer, change: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(server.behaviour, name, value)
    found = []
    for processes in (0, 1):
        server._attempts.clear()
        before = sum(server.hits.values())
        found.append((outcome(model(server, processes)), sum(server.hits.values()) - before))
    assert found[0] == found[1]
    assert "CANARY" not in str(found)


def test_b03_12_each_role_uses_its_own_key_as_it_was_when_the_model_was_first_used(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = model(server)
    first.complete(EXAM)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-two")
    monkeypatch.setenv("USER_KEY", "test-key-three")
    model(server).complete(EXAM)
    model(server, api_key_env="USER_KEY").complete(EXAM)
    first.complete(EXAM)
    assert server.keys == {CANARY: 2, "test-key-two": 1, "test-key-three": 1}


def test_b03_10_a_dead_server_costs_one_timeout_an_attempt(server: ModelServer) -> None:
    asked = model(server, timeout=0.5, retries=1)
    model(server).complete(EXAM)
    server.behaviour.faults = Faults(1.0, ("hang",))
    begun = time.perf_counter()
    with pytest.raises(TransportError, match="no answer within"):
        asked.complete(EXAM)
    assert 0.9 < time.perf_counter() - begun < 5.0


def test_calls_of_a_process_that_dies_are_made_again_by_another(server: ModelServer) -> None:
    asked = model(server)
    asked.complete(EXAM)
    server.behaviour.latency = 1.0
    futures = [asked.start(EXAM) for _ in range(6)]
    while server.open < 6:
        time.sleep(0.01)
    for pid in (first := children()):
        os.kill(pid, signal.SIGINT)  # Ctrl-C is not theirs
    os.kill(first[0], signal.SIGKILL)
    done = [future.result(60) for future in futures]
    assert all(isinstance(one, Completion) and one.text for one in done)
    assert [one.retries.calls for one in done] == [1] * 6
    assert len(children()) == 1
    assert children() != first


def test_a_call_that_kills_its_process_is_given_up(server: ModelServer) -> None:
    asked = model(server, retries=1)
    asked.complete(EXAM)
    server.behaviour.faults = Faults(1.0, ("hang",))
    future = asked.start(EXAM)
    for _ in range(2):
        while not server.open:
            time.sleep(0.01)
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        while server.open and not future.done():
            server.open = 0  # the server does not see that nobody waits any more
            time.sleep(0.05)
    with pytest.raises(TransportError, match="ended with status -9"):
        future.result(60)


@pytest.mark.slow
def test_s11_a_process_that_hangs_is_replaced_after_its_timeout(server: ModelServer) -> None:
    asked = model(server, timeout=3.0, retries=5, first_delay=0.5)
    assert asked.complete(EXAM).text
    (hung,) = children()
    os.kill(hung, signal.SIGSTOP)
    done = asked.complete(EXAM)
    assert done.text
    assert done.retries.calls >= 1
    assert hung not in children()


def test_a_process_that_cannot_begin_is_one_clear_error(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ConfigError, match=r"backend\.processes=0"):
        model(server).complete(EXAM)


def test_a_run_has_the_results_of_one_process(server: ModelServer, tiny: list[Scenario]) -> None:
    documents = []
    for processes in (0, 2):
        backend = model(server, processes)
        found = evaluate(agents.AWE, tiny, backends=lambda _: {"assistant": backend}, workers=3)  # noqa: B023
        documents.append({**found.to_json(), "usage": None})
    assert documents[0] == documents[1]
    assert documents[0]["overall"] > 0.9
    assert len(children()) == 2


SCRIPT = """
    import os, sys, time
    from amemgym_env.models.backend import Call
    from amemgym_env.models.litellm.backend import LitellmModel
    from amemgym_env.models.litellm.worker_pool import shared

    asked = LitellmModel("openai/gpt-4.1-mini", api_base=sys.argv[1], processes=1, timeout=60)
    ask = Call("assistant_reply", "assistant", [{"role": "user", "content": "hello"}])
    print(asked.complete(ask).text)
    print(*shared(0).pids, flush=True)
    if sys.argv[2] == "wait":
        fork = os.fork()  # it holds the pipes open
        if not fork:
            time.sleep(60)
            os._exit(0)
        print(fork, flush=True)
        [asked.start(ask) for _ in range(8)]
        time.sleep(60)
"""


def begun(server: ModelServer, tmp_path: Path, how: str) -> subprocess.Popen[str]:
    """Start a plain script, without a main guard, in a folder with a file named like a library."""
    (tmp_path / "statistics.py").write_text("raise RuntimeError('not mine')", "utf-8")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "script.py").write_text(textwrap.dedent(SCRIPT), "utf-8")
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "scripts/script.py", server.address, how],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )


def test_a_script_ends_with_its_processes_and_says_nothing(
    server: ModelServer, tmp_path: Path
) -> None:
    script = begun(server, tmp_path, "end")
    output, errors = script.communicate(timeout=120)
    assert (script.returncode, errors) == (0, "")
    assert not any(map(alive, map(int, output.splitlines()[-1].split())))
    assert {path.name for path in tmp_path.iterdir()} == {"statistics.py", "scripts"}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_parent_that_is_killed_leaves_no_orphans(server: ModelServer, tmp_path: Path) -> None:
    script = begun(server, tmp_path, "wait")
    assert script.stdout is not None
    assert script.stdout.readline()
    pids = [int(word) for word in script.stdout.readline().split()]
    fork = int(script.stdout.readline())
    server.behaviour.latency = 30.0
    try:
        assert len(pids) == 1
        assert all(map(alive, pids))
        script.kill()
        script.wait(10)
        deadline = time.monotonic() + 10
        while any(map(alive, pids)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(alive, pids))
    finally:
        os.kill(fork, signal.SIGKILL)
        script.communicate()


def test_processes_are_as_many_as_calls_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    found = [litellm_senders.fitting(calls) for calls in (1, 7, 8, 15, 16, 191, 192, 1000)]
    assert found == [0, 0, 1, 1, 2, 2, 3, 4]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(1), raising=False)
    assert litellm_senders.fitting(128) == 0


@pytest.mark.parametrize("name", ["huggingface/x/y", "openrouter/nobody/knows", "openai/nobody"])
def test_a_price_that_litellm_makes_up_is_unknown_not_zero(name: str) -> None:
    assert facts(name).prices is None
    assert facts("openai/gpt-4.1-mini").prices == (0.4e-6, 1.6e-6)
