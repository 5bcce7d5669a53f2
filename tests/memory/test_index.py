from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amemgym_env.agent import Entry, MemoryView, Operation
from amemgym_env.errors import ConfigError
from amemgym_env.memory.bank import Bank
from amemgym_env.memory.embedding import DEFAULT, HashedTerms, Vectors
from amemgym_env.memory.index import MemoryIndex, NumpyStore, ReadOnlyView


def entry(entry_id: str, text: str = "x") -> Entry:
    return Entry(entry_id, text, "2024-01-01", "2024-01-01", 0)


def rows(*vectors: Sequence[int]) -> Vectors:
    return np.array(vectors, dtype=np.float32)


def store(**vectors: Sequence[int]) -> NumpyStore:
    made = NumpyStore(2)
    made.put([entry(name) for name in vectors], rows(*vectors.values()))
    return made


def test_the_most_similar_come_first_and_ties_go_to_the_older() -> None:
    made = store(a=(1, 0), b=(2, 0), c=(1, 0), d=(0, 5))
    assert made.search(rows((1, 0)), 3) == [("b", "a", "c")]
    assert made.search(rows((0, 1), (0, 0)), 2) == [("d", "a"), ("a", "b")]


def test_replacing_keeps_an_entrys_age() -> None:
    made = store(a=(1, 0), b=(2, 0))
    made.put([entry("a")], rows((2, 0)))
    assert made.search(rows((1, 0)), 2) == [("a", "b")]


def test_b05_07_after_a_delete_the_next_best_comes_back() -> None:
    made = store(a=(3, 0), b=(2, 0), c=(1, 0))
    made.remove(["a", "unknown"])
    assert made.search(rows((1, 0)), 1) == [("b",)]
    assert made.search(rows((1, 0)), 9) == [("b", "c")]
    made.remove(["b", "c"])
    assert made.search(rows((1, 0)), 1) == [()]
    made.remove([])


def test_b05_02_an_id_that_is_put_again_has_its_new_vector() -> None:
    made = store(m1=(1, 0), m2=(0, 1))
    made.put([entry("m1")], rows((0, 3)))
    assert made.search(rows((0, 1)), 5) == [("m1", "m2")]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 8))
def test_any_history_of_a_store_ranks_like_a_plain_sort(seed: int, steps: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    made, plain = NumpyStore(3), dict[str, np.ndarray]()
    for step in range(steps):
        if plain and rng.random() < 0.4:
            gone = str(rng.choice(list(plain)))
            made.remove([gone])
            del plain[gone]
        else:
            new = str(rng.choice(list(plain))) if plain and rng.random() < 0.3 else f"e{step}"
            vector = rng.integers(-3, 4, 3).astype(np.float32)
            made.put([entry(new)], vector[None])
            plain[new] = vector
    queries = rng.integers(-3, 4, (4, 3)).astype(np.float32)
    expected = [
        tuple(sorted(plain, key=lambda name, q=query: -float(plain[name] @ q)))[:k]
        for query in queries
    ]
    assert made.search(queries, k) == expected


def test_large_stores_rank_as_exactly_as_small_ones() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.integers(-2, 3, (1500, 8)).astype(np.float32)
    made = NumpyStore(8)
    made.put([entry(str(number)) for number in range(1500)], vectors)
    made.remove([str(number) for number in range(0, 1500, 7)])
    query = rng.integers(-2, 3, (1, 8)).astype(np.float32)
    scores = vectors @ query[0]
    order = sorted((n for n in range(1500) if n % 7), key=lambda number: -scores[number])
    assert made.search(query, 40) == [tuple(map(str, order[:40]))]


def test_an_index_follows_a_bank_and_equals_one_that_is_loaded() -> None:
    texts = ["my dog barks at night", "green tea", "tea in the garden", "running shoes"]
    index, bank = MemoryIndex(), Bank()
    for turn, operation in enumerate(
        [*map(Operation.add, texts), Operation.update("2", "a cat and tea"), Operation.delete("1")]
    ):
        bank, outcome = bank.apply(operation, "2024-01-01", turn)
        index.follow(bank, [outcome])
        index.search("tea", 2)
    index.follow(
        *(lambda b, o: (b, o))(*bank.apply_all([Operation.add("x"), Operation.delete("5")], "t", 9))
    )
    fresh = MemoryIndex()
    fresh.load(bank)
    for query in ("tea", "garden shoes", "", "nothing in common"):
        assert index.search(query, 3) == fresh.search(query, 3)
    assert [item.id for item in fresh.search("tea garden", 2)] == ["3", "2"]
    assert fresh.search("tea", 0) == ()
    assert len(fresh.search("tea", 99)) == 3


def test_loading_forgets_what_was_held() -> None:
    index = MemoryIndex()
    index.load(Bank().apply(Operation.add("tea"), "t", 0)[0])
    assert index.search("tea", 1)
    index.load(Bank())
    assert index.search("tea", 1) == ()
    index.load(Bank().apply(Operation.add("coffee"), "t", 0)[0])
    assert [item.text for item in index.search("tea", 5)] == ["coffee"]


def test_changes_are_embedded_in_one_batch_and_only_for_a_search() -> None:
    calls: list[list[str]] = []

    class Counting(HashedTerms):
        def __call__(self, texts: Sequence[str]) -> Vectors:
            calls.append(list(texts))
            return super().__call__(texts)

    index = MemoryIndex(Counting())
    bank, outcomes = Bank().apply_all(map(Operation.add, ("a", "b", "c")), "t", 0)
    index.follow(bank, outcomes)
    assert calls == []
    index.search_vectors(DEFAULT(["a"]), 2)
    index.search_vectors(DEFAULT(["b"]), 2)
    assert calls == [["a", "b", "c"]]


def test_an_embedder_of_the_wrong_width_is_named() -> None:
    class Narrow(HashedTerms):
        def __call__(self, texts: Sequence[str]) -> Vectors:
            return super().__call__(texts)[:, :5]

    index = MemoryIndex(Narrow())
    index.load(Bank().apply(Operation.add("tea"), "t", 0)[0])
    with pytest.raises(ConfigError, match="expected vectors of shape"):
        index.search("tea", 1)


def test_the_view_of_an_index_only_looks() -> None:
    index = MemoryIndex()
    view = ReadOnlyView(index)
    assert isinstance(view, MemoryView)
    index.load(Bank().apply(Operation.add("tea"), "t", 0)[0])
    assert view.entries() == index.entries()
    assert view.search("tea", 1) == index.search("tea", 1)
    assert not [name for name in dir(view) if name in ("load", "follow", "close")]


def test_a_store_pickles_with_its_content() -> None:
    made = pickle.loads(pickle.dumps(store(a=(1, 0), b=(2, 0))))
    assert made.search(rows((1, 0)), 2) == [("b", "a")]
