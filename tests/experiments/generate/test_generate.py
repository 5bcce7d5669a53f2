"""The generate job: what it writes, what it refuses, and the audit from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError, RunError
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.scenarios import files as scenario_files
from experiments.app.settings import CONF
from experiments.generate import run as generate

yaml = pytest.importorskip("yaml")


def settings(**given: Any) -> dict[str, Any]:
    composed: dict[str, Any] = yaml.safe_load((CONF / "generate.yaml").read_text("utf-8"))
    del composed["defaults"]
    backend = {"name": "litellm", **composed["backend"]}
    return {**composed, "backend": backend, "judge_backend": {"name": "same"}, **given}


@pytest.mark.parametrize("name", ["my.json", "my.jsonl"])
def test_the_file_holds_the_generators_scenarios(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    generate.main(settings(n=3, seed=7, split="validation", out=name))
    assert capsys.readouterr().out == f"written to {name}: 3 scenarios\n"
    loaded = scenario_files.load(name)
    assert [scenario.to_json() for scenario in loaded] == list(Generator("validation", 7).items(3))


def test_a_json_file_is_the_benchmarks_list_of_items() -> None:
    generate.main(settings(n=2, out="my.json"))
    items = json.loads(Path("my.json").read_text("utf-8"))
    assert isinstance(items, list)
    assert {"id", "start_time", "user_profile", "state_schema", "periods", "qas"} <= set(items[0])
    assert {"period_start", "period_end", "period_summary", "sessions", "state", "updates"} <= set(
        items[0]["periods"][0]
    )


def test_single_settings_change_the_shape() -> None:
    generate.main(settings(n=1, out="my.json", shape="extra", periods=4, questions=5))
    (scenario,) = scenario_files.load("my.json")
    assert len(scenario.periods) == 5
    assert [len(question.required_info) for question in scenario.qas] == [3] * 5


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"out": None}, "out: expected the file to write"),
        ({"out": "my.csv"}, "expected a .json or .jsonl file, found 'my.csv'"),
        ({"shape": "huge"}, "shape: expected one of base, extra, found 'huge'"),
        ({"split": "dev"}, "split"),
        ({"n": 0}, "n: "),
        ({"changes_per_period": 9}, "10 periods x 9 changes = 90"),
        ({"audit": "no_such_set"}, "found 'no_such_set'"),
    ],
    ids=["no file", "ending", "shape", "split", "none", "changes", "audit"],
)
def test_wrong_settings_are_refused_and_nothing_is_written(
    wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        generate.main(settings(**{"out": "my.json", **wrong}))
    assert expected in str(caught.value)
    assert not Path("my.json").exists()


def test_an_audit_of_a_file_prints_its_figures(
    real_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate.main(settings(audit=str(real_data), judged=2))
    printed = capsys.readouterr().out
    assert "audit of 2 scenarios" in printed
    assert "choices a question" in printed
    assert "limits are meant for 1000 scenarios" in printed
    assert "without the topic library: figures by form" in printed


HOLDING = """
from pathlib import Path
from experiments.app.file_lock import sole_writer
with sole_writer(Path("my.json")):
    print("held", flush=True)
    input()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only there files are locked")
@pytest.mark.parametrize("source", ["library", "model"])
def test_a_second_process_is_refused_and_a_killed_one_stops_nobody(source: str) -> None:
    given = settings(n=1, out="my.json", source=source)
    given["backend"]["model"] = "openai/gpt-4.1-mini" if source == "model" else ""
    root = {**os.environ, "PYTHONPATH": str(CONF.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=root
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=r"out=my\.json: .* found another process at it"):
            generate.main(given)
        assert {path.name for path in Path().iterdir()} == {"my.json.lock"}
        first.kill()
    generate.main(settings(n=1, out="my.json"))
    assert {path.name for path in Path().iterdir()} == {"my.json"}


def test_a_folder_that_cannot_be_made_is_one_clear_error() -> None:
    Path("file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="expected a folder to write to, found file: File exists"):
        generate.main(settings(n=1, out="file/my.json"))
