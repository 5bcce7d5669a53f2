"""Searches: what is resumed, what counts, what is refused (family 7; names bear the case)."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.envs.memory.env import AMemGymMemoryEnv
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.run import Game
from amemgym_env.evaluation.run import evaluate as evaluate_scenarios
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Models
from amemgym_env.models.events import ExamEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from experiments import standings
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.baselines import rules as baselines
from experiments.baselines import tuning
from experiments.baselines.benchmark import PolicyFn
from experiments.baselines.rule_agent import RuleAgent
from experiments.evaluate.period_barrier import PeriodBarrier, Report, RunPruned
from experiments.search import run as search
from experiments.search.optuna_study import Range, Study, Tried
from experiments.search.settings import SearchSettings

pytest.importorskip("optuna", reason="Optuna is not installed")

SPACE = [Range.parse("x=0..20"), Range.parse("kind=a|b")]


def worth(words: Any) -> float:
    """Return a score that is best at x=7, kind=b."""
    said = dict(word.split("=") for word in words)
    return float((said["kind"] == "b") - abs(int(said["x"]) - 7))


def objective(words: Any, report: Report) -> list[float]:
    return [worth(words)]


def study(folder: Path, **changes: Any) -> Study:
    given: dict[str, Any] = {"directions": ["maximize"], "seed": 0, "prune": True, **changes}
    return Study(folder / "study.log", given["directions"], given["seed"], given["prune"])


def settings(**changes: Any) -> SearchSettings:
    composed = compose("search")
    return checked(SearchSettings, {**composed, **changes})


def test_b07_11_a_killed_search_runs_the_remainder_as_if_it_had_not_been_killed(
    tmp_path: Path,
) -> None:
    calls: list[Any] = []

    def dies(words: Any, report: Report) -> list[float]:
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(words)
        return [worth(words)]

    with pytest.raises(KeyboardInterrupt):
        study(tmp_path / "killed").run(6, SPACE, dies)
    again = study(tmp_path / "killed")
    states = [tried.state for tried in again.tried()]
    assert states == ["complete"] * 4 + ["fail"]
    again.run(6, SPACE, objective)
    states = [tried.state for tried in again.tried()]
    assert states == ["complete"] * 4 + ["fail"] + ["complete"] * 2
    again.run(6, SPACE, objective)
    assert len(again.tried()) == 7  # nothing is left to do
    whole = study(tmp_path / "whole")
    whole.run(6, SPACE, objective)
    assert [tried.words for tried in whole.tried()][:5] == [tried.words for tried in again.tried()][
        :5
    ]


def test_b07_11_what_was_running_when_the_process_died_is_marked_failed(tmp_path: Path) -> None:
    first = study(tmp_path)
    first._study.ask()  # a process that is killed here leaves the trial running
    again = study(tmp_path)
    assert [tried.state for tried in again.tried()] == ["fail"]
    again.run(2, SPACE, objective)
    assert [tried.state for tried in again.tried()] == ["fail", "complete", "complete"]


def test_b07_11_nan_and_crashes_are_failed_trials_and_never_the_best(tmp_path: Path) -> None:
    found = study(tmp_path)
    outcomes: Iterator[float | Exception] = iter([1.0, math.nan, RuntimeError("no model"), 0.5])

    def mixed(words: Any, report: Report) -> list[float]:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return [float(outcome)]

    found.run(4, SPACE, mixed)
    tried = found.tried()
    assert [trial.state for trial in tried] == ["complete", "fail", "fail", "complete"]
    assert tried[1].error == "no score: NaN"
    assert tried[2].error == "RuntimeError: no model"
    assert [trial.number for trial in found.best(5)] in ([0, 3], [0])


def test_b07_11_a_search_in_another_direction_is_refused(tmp_path: Path) -> None:
    study(tmp_path)
    with pytest.raises(ConfigError, match="expected a search to"):
        study(tmp_path, directions=["minimize"])


def test_everything_fails_and_the_search_ends(tmp_path: Path) -> None:
    found = study(tmp_path)
    found.run(3, SPACE, lambda words, report: [math.nan])
    assert [trial.state for trial in found.tried()] == ["fail"] * 3
    assert found.best(5) == []


def test_a_trial_that_is_behind_early_is_pruned(tmp_path: Path) -> None:
    found = study(tmp_path)

    def slow(words: Any, report: Report) -> list[float]:
        late = len(found.tried()) > 6
        for period in range(4):
            if report(period, 0.1 if late else 0.9):
                raise RunPruned
        return [0.9]

    found.run(8, SPACE, slow)
    states = [trial.state for trial in found.tried()]
    assert states[:6] == ["complete"] * 6
    assert states[6:] == ["pruned", "pruned"]


def test_two_objectives_keep_what_nothing_beats_and_are_not_pruned(tmp_path: Path) -> None:
    found = study(tmp_path, directions=["maximize", "minimize"])
    values = iter([(0.5, 10.0), (0.9, 50.0), (0.4, 20.0), (0.7, 15.0)])

    def paid(words: Any, report: Report) -> list[float]:
        assert report(0, 0.0) is False
        return list(next(values))

    found.run(4, SPACE, paid)
    assert [trial.values for trial in found.best(3)] == [(0.9, 50.0), (0.7, 15.0), (0.5, 10.0)]


@pytest.mark.parametrize(
    "text", ["x", "x=", "x=1", "x=9..3", "x=0..5 log", "=a|b", "x=a||b"], ids=str
)
def test_a_range_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected key="):
        Range.parse(text)


def test_a_gate_reports_once_a_period_and_stops_all(tiny: list[Scenario]) -> None:
    scripts = {scenario.id: build(scenario) for scenario in tiny}
    told: list[tuple[int, float]] = []

    def report(period: int, accuracy: float) -> bool:
        told.append((period, accuracy))
        return period == 1

    gate = PeriodBarrier(scripts, report)
    opened = gate.journal(lambda scenario: _Kept())
    outcomes: dict[str, str] = {}

    def play(scenario: Scenario) -> None:
        try:
            with opened(scenario):
                for period, right in enumerate(scripts[scenario.id].right_shown):
                    event = ExamEvent(period, tuple(right), ())
                    gate.event(scenario, event)
                    if scenario is tiny[0] and period == 0:
                        raise RuntimeError("this one breaks; the others must not wait for it")
            outcomes[scenario.id] = "whole"
        except (RunPruned, RuntimeError) as error:
            outcomes[scenario.id] = type(error).__name__

    threads = [threading.Thread(target=play, args=(scenario,)) for scenario in tiny]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert told == [(0, 1.0), (1, 1.0)]
    assert sorted(outcomes.values()) == ["RunPruned", "RunPruned", "RuntimeError"]


class _Kept(MemoryJournal):
    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_sets_with_test_topics_are_refused_for_search_and_selection() -> None:
    for key in ("train", "validation"):
        with pytest.raises(ConfigError, match=f"{key}: expected scenarios without test topics"):
            search.run(settings(**{key: "test:3"}))


def test_a_wrong_space_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"agent\.tpo_k"):
        search.run(settings(space=["agent.tpo_k=1|2"], out="S"))
    assert not (tmp_path / "S").exists()


@pytest.mark.slow
def test_a_search_selects_on_validation_and_looks_at_test_once(tmp_path: Path) -> None:
    small = {
        "train": "tiny",
        "validation": "tiny",
        "test": "tiny",
        "space": ["agent.freq=2|6", "agent.ns=0..4"],
        "trials": 4,
        "finalists": 2,
        "out": "S",
    }
    document = search.run(settings(**small))
    assert document["candidates"] == 4
    assert document["chosen"] in [item["words"] for item in document["finalists"]]
    assert document["test"]["looks"] == 1
    tested = document["test"]
    assert tested["scenarios"] == 3
    # H1: the difference is that of the two scores.
    assert tested["difference"] == pytest.approx(tested["chosen"] - tested["default"], abs=1e-12)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    again = search.run(settings(**small))
    assert again == document
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")} == before
    saved = json.loads((tmp_path / "S" / "search.json").read_text(encoding="utf-8"))
    assert saved["trials"] == [
        {**trial, "words": list(trial["words"]), "values": list(trial["values"])}
        for trial in document["trials"]
    ]


@pytest.mark.slow
def test_rules_are_searched_on_the_number_environment() -> None:
    small = settings(
        method="rules", train="train:4:5", validation="validation:3", test="test:3",
        candidates=40, restarts=2, out="S",
    )  # fmt: skip
    document = search.run(small)
    assert document["candidates"] == 80
    assert len(document["finalists"]) == 2
    assert document["test"]["chosen"] > document["test"]["never_write"]


def test_a_trial_is_told_with_its_words(tmp_path: Path) -> None:
    found = study(tmp_path)
    found.run(1, SPACE, objective)
    (trial,) = found.tried()
    assert isinstance(trial, Tried)
    assert [word.split("=")[0] for word in trial.words] == ["x", "kind"]


@pytest.mark.parametrize(
    "rule",
    [baselines.never, baselines.openers, tuning.untuned()],
    ids=["never", "openers", "untuned"],
)
def test_a_rule_keeps_the_same_memory_in_both_environments(rule: PolicyFn) -> None:
    scenarios = list(named_scenarios("validation:1:3"))
    env: Any = AMemGymMemoryEnv(scenarios, difficulty="default", pool_size=1)
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        observation, _, over, _, _ = env.step(int(rule(env, observation[None])[0]))
    kept = [entry.text for entry in env.episode.bank.entries]
    made: list[RuleAgent] = []

    def make(models: Models) -> RuleAgent:
        made.append(RuleAgent(models, rule, capacity=12))
        return made[-1]

    evaluate_scenarios(make, scenarios, game=Game(difficulty="default", diagnosis=False))
    view = made[0].view
    assert view is not None
    assert [entry.text for entry in view.entries()] == kept
    assert bool(kept) is (rule is not baselines.never)


def test_standings_tell_what_is_absent(tmp_path: Path) -> None:
    composed = compose("standings", ["scenarios=tiny", "out=S"])
    document = standings.run(checked(standings.StandingsSettings, composed))
    rows = document["standings"]["tiny"]
    assert [name for name, row in rows.items() if "absent" in row] == [
        "searched rule",
        "trained policy",
    ]
    assert rows["AWE, default"]["overall"] > rows["never write"]["overall"]
    standings.show(document)
