"""Embedding models through litellm, as integer vectors like the default's.

Texts are embedded once. With a folder, vectors are cached on disk, and a resumed run asks for
nothing twice. Attempts and decisions are those of calls; a batch that is refused is split, and a
text beyond the model's window is shortened and counted.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from amemgym_env.errors import TransportError
from amemgym_env.memory.embedding import Vectors, quantize
from amemgym_env.models.backend import Completion
from amemgym_env.models.cache import CallCache
from amemgym_env.models.litellm import event_loop
from amemgym_env.models.litellm.attempts import Endpoint
from amemgym_env.models.litellm.faults import Fault, classify, out_of_time
from amemgym_env.models.litellm.library import library
from amemgym_env.models.litellm.parameters import (
    checked_address,
    checked_key_name,
    connection,
    usual_address,
    warn,
)
from amemgym_env.models.usage import Usage
from amemgym_env.seeding import digest

_SHORTEST = 64
"""Characters below which a text is not shortened further."""
_BATCH = re.compile(
    r"batch|array|too many (inputs|texts|items)|inputs?.{0,20}(at most|maximum)", re.I
)


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
        max_wait: float = 120.0,
        cache: str | Path | None = None,
    ) -> None:
        self.name = f"litellm/{model}"
        self.model = model
        api_base = usual_address(model) if api_base is None else api_base
        self.api_base = None if api_base is None else checked_address(api_base)
        self.api_key_env = checked_key_name(model, api_key_env)
        self.timeout = timeout
        key = f"embedding.model={model}"
        self.endpoint = Endpoint(key, self.name, retries, first_delay, max_wait)
        self.shortened = 0
        """Texts that were beyond the model's window, and embedded by their beginning."""
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
        return event_loop.shared().submit(self._embedded(texts)).result()

    async def _embedded(self, texts: list[str]) -> Vectors:
        """Return the vectors of texts; a refused batch is split, a refused text shortened."""
        try:
            return await self._batch(texts)
        except _Refused as refused:
            if len(texts) > 1:
                half = len(texts) // 2
                parts = [await self._embedded(part) for part in (texts[:half], texts[half:])]
                return np.concatenate(parts)
            if refused.fault.cause != "context_exceeded" or len(texts[0]) < _SHORTEST:
                raise TransportError(refused.fault.message, 1, refused.fault.reason) from refused
            self._note_shortened()
            return await self._embedded([texts[0][: len(texts[0]) // 2]])

    async def _batch(self, texts: list[str]) -> Vectors:
        async def attempt(number: int) -> Vectors | Fault:
            try:
                async with asyncio.timeout(self.timeout):
                    response = await library().aembedding(
                        model=self.model,
                        input=texts,
                        timeout=self.timeout,
                        num_retries=0,
                        max_retries=0,
                        **connection(self.model, self.api_base, self.api_key_env),
                    )
                data = sorted(response.data, key=lambda part: int(part["index"]))
                rows = np.array([part["embedding"] for part in data], np.float64)
                if rows.ndim != 2 or len(rows) != len(texts):
                    found = f"expected {len(texts)} embeddings, found {rows.shape}"
                    return Fault("retry", found, reason="server_error")
                return quantize(rows)
            except TimeoutError:
                return out_of_time(self.timeout, "embedding")
            except Exception as error:  # noqa: BLE001 - every error is classified
                fault = classify(error)
            limit = _BATCH.search(fault.message) is not None and len(texts) > 1
            if fault.cause is not None or fault.action in ("unscored", "parameter") or limit:
                raise _Refused(fault)
            return fault

        return await self.endpoint.attempts(attempt, lambda fault: False, asyncio.sleep, texts[0])

    def _note_shortened(self) -> None:
        self.shortened += 1
        if self.shortened == 1:
            warn(f"{self.name}: texts beyond the model's window are embedded by their beginning")


class _Refused(Exception):
    """The provider refuses this batch; a smaller one may pass."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)
