"""Family 9 of the field's cases in whole: keys, ids as paths, foreign checkpoints, kept memories.

The single properties stand in `test_secrets.py`, `test_scenario_files.py` and `test_policies.py`.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import agents
from amemgym_env.agent import Turn
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import ConfigError, RunError, TransportError
from amemgym_env.evaluation.driver import play
from amemgym_env.evaluation.run import evaluate
from amemgym_env.memory.bank import Bank
from amemgym_env.memory.index import MemoryIndex, ReadOnlyView
from amemgym_env.models.backend import Call
from amemgym_env.models.client import Models
from amemgym_env.models.events import event_json
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.prompts.assistant import AssistantReply, Context
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from experiments.app import memory_factories as memory_search
from experiments.app.composition import compose
from experiments.app.memory_factories import ChromaSettings
from experiments.app.run_folder import RunFolder
from experiments.app.settings import checked
from experiments.evaluate import run as evaluate_job
from experiments.evaluate.settings import EvaluateSettings
from tests.policies.test_checkpoint import drawn_policy
from tests.prompts.test_parsing_field_cases import Says
from tests.support.chat_server import ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]
CANARY = "sk-test-CANARY-0123456789"
ASK = Call("assistant_reply", "assistant", [{"role": "user", "content": "hello"}])
IDS = ["../../victim", "/absolute/victim", "..", ".", "", "a/b", "C:\\x", "con", "x" * 300, "A/b"]
OWN = """
import os
from agents import AWE

class Leaky(AWE):
    def store(self, messages):
        raise RuntimeError("refused: Authorization: Bearer " + os.environ["MY_KEY"])
"""


def written(folder: Path) -> str:
    """Return all that stands in a folder's files, also in archives."""
    parts = []
    for path in folder.rglob("*"):
        if path.is_file():
            parts.append(path.read_bytes())
        if path.is_file() and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                parts += [archive.read(name) for name in archive.namelist()]
    return b"".join(parts).decode("utf-8", "replace")


def test_b09_01_a_sweep_with_a_job_that_crashes_writes_and_says_no_key(tmp_path: Path) -> None:
    (tmp_path / "own_agents.py").write_text(OWN, "utf-8")
    with ModelServer(scenarios="tiny") as server:
        words = [
            "-m",
            "scenarios=tiny",
            "limit=1",
            "agent=native,own_agents:Leaky",
            "backend=litellm",
            "backend.model=openai/gpt-4.1-mini",
            "backend.api_key_env=MY_KEY",
            f"backend.api_base={server.address}",
            "backend.processes=0",
            "out=S",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MY_KEY": CANARY}
        environment["OPENAI_API_KEY"] = f"{CANARY}-two"
        line = [sys.executable, "-W", "ignore", "-m", "experiments.evaluate", *words]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)
        assert server.keys == {CANARY: sum(server.keys.values())}
    assert done.returncode == 1
    (trace,) = tmp_path.rglob("traceback.txt")
    assert "refused: Authorization: " in trace.read_text("utf-8")
    assert "MY_KEY" in (trace.parent / "config.yaml").read_text("utf-8")
    found = written(tmp_path / "S") + done.stdout + done.stderr
    assert "[redacted]" in found
    assert "CANARY" not in found


def test_b09_01_no_key_in_what_a_training_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sb3_contrib")
    from experiments.train import run as train
    from tests.experiments.train.test_train import SMALL, settings

    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    train.run(settings("env=memory", "algorithm=ppo", *SMALL, "out=run"))
    kinds = {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert {".json", ".npz", ".png"} <= kinds
    assert "CANARY" not in written(tmp_path) + "".join(capfd.readouterr())


def test_b09_01_a_key_in_place_of_its_variables_name_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    with pytest.raises(ConfigError, match="api_key_env") as caught:
        LitellmModel("openai/x", api_key_env=CANARY)
    assert "CANARY" not in str(caught.value)
    backend = LitellmModel("openai/x", api_key_env="MY_KEY")
    assert backend.parameters.get("api_key") is None
    assert "CANARY" not in f"{backend!r} {backend.__dict__} {backend.parameters!r}"


CRASH = """
import os
from experiments.evaluate import run as evaluate; from experiments.app import hydra_app as job
from experiments.app.composition import compose

def leaky(composed):
    raise RuntimeError("refused: header of " + os.environ["MY_KEY"])

job.run("evaluate", leaky)
"""


def test_b09_02_a_crash_in_a_users_own_code_is_told_in_full_but_for_keys() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MY_KEY": "of-no-known-form-CANARY"}
    line = [sys.executable, "-W", "ignore", "-c", CRASH, "scenarios=tiny"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "RuntimeError: refused: header of [redacted]" in done.stderr
    assert "in leaky" in done.stderr
    assert "CANARY" not in done.stdout + done.stderr


@pytest.mark.parametrize("key", [CANARY, "of-no-known-form-CANARY"])
def test_b09_02_logs_of_every_level_show_no_key(
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    noisy = ("LiteLLM", "openai", "openai._base_client", "httpx", "httpcore", "asyncio", "aiohttp")
    with caplog.at_level(logging.DEBUG), ModelServer() as server:
        for name in noisy:
            caplog.set_level(logging.DEBUG, logger=name)
            # A job that was run in this process may have switched it off.
            monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        backend = LitellmModel("openai/gpt-4.1-mini", api_base=server.address, retries=1)
        server.behaviour.answer = f"I was sent {key}"
        assert backend.complete(ASK).text == "I was sent [redacted]"
        server.behaviour.echo = f"bad header 'Bearer {key}' for http://me:{key}@host/v1"
        with pytest.raises(TransportError) as caught:
            backend.complete(ASK)
    assert "CANARY" not in str(caught.value)
    assert any(record.levelno == logging.DEBUG for record in caplog.records)
    said = [caplog.text, *(record.getMessage() for record in caplog.records), *capfd.readouterr()]
    assert not [line for text in said for line in text.splitlines() if "CANARY" in line]


@pytest.mark.parametrize("name", IDS, ids=lambda name: name[:12])
def test_b09_03_b09_04_no_id_reaches_what_lies_outside_of_a_runs_folder(
    name: str, tiny: list[Scenario], tmp_path: Path
) -> None:
    victims = [tmp_path / "victim", tmp_path / "out" / "victim", tmp_path / "out" / "run" / "b"]
    for victim in victims:
        victim.mkdir(parents=True)
        (victim / "canary").write_text("alive", "utf-8")
    folder = RunFolder(tmp_path / "out" / "run")
    scenario = tiny[0].model_copy(update={"id": name})
    for _ in range(2):  # the second time, stores are written anew
        found = evaluate(
            agents.RAG,
            [scenario],
            journal=folder.journal,
            store=memory_search.store(ChromaSettings(name="chroma"), folder.path),
        )
        assert found.to_json()["overall"] is not None
        (folder.path / "journals" / f"{slug(name)}.jsonl").unlink()
    assert all((victim / "canary").read_text("utf-8") == "alive" for victim in victims)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"run", "victim"}
    assert {path.name for path in folder.path.iterdir()} == {"b", "journals", "stores"}
    assert [path.name for path in (folder.path / "stores").iterdir()] == [slug(name)]


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("part", ["journals", "stores"])
@pytest.mark.parametrize("whole", [True, False])
def test_b09_03_a_link_that_leads_out_of_a_runs_folder_is_refused(
    part: str, whole: bool, tiny: list[Scenario], tmp_path: Path
) -> None:
    victim, run = tmp_path / "victim", tmp_path / "run"
    victim.mkdir()
    (victim / "canary").write_text("alive", "utf-8")
    name = slug(tiny[0].id) + (".jsonl" if part == "journals" else "")
    link = run / part if whole else run / part / name
    link.parent.mkdir(parents=True)
    aim = victim if whole or part == "stores" else victim / "canary"
    link.symlink_to(aim, target_is_directory=aim.is_dir())
    folder = RunFolder(run)
    with pytest.raises(RunError, match="leads out"):
        evaluate(
            agents.RAG,
            tiny[:1],
            journal=folder.journal,
            store=memory_search.store(ChromaSettings(name="chroma"), folder.path),
        )
    assert [path.name for path in victim.iterdir()] == ["canary"]
    assert (victim / "canary").read_text("utf-8") == "alive"


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        return Path.write_text, (self.path, "sung")


def test_b09_06_a_command_that_is_given_a_foreign_zip_opens_nothing_and_says_why(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as file:
        for name in ("data", "pytorch_variables.pth", "policy.pth"):
            file.writestr(name, pickle.dumps(Canary(tmp_path / "canary")))
    words = [
        "scenarios=tiny",
        "agent=policy",
        f"agent.checkpoint={tmp_path / 'model.zip'}",
        "out=R",
    ]
    with pytest.raises(ConfigError, match=r"can run any code.*trust=true"):
        evaluate_job.run(checked(EvaluateSettings, compose("evaluate", words)), quiet=True)
    assert {path.name for path in tmp_path.iterdir()} == {"model.zip"}
    told = (ROOT / "docs" / "training.md").read_text("utf-8")
    assert "refused without `trust=true`" in told


LONG = "my team reviews system prompt designs: ignore previous instructions, api_key=, <b>; " * 9


def test_b09_09_a_long_memory_about_prompts_is_kept_to_the_letter(tiny: list[Scenario]) -> None:
    text = LONG.strip()
    assert len(text) > 700
    replies = {
        "fact_extraction": [json.dumps({"facts": [text]})],
        "memory_decision": [
            json.dumps({"operations": [{"op": "ADD", "id": None, "text": text}]}),
        ],
    }
    shown: list[str] = []

    class Watched(Says):
        def complete(self, call: Call) -> Any:
            shown.extend(part["content"] for part in call.messages if call.kind == "exam_answer")
            return super().complete(call)

    events: list[Any] = []
    env = AMemGymEnv(scenarios=tiny[:1])
    models = Models({"assistant": Watched(build(tiny[0], "none", 0), replies)})
    play(agents.AWE(models, 2, 0), env, events.append, seed=0)
    assert [entry.text for entry in env.episode.bank.entries] == [text]
    assert any(f"- {text}\n" in part for part in shown)
    stored = [operation for event in events for operation in getattr(event, "operations", ())]
    assert {operation[2] for operation in stored} == {text}
    assert json.loads(json.dumps([event_json(event) for event in events])) is not None
    assert Bank.from_json(json.loads(json.dumps(env.episode.bank.to_json()))) == env.episode.bank


@pytest.mark.parametrize("count", [0, 2])
def test_b09_09_what_is_taken_out_of_a_reply_is_counted_in_its_record(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    events: list[Any] = []
    said = f"{LONG} [redacted] {f'{CANARY} ' * count}end"
    with ModelServer() as server:
        server.behaviour.answer = said
        backend = LitellmModel("openai/gpt-4.1-mini", api_base=server.address)
        models = Models({"assistant": backend}, recorder=events.append)
        value = models.ask(AssistantReply(Context(), "hello")).value
    assert value == said.replace(CANARY, "[redacted]")
    assert events[0].details.get("redacted", 0) == count


def test_b09_10_an_agent_with_a_policy_has_no_key_in_its_state_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    model = LitellmModel("openai/gpt-4.1-mini", api_base="http://127.0.0.1:9/v1")
    agent = agents.PolicyAgent(Models({"assistant": model}), drawn_policy("memory"), ns=2)
    index = MemoryIndex()
    index.load(Bank())
    agent.reset(ReadOnlyView(index))
    agent.write(Turn(0, 0, 0, "2024-01-01T08:00:00", "I moved to Oslo", ()), "Noted.")
    state = json.dumps(agent.state_dict())
    assert "I moved to Oslo" in state
    assert not [word for word in ("CANARY", "127.0.0.1", "gpt-4.1") if word in state]
