"""The offline generator: valid scenarios, the same bytes always, impossible settings refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.generation.offline.settings import BASE, EXTRA, Settings
from amemgym_env.generation.offline.state_evolution import Course, change_plan
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios import library as topics
from amemgym_env.scenarios import validation as rules
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.scenarios.samples import stated
from amemgym_env.scenarios.timestamps import instant

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["base", "extra"])
def shaped(request: pytest.FixtureRequest) -> tuple[Settings, list[dict[str, Any]]]:
    settings = {"base": BASE, "extra": EXTRA}[request.param]
    return settings, list(Generator("validation", 3, settings).items(12))


def test_generated_scenarios_break_no_rule(
    shaped: tuple[Settings, list[dict[str, Any]]],
) -> None:
    for scenario in scenario_files.parse(shaped[1]):
        assert rules.problems(scenario) == ()
        assert rules.lints(scenario) == ()


def test_the_shape_is_that_of_the_settings(
    shaped: tuple[Settings, list[dict[str, Any]]],
) -> None:
    settings, items = shaped
    for item in items:
        assert len(item["periods"]) == settings.periods + 1
        assert len(item["state_schema"]) == settings.variables
        assert len(item["qas"]) == settings.questions
        assert len({qa["topic"] for qa in item["qas"]}) == settings.questions
        for qa in item["qas"]:
            assert len(qa["required_info"]) == settings.variables_per_question
            assert len(qa["answer_choices"]) >= settings.min_choices
        for period in item["periods"][1:]:
            assert len(period["updates"]) in (4, 5)
        changes = Counter(v for period in item["periods"][1:] for v in period["updates"])
        assert max(changes.values()) <= settings.max_changes_per_variable
        assert item["periods"][0]["update_cnts"] == {v: changes[v] for v in item["state_schema"]}


def test_everything_lived_through_has_a_choice_and_nothing_else_is_called_experience(
    shaped: tuple[Settings, list[dict[str, Any]]],
) -> None:
    for item in shaped[1]:
        for qa in item["qas"]:
            lived = {
                tuple(period["state"][v] for v in qa["required_info"]) for period in item["periods"]
            }
            choices = {tuple(c["state"]): c["type"] for c in qa["answer_choices"]}
            assert {state for state, kind in choices.items() if kind == "experience"} == lived
            assert len(choices) == len(qa["answer_choices"])


def test_an_answer_is_one_sentence_of_advice_for_each_of_its_values() -> None:
    item = Generator("validation", 3).item(0)
    for qa in item["qas"]:
        material = topics.topic(qa["topic"]).variables
        for choice in qa["answer_choices"]:
            pairs = list(zip(qa["required_info"], choice["state"], strict=True))
            first, second = (material[name].values[value].advice for name, value in pairs)
            assert choice["answer"] in {f"{a} {b}" for a in first for b in second}


def test_openers_state_the_values_they_expose() -> None:
    item = Generator("validation", 3).item(1)
    homes = {v: topics.topic(qa["topic"]) for qa in item["qas"] for v in qa["required_info"]}
    for number, period in enumerate(item["periods"]):
        for session in period["sessions"]:
            exposed = session["exposed_states"]
            assert stated(homes[next(iter(exposed))], session["query"]) == exposed
            assert 8 <= len(session["query"].split()) <= 100
            assert "{" not in session["query"]
            assert (session["event"] is None) == (number == 0)
            assert "{" not in (session["event"] or "")


def test_sessions_are_evenings_on_the_days_before_the_end_of_their_period() -> None:
    item = Generator("validation", 3).item(2)
    assert [p["period_end"] for p in item["periods"][:3]] == [
        "2020-10-01",
        "2021-01-01",
        "2021-04-01",
    ]
    for period in item["periods"]:
        end = instant(period["period_end"]).date()
        days = [(end - instant(s["session_time"]).date()).days for s in period["sessions"]]
        assert days == list(range(len(days), 0, -1))
        assert all(19 <= instant(s["session_time"]).hour < 22 for s in period["sessions"])


def test_most_changes_are_gradual() -> None:
    near = far = 0
    for item in Generator("validation", 5).items(20):
        for period in item["periods"][1:]:
            for variable, change in period["updates"].items():
                values = item["state_schema"][variable]
                step = abs(values.index(change["new"]) - values.index(change["old"]))
                near, far = near + (step == 1), far + (step > 1)
    assert near / (near + far) > 0.8


def test_a_scenario_depends_on_its_number_alone() -> None:
    one, other = Generator("validation", 7), Generator("validation", 7)
    late = one.item(5)
    assert [other.item(n) for n in range(7)][5] == late
    assert list(other.items(6))[5] == late
    assert one.item(4) != late
    assert Generator("validation", 8).item(5) != late


def test_the_same_bytes_in_any_process() -> None:
    code = (
        "import json, hashlib\n"
        "from amemgym_env.generation.offline.generator import Generator\n"
        "from amemgym_env.generation.offline.settings import EXTRA\n"
        "items = [*Generator('validation', 7).items(3), *Generator('train', 1, EXTRA).items(1)]\n"
        "print(hashlib.sha256(json.dumps(items).encode()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"changes_per_period": 21}, "21 changes a period are more than the 10 questions x 2"),
        ({"changes_per_period": 7}, "10 periods x 7 changes = 70 are more than 20 variables x 3"),
        (
            {"period_months": 1, "changes_per_period": 28, "questions": 40},
            "more than the 28 - 1 = 27",
        ),
        ({"min_choices": 17}, "17 choices are more than the 4^2 = 16 combinations"),
        ({"variables_per_question": 4}, "expected 2 or 3, as topics have, found 4"),
        ({"gradual": 1.5}, "expected a probability in 0..1, found 1.5"),
        ({"periods": -1}, "periods: expected at least 0, found -1"),
        ({"periods": 1.0}, "periods: expected int, found 1.0"),
        ({"start": "yesterday"}, "start: expected an ISO 8601 date, found 'yesterday'"),
        ({"start": "2020-10-01 10:00"}, "expected a date such as 2020-10-01 without a time"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_impossible_settings_are_refused_with_the_arithmetic(
    wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(BASE, **wrong)
    assert expected in str(caught.value)


def test_all_impossible_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(periods=-1, questions=0, gradual=2)
    assert str(caught.value).count("\n") == 3


def test_more_questions_than_topics_are_refused_with_the_arithmetic() -> None:
    with pytest.raises(ConfigError, match=r"21 questions, .* of split 'validation'"):
        Generator("validation", 0, replace(BASE, questions=21))
    with pytest.raises(ConfigError, match=r"of 20 topics have 3 variables and 4 combinations"):
        Generator("validation", 0, replace(EXTRA, questions=18, changes_per_period=3))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(periods=0),
        Settings(periods=1, changes_per_period=20),
        Settings(periods=3, changes_per_period=20, max_changes_per_variable=3),
        Settings(periods=2, questions=1, changes_per_period=2, min_choices=2),
        Settings(periods=12, changes_per_period=0, max_changes_per_variable=0),
        Settings(periods=10, changes_per_period=6, joint_later=3.0, joint_initial=1.0),
        Settings(start="2023-10-31", period_months=1, min_choices=9),
    ],
    ids=["no evolution", "all at once", "full", "one question", "still", "joint", "months"],
)
def test_settings_at_their_limits_make_valid_scenarios(settings: Settings) -> None:
    for scenario in Generator("train", 2, settings).scenarios(5):
        assert rules.problems(scenario) == ()
        assert rules.lints(scenario) == ()


@pytest.mark.parametrize("periods", [1, 4, 10])
def test_a_plan_keeps_its_limits(periods: int) -> None:
    settings = replace(BASE, periods=periods, max_changes_per_variable=2, changes_per_period=4)
    for seed in range(30):
        plan = change_plan(settings, Draws("test", seed))
        assert [len(period) for period in plan] == [len(set(period)) for period in plan]
        assert all(len(period) in (4, 5) for period in plan)
        changes = Counter(variable for period in plan for variable in period)
        assert max(changes.values()) <= 2


def test_a_course_prefers_what_it_has_not_met() -> None:
    course = Course((3, 3), 0.85, Draws("course"))
    start = course.now
    for _ in range(4):
        before = course.now
        now = course.change([0])
        assert now[1] == before[1]
        assert now[0] != before[0]
    assert course.path[0] == start
    assert len(course.path) == 3
    filled = course.filled(9)
    assert filled[:3] == course.path
    assert sorted(filled) == [(a, b) for a in range(3) for b in range(3)]


def test_draws_are_even_and_keyed() -> None:
    draws = Draws("die")
    counts = Counter(draws.below(6) for _ in range(6000))
    assert set(counts) == set(range(6))
    assert all(900 < count < 1100 for count in counts.values())
    weighted = Counter(draws.weighted("abc", [1, 0, 3]) for _ in range(4000))
    assert weighted["b"] == 0
    assert 900 < weighted["a"] < 1100
    assert len(set(draws.sample(range(9), 4))) == 4
    assert sorted(draws.shuffled(range(9))) == list(range(9))
    assert [Draws("x").uniform() for _ in range(2)] == [Draws("x").uniform()] * 2
