"""The second offline embedding: vectors of meaning, whole numbers, each text apart from others."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.memory.wordllama import WordLlamaEmbedder
from amemgym_env.scenarios.files import load
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.benchmark.retrieval import retrieval
from experiments.evaluate import run as evaluate
from experiments.evaluate.settings import EvaluateSettings


@pytest.fixture(scope="module")
def embed() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def test_vectors_are_whole_and_do_not_depend_on_their_neighbours(embed: WordLlamaEmbedder) -> None:
    texts = ["tea", "a much longer text about dogs, boats and the price of wood", "", " \n", "tea"]
    rows = embed(texts)
    assert rows.shape == (5, embed.width)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, np.rint(rows))
    assert np.abs(rows).max() <= 127
    assert not rows[2:4].any()
    assert np.array_equal(rows[:1], WordLlamaEmbedder()(["tea"]))
    assert embed([]).shape == (0, embed.width)


def test_it_ranks_by_meaning_not_by_shared_words(embed: WordLlamaEmbedder) -> None:
    query, puppy, invoice = embed(["my dog", "our puppy", "an unpaid invoice"])
    assert query @ puppy > query @ invoice


def test_it_finds_more_openers_of_the_real_set_than_the_default(
    embed: WordLlamaEmbedder, real_data: Path
) -> None:
    scenarios = load(real_data)
    by_meaning, by_stems = retrieval(scenarios, embed), retrieval(scenarios)
    assert by_meaning.recall_at_10 > by_stems.recall_at_10
    assert by_meaning.mrr > by_stems.mrr


def test_an_evaluation_runs_on_it(tmp_path: Path) -> None:
    words = ["scenarios=tiny", "agent=rag", "embedding=wordllama", f"out={tmp_path / 'run'}"]
    found = evaluate.run(checked(EvaluateSettings, compose("evaluate", words)), quiet=True).results
    assert found.settings["embedding"] == {"name": "wordllama"}
    assert found.unscored == 0


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ConfigError, match=r"\[wordllama\]"):
        WordLlamaEmbedder()
