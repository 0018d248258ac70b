"""The vector index of one entity: ids, vectors and numbers in Chroma, and never a text.

A *row* is one vector: an owner (a node, fact, turn, anchor …) and the part of its text, from 0. An
owner is found once, by its best part.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np

from pps.core.errors import ConfigError, InvalidRequest, IsolationError, StoreError
from pps.index.chroma import HNSW, ChromaClient, Number, chroma_errors, open_client
from pps.index.collections import COLLECTIONS, check_collection
from pps.index.holding import Holding
from pps.index.nearest import Nearest
from pps.index.rows import CollectionRows, RowKey, VectorHit, VectorRow
from pps.models.protocols import Fingerprint, Matrix, Vector

__all__ = ["COLLECTIONS", "VectorHit", "VectorIndex", "VectorRow"]


class VectorIndex:
    """All vectors of one entity. Every method blocks; all may be called from several threads at once.

    Queries run beside each other and beside a write; writes of a collection take turns. A write is in
    Chroma's log on disk when its call returns, and seen by every query that starts after that.
    """

    def __init__(self, folder: Path, holding: Holding, client: ChromaClient, marks: Mapping[str, Number]) -> None:
        self._folder = folder
        self._holding = holding
        self._client: ChromaClient | None = client
        self._marks = marks
        self._dimension = int(marks["pps_dimension"])
        self._changing = threading.RLock()
        self._collections: dict[str, CollectionRows] = {}

    @classmethod
    def open(cls, path: Path, *, group: str, fingerprint: Fingerprint) -> VectorIndex:
        """Open the index in a folder of its own, or start an empty one there.

        Raises:
            IsolationError: The folder holds another entity's vectors.
            ConfigError: Its vectors are another model's; the message names ``pps reembed``.
            StoreConflict: The folder is open already, here or in another process.
            StoreError: Chroma cannot open it; the message names ``pps reindex``.
        """
        holding = Holding.take(path)
        try:
            client = open_client(path)
        except BaseException:
            holding.release()
            raise
        index = cls(path, holding, client, _marks(group, fingerprint))
        try:
            index._adopt()
        except BaseException:
            index.close()
            raise
        return index

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Add rows, or replace those of the same owner and part; an owner's other parts stay.

        Raises:
            InvalidRequest: A vector has another length, or is not finite, or is zero; nothing is written.
        """
        check_collection(collection)
        if rows:
            latest, matrix = self._checked(rows)
            self._made(collection).upsert(latest, matrix)

    def replace(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Make these rows all that their owners have in the collection; errors as for ``upsert``."""
        check_collection(collection)
        if rows:
            latest, matrix = self._checked(rows)
            self._made(collection).replace(latest, matrix)

    def delete(self, collection: str, owners: Iterable[str]) -> None:
        """Drop every part of the owners; an absent owner is no error."""
        found = self._found(collection)
        if found is not None:
            found.delete(owners)

    def query(
        self, collection: str, vector: Vector, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[VectorHit]:
        """Return the ``k`` owners most like a vector, best first; fewer only when no more exist.

        Args:
            collection: One of ``COLLECTIONS``.
            vector: Shape (dimension,).
            k: Most owners, 1 or more.
            allowed: Only these owners; None allows all, an empty set none.
        """
        probe = self._matrix([vector])[0]
        if k < 1:
            raise InvalidRequest("k", "must be 1 or more")
        found = self._found(collection)
        if found is None or (allowed is not None and not allowed):
            return []
        return Nearest(found, probe, k, allowed).hits()

    def vectors(self, collection: str, owners: Iterable[str]) -> dict[str, Vector]:
        """Return the vector of part 0 of each owner that has one; shape (dimension,)."""
        found = self._found(collection)
        return {} if found is None else found.vectors(owners)

    def owners(self, collection: str) -> set[str]:
        """Return every owner that has a vector in the collection."""
        found = self._found(collection)
        return set() if found is None else found.owners()

    def count(self, collection: str) -> int:
        """Return how many owners have a vector in the collection."""
        found = self._found(collection)
        return 0 if found is None else found.count()

    def clear(self) -> None:
        """Drop every vector of every collection; a query that runs at that moment may fail."""
        with self._changing, chroma_errors(self._folder):
            client = self._opened()
            for name in list(self._collections):
                client.delete_collection(name)
                del self._collections[name]

    def close(self) -> None:
        """Give back Chroma's threads and files and let the folder go; a second call does nothing."""
        with self._changing:
            client, self._client = self._client, None
            self._collections.clear()
            if client is not None:
                try:
                    with chroma_errors(self._folder):
                        client.close()
                finally:
                    self._holding.release()

    def _opened(self) -> ChromaClient:
        if self._client is None:
            raise StoreError(f"the vector index in {self._folder} is closed")
        return self._client

    def _adopt(self) -> None:
        """Check the marks of what the folder holds: the owner first, so that a stranger learns no more."""
        with chroma_errors(self._folder):
            present = [(found, found.metadata or {}) for found in self._opened().list_collections()]
        if any(held.get("pps_group") != self._marks["pps_group"] for _, held in present):
            raise IsolationError(f"{self._folder} holds the vectors of another entity")
        for found, held in present:
            if any(held.get(key) != value for key, value in self._marks.items()):
                raise ConfigError(
                    f"{self._folder} holds vectors of {_said(held)} and the embedder makes {_said(self._marks)}; "
                    "run `pps reembed`, or set the embedder back"
                )
            self._collections[found.name] = CollectionRows(self._folder, found)

    def _found(self, collection: str) -> CollectionRows | None:
        self._opened()
        return self._collections.get(check_collection(collection))

    def _made(self, collection: str) -> CollectionRows:
        with self._changing:
            found = self._found(collection)
            if found is None:
                with chroma_errors(self._folder):
                    made = self._opened().create_collection(
                        collection, configuration={"hnsw": HNSW}, metadata=self._marks, embedding_function=None
                    )
                found = self._collections[collection] = CollectionRows(self._folder, made)
            return found

    def _checked(self, rows: Sequence[VectorRow]) -> tuple[dict[RowKey, VectorRow], Matrix]:
        latest = {(row.owner, row.part): row for row in rows}
        return latest, self._matrix([row.vector for row in latest.values()])

    def _matrix(self, vectors: Sequence[Vector]) -> Matrix:
        if any(np.shape(vector) != (self._dimension,) for vector in vectors):
            raise InvalidRequest("vector", f"must have {self._dimension} numbers")
        matrix = np.asarray(vectors, dtype=np.float32)
        if not np.isfinite(matrix).all() or not np.einsum("ij,ij->i", matrix, matrix).all():
            raise InvalidRequest("vector", "must be finite and not zero")
        return matrix


def _marks(group: str, fingerprint: Fingerprint) -> dict[str, Number]:
    return {
        "pps_group": group,
        "pps_model": fingerprint.model,
        "pps_dimension": fingerprint.dimension,
        "pps_pooling": fingerprint.pooling,
        "pps_normalised": fingerprint.normalised,
    }


def _said(marks: Mapping[str, Number]) -> str:
    return ", ".join(str(marks.get(f"pps_{name}", "?")) for name in ("model", "dimension", "pooling"))
