"""Family 3 of the field's cases in whole (and what of family 1 needs a provider): runs and records.

The single faults stand in `test_litellm_backend.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from agents import AWE, AWI, Native
from amemgym_env.agent import Question
from amemgym_env.errors import TransportError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import Game, evaluate
from amemgym_env.models.client import Models
from amemgym_env.models.events import CallEvent, Event, ExamEvent, TurnEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.models.last_play import calls_in
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.litellm.responses import Answered, read_response, refused_response
from amemgym_env.prompts.assistant import AssistantReply, Context, ExamAnswer
from amemgym_env.scenarios.model import Scenario
from experiments.app.terminal import notes
from tests.support.chat_server import Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

PRICED = "openai/gpt-4.1-mini"
WRITING = ("fact_extraction", "dictionary_update")
HELLO = AssistantReply(Context(), "hello there")
EXAM = ExamAnswer(Context(()), Question("Which?", ("a", "b", "c", "d")))


class Server(ModelServer):
    """The server, with parts of its answers put in place of its own."""

    def __init__(self) -> None:
        super().__init__(scenarios="tiny")
        self.instead: Mapping[str, dict[str, Any]] = {}
        """By kind of call: `content`, `message`, `finish_reason` or `usage` of the answer."""
        self.filtered: Mapping[str, str] = {}
        """By kind of call: a text that a filter refuses in its last message."""
        self.sent: list[tuple[str, list[dict[str, Any]], str]] = []

    def _fault(self, kind: str, messages: list[dict[str, Any]]) -> str | None:
        text = self.filtered.get(kind)
        if text is not None and text in messages[-1]["content"]:
            return "filtered"
        return super()._fault(kind, messages)

    def _completion(
        self, body: dict[str, Any], kind: str, messages: list[dict[str, Any]], fault: str | None
    ) -> dict[str, Any]:
        self.sent.append((kind, messages, body["model"]))
        document = super()._completion(body, kind, messages, fault)
        change = self.instead.get(kind, {})
        choice = document["choices"][0]
        if "content" in change:
            choice["message"]["content"] = change["content"]
        choice["message"].update(change.get("message", {}))
        choice["finish_reason"] = change.get("finish_reason", choice["finish_reason"])
        document["usage"] = change.get("usage", document.get("usage"))
        return document


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    running = Server()
    with running:
        yield running


def model(server: ModelServer, name: str = PRICED, **settings: Any) -> LitellmModel:
    settings = {"first_delay": 0.001, "timeout": 20.0, "retries": 3, **settings}
    return LitellmModel(name, api_base=server.address, **settings)


def played(
    make: Any,
    scenarios: list[Scenario],
    journal: MemoryJournal | None = None,
    game: Game | None = None,
    **models: Any,
) -> tuple[dict[str, Any], list[Event]]:
    """Return the results of a run and its events; `journal` is that of a single scenario."""
    kept = {item.id: journal or MemoryJournal() for item in scenarios}
    found = evaluate(
        make,
        scenarios,
        game=game,
        backends=lambda script: models,
        journal=lambda item: nullcontext(kept[item.id]),
    )
    return found.to_json(), [event for one in kept.values() for event in one.read()]


def calls(events: list[Event], *kinds: str) -> list[CallEvent]:
    return [call for call in calls_in(events) if not kinds or call.kind in kinds]


@pytest.mark.parametrize("make", [AWE, AWI])
def test_b01_06_content_that_is_null_is_one_call_paid_once_and_no_message(
    server: Server, tiny: list[Scenario], make: Any
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 900, "total_tokens": 1000}
    nothing = {"content": None, "finish_reason": "length", "usage": usage}
    kinds = [*("assistant_reply", "exam_answer", "user_follow_up"), *WRITING]
    server.instead = dict.fromkeys(kinds, nothing)
    asked = model(server, retries=5, first_delay=9.0)
    document, events = played(lambda models: make(models, 2, 0), tiny[:1], assistant=asked)
    found = calls(events, *kinds)
    assert {call.kind for call in found} == {kind for kind, *_ in server.sent} & set(kinds)
    assert len({call.kind for call in found}) == 4
    assert len(calls(events)) == sum(server.hits.values())
    assert {(call.cause, call.finish_reason) for call in found} == {("empty", "length")}
    assert all(call.retries is None for call in found)
    for call in found:
        assert (call.usage.calls, call.usage.completion_tokens) == (1, 900)
        assert call.usage.usd == pytest.approx(100 * 0.4e-6 + 900 * 1.6e-6)
    exams = [cause for event in events if isinstance(event, ExamEvent) for cause in event.causes]
    assert exams == ["empty"] * 4
    assert document["causes"] == {"empty": 4}
    assert document["usage"]["exam"]["completion_tokens"] == 900 * 4
    assert (document["errors"], document["unscored"]) == ({}, 0)
    messages = [part for _, sent, _ in server.sent for part in sent]
    assert all(isinstance(part["content"], str) for part in messages)
    assert not [part for part in messages if part["role"] == "assistant"]


@pytest.mark.parametrize(
    ("change", "thought"),
    [
        ({"content": '<think>maybe {"answer": 1}? no</think>\n{"answer": 4}'}, "maybe"),
        ({"content": '<THINK>{"answer": 1}</THINK>\n{"answer": 4}'}, "THINK"),
        ({"content": '{"answer": 4}', "message": {"reasoning_content": "maybe 1"}}, "maybe 1"),
    ],
    ids=["tag", "upper", "apart"],
)
def test_b01_04_what_a_real_model_thinks_is_recorded_and_not_searched(
    server: Server, change: dict[str, Any], thought: str
) -> None:
    server.behaviour.answer = "{}"
    server.instead = {"exam_answer": change}
    events: list[Event] = []
    models = Models({"assistant": model(server)}, recorder=events.append)
    assert models.ask(EXAM).value == 3
    (call,) = calls_in(events)
    assert thought in str(call.text) + call.details.get("reasoning", "")


THOUGHT = {"type": "thinking", "thinking": 'a draft: {"answer": 1}'}
LISTED = {"type": "thinking", "thinking": [{"type": "text", "text": 'a draft: {"answer": 1}'}]}
SAID = {"type": "text", "text": '{"answer": 2}, \'model_response_object\': "'}


@pytest.mark.parametrize(
    ("content", "answer", "cause"),
    [
        ([THOUGHT, SAID], 1, None),
        ([LISTED, {"type": "text", "text": '{"answer": 2}'}], 1, None),
        ([THOUGHT], None, "empty"),
        ([], None, "empty"),
    ],
    ids=["text", "nested", "thought-alone", "nothing"],
)
def test_b01_14_of_content_in_blocks_the_text_alone_is_read(
    server: Server, content: list[Any], answer: int | None, cause: str | None
) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
    server.instead = {"exam_answer": {"content": content, "usage": usage}}
    events: list[Event] = []
    outcome = Models({"assistant": model(server)}, recorder=events.append).ask(EXAM)
    assert (outcome.value, outcome.cause) == (answer, cause)
    (call,) = calls_in(events)
    assert sum(server.hits.values()) == 1
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (70, 30)
    assert call.usage.usd == pytest.approx(70 * 0.4e-6 + 30 * 1.6e-6)
    assert call.finish_reason == "stop"
    assert call.details.get("reasoning") == ('a draft: {"answer": 1}' if content else None)


def test_b01_14_other_errors_hold_no_response() -> None:
    start, end = "received_args={'response_object': ", ", 'model_response_object': None"
    texts = ["gone", f"{start}{{}}{end}", f"{start}{{'choices': [}}{end}"]
    texts.append(f"{start}{{'choices': [{{'message': {{'content': 7}}}}]}}{end}")
    assert [refused_response(Exception(text)) for text in texts[:3]] == [None] * 3
    other = read_response(refused_response(Exception(texts[3])))
    assert isinstance(other, Answered)
    assert other.cause == "unreadable"
    whole = f"{start}{{'choices': [{{'message': {{'content': ['yes']}}}}]}}{end}"
    assert read_response(refused_response(Exception(whole))).text == "yes"


def test_b03_01_all_attempts_of_a_call_stand_in_its_record(server: Server) -> None:
    server.behaviour.faults = Faults(1.0, ("server_error",))
    events: list[Event] = []
    models = Models({"assistant": model(server, retries=3)}, recorder=events.append)
    with pytest.raises(TransportError):
        models.ask(HELLO)
    (call,) = calls(events)
    assert call.retries is not None
    assert sum(server.hits.values()) == call.retries.calls == 4
    server.behaviour.faults = Faults(first=2, kinds=("server_error",))
    server._attempts.clear()
    models.ask(HELLO)
    last = calls(events)[-1]
    assert last.usage is not None
    assert last.retries is not None
    assert (last.usage.calls, last.retries.calls) == (1, 2)
    assert sum(server.hits.values()) == 4 + 3
    assert models.usage["retries"].calls == 6


@pytest.mark.parametrize("name", ["openai/o3-mini", "openai/gpt-5-mini"])
def test_b03_04_what_litellm_itself_refuses_is_left_out_too(server: Server, name: str) -> None:
    asked = model(server, name)
    events: list[Event] = []
    models = Models({"assistant": asked}, recorder=events.append)
    with pytest.warns(RuntimeWarning, match="temperature is not applied"):
        models.ask(EXAM)
    assert sum(server.hits.values()) == 1
    assert calls(events)[0].dropped == ("temperature",)
    assert "temperature" not in server.requests[-1]


def test_b03_04_a_run_says_which_parameters_were_not_applied(
    server: Server, tiny: list[Scenario]
) -> None:
    server.behaviour.refuses = ("temperature",)
    with pytest.warns(RuntimeWarning, match="temperature") as told:
        document, events = played(Native, tiny[:1], assistant=model(server, retries=0))
    assert len([one for one in told if "temperature" in str(one.message)]) == 1
    assert document["dropped_parameters"] == ["temperature"]
    assert document["unscored"] == 0
    at_once = 32  # all calls of the first batch may meet the refusal
    assert sum(server.hits.values()) - len(calls(events)) <= at_once


def test_b03_06_a_history_that_is_too_long_is_asked_about_once_without_waiting(
    server: Server, tiny: list[Scenario]
) -> None:
    server.behaviour.faults = Faults(1.0, ("context_exceeded",), ["exam_answer"])
    asked = model(server, retries=5, first_delay=30.0)
    begun = time.perf_counter()
    document, events = played(Native, tiny[:1], assistant=asked)
    assert time.perf_counter() - begun < 15.0
    assert len(calls(events)) == sum(server.hits.values())
    assert document["causes"] == {"context_exceeded": 4}
    assert "retries" not in document["usage"]
    assert (document["overall"], document["unscored"], document["errors"]) == (0.0, 0, {})


def test_b03_07_a_filter_marks_one_turn_one_follow_up_and_one_answer_and_the_rest_is_played(
    server: Server, tiny: list[Scenario]
) -> None:
    session, question = tiny[0].periods[1].sessions[0], tiny[0].qas[0]
    asked = model(server, retries=5, first_delay=30.0)
    clean, _ = played(Native, tiny, assistant=asked)
    assert clean["overall"] == 1.0
    server.filtered = {
        "assistant_reply": session.query,
        "user_follow_up": session.query,
        "exam_answer": question.query,
    }
    server.hits.clear()
    document, events = played(Native, tiny, assistant=asked)
    marked = Counter(call.kind for call in calls(events) if call.cause == "filtered")
    assert marked["assistant_reply"] == marked["user_follow_up"] == 1
    assert document["causes"] == {"filtered": len(tiny[0].periods)}
    assert len(calls(events)) == sum(server.hits.values())
    turns = [event for event in events if isinstance(event, TurnEvent)]
    empty = [event.message for event in turns if not event.reply]
    assert empty == [session.query]
    assert document["follow_up_failures"] == 1
    assert (document["errors"], document["unscored"]) == ({}, 0)
    assert all(document["hashes"].values())
    assert {**document["accuracy"], "tiny-ada": None} == {**clean["accuracy"], "tiny-ada": None}
    assert document["accuracy"]["tiny-ada"] == [[0.0, 1.0]] * 2
    assert "wrong without a choice: 2 filtered" in notes(ResultsFile.of(document))


def test_b03_08_a_run_without_usage_or_price_says_estimated_and_unknown(
    server: Server, tiny: list[Scenario]
) -> None:
    server.behaviour.usage = False
    priced, _ = played(Native, tiny[:1], assistant=model(server))
    assert all(part["estimated"] and part["usd"] > 0 for part in priced["usage"].values())
    asked = model(server, "openai/nobody-knows-this")
    with pytest.warns(RuntimeWarning, match="price not known") as told:
        unknown, _ = played(Native, tiny[:1], assistant=asked)
    assert len(told) == 1
    assert all(part["usd"] is None for part in unknown["usage"].values())
    assert unknown["overall"] == priced["overall"] == 1.0


@pytest.mark.parametrize("total", [12_009, 12_500])
def test_b03_09_tokens_in_and_out_are_the_providers_and_another_sum_is_recorded(
    server: Server, total: int
) -> None:
    usage = {"prompt_tokens": 12_000, "completion_tokens": 9, "total_tokens": total}
    server.instead = {"exam_answer": {"usage": usage}}
    events: list[Event] = []
    Models({"assistant": model(server)}, recorder=events.append).ask(EXAM)
    found = calls(events)[0].usage
    assert found is not None
    # P15: the provider's larger sum counts.
    assert (found.prompt_tokens, found.completion_tokens) == (12_000, total - 12_000)
    right = total == 12_009
    assert calls(events)[0].details.get("total_tokens") == (None if right else total)


def test_b03_10_what_a_dead_server_left_unasked_is_marked_and_asked_by_the_next_run(
    server: Server, tiny: list[Scenario]
) -> None:
    def run() -> Event:
        asked = model(server, timeout=2.0, retries=0)
        return played(Native, tiny[:1], journal, Game(upper_bound=False), assistant=asked)[0]

    journal = MemoryJournal()
    server.behaviour.faults = Faults(1.0, ("hang",), ["exam_answer"])
    begun = time.perf_counter()
    cut = run()
    assert 2.0 < time.perf_counter() - begun < 15.0
    assert cut["unscored_causes"] == {"timeout": 4}
    assert (cut["overall"], cut["failed_calls"]) == (None, 4)
    server.behaviour.faults = Faults()
    server.hits.clear()
    whole = run()
    assert server.hits == {"exam_answer": 4}
    assert (whole["overall"], whole["unscored"], whole["failed_calls"]) == (1.0, 0, 0)


def test_b03_12_the_accounts_of_two_roles_at_one_address_are_kept_apart(
    server: Server, tiny: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_KEY", "test-key-two")
    user = model(server, "openai/gpt-4.1-nano", api_key_env="USER_KEY", timeout=9.0)
    document, events = played(AWE, tiny, assistant=model(server), user=user)
    follow_ups = server.hits["user_follow_up"]
    assert follow_ups > 0
    others = sum(server.hits.values()) - follow_ups
    assert server.keys == {"test-key-one": others, "test-key-two": follow_ups}
    assert {(kind == "user_follow_up", name) for kind, _, name in server.sent} == {
        (True, "gpt-4.1-nano"),
        (False, "gpt-4.1-mini"),
    }
    assert document["usage"]["user"]["calls"] == follow_ups
    prices = {"user": (0.1e-6, 0.4e-6)}
    for role, part in document["usage"].items():
        prompt, completion = prices.get(role, (0.4e-6, 1.6e-6))
        dollars = part["prompt_tokens"] * prompt + part["completion_tokens"] * completion
        assert part["usd"] == pytest.approx(dollars)
    assert {call.details["model"] for call in calls(events, "user_follow_up")} == {"gpt-4.1-nano"}
