"""Preflight of a real model, stops in mid-run, and exit statuses of runs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agents import Native
from amemgym_env.errors import BudgetExceeded, ConfigError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import evaluate
from amemgym_env.models.backend import Call
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.prompts.base import message
from amemgym_env.scenarios.model import Scenario
from experiments.app.exit_status import exit_status
from tests.support.chat_server import ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")

ASK = Call("assistant_reply", "assistant", [message("user", "hello there")])


class Refusing(ModelServer):
    """Answers some requests, then refuses all others."""

    def __init__(self, after: int, status: int, text: str, code: str) -> None:
        super().__init__()
        self.after, self.status, self.text, self.code = after, status, text, code

    async def _respond(self, path: str, body: dict[str, Any], key: str, writer: Any) -> bool:
        if sum(self.hits.values()) < self.after:
            return await super()._respond(path, body, key, writer)
        self.hits["refused"] += 1
        await self._error(writer, self.status, self.text, self.code)
        return True


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def model(base: str | None, name: str = "openai/gpt-4.1-mini", **more: Any) -> LitellmModel:
    return LitellmModel(name, api_base=base, first_delay=0.001, retries=3, **more)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_preflight_is_one_call_whose_usage_is_returned(server: ModelServer) -> None:
    usage = model(server.address).preflight()
    assert sum(server.hits.values()) == usage.calls == 1
    assert usage.tokens > 0
    assert model(server.address, offline=True).preflight().calls == 0


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-4.1-mini", "OPENAI_API_KEY"),
        ("gpt-4.1-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("openrouter/a/b", "OPENROUTER_API_KEY"),
        ("groq/x", "GROQ_API_KEY"),
        ("azure/x", "AZURE_API_KEY"),
    ],
)
def test_p12_a_missing_key_is_a_settings_error_that_names_the_variable(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("OPENAI_API_KEY", variable):
        monkeypatch.delenv(other, raising=False)
    begun = time.perf_counter()
    with pytest.raises(ConfigError, match=variable):
        model(None, name).preflight()
    assert time.perf_counter() - begun < 2.0


def test_p28_a_key_with_a_line_break_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key\n")
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*line breaks"):
        model("http://127.0.0.1:9/v1")
    monkeypatch.setenv("OTHER", "test\rkey")
    with pytest.raises(ConfigError, match="OTHER"):
        model("http://127.0.0.1:9/v1", api_key_env="OTHER")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://127.0.0.1:{port}/v1", "nothing listens"),
        ("http://no-such-host.invalid/v1", "host name is unknown"),
    ],
)
def test_p13_an_address_that_cannot_be_reached_is_told_at_once(address: str, words: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(ConfigError, match=words):
        model(address.format(port=free_port())).preflight()
    assert time.perf_counter() - begun < 5.0


@pytest.mark.parametrize(
    ("status", "text", "code", "words"),
    [
        (404, "The model `m` does not exist", "model_not_found", "does not exist"),
        (401, "Incorrect API key provided", "invalid_api_key", "key was refused"),
        (429, "You exceeded your current quota", "insufficient_quota", "account is empty"),
        (400, "Your credit balance is too low", "x", "account is empty"),
    ],
)
def test_p14_what_no_call_can_pass_is_found_before_the_start_and_stops_a_run(
    status: int, text: str, code: str, words: str, tiny: list[Scenario]
) -> None:
    with Refusing(0, status, text, code) as server:
        with pytest.raises(ConfigError, match=words):
            model(server.address).preflight()
        assert server.hits["refused"] == 1
    with Refusing(3, status, text, code) as server:
        asked = model(server.address, max_concurrency=1)
        found = evaluate(Native, tiny, backends=lambda script: {"assistant": asked}).file()
        assert words in str(found.stopped)
        assert found.unscored > 0
        assert server.hits["refused"] <= 2
    assert exit_status(found) in (3, 4)


def test_f9_a_wait_beyond_the_bound_stops_the_run_as_a_rate_limit(
    server: ModelServer, tiny: list[Scenario]
) -> None:
    server.behaviour.retry_after = "86400"
    server.behaviour.faults.share = 1.0
    server.behaviour.faults.kinds = ("rate_limit",)
    begun = time.perf_counter()
    with pytest.raises(BudgetExceeded, match="86400 seconds, more than max_wait=120") as caught:
        model(server.address).complete(ASK)
    assert caught.value.reason == "rate_limit"
    found = evaluate(
        Native, tiny[:1], backends=lambda script: {"assistant": model(server.address)}
    ).file()
    assert set(found.unscored_causes) == {"rate_limit"}
    assert found.stopped is not None
    assert time.perf_counter() - begun < 20.0


def results(accuracy: list[list[float | None]], stopped: str | None = None) -> ResultsFile:
    return ResultsFile.model_construct(accuracy={"a": accuracy}, stopped=stopped)


def test_s10_exit_statuses() -> None:
    assert exit_status(results([[1.0, 0.0]])) == 0
    assert exit_status(results([[1.0, None]])) == 3
    assert exit_status(results([[1.0, None]]), 0.5) == 0
    assert exit_status(results([[1.0, None]]), 0.4) == 3
    assert exit_status(results([[1.0, 0.0]], "budget")) == 3
    assert exit_status(results([[None, None]])) == 4
    assert exit_status(results([[None, None]]), 1.0) == 4


def test_p08_a_prompt_that_was_cut_is_told_and_counted(server: ModelServer) -> None:
    server.behaviour.usage = {
        "prompt_tokens": 4096, "completion_tokens": 5, "total_tokens": 4101
    }  # fmt: skip
    asked = model(server.address)
    long = Call("assistant_reply", "assistant", [message("user", "one, two three. " * 3000)])
    with pytest.warns(RuntimeWarning, match="counted 4096 prompt tokens"):
        done = asked.complete(long)
    assert (done.details or {})["prompt_shortfall"] > 4000
    short = asked.complete(ASK)
    assert "prompt_shortfall" not in (short.details or {})


def test_extra_parameters_are_sent_named_and_hold_no_secret(server: ModelServer) -> None:
    asked = model(server.address, extra={"reasoning_effort": "low"})
    asked.complete(ASK)
    assert asked.parameters["extra"] == {"reasoning_effort": "low"}
    with pytest.raises(ConfigError, match="'api_key'"):
        model(server.address, extra={"api_key": "x"})
    with pytest.raises(ConfigError, match="no secrets"):
        model(server.address, extra={"extra_body": {"token": "sk-abcdefghijklmnop"}})


def test_p16_the_address_of_the_environment_is_part_of_the_settings(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    asked = model(None)
    assert asked.api_base == asked.parameters["api_base"] == server.address
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:pass@host/v1")
    with pytest.raises(ConfigError, match="without user"):
        model(None)
