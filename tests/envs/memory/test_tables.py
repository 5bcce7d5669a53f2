"""Tables: probabilities as the reader gives them, pools that pad, grow and refresh."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from amemgym_env.agent import shown_question
from amemgym_env.envs.memory.expected_reward import Expectation
from amemgym_env.envs.memory.pool import EXAM, Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.memory.tables import agreement_counts, script_tables, shown_texts
from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.policies.features import FeatureSet
from amemgym_env.scenarios.answer_model import AnswerModelParameters, choice_probabilities
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build
from tests.envs.memory.cases import few, pool


def test_counts_are_the_readers_probabilities_of_every_reading() -> None:
    scenario = few()[0]
    counts = agreement_counts(scenario)
    for number, question in enumerate(scenario.qas):
        values = [(None, *scenario.state_schema[name]) for name in question.variables]
        for reading in product(*(enumerate(names) for names in values)):
            codes = tuple(code for code, _ in reading)
            said = [
                [(variable, value)]
                for variable, (_, value) in zip(question.variables, reading, strict=True)
                if value is not None
            ]
            chances = choice_probabilities(said, question, AnswerModelParameters())
            for choice, chance in enumerate(chances):
                count = int(counts[(number, choice, *codes)])
                assert (1 / count if count else 0.0) == pytest.approx(chance, abs=1e-15)


@pytest.mark.parametrize("confusion", [0.0, 0.2, 1.0])
def test_the_expectation_is_that_of_the_reader(confusion: float) -> None:
    script = pool().script(1)
    tables = script_tables(script, FeatureSet(), DEFAULT)
    generator = np.random.default_rng(0)
    scenario = script.scenario
    for size in (0, 1, 5, 40):
        texts = generator.permutation(len(script.utterances))[:size] + 1
        period = int(generator.integers(len(scenario.periods)))
        found = Expectation(tables, 10**6, confusion).accuracy(texts.tolist(), period)
        said = [script.utterances[text - 1].exposures for text in sorted(texts.tolist())]
        right = scenario.right_choices[period]
        chances = [
            choice_probabilities(said, question, AnswerModelParameters(confusion))[right[number]]
            for number, question in enumerate(scenario.qas)
        ]
        assert found == pytest.approx(np.mean(chances), abs=1e-12)


def test_similarities_are_exact_inner_products_of_what_is_shown() -> None:
    script = pool().script(2)
    tables = script_tables(script, FeatureSet(), DEFAULT)
    vectors = DEFAULT(shown_texts(script)).astype(np.int64)
    assert np.array_equal(tables.similarity[1:, 1:], vectors @ vectors.T)
    question = script.scenario.qas[0]
    query = DEFAULT([shown_question(question.query, script.choices_shown(0))]).astype(np.int64)
    assert np.array_equal(tables.question_similarity[0, 1:], (query @ vectors.T)[0])
    assert (tables.similarity[0] < tables.similarity[1:, 1:].min()).all()


def test_an_unscaled_embedder_is_refused() -> None:
    class Long:
        name, width = "long", 2

        def __call__(self, texts: Any) -> Any:
            return np.full((len(texts), 2), 1000, np.float32)

    with pytest.raises(ConfigError, match="quantize"):
        script_tables(pool().script(0), FeatureSet(embedder="long", width=2), Long())


def test_a_pool_gives_back_the_tables_that_it_was_given() -> None:
    scripts = Scripts(few(), "default")
    shared = Pool(scripts, 4)
    for row in range(4):
        mine, theirs = shared.tables(row), script_tables(scripts(row), FeatureSet(), DEFAULT)
        for name, value in vars(theirs).items():
            found = getattr(mine, name)
            if isinstance(value, np.ndarray) and name not in ("counts", "pairs", "codes"):
                assert np.array_equal(found, value), name
        assert mine.scenario_id == theirs.scenario_id
        assert mine.script_seed == theirs.script_seed == 0
        assert np.array_equal(mine.pairs[:, : theirs.pairs.shape[1]], theirs.pairs)
        inner = tuple(slice(0, size) for size in theirs.counts.shape)
        assert np.array_equal(mine.counts[inner], theirs.counts)


def test_a_pool_takes_in_a_script_that_is_larger_than_any(tiny: list[Scenario]) -> None:
    small = build(tiny[0], "easy")
    large = build(few()[0], "hard")

    class Source:
        def __call__(self, number: int) -> Any:
            return small if number < 2 else large

    shared = Pool(Source(), 2)
    before = shared.tables(1)
    version = shared.version
    assert shared.refresh(1) == 1
    assert shared.version > version
    assert np.array_equal(shared.tables(1).similarity, before.similarity)
    assert np.array_equal(shared.tables(1).pairs[:, : before.pairs.shape[1]], before.pairs)
    assert int(shared.rounds[shared.open[-1]]) == len(large.utterances)


def test_a_pool_that_was_pickled_can_be_refreshed() -> None:
    scripts = Scripts(few(), "default")
    shared: Pool = pickle.loads(pickle.dumps(Pool(scripts, 2)))
    assert shared.refresh(1) == 1
    row = int(shared.open[-1])
    expected = script_tables(scripts(2), FeatureSet(), DEFAULT)
    assert np.array_equal(shared.text_facts[row, : len(expected.exam), EXAM], expected.exam)
    assert np.array_equal(shared.tables(row).exam, expected.exam)


def test_a_pool_costs_little_memory_a_script() -> None:
    scripts = Scripts(few(), "default")
    tables = [script_tables(scripts(number), FeatureSet(), DEFAULT) for number in range(4)]
    assert max(table.nbytes for table in tables) < 80_000  # x 16 scripts: 1.3 MB a user
    assert Pool(scripts, 8).nbytes < 8 * 120_000


def test_the_series_of_scripts_is_a_function_of_the_number() -> None:
    scripts = Scripts(few(), "default", seed=5)
    first, again = scripts(6), scripts(6)
    assert first.key == again.key
    assert first.seed == 6
    assert first.scenario.id == few()[2].id


def test_draws_depend_on_seed_and_number_and_reach_every_row() -> None:
    shared = pool()
    seeds = np.repeat(np.arange(40, dtype=np.uint64), 50)
    numbers = np.tile(np.arange(50, dtype=np.uint64), 40)
    rows = shared.draw_many(seeds, numbers)
    assert rows.tolist() == [
        shared.draw(int(seed), int(number)) for seed, number in zip(seeds, numbers, strict=True)
    ]
    counts = np.bincount(rows, minlength=8)
    assert counts.min() > 0.8 * 2000 / 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "at least 1"),
        ({"size": 1, "features": replace(FeatureSet(), embedder="other")}, "embedder"),
    ],
    ids=["no row", "another embedder"],
)
def test_a_wrong_pool_is_one_clear_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Pool(Scripts(few(), "easy"), **arguments)
