from __future__ import annotations

import numpy as np
import pytest

from amemgym_env.agent import NO_ANSWER, UNSCORED
from amemgym_env.envs.rewards import exam_scores, mean
from amemgym_env.evaluation.diagnosis import diagnose, write_positions
from amemgym_env.evaluation.metrics import memory_score, uniform_guess
from amemgym_env.scenarios.model import Scenario

NAN = float("nan")


def test_no_answer_is_wrong_and_unscored_is_nothing() -> None:
    scores = exam_scores([0, 1, NO_ANSWER, UNSCORED], [0, 0, 0, 0])
    assert scores[:3].tolist() == [1.0, 0.0, 0.0]
    assert np.isnan(scores[3])


def test_b08_14_a_mean_is_over_scored_cells_and_nan_without_any() -> None:
    assert mean(np.array([1.0, 0.0, NAN, NAN])) == 0.5
    assert np.isnan(mean(np.array([NAN])))


def test_a_uniform_guess_scores_one_by_the_number_of_choices(tiny: list[Scenario]) -> None:
    assert uniform_guess(tiny[2]).tolist() == [[1 / 3, 1 / 2], [1 / 3, 1 / 2]]


def test_the_memory_score_by_hand() -> None:
    # One user, two periods, two questions: random .25.
    # Period 0: overall .5, bound 1: (.5 - .25) / .75 = 1/3. Period 1: overall 1, bound 1: 1.
    rows = [np.array([[1.0, 0.0], [1.0, 1.0]])]
    guess, best = [np.full((2, 2), 0.25)], [np.ones((2, 2))]
    score = memory_score(rows, guess, best)
    assert score.by_period == pytest.approx((1 / 3, 1.0))
    assert score.mean_of_ratios() == pytest.approx(2 / 3)
    assert score.ratio_of_means() == pytest.approx((1.5 - 0.5) / (2 - 0.5))
    assert score.without([2]) == 0


def test_the_three_means_of_a_memory_score_use_the_same_cells() -> None:
    rows, best = [np.array([[1.0, NAN, 0.0]])], [np.array([[1.0, 0.0, NAN]])]
    score = memory_score(rows, [np.array([[0.5, 0.1, 0.1]])], best)
    assert score.mean_of_ratios() == 1.0


def test_little_headroom_gives_no_memory_score_and_is_counted() -> None:
    score = memory_score([np.array([[1.0]])], [np.array([[0.95]])], [np.array([[1.0]])])
    assert np.isnan(score.mean_of_ratios())
    assert score.without([1]) == 1


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
def test_b04_06_users_of_different_sizes_average_in_any_order(order: tuple[int, ...]) -> None:
    accuracy = [np.ones((3, 2)), np.zeros((5, 3)), np.ones((2, 2))]
    random = [np.full(rows.shape, 0.5) for rows in accuracy]
    bound = [np.ones(rows.shape) for rows in accuracy]
    parts = [[rows[index] for index in order] for rows in (accuracy, random, bound)]
    score = memory_score(*parts)
    # Scores: 1, 1, 1 | -1 five times | 1, 1. Periods 3 and 4 have the second user alone.
    assert score.by_period == pytest.approx((1 / 3, 1 / 3, 0.0, -1.0, -1.0))
    assert score.mean_of_ratios() == pytest.approx(0.0)


def test_write_positions_are_the_periods_of_the_latest_change(tiny: list[Scenario]) -> None:
    assert write_positions(tiny[1]) == {"pet: kind": (0, 1, 1), "home": (0, 0, 2)}


def _diagnosed(tiny: list[Scenario], accuracy: list[float], table: dict[tuple[int, str], bool]):  # type: ignore[no-untyped-def]
    cells = np.array(accuracy)[:, None]
    return diagnose(tiny[1], cells, lambda period, _, name: table.get((period, name)))


def test_b08_19_failures_refer_to_the_latest_change_before_the_question(
    tiny: list[Scenario],
) -> None:
    # Ben: pet changes in periods 0 and 1, home in 0 and 2. All three answers wrong.
    table = {
        (0, "pet: kind"): True, (0, "home"): True,    # both known: utilization
        (1, "pet: kind"): False, (1, "home"): True,   # pet changed in 1, unknown there: write
        (2, "pet: kind"): False, (2, "home"): True,   # its write position is 1, unknown: write
    }  # fmt: skip
    found = _diagnosed(tiny, [0, 0, 0], table)
    assert found.failure == (("utilization",), ("write",), ("write",))
    table[1, "pet: kind"] = True  # known when it was written, unknown later: read
    found = _diagnosed(tiny, [0, 1, 0], table)
    assert found.failure == (("utilization",), (None,), ("read",))
    assert found.lucky == ((None,), (False,), (None,))


def test_b08_19_a_missing_probe_leaves_a_failure_unattributed(tiny: list[Scenario]) -> None:
    table = {(2, "pet: kind"): False, (2, "home"): True}
    found = _diagnosed(tiny, [0, NAN, 0], table)
    assert found.failure == (("unattributed",), (None,), ("unattributed",))


def test_a_right_answer_with_a_variable_unknown_is_luck(tiny: list[Scenario]) -> None:
    found = _diagnosed(tiny, [1, 1, 1], {(0, "pet: kind"): False, (0, "home"): True})
    assert found.lucky == ((True,), (None,), (None,))


def test_intervals_resample_users_and_agree_with_the_score() -> None:
    half = np.full((1, 2), 0.5)
    answers = [np.array([[1.0, right]]) for right in (0.0, 1.0, 1.0, 1.0)]
    score = memory_score(answers, [half] * 4, [np.ones((1, 2))] * 4)
    assert score.by_user.tolist() == [0.0, 1.0, 1.0, 1.0]
    everyone = np.arange(4)[None]
    assert score.resampled(everyone) == [score.mean_of_ratios()] == [0.75]
    assert score.resampled_ratio_of_means(everyone) == [score.ratio_of_means()]
    assert score.resampled(np.array([[0, 0], [1, 2]])).tolist() == [0.0, 1.0]
    assert score.interval == score.interval
    assert score.interval.low < 0.75 < score.interval.high <= 1.0
    assert score.difference_interval(score) == (0.0, 0.0)


def test_a_user_without_a_score_is_left_out_of_resamples() -> None:
    half, nan = np.full((1, 1), 0.5), np.full((1, 1), np.nan)
    score = memory_score([np.ones((1, 1)), nan], [half, half], [np.ones((1, 1))] * 2)
    assert np.isnan(score.by_user[1])
    assert score.resampled(np.array([[0, 1], [1, 1]]))[0] == 1.0
    assert np.isnan(score.resampled(np.array([[1, 1]]))[0])
    assert np.isnan(score.resampled_ratio_of_means(np.array([[1, 1]]))[0])
