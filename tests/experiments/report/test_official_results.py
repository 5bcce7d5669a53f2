"""Result folders of the benchmark's own code: scored by our rules, shown beside our runs."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.report.page import runs
from experiments.report.run import main
from tests.experiments.report.cases import read_page, run_folder

CHOICES = [["tea", "slow"], ["tea", "brisk"], ["coffee", "slow"], ["coffee", "brisk"]]
TRUTH = [["tea", "slow"], ["coffee", "slow"], ["coffee", "brisk"]]
"""The state by period: drink changes in period 1, pace in period 2."""

NAMES = ["drink", "pace"]


def answered(period: int, response: Any, error: bool = False) -> dict[str, Any]:
    """Return a cell as the benchmark writes it: `response` from 1, the state that it took."""
    taken = CHOICES[response - 1] if isinstance(response, int) else CHOICES[-1]
    right = TRUTH[period]
    return {
        "query": "Which plan suits me?",
        "answer": CHOICES.index(right),
        "answer_state": right,
        "answer_choice": f"plan for {' and '.join(right)}",
        "raw_response": "…",
        "response": response,
        "response_state": taken,
        "response_choice": f"plan for {' and '.join(taken)}",
        "json_error": error,
        "llm_usage_statistics": {"input_tokens": 100, "output_tokens": 110, "time_elapsed": 0.5},
        "scores": {"accuracy": float(taken == right)},
    }


def probed(period: int, named: list[str]) -> dict[str, Any]:
    return {
        "query": "…",
        "results": [
            {
                "info_type": name,
                "json_error": False,
                "answer_state": truth,
                "response_state": value,
                "write_pos": 0,
                "read_pos": period,
                "score": float(value == truth),
            }
            for name, value, truth in zip(NAMES, named, TRUTH[period], strict=True)
        ],
    }


def informed(right: int, response: int) -> dict[str, Any]:
    return {
        "query": "Which plan suits me?",
        "answer": right + 1,
        "answer_state": CHOICES[right],
        "answer_choice": f"plan for {' and '.join(CHOICES[right])}",
        "response": response,
        "response_state": CHOICES[response - 1],
        "json_error": False,
        "scores": {"accuracy": float(response == right + 1)},
    }


OVERALL = [[answered(0, 1)], [answered(1, 1)], [answered(2, 3)]]
"""Right; then the drink is missed; then the pace."""

PROBES = [
    [probed(0, ["tea", "slow"])],
    [probed(1, ["tea", "slow"])],
    [probed(2, ["coffee", "slow"])],
]


def folder(
    path: Path, overall: Any = OVERALL, probes: Any = PROBES, upper_bound: Any = None
) -> Path:
    user = path / "user-1"
    user.mkdir(parents=True)
    (user / "overall_results.json").write_text(json.dumps(overall))
    if probes is not None:
        (user / "diagnosis_results.json").write_text(json.dumps(probes))
    if upper_bound is not None:
        (path / "utilization_results.json").write_text(json.dumps(upper_bound))
    return path


PERFECT = [[[informed(i, i + 1) for i in range(4)]]]


def test_scores_and_failures_are_the_hand_worked_ones(tmp_path: Path) -> None:
    (run,), warnings, *_ = runs.load([folder(tmp_path / "awi", upper_bound=PERFECT)])
    assert warnings == []
    found = run.document
    assert found.overall == pytest.approx(1 / 3)
    assert found.random == pytest.approx(1 / 4)
    assert found.upper_bound == 1.0
    assert found.memory_score == pytest.approx((1 / 3 - 1 / 4) / (1 - 1 / 4))
    # Both missed values were unknown when they were new.
    assert found.failure == {"user-1": [[None], ["write"], ["write"]]}
    assert found.failures["write"] == pytest.approx(2 / 3)
    assert found.usage["exam"].completion_tokens == 30
    assert found.usage["exam"].usd is None


def test_known_and_still_wrong_is_utilization(tmp_path: Path) -> None:
    probes = copy.deepcopy(PROBES)
    probes[1] = [probed(1, ["coffee", "slow"])]
    (run,), *_ = runs.load([folder(tmp_path / "awi", probes=probes, upper_bound=PERFECT)])
    assert run.document.failure == {"user-1": [[None], ["utilization"], ["write"]]}


@pytest.mark.parametrize(
    ("response", "error"), [(4, True), (0, False), (-2, False), (True, False)], ids=str
)
def test_what_was_not_answered_is_wrong_and_counted(
    response: Any, error: bool, tmp_path: Path
) -> None:
    overall = copy.deepcopy(OVERALL)
    overall[2] = [answered(2, 4)]
    overall[2][0] |= {"response": response, "json_error": error}
    (run,), *_ = runs.load([folder(tmp_path / "awi", overall, upper_bound=PERFECT)])
    assert run.document.accuracy == {"user-1": [[1.0], [0.0], [0.0]]}
    assert run.document.causes == {"unreadable": 1}
    assert any("count as wrong" in note for note in run.notes)


def test_without_the_other_files_only_overall_is_known(tmp_path: Path) -> None:
    (run,), *_ = runs.load([folder(tmp_path / "awi", probes=None)])
    found = run.document
    assert found.overall == pytest.approx(1 / 3)
    assert (found.random, found.upper_bound, found.memory_score) == (None, None, None)
    assert found.floors == {}
    assert found.failures["unattributed"] == pytest.approx(2 / 3)


def test_a_cell_that_was_not_asked_is_unscored(tmp_path: Path) -> None:
    overall = copy.deepcopy(OVERALL)
    overall[0] = [None]  # type: ignore[list-item]
    (run,), *_ = runs.load([folder(tmp_path / "awi", overall, upper_bound=PERFECT)])
    assert run.document.accuracy == {"user-1": [[None], [0.0], [0.0]]}
    assert run.document.unscored == 1


OTHER = copy.deepcopy(PERFECT)
for part in OTHER[0][0]:
    part["query"] = "Another question?"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"overall": [[{"answer": 1}]]}, "[0][0][query]: Field required"),
        ({"overall": {"accuracy": [[1]]}}, "Input should be a valid list"),
        ({"overall": [[answered(0, 1)], []]}, "ragged"),
    ],
    ids=["field", "shape", "ragged"],
)
def test_another_shape_gets_a_message(
    given: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder(tmp_path / "awi", **given))]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "awi" in told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"probes": [[]]}, "failures unattributed: "),
        ({"probes": [[]]}, "its shape is not that of"),
        ({"probes": None}, "diagnosis_results.json: not there"),
        ({"upper_bound": OTHER}, "found no user with them"),
        ({"upper_bound": [[[None, *PERFECT[0][0][1:]]]]}, "is unfinished"),
        ({"upper_bound": {"accuracy": 1}}, "the upper bound is left out"),
    ],
    ids=["probes", "probes' shape", "no probes", "set", "unfinished", "foreign"],
)
def test_what_is_wrong_beside_the_exams_leaves_the_exams(
    given: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder(tmp_path / "awi", **{"upper_bound": PERFECT, **given})
    assert main([str(source)]) == 0
    assert message in capsys.readouterr().err
    html = (source / "report.html").read_text("utf-8")
    assert message in html
    assert str(tmp_path) not in html
    row = dict(zip(*read_page(source / "report.html").tables["Leaderboard"][:2], strict=True))
    assert row["overall"] == ".333"
    assert (row["memory"] == "-") == ("upper_bound" in given)
    assert row["unattr."] == (".667" if "probes" in given else ".000")


@pytest.mark.parametrize("name", ["overall_results.json", "diagnosis_results.json"])
def test_a_cut_file_costs_its_user_or_its_rates_alone(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder(tmp_path / "awi", upper_bound=[PERFECT[0], PERFECT[0]])
    second = source / "user-2"
    shutil.copytree(source / "user-1", second)
    whole = (second / name).read_text()
    (second / name).write_text(whole[: len(whole) // 2])
    assert main([str(source)]) == 0
    assert f"{second / name}: expected JSON, found a damaged file" in capsys.readouterr().err
    row = dict(zip(*read_page(source / "report.html").tables["Leaderboard"][:2], strict=True))
    assert row["users"] == ("1" if name.startswith("overall") else "2")
    assert row["overall"] == ".333"


def test_the_page_shows_rates_from_the_first_two_files_alone(tmp_path: Path) -> None:
    source = folder(tmp_path / "awi")
    assert main([str(source)]) == 0
    reader = read_page(source / "report.html")
    row = dict(zip(*reader.tables["Leaderboard"][:2], strict=True))
    assert (row["write"], row["read"], row["util."]) == (".667", ".000", ".000")
    by_period = {row[1]: row[2:] for row in reader.tables["Failures by period"][1:]}
    assert by_period["write"] == [".000", "1.000", "1.000"]


def test_folders_of_both_kinds_stand_on_one_page(tmp_path: Path) -> None:
    ours = run_folder(tmp_path / "ours", "scenarios=tiny", "agent=awe")
    theirs = folder(tmp_path / "theirs" / "awi-4.1", upper_bound=PERFECT)
    out = tmp_path / "report.html"
    assert main([str(ours), str(theirs), "--out", str(out)]) == 0
    reader = read_page(out)
    rows = {row[0]: row for row in reader.tables["Leaderboard"]}
    assert rows["awi-4.1 (external memory)"][1] == ".333"
    assert "simulated" in rows["awe-2-4-30"][-1]
    assert "simulated" not in rows["awi-4.1 (external memory)"][-1]
    badge = out.read_text("utf-8").split('class="badge">')[1].split("<")[0]
    assert "awe-2-4-30" in badge
    assert "awi-4.1" not in badge
