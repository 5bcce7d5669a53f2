"""The litellm backend against a local server: attempts, causes, parameters, keys, accounts."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import agents
from amemgym_env.agent import Question
from amemgym_env.errors import BudgetExceeded, ConfigError, TransportError
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.run import evaluate
from amemgym_env.generation.pipeline.repair import RepairingClient
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.client import Models
from amemgym_env.models.events import Event
from amemgym_env.models.last_play import calls_in
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.litellm.responses import spoken
from amemgym_env.prompts.assistant import Context, ExamAnswer
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message
from amemgym_env.prompts.parsing import read_object
from amemgym_env.scenarios.model import Scenario
from tests.support.chat_server import Behaviour, Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

PRICED = "openai/gpt-4.1-mini"
ASK = Call("assistant_reply", "assistant", [{"role": "user", "content": "hello there"}])
EXAM = ExamAnswer(Context(()), Question("Which?", ("a", "b", "c", "d")))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer() as running:
        yield running


def model(server: ModelServer, name: str = PRICED, **settings: Any) -> LitellmModel:
    settings = {"first_delay": 0.001, "timeout": 20.0, "retries": 3, **settings}
    return LitellmModel(name, api_base=server.address, **settings)


def exam_call() -> Call:
    return Call("exam_answer", "exam", EXAM.render(Models({}).templates), EXAM.schema)


@pytest.mark.parametrize("fault", ["rate_limit", "server_error", "disconnect"])
@pytest.mark.parametrize("retries", [0, 3])
def test_b03_01_one_retry_layer_hits_the_server_exactly_as_often_as_configured(
    server: ModelServer, fault: str, retries: int
) -> None:
    server.behaviour.faults = Faults(1.0, (fault,))
    with pytest.raises(TransportError) as caught:
        model(server, retries=retries).complete(ASK)
    assert sum(server.hits.values()) == retries + 1 == caught.value.attempts
    assert caught.value.reason == fault


@pytest.mark.filterwarnings("ignore:.*price not known")
@pytest.mark.parametrize("name", [PRICED, "anthropic/claude-sonnet-4-5", "ollama_chat/llama3.1"])
def test_an_address_where_nobody_listens_is_a_disconnect(
    name: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-two")
    with pytest.raises(TransportError) as caught:
        LitellmModel(name, api_base="http://127.0.0.1:9", retries=1, first_delay=0.0).complete(ASK)
    assert caught.value.reason == "disconnect"


def test_a_server_that_cannot_read_the_form_of_a_reply_is_asked_without(
    server: ModelServer,
) -> None:
    server.behaviour.echo = "1 validation error: ('body', 'response_format', 'type') is not known"
    asked = model(server, response_format="schema", retries=0)
    with pytest.warns(RuntimeWarning, match="response_format"), pytest.raises(TransportError):
        asked.complete(exam_call())
    assert asked.asked.dropped == {"response_format:schema", "response_format:object"}
    assert "response_format" not in server.requests[-1]


def test_llama_cpps_form_of_a_schema(server: ModelServer) -> None:
    asked = model(server, response_format="object_schema")
    asked.complete(exam_call())
    sent = server.requests[-1]["response_format"]
    assert sent == {"type": "json_object", "schema": EXAM.schema}
    server.behaviour.refuses = ("response_format",)
    with pytest.warns(RuntimeWarning, match="response_format"):
        asked.complete(exam_call())
    assert "response_format" not in server.requests[-1]
    assert asked.asked.dropped == {"response_format:object_schema", "response_format:object"}


def test_a_retry_is_counted_apart_from_the_answer(server: ModelServer) -> None:
    server.behaviour.faults = Faults(first=2)
    done = model(server).complete(ASK)
    assert (done.usage.calls, done.retries.calls) == (1, 2)
    assert done.text == '{"answer": 1}'


@pytest.mark.parametrize("after", ["1", "Wed, 21 Oct 2026 07:28:01 GMT"])
def test_retry_after_is_honoured(server: ModelServer, after: str) -> None:
    server.behaviour.faults = Faults(first=1, kinds=["rate_limit"])
    server.behaviour.retry_after = after
    begun = time.perf_counter()
    model(server).complete(ASK)
    assert time.perf_counter() - begun >= 1.0


@pytest.mark.parametrize("slowly", ["hang", "drip"])
def test_b03_10_a_dead_or_dripping_server_costs_one_timeout_an_attempt(
    server: ModelServer, slowly: str
) -> None:
    quick = model(server, timeout=20.0)
    quick.complete(ASK)
    if slowly == "hang":
        server.behaviour.faults = Faults(1.0, ("hang",))
    else:
        server.behaviour.drip = 0.2
    begun = time.perf_counter()
    with pytest.raises(TransportError, match="no answer within") as caught:
        model(server, timeout=0.5, retries=1).complete(ASK)
    assert caught.value.reason == "timeout"
    assert 0.9 < time.perf_counter() - begun < 5.0


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("empty", "empty"),
        ("null", "empty"),
        ("cut", "unreadable"),
        ("filtered", "filtered"),
        ("refused", "filtered"),
        ("context_exceeded", "context_exceeded"),
    ],
)
def test_b01_06_b03_06_b03_07_content_faults_are_one_call_with_their_cause(
    server: ModelServer, fault: str, cause: str
) -> None:
    server.behaviour.faults = Faults(1.0, (fault,))
    done = model(server, retries=5, first_delay=9.0).complete(exam_call())
    assert (done.cause, sum(server.hits.values())) == (cause, 1)


def test_b01_14_content_as_a_list_of_blocks_gives_the_text_alone(server: ModelServer) -> None:
    # litellm's own reader of the OpenAI form refuses blocks: they are read from its error.
    server.behaviour.faults = Faults(1.0, ("blocks",))
    done = model(server).complete(exam_call())
    assert (done.text, done.cause, sum(server.hits.values())) == ('{"answer": 1}', None, 1)
    thought = {"type": "thinking", "thinking": '{"answer": 1}'}
    assert spoken([thought, {"type": "text", "text": '{"answer": 2}'}]) == '{"answer": 2}'
    assert spoken([]) == spoken(None) == ""


@dataclass(frozen=True)
class Asked(Prompt[int]):
    """A prompt that is asked again with what was wrong."""

    kind: ClassVar[str] = "asked"
    role: ClassVar[Role] = "generation"
    template: ClassVar[str] = "How many?"
    problems: tuple[str, ...] = ()

    def render(self, templates: Templates) -> list[Message]:
        return [message("user", "\n".join([templates.fill(Asked, {}), *self.problems]))]

    def parse(self, text: str) -> int:
        return int(read_object(text)["answer"])

    def repaired(self, reply: str, problem: str) -> Asked:
        return Asked((*self.problems, f"{reply!r}: {problem}"))


def test_b03_02_a_reply_that_is_billed_and_bad_is_counted_beside_the_one_after_it(
    server: ModelServer,
) -> None:
    billed = [("I am not sure.", 1_000, 50), ('{"answer": 2}', 1_010, 5)]

    def answer(*_: object) -> dict[str, Any]:
        text, prompt, completion = billed.pop(0)
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        usage["total_tokens"] = prompt + completion
        return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}

    server._completion = answer  # type: ignore[assignment]
    asked = model(server, budget_tokens=2_065)
    events: list[Event] = []
    models = Models({"assistant": asked}, recorder=events.append)
    assert RepairingClient(models, repairs=1).one("a step", Asked()) == 2
    usage = models.usage["generation"]
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 2_010, 55)
    assert usage.usd == pytest.approx(2_010 * 0.4e-6 + 55 * 1.6e-6)
    assert [call.usage.prompt_tokens for call in calls_in(events) if call.usage] == [1_000, 1_010]
    assert models.causes == {"asked.unreadable": 1}
    assert asked.budget.spent.tokens == 2_065
    with pytest.raises(BudgetExceeded, match="spent 2065 tokens"):
        asked.complete(ASK)


@pytest.mark.parametrize("name", ["temperature", "seed", "max_tokens"])
def test_b03_04_a_refused_parameter_is_left_out_once_visibly_and_recorded(
    server: ModelServer, name: str
) -> None:
    server.behaviour.refuses = (name,)
    asked = model(server, seed=5, max_tokens=100)
    with pytest.warns(RuntimeWarning, match=name):
        done = asked.complete(ASK)
    assert done.details is not None
    assert done.details["dropped"] == [name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        asked.complete(ASK)
    assert sum(server.hits.values()) == 3
    assert name not in server.requests[-1]


def test_json_falls_back_from_schema_to_object_to_plain(server: ModelServer) -> None:
    asked = model(server, response_format="schema")
    asked.complete(exam_call())
    assert server.requests[-1]["response_format"]["type"] == "json_schema"
    server.behaviour.refuses = ("response_format",)
    with pytest.warns(RuntimeWarning, match="response_format"):
        asked.complete(exam_call())
    assert "response_format" not in server.requests[-1]


def test_b08_16_the_seed_is_sent_and_the_models_version_recorded(server: ModelServer) -> None:
    done = model(server, seed=7).complete(ASK)
    assert server.requests[-1]["seed"] == 7
    assert done.details is not None
    assert done.details["fingerprint"] == "local-1"


@pytest.mark.parametrize(
    "usage",
    [
        False,
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 7, "completion_tokens": None, "total_tokens": 7},
    ],
    ids=["missing", "zero", "half"],
)
def test_b03_08_missing_usage_is_counted_and_marked(server: ModelServer, usage: Any) -> None:
    server.behaviour.usage, server.behaviour.answer = usage, "word " * 60
    done = model(server).complete(ASK)
    assert done.usage.estimated
    assert done.usage.prompt_tokens > 0
    assert done.usage.completion_tokens > 20
    assert done.usage.usd is not None
    assert done.usage.usd > 0


def test_b03_08_an_unknown_price_is_null_and_said_once(server: ModelServer) -> None:
    asked = model(server, "openai/nobody-knows-this")
    with pytest.warns(RuntimeWarning, match="price not known"):
        done = asked.complete(ASK)
    assert done.usage.usd is None
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert asked.complete(ASK).usage.usd is None


def test_b03_09_tokens_and_dollars_are_the_providers(server: ModelServer) -> None:
    server.behaviour.usage = {
        "prompt_tokens": 12_000,
        "completion_tokens": 9,
        "total_tokens": 12_009,
        "prompt_tokens_details": {"cached_tokens": 10_000},
    }
    usage = model(server).complete(ASK).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (12000, 9, 10000)
    assert usage.usd == pytest.approx(2_000 * 0.4e-6 + 10_000 * 0.1e-6 + 9 * 1.6e-6)
    assert not usage.estimated


def test_b03_12_each_role_uses_its_own_key_at_the_same_address(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_KEY", "test-key-two")
    model(server).complete(ASK)
    model(server, api_key_env="USER_KEY").complete(ASK)
    model(server).complete(ASK)
    assert server.keys == {"test-key-one": 2, "test-key-two": 1}


def test_a_refused_key_ends_the_run_after_one_request(
    server: ModelServer, tiny: list[Scenario]
) -> None:
    server.behaviour.key = "another"
    with pytest.raises(ConfigError, match="the API key was refused"):
        model(server).complete(ASK)
    assert sum(server.hits.values()) == 1


@pytest.mark.parametrize(
    "address", ["http://user:secret@127.0.0.1/v1", "127.0.0.1:80", "http://127.0.0.1/v1?key=abc"]
)
def test_an_address_with_credentials_or_without_scheme_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="api_base") as caught:
        LitellmModel(PRICED, api_base=address)
    assert "secret" not in str(caught.value)


def test_a_key_that_is_not_in_the_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="api_key_env"):
        LitellmModel(PRICED, api_key_env="NOT_SET_ANYWHERE")


def test_the_limit_of_calls_under_way_holds(server: ModelServer) -> None:
    server.behaviour.latency = 0.02
    asked = model(server, max_concurrency=4)
    futures = [asked.start(ASK) for _ in range(40)]
    assert all(isinstance(future.result(), Completion) for future in futures)
    assert server.most_open == 4


def test_requests_a_minute_are_spread(server: ModelServer) -> None:
    asked = model(server, requests_per_minute=1200)
    asked.complete(ASK)
    begun = time.perf_counter()
    for future in [asked.start(ASK) for _ in range(6)]:
        future.result()
    assert time.perf_counter() - begun > 0.25


def test_a_budget_of_tokens_stops_before_it_is_spent_also_at_once(server: ModelServer) -> None:
    server.behaviour.usage = {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}
    server.behaviour.latency = 0.01
    asked = model(server, budget_tokens=50, max_concurrency=4)
    results = [future.exception() for future in [asked.start(ASK) for _ in range(30)]]
    assert 40 <= asked.budget.spent.tokens <= 80
    assert any(isinstance(error, BudgetExceeded) for error in results)
    with pytest.raises(BudgetExceeded, match="budget_tokens=50"):
        asked.complete(ASK)


def test_a_budget_of_dollars_needs_a_known_price(server: ModelServer) -> None:
    asked = model(server, "openai/nobody-knows-this", budget_usd=1.0)
    with pytest.warns(RuntimeWarning, match="price"), pytest.raises(ConfigError, match="budget"):
        asked.complete(ASK)


def run(server: ModelServer, tiny: list[Scenario], workers: int = 3, **settings: Any) -> Results:
    backend = model(server, **settings)
    return evaluate(
        agents.Native, tiny, backends=lambda script: {"assistant": backend}, workers=workers
    )


def without_costs(results: Results) -> dict[str, Any]:
    return {name: part for name, part in results.to_json().items() if name != "usage"}


def test_results_depend_neither_on_concurrency_nor_on_transport_faults(
    tiny: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer(scenarios="tiny") as server:
        clean = run(server, tiny, workers=1, max_concurrency=1)
        assert clean.to_json()["overall"] == 1.0
        wide = run(server, tiny, workers=3, max_concurrency=64)
        server.behaviour.faults = Faults(1 / 3)
        failing = run(server, tiny, retries=12)
        assert failing.to_json()["usage"]["retries"]["calls"] > 10
    assert without_costs(clean) == without_costs(wide) == without_costs(failing)


def test_threads_do_not_grow_with_calls(server: ModelServer) -> None:
    asked = model(server)
    models = Models({"assistant": asked})
    models.ask_all([EXAM] * 8)
    before = threading.active_count()
    for _ in range(20):
        models.ask_all([EXAM] * 8)
    assert threading.active_count() <= before + 1


def test_b04_11_lone_surrogates_do_not_reach_the_record(server: ModelServer) -> None:
    server.behaviour.answer = "half \ud83d and a pair \ud83c\udf78"
    assert model(server).complete(ASK).text == "half � and a pair \U0001f378"


def test_behaviour_defaults_are_harmless() -> None:
    assert Behaviour().faults.share == 0.0
