"""The wheel and its command: all jobs, and no top-level name but the package's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from amemgym_env.__main__ import JOBS, main

ROOT = Path(__file__).parents[1]
MARK = 'if __name__ == "__main__":'


def test_the_command_knows_every_job() -> None:
    folder = ROOT / "experiments"
    files = {path.stem for path in folder.glob("*.py") if MARK in path.read_text("utf-8")}
    assert files | {path.parent.name for path in folder.glob("*/__main__.py")} == set(JOBS)


def test_the_command_alone_lists_the_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["amemgym"])
    main()
    printed = capsys.readouterr().out
    assert [name for name in JOBS if f"\n  {name} " not in printed] == []
    assert max(map(len, printed.splitlines())) <= 80
    monkeypatch.setattr(sys, "argv", ["amemgym", "evalute"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "found 'evalute'; did you mean evaluate" in capsys.readouterr().err


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        words,
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_checkout_runs_the_same_command(tmp_path: Path) -> None:
    words = ("evaluate", "scenarios=tiny", "agent=native", "out=run")
    done = run(tmp_path, sys.executable, "-m", "amemgym_env", *words, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "results.json").exists()


@pytest.mark.slow
def test_an_installed_wheel_runs_the_jobs_and_takes_one_name(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "runs", "tests")
    shutil.copytree(ROOT, source, ignore=ignored)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    built = run(
        tmp_path, *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", "wheels", str(source)
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "wheels").iterdir()

    made = run(tmp_path, sys.executable, "-m", "venv", "--without-pip", "home")
    assert made.returncode == 0, made.stderr
    scripts = tmp_path / "home" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    installed = run(tmp_path, *pip, "--python", python, "install", "--no-deps", str(wheel))
    assert installed.returncode == 0, installed.stderr
    # The dependencies are those of this environment; its own .pth files are not read there.
    packages = run(tmp_path, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    here = Path(packages.stdout.strip())
    (here / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")

    (tmp_path / "elsewhere").mkdir()
    words = ("evaluate", "scenarios=tiny", "agent=awe", "out=run")
    done = run(tmp_path / "elsewhere", str(scripts / "amemgym"), *words)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "elsewhere" / "run" / "results.json").read_text("utf-8"))
    assert document["label"] == "awe-2-4-30"
    found = run(
        tmp_path / "elsewhere",
        python,
        "-c",
        "from importlib.util import find_spec as find; import amemgym_env; "
        "print([find(n) for n in ('agents', 'experiments', 'conf')], amemgym_env.__file__)",
    )
    assert found.stdout.startswith(f"[None, None, None] {here}"), found.stdout + found.stderr
