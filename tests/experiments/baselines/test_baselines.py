"""Baselines: what each does, and what must hold between them whatever the texts say."""

from __future__ import annotations

import numpy as np
import pytest

from amemgym_env.envs.memory.env import AMemGymMemoryEnv
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.statistics import mean_estimate
from amemgym_env.generation.audit.classifiers import auc
from experiments.baselines import rules as baselines
from experiments.baselines import tuning
from experiments.baselines.benchmark import PolicyBenchmark, play, shuffled
from experiments.baselines.oracles import exposes, plan, true_writer
from experiments.train.baseline_scores import HAND, PLANNING, SUPERVISED, TRUTH, scored, tuned

SETS = {"train": "train:12:7", "validation": "validation:6:3"}


@pytest.fixture(scope="module")
def train() -> PolicyBenchmark:
    return PolicyBenchmark(SETS["train"])


@pytest.fixture(scope="module")
def validation() -> PolicyBenchmark:
    return PolicyBenchmark(SETS["validation"], scripts=2)


def test_a_bench_plays_every_script_once_as_the_scalar_environment_does(
    train: PolicyBenchmark,
) -> None:
    env, observation = train.begin()
    found = play(env, observation, baselines.openers)
    for row in (0, 5):
        scalar = AMemGymMemoryEnv(train.pool)
        scalar.reset(options={"scenario": train.pool.scenario_ids[row]})
        assert scalar.episode.script.seed == train.pool.script_seeds[row]
        done, accuracies = False, []
        while not done:
            opening = scalar.episode.place.round == 0
            _, _, done, _, info = scalar.step(int(opening))
            accuracies += [info["accuracy"]] if "accuracy" in info else []
        assert found[row] == pytest.approx(np.mean(accuracies), abs=1e-12)


def test_scores_are_means_over_a_scenarios_scripts(validation: PolicyBenchmark) -> None:
    env, observation = validation.begin()
    rows = play(env, observation, baselines.always)
    assert validation.score(baselines.always) == pytest.approx((rows[:6] + rows[6:]) / 2)
    assert len(rows) == 12


def test_never_writing_scores_a_uniform_guess(validation: PolicyBenchmark) -> None:
    pool = validation.pool
    chances = []
    for row in range(6):
        qas = pool.script(row).scenario.qas
        chances.append(np.mean([1 / len(question.answer_choices) for question in qas]))
    assert validation.score(baselines.never) == pytest.approx(chances, abs=1e-12)


def test_a_constant_mix_of_one_action_is_that_action(validation: PolicyBenchmark) -> None:
    only = baselines.constant_mix(np.array([0.0, 1.0, 0.0, 0.0]))
    assert (validation.score(only) == validation.score(baselines.always)).all()


def test_what_knows_more_scores_more(train: PolicyBenchmark, validation: PolicyBenchmark) -> None:
    rules = tuned(train, hand_candidates=20, planning=True, say=lambda words: None)
    means = {
        name: float(scores.mean())
        for name, scores in scored(rules.choosers, validation, frozenset()).items()
    }
    assert means["never"] < means["random"] < means["ADD everything"]
    assert means[HAND] < means[SUPERVISED] < means[TRUTH] < means[PLANNING]
    slots = float(validation.score(rules.slots_writer, "slots").mean())
    assert slots == pytest.approx(means[SUPERVISED], abs=0.02)


def test_a_hand_rule_is_at_least_as_good_in_training_as_its_start(train: PolicyBenchmark) -> None:
    rule = tuning.hand_rule(train, candidates=30)
    start = baselines.HandRule(tuning._start())
    assert train.score(rule).mean() >= train.score(start).mean()
    again = tuning.hand_rule(train, candidates=30)
    assert (rule.weights == again.weights).all()


def test_exposures_are_told_from_their_minimal_pairs(
    train: PolicyBenchmark, validation: PolicyBenchmark
) -> None:
    classifier = tuning.exposure_classifier(train, hidden=0)
    inputs, labels = tuning.exposure_data(validation)
    assert len(inputs) >= validation.pool.rounds.sum()
    # Twelve scenarios teach little; hundreds bring a linear classifier to .75 and more.
    assert auc(classifier.logits(inputs), labels) > 0.7


def test_planning_is_no_worse_than_what_it_plans_with(validation: PolicyBenchmark) -> None:
    base = true_writer(0.5)
    difference = validation.score(plan(base, horizon=30)) - validation.score(base)
    assert difference.mean() > 0


def test_truth_marks_exactly_the_scripts_exposures(validation: PolicyBenchmark) -> None:
    env, _ = validation.begin()
    for _ in range(20):
        marked = exposes(env)
        for row in range(6):
            script = validation.pool.script(row)
            needed = {name for question in script.scenario.qas for name in question.variables}
            said = script.utterances[int(env.episodes.turn[row])].exposures
            assert marked[row] == any(name in needed for name, _ in said)
        env.step(np.zeros(env.num_envs, np.int64))


def test_the_control_plays_by_other_environments_observations(validation: PolicyBenchmark) -> None:
    blind = validation.score(shuffled(baselines.openers, 0)).mean()
    assert blind != validation.score(baselines.openers).mean()
    env, observation = validation.begin()
    assert shuffled(baselines.always, 0)(env, observation).tolist() == [1] * env.num_envs


def test_an_interval_of_equal_scores_is_a_point() -> None:
    assert mean_estimate(np.full(5, 0.25)) == (0.25, 0.25, 0.25)
    assert str(mean_estimate(np.array([0.5, 0.5]))) == "0.500 [0.500, 0.500]"


def test_a_difficulty_without_a_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="bounded memory"):
        PolicyBenchmark("validation:2:3", difficulty="none")
