"""The persistent store of memory vectors: chromadb behind the `Store` interface.

The one place that imports chromadb. Embeddings are always explicit. With `index="exact"` entries
are ranked over the stored vectors as the numpy store ranks them, so both agree to the last tie;
`index="approximate"` asks chroma's own index, for large banks, and counts how often it agrees.

One writer a path: a lock file refuses a second one, and goes with its process however that ends.
A forked child is refused (chroma's client would hang there). Nothing is opened before the first
call, and a path that is opened again holds what it held.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from amemgym_env.embedding import Vectors
from amemgym_env.errors import ConfigError, RunError
from amemgym_env.replies import clean
from amemgym_env.stores import NumpyStore
from amemgym_env.turn import Entry

Index = Literal["exact", "approximate"]

_BATCH = 5_000
"""Entries a call; chroma takes 5,461 at most."""


class ChromaStore:
    """The entries of one bank in a collection of a chroma database.

    `path` is a folder of its own, `name` a safe collection name (`scenario_files.slug`). With
    `fresh`, what the path holds of an earlier process is forgotten at the first call: a run that
    is resumed writes it again, exactly.
    """

    def __init__(
        self,
        width: int,
        path: str | Path,
        name: str,
        *,
        index: Index = "exact",
        fresh: bool = False,
    ) -> None:
        if index not in ("exact", "approximate"):
            raise ConfigError(f"store.index: expected exact or approximate, found {index!r}")
        self.path = Path(path)
        self.name = name
        self.index = index
        self._width = width
        self._fresh = fresh
        self._exact = NumpyStore(width)
        self._ids: dict[str, None] = {}
        self._place = 0
        self._agreed = self._wanted = 0
        self._process = 0
        self._client: Any = None
        self._collection: Any = None
        self._lock: Any = None

    @property
    def recall(self) -> float | None:
        """Share of the truly nearest entries that searches found; None before any search."""
        return self._agreed / self._wanted if self._wanted else None

    def put(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Add or replace entries; see `Store.put`."""
        collection = self._open()
        if vectors.shape != (len(entries), self._width) or not np.isfinite(vectors).all():
            raise ConfigError(
                f"expected finite vectors of shape {(len(entries), self._width)}, found "
                f"{vectors.shape}"
            )
        for first in range(0, len(entries), _BATCH):
            part = entries[first : first + _BATCH]
            # An entry that is replaced keeps its place in the order of age.
            known = {entry.id for entry in part} & self._ids.keys()
            old = self._places(known)
            places = []
            for entry in part:
                places.append(old.get(entry.id, self._place))
                self._place += entry.id not in old
            collection.upsert(
                ids=[entry.id for entry in part],
                embeddings=vectors[first : first + _BATCH],
                documents=[clean(entry.text) for entry in part],
                metadatas=[
                    {"place": place, "written_at": entry.written_at, "updated_at": entry.updated_at}
                    for entry, place in zip(part, places, strict=True)
                ],
            )
        self._exact.put(entries, vectors)
        self._ids.update(dict.fromkeys(entry.id for entry in entries))

    def remove(self, ids: Sequence[str]) -> None:
        """Forget ids; see `Store.remove`."""
        collection = self._open()
        held = [entry_id for entry_id in ids if entry_id in self._ids]
        for first in range(0, len(held), _BATCH):
            collection.delete(ids=held[first : first + _BATCH])
        self._exact.remove(held)
        for entry_id in held:
            del self._ids[entry_id]

    def clear(self) -> None:
        """Forget everything."""
        self.remove(list(self._ids)) if self._ids else self._open()

    def search(self, queries: Vectors, k: int) -> list[tuple[str, ...]]:
        """Return the ids of the most similar entries; see `Store.search`."""
        collection = self._open()
        exact = self._exact.search(queries, k)
        if self.index == "exact" or not len(queries) or not exact[0]:
            return exact
        answer = collection.query(query_embeddings=queries, n_results=len(exact[0]), include=[])
        found = []
        for ids, nearest in zip(answer["ids"], exact, strict=True):
            live = [entry_id for entry_id in ids if entry_id in self._ids]
            self._agreed += len(set(live) & set(nearest))
            self._wanted += len(nearest)
            # The index may miss entries that exist; there are always as many as asked for.
            missing = [entry_id for entry_id in nearest if entry_id not in live]
            found.append(tuple([*live, *missing][: len(nearest)]))
        return found

    def close(self) -> None:
        """Close the database and give the path free."""
        if self._client is not None and self._process == os.getpid():
            self._client.close()
            self._lock.close()
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
        self._collection = self._client.get_or_create_collection(
            self.name,
            configuration={"hnsw": {"space": "ip"}},
            embedding_function=None,
        )
        self._read()
        return self._collection

    def _read(self) -> None:
        """Take over what the path holds."""
        held = self._collection.get(include=["embeddings", "metadatas"])
        rows = sorted(
            zip(held["ids"], held["embeddings"], held["metadatas"], strict=True),
            key=lambda row: int(row[2]["place"]),
        )
        if not rows:
            return
        vectors = np.array([row[1] for row in rows], np.float32)
        if vectors.shape[1] != self._width:
            raise RunError(
                f"store {self.path}: expected vectors of width {self._width}, found "
                f"{vectors.shape[1]}; it was written with another embedding"
            )
        self._exact.put([Entry(row[0], "", "", "", 0) for row in rows], vectors)
        self._ids = dict.fromkeys(row[0] for row in rows)
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


def _locked(path: Path) -> Any:
    """Return the open lock file of a path; the system frees it when its process ends.

    Raises:
        RunError: another store has it.
    """
    path.mkdir(parents=True, exist_ok=True)
    file = (path / "writer.lock").open("a+")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise RunError(
            f"store {path}: expected one writer, found another one that has it open; close that "
            "one, or use another path"
        ) from error
    return file
