"""The vector index of one entity: ids, vectors and times, and never a text.

A *row* is one vector: an owner (a node, fact, turn, anchor …) and the part of its text, from 0. An
owner is found once, by its best part.

A new row is on disk (``rows``) and found at once: up to 262,144 rows of an entity are kept in memory and scanned
(``scanned``). Of more, the oldest go into Chroma's graphs of neighbours.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np

from pps.config import VectorSettings
from pps.core.errors import ConfigError, InvalidRequest, IsolationError, StoreError
from pps.core.file_lock import FileLock
from pps.core.footprint import cores
from pps.index.blanking import Blanking
from pps.index.chroma import ChromaClient, Number, chroma_errors
from pps.index.collections import COLLECTIONS, check_collection
from pps.index.flat_index import Covered, ScannedRows
from pps.index.mending import attach, listing
from pps.index.nearest import Nearest, VectorHit
from pps.index.neighbours import SLICE, Neighbours
from pps.index.rows import RowKey, RowStore, State, VectorRow
from pps.models.protocols import Fingerprint, Matrix, Vector

__all__ = ["COLLECTIONS", "VectorHit", "VectorIndex", "VectorRow"]

IN_MEMORY = VectorSettings().in_memory
"""Rows of all collections that are kept in memory, at most: 0.5 GB of 384 dimensions. Among 100,000 a scan finds more
of the nearest than a graph of neighbours, takes half its time, and costs nothing to write."""
_LAYOUT = "2"
"""Graphs of another layout are made again: the first kept all rows there and noted those that were not."""
_SLICE = 64
"""Rows that go into the graph at once when there are too many: Chroma keeps the interpreter for 0.03 s."""
_MOST_OVER = 64
"""Rows of one collection whose older vectors are in the graph: a query reads that many more and passes over them."""


class VectorIndex:
    """All vectors of one entity. Every method blocks; all may be called from several threads at once.

    Queries run beside each other and beside a write; writes take turns. A write survives a kill when its
    call returns, and is seen by every query that starts after that.
    """

    def __init__(
        self,
        folder: Path,
        rows: RowStore,
        client: ChromaClient,
        graphs: dict[str, Covered],
        marks: Mapping[str, Number],
        in_memory: int,
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._client: ChromaClient | None = client
        self._graphs = graphs
        self._marks = marks
        self._dimension = int(marks["pps_dimension"])
        self._in_memory = in_memory
        self._blanking = Blanking(folder)
        self._writing = threading.RLock()
        self._closing = contextlib.ExitStack()
        self._torn = False

    @classmethod
    def open(cls, path: Path, *, group: str, fingerprint: Fingerprint, in_memory: int = IN_MEMORY) -> VectorIndex:
        """Open the index in a folder of its own, or start an empty one there; mend what a crash tore.

        ``in_memory`` bounds the rows that are scanned; reading 100,000 of them takes 0.7 s with two cores.

        Raises:
            IsolationError: The folder holds another entity's vectors.
            ConfigError: Its vectors are another model's; the message names ``pps reembed``.
            StoreConflict: The folder is open already, here or in another process.
            StoreError: It cannot be opened; the message names ``pps reindex``.
        """
        marks = _marks(group, fingerprint)
        path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(FileLock(path / "held.lock"))  # Chroma shares one system a path inside a process
            rows = RowStore(path / "rows.db")
            stack.callback(rows.close)
            state = _claim(path, rows, marks)
            client, graphs = attach(path, rows, state, marks)
            failing = stack.enter_context(contextlib.ExitStack())
            failing.callback(client.close)
            rows.mark({"state": "open", "layout": _LAYOUT})
            sizes = rows.sizes()
            covered = {
                name: Covered(graph, ScannedRows(fingerprint.dimension, min(sizes.get(name, 0), in_memory)))
                for name, graph in graphs.items()
            }
            index = cls(path, rows, client, covered, marks, in_memory)
            index._blank()  # a crash may have left what was saved just before
            index._load()
            failing.pop_all()
            index._closing = stack.pop_all()
            return index

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Add rows, or replace those of the same owner and part; an owner's other parts stay.

        Raises:
            InvalidRequest: A vector has another dimension, or its length is not finite, or is zero; nothing is written.
        """
        self._write(check_collection(collection), rows, whole=False)

    def replace(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Make these rows all that their owners have in the collection; errors as for ``upsert``."""
        self._write(check_collection(collection), rows, whole=True)

    def delete(self, collection: str, owners: Iterable[str]) -> None:
        """Drop every part of the owners; an absent owner is no error."""
        with self._writing, self._both():
            found = self._found(collection)
            if found is not None:
                gone = self._rows.keys(collection, owners)
                self._take_out(found, gone)
                self._rows.put(collection, (), drop=gone)
                found.scanned.drop(gone)

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
        try:
            return self._nearest(collection, probe, k, allowed)
        except StoreError:  # Chroma fails on a query when a row goes that it has just met: "Error finding id"
            with self._writing:
                return self._nearest(collection, probe, k, allowed)

    def _nearest(self, collection: str, probe: Vector, k: int, allowed: AbstractSet[str] | None) -> list[VectorHit]:
        graph = self._found(collection)
        if graph is None or (allowed is not None and not allowed):
            return []
        return Nearest(graph, self._rows, collection, probe, k, allowed).hits()

    @property
    def in_memory(self) -> int:
        """Rows whose vector is scanned in memory and in no graph of neighbours."""
        return sum(len(found.scanned) for found in list(self._graphs.values()))

    def merge(self) -> bool:
        """Put a slice of the rows in memory into the graph, though there is room; tell whether there are more.

        What is found stays the same, but for what an approximate graph misses.
        """
        with self._writing:
            self._opened()
            if self.in_memory:
                with self._both():
                    self._merge_slice(SLICE)
            return self.in_memory > 0

    def is_empty(self, collection: str) -> bool:
        """Tell at once whether nothing was ever put into a collection, so nothing can be found."""
        return self._found(collection) is None

    def vectors(self, collection: str, owners: Iterable[str]) -> dict[str, Vector]:
        """Return the vector of part 0 of each owner that has one; shape (dimension,)."""
        if self._found(collection) is None:
            return {}
        pages = self._rows.vectors(collection, ((owner, 0) for owner in owners))
        return {owner: row for keys, matrix in pages for (owner, _), row in zip(keys, matrix, strict=True)}

    def owners(self, collection: str) -> set[str]:
        """Return every owner that has a vector in the collection."""
        return set() if self._found(collection) is None else self._rows.owners(collection)

    def count(self, collection: str) -> int:
        """Return how many owners have a vector in the collection."""
        return 0 if self._found(collection) is None else self._rows.count(collection)

    def clear(self) -> None:
        """Drop every vector of every collection."""
        with self._writing, self._both(), chroma_errors(self._folder):
            client = self._opened()
            self._rows.clear()  # first: a row that stays is still found
            for name in list(self._graphs):
                client.delete_collection(name)
                del self._graphs[name]

    def close(self) -> None:
        """Give back Chroma's threads and files and let the folder go; a second call does nothing."""
        with self._writing:
            client, self._client = self._client, None
            self._graphs.clear()
            if client is not None:
                with self._closing:
                    with chroma_errors(self._folder):
                        client.close()
                        Blanking(self._folder).blank()  # every graph: of two saves in one tick of the clock it saw one
                    if not self._torn:
                        self._rows.mark({"state": "clean", "files": listing(self._folder)})

    def _write(self, collection: str, rows: Sequence[VectorRow], *, whole: bool) -> None:
        """Drop from the graph first and write the rows last: what is not a row any more is in no graph."""
        latest = {(row.owner, row.part): row for row in rows}
        matrix = self._matrix([row.vector for row in latest.values()])
        if not latest:
            return
        keys = list(latest)
        with self._writing, self._both():
            found = self._made(collection)
            held = self._rows.compare(collection, keys, matrix)
            changed = [at for at, key in enumerate(keys) if not held.get(key)]
            over = [keys[at] for at in changed if keys[at] in held and found.inside(keys[at])]
            older = self._rows.keys(collection, {owner for owner, _ in keys}) if whole else []
            surplus = [key for key in older if key not in latest]
            self._take_out(found, surplus)
            # First: a query looks for every row that there is in the graph or in memory.
            before = found.scanned.before([keys[at] for at in changed])
            found.scanned.put(before.keys, matrix[changed], over)
            try:
                self._rows.put(collection, latest.values(), surplus, over)
            except BaseException:
                found.scanned.undo(before)
                raise
            found.scanned.drop(surplus)
            self._make_room()

    def _load(self) -> None:
        """Read what belongs into memory, and no more of it at once than may stay there."""
        for name, keys, matrix, over in self._rows.fresh():
            self._graphs[name].scanned.load(keys, matrix, over)
            self._make_room()
        with ThreadPoolExecutor(cores()) as workers:
            for found in self._graphs.values():
                found.scanned.code(workers)

    def _make_room(self) -> None:
        """Put what is too much for memory into the graphs."""
        while self.in_memory > self._in_memory or any(
            len(found.scanned.over) > _MOST_OVER for found in self._graphs.values()
        ):
            self._merge_slice(max(_SLICE, min(SLICE, self.in_memory - self._in_memory)))

    def _take_out(self, found: Covered, keys: Sequence[RowKey]) -> None:
        """Drop rows of the graph; those that are in memory only are not there."""
        inside = [key for key in keys if found.inside(key)]
        if inside:
            found.graph.delete(inside)
            self._blank()

    def _merge_slice(self, n: int) -> None:
        """Put up to ``n`` rows into the graph of the collection with most in memory, or too many over an older one."""
        collection, found = max(
            self._graphs.items(), key=lambda one: (len(one[1].scanned.over) > _MOST_OVER, len(one[1].scanned))
        )
        slice_ = found.scanned.oldest(n)
        try:
            for keys, matrix in self._rows.vectors(collection, slice_):
                found.graph.upsert(keys, matrix)
            self._blank()
            self._rows.merge(collection, slice_)
        except BaseException:
            found.scanned.cover(slice_)
            raise
        found.scanned.drop(slice_)

    @contextlib.contextmanager
    def _both(self) -> Generator[None]:
        """Change rows and graph; after an error they may differ, so the next opening compares, as after a crash."""
        try:
            yield
        except BaseException:
            self._torn = True
            raise

    def _blank(self) -> None:
        with chroma_errors(self._folder):
            self._blanking.blank()

    def _opened(self) -> ChromaClient:
        if self._client is None:
            raise StoreError(f"the vector index in {self._folder} is closed")
        return self._client

    def _found(self, collection: str) -> Covered | None:
        self._opened()
        return self._graphs.get(check_collection(collection))

    def _made(self, collection: str) -> Covered:
        found = self._found(collection)
        if found is None:
            graph = Neighbours.make(self._folder, self._opened(), collection, self._marks)
            found = self._graphs[collection] = Covered(graph, ScannedRows(self._dimension))
        return found

    def _matrix(self, vectors: Sequence[Vector]) -> Matrix:
        if any(np.shape(vector) != (self._dimension,) for vector in vectors):
            raise InvalidRequest("vector", f"must have {self._dimension} numbers")
        matrix = np.asarray(vectors, dtype=np.float32).reshape(len(vectors), self._dimension)
        squares = np.einsum("ij,ij->i", matrix, matrix)
        if not ((squares >= np.finfo(np.float32).tiny) & np.isfinite(squares)).all():
            raise InvalidRequest("vector", "must be finite and not zero, its length in float32 too")
        return matrix


def _claim(folder: Path, rows: RowStore, marks: Mapping[str, Number]) -> State:
    """Check whose the rows are, the owner first, so that a stranger learns no more; return their state."""
    held, wanted = rows.marks(), {key: str(value) for key, value in marks.items()}
    if not held:
        rows.mark({**wanted, "layout": _LAYOUT, "state": "clean"})
        return "clean"
    if held.get("pps_group") != wanted["pps_group"]:
        raise IsolationError(f"{folder} holds the vectors of another entity")
    if any(held.get(key) != value for key, value in wanted.items()):
        raise ConfigError(
            f"{folder} holds vectors of {_said(held)} and the embedder makes {_said(wanted)}; "
            "run `pps reembed`, or set the embedder back"
        )
    return cast(State, held.get("state", "open")) if held.get("layout") == _LAYOUT else "probing"


def _marks(group: str, fingerprint: Fingerprint) -> dict[str, Number]:
    return {
        "pps_group": group,
        "pps_model": fingerprint.model,
        "pps_dimension": fingerprint.dimension,
        "pps_pooling": fingerprint.pooling,
        "pps_normalised": fingerprint.normalised,
    }


def _said(marks: Mapping[str, str]) -> str:
    return ", ".join(marks.get(f"pps_{name}", "?") for name in ("model", "dimension", "pooling"))
