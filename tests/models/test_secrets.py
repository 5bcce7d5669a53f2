"""Canary keys: nowhere in what a run writes, logs or raises. Family 9 of the field's cases."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import tarfile
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import agents
from agents.assistant import Assistant
from amemgym_env.errors import AMemGymError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.models.backend import Call
from amemgym_env.models.client import Models
from amemgym_env.models.events import StartEvent
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.redaction import RedactingFilter, redacted
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from experiments.app import memory_factories as memory_search
from experiments.app.composition import compose
from experiments.app.memory_factories import ChromaSettings
from experiments.app.run_folder import RunFolder
from experiments.app.settings import checked
from experiments.evaluate import run as evaluate_job
from experiments.evaluate.settings import EvaluateSettings
from tests.support.chat_server import Faults, ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]
BAD = {".pem", ".key", ".pkl", ".sqlite", ".sqlite3", ".log", ".zip"}
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
        evaluate_job.run(checked(EvaluateSettings, compose("evaluate", words)), quiet=True)
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


def test_b09_04_ids_that_differ_by_dots_and_case_have_folders_of_their_own(
    tiny: list[Scenario], tmp_path: Path
) -> None:
    names = ["..", "a.b", "a_b", "A_b", "a b", "../a.b"]
    scenarios = [tiny[0].model_copy(update={"id": name}) for name in names]
    folder = RunFolder(tmp_path / "run")
    results = evaluate(
        agents.RAG,
        scenarios,
        journal=folder.journal,
        store=memory_search.store(ChromaSettings(name="chroma"), folder.path),
        workers=3,
    )
    assert {result.script.scenario.id for result in results.scenarios} == set(names)
    for part in ("journals", "stores"):
        made = [path.name for path in (folder.path / part).iterdir()]
        assert len({name.lower() for name in made}) == len(made) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    for scenario in scenarios:
        starts = [e for e in folder.journal(scenario).read() if isinstance(e, StartEvent)]
        assert [event.scenario for event in starts] == [scenario.id]


@pytest.mark.parametrize("make", [agents.Native, agents.RAG, agents.AWE, agents.AWI])
def test_b09_10_no_agent_has_a_key_in_its_state(
    make: Callable[[Models], Assistant], tiny: list[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("MY_KEY", CANARY)
    made: list[Assistant] = []

    def kept(models: Models) -> Assistant:
        made.append(make(models))
        return made[-1]

    with ModelServer(scenarios="tiny") as server:
        backend = LitellmModel(
            "openai/gpt-4.1-mini", api_base=server.address, api_key_env="MY_KEY", processes=0
        )
        evaluate(kept, tiny[:1], backends=lambda script: {"assistant": backend})
        assert server.keys == {CANARY: sum(server.keys.values())}
    state = json.dumps(made[0].state_dict())
    assert len(state) > 2
    assert "CANARY" not in state
    assert "MY_KEY" not in state
    assert server.address not in state


def test_b09_10_what_is_packed_and_tracked_is_on_a_list(tmp_path: Path) -> None:
    git = ["git", "-C", str(ROOT), "ls-files", "-z"]
    found = subprocess.run(git, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("no checkout")
    tracked = [Path(name) for name in found.stdout.split("\0") if name]
    assert not [path for path in tracked if path.name.startswith(".env") or path.suffix in BAD]
    ignored = ["git", "-C", str(ROOT), "check-ignore", "-q", ".env"]
    assert subprocess.run(ignored).returncode == 0
    copy = tmp_path / "copy"
    for path in tracked:
        if (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy / path)
    (copy / ".env").write_text(f"OPENAI_API_KEY={CANARY}", "utf-8")
    (copy / "amemgym_env" / ".env").write_text(f"OPENAI_API_KEY={CANARY}", "utf-8")
    build = "from setuptools import build_meta as b; b.build_wheel('out'); b.build_sdist('out')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (wheel,) = (copy / "out").glob("*.whl")
    (source,) = (copy / "out").glob("*.tar.gz")
    packed = zipfile.ZipFile(wheel).namelist()
    kinds = {".py", ".json", ".jsonl", ".txt", ".typed", ".yaml", ".html", ".css", ".js"}
    assert {Path(name).suffix for name in packed if ".dist-info/" not in name} <= kinds
    assert {Path(name).parts[0].partition("-")[0] for name in packed} == {"amemgym_env"}
    with tarfile.open(source) as archive:
        names = [Path(*Path(name).parts[1:]) for name in archive.getnames()]
        files = {str(name) for name in names}
    assert ".env" not in files | {Path(name).name for name in packed}
    assert not [name for name in names if name.name.startswith(".env") or name.suffix in BAD]


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
