"""Statistics against answers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from amemgym_env.evaluation.statistics import (
    detectable_difference,
    holm,
    kendall_tau,
    mean_interval,
    paired_differences,
    sign_flip_p,
    two_way_interval,
    variance_shares,
)
from amemgym_env.seeding import generator

NAN = float("nan")


def test_differences_are_taken_over_cells_scored_in_both_runs() -> None:
    a = [np.array([[1.0, 0.0], [NAN, 1.0]]), np.array([[NAN]])]
    b = [np.array([[1.0, 1.0], [1.0, NAN]]), np.array([[1.0]])]
    first, second = paired_differences(a, b)
    assert first == 0.5  # cells (0, 0) and (0, 1) alone
    assert math.isnan(second)


def test_differences_of_unlike_scenarios_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        paired_differences([np.zeros((2, 1))], [np.zeros((1, 2))])


def test_exact_sign_flips_of_three_equal_differences() -> None:
    # Of the 8 sign patterns only +++ and --- are as far from 0: 2 / 8.
    assert sign_flip_p(np.array([0.1, 0.1, 0.1])) == 0.25


def test_exact_sign_flips_of_unequal_differences() -> None:
    # |sum| of (1, 2, 4) over the patterns: 7, 5, 3, 1 twice each; observed 3 (1 - 2 + 4).
    assert sign_flip_p(np.array([1.0, -2.0, 4.0])) == 6 / 8


def test_many_sign_flips_are_drawn_and_never_give_zero() -> None:
    assert sign_flip_p(np.full(50, 0.2)) == 1 / 10_001
    assert sign_flip_p(np.zeros(50)) == 1.0


def test_no_scored_scenario_has_no_p_value() -> None:
    assert math.isnan(sign_flip_p(np.array([NAN])))


def test_holm_by_hand() -> None:
    # Sorted .01, .02, .04: times 3, 2, 1 = .03, .04, .04; NaN is no comparison.
    assert holm([0.04, 0.01, NAN, 0.02])[:2] == [0.04, 0.03]
    assert holm([0.04, 0.01, NAN, 0.02])[3] == 0.04
    assert math.isnan(holm([0.04, NAN])[1])
    assert holm([0.6, 0.9]) == [1.0, 1.0]


def test_detectable_difference_by_hand() -> None:
    # sd 1 over 4 scenarios: (1.95996 + .84162) / 2.
    values = np.array([-1.0, 1.0, -1.0, 1.0]) * math.sqrt(3 / 4)
    assert detectable_difference(values) == pytest.approx((1.959964 + 0.841621) / 2, abs=1e-5)
    assert math.isnan(detectable_difference(np.array([0.3])))


def test_bca_of_a_constant_is_the_constant() -> None:
    assert mean_interval(np.full(5, 0.25)) == (0.25, 0.25)
    assert all(math.isnan(bound) for bound in mean_interval(np.array([0.25])))


def test_bca_of_symmetric_values_is_near_the_normal_interval() -> None:
    values = np.linspace(-1, 1, 41)
    half = 1.96 * values.std() / math.sqrt(41)
    low, high = mean_interval(values)
    assert low == pytest.approx(-half, abs=0.02)
    assert high == pytest.approx(half, abs=0.02)


def test_bca_leans_to_the_long_tail() -> None:
    values = np.array([0.0] * 18 + [1.0, 1.0])
    low, high = mean_interval(values)
    assert high - 0.1 > 0.1 - low > 0  # a percentile interval of .1 would lean less
    assert mean_interval(values) == (low, high)


def test_bca_covers_the_truth_about_as_often_as_it_says() -> None:
    draws = generator("coverage")
    inside = 0
    for _ in range(200):
        low, high = mean_interval(draws.exponential(size=25) - 1.0, resamples=400)
        inside += low <= 0.0 <= high
    assert 174 <= inside <= 199


def test_two_way_is_wider_where_topics_differ() -> None:
    topics = [str(index % 4) for index in range(80)]
    personas = [str(index // 4) for index in range(80)]
    values = np.array([0.4 if topic in "01" else 0.0 for topic in topics])
    low, high = two_way_interval(values, personas, topics)
    by_scenario = mean_interval(values.reshape(20, 4).mean(axis=1))
    assert by_scenario.high - by_scenario.low < 1e-9  # every persona has the same mean
    assert low <= 0.05
    assert high >= 0.35


def test_two_way_needs_two_of_each() -> None:
    assert all(math.isnan(x) for x in two_way_interval(np.ones(3), ["a"] * 3, ["x", "y", "z"]))


def test_variance_shares_by_hand() -> None:
    # Within rows variance 2; row means 0, 4 vary by 8, less 2 / 2: 7. Shares 7/9 and 2/9.
    shares = variance_shares(np.array([[-1.0, 1.0], [3.0, 5.0]]))
    assert shares == pytest.approx((7 / 9, 2 / 9))
    assert all(math.isnan(share) for share in variance_shares(np.zeros((3, 2))))


def test_kendall_tau_by_hand() -> None:
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1.0
    assert kendall_tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / math.sqrt(6))
    assert math.isnan(kendall_tau([1, 1], [1, 2]))
