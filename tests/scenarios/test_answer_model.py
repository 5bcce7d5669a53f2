from __future__ import annotations

import numpy as np
import pytest

from amemgym_env.scenarios.answer_model import (
    AnswerModelParameters,
    Reading,
    choice_probabilities,
    readings,
)
from amemgym_env.scenarios.model import Choice, Question

PET = Question(
    query="?",
    required_info=["pet", "home"],
    answer_choices=[
        Choice(state=["cat", "flat"], answer="0"),
        Choice(state=["dog", "flat"], answer="1"),
        Choice(state=["dog", "house"], answer="2"),
    ],
)
EXACT = AnswerModelParameters()


def test_the_newest_value_is_read_and_the_newest_other_is_stale() -> None:
    said = [[("pet", "cat")], [("pet", "fish")], [("pet", "dog"), ("home", "flat")], []]
    assert readings(said) == {"pet": Reading("dog", "fish"), "home": Reading("flat", None)}


def test_saying_a_value_again_makes_it_the_newest() -> None:
    said = [[("pet", "cat")], [("pet", "dog")], [("pet", "cat")]]
    assert readings(said) == {"pet": Reading("cat", "dog")}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], [1 / 3, 1 / 3, 1 / 3]),
        ([[("pet", "cat")]], [1, 0, 0]),
        ([[("pet", "dog")]], [0, 1 / 2, 1 / 2]),
        ([[("pet", "fish")]], [1 / 3, 1 / 3, 1 / 3]),
        ([[("pet", "cat")], [("home", "house")]], [1 / 2, 0, 1 / 2]),
        ([[("pet", "cat")], [("pet", "dog")], [("home", "house")]], [0, 0, 1]),
    ],
    ids=["nothing", "one settles", "one halves", "no choice agrees", "torn", "newest counts"],
)
def test_the_answer_is_uniform_over_the_choices_that_agree_most(
    said: list[list[tuple[str, str]]], expected: list[float]
) -> None:
    assert choice_probabilities(said, PET, EXACT).tolist() == pytest.approx(expected)


def test_confusion_takes_the_stale_value_that_stands_beside_the_newest() -> None:
    said = [[("pet", "cat")], [("pet", "dog")], [("home", "flat")]]
    # newest (dog, flat): choice 1 with .8; stale (cat, flat): choice 0 with .2
    found = choice_probabilities(said, PET, AnswerModelParameters(confusion=0.2))
    assert found.tolist() == pytest.approx([0.2, 0.8, 0])


def test_two_confusions_multiply() -> None:
    said = [[("pet", "cat"), ("home", "flat")], [("pet", "dog"), ("home", "house")]]
    # dog+house .64 -> 2; dog+flat .16 -> 1; cat+flat .04 -> 0; cat+house .16 -> 0 and 2 evenly
    found = choice_probabilities(said, PET, AnswerModelParameters(confusion=0.2))
    assert found.tolist() == pytest.approx([0.04 + 0.08, 0.16, 0.64 + 0.08])
    assert np.isclose(found.sum(), 1)


def test_confusion_without_a_stale_value_changes_nothing() -> None:
    said = [[("pet", "dog"), ("home", "flat")], [("home", "flat")]]
    found = choice_probabilities(said, PET, AnswerModelParameters(confusion=0.9))
    assert found.tolist() == [0, 1, 0]
