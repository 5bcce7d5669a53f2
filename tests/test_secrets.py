"""Canary keys: nowhere in what a run writes, logs or raises. Family 9 of the field's cases."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

import agents
from amemgym_env.calls import Call
from amemgym_env.errors import AMemGymError
from amemgym_env.evaluation import evaluate
from amemgym_env.journal import FileJournal
from amemgym_env.litellm_backend import LitellmModel
from amemgym_env.redaction import RedactingFilter, redacted
from amemgym_env.scenario import Scenario
from amemgym_env.scenario_files import slug
from experiments import evaluate as evaluate_job
from experiments import job
from experiments.settings import EvaluateSettings, checked
from tests.server import Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")
CANARY = "sk-test-CANARY-0123456789"
ASK = Call("assistant_reply", "assistant", [{"role": "user", "content": "hello"}])


def written(folder: Path) -> str:
    return "".join(
        path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()
    )


def test_b09_01_no_key_in_anything_that_a_run_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with ModelServer(scenarios="tiny") as server:
        server.behaviour.answer = f"I was sent {CANARY}"
        words = [
            "scenarios=tiny",
            "limit=1",
            "agent=awe",
            "store=chroma",
            "backend=litellm",
            "backend.model=openai/gpt-4.1-mini",
            f"backend.api_base={server.address}",
            f"backend.cache={tmp_path / 'cache'}",
            f"out={tmp_path / 'run'}",
        ]
        evaluate_job.run(checked(EvaluateSettings, job.compose("evaluate", words)), quiet=True)
        assert server.keys == {CANARY: sum(server.keys.values())}
    assert (tmp_path / "run" / "results.json").exists()
    assert "CANARY" not in written(tmp_path)
    assert "CANARY" not in "".join(capfd.readouterr())


def test_b09_02_errors_that_echo_keys_are_redacted_in_records_and_exceptions(
    tiny: list[Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with ModelServer() as server:
        server.behaviour.echo = f"bad header 'Bearer {CANARY}' for http://me:{CANARY}@host/v1"
        backend = LitellmModel("openai/gpt-4.1-mini", api_base=server.address, retries=0)
        with pytest.raises(AMemGymError) as caught:
            backend.complete(ASK)
        results = evaluate(
            agents.Native,
            tiny,
            backends=lambda script: {"assistant": backend},
            journal=lambda item: FileJournal(tmp_path / slug(item.id)),
        )
        server.behaviour.echo, server.behaviour.key = None, "another"
        with pytest.raises(AMemGymError) as refused:
            backend.complete(ASK)
    assert results.to_json()["errors"]
    for found in (caught, refused):
        assert "CANARY" not in "".join(traceback.format_exception(found.value))
    assert "CANARY" not in written(tmp_path)
    assert "CANARY" not in str(results.to_json())


def test_a_refused_address_does_not_show_its_password() -> None:
    for address in (f"http://me:{CANARY}@127.0.0.1/v1", f"ftp://me:{CANARY}@host"):
        with pytest.raises(AMemGymError) as caught:
            LitellmModel("openai/x", api_base=address)
        assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"key={CANARY}",
        "Bearer abcdef",
        "AIzaSyA-123456789012345678901234567",
        "https://user:pass@host/",
    ],
)
def test_what_looks_like_a_key_is_redacted(text: str) -> None:
    found = redacted(text)
    assert "[redacted]" in found
    assert "pass@" not in found
    assert "CANARY" not in found


def test_b09_09_ordinary_text_is_left_alone() -> None:
    text = "my team reviews system prompt designs; the token ring, a skeleton key, task-by-task"
    assert redacted(text) == text


def test_logs_pass_through_the_filter(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("a-provider")
    logger.addFilter(RedactingFilter())
    with caplog.at_level(logging.DEBUG):
        logger.debug("sent %s", {"Authorization": f"Bearer {CANARY}"})
    assert "CANARY" not in caplog.text
    assert "sent" in caplog.text


def test_a_failed_call_has_no_key_in_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    backend = LitellmModel("openai/x", api_key_env="MY_KEY")
    assert "CANARY" not in f"{backend.__dict__} {dict(backend.parameters)}"
    assert Faults().share == 0.0
