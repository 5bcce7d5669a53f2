"""Any embedding model through litellm, as integer vectors like the default's.

Texts are embedded once: what was computed is kept in a cache on disk, if a folder is given, so that
a resumed run asks for nothing twice. Only transport is tried again.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from amemgym_env.errors import ConfigError, TransportError
from amemgym_env.memory.embedding import Vectors, quantize
from amemgym_env.models.backend import Completion
from amemgym_env.models.cache import CallCache
from amemgym_env.models.litellm import event_loop as loop_thread
from amemgym_env.models.litellm.faults import classify, delay, out_of_time
from amemgym_env.models.litellm.library import library
from amemgym_env.models.litellm.parameters import checked_address, checked_key_name, connection
from amemgym_env.models.usage import Usage
from amemgym_env.seeding import digest


class LitellmEmbedder:
    """An embedding model by its litellm name, such as `openai/text-embedding-3-small`.

    `timeout` is in seconds for one attempt, `retries` the attempts after the first.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key_env: str | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        first_delay: float = 0.5,
        cache: str | Path | None = None,
    ) -> None:
        self.name = f"litellm/{model}"
        self.model = model
        self.api_base = None if api_base is None else checked_address(api_base)
        self.api_key_env = checked_key_name(api_key_env)
        self.timeout, self.retries, self.first_delay = timeout, retries, first_delay
        self._cache = None if cache is None else CallCache(cache)
        self._known: dict[str, Vectors] = {}

    @functools.cached_property
    def width(self) -> int:
        """Width of the vectors, learned from the embedding of one word."""
        self._learn(["width"])
        return len(self._known["width"])

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return integer vectors of shape (len(texts), width); blank texts are zero.

        Raises:
            TransportError: the model could not be reached within the retries.
            ConfigError: the provider refuses the key, the model or the address.
        """
        if not texts:
            return np.zeros((0, self.width), np.float32)
        self._learn([text for text in dict.fromkeys(texts) if text.strip()])
        blank = np.zeros(self.width, np.float32)
        return np.stack([self._known[text] if text.strip() else blank for text in texts])

    def _learn(self, texts: Sequence[str]) -> None:
        wanted = [text for text in texts if not self._has(text)]
        if wanted:
            for text, row in zip(wanted, self._asked(wanted), strict=True):
                self._keep(text, row)

    def _has(self, text: str) -> bool:
        if text in self._known:
            return True
        found = None if self._cache is None else self._cache.get(self._key(text))
        if found is not None:
            self._known[text] = np.array(json.loads(found.text), np.float32)
        return found is not None

    def _keep(self, text: str, row: Vectors) -> None:
        self._known[text] = row
        if self._cache is not None:
            numbers = json.dumps(row.astype(int).tolist())
            self._cache.put(self._key(text), Completion(numbers, Usage()))

    def _key(self, text: str) -> str:
        return digest("embedding", self.name, str(self.api_base), text).hex()

    def _asked(self, texts: list[str]) -> Vectors:
        library()
        return loop_thread.shared().submit(self._attempts(texts)).result()

    async def _attempts(self, texts: list[str]) -> Vectors:
        failed = 0
        while True:
            try:
                work = library().aembedding(
                    model=self.model,
                    input=texts,
                    timeout=self.timeout,
                    num_retries=0,
                    max_retries=0,
                    **connection(self.model, self.api_base, self.api_key_env),
                )
                response = await asyncio.wait_for(work, self.timeout)
                data = sorted(response.data, key=lambda part: int(part["index"]))
                rows = np.array([part["embedding"] for part in data], np.float64)
                if rows.ndim != 2 or len(rows) != len(texts):
                    raise TransportError(f"expected {len(texts)} embeddings, found {rows.shape}")
                return quantize(rows)
            except TimeoutError:
                fault = out_of_time(self.timeout, "embedding")
            except Exception as error:  # noqa: BLE001 - every error is classified
                fault = classify(error)
            failed += 1
            if fault.kind in ("settings", "parameter"):
                raise ConfigError(f"embedding.model={self.model}: {fault.message}")
            if fault.kind != "transport" or failed > self.retries:
                raise TransportError(fault.message, failed, fault.reason)
            await asyncio.sleep(delay(fault, failed, self.first_delay, self.name, texts[0]))
