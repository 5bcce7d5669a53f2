"""Family 8: constant answers, positions, failures to attribute, and repeated runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AWI
from amemgym_env.agent import NO_ANSWER, Answer, Exam
from amemgym_env.evaluation.answer_bias import answer_bias
from amemgym_env.evaluation.diagnosis import diagnose
from amemgym_env.evaluation.run import Game, evaluate, simulated
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build

ROOT = Path(__file__).parents[2]


class Constant(AWI):
    """Gives the same answer whatever it is asked."""

    choice = 0

    def answer(self, exam: Exam) -> list[Answer]:
        return [Answer(self.pick(question.choices)) for question in exam.questions]

    def pick(self, choices: tuple[str, ...]) -> int:
        return self.choice


class Last(Constant):
    def pick(self, choices: tuple[str, ...]) -> int:
        return len(choices) - 1


class Longest(Constant):
    def pick(self, choices: tuple[str, ...]) -> int:
        return max(range(len(choices)), key=lambda index: len(choices[index]))


class Refusing(Constant):
    choice = NO_ANSWER


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return list(named_scenarios("validation:3:6"))


def document(agent: Any, scenarios: list[Scenario]) -> dict[str, Any]:
    game = Game(diagnosis=False, upper_bound=False)
    return evaluate(agent, scenarios, game=game, backends=simulated("exact")).to_json()


def test_b08_09_constant_answers_score_their_floors_and_refusing_scores_nothing(
    scenarios: list[Scenario],
) -> None:
    first = document(Constant, scenarios)
    assert first["overall"] == first["floors"]["first_shown"]
    assert document(Longest, scenarios)["overall"] == pytest.approx(
        first["floors"]["longest"], abs=0.05
    )  # ties may fall otherwise
    refusing = document(Refusing, scenarios)
    assert refusing["overall"] == 0.0
    assert refusing["causes"] == {"no_answer": sum(
        len(item.periods) * len(item.qas) for item in scenarios
    )}  # fmt: skip


def test_b08_10_an_agent_that_answers_by_place_shows_it(scenarios: list[Scenario]) -> None:
    first = document(Constant, scenarios)["answer_bias"]
    assert first["chosen"]["position"] == 0.0
    assert first["chosen"]["first"] > 0.6
    last = document(Last, scenarios)["answer_bias"]
    assert last["chosen"]["position"] == 1.0
    longest = document(Longest, scenarios)["answer_bias"]
    assert longest["chosen"]["longest"] > 0.6
    assert longest["chosen"]["length"] > 0
    assert document(Refusing, scenarios)["answer_bias"]["chosen"]["position"] is None


def test_b08_10_right_answers_are_spread_over_the_places_shown() -> None:
    scripts = [build(item) for item in named_scenarios("validation:12:6")]
    rights = [(script, np.array(script.right_shown)) for script in scripts]
    right = answer_bias(rights)["right"]
    assert abs(right["position"] - 0.5) < 0.08
    assert abs(right["first"]) < 0.08


def test_answer_bias_by_hand(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    rows = np.array([[0, 1], [-1, -2]])
    lengths = [[len(text) for text in script.choices_shown(number)] for number in range(2)]
    counts = [len(row) for row in lengths]
    chosen = answer_bias([(script, rows)])["chosen"]
    assert chosen["position"] == pytest.approx(1 / (counts[1] - 1) / 2)
    assert chosen["first"] == pytest.approx(0.5 - (1 / counts[0] + 1 / counts[1]) / 2)
    relative = [lengths[0][0] / np.mean(lengths[0]), lengths[1][1] / np.mean(lengths[1])]
    assert chosen["length"] == pytest.approx(np.mean(relative) - 1)


def test_b08_19_failures_are_relative_to_the_latest_change(scenarios: list[Scenario]) -> None:
    """Changed at c: unknown at c and later is write; known at c and lost later is read."""
    scenario = scenarios[0]
    number, question = 0, scenario.qas[0]
    name = question.variables[0]
    changes = [
        period
        for period in range(1, len(scenario.periods))
        if scenario.periods[period].state[name] != scenario.periods[period - 1].state[name]
    ]
    change = changes[-1]
    after = list(range(change + 1, len(scenario.periods)))
    shape = (len(scenario.periods), len(scenario.qas))
    wrong = np.ones(shape)
    wrong[change:, number] = 0.0

    def known_at(lost: set[int], unasked: frozenset[int] = frozenset()) -> Any:
        def known(period: int, asked: int, variable: str) -> bool | None:
            if period in unasked:
                return None
            return not (variable == name and period in lost)

        return [row[number] for row in diagnose(scenario, wrong, known).failure]

    never = known_at({change, *after})
    assert [never[p] for p in (change, *after)] == ["write"] * (1 + len(after))
    later = known_at(set(after))
    assert later[change] == "utilization"
    assert [later[p] for p in after] == ["read"] * len(after)
    missing = known_at(set(after), frozenset({change}))
    assert missing[change] == "unattributed"
    assert [missing[p] for p in after] == ["unattributed"] * len(after)


@pytest.mark.slow
def test_b08_16_repeats_run_seeds_and_show_their_share(tmp_path: Path) -> None:
    words = ["scenarios=tiny", "agent=awe", "repeats=3", "seed=5", f"out={tmp_path / 'run'}"]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.evaluate", *words],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    assert "variance of a scenario's score" in done.stdout
    written = json.loads((tmp_path / "run" / "results.json").read_text())
    found = written["repeats"]
    assert found["seeds"] == [5, 6, 7]
    assert len(found["overall"]) == 3
    shares = found["variance_share"]
    assert shares["scenarios"] + shares["seeds"] == pytest.approx(1.0)
    one = json.loads((tmp_path / "run" / "seed-6" / "results.json").read_text())
    assert found["overall"][1] == one["overall"]


def test_the_floors_of_a_result_are_all_there(scenarios: list[Scenario]) -> None:
    found = evaluate(lambda models: AWI(models), scenarios, game=Game(diagnosis=False)).to_json()
    assert set(found["floors"]) == {
        "random", "first_shown", "first_stored", "longest", "choice_only", "initial_state",
        "one_period_late", "never_write",
    }  # fmt: skip
