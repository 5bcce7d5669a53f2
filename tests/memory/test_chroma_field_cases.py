"""Family 5 of the field's cases in whole: ids, counts, deletions and restores of a chroma store.

The single properties stand in `test_chroma_store.py` and `test_stores.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from amemgym_env.agent import Entry, Operation
from amemgym_env.errors import TransportError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.memory.bank import Bank
from amemgym_env.memory.chroma import ChromaStore, Index
from amemgym_env.memory.embedding import DEFAULT, Vectors
from amemgym_env.memory.index import MemoryIndex
from amemgym_env.models.litellm.embedding import LitellmEmbedder
from amemgym_env.prompts.memory import MemoryDecision
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from experiments.app import memory_factories as memory_search
from experiments.app.memory_factories import ChromaSettings
from tests.support.chat_server import ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")
INDICES: tuple[Index, ...] = ("exact", "approximate")
NAMES = ["ab", "Ünal 7", "a..b", "_x_", "user/1", "x" * 600, "😀😀😀", "a b", "a_b"]


def entry(name: str, text: str) -> Entry:
    return Entry(name, text, "2024-01-01T00:00:00", "2024-01-01T00:00:00", 0)


def put(store: ChromaStore, **texts: str) -> None:
    store.put([entry(name, text) for name, text in texts.items()], DEFAULT(list(texts.values())))


def nearest(store: ChromaStore, text: str, k: int) -> tuple[str, ...]:
    (found,) = store.search(DEFAULT([text]), k)
    return found


@pytest.fixture(params=INDICES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChromaStore]:
    made = ChromaStore(DEFAULT.width, tmp_path / "store", "memory", index=request.param)
    yield made
    made.close()


LOOK = """
    import json, sys
    from pathlib import Path
    import chromadb
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    found = {}
    for path in map(Path, sys.argv[1:]):
        (one,) = chromadb.PersistentClient(path=str(path), settings=settings).list_collections()
        found[one.name] = one.metadata
    print(json.dumps(found))
"""


def apart(program: str, *words: object) -> str:
    """Run a program in a process of its own and return what it prints."""
    line = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *map(str, words)]
    return subprocess.run(line, check=True, capture_output=True, text=True, timeout=120).stdout


def test_b05_01_a_collection_is_named_safely_and_keeps_the_id_that_it_is_about(
    tiny: list[Scenario], tmp_path: Path
) -> None:
    scenarios = [tiny[0].model_copy(update={"id": name}) for name in NAMES]
    evaluate(
        agents.RAG, scenarios, store=memory_search.store(ChromaSettings(name="chroma"), tmp_path)
    )
    paths = sorted(path for path in (tmp_path / "stores").iterdir())
    assert {path.name for path in paths} == {slug(name) for name in NAMES}
    found = json.loads(apart(LOOK, *paths))
    assert found == {slug(name): {"scenario": name} for name in NAMES}


def test_b05_02_an_entry_that_is_put_again_has_its_new_text_and_is_one(store: ChromaStore) -> None:
    put(store, m1="tea in the morning", m2="a walk", m3="a cat")
    put(store, m1="coffee at noon")
    assert nearest(store, "coffee at noon", 3)[0] == "m1"
    held = store._open().get(include=["documents"])
    assert dict(zip(held["ids"], held["documents"], strict=True)) == {
        "m1": "coffee at noon",
        "m2": "a walk",
        "m3": "a cat",
    }
    assert store._open().count() == 3


def test_b05_07_after_a_delete_as_many_come_back_as_there_are(store: ChromaStore) -> None:
    put(store, a="green tea", b="green tea and cake", c="a fast car")
    assert nearest(store, "green tea", 1) == ("a",)
    store.remove(["a"])
    assert nearest(store, "green tea", 1) == ("b",)
    assert sorted(nearest(store, "green tea", 5)) == ["b", "c"]


DELETE = """
    import sys, chromadb
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(path=sys.argv[1], settings=settings)
    client.get_collection("memory", embedding_function=None).delete(ids=["2"])
"""


def test_b05_08_what_another_process_deletes_meanwhile_leaves_no_empty_rows(
    store: ChromaStore,
) -> None:
    said = ["green tea", "green tea and cake", "a fast car"]
    index = MemoryIndex(store=lambda width: store)
    index.load(Bank().apply_all(map(Operation.add, said), "2024-01-01", 0)[0])
    assert len(index.search("green tea", 3)) == 3
    apart(DELETE, store.path)
    # The bank has it still: a deletion past it is none, and no row comes without its text.
    assert [one.text for one in index.search("green tea and cake", 3)] == [
        said[1],
        said[0],
        said[2],
    ]


def test_b05_10_a_folder_that_is_replaced_under_a_process_holds_what_was_put_there(
    tmp_path: Path,
) -> None:
    path, snapshot = tmp_path / "store", tmp_path / "snapshot"

    def opened() -> ChromaStore:
        return ChromaStore(DEFAULT.width, path, "memory")

    first = opened()
    put(first, a="green tea", b="a fast car")
    first.close()
    shutil.copytree(path, snapshot)
    second = opened()
    put(second, a="changed", c="later", d="later still")
    second.close()
    shutil.rmtree(path)
    shutil.copytree(snapshot, path)
    third = opened()
    assert sorted(nearest(third, "green tea", 9)) == ["a", "b"]
    assert nearest(third, "green tea", 1) == ("a",)
    assert third._open().count() == 2
    put(third, e="a new bicycle")
    assert nearest(third, "a new bicycle", 1) == ("e",)
    assert third._open().count() == 3
    third.close()
    shutil.rmtree(path)
    empty = opened()
    assert nearest(empty, "green tea", 9) == ()
    put(empty, f="green tea")
    assert empty._open().count() == 1
    empty.close()


def test_b05_10_a_bank_that_is_loaded_again_is_all_that_its_store_holds(store: ChromaStore) -> None:
    index = MemoryIndex(store=lambda width: store)
    saved, _ = Bank().apply_all([Operation.add("green tea"), Operation.add("a car")], "2024", 0)
    index.load(saved)
    assert len(index.search("tea", 9)) == 2
    later, outcomes = saved.apply_all([Operation.add("cake"), Operation.delete("1")], "2024", 1)
    index.follow(later, outcomes)
    assert [one.text for one in index.search("cake", 1)] == ["cake"]
    index.load(Bank.from_json(saved.to_json()))
    assert {one.text for one in index.search("tea", 9)} == {"green tea", "a car"}
    assert store._open().count() == 2
    again, outcome = saved.apply(Operation.add("a bicycle"), "2024", 1)
    index.follow(again, [outcome])
    assert [one.text for one in index.search("bicycle", 1)] == ["a bicycle"]
    assert store._open().count() == 3


def test_b05_14_an_id_that_a_model_gives_as_a_number_is_a_text_and_empty_texts_are_counted() -> (
    None
):
    reply: Any = '{"operations": [{"op": "DELETE", "id": 1}, {"op": "ADD", "text": " "}]}'
    operations = MemoryDecision((), ()).parse(reply)
    bank, _ = Bank().apply(Operation.add("tea"), "2024", 0)
    after, outcomes = bank.apply_all(operations, "2024", 1)
    assert after.entries == ()
    assert [outcome.status.value for outcome in outcomes] == ["applied", "empty_text"]


def test_b05_14_vectors_that_are_no_numbers_are_an_error_and_blank_texts_are_never_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    asked: list[str] = []

    def no_numbers(texts: list[str]) -> Vectors:
        asked.extend(texts)
        return np.full((len(texts), 4), np.nan, np.float32)

    with ModelServer() as server:
        embedder = LitellmEmbedder(
            "openai/text-embedding-3-small", api_base=server.address, first_delay=0.001, retries=1
        )
        assert not embedder(["", " "]).any()
        monkeypatch.setattr("tests.support.chat_server.DEFAULT", no_numbers)
        index = MemoryIndex(embedder)
        index.load(Bank().apply_all(map(Operation.add, ("tea", "cake")), "2024", 0)[0])
        with pytest.raises(TransportError, match="finite embeddings, found NaN"):
            index.search("tea", 1)
        assert asked == ["tea"] * 2
        monkeypatch.undo()
        monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
        assert [entry.text for entry in index.search("cake", 1)] == ["cake"]
