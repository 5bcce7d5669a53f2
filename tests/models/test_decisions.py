"""Decision table of failed requests: a case for each row, the corpus, delays and limits."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.models.litellm.decisions import OTHERWISE, ROWS, Decision, decide
from amemgym_env.models.litellm.faults import Fault, fault_of
from amemgym_env.models.litellm.limits import fits, stated_limit
from amemgym_env.models.litellm.signals import Signals, delay_in_text, read_body, read_error

DATA = Path(__file__).parent / "data"
SENT: dict[str, Any] = {"temperature": 0.0, "seed": 0, "response_format": {}}
LIMITED = {**SENT, "max_tokens": 8192}
OVER = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000"
BOTH = "your prompt contains at least {} input tokens; the context length is 8192 tokens"


def signals(
    status: int | None = None, body: Any = "", sent: dict[str, Any] | None = None, **more: Any
) -> Signals:
    return read_body(body, status, SENT if sent is None else sent)._replace(**more)


def kind(name: str) -> frozenset[str]:
    return frozenset((name,))


EXAMPLES: dict[str, Signals] = {
    "certificate": signals(network="certificate"),
    "unknown host": signals(network="host"),
    "refused connection": signals(network="refused"),
    "key with a line break": signals(500, "Forbidden control character detected in headers."),
    "no key": signals(500, "Missing credentials. Please pass an `api_key`"),
    "unknown provider": signals(400, "LLM Provider NOT provided. Pass in the LLM provider"),
    "no answer in time": signals(network="timeout"),
    "stream": signals(500, 'Received: \'data: {"object": "chat.completion.chunk"'),
    "parameter unknown to litellm": signals(
        400, "anthropic does not support parameters: ['seed']", kinds=kind("UnsupportedParamsError")
    ),
    "response in an unknown form": signals(
        500, "Invalid response object: content: Input should be a valid string"
    ),
    "account: code": signals(429, {"error": {"message": "x", "code": "insufficient_quota"}}),
    "account: words": signals(400, {"error": {"message": "Your credit balance is too low"}}),
    "account: 402": signals(402, {"error": {"message": "Payment Required"}}),
    "rate limit: 429": signals(429, {"error": {"message": "quota, billing"}}),
    "rate limit: code": signals(400, {"error": {"message": "x", "type": "ThrottlingException"}}),
    "rate limit: words": signals(413, {"error": "too large on tokens per minute (TPM): 6000"}),
    "key: 401": signals(401, ""),
    "key: code": signals(400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}),
    "key: words": signals(400, {"error": {"message": "API key expired. Please renew it."}}),
    "filter: code": signals(400, {"error": {"message": "x", "code": "content_filter"}}),
    "filter: words": signals(403, {"error": {"message": "your input was flagged"}}),
    "filter: litellm": signals(
        400, {"error": "no"}, kinds=frozenset({"ContentPolicyViolationError"})
    ),
    "model not ready": signals(400, {"error": "Model has unloaded or crashed.."}),
    "address or model: 404": signals(404, {"error": "model 'm' not found"}),
    "page of a gateway": signals(413, "<html><title>413 Request Entity Too Large</title></html>"),
    "no access: 403": signals(403, {"error": {"message": "Request not allowed"}}),
    "unknown model": signals(400, {"error": {"message": "Model Not Exist"}}),
    "region": signals(400, {"error": {"message": "User location is not supported"}}),
    "prompt beyond the window: stated": signals(400, BOTH.format(9000), LIMITED),
    "reply limit in the window": signals(400, BOTH.format(568), LIMITED),
    "reply limit: named": signals(400, "max_tokens is too large: 8192. At most 4096", LIMITED),
    "reply limit and prompt": signals(400, OVER, LIMITED),
    "prompt beyond the window: code": signals(
        400, {"error": {"message": "x", "code": "context_length_exceeded"}}
    ),
    "parameter named": signals(400, "`temperature` is deprecated for this model."),
    "prompt beyond the window: words": signals(400, OVER),
    "parameter that broke the server": signals(500, "1 validation error for json_schema"),
    "status 408, 504": signals(504, ""),
    "body beyond a limit": signals(413, {"message": "request entity too large"}),
    "server": signals(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "broken connection": signals(network="broken"),
    "defect": signals(kinds=kind("KeyError")),
    "refused": signals(400, {"error": {"message": "No tool call found"}}),
    OTHERWISE.name: signals(None, "something new"),
}


@pytest.mark.parametrize("name", [*(row.name for row in ROWS), OTHERWISE.name])
def test_each_row_decides_its_case(name: str) -> None:
    assert decide(EXAMPLES[name]).row.name == name


def test_names_of_rows_are_unique_and_all_have_a_case() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert set(names) | {OTHERWISE.name} == set(EXAMPLES)


def test_what_no_row_matches_is_infrastructure() -> None:
    assert (OTHERWISE.action, OTHERWISE.cause) == ("retry", None)
    for row in ROWS:
        assert (row.cause is None) == (row.action != "failure"), row.name


def label(decision: Decision) -> str:
    row = decision.row
    if row.action in ("parameter", "window"):
        return f"parameter:{decision.parameters[0]}"
    return str(row.cause or row.action)


def corpus(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", ["refusals.jsonl", "refusals_held_out.jsonl"])
def test_refusals_of_real_providers_are_classified_as_labelled(name: str) -> None:
    found = corpus(name)
    wrong = []
    for case in found:
        limit = {} if case["max_tokens"] is None else {"max_tokens": case["max_tokens"]}
        got = label(decide(read_body(case["body"], case["status"], {**SENT, **limit})))
        if got != case["label"]:
            wrong.append((case["source"], case["label"], got))
    assert len(wrong) <= 0.05 * len(found), wrong


def test_the_corpus_is_large_and_a_third_is_set_aside() -> None:
    seen, aside = corpus("refusals.jsonl"), corpus("refusals_held_out.jsonl")
    assert len(seen) + len(aside) >= 120
    assert 3 * len(aside) >= len(seen) + len(aside)
    assert len({case["provider"] for case in [*seen, *aside]}) >= 15
    assert sum(case["read_at_source"] for case in [*seen, *aside]) >= 120


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 9m38.016s. Need more tokens?", 578.016),
        ("Please try again in 644ms.", 0.644),
        ("Please retry in 55.57s.", 55.57),
        ("Please retry after 1 second.", 1.0),
        ("try again in 2 minutes", 120.0),
        ("retryDelay 30s", 30.0),
        ("try again in 1h2m3s", 3723.0),
        ("please try again later", None),
        ("Limit 6000, Used 5034", None),
    ],
)
def test_p06_f9_delays_are_read_from_bodies(text: str, seconds: float | None) -> None:
    found = delay_in_text(text)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "fit", "limit"),
    [
        (BOTH.format(568), "yes", 7624),
        (BOTH.format(9000), "no", None),
        ("at most 4096 completion tokens, whereas you provided 8192", "unknown", 4096),
        ("the valid range of max_tokens is [1, 4096]", "unknown", 4096),
        ("max_tokens: 8192 > 4096, which is the maximum allowed", "unknown", 4096),
        ("`max_tokens` must be less than or equal to `4096`", "unknown", 4096),
        ("exceed context limit: 196000 + 8192 > 200000", "yes", 4000),
        ("the reply is too long", "unknown", None),
    ],
)
def test_p01_p02_limits_are_read_from_refusals(text: str, fit: str, limit: int | None) -> None:
    assert fits(text, 8192) == fit
    assert stated_limit(text, 8192) == limit


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no `seed` here"}},
        {"error": "no `seed` here"},
        {"message": "no `seed` here"},
        {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        {"error": {"message": '{"error": {"message": "no seed here"}}'}},
        "no seed here",
        [{"error": {"message": "no seed here"}}],
    ],
)
def test_p11_the_body_is_read_in_any_form(body: Any) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    fault = fault_of(read_body(text, 400, SENT))
    assert (fault.action, fault.parameters) == ("parameter", ("seed",))
    assert "seed" in fault.message


def test_b09_messages_hold_no_keys_and_are_one_short_line() -> None:
    text = "Incorrect API key provided: sk-abcdefghijkl\n" + "x" * 5000
    fault = fault_of(read_body({"error": {"message": text}}, 401, SENT))
    assert isinstance(fault, Fault)
    assert "sk-abc" not in fault.message
    assert len(fault.message) < 400
    assert "\n" not in fault.message


def test_errors_behind_errors_are_read() -> None:
    error = RuntimeError("Connection error.")
    error.__cause__ = ConnectionRefusedError(111, "Connect call failed")
    assert read_error(error, SENT).network == "refused"


def test_a_long_body_is_decided_at_once() -> None:
    text = "tokens prompt context " * 50_000
    begun = time.perf_counter()
    assert decide(read_body({"error": {"message": text}}, 400, LIMITED)).row.name == "refused"
    assert time.perf_counter() - begun < 1.0
