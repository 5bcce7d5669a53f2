"""The report's page: its numbers, its inspector's letters, hostile texts, and broken folders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from amemgym_env.evaluation.scenario_result import scenario_result
from amemgym_env.models.events import CallEvent, StartEvent, TurnEvent
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.files import slug
from experiments.app.terminal import number
from experiments.report.page import command, runs
from experiments.report.page import inspector as inspection
from experiments.report.page.html import in_script
from experiments.report.page.write_attribution import likely_writes
from experiments.report.run import main
from experiments.report.step_log import step_log
from tests.experiments.report.cases import (
    HOSTILE,
    hostile_items,
    numbers_are_those_of,
    read_page,
    results,
    run_folder,
    two_runs,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return two_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def page(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert main([*map(str, folders.values()), "--out", str(out), "--pictures"]) == 0
    return out


@pytest.mark.slow
def test_the_numbers_of_the_page_are_those_of_results_json(
    folders: dict[str, Path], page: Path
) -> None:
    shown = read_page(page)
    numbers_are_those_of(shown, list(folders.values()))
    rows = [row[0] for row in shown.tables["Leaderboard"][3:]]
    assert rows[:2] == ["upper bound", "previous period's truth (oracle)"]
    assert "The oracle answers with" in page.read_text("utf-8")


def test_a_line_is_drawn_for_the_best_floor_and_the_oracle_is_left_out(page: Path) -> None:
    picture = (page.parent / "report_pictures" / "overall.svg").read_text("utf-8")
    assert "oracle" not in picture
    assert "upper bound" in picture


def test_periods_and_failures_add_up_to_results_json(folders: dict[str, Path], page: Path) -> None:
    reader = read_page(page)
    accuracy = {row[0]: row[1:] for row in reader.tables["Accuracy by period"][1:]}
    memory = {row[0]: row[1:] for row in reader.tables["Memory score by period"][1:]}
    for folder in folders.values():
        truth = results(folder)
        for period, shown in enumerate(accuracy[truth["label"]]):
            cells = [cell for rows in truth["accuracy"].values() for cell in rows[period]]
            assert shown == number(sum(cells) / len(cells))
            missed = [
                float(row[period + 2] or 0)
                for row in reader.tables["Failures by period"]
                if row[0] == truth["label"]
            ]
            assert sum(missed) == pytest.approx(1 - sum(cells) / len(cells), abs=2e-3)
        assert memory[truth["label"]] == [number(v) for v in truth["memory_score_by_period"]]


def test_letters_of_the_grid_agree_with_the_failures_of_the_results(
    folders: dict[str, Path],
) -> None:
    seen = set()
    for folder in folders.values():
        (run,), *_ = runs.load([folder])
        for name, script in runs.scripts(run).items():
            events = FileJournal(folder / "journals" / f"{slug(name)}.jsonl").read()
            result = scenario_result(script, events)
            probes = last_play(events).probes
            for period, row in enumerate(result.diagnosis.failure):
                for question, failure in enumerate(row):
                    letters = {
                        inspection.letter(
                            inspection.named(script, probes, period, question, variable),
                            inspection.named(
                                script,
                                probes,
                                inspection.write_positions(script.scenario)[variable][period],
                                question,
                                variable,
                            ),
                            failure == "utilization",
                        )
                        for variable in script.scenario.qas[question].variables
                    }
                    if failure is not None:
                        worst = next(letter for letter in "WRU" if letter in letters)
                        assert worst == {"write": "W", "read": "R", "utilization": "U"}[failure]
                    seen.add(failure)
            grid = "".join(inspection.cells(script, result, probes))
            assert len(grid) == len(script.scenario.variables) * len(script.scenario.periods)
    assert {"write", "utilization", None} <= seen


def test_the_record_of_a_scenario_holds_what_the_journal_says(
    folders: dict[str, Path], page: Path
) -> None:
    record = json.loads(read_page(page).scripts["scenario-0"])
    truth, play = record["truth"], record["plays"]["awe-2-4-30"]
    journal = folders["awe"] / "journals" / f"{slug(truth['id'])}.jsonl"
    turns = last_play(FileJournal(journal).read()).turns
    assert [event.reply for event in turns] == play["replies"]
    assert [[list(part) for part in event.operations] for event in turns] == play["operations"]
    assert [event.message for event in turns] == [turn[5] for turn in truth["turns"]]
    written = 0
    for key, likely in play["traces"].items():
        variable, begin = map(int, key.split("."))
        turn, number_there, reason, _ = likely[0]
        text = play["operations"][turn][number_there][2]
        assert reason == "names the value"
        value = truth["states"][begin][variable]
        assert set(value.split("_")) <= set(re.findall(r"\w+", text.replace("_", " ")))
        written += 1
    assert written > 20


def test_likely_writers_are_ordered_by_how_sure_they_are() -> None:
    said = ["Every morning begins with a pot of green tea here."]
    operations = [
        (3, 0, "walking pace: slow"),
        (4, 0, "begins every morning with a pot of tea"),
        (5, 0, "morning drink: green tea"),
        (6, 1, "user: Every morning begins with a pot of green tea here."),
        (7, 0, "morning drink: black coffee"),
    ]
    found = likely_writes("morning_drink", "green_tea", said, operations)
    assert [(t.turn, t.reason) for t in found] == [
        (6, "word for word"),
        (5, "names the value"),
        (4, "shares words"),
    ]


def test_calls_before_a_resume_count_once_and_where_they_were_made() -> None:
    def call(key: str | None, tokens: int) -> CallEvent:
        return CallEvent("assistant_reply", "assistant", key, 0, usage=Usage(1, tokens))

    turn = TurnEvent(0, 0, 0, "", "", "")
    start = StartEvent("tiny-ada", "s")
    events = [start, call("a", 5), call(None, 7), turn, start, call("b", 3), call(None, 1), turn]
    log = step_log(events)
    assert log.play.turns == (turn,)
    assert log.cost(TurnEvent, 0, 0, 0).prompt_tokens == 9


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "hostile.json").write_text(hostile_items(), "utf-8")
    folder = run_folder(tmp_path / "run", f"scenarios={tmp_path / 'hostile.json'}")
    assert main([str(folder)]) == 0
    html = (folder / "report.html").read_text("utf-8")
    assert "<img" not in html
    reader = read_page(folder / "report.html")
    assert {tag for tag, _ in reader.tags} & {"img", "iframe", "object", "embed"} == set()
    assert not [name for _, given in reader.tags for name in given if name.startswith("on")]
    record = json.loads(reader.scripts["scenario-0"])
    assert record["truth"]["questions"][0]["text"].endswith(HOSTILE)


def test_in_script_is_json_of_the_same_value() -> None:
    value = [HOSTILE, "<!--", "\u2028", "]]>", "&amp;"]
    text = in_script(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert "<" not in text


def test_many_scenarios_lie_beside_the_page(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = command.build
    monkeypatch.setattr(command, "build", lambda *given: real(*given, most_inline=1))
    out = tmp_path / "out" / "big.html"
    assert main([str(folders["awe"]), "--out", str(out)]) == 0
    reader = read_page(out)
    entries = json.loads(reader.scripts["report-data"])["scenarios"]
    assert [entry["file"] for entry in entries] == [f"big_data/{e['key']}.js" for e in entries]
    for entry in entries:
        text = (out.parent / entry["file"]).read_text("utf-8").strip()
        key, content = re.fullmatch(r'amemgymRecord\("(.+?)", (\{.*\})\);', text).groups()  # type: ignore[union-attr]
        assert key == entry["key"]
        assert json.loads(content)["truth"]["id"] in results(folders["awe"])["scenarios"]
    assert "scenario-0" not in reader.scripts


def test_pictures_are_files_that_stand_alone(page: Path) -> None:
    pictures = sorted((page.parent / "report_pictures").glob("*.svg"))
    assert {"overall.svg", "accuracy_heat_map.svg", "cost.svg"} <= {path.name for path in pictures}
    for path in pictures:
        text = path.read_text("utf-8")
        assert text.startswith("<svg")
        assert "<style>" in text
        assert "backdrop" in text


def test_equal_labels_are_told_apart_and_modes_compared(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    off = shutil.copytree(folders["awe"], tmp_path / "off")
    document = results(off) | {"mode": "off_policy", "memory_score": 0.5}
    (off / "results.json").write_text(json.dumps(document))
    out = tmp_path / "report.html"
    assert main([str(folders["awe"]), str(off), "--out", str(out)]) == 0
    table = read_page(out).tables["Memory score on- and off-policy"]
    truth = results(folders["awe"])["memory_score"]
    assert table[1][:4] == ["awe-2-4-30", number(truth), ".500", number(0.5 - truth)]
    twin = shutil.copytree(folders["awe"], tmp_path / "twin")
    found, *_ = runs.load([folders["awe"], twin])
    assert [run.name for run in found] == ["awe-2-4-30 (awe)", "awe-2-4-30 (twin)"]


def test_curves_and_lineages_are_shown_where_a_run_has_them(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folders["awe"], tmp_path / "trained")
    curve = {"x": [0, 1000, 2000], "y": {"reward": [0.2, 0.4, None], "validation": [0.1, 0.3, 0.6]}}
    (run / "curve.json").write_text(json.dumps(curve))
    generations = [
        {"id": "a", "label": "first", "score": 0.2, "text": "types <b>"},
        {"id": "b", "parent": "a", "score": 0.4},
    ]
    (run / "lineage.json").write_text(json.dumps({"generations": generations}))
    assert main([str(run)]) == 0
    table = read_page(run / "report.html").tables["Learning curve of trained"]
    assert table[3] == ["2000", "-", ".600"]
    html = (run / "report.html").read_text("utf-8")
    assert "types &lt;b&gt;" in html
    (run / "curve.json").write_text('{"x": [1], "y": {"reward": [1, 2]}}')
    assert main([str(run)]) == 2
    assert "expected 1 values of each measure" in capsys.readouterr().err


def test_trainings_and_evolutions_are_shown_without_an_evaluation(tmp_path: Path) -> None:
    train, evolve = tmp_path / "train-0001", tmp_path / "evolve-0001"
    train.mkdir()
    (train / "results.json").write_text('{"settings": {}, "versions": {}}')
    (train / "curve.json").write_text('{"x": [0, 5], "y": {"mean": [0.2, 0.5]}}')
    evolve.mkdir()
    after = {"information_types": ["pets", "<i>homes</i>"], "prompt": None}
    steps = [{"period": 0, "status": "accepted", "after": after}]
    (evolve / "lineage.json").write_text(json.dumps({"seed-0": {"complete": {"ada": steps}}}))
    out = tmp_path / "report.html"
    assert main([str(train), str(evolve), "--out", str(out)]) == 0
    html = out.read_text("utf-8")
    assert read_page(out).tables["Learning curve of train-0001"][2] == ["5", ".500"]
    assert "seed-0, complete, ada" in html
    assert "after period 0: accepted" in html
    assert "&lt;i&gt;homes" in html
