"""What is told about a run on a real model: estimate before, transcript after, scores again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amemgym_env.journal import FileJournal
from experiments import evaluate, job
from experiments.rescore import rescore
from experiments.settings import EvaluateSettings, checked
from experiments.transcript import transcript
from tests.server import ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")


def settings(*words: str) -> EvaluateSettings:
    return checked(EvaluateSettings, job.compose("evaluate", ["scenarios=tiny", *words]))


def test_estimate_transcript_and_rescoring_agree_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer(scenarios="tiny") as server:
        words = ["agent=awe", "backend=litellm", "backend.model=openai/gpt-4.1-mini"]
        words += [f"backend.api_base={server.address}", f"out={tmp_path / 'run'}"]
        guessed = {part.role: part.usage for part in evaluate.estimated(settings(*words))}
        assert not server.hits
        document = evaluate.run(settings(*words), quiet=True)
    usage = document["usage"]
    assert {role: part.calls for role, part in guessed.items()} == {
        role: part["calls"] for role, part in usage.items()
    }
    for role, part in guessed.items():
        assert part.usd is not None
        assert 0.5 < part.prompt_tokens / usage[role]["prompt_tokens"] < 8, role
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
    assert {**again, "settings": None} == {
        **{name: part for name, part in document.items() if name != "folder"},
        "settings": None,
    }
