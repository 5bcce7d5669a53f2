"""Embeddings through litellm: quantized, asked for once, with a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from amemgym_env.errors import ConfigError, TransportError
from amemgym_env.evaluation.run import evaluate
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.models.litellm.embedding import LitellmEmbedder
from amemgym_env.scenarios.model import Scenario
from tests.support.chat_server import ModelServer

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    with ModelServer() as running:
        yield running


def embedder(server: ModelServer, **settings: Any) -> LitellmEmbedder:
    return LitellmEmbedder(
        "openai/text-embedding-3-small", api_base=server.address, first_delay=0.001, **settings
    )


def test_vectors_are_integers_in_order_and_blank_texts_zero(server: ModelServer) -> None:
    texts = ["a walk in the park", "", "tea and cake", "a walk in the park"]
    found = embedder(server)(texts)
    assert np.array_equal(found[[0, 2]], DEFAULT([texts[0], texts[2]]))
    assert np.array_equal(found[0], found[3])
    assert not found[1].any()


def test_a_text_is_asked_for_once_also_by_another_process(
    server: ModelServer, tmp_path: Path
) -> None:
    one = embedder(server, cache=tmp_path)
    expected = one(["tea", "walk"])
    hits = server.hits["embedding"]
    assert np.array_equal(one(["walk", "tea"]), expected[::-1])
    assert np.array_equal(embedder(server, cache=tmp_path)(["tea", "walk"]), expected)
    assert server.hits["embedding"] == hits


def test_b03_10_a_silent_server_costs_one_timeout_an_attempt(server: ModelServer) -> None:
    server.behaviour.latency = 30.0
    with pytest.raises(TransportError, match="no embedding within"):
        embedder(server, timeout=0.3, retries=1)(["tea"])
    assert server.hits["embedding"] == 2  # `width` is learned from one word


def test_a_refused_key_is_a_mistake_in_the_settings(server: ModelServer) -> None:
    server.behaviour.key = "another"
    with pytest.raises(ConfigError, match=r"embedding\.model"):
        embedder(server)(["tea"])


def test_an_evaluation_by_the_same_vectors_gives_the_same_results(
    server: ModelServer, tiny: list[Scenario]
) -> None:
    expected = evaluate(agents.RAG, tiny).to_json()
    assert evaluate(agents.RAG, tiny, embedder=embedder(server)).to_json() == expected


class Narrow(ModelServer):
    """Takes two texts at a time, of 400 characters each."""

    async def _respond(self, path: str, body: dict[str, Any], key: str, writer: Any) -> bool:
        texts = body["input"]
        if len(texts) > 2:
            await self._error(writer, 400, "batch size is invalid, at most 2 inputs", "x")
            return True
        if any(len(text) > 400 for text in texts):
            text = "This model's maximum context length is 100 tokens. Please reduce your prompt."
            await self._error(writer, 400, text, "x")
            return True
        return await super()._respond(path, body, key, writer)


def test_p17_a_refused_batch_is_split_and_a_long_text_shortened_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-one")
    texts = [f"note {number} about tea" for number in range(7)]
    long = "a long note about tea and rain " * 40
    with Narrow() as server:
        asked = LitellmEmbedder("openai/text-embedding-3-small", api_base=server.address)
        with pytest.warns(RuntimeWarning, match="embedded by their beginning"):
            found = asked([*texts, long])
        assert asked.shortened >= 1
    plain = DEFAULT([*texts, long[: len(long) // 4]])
    assert found.shape == plain.shape
    assert np.isfinite(found).all()
