"""A run on a real model as its users start it, against the local server, and what it left."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import calls_in
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.evaluate import run as evaluate
from experiments.evaluate.settings import EvaluateSettings
from tests.support.chat_server import ModelServer

ROOT = Path(__file__).parents[2]
CONCURRENCY = 8


def command(server: ModelServer, out: Path, *more: str, scenarios: str = "tiny") -> list[str]:
    """Return the words of an evaluation on the server's model; of two for a key the last counts."""
    words = [
        f"scenarios={scenarios}",
        "agent=awe",
        "backend=litellm",
        "backend.model=openai/gpt-4.1-mini",
        f"backend.api_base={server.address}",
        f"backend.max_concurrency={CONCURRENCY}",
        "backend.processes=0",
        "preflight=false",
        f"out={out}",
        *more,
    ]
    return list({word.partition("=")[0]: word for word in words}.values())


def environment() -> dict[str, str]:
    """Return the environment of a run in a process of its own."""
    return {**os.environ, "OPENAI_API_KEY": "sk-test-resume", "PYTHONPATH": str(ROOT)}


def finished(words: list[str]) -> None:
    """Play what is left of a run, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test-resume")
        evaluate.run(checked(EvaluateSettings, compose("evaluate", words)), quiet=True)


def results(out: Path) -> dict[str, Any]:
    """Return a run's `results.json`."""
    document: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))
    return document


def compared(document: dict[str, Any]) -> dict[str, Any]:
    """Return what two runs share: all but settings and the time that calls took."""
    usage = {
        role: {name: value for name, value in part.items() if name not in ("seconds", "usd")}
        for role, part in document["usage"].items()
    }
    return {**document, "usage": usage, "settings": None}


def calls(out: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each finished call stands in a run's journals."""
    return Counter(
        (path.name, str(call.key), call.occurrence)
        for path in out.glob("journals/*.jsonl")
        for call in calls_in(FileJournal(path).read())
        if not call.failed
    )
