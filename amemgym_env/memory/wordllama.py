"""Embedder on the static word vectors of wordllama, offline.

This is the only module that imports wordllama, whose weights come with its package. It ranks by
meaning; the default ranks by shared word stems.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import Vectors, quantize


class WordLlamaEmbedder:
    """wordllama's vectors, 256 numbers wide, as integers like the default's.

    Raises:
        ConfigError: wordllama is not installed, or its weights do not lie in its package.
    """

    name = "wordllama/l2_supercat_256"
    width = 256

    def __init__(self) -> None:
        self._model = _loaded()
        self._lock = threading.Lock()
        self._one = lru_cache(maxsize=65_536)(self._embedded)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return integer vectors of shape (len(texts), 256); blank texts are zero."""
        rows = [self._one(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def _embedded(self, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(self.width, np.float32)
        # One text at a time: in a batch, sums would depend on the length of its neighbours.
        with self._lock:
            rows = quantize(np.array(self._model.embed([text]), np.float64))
        row: Vectors = rows[0]
        return row


def _loaded() -> Any:
    try:
        import wordllama  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigError(
            f"embedding=wordllama: expected the extra wordllama (pip install -e '.[wordllama]'): "
            f"{error}"
        ) from error
    folder = Path(wordllama.__file__).parent
    try:
        return wordllama.WordLlama.load(
            cache_dir=folder, disable_download=True, trunc_dim=WordLlamaEmbedder.width
        )
    except FileNotFoundError as error:
        raise ConfigError(
            f"embedding=wordllama: expected weights inside the package, found none: {error}"
        ) from error
