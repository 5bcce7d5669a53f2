"""Similarity search over the memory bank: the store interface, the exact numpy store, the index.

A `Store` holds one vector per entry and ranks them. A `MemoryIndex` keeps a store in step with a
bank; it embeds changed entries lazily, at the next search. Similarity is the inner product of
integer vectors (see `embedding.py`), exact in any order of summation; ties go to the older entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from amemgym_env.agent import Entry
from amemgym_env.errors import ConfigError
from amemgym_env.memory.bank import Applied, Bank
from amemgym_env.memory.embedding import DEFAULT, Embedder, Vectors

_FIRST_ROWS = 32
_SORTED_WHOLE = 512
"""Up to this many rows, sorting all of them is faster than picking the nearest first."""


class Store(Protocol):
    """An index over the entries of one bank, by entry id.

    Calls come in the bank's order: what is put first is older. A store may keep its vectors
    outside of the process; it opens nothing before the first call.
    """

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add entries at the end, or replace the vector (and all else) of ids already held.

        `vectors` has shape (entries, width); ids are distinct.
        """
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Delete ids; unknown ones are ignored."""
        ...

    def clear(self) -> None:
        """Delete all entries."""
        ...

    def search(self, queries: Vectors, k: int) -> list[tuple[str, ...]]:
        """Return for each query the ids of its `k` most similar entries, most similar first.

        `queries` has shape (queries, width). Fewer ids come back only when fewer are held.
        """
        ...

    def close(self) -> None:
        """Release resources; the store is not used again."""
        ...


StoreFactory = Callable[[int], Store]
"""Makes an empty store for vectors of the given width."""


class NumpyStore:
    """The exact store: all vectors in one matrix that grows by doubling.

    A removed row stays as a gap until a third of the rows are gaps, so that no operation moves
    the whole matrix, and rows are always in the bank's order.
    """

    def __init__(self, width: int) -> None:
        self._matrix: Vectors = np.zeros((_FIRST_ROWS, width), np.float32)  # (rows, width)
        self._ids: list[str | None] = []  # one a row; None is a gap
        self._rows: dict[str, int] = {}

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add or replace entries; see `Store.put`."""
        for entry, vector in zip(entries, vectors, strict=True):
            row = self._rows.get(entry.id)
            if row is None:
                self._make_room()
                row = self._rows[entry.id] = len(self._ids)
                self._ids.append(entry.id)
            self._matrix[row] = vector

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of ids that are held, shape (ids, width)."""
        return self._matrix[[self._rows[entry_id] for entry_id in ids]]

    def remove(self, ids: Sequence[str]) -> None:
        """Delete ids; see `Store.remove`."""
        for entry_id in ids:
            row = self._rows.pop(entry_id, None)
            if row is not None:
                self._ids[row] = None
        if 3 * len(self._rows) < 2 * len(self._ids):
            self._compact()

    def clear(self) -> None:
        """Delete all entries."""
        self._ids.clear()
        self._rows.clear()

    def search(self, queries: Vectors, k: int) -> list[tuple[str, ...]]:
        """Return the ids of the most similar entries; see `Store.search`."""
        count = len(self._ids)
        k = min(k, len(self._rows))
        if k <= 0:
            return [() for _ in queries]
        scores = (queries @ self._matrix[:count].T).astype(np.int64)
        # One integer ranks by similarity first and age second, so that no two rows are equal.
        keys = np.arange(count) - scores * count
        if len(self._rows) < count:
            gaps = [row for row, entry_id in enumerate(self._ids) if entry_id is None]
            keys[:, gaps] = np.iinfo(np.int64).max
        if count > _SORTED_WHOLE:
            nearest = np.argpartition(keys, min(k, count - 1), axis=1)[:, :k]
            ranks = np.argsort(np.take_along_axis(keys, nearest, axis=1), axis=1)
            order = np.take_along_axis(nearest, ranks, axis=1)
        else:
            order = np.argsort(keys, axis=1)[:, :k]
        return [tuple(self._ids[row] or "" for row in rows) for rows in order.tolist()]

    def close(self) -> None:
        """Release the matrix."""
        self.clear()
        self._matrix = self._matrix[:0]

    def _make_room(self) -> None:
        if len(self._ids) == len(self._matrix):
            grown = np.zeros((max(_FIRST_ROWS, 2 * len(self._ids)), self._matrix.shape[1]))
            grown[: len(self._ids)] = self._matrix
            self._matrix = grown.astype(np.float32)

    def _compact(self) -> None:
        kept = [row for row, entry_id in enumerate(self._ids) if entry_id is not None]
        self._matrix[: len(kept)] = self._matrix[kept]
        self._ids = [self._ids[row] for row in kept]
        self._rows = {entry_id: row for row, entry_id in enumerate(self._ids) if entry_id}


class MemoryIndex:
    """A bank with the store that searches it: the read-only `MemoryView` of drivers and agents.

    `follow` is called with every new bank; embeddings and the store are brought up to date when
    somebody searches, in one batch.
    """

    def __init__(self, embedder: Embedder = DEFAULT, store: StoreFactory = NumpyStore) -> None:
        self.embedder = embedder
        self._store = store(embedder.width)
        self._bank = Bank()
        self._held: set[str] = set()
        self._changed: dict[str, None] = {}

    def load(self, bank: Bank) -> None:
        """Index `bank` from scratch."""
        self._bank = bank
        if self._held:
            self._store.clear()
            self._held.clear()
        self._changed = dict.fromkeys(entry.id for entry in bank.entries)

    def follow(self, bank: Bank, outcomes: Iterable[Applied]) -> None:
        """Update the index to `bank`, given the `outcomes` that led to it."""
        self._bank = bank
        for outcome in outcomes:
            if outcome.entry_id is not None and not outcome.status.refused:
                self._changed[outcome.entry_id] = None

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        return self._bank.entries

    def search(self, text: str, k: int) -> tuple[Entry, ...]:
        """Return the `k` entries most similar to `text`, most similar first.

        Raises:
            BackendError: the embedding could not be computed.
        """
        if k <= 0 or not self._bank.entries:
            return ()
        return self.search_vectors(self.embedder([text]), k)[0]

    def search_vectors(self, queries: Vectors, k: int) -> list[tuple[Entry, ...]]:
        """Return for each query, shape (queries, width), its `k` most similar entries."""
        self._update_store()
        by_id = {entry.id: entry for entry in self._bank.entries}
        found = self._store.search(queries, k)
        return [tuple(by_id[entry_id] for entry_id in ids) for ids in found]

    @property
    def recall(self) -> tuple[int, int]:
        """Nearest entries that an approximate store found, and those it was asked for; else zeros.

        Such a store counts them as `recall_counts`.
        """
        counts: tuple[int, int] = getattr(self._store, "recall_counts", (0, 0))
        return counts

    def close(self) -> None:
        """Release the store."""
        self._store.close()

    def _update_store(self) -> None:
        if not self._changed:
            return
        present = [entry for entry in self._bank.entries if entry.id in self._changed]
        gone = self._changed.keys() & self._held - {entry.id for entry in present}
        vectors = self.embedder([entry.text for entry in present])
        if vectors.shape != (len(present), self.embedder.width):
            raise ConfigError(
                f"embedder {self.embedder.name!r}: expected vectors of shape "
                f"{(len(present), self.embedder.width)}, found {vectors.shape}"
            )
        if gone:
            self._store.remove(sorted(gone))
        if present:
            self._store.put(present, vectors)
        self._held = (self._held - gone) | {entry.id for entry in present}
        self._changed.clear()


class ReadOnlyView:
    """Read-only `MemoryView` of an index, for agents."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first."""
        return self._index.entries()

    def search(self, text: str, k: int) -> tuple[Entry, ...]:
        """Return the `k` entries most similar to `text`, most similar first."""
        return self._index.search(text, k)
