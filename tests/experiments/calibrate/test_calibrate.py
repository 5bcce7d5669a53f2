"""Calibration: a search that finds planted numbers, and the fit that the default profile has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amemgym_env.evaluation.run import Game
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.model import Scenario
from amemgym_env.simulated.profiles import PROFILES, ErrorRates
from experiments.calibrate.fit import RANGES, AgentRunner, equally_good, search
from experiments.calibrate.paper_figures import CONTRASTS, FAILURE_RATES, ON_POLICY
from experiments.calibrate.run import conclusions
from experiments.evaluate.agents import agent_maker, agent_settings

ROOT = Path(__file__).parents[3]


def test_the_tables_agree_with_each_other() -> None:
    assert set(FAILURE_RATES) < set(ON_POLICY)
    for _, better, worse in CONTRASTS:
        assert ON_POLICY[better] > ON_POLICY[worse]


def test_every_mechanism_has_a_range_and_the_profile_lies_in_it() -> None:
    assert set(RANGES) == set(ErrorRates.__slots__)
    for name, (low, high) in RANGES.items():
        assert low <= getattr(PROFILES["calibrated"], name) <= high


@pytest.mark.parametrize("label", list(ON_POLICY))
def test_labels_name_their_agents(label: str) -> None:
    from amemgym_env.models.client import Models

    make = agent_maker(agent_settings(label))
    assert make(Models({})).label == label  # type: ignore[call-arg, attr-defined]


def test_the_search_lowers_the_cost_and_is_the_same_each_time(tiny: list[Scenario]) -> None:
    bench = AgentRunner(tiny, Game(upper_bound=False))
    targets = {"native": bench.played("native", ErrorRates(comprehension_miss=0.3)).rates}
    start = ErrorRates()
    best, cost = search(bench, start, rounds=2, step=0.3, targets=targets)
    assert cost < bench.cost(start, targets)
    assert search(AgentRunner(tiny, Game(upper_bound=False)), start, rounds=2, step=0.3,
                  targets=targets) == (best, cost)  # fmt: skip


def test_equally_good_sets_are_as_good_as_they_say(tiny: list[Scenario]) -> None:
    bench = AgentRunner(tiny, Game(upper_bound=False))
    targets = {"native": bench.played("native", PROFILES["calibrated"]).rates}
    best = PROFILES["calibrated"]
    found = equally_good(bench, best, 6, tolerance=0.05, targets=targets)
    assert len(set(found)) == 6
    assert all(bench.cost(item, targets) <= 0.05 for item in found)


def test_agents_without_a_written_memory_are_played_once_for_writing_rates(
    tiny: list[Scenario],
) -> None:
    bench = AgentRunner(tiny, Game(upper_bound=False))
    first = bench.played("native", ErrorRates(answer_error=0.1))
    assert bench.played("native", ErrorRates(answer_error=0.1, extraction_miss=0.4)) is first


def test_conclusions_are_read_from_the_scores() -> None:
    falling = (0.5, 0.4, 0.3)
    assert all(conclusions(ON_POLICY.__getitem__, lambda _: falling).values())
    upside_down = conclusions(lambda label: -ON_POLICY[label], lambda _: falling[::-1])
    assert not any(upside_down.values())


@pytest.mark.parametrize("label", list(FAILURE_RATES))
def test_the_scores_of_the_profile_have_not_moved(label: str, tiny: list[Scenario]) -> None:
    """A change here is a change of simulated scores: say so in the commit."""
    played = AgentRunner(tiny).played(label, PROFILES["calibrated"])
    assert [int(user.accuracy.sum()) for user in played.users] == [1, 3, 4]


@pytest.mark.slow
def test_the_command_needs_a_file_and_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.calibrate"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "scenarios: expected a value" in done.stderr


@pytest.mark.evidence
def test_the_fit_on_the_real_data(real_data: Path) -> None:
    bench = AgentRunner(list(named_scenarios(real_data)), workers=2)
    cost = bench.cost(PROFILES["calibrated"], FAILURE_RATES)
    best = bench.played("native", PROFILES["calibrated"])
    print(cost, best.upper_bound)
    assert cost < 0.08
    assert best.upper_bound > 0.8
    assert best.memory_by_period[0] > best.memory_by_period[-1]
