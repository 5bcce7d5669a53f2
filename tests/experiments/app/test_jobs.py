"""The jobs as their users run them: what they print, and what a mistake gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from amemgym_env.errors import ConfigError
from experiments.app.composition import compose
from experiments.app.settings import CONF, checked
from experiments.evaluate import run as evaluate
from experiments.evaluate.settings import EvaluateSettings
from experiments.evolve.settings import EvolveSettings
from experiments.generate.settings import GenerateSettings
from experiments.search.settings import SearchSettings
from experiments.train.settings import TrainSettings

ROOT = Path(__file__).parents[3]
ROLES = ("user", "memory", "judge")


def job(*words: str, name: str = "evaluate") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{name}", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def results(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.slow
def test_a_run_prints_a_table_of_80_columns_and_writes_its_folder(tmp_path: Path) -> None:
    done = job("scenarios=tiny", "out=run")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "SIMULATED" in done.stdout
    assert "random" in done.stdout
    document = results(tmp_path / "run")
    assert document["label"] == "awe-2-4-30"
    assert len(list((tmp_path / "run" / "journals").iterdir())) == len(document["scenarios"])
    before = (tmp_path / "run" / "results.json").read_bytes()
    again = job("scenarios=tiny", "out=run")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "results.json").read_bytes() == before
    other = job("scenarios=tiny", "out=run", "seed=1")
    assert other.returncode == 2
    assert other.stderr == (
        "error: out=run: expected a new folder or this run's own, found another run's results "
        "(seed: 0 there, 1 here); choose another out=, or the settings of run/config.yaml\n"
    )
    third = job("scenarios=tiny", "out=run", "agent=native", "seed=1", "capacity=5")
    assert "(seed: 0 there, 1 here, and " in third.stderr
    assert third.stderr.count("\n") == 1
    assert (tmp_path / "run" / "results.json").read_bytes() == before


@pytest.mark.slow
def test_a_run_without_out_gets_a_new_folder_each_time(tmp_path: Path) -> None:
    for _ in range(2):
        assert job("scenarios=tiny", "agent=native").returncode == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["evaluate-0001", "evaluate-0002"]


@pytest.mark.slow
def test_several_agents_end_in_one_table(tmp_path: Path) -> None:
    done = job("-m", "scenarios=tiny", "agent=native,rag,awe,awi", "out=sweep")
    assert done.returncode == 0, done.stderr
    for label in ("native", "rag-2-4-30", "awe-2-4-30", "awi-2-4"):
        assert label in done.stdout
    assert len(list((tmp_path / "sweep").glob("*/results.json"))) == 4


@pytest.mark.slow
def test_anyones_own_agent_is_played(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (tmp_path / "my_agent.py").write_text(text.split("```python\n")[1].split("```")[0], "utf-8")
    done = job("scenarios=tiny", "agent=my_agent:Notebook", "out=own")
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "own")["label"] == "Notebook"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agnet=awe"], "agnet: unknown setting; nearest: agent"),
        (["agent=aww"], "expected one of awe, awi, native, policy, rag"),
        (["agent.frq=2"], "nearest: agent.freq"),
        (["agent=missing_module:Agent"], "expected package.module:Class"),
        (["scenarios=nowhere.json"], "nothing at 'nowhere.json'"),
        (["scenarios=latin.json"], "expected UTF-8 text, found byte 0xe9"),
        (["scenarios=broken.json"], "expected JSON"),
        (["scenarios=bad_field.json"], "scenario 2 ('tiny-"),
        (["agent=aww"], "found 'aww'; did you mean awi or awe?"),
        (["agent=my_agent.Notebook"], "did you mean my_agent:Notebook?"),
        (
            ["difficulty=harder"],
            "difficulty: expected one of none, easy, default, hard, found 'harder'; "
            "did you mean hard?",
        ),
        (["mode=offpolicy"], "found 'offpolicy'; did you mean off_policy"),
        (["scenarios=bsae"], "did you mean base?"),
        (["seed=abc"], "seed: Input should be a valid integer, found 'abc'"),
        (["backend.profile=calibratd"], "found 'calibratd'; did you mean calibrated?"),
        (["agent=native,awe"], "add -m"),
        (["out=foreign"], "found neither"),
        (["agent=native", "agent.top_k=5"], "known with agent=awe, agent=policy, agent=rag"),
        (["+agent.top_k=5"], "settings are closed; expected key=value"),
        (["~seed"], "~seed: settings are closed; expected key=value"),
        (["agent={name: awe}"], "expected agent=NAME, one of awe, awi, native, policy, rag; its"),
        (["seed"], "expected key=value; put text with commas"),
        (["backend=litellm"], "backend.model: expected a value, found none"),
        (["hydra/launcher=ray"], "which is not installed; pip install 'amemgym-env[ray]'"),
        (["--multirun", "agent.frq=2,4"], "agent.frq: unknown setting; nearest: agent.freq"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_b04_01_f12_a_mistake_gets_one_error_before_anything_is_played(
    words: list[str],
    said: str,
    tmp_path: Path,
    tiny_items: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "latin.json").write_bytes('[{"id": "é"}]'.encode("latin-1"))
    (tmp_path / "broken.json").write_text("[{,", encoding="utf-8")
    tiny_items[2]["qas"][0]["required_info"] = ["no_such_variable"]
    (tmp_path / "bad_field.json").write_text(json.dumps(tiny_items), encoding="utf-8")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine", encoding="utf-8")
    given = (
        words
        if any(word.startswith("scenarios=") for word in words)
        else [*words, "scenarios=tiny"]
    )
    monkeypatch.setattr(sys, "argv", ["evaluate", *given])
    with pytest.raises(SystemExit) as exit_status:
        evaluate.command()
    assert exit_status.value.code == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("error:") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "model", "word", "meant"),
    [
        ("evaluate", EvaluateSettings, "difficulty=eassy", "easy"),
        ("train", TrainSettings, "difficulty=harder", "hard"),
        ("train", TrainSettings, "warm_start=forsight", "foresight"),
        ("train", TrainSettings, "env=slot", "slots"),
        ("search", SearchSettings, "method=rule", "rules"),
        ("search", SearchSettings, "difficulty=harder", "hard"),
        ("evolve", EvolveSettings, "guard=heldout", "held_out"),
        ("generate", GenerateSettings, "split=tests", "test"),
    ],
)
def test_a_wrong_name_is_told_the_right_one(
    name: str, model: type[BaseModel], word: str, meant: str
) -> None:
    key, _, given = word.partition("=")
    with pytest.raises(ConfigError) as caught:
        checked(model, compose(name, [word]))
    said = str(caught.value)
    assert f"- {key}: expected one of " in said
    assert f"found '{given}'; did you mean {meant}?" in said


@pytest.mark.parametrize(
    "override",
    [
        *(f"{path.parent.name}={path.stem}" for path in sorted(CONF.glob("*/*.yaml"))),
        *(f"{role}_backend={name}" for role in ROLES for name in ("same", "simulated", "litellm")),
    ],
)
def test_every_configuration_of_evaluate_is_valid(override: str) -> None:
    group, _, choice = override.partition("=")
    if group == "algorithm":
        assert compose("train", [override, *(["algorithm.path=a:B"] * (choice == "own"))])
        return
    extra = [f"{group}.model=some/model"] if choice == "litellm" else []
    if choice == "policy":
        extra = ["agent.checkpoint=some/folder"]
    assert checked(EvaluateSettings, compose("evaluate", [override, *extra])).scenarios == "base"
