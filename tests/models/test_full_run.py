"""What is told about a run on a real model: estimate before, transcript after, scores again."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

import agents
from amemgym_env.evaluation.driver import AgentMaker
from amemgym_env.evaluation.run import evaluate as evaluate_agent
from amemgym_env.models.journal import FileJournal, MemoryJournal
from amemgym_env.models.last_play import calls_in, last_play
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.prompts.assistant import KINDS
from amemgym_env.scenarios.model import Scenario
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.evaluate import run as evaluate
from experiments.evaluate.settings import EvaluateSettings
from experiments.report.rescore import rescore
from experiments.report.transcript import transcript
from tests.support.chat_server import Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")


def settings(*words: str) -> EvaluateSettings:
    return checked(EvaluateSettings, compose("evaluate", ["scenarios=tiny", *words]))


def test_estimate_transcript_and_rescoring_agree_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer(scenarios="tiny") as server:
        words = ["agent=awe", "backend=litellm", "backend.model=openai/gpt-4.1-mini"]
        words += [f"backend.api_base={server.address}", f"out={tmp_path / 'run'}"]
        guessed = {part.role: part.usage for part in evaluate.estimated(settings(*words))}
        assert not server.hits
        found = evaluate.run(settings(*words), quiet=True).results
    usage = found.usage
    assert {role: part.calls for role, part in guessed.items()} == {
        role: part.calls for role, part in usage.items()
    }
    for role, part in guessed.items():
        assert part.usd is not None
        assert 0.5 < part.prompt_tokens / usage[role].prompt_tokens < 8, role
    file = next((tmp_path / "run" / "journals").glob("*.jsonl"))
    text = transcript(FileJournal(file).read())
    assert "user: " in text
    assert "memory: ADD" in text
    assert "== exam after period 0: chosen" in text
    assert text.count("  call ") == sum(
        json.loads(line)["event"] == "call" for line in file.read_text("utf-8").splitlines()
    )
    assert "$0.0" in text.splitlines()[-1]
    (tmp_path / "run" / "results.json").unlink()
    again = rescore(tmp_path / "run")
    assert again.model_copy(update={"settings": found.settings}) == found


@pytest.mark.parametrize("fault", ["null", "filtered", "context_exceeded", "refused"])
@pytest.mark.parametrize("make", [agents.AWE, agents.AWI, agents.RAG])
def test_b01_06_b03_06_b03_07_nothing_to_read_outside_of_exams_is_one_call_and_the_run_goes_on(
    make: AgentMaker, fault: str, tiny: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    asked = ("exam_answer", "state_query", "informed_answer", "uninformed_answer")
    with ModelServer(scenarios="tiny") as server:
        spoken = [kind for kind in KINDS if kind not in asked]
        server.behaviour.faults = Faults(1.0, (fault,), spoken)
        backend = LitellmModel(
            "openai/gpt-4.1-mini", api_base=server.address, first_delay=9.0, retries=5
        )
        journal = MemoryJournal()
        found = evaluate_agent(
            make,
            tiny[:1],
            backends=lambda script: {"assistant": backend},
            journal=lambda item: nullcontext(journal),
        )
    document = found.to_json()
    calls = list(calls_in(journal.read()))
    assert len(calls) == sum(server.hits.values())
    assert "retries" not in document["usage"]
    assert (document["unscored"], document["errors"], document["stopped"]) == (0, {}, None)
    cause = {"null": "empty", "refused": "filtered"}.get(fault, fault)
    nothing = Counter(f"{call.kind}.{call.cause}" for call in calls if call.cause)
    assert document["unreadable_calls"] == nothing
    assert {name.partition(".")[2] for name in nothing} == {cause}
    assert nothing[f"assistant_reply.{cause}"] == server.hits["assistant_reply"] > 0
    turns = last_play(journal.read()).turns
    assert {event.reply for event in turns} == {""}
    assert document["follow_up_failures"] == server.hits["user_follow_up"]
