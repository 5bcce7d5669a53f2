"""Sweeps as their users run them (families 7 and 2 of the field cases; names bear the case)."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.usage import Usage
from experiments.app.pareto import Cost, Point, cost, front, varied
from experiments.app.scatter_svg import picture
from experiments.app.sweep import objective
from experiments.evaluate import run as evaluate

ROOT = Path(__file__).parents[3]
OWN = """
from agents import AWE

class Broken(AWE):
    def store(self, messages):
        raise RuntimeError("no luck with this one")
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "experiments.evaluate", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def job(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
    )


def told(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    return document


def statuses(folder: Path) -> list[str]:
    return [record["status"] for record in told(folder)["jobs"]]


def journals(folder: Path) -> dict[str, int]:
    """Return when each journal of a sweep was last written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("*/journals/*.jsonl")}


@pytest.mark.slow
def test_b07_03_a_rerun_plays_what_is_new_and_looks_at_its_own_jobs_alone(tmp_path: Path) -> None:
    common = ("-m", "scenarios=tiny", "agent=awe", "out=S")
    first = job(*common, "agent.top_k=1,2,3")
    assert first.returncode == 0, first.stderr
    before = journals(tmp_path / "S")
    assert len(told(tmp_path / "S")["jobs"]) == 3
    second = job(*common, "agent.top_k=3,7")
    assert second.returncode == 0, second.stderr
    document = told(tmp_path / "S")
    assert [record["name"] for record in document["jobs"]] == ["top_k=3", "top_k=7"]
    assert "2 of 2 jobs finished (BasicLauncher)" in second.stdout
    after = journals(tmp_path / "S")
    assert {path: after[path] for path in before} == before  # nothing was played twice
    assert len(after) == len(before) + 3
    ElementTree.parse(tmp_path / "S" / "sweep.svg")
    lines = (tmp_path / "S" / "sweep.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3


@pytest.mark.slow
def test_b07_07_one_job_fails_the_others_finish_and_the_exit_status_tells(tmp_path: Path) -> None:
    (tmp_path / "own_agents.py").write_text(OWN, encoding="utf-8")
    done = job("-m", "scenarios=tiny", "agent=rag,own_agents:Broken,native", "out=S")
    assert done.returncode == 1
    assert statuses(tmp_path / "S") == ["done", "failed", "done"]
    failed = told(tmp_path / "S")["jobs"][1]
    folder = tmp_path / "S" / failed["folder"]
    assert "no luck with this one" in (folder / "traceback.txt").read_text(encoding="utf-8")
    assert json.loads((folder / "job.json").read_text(encoding="utf-8"))["status"] == "failed"
    assert "failed: scenarios=tiny agent=own_agents\\:Broken" in done.stderr
    assert "2 of 3 jobs finished" in done.stdout
    healed = OWN.replace('raise RuntimeError("no luck with this one")', "return ()")
    (tmp_path / "own_agents.py").write_text(healed, "utf-8")
    again = job("-m", "scenarios=tiny", "agent=rag,own_agents:Broken,native", "out=S")
    assert again.returncode == 0, again.stderr
    assert statuses(tmp_path / "S") == ["done", "done", "done"]
    assert not (folder / "traceback.txt").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agent.top_k=1,[2],3"], "agent.top_k=[2]: agent.top_k: Input should be a valid integer"),
        (["capacity=null,x"], "capacity=x: capacity: Input should be a valid integer"),
        (["agent=native,awe", "agent.freq=2,4"], "2 of 4 jobs are wrong; nothing was played"),
        (["agent.tpo_k=1,2"], "agent.tpo_k: unknown setting; nearest: agent.top_k"),
        (["agent=awe,aww"], "agent: expected one of"),
        (["out=a,b"], "expected one folder for the whole sweep"),
        (["agent.top_k=1,2", "out=foreign"], "expected an empty folder or a sweep's own"),
        (["agent.top_k=1,2", "hydra/launcher=nowhere"], "'nowhere', which is not installed"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_b07_01_a_wrong_value_is_refused_before_any_job_is_played(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["evaluate", "-m", "scenarios=tiny", *words])
    with pytest.raises(SystemExit) as exit_status:
        evaluate.command()
    assert exit_status.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("error:") == 1
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.slow
def test_b07_01_quoted_text_with_a_comma_is_one_value(
    tmp_path: Path, tiny_items: list[dict[str, Any]]
) -> None:
    (tmp_path / "my, file.json").write_text(json.dumps(tiny_items[:1]), encoding="utf-8")
    quoted = "scenarios='my, file.json'"
    alone = job(quoted, "agent=native", "out=one")
    assert alone.returncode == 0, alone.stderr
    swept = job("-m", quoted, "agent=native", "capacity=null,3", "out='many, of them'")
    assert swept.returncode == 0, swept.stderr
    assert statuses(tmp_path / "many, of them") == ["done", "done"]
    bare = job("scenarios=my, file.json", "agent=native")
    assert bare.returncode == 2
    assert "in quotes inside quotes" in bare.stderr


@pytest.mark.slow
def test_b07_04_runs_started_at_once_get_folders_of_their_own(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            command("scenarios=tiny", "limit=1", "agent=native"),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(4)
    ]
    assert [process.communicate()[0] and process.returncode for process in running] == [0] * 4
    assert len(list((tmp_path / "runs").glob("evaluate-*/results.json"))) == 4


@pytest.mark.slow
@pytest.mark.parametrize("chdir", ["true", "false"])
def test_b07_06_paths_are_seen_from_where_the_command_was_given(
    chdir: str, tmp_path: Path, tiny_items: list[dict[str, Any]]
) -> None:
    here = tmp_path / "elsewhere"
    (here / "data").mkdir(parents=True)
    (here / "data" / "some.json").write_text(json.dumps(tiny_items[:1]), encoding="utf-8")
    words = ("scenarios=data/some.json", "agent=native", f"hydra.job.chdir={chdir}")
    done = job(*words, "out=run", cwd=here)
    assert done.returncode == 0, done.stderr
    assert (here / "run" / "results.json").exists()
    swept = job("-m", *words, "out=many", cwd=here)
    assert swept.returncode == 0, swept.stderr
    assert statuses(here / "many") == ["done"]


def needs(launcher: str) -> None:
    if importlib.util.find_spec(f"hydra_plugins.hydra_{launcher}_launcher") is None:
        pytest.skip(f"hydra-{launcher}-launcher is not installed")


@pytest.mark.slow
def test_b07_08_b07_12_joblib_plays_in_processes_and_the_launcher_used_is_told(
    tmp_path: Path,
) -> None:
    needs("joblib")
    done = job(
        "-m", "scenarios=tiny", "agent=rag", "store=numpy,chroma", "out=S",
        "hydra/launcher=joblib", "hydra.launcher.n_jobs=2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 of 2 jobs finished (JoblibLauncher)" in done.stdout
    alone = job("scenarios=tiny", "agent=rag", "store=chroma", "out=one")
    assert alone.returncode == 0, alone.stderr
    numpy, other = [tmp_path / "S" / told(tmp_path / "S")["jobs"][n]["folder"] for n in (0, 1)]
    assert (other / "stores").is_dir()  # each job's databases stand in its own folder
    assert not (numpy / "stores").exists()
    assert (other / "results.json").read_bytes() == (tmp_path / "one/results.json").read_bytes()


@pytest.mark.slow
def test_b07_12_ray_plays_real_jobs(tmp_path: Path) -> None:
    needs("ray")
    done = job(
        "-m", "scenarios=tiny", "agent=awe", "agent.freq=2,4", "agent.ns=0,4", "out=S",
        "hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4 of 4 jobs finished (RayLauncher)" in done.stdout


@pytest.mark.slow
def test_b07_03_a_killed_sweep_plays_the_rest_only(tmp_path: Path) -> None:
    words = ("-m", "scenarios=base", "limit=1", "agent=awe", "agent.top_k=1,2,3,4", "out=S")
    with subprocess.Popen(
        command(*words), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        for _ in range(1200):
            finished = list((tmp_path / "S").glob("*/results.json"))
            if len(finished) >= 2:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    finished = list((tmp_path / "S").glob("*/results.json"))
    assert 2 <= len(finished) < 4
    before = {path: path.stat().st_mtime_ns for path in finished}
    done = job(*words)
    assert done.returncode == 0, done.stderr
    assert statuses(tmp_path / "S") == ["done"] * 4
    assert {path: path.stat().st_mtime_ns for path in finished} == before


def test_the_front_holds_what_nothing_beats() -> None:
    points = [
        Point(0.5, 10.0),
        Point(0.5, 12.0),  # dearer than the first, no better
        Point(0.7, 20.0),
        Point(0.6, 25.0),  # dearer and worse
        Point(0.9, 40.0),
        Point(None, 1.0),
        Point(1.0, None),
        Point(0.9, 40.0),  # equal to an earlier one
    ]
    assert front(points) == [0, 2, 4]
    assert front([]) == []


def test_cost_counts_what_the_memory_needs_and_not_what_measuring_takes() -> None:
    def part(prompt: int, completion: int, usd: float | None) -> Usage:
        return Usage(1, prompt, completion, usd=usd)

    usage = {
        "assistant": part(100, 10, 1.0),
        "memory": part(50, 5, 0.5),
        "exam": part(30, 3, 0.25),
        "probe": part(10**6, 0, 9.0),
        "upper_bound": part(10**6, 0, 9.0),
    }

    def spent(simulated: bool = False) -> Cost:
        results = ResultsFile.of(
            {
                "label": "a",
                "memory": "bank",
                "mode": "on_policy",
                "simulated": simulated,
                "settings": {},
                "scenarios": ["a", "b"],
                "accuracy": {},
                "upper_bound_accuracy": {},
                "usage": usage,
            }
        )
        return cost(results)

    assert spent() == (99.0, 0.875, False)
    usage["memory"] = part(50, 5, None)
    assert spent().usd is None
    simulated = spent(simulated=True)
    assert simulated.usd == pytest.approx((180 * 0.4 + 18 * 1.6) / 1e6 / 2)
    assert simulated.estimated


def test_names_of_jobs_are_what_they_do_not_share() -> None:
    jobs = [["a=1", "agent.freq=2"], ["a=1", "agent.freq=4"]]
    assert varied(jobs) == ["freq=2", "freq=4"]
    assert varied([["a=1"]]) == ["a=1"]
    assert varied([]) == []


def test_a_picture_is_whole_xml_whatever_stands_in_a_name() -> None:
    points = [Point(0.5, 10.0), Point(0.5, 10.0), Point(None, 3.0)]
    document = picture([("a < b & c", points), ("none", [])], ["<x>", "&", '"'])
    root = ElementTree.fromstring(document)
    circles = [part for part in root.iter() if part.tag.endswith("circle")]
    assert len(circles) == 2
    assert objective(None) != objective(None)  # NaN: a failed trial for any sweeper
