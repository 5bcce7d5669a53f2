"""Cases of the field on stores, ledgers and files: each test bears the ids it answers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from amemgym_env.backend import Backend, Models
from amemgym_env.chroma_store import ChromaStore, Index
from amemgym_env.embedding import DEFAULT, Vectors
from amemgym_env.errors import BudgetExceeded, ConfigError, RunError
from amemgym_env.evaluation import evaluate
from amemgym_env.journal import FileJournal
from amemgym_env.litellm_backend import LitellmModel
from amemgym_env.scenario import Scenario
from amemgym_env.scenario_files import slug
from amemgym_env.turn import Entry
from tests.server import ModelServer
from tests.test_litellm_backend import EXAM

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[1]
WIDTH = 8


def entry(name: str, text: str = "text") -> Entry:
    return Entry(name, text, "2024-01-01T00:00:00", "2024-01-01T00:00:00", 0)


def entries(names: list[str]) -> list[Entry]:
    return [entry(name) for name in names]


@pytest.fixture(params=["exact", "approximate"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChromaStore]:
    index: Index = request.param
    made = ChromaStore(WIDTH, tmp_path / "store", "memory", index=index)
    yield made
    made.close()


def test_b03_02_a_bad_reply_that_was_paid_for_stays_in_the_accounts_and_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    with ModelServer() as server:
        backend = LitellmModel("openai/gpt-4.1-mini", api_base=server.address, budget_tokens=2_066)
        models = Models({"assistant": backend})
        server.behaviour.answer = "no JSON at all"
        server.behaviour.usage = {"prompt_tokens": 1_000, "completion_tokens": 50}
        assert models.ask(EXAM).cause == "unreadable"
        server.behaviour.answer = '{"answer": 2}'
        server.behaviour.usage = {"prompt_tokens": 1_010, "completion_tokens": 5}
        assert models.ask(EXAM).cause is None
        used = models.usage["exam"]
        assert (used.calls, used.prompt_tokens, used.completion_tokens) == (2, 2_010, 55)
        assert backend.budget.spent.tokens == 2_065
        with pytest.raises(BudgetExceeded, match="spent 2065 tokens"):
            models.ask(EXAM)


def test_b05_08_what_is_deleted_behind_a_store_is_never_shown_as_nothing(
    store: ChromaStore, tmp_path: Path
) -> None:
    vectors = np.eye(WIDTH, dtype=np.float32)[:3] * 100
    store.put(entries(["a", "b", "c"]), vectors)
    with pytest.raises(RunError, match="one writer"):
        ChromaStore(WIDTH, tmp_path / "store", "memory").remove(["b"])
    store._collection.delete(ids=["b"])
    for found in store.search(vectors, 3):
        assert sorted(found) == ["a", "b", "c"]  # the bank holds it, and its text


def test_b05_09_every_live_entry_is_found_by_itself_after_deletes_and_upserts(
    store: ChromaStore,
) -> None:
    random = np.random.default_rng(0)
    vectors: Vectors = random.integers(-100, 100, (2_000, WIDTH)).astype(np.float32)
    names = [f"entry-{number}" for number in range(2_000)]
    store.put(entries(names), vectors)
    store.remove(names[::2])
    live = list(range(1, 2_000, 2))
    renewed = live[: 3 * len(live) // 10]
    vectors[renewed] = random.integers(-100, 100, (len(renewed), WIDTH)).astype(np.float32)
    store.put(entries([names[row] for row in renewed]), vectors[renewed])
    found = store.search(vectors[live], len(live))
    assert all(set(ids) == {names[row] for row in live} for ids in found)
    if store.index == "approximate":
        assert store.recall is not None
        assert 0.0 < store.recall <= 1.0  # how much the index alone would have found
    else:
        assert store.recall is None


def test_b05_12_the_nearest_comes_first_and_ranks_fall_with_distance(store: ChromaStore) -> None:
    angles = np.array([1.4, 0.05, 0.6])
    vectors = np.zeros((3, WIDTH), np.float32)
    vectors[:, 0], vectors[:, 1] = np.round(1000 * np.cos(angles)), np.round(1000 * np.sin(angles))
    store.put(entries(["far", "near", "between"]), vectors)
    asked = np.zeros((1, WIDTH), np.float32)
    asked[0, 0] = 1000
    assert store.search(asked, 3) == [("near", "between", "far")]
    assert store.search(asked, 1) == [("near",)]


def test_b05_13_a_store_never_returns_the_rows_of_another_user(tmp_path: Path) -> None:
    vectors = np.eye(WIDTH, dtype=np.float32)[:2] * 100
    one = ChromaStore(WIDTH, tmp_path / slug("user 1"), slug("user 1"))
    other = ChromaStore(WIDTH, tmp_path / slug("user 2"), slug("user 2"))
    one.put(entries(["a"]), vectors[:1])
    other.put(entries(["a", "b"]), vectors)
    assert one.search(vectors, 5) == [("a",), ("a",)]
    one.clear()
    assert other.search(vectors[1:], 1) == [("b",)]
    one.close()
    other.close()


def test_b05_14_odd_inputs_change_nothing_and_empty_texts_can_be_kept(store: ChromaStore) -> None:
    store.remove([])
    store.put([], np.zeros((0, WIDTH), np.float32))
    bad = np.full((1, WIDTH), np.nan, np.float32)
    with pytest.raises(ConfigError, match="finite"):
        store.put(entries(["a"]), bad)
    assert store.search(np.ones((1, WIDTH), np.float32), 3) == [()]
    store.put([entry("7", "")], np.zeros((1, WIDTH), np.float32))
    assert store.search(np.ones((1, WIDTH), np.float32), 3) == [("7",)]
    assert np.isfinite(DEFAULT([""])).all()


def test_b09_04_no_id_leaves_its_folder_and_distinct_ids_have_distinct_files() -> None:
    ids = ["..", ".", "a.b", "a_b", "A_b", "a/b", "../a", "", "CON", "\u0000", "a" * 500]
    names = [slug(name) for name in ids]
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert len(name) <= 60


@pytest.mark.parametrize("agent", [agents.Native, agents.RAG, agents.AWE, agents.AWI])
def test_b09_10_the_state_of_an_agent_holds_no_key_and_no_address(
    agent: Any, tiny: list[Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-CANARY-0123456789")
    states: list[str] = []

    class Saved(agent):  # type: ignore[misc]
        def answer(self, exam: Any) -> Any:
            states.append(repr(self.state_dict()))
            return super().answer(exam)

    with ModelServer(scenarios="tiny") as server:
        backend: Backend = LitellmModel("openai/gpt-4.1-mini", api_base=server.address)
        evaluate(
            Saved,
            tiny[:1],
            backends=lambda script: {"assistant": backend},
            journal=lambda scenario: FileJournal(tmp_path / f"{slug(scenario.id)}.jsonl"),
        )
        assert states
        assert not [said for said in states if "CANARY" in said or server.address in said]


def test_b09_10_the_project_holds_only_files_of_known_kinds() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    tops = {
        *(".ci", ".gitignore", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md"),
        *("agents", "amemgym_env", "conf", "docs", "experiments", "tests"),
        *("mkdocs.yml", "pyproject.toml"),
    }
    assert {name.split("/")[0] for name in listed} <= tops
    kinds = {
        *(".py", ".json", ".txt", ".typed", ".yaml", ".yml", ".toml", ".md", ".png", ".css"),
        *(".js", ".html", ".cff"),
    }
    named = {".ci/run", ".gitignore", "LICENSE"}
    assert not [name for name in listed if Path(name).suffix not in kinds and name not in named]
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    assert {".env", "runs/"} <= set(ignored)
