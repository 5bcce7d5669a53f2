from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import InputError, ScenarioError
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios import validation as rules
from amemgym_env.scenarios.timestamps import add_months, instant

Item = dict[str, Any]


def written(path: Path, items: object, **kwargs: Any) -> Path:
    path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8", **kwargs)
    return path


def test_loading_then_saving_gives_the_same_value(tiny_items: list[Item], tmp_path: Path) -> None:
    source = written(tmp_path / "in.json", tiny_items)
    for name in ("out.json", "out.jsonl"):
        assert scenario_files.save(scenario_files.load(source), tmp_path / name) == 3
        assert scenario_files.load(tmp_path / name) == scenario_files.load(source)
    assert json.loads((tmp_path / "out.json").read_text("utf-8")) == tiny_items
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == tiny_items
    assert list(scenario_files.stream(tmp_path / "out.jsonl")) == scenario_files.load(source)


def test_the_real_file_survives_a_round_trip(real_data: Path, tmp_path: Path) -> None:
    scenarios = scenario_files.load(real_data)
    scenario_files.save(scenarios, tmp_path / "copy.json")
    original = json.loads(real_data.read_text("utf-8"))
    assert json.loads((tmp_path / "copy.json").read_text("utf-8")) == original


def test_the_real_file_has_the_papers_shape_and_random_score(real_data: Path) -> None:
    scenarios = scenario_files.load(real_data)
    assert len(scenarios) == 20
    assert {len(scenario.periods) for scenario in scenarios} == {11}
    assert {len(scenario.qas) for scenario in scenarios} == {10}
    guesses = [1 / len(qa.answer_choices) for scenario in scenarios for qa in scenario.qas]
    assert sum(guesses) / len(guesses) == pytest.approx(0.230762, abs=5e-7)


def test_b04_01_optional_fields_default_and_missing_ones_are_listed_at_once(
    tiny_items: list[Item],
) -> None:
    del tiny_items[0]["periods"][0]["period_summary"]
    del tiny_items[0]["periods"][0]["sessions"][0]["event"]
    del tiny_items[0]["qas"][0]["answer_choices"][0]["type"]
    assert scenario_files.parse(tiny_items)[0].periods[0].period_summary is None
    del tiny_items[1]["qas"][0]["required_info"]
    del tiny_items[2]["periods"][1]["state"]
    with pytest.raises(ScenarioError) as caught:
        scenario_files.parse(tiny_items)
    first, second = caught.value.problems
    assert "'tiny-ben'" in first
    assert "qas[0].required_info" in first
    assert "'tiny-chen'" in second
    assert "periods[1].state" in second


def test_b04_02_equal_ids_are_refused_and_equal_sessions_and_questions_are_kept(
    tiny_items: list[Item],
) -> None:
    item = tiny_items[0]
    item["periods"][0]["sessions"].insert(0, dict(item["periods"][0]["sessions"][0]))
    item["qas"].append(dict(item["qas"][0]))
    scenario = scenario_files.parse(tiny_items)[0]
    assert len(scenario.periods[0].sessions) == 3
    assert len(scenario.qas) == 3
    tiny_items[2]["id"] = "tiny-ada"
    with pytest.raises(ScenarioError, match=r"scenario 2 .*unique id.*item 0"):
        scenario_files.parse(tiny_items)


def test_b04_05_a_variable_that_is_needed_twice_is_a_lint_and_counts_once(
    tiny_items: list[Item],
) -> None:
    question = tiny_items[0]["qas"][0]
    question["required_info"] = ["morning_drink", "morning_drink"]
    for choice in question["answer_choices"]:
        choice["state"] *= 2
    scenario = scenario_files.parse(tiny_items)[0]
    assert scenario.qas[0].variables == ("morning_drink",)
    assert scenario.right_choices[0][0] == 0
    assert any("named twice" in line for line in rules.lints(scenario))


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte-order-mark"])
def test_b04_10_byte_order_marks_and_line_ends_do_not_matter(
    tiny_items: list[Item], tmp_path: Path, mark: str, ending: str
) -> None:
    expected = scenario_files.parse(tiny_items)
    text = mark + json.dumps(tiny_items, ensure_ascii=False, indent=1)
    (tmp_path / "a.json").write_text(text, encoding="utf-8", newline=ending)
    assert scenario_files.load(tmp_path / "a.json") == expected
    lines = mark + "\n".join(json.dumps(item, ensure_ascii=False) for item in tiny_items) + "\n\n"
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8", newline=ending)
    assert scenario_files.load(tmp_path / "a.jsonl") == expected


def test_b04_11_half_a_surrogate_pair_is_named(tiny_items: list[Item], tmp_path: Path) -> None:
    tiny_items[0]["qas"][0]["query"] = "broken \ud83d"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tiny_items), encoding="ascii")
    with pytest.raises(ScenarioError, match="surrogate"):
        scenario_files.load(path)


def test_b04_13_values_stay_strings_however_they_look(
    tiny_items: list[Item], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.json", tiny_items)
    ben, chen = scenario_files.load(path)[1:]
    assert ben.state_schema["home"] == ["flat, 2nd floor", "house"]
    assert chen.state_schema["badminton"] == ["0", "2+"]
    tiny_items[2]["state_schema"]["badminton"][0] = 0
    with pytest.raises(ScenarioError, match=r"state_schema\.badminton\[0\].*found 0"):
        scenario_files.parse(tiny_items)


def test_b04_14_months_are_counted_from_the_first_start() -> None:
    start = instant("2024-01-31")
    days = [add_months(start, months).date().isoformat() for months in (1, 2, 3, 13)]
    assert days == ["2024-02-29", "2024-03-31", "2024-04-30", "2025-02-28"]
    assert add_months(instant("2023-11-30"), 3).date().isoformat() == "2024-02-29"
    assert add_months(instant("2024-02-29"), 12).date().isoformat() == "2025-02-28"


def test_b10_09_instants_decide_not_the_text_of_a_time() -> None:
    earlier, later = instant("2024-11-03T01:30:00-07:00"), instant("2024-11-03 09:00:00")
    assert earlier < later
    assert instant("2024-11-03T08:30:00+00:00") == earlier


def test_b04_17_a_period_without_sessions_and_one_of_no_length_are_valid(
    tiny_items: list[Item],
) -> None:
    period = tiny_items[0]["periods"][1]
    period["sessions"] = []
    period["period_start"] = period["period_end"]
    assert scenario_files.parse(tiny_items)[0].periods[1].sessions == []


Change = Callable[[Item], None]


def _set(item: Item, path: str, value: object) -> None:
    *way, last = path.split("/")
    place: Any = item
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    place[int(last) if isinstance(place, list) else last] = value


BROKEN: dict[str, tuple[str, object, str]] = {
    "unknown variable needed": ("qas/0/required_info/0", "nope", "variables of the schema"),
    "nothing needed, B08-20": ("qas/0/required_info", [], "at least one variable"),
    "unknown value": ("qas/0/answer_choices/0/state/0", "beer", "expected one of"),
    "no choice for the truth": ("qas/0/answer_choices/1/state/0", "green_tea", "true"),
    "state against the updates, B04-16": (
        "periods/1/state/walking_pace",
        "brisk",
        "expected 'slow' after the updates",
    ),
    "exposure against the state, B04-16": (
        "periods/1/sessions/0/exposed_states",
        {"walking_pace": "brisk"},
        "expected the state 'slow'",
    ),
    "unknown variable exposed": (
        "periods/0/sessions/0/exposed_states",
        {"nope": "slow"},
        "expected a variable",
    ),
    "wrong old value": ("periods/1/updates/morning_drink/old", None, "expected 'green_tea'"),
    "no time": ("periods/0/sessions/0/session_time", "soon", "ISO 8601"),
    "times out of order": ("periods/0/sessions/1/session_time", "2024-01-01", "no earlier"),
    "outside of the period": ("periods/1/sessions/0/session_time", "2024-03-09", "within"),
    "choice of the wrong length": ("qas/0/answer_choices/0/state", [], "expected 1 values"),
    "repeated value": ("state_schema/walking_pace", ["slow", "slow"], "distinct"),
    "no questions": ("qas", [], "at least one question"),
    "no periods": ("periods", [], "at least period 0"),
    "text is a number": ("qas/0/query", 7, "found 7"),
}


@pytest.mark.parametrize(("path", "value", "message"), BROKEN.values(), ids=BROKEN)
def test_one_bad_field_is_named_with_its_scenario(
    tiny_items: list[Item], path: str, value: object, message: str
) -> None:
    _set(tiny_items[0], path, value)
    with pytest.raises(ScenarioError, match=message) as caught:
        scenario_files.parse(tiny_items)
    assert all("scenario 0 ('tiny-ada')" in line for line in caught.value.problems)
    assert "nothing was played" in str(caught.value)


def test_the_thing_with_no_choice_for_a_period_names_question_and_period(
    tiny_items: list[Item],
) -> None:
    del tiny_items[1]["qas"][0]["answer_choices"][2]
    with pytest.raises(ScenarioError, match="question 0, period 2: expected a choice"):
        scenario_files.parse(tiny_items)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"\xff\xfe\x00", "expected UTF-8"),
        ("a.json", b"[{", "expected JSON"),
        ("a.json", b"{}", "expected a JSON list"),
        ("a.json", b"[]", "at least one scenario"),
        ("a.json", b"[NaN]", "NaN is not JSON"),
        ("a.jsonl", b"{}\n{", "line 2"),
        ("a.json", b"[3]", "scenario 0"),
    ],
    ids=["not-utf8", "not-json", "no-list", "empty", "nan", "torn-line", "number"],
)
def test_a_file_of_another_kind_is_one_clear_error(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        scenario_files.load(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_stream_lists_every_offender_of_the_file(
    tiny_items: list[Item], tmp_path: Path, name: str
) -> None:
    tiny_items[1]["qas"], tiny_items[2]["id"] = [], "tiny-ada"
    lines = "\n".join(map(json.dumps, tiny_items))
    (tmp_path / name).write_text(lines if name == "a.jsonl" else json.dumps(tiny_items))
    scenarios = scenario_files.stream(tmp_path / name)
    assert next(scenarios).id == "tiny-ada"
    with pytest.raises(ScenarioError) as caught:
        next(scenarios)
    assert len(caught.value.problems) == 2


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"found nothing at .*gone\.json"):
        scenario_files.load(tmp_path / "gone.json")
    with pytest.raises(ScenarioError, match="found the folder"):
        scenario_files.load(tmp_path)


def test_a_failed_save_leaves_the_old_file(tiny_items: list[Item], tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", tiny_items)

    def broken() -> Any:
        yield scenario_files.parse(tiny_items)[0]
        raise RuntimeError("out of scenarios")

    with pytest.raises(RuntimeError):
        scenario_files.save(broken(), path)
    assert json.loads(path.read_text("utf-8")) == tiny_items


IDS = ["../../victim", "/absolute/victim", "..", ".", "", "a/b", "C:\\x", "con", "x" * 300]
IDS += ["a b", "a_b", "A_b", "a.b", "Ünal 7", "😀😀😀"]


def test_b09_03_any_id_has_a_safe_name_of_its_own(tmp_path: Path) -> None:
    names = [scenario_files.slug(name) for name in IDS]
    assert len({name.lower() for name in names}) == len(IDS)
    for name in names:
        assert (tmp_path / name).resolve().parent == tmp_path.resolve()
        assert len(name) < 60
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
