"""Persistent vector store on chromadb, behind the `Store` interface.

This is the only module that imports chromadb. Embeddings are explicit. `index="exact"` ranks the
stored vectors like the numpy store, ties included; `index="approximate"` uses chroma's index, for
large banks, and counts its recall.

A lock file admits one writer per path; the operating system releases it when the process ends. A
forked child is refused, because chroma's client would hang. Nothing is opened before the first
call, and a reopened path holds its entries.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout

from amemgym_env.agent import Entry
from amemgym_env.errors import ConfigError, RunError
from amemgym_env.memory.embedding import Vectors
from amemgym_env.memory.index import NumpyStore
from amemgym_env.text import storable

Index = Literal["exact", "approximate"]

_BATCH = 5_000
"""Entries a call; chroma takes 5,461 at most."""
_SPACE = "ip"
"""Inner product, as in the numpy store; chroma's default is the distance l2."""


class ChromaStore:
    """The entries of one bank in a collection of a chroma database.

    `path` is a folder of its own, `name` a safe collection name (`scenario_files.slug`), and
    `scenario` the id that it was made from, stored with the collection. With `fresh`, the first
    call deletes what an earlier process stored; a resumed run writes it again.
    """

    def __init__(
        self,
        width: int,
        path: str | Path,
        name: str,
        *,
        index: Index = "exact",
        fresh: bool = False,
        scenario: str | None = None,
    ) -> None:
        if index not in ("exact", "approximate"):
            raise ConfigError(f"store.index: expected exact or approximate, found {index!r}")
        self.path = Path(path)
        self.name = name
        self.index = index
        self._width = width
        self._fresh = fresh
        self._about = None if scenario is None else {"scenario": storable(scenario)}
        self._exact = NumpyStore(width)
        self._held: dict[str, Entry] = {}
        self._place = 0
        self._agreed = self._wanted = 0
        self._process = 0
        self._client: Any = None
        self._collection: Any = None
        self._lock: Any = None

    @property
    def recall(self) -> float | None:
        """Share of the nearest entries that searches found; None before any search."""
        return self._agreed / self._wanted if self._wanted else None

    @property
    def recall_counts(self) -> tuple[int, int]:
        """Numbers of nearest entries found by chroma's index and requested."""
        return self._agreed, self._wanted

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add or replace entries; see `Store.put`."""
        collection = self._open()
        if vectors.shape != (len(entries), self._width) or not np.isfinite(vectors).all():
            raise ConfigError(
                f"expected finite vectors of shape {(len(entries), self._width)}, found "
                f"{vectors.shape}"
            )
        for entry in entries:
            if not isinstance(entry.id, str):
                raise ConfigError(f"expected ids of type str, found {entry.id!r}")
        for first in range(0, len(entries), _BATCH):
            part = entries[first : first + _BATCH]
            # An entry that is replaced keeps its place in the order of age.
            known = {entry.id for entry in part} & self._held.keys()
            old = self._places(known)
            places = []
            for entry in part:
                places.append(old.get(entry.id, self._place))
                self._place += entry.id not in old
            self._write(collection, part, vectors[first : first + _BATCH], places)
        self._exact.put(entries, vectors)
        self._held.update({entry.id: entry for entry in entries})

    def remove(self, ids: Sequence[str]) -> None:
        """Delete ids; see `Store.remove`."""
        collection = self._open()
        held = [entry_id for entry_id in ids if entry_id in self._held]
        for first in range(0, len(held), _BATCH):
            collection.delete(ids=held[first : first + _BATCH])
        self._exact.remove(held)
        for entry_id in held:
            del self._held[entry_id]

    def clear(self) -> None:
        """Delete all entries."""
        self.remove(list(self._held)) if self._held else self._open()

    def search(self, queries: Vectors, k: int) -> list[tuple[str, ...]]:
        """Return the ids of the most similar entries; see `Store.search`."""
        collection = self._open()
        exact = self._exact.search(queries, k)
        if self.index == "exact" or not len(queries) or not exact[0]:
            return exact
        answer = collection.query(query_embeddings=queries, n_results=len(exact[0]), include=[])
        found = []
        for ids, nearest in zip(answer["ids"], exact, strict=True):
            live = [entry_id for entry_id in ids if entry_id in self._held]
            self._agreed += len(set(live) & set(nearest))
            self._wanted += len(nearest)
            # The index may miss entries; the exact search completes the result.
            missing = [entry_id for entry_id in nearest if entry_id not in live]
            found.append(tuple([*live, *missing][: len(nearest)]))
        return found

    def close(self) -> None:
        """Close the database and release the lock."""
        if self._client is not None and self._process == os.getpid():
            self._client.close()
            self._lock.release()
        self._client = self._collection = self._lock = None
        self._exact.close()

    def _open(self) -> Any:
        if self._collection is not None:
            if self._process != os.getpid():
                raise RunError(
                    f"store {self.path}: expected the process that opened it, found a forked "
                    "child; open a store of its own there, or start workers by spawn"
                )
            return self._collection
        chromadb = _library()
        self._lock = _locked(self.path)
        self._process = os.getpid()
        settings = chromadb.config.Settings(anonymized_telemetry=False, allow_reset=True)
        self._client = chromadb.PersistentClient(path=str(self.path), settings=settings)
        if self._fresh:
            self._client.reset()
        self._collection = self._made()
        self._read()
        return self._collection

    def _made(self) -> Any:
        """Return the collection.

        Raises:
            RunError: an existing collection uses another distance metric.
        """
        made = self._client.get_or_create_collection(
            self.name,
            configuration={"hnsw": {"space": _SPACE}},
            metadata=self._about,
            embedding_function=None,
        )
        space = (made.configuration_json.get("hnsw") or {}).get("space")
        if space != _SPACE:
            raise RunError(
                f"store {self.path}: expected a collection that ranks by {_SPACE!r}, found one by "
                f"{space!r}; use another path"
            )
        return made

    def _write(
        self, collection: Any, entries: Sequence[Entry], vectors: Vectors, places: Iterable[int]
    ) -> None:
        collection.upsert(
            ids=[entry.id for entry in entries],
            embeddings=vectors,
            documents=[storable(entry.text) for entry in entries],
            metadatas=[
                {"place": place, "written_at": entry.written_at, "updated_at": entry.updated_at}
                for entry, place in zip(entries, places, strict=True)
            ],
        )

    def _read(self) -> None:
        """Load the stored entries."""
        held = self._collection.get(include=["embeddings", "metadatas", "documents"])
        columns = held["ids"], held["embeddings"], held["metadatas"], held["documents"]
        rows = list(zip(*columns, strict=True))
        if not rows:
            return
        foreign = [row[0] for row in rows if "place" not in (row[2] or {})]
        if foreign:
            raise RunError(
                f"store {self.path}: expected entries of this store, found {len(foreign)} that "
                f"something else wrote, such as {foreign[0]!r}; use another path"
            )
        rows.sort(key=lambda row: int(row[2]["place"]))
        vectors = np.array([row[1] for row in rows], np.float32)
        if vectors.shape[1] != self._width:
            raise RunError(
                f"store {self.path}: expected vectors of width {self._width}, found "
                f"{vectors.shape[1]}; it was written with another embedding"
            )
        entries = [
            Entry(name, text or "", about.get("written_at", ""), about.get("updated_at", ""), 0)
            for name, _, about, text in rows
        ]
        self._exact.put(entries, vectors)
        self._held = {entry.id: entry for entry in entries}
        self._place = int(rows[-1][2]["place"]) + 1

    def _places(self, ids: set[str]) -> dict[str, int]:
        if not ids:
            return {}
        held = self._collection.get(ids=sorted(ids), include=["metadatas"])
        pairs = zip(held["ids"], held["metadatas"], strict=True)
        return {entry_id: int(metadata["place"]) for entry_id, metadata in pairs}


def _library() -> Any:
    try:
        import chromadb
        import chromadb.config
    except ImportError as error:
        raise ConfigError(
            f"store=chroma: expected the extra chroma (pip install -e '.[chroma]'): {error}"
        ) from error
    return chromadb


def _locked(path: Path) -> FileLock:
    """Return the held lock of a path; the operating system releases it when the process ends.

    Raises:
        RunError: another store holds it.
    """
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / "writer.lock", timeout=0, fallback_to_soft=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunError(
            f"store {path}: expected one writer, found another one that has it open; close that "
            "one, or use another path"
        ) from error
    except NotImplementedError:
        warnings.warn(
            f"store {path}: the file system has no locks; open the store in one process only",
            RuntimeWarning,
            stacklevel=2,
        )
    return lock
