"""The chroma store: equal to the numpy one, one writer, restored, without leaks."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agents
from amemgym_env.agent import Entry
from amemgym_env.errors import ConfigError, RunError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.memory.chroma import ChromaStore, Index
from amemgym_env.memory.embedding import DEFAULT, Vectors
from amemgym_env.memory.index import NumpyStore
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.app.terminal import notes
from experiments.evaluate import run as evaluate_command
from experiments.evaluate.settings import EvaluateSettings

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[2]
WIDTH = 8


def entry(name: str, text: str = "text") -> Entry:
    return Entry(name, text, "2024-01-01T00:00:00", "2024-01-01T00:00:00", 0)


def vectors(*rows: int) -> Vectors:
    """Return one-hot rows, each with a little of the first column."""
    made = np.zeros((len(rows), WIDTH), np.float32)
    for number, column in enumerate(rows):
        made[number, column] = 100
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChromaStore]:
    made = ChromaStore(WIDTH, tmp_path / "store", "memory")
    yield made
    made.close()


def test_b05_02_b05_07_put_replaces_remove_forgets_and_k_rows_come_back(store: ChromaStore) -> None:
    store.put([entry("a"), entry("b"), entry("c")], vectors(0, 1, 2))
    store.put([entry("a", "new")], vectors(3))
    assert store.search(vectors(3), 1) == [("a",)]
    store.remove(["a", "never there"])
    assert store.search(vectors(3), 2) == [("b", "c")]
    store.remove([])
    store.clear()
    assert store.search(vectors(3), 2) == [()]


def test_b05_10_what_was_put_is_there_when_the_path_is_opened_again(tmp_path: Path) -> None:
    first = ChromaStore(WIDTH, tmp_path, "memory")
    first.put([entry("a"), entry("b"), entry("c")], vectors(0, 1, 1))
    first.put([entry("b")], vectors(1))
    first.remove(["a"])
    first.close()
    again = ChromaStore(WIDTH, tmp_path, "memory")
    assert again.search(vectors(1), 5) == [("b", "c")]
    again.put([entry("d")], vectors(1))
    assert again.search(vectors(1), 5) == [("b", "c", "d")]
    again.close()
    fresh = ChromaStore(WIDTH, tmp_path, "memory", fresh=True)
    assert fresh.search(vectors(1), 5) == [()]
    fresh.close()


def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    first = ChromaStore(WIDTH, tmp_path, "memory")
    first.put([entry("a")], vectors(0))
    second = ChromaStore(WIDTH, tmp_path, "memory")
    with pytest.raises(RunError, match="one writer"):
        second.search(vectors(0), 1)
    first.close()
    assert second.search(vectors(0), 1) == [("a",)]
    second.close()


def _in_child(store: ChromaStore, queue: Any) -> None:
    try:
        store.search(vectors(0), 1)
    except RunError as error:
        queue.put(str(error))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_is_refused_and_the_parent_goes_on(store: ChromaStore) -> None:
    store.put([entry("a")], vectors(0))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(store, queue))
    child.start()
    assert "forked child" in queue.get(timeout=30)
    child.join(30)
    assert store.search(vectors(0), 1) == [("a",)]


def test_a_killed_writer_leaves_the_path_free_and_its_entries_there(tmp_path: Path) -> None:
    program = """
        import sys, time, numpy
        from amemgym_env.memory.chroma import ChromaStore, Index
        from amemgym_env.agent import Entry
        store = ChromaStore(8, sys.argv[1], "memory")
        store.put([Entry("a", "t", "", "", 0)], numpy.eye(1, 8, dtype="float32"))
        print("ready", flush=True)
        time.sleep(60)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    child.stdout.close()
    store = ChromaStore(WIDTH, tmp_path, "memory")
    assert store.search(vectors(0), 1) == [("a",)]
    store.close()


def raw(path: Path, program: str, *words: str) -> None:
    """Do something to a collection from another process, past our lock."""
    opened = """
        import sys, chromadb
        chosen = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=sys.argv[1], settings=chosen)
    """
    whole = textwrap.dedent(opened) + textwrap.dedent(program)
    subprocess.run([sys.executable, "-c", whole, str(path), *words], check=True, timeout=120)


def texts(count: int) -> list[str]:
    return [f"word{number} other{number % 7} thing{number % 3}" for number in range(count)]


def test_b05_08_b05_09_what_another_process_deletes_is_still_found(
    tmp_path: Path,
) -> None:
    said = texts(40)
    entries = [entry(str(number), text) for number, text in enumerate(said)]
    store = ChromaStore(DEFAULT.width, tmp_path, "memory", index="approximate")
    store.put(entries, DEFAULT(said))
    store.close()
    raw(tmp_path, "client.get_collection('memory', embedding_function=None).delete(ids=['3'])")
    store = ChromaStore(DEFAULT.width, tmp_path, "memory", index="approximate")
    store.put(entries, DEFAULT(said))
    collection = store._open()
    collection.delete(ids=["5", "7"])
    found = store.search(DEFAULT(said), 10)
    assert all(len(set(ids)) == 10 for ids in found)
    missed = [str(number) not in ids for number, ids in enumerate(found)]
    assert missed == [number in (5, 7) for number in range(40)]
    assert {frozenset(ids) for ids in store.search(DEFAULT(said), 40)} == {
        frozenset(map(str, range(40)))
    }
    store.close()


def test_b05_09_after_many_deletes_and_replacements_entries_are_reached(
    store: ChromaStore, tmp_path: Path
) -> None:
    said = texts(600)
    store = ChromaStore(DEFAULT.width, tmp_path, "memory", index="approximate")
    store.put([entry(str(number)) for number in range(600)], DEFAULT(said))
    store.remove([str(number) for number in range(0, 600, 2)])
    changed = [f"changed {text}" for text in said[1:180:2]]
    store.put([entry(str(number)) for number in range(1, 180, 2)], DEFAULT(changed))
    assert all(ids for ids in store.search(DEFAULT(changed), 1))
    store.close()


@pytest.mark.parametrize("space", ["l2", "cosine"])
def test_b05_12_the_nearest_come_first_and_another_measure_is_refused(
    space: str, tmp_path: Path
) -> None:
    angles = np.array([0.0, 0.05, 0.6, 1.4, 3.1])
    rows = np.zeros((5, WIDTH), np.float32)
    rows[:, 0], rows[:, 1] = 127 * np.cos(angles), 127 * np.sin(angles)
    indices: tuple[Index, ...] = ("exact", "approximate")
    for index in indices:
        store = ChromaStore(WIDTH, tmp_path / index, "memory", index=index)
        store.put([entry(name) for name in "dacb"], np.rint(rows[[4, 1, 3, 2]]))
        assert store.search(np.rint(rows[:1]), 3) == [("a", "b", "c")]
        store.close()
    made = f"client.create_collection('memory', configuration={{'hnsw': {{'space': '{space}'}}}})"
    raw(tmp_path / "other", made)
    store = ChromaStore(WIDTH, tmp_path / "other", "memory")
    with pytest.raises(RunError, match=f"ranks by 'ip', found one by '{space}'"):
        store.search(rows, 1)
    store.close()


def test_b05_13_no_store_returns_anothers_rows_and_foreign_rows_are_refused(tmp_path: Path) -> None:
    for name in ("user-1", "user-2"):
        store = ChromaStore(WIDTH, tmp_path, name)
        assert store.search(vectors(0), 5) == [()]
        store.put([entry(f"of {name}"), entry("same")], vectors(0, 1))
        assert store.search(vectors(0), 5) == [(f"of {name}", "same")]
        store.close()
    add = "client.get_collection(sys.argv[2], embedding_function=None).add(ids=['x'], "
    raw(tmp_path, f"{add} embeddings=[[1.0] * {WIDTH}], documents=['not ours'])", "user-1")
    store = ChromaStore(WIDTH, tmp_path, "user-1")
    with pytest.raises(RunError, match="found 1 that something else wrote, such as 'x'"):
        store.search(vectors(0), 5)
    store.close()
    store = ChromaStore(WIDTH, tmp_path, "user-2")
    assert store.search(vectors(0), 5) == [("of user-2", "same")]
    store.close()


def test_b05_14_nothing_empty_and_no_number_harms_a_store(store: ChromaStore) -> None:
    none = np.zeros((0, WIDTH), np.float32)
    store.put([], none)
    store.remove([])
    assert store.search(vectors(0), 3) == [()]
    assert store.search(none, 3) == []
    store.put([entry("blank", ""), entry("a")], np.concatenate([0 * vectors(0), vectors(1)]))
    assert store.search(vectors(1), 2) == [("a", "blank")]
    with pytest.raises(ConfigError, match="finite"):
        store.put([entry("b")], np.full((1, WIDTH), np.nan, np.float32))
    with pytest.raises(ConfigError, match="ids of type str, found 7"):
        store.put([entry(7)], vectors(2))  # type: ignore[arg-type]
    assert store.search(vectors(1), 5) == [("a", "blank")]


@pytest.mark.parametrize("name", ["ab", "Ünal 7", "a..b", "_x_", "user/1", "x" * 600, "😀😀😀"])
def test_b05_01_any_scenario_id_has_a_collection(name: str, tmp_path: Path) -> None:
    store = ChromaStore(WIDTH, tmp_path, slug(name))
    store.put([entry("a", "half \ud83d")], vectors(0))
    assert store.search(vectors(0), 1) == [("a",)]
    store.close()


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "search"]), st.integers(0, 5), st.integers(0, 3)),
    max_size=12,
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(operations=OPERATIONS)
def test_any_operations_give_what_the_numpy_store_gives(
    store: ChromaStore, operations: list[tuple[str, int, int]]
) -> None:
    store.clear()
    exact = NumpyStore(WIDTH)
    for name, number, column in operations:
        if name == "put":
            for one in (store, exact):
                one.put([entry(str(number))], vectors(column))
        elif name == "remove":
            for one in (store, exact):
                one.remove([str(number)])
        assert store.search(vectors(column, 0), 3) == exact.search(vectors(column, 0), 3)


def test_the_approximate_index_finds_as_many_and_reports_its_recall(tmp_path: Path) -> None:
    store = ChromaStore(DEFAULT.width, tmp_path, "memory", index="approximate")
    texts = [f"word{number} other{number % 7} thing{number % 3}" for number in range(60)]
    store.put([entry(str(number), text) for number, text in enumerate(texts)], DEFAULT(texts))
    found = store.search(DEFAULT(texts[:5]), 5)
    assert [ids[0] for ids in found] == ["0", "1", "2", "3", "4"]
    assert all(len(set(ids)) == 5 for ids in found)
    assert store.recall is not None
    assert 0.5 < store.recall <= 1.0
    store.close()


@pytest.mark.parametrize("make", [agents.RAG, agents.AWE], ids=["rag", "awe"])
def test_an_evaluation_is_the_same_with_both_stores(
    make: Any, tiny: list[Scenario], tmp_path: Path
) -> None:
    plain = evaluate(make, tiny).to_json()
    kept = evaluate(
        make,
        tiny,
        workers=3,
        store=lambda script: (
            lambda width: ChromaStore(
                width, tmp_path / slug(script.scenario.id), slug(script.scenario.id), fresh=True
            )
        ),
    ).to_json()
    assert kept == plain
    assert plain["index_recall"] is None


def test_a_run_says_what_its_approximate_index_found(tmp_path: Path) -> None:
    words = ["scenarios=tiny", "agent=rag", "store=chroma", "store.index=approximate"]
    words += [f"out={tmp_path / 'run'}"]
    found = evaluate_command.run(checked(EvaluateSettings, compose("evaluate", words))).results
    assert 0.0 < (found.index_recall or 0.0) <= 1.0
    assert f"index found {found.index_recall:.1%} of the nearest" in " ".join(notes(found))


def _rss() -> float:
    """Return the largest resident size so far in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.evidence
def test_500_episodes_do_not_leak(tmp_path: Path) -> None:
    sizes = []
    for number in range(500):
        store = ChromaStore(WIDTH, tmp_path / f"{number % 20}", "memory", fresh=True)
        store.put([entry(str(name)) for name in range(20)], vectors(*[1] * 20))
        assert len(store.search(vectors(1), 5)[0]) == 5
        store.close()
        if number in (99, 499):
            sizes.append((_rss(), len(os.listdir("/proc/self/fd"))))
    (early, files), (late, more_files) = sizes
    assert late - early < 60, sizes
    assert more_files - files < 10, sizes
