"""Folders that are cut, foreign or mixed: a clear message, and a report of the rest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.app.terminal import number
from experiments.report.run import main
from tests.experiments.report.cases import read_page, results, two_runs


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return two_runs(tmp_path_factory.mktemp("runs"))


def damage_results(folder: Path) -> None:
    file = folder / "results.json"
    file.write_text(file.read_text("utf-8")[:500], "utf-8")


def remove_results(folder: Path) -> None:
    (folder / "results.json").unlink()


def make_foreign(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "results.json").write_text('{"accuracy": 0.9, "label": "mine"}')


def mix_cells(folder: Path) -> None:
    document = results(folder)
    document["scenarios"] = document["scenarios"][:1]
    (folder / "results.json").write_text(json.dumps(document))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (damage_results, "found a damaged file"),
        (remove_results, "a run that has not ended"),
        (make_foreign, "expected what a run of this project writes"),
        (mix_cells, "mixed from several runs"),
        (shutil.rmtree, "found nothing there"),
    ],
)
def test_a_broken_run_gets_a_message_and_the_others_a_report(
    break_it: Any,
    message: str,
    folders: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = shutil.copytree(folders["rag"], tmp_path / "broken")
    break_it(broken)
    assert main([str(broken)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    out = tmp_path / "report.html"
    assert main([str(broken), str(folders["awe"]), "--out", str(out)]) == 0
    assert message in capsys.readouterr().err
    html = out.read_text("utf-8")
    assert "awe-2-4-30" in html
    assert "broken" in html
    assert str(tmp_path) not in html


def test_a_sweeps_page_is_written_into_the_sweeps_folder(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    sweep, single = tmp_path / "sweep", tmp_path / "single"
    for name, folder in folders.items():
        shutil.copytree(folder, sweep / name)
    shutil.copytree(folders["awe"], single)
    assert main([str(tmp_path / "absent"), str(sweep), str(single)]) == 0
    assert [path.parent for path in sorted(tmp_path.rglob("report.html"))] == [sweep]
    assert main([str(single), str(sweep)]) == 0
    assert (single / "report.html").exists()


def test_a_sweep_is_shown_without_its_unfinished_job(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = tmp_path / "sweep"
    for name, folder in folders.items():
        shutil.copytree(folder, sweep / name)
    remove_results(sweep / "rag")
    (sweep / "jobs").mkdir()
    out = tmp_path / "report.html"
    assert main([str(sweep), "--out", str(out)]) == 0
    assert "rag: expected results.json, found a run that has not ended" in capsys.readouterr().err
    assert [row[0] for row in read_page(out).tables["Leaderboard"][1:2]] == ["awe-2-4-30"]


def test_a_wrong_subcommand_gets_the_right_one_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comprae", "one", "other"]) == 2
    assert "no subcommand; did you mean compare" in capsys.readouterr().err


def tear_journal(journal: Path, _: Path) -> None:
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    lines[3] = lines[3][:20] + "\n"
    journal.write_text("".join(lines), "utf-8")


def cut_journal(journal: Path, _: Path) -> None:
    data = journal.read_bytes()
    journal.write_bytes(data[: len(data) // 2])


def swap_journal(journal: Path, other: Path) -> None:
    journal.write_bytes(
        next(p for p in sorted(other.iterdir()) if p.name != journal.name).read_bytes()
    )


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (tear_journal, "damaged line"),
        (cut_journal, "does not give the scores of results.json"),
        (swap_journal, "of another script"),
        (lambda journal, _: journal.unlink(), "journal is missing"),
        (lambda journal, _: journal.write_text(""), "journal is empty"),
        (lambda journal, _: journal.write_text('{"event": "turn"}\n'), "line 1: event 'turn'"),
    ],
)
def test_a_broken_journal_costs_its_scenario_alone(
    break_it: Any,
    message: str,
    folders: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = shutil.copytree(folders["awe"], tmp_path / "run")
    journals = sorted((run / "journals").iterdir())
    break_it(journals[0], run / "journals")
    assert main([str(run)]) == 0
    assert message in capsys.readouterr().err
    reader = read_page(run / "report.html")
    assert len(json.loads(reader.scripts["report-data"])["scenarios"]) == 1
    assert reader.tables["Leaderboard"][1][1] == number(results(run)["overall"])


def test_scenarios_that_are_gone_leave_the_scores(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folders["awe"], tmp_path / "run")
    document = results(run)
    document["settings"]["scenarios"] = "gone.json"
    (run / "results.json").write_text(json.dumps(document))
    assert main([str(run)]) == 0
    assert "--scenarios names the set" in capsys.readouterr().err
    assert json.loads(read_page(run / "report.html").scripts["report-data"])["scenarios"] == []
    assert main([str(run), "--scenarios", "base"]) == 0
    assert len(json.loads(read_page(run / "report.html").scripts["report-data"])["scenarios"]) == 2
