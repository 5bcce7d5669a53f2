"""`report compare`: verdicts, notes, exit statuses; that it neither misses nor cries wolf."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AWE, Native
from amemgym_env.agent import Operation, Turn
from amemgym_env.evaluation.run import Game, evaluate, simulated
from amemgym_env.evaluation.statistics import sign_flip_p
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Models
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import generator
from experiments.report import compare
from experiments.report import run as report


def run(folder: Path, accuracy: dict[str, Any], **changes: Any) -> str:
    """Write the results of a run that answers as given."""
    document = {
        "label": folder.name,
        "memory": "bank",
        "scenarios": list(accuracy),
        "mode": "on_policy",
        "simulated": False,
        "settings": {"seed": 0},
        "accuracy": accuracy,
        "upper_bound_accuracy": accuracy,
        **changes,
    }
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(document), encoding="utf-8")
    return str(folder)


def rows(count: int, right: int) -> dict[str, Any]:
    """Return scenarios of ten questions, `right` of them right, one more in each second."""
    return {
        f"s{index}": [[1.0] * (right + index % 2) + [0.0] * (10 - right - index % 2)]
        for index in range(count)
    }


def test_a_worse_run_fails_and_a_better_one_does_not(tmp_path: Path, capsys: Any) -> None:
    base = run(tmp_path / "base", rows(10, 6))
    worse = run(tmp_path / "worse", rows(10, 4))
    assert report.main(["compare", base, worse, "--fail-if-worse"]) == 1
    said = capsys.readouterr().out
    assert "overall -0.2000" in said
    assert "p 0.0020" in said  # all ten signs alike: 2 of 1,024
    assert report.main(["compare", worse, base, "--fail-if-worse"]) == 0
    assert report.main(["compare", base, worse]) == 0
    assert report.main(["compare", base, base, "--fail-if-worse"]) == 0


def test_holm_corrects_over_the_comparisons_asked_for(tmp_path: Path, capsys: Any) -> None:
    base = run(tmp_path / "base", rows(10, 6))
    worse = run(tmp_path / "worse", rows(10, 4))
    report.main(["compare", base, worse, base, base])
    assert "p 0.0020 (sign flips), 0.0059 after Holm's correction over 3" in capsys.readouterr().out


@pytest.mark.parametrize(("margin", "status"), [("0.3", 0), ("0.1", 1)])
def test_a_margin_asks_for_proof_of_no_harm(tmp_path: Path, margin: str, status: int) -> None:
    base = run(tmp_path / "base", rows(10, 6))
    worse = run(tmp_path / "worse", rows(10, 4))
    given = ["compare", base, worse, "--margin", margin, "--fail-if-worse"]
    assert report.main(given) == status


def test_b08_14_unscored_cells_are_left_out_of_both_runs(tmp_path: Path, capsys: Any) -> None:
    """10 questions: 4 right, 1 wrong, 5 without a score."""
    half = {name: [[1.0] * 4 + [0.0] + [None] * 5] for name in ("a", "b", "c")}
    whole = {name: [[1.0] * 4 + [0.0] + [1.0] * 5] for name in ("a", "b", "c")}
    report.main(["compare", run(tmp_path / "half", half), run(tmp_path / "whole", whole)])
    assert "overall +0.0000" in capsys.readouterr().out


def test_what_makes_runs_unlike_is_said(tmp_path: Path, capsys: Any) -> None:
    base = run(tmp_path / "base", rows(6, 6))
    other = run(
        tmp_path / "other", rows(4, 6), settings={"seed": 1}, mode="off_policy", simulated=True
    )
    report.main(["compare", base, other])
    said = capsys.readouterr().out
    for note in ("seed differs: 0 and 1", "mode differs", "2 scenarios stand", "simulated model"):
        assert note in said


@pytest.mark.parametrize("spoil", ["missing", "torn", "other scenarios", "other shape"])
def test_what_cannot_be_compared_is_one_error(spoil: str, tmp_path: Path, capsys: Any) -> None:
    base = run(tmp_path / "base", rows(3, 6))
    other = str(tmp_path / "nowhere")
    if spoil == "torn":
        (tmp_path / "nowhere").mkdir()
        (tmp_path / "nowhere" / "results.json").write_text('{"acc', encoding="utf-8")
    elif spoil == "other scenarios":
        other = run(tmp_path / "other", {"x": [[1.0]]})
    elif spoil == "other shape":
        other = run(tmp_path / "other", {"s0": [[1.0]]})
    assert report.main(["compare", base, other]) == 2
    assert capsys.readouterr().err.count("error:") == 1


@pytest.mark.parametrize("count", [6, 10, 40])
@pytest.mark.parametrize("noise", ["scores", "ties", "heavy tails"])
def test_p_is_below_a_twentieth_no_oftener_than_that_without_a_difference(
    noise: str, count: int
) -> None:
    """300 pairs of equal agents; three standard errors above .05 are .088."""
    draws = generator("null", noise, count)
    made = {
        "scores": draws.binomial(110, 0.5, (2, 300, count)) / 110,
        "ties": draws.integers(0, 2, (2, 300, count)) / 4,
        "heavy tails": draws.exponential(1.0, (2, 300, count)) ** 2,
    }[noise]
    p_values = np.array([sign_flip_p(row, flips=2000) for row in made[1] - made[0]])
    assert np.mean(p_values < 0.05) < 0.088
    assert np.mean(p_values < 0.5) < 0.587
    assert np.mean(p_values < 0.5) > 0.3 or noise == "ties"


class Forgetful(AWE):
    """Forgets every tenth operation on its memory."""

    def __init__(self, models: Models) -> None:
        super().__init__(models)
        self.count = 0

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        kept = []
        for operation in super().write(turn, reply):
            self.count += 1
            if self.count % 10:
                kept.append(operation)
        return kept


def results(agent: Any, scenarios: list[Scenario], seed: int = 0) -> compare.Run:
    game = Game(seed=seed, upper_bound=False, diagnosis=False)
    played = evaluate(agent, scenarios, game=game, backends=simulated("calibrated"))
    return compare.Run("run", played.file())


@pytest.mark.evidence
def test_a_planted_difference_is_found_on_two_hundred_scenarios() -> None:
    scenarios = list(named_scenarios("test:200:7"))
    found = compare.compare(results(AWE, scenarios), results(Forgetful, scenarios))
    print(found.mean, found.interval, found.p)
    assert found.mean < 0
    assert found.p < 0.05
    assert found.interval.high < 0


@pytest.mark.evidence
def test_two_seeds_of_one_agent_cry_wolf_in_at_most_three_of_twenty_tries() -> None:
    """200 scenarios, a native assistant: about 15 processor minutes."""
    scenarios = list(named_scenarios("test:200:7"))
    runs = [results(Native, scenarios, seed) for seed in range(21)]
    p_values = [compare.compare(one, other).p for one, other in pairwise(runs)]
    print(sorted(p_values))
    assert sum(p < 0.05 for p in p_values) <= 3
