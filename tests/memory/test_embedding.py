from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amemgym_env.agent import shown_question
from amemgym_env.memory.embedding import DEFAULT, SCALE, HashedTerms, quantize, stem, terms


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_any_text_embeds_as_small_integers(texts: list[str]) -> None:
    vectors = DEFAULT(texts)
    assert vectors.shape == (len(texts), 1024)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, np.rint(vectors))
    assert np.abs(vectors).max(initial=0) <= SCALE


def test_a_text_without_terms_is_similar_to_nothing() -> None:
    vectors = DEFAULT(["", "the of and", "tea"])
    assert not vectors[:2].any()
    assert vectors[2].any()


def test_words_of_one_stem_are_one_term_and_stop_words_are_none() -> None:
    assert terms("The dogs WALKED, walking; and it's don't") == ["dog", "walk", "walk"]
    assert stem("gardening") == stem("gardens")


def test_one_term_has_the_length_of_the_scale() -> None:
    assert np.abs(DEFAULT(["tea"])).sum() == SCALE


def test_two_equal_terms_share_the_length() -> None:
    # (1, 1) / sqrt(2) * 127 = 89.8, rounded 90
    assert sorted(set(DEFAULT(["tea garden"])[0].tolist())) == [0, 90]


def test_quantizing_refuses_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match="NaN"):
        quantize(np.array([[np.nan, 1.0]]))
    assert quantize(np.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [[0, 0], [76, 102]]


def test_an_embedder_pickles_small_and_equal() -> None:
    used = HashedTerms(64)
    used(["tea"] * 3)
    copy = pickle.loads(pickle.dumps(used))
    assert len(pickle.dumps(used)) < 200
    assert np.array_equal(copy(["tea and dogs"]), used(["tea and dogs"]))


@pytest.mark.slow
def test_embeddings_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from amemgym_env.memory.embedding import DEFAULT; print(DEFAULT(['a dog, tea']).tobytes())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_a_shown_question_numbers_its_choices_from_one() -> None:
    assert shown_question("Q?", ["x", "y"]) == "Q?\n\n1. x\n2. y"
