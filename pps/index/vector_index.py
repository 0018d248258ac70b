"""The vector index of one entity. It stores ids, vectors and times, and no text.

A *row* is one vector, with its owner (a node, fact, turn, anchor …) and the number of the part of
the owner's text, from 0. A search returns an owner once, with its best part.

All rows are in ``vectors.db``. A collection is searched by scanning its rows in memory, or in a
Chroma collection if it has too many rows; anchors are always in Chroma. The Chroma collection is
built from the rows in the background, and until it is complete the scan answers. Chroma writes its
files in place, so a kill may corrupt them: a collection that is not known to be intact is rebuilt
from the rows.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pps.config import VectorSettings
from pps.core.errors import ConfigError, InvalidRequest, IsolationError, PPSError, StoreError
from pps.core.footprint import cores
from pps.index.chroma import SLICE, ChromaCollection, Number, VectorHit, chroma_errors, listing
from pps.index.collections import COLLECTIONS, check_collection
from pps.index.flat_index import FlatIndex
from pps.index.vector_rows import RowKey, RowStore, VectorRow, moved, whole
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.token_encoder import PackedStates

__all__ = ["COLLECTIONS", "VectorHit", "VectorIndex", "VectorRow"]

IN_MEMORY = VectorSettings().in_memory
"""Maximum rows of a collection that are scanned in memory: 0.5 GB with 384 dimensions.

For 100,000 rows a scan has a higher recall than Chroma's graph of neighbours, takes half its time,
and needs no index to be written.
"""
_TOKEN_MODEL = "token_model"  # noqa: S105 (a mark's key)
_POSITION = "log_position"
_PAUSE_S = 0.02
"""Pause between two slices of a build, for waiting writes."""
_log = logging.getLogger(__name__)


_ANCHORS = "anchors"
_NEW = "anchors.new"
_EMPTY = "empty anchors"
"""Key of the mark with the listing of the empty collection of anchors, which is not opened yet."""


class VectorIndex:
    """All vectors of one entity. Every method blocks and may be called from several threads.

    Queries run concurrently, also with a write; writes take turns. A write that returned survives a
    kill and is visible to every query that starts afterwards.
    """

    def __init__(
        self, folder: Path, rows: RowStore, marks: Mapping[str, Number], in_memory: int
    ) -> None:
        """Wrap rows that belong to the entity; callers use ``open``."""
        self._folder = folder / "chroma"
        self._rows = rows
        self._marks = marks
        self._dimension = int(marks["pps_dimension"])
        self._in_memory = in_memory
        self._writing = threading.RLock()
        self._flat: dict[str, FlatIndex] = {}
        self._chroma: dict[str, ChromaCollection] = {}
        self._builds: dict[str, threading.Thread] = {}
        self._closed = threading.Event()
        self._token_counts: tuple[int, int] | None = None
        self._token_states: PackedStates | None = None

    @classmethod
    def open(
        cls, folder: Path, *, group: str, fingerprint: Fingerprint, in_memory: int = IN_MEMORY
    ) -> VectorIndex:
        """Open the index in a data folder (``vectors.db``, ``chroma/``), or create an empty one.

        ``in_memory`` is the maximum number of rows of a collection that are scanned in memory;
        reading 100,000 rows takes 0.7 s with two cores.

        Raises:
            IsolationError: The folder holds another entity's vectors.
            ConfigError: The vectors are of another model; the error names ``pps reembed``.
            StoreConflict: The index is already open, in this or another process.
            StoreError: The index cannot be opened; the error names ``pps reindex``.
        """
        marks = _marks(group, fingerprint)
        with contextlib.ExitStack() as failing, chroma_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            moved(folder / "chroma" / "rows.db", folder / "vectors.db", group)
            rows = RowStore(folder / "vectors.db")
            failing.callback(rows.close)
            _claim(folder, rows, marks)
            _remove_strays(folder / "chroma")
            index = cls(folder, rows, marks, in_memory)
            failing.callback(index._close_collections)
            index._load()
            failing.pop_all()
            return index

    def replace(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Replace all rows of the owners of these rows in the collection.

        Raises:
            InvalidRequest: A vector has another dimension, or its length is zero or not finite;
                nothing is written.
        """
        check_collection(collection)
        latest = {(row.owner, row.part): row for row in rows}
        matrix = self._matrix([row.vector for row in latest.values()])
        if not latest:
            return
        with self._writing:
            if self.is_empty(collection):
                self._flat[collection] = FlatIndex(self._dimension)
            vectors = dict(zip(latest, matrix, strict=True))
            changed = self._rows.changed(collection, vectors)
            older = self._rows.keys(collection, {owner for owner, _ in latest})
            surplus = [key for key in older if key not in latest]
            unique_rows = [
                VectorRow(row.owner, row.part, vectors[key]) for key, row in latest.items()
            ]
            self._rows.put(collection, unique_rows, surplus)
            self._follow(collection, changed, np.array([vectors[key] for key in changed]), surplus)

    def delete(self, collection: str, owners: Iterable[str]) -> None:
        """Delete all rows of the owners; absent owners are ignored."""
        with self._writing:
            if not self.is_empty(collection):
                gone = self._rows.keys(collection, owners)
                self._rows.put(collection, (), drop=gone)
                self._follow(collection, [], np.empty((0, self._dimension), dtype=np.float32), gone)

    def query(
        self, collection: str, vector: Vector, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[VectorHit]:
        """Return the ``k`` owners nearest to a vector, best first; fewer only if no more exist.

        Args:
            collection: One of ``COLLECTIONS``.
            vector: Shape (dimension,).
            k: Maximum number of owners, at least 1.
            allowed: Restricts the owners; None allows all, an empty set none.
        """
        probe = self._matrix([vector])[0]
        if k < 1:
            raise InvalidRequest("k", "must be 1 or more")
        if self.is_empty(collection) or (allowed is not None and not allowed):
            return []
        try:
            return self._hits(collection, probe, k, allowed)
        except StoreError:
            # Chroma's query fails if a row that it has met is deleted meanwhile ("Error finding
            # id"): try again without concurrent writes.
            with self._writing:
                self._opened()
                try:
                    return self._hits(collection, probe, k, allowed)
                except StoreError as error:
                    self._scan_again(collection, error)
                    return self._hits(collection, probe, k, allowed)

    def _hits(
        self, collection: str, probe: Vector, k: int, allowed: AbstractSet[str] | None
    ) -> list[VectorHit]:
        self._opened()
        # The memory first: a collection that leaves it meanwhile is already in Chroma.
        flat = self._flat.get(collection)
        searched = flat if flat is not None else self._chroma.get(collection)
        return [] if searched is None else searched.hits(probe, k, allowed)

    def is_empty(self, collection: str) -> bool:
        """Return whether a collection never had a row; does not read the rows."""
        self._opened()
        return check_collection(collection) not in self._flat and collection not in self._chroma

    def is_built(self, collection: str) -> bool:
        """Return whether a collection is searched in Chroma, not scanned in memory."""
        return not self.is_empty(collection) and collection not in self._flat

    def vectors(self, collection: str, owners: Iterable[str]) -> dict[str, Vector]:
        """Return owner → the vector of its part 0, shape (dimension,); others are left out."""
        if self.is_empty(collection):
            return {}
        vectors: dict[str, Vector] = {}
        for keys, matrix in self._rows.pages(collection, owners):
            for (owner, part), row in zip(keys, matrix, strict=True):
                if part == 0:
                    vectors[owner] = row
        return vectors

    def parts(self, collection: str, owners: Iterable[str]) -> dict[str, Matrix]:
        """Return owner → its vectors, shape (parts, dimension); owners without are left out."""
        if self.is_empty(collection):
            return {}
        vectors_by_owner: dict[str, dict[int, Vector]] = {}
        for keys, matrix in self._rows.pages(collection, owners):
            for (owner, part), row in zip(keys, matrix, strict=True):
                vectors_by_owner.setdefault(owner, {})[part] = row
        matrices: dict[str, Matrix] = {}
        for owner, rows in vectors_by_owner.items():
            matrices[owner] = np.stack([rows[part] for part in sorted(rows)])
        return matrices

    def owners(self, collection: str) -> set[str]:
        """Return the owners with a vector in the collection."""
        return set() if self.is_empty(collection) else self._rows.owners(collection)

    def count(self, collection: str) -> int:
        """Return the number of owners with a vector in the collection."""
        return 0 if self.is_empty(collection) else self._rows.count(collection)

    @property
    def token_model(self) -> str:
        """The fingerprint of the model of the stored token states; empty if there are none."""
        return self._rows.marks().get(_TOKEN_MODEL, "")

    def keep_token_model(self, model: str) -> None:
        """Record the model of all stored and due token states."""
        with self._writing:
            self._rows.mark({_TOKEN_MODEL: model})

    def clear_tokens(self) -> None:
        """Delete all token states and the record of their model."""
        with self._writing:
            self._forget_token_states()
            self._rows.clear_tokens()
            self._rows.unmark(_TOKEN_MODEL)

    def purge(self) -> None:
        """Remove deleted rows from the file's log too."""
        with self._writing:
            self._rows.empty_log()

    def note_tokens(self, hashes: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Mark the token states of changed texts as due, and delete those of removed owners.

        ``hashes`` maps owners to the hash of their text.
        """
        with self._writing:
            self._rows.note_tokens(hashes, gone)
            self._forget_token_states()

    def tokens_due(self, limit: int) -> dict[str, str]:
        """Return owner → hash of its text, for up to ``limit`` texts with due token states."""
        return self._rows.tokens_due(limit)

    def put_tokens(self, states: Mapping[str, tuple[str, bytes]]) -> None:
        """Store owner → (hash of its text, token states).

        Owners whose text has changed meanwhile stay due.
        """
        with self._writing:
            self._rows.put_tokens(states)
            self._forget_token_states()

    def tokens(self, owners: Iterable[str] | None) -> dict[str, bytes]:
        """Return owner → token states, int8, of the given owners (None: of all) that have any."""
        return self._rows.all_tokens() if owners is None else self._rows.tokens(owners)

    @property
    def known_token_states(self) -> PackedStates | None:
        """The cached result of ``token_states``, or None if it must be read."""
        return self._token_states

    def token_states(self) -> PackedStates:
        """Return all token states, cached in memory until one changes: for small memories only."""
        states = self._token_states
        if states is None:
            with self._writing:
                states = self._token_states = PackedStates.of(self._rows.all_tokens())
        return states

    def token_owners(self) -> set[str]:
        """Return the owners with stored or due token states."""
        return self._rows.token_owners()

    @property
    def known_token_counts(self) -> tuple[int, int] | None:
        """The cached result of ``token_counts``, or None if it must be read."""
        return self._token_counts

    def token_counts(self) -> tuple[int, int]:
        """Return the number of texts with token states, and the number of due ones."""
        counts = self._token_counts
        if counts is None:
            with self._writing:
                counts = self._token_counts = self._rows.token_counts()
        return counts

    def position(self) -> int | None:
        """Return the saved position in the change log; None if none was saved."""
        saved = self._rows.marks().get(_POSITION)
        return None if saved is None else int(saved)

    def save_position(self, position: int) -> None:
        """Save the position in the change log that the index has reached.

        The position and the rows survive a loss of power.
        """
        with self._writing:
            self._rows.mark({_POSITION: str(position)})
            self._rows.flush()

    def _forget_token_states(self) -> None:
        """Clear the caches of token states and their counts."""
        self._token_counts = None
        self._token_states = None

    def clear(self) -> None:
        """Delete all vectors and token states, and set the saved position to 0."""
        with self._writing:
            self._opened()
            self._rows.mark({_POSITION: "0"})
            self._rows.clear()
            self._forget_token_states()
            self._flat.clear()
            for name in list(self._chroma):
                self._forget_chroma(name)

    def keep_namespace(self) -> None:
        """Start to create the empty collection of anchors if there is none; returns at once.

        So each entity has its namespace in Chroma before its first anchor. A thread creates it,
        because importing Chroma takes over a second.
        """
        with self._writing:
            exists = (self._folder / _ANCHORS).exists() or not self.is_empty(_ANCHORS)
            if exists or self._closed.is_set() or _NEW in self._builds:
                return
            make = threading.Thread(target=self._make_empty, name="pps-build-empty", daemon=True)
            self._builds[_NEW] = make
        make.start()

    def _make_empty(self) -> None:
        draft = self._folder / _NEW
        folder = self._folder / _ANCHORS
        try:
            ChromaCollection.erase(draft)
            ChromaCollection(draft, _ANCHORS, self._rows, self._marks, make=True).close()
            with self._writing:
                if self._closed.is_set() or not self.is_empty(_ANCHORS) or folder.exists():
                    ChromaCollection.erase(draft)
                    return
                draft.rename(folder)
                self._rows.mark({_EMPTY: listing(folder)})
        except (PPSError, OSError) as error:
            _log.warning("the empty collection of anchors is not made: %s", error)

    def close(self) -> None:
        """Close the Chroma collections and the rows; can be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        for build in list(self._builds.values()):
            build.join()
        with self._writing, contextlib.closing(self._rows):
            built = self._chroma.keys() - self._flat.keys()
            self._flat.clear()
            self._close_collections()
            self._rows.mark({whole(name): listing(self._folder / name) for name in built})

    def _load(self) -> None:
        """Open intact collections in Chroma, load the others, and start to build large ones."""
        marks = self._rows.marks()
        for name, size in self._rows.sizes().items():
            folder = self._folder / name
            # Half of the limit is enough to stay in Chroma: otherwise a collection whose size
            # varies around the limit would be rebuilt each time.
            if self._belongs_in_chroma(name, 2 * size) and listing(folder) == marks.get(
                whole(name)
            ):
                try:
                    self._chroma[name] = self._collection(name, make=False)
                    continue
                except StoreError as error:
                    _log.warning("making %s in Chroma again from its rows: %s", name, error.message)
            elif whole(name) in marks:
                _log.warning(
                    "making %s in Chroma again from its rows: its files are not as they were left",
                    name,
                )
            self._rows.unmark(whole(name))
            self._flat[name] = FlatIndex(self._dimension, size)
        for name in set(COLLECTIONS) - self._chroma.keys():
            is_prepared = name not in self._flat and marks.get(_EMPTY) == listing(
                self._folder / name
            )
            if name != _ANCHORS or not is_prepared:
                ChromaCollection.erase(self._folder / name)
        self._read_into(self._flat)
        for name in list(self._flat):
            self._build_if_many(name)

    def _read_into(self, flats: Mapping[str, FlatIndex]) -> None:
        after, pages = self._rows.scan(flats, 0)
        while pages:
            for page in pages:
                flats[page.collection].load(page.keys, page.matrix)
            after, pages = self._rows.scan(flats, after)
        with ThreadPoolExecutor(cores()) as workers:
            for flat in flats.values():
                flat.code(workers)

    def _follow(
        self, collection: str, keys: list[RowKey], matrix: Matrix, gone: list[RowKey]
    ) -> None:
        """Apply a change of the rows to the scan and to Chroma."""
        flat = self._flat.get(collection)
        if flat is not None:
            if keys:
                flat.put(keys, matrix)
            flat.drop(gone)
        if collection in self._chroma and (keys or gone):
            try:
                self._chroma[collection].put(keys, matrix, gone)
            except StoreError as error:
                self._scan_again(collection, error)
        elif flat is not None:
            self._build_if_many(collection)

    def _belongs_in_chroma(self, collection: str, size: int) -> bool:
        return size > (0 if collection == "anchors" else self._in_memory)

    def _build_if_many(self, collection: str) -> None:
        """Start to build a collection in Chroma if it is too large for memory, and not started."""
        if collection in self._builds or not self._belongs_in_chroma(
            collection, len(self._flat[collection])
        ):
            return
        build = threading.Thread(
            target=self._build, args=(collection,), name=f"pps-build-{collection}", daemon=True
        )
        self._builds[collection] = build
        build.start()

    def _build(self, collection: str) -> None:
        """Copy all rows into Chroma in slices, concurrently with reads and writes; then use it."""
        try:
            ChromaCollection.erase(self._folder / collection)  # an empty or damaged one
            # Without the lock: importing Chroma takes a second or more.
            target = self._collection(collection, make=True)
            with self._writing:
                if self._closed.is_set() or collection not in self._flat:
                    target.close()
                    return
                self._chroma[collection] = target
            after = 0
            while not self._closed.wait(_PAUSE_S):
                with self._writing:
                    if self._chroma.get(collection) is not target:
                        return  # cleared or failed meanwhile
                    after, pages = self._rows.scan([collection], after, SLICE)
                    for page in pages:
                        target.put(page.keys, page.matrix)
                    if not pages:
                        del self._flat[collection]
                        return
        except PPSError as error:
            _log.warning("%s stays in memory: %s", collection, error.message)
            with self._writing:
                self._forget_chroma(collection)
                # No second try before the index is opened again.
                self._builds[collection] = threading.current_thread()

    def _scan_again(self, collection: str, error: StoreError) -> None:
        """Discard a failed Chroma collection: load its rows into memory and build it again."""
        _log.warning("making %s in Chroma again from its rows: %s", collection, error.message)
        if collection not in self._flat:
            flat = FlatIndex(self._dimension, self._rows.sizes().get(collection, 0))
            self._read_into({collection: flat})
            self._flat[collection] = flat
        self._forget_chroma(collection)
        self._build_if_many(collection)

    def _forget_chroma(self, collection: str) -> None:
        self._builds.pop(collection, None)
        forgotten = self._chroma.pop(collection, None)
        try:
            self._rows.unmark(whole(collection))
        finally:
            if forgotten is not None:
                with contextlib.suppress(StoreError):  # its files are erased anyway
                    forgotten.close()
            ChromaCollection.erase(self._folder / collection)

    def _collection(self, name: str, *, make: bool) -> ChromaCollection:
        return ChromaCollection(self._folder / name, name, self._rows, self._marks, make=make)

    def _close_collections(self) -> None:
        with contextlib.ExitStack() as closing:
            while self._chroma:
                closing.callback(self._chroma.popitem()[1].close)

    def _opened(self) -> None:
        if self._closed.is_set():
            raise StoreError(f"the vector index in {self._folder.parent} is closed")

    def _matrix(self, vectors: Sequence[Vector]) -> Matrix:
        if any(np.shape(vector) != (self._dimension,) for vector in vectors):
            raise InvalidRequest("vector", f"must have {self._dimension} numbers")
        matrix = np.asarray(vectors, dtype=np.float32).reshape(len(vectors), self._dimension)
        squares = np.einsum("ij,ij->i", matrix, matrix)
        if not ((squares >= np.finfo(np.float32).tiny) & np.isfinite(squares)).all():
            raise InvalidRequest("vector", "must be finite and not zero, its length in float32 too")
        return matrix


def _claim(folder: Path, rows: RowStore, marks: Mapping[str, Number]) -> None:
    """Check the owner of the rows, then their model: another entity must not learn the model."""
    stored = rows.marks()
    expected = {key: str(value) for key, value in marks.items()}
    if not stored:
        rows.mark(expected)
    elif stored.get("pps_group") != expected["pps_group"]:
        raise IsolationError(f"{folder} holds the vectors of another entity")
    elif any(stored.get(key) != value for key, value in expected.items()):
        raise ConfigError(
            f"{folder} holds vectors of {_describe_model(stored)} "
            f"and the embedder makes {_describe_model(expected)}; "
            "run `pps reembed`, or set the embedder back"
        )


def _marks(group: str, fingerprint: Fingerprint) -> dict[str, Number]:
    return {
        "pps_group": group,
        "pps_model": fingerprint.model,
        "pps_dimension": fingerprint.dimension,
        "pps_pooling": fingerprint.pooling,
        "pps_normalised": fingerprint.normalised,
    }


def _describe_model(marks: Mapping[str, str]) -> str:
    return ", ".join(marks.get(f"pps_{name}", "?") for name in ("model", "dimension", "pooling"))


def _remove_strays(folder: Path) -> None:
    """Delete files that belong to no collection, such as the shared folder used until 2026-11."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and path.name not in COLLECTIONS:
            shutil.rmtree(path)
        elif not path.is_dir():
            path.unlink()
