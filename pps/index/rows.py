"""The vectors of one collection: what Chroma holds and which parts each owner has there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from pps.index.chroma import ChromaCollection, chroma_errors
from pps.models.protocols import Matrix, Vector

RowKey: TypeAlias = tuple[str, int]
"""An owner and a part."""

_ONE_PART = (0,)
_BATCH = 1000


@dataclass(frozen=True, slots=True, eq=False)
class VectorRow:
    """One vector of an owner. ``at`` is a time in microseconds since 1970 UTC, kept beside it as a number."""

    owner: str
    part: int
    vector: Vector
    at: int | None = None


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An owner and its best part; ``similarity`` is raw cosine in [-1, 1]."""

    owner: str
    part: int
    similarity: float


class CollectionRows:
    """One Chroma collection. Reads run beside each other and beside a write; writes take turns.

    The owners' parts are read from Chroma once (about 4 µs a row) when first needed, then kept up to
    date here: the folder has one opener, so nobody else changes them.
    """

    def __init__(self, folder: Path, chroma: ChromaCollection) -> None:
        self._folder = folder
        self._chroma = chroma
        self._parts: dict[str, tuple[int, ...]] | None = None
        self._writing = threading.RLock()

    def upsert(self, rows: Mapping[RowKey, VectorRow], matrix: Matrix) -> None:
        """Add rows, or replace those of the same key; ``matrix`` has their vectors in the same order."""
        ids = [_id(key) for key in rows]
        numbers = [None if row.at is None else {"at": row.at} for row in rows.values()]
        with self._writing:
            parts = self._known()
            with chroma_errors(self._folder):
                for at in range(0, len(ids), _BATCH):
                    to = at + _BATCH
                    self._chroma.upsert(ids[at:to], matrix[at:to], numbers[at:to])
            for owner, part in rows:
                held = parts.get(owner, ())
                if part not in held:
                    parts[owner] = _ONE_PART if (held, part) == ((), 0) else tuple(sorted({*held, part}))

    def replace(self, rows: Mapping[RowKey, VectorRow], matrix: Matrix) -> None:
        """Make these rows all that their owners have; new parts are written before old ones go."""
        with self._writing:
            self.upsert(rows, matrix)
            parts = self._known()
            owners = {owner for owner, _ in rows}
            self._drop([(owner, part) for owner in owners for part in parts[owner] if (owner, part) not in rows])
            for owner in owners:
                parts[owner] = tuple(part for part in parts[owner] if (owner, part) in rows)

    def delete(self, owners: Iterable[str]) -> None:
        """Drop every part of the owners; an absent owner is no error."""
        with self._writing:
            parts = self._known()
            gone = [owner for owner in dict.fromkeys(owners) if owner in parts]
            self._drop([(owner, part) for owner in gone for part in parts[owner]])
            for owner in gone:
                del parts[owner]

    def owners(self) -> set[str]:
        """Return every owner that has a row."""
        with self._writing:
            return set(self._known())

    def count(self) -> int:
        """Return how many owners have a row."""
        with self._writing:
            return len(self._known())

    def size(self) -> int:
        """Return how many rows there are."""
        with chroma_errors(self._folder):
            return self._chroma.count()

    def keys(self, owners: Iterable[str] | None = None) -> list[RowKey]:
        """Return the keys of the owners' rows; of all rows when no owners are given."""
        with self._writing:
            parts = self._known()
            wanted = parts if owners is None else [owner for owner in owners if owner in parts]
            return [(owner, part) for owner in wanted for part in parts[owner]]

    def nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> list[tuple[RowKey, float]]:
        """Return about the ``n`` rows most like a probe with their cosine, by Chroma's approximate search.

        A few rows of a graph of neighbours cannot be reached from everywhere, so it can be fewer than exist.
        """
        with chroma_errors(self._folder):
            found = self._chroma.query(
                query_embeddings=[probe],
                ids=None if among is None else [_id(key) for key in among],
                n_results=n,
                include=["distances"],
            )
        return [
            (_key(row), 1.0 - distance) for row, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        ]

    def scored(self, probe: Vector, keys: Sequence[RowKey]) -> list[tuple[RowKey, float]]:
        """Return the rows of the keys with their exact cosine to a probe, in no order."""
        unit = probe / np.linalg.norm(probe)
        scored: list[tuple[RowKey, float]] = []
        for batch, matrix in self._read(keys):
            norms = np.linalg.norm(matrix, axis=1)
            scored += zip(batch, ((matrix @ unit) / norms).tolist(), strict=True)
        return scored

    def vectors(self, owners: Iterable[str]) -> dict[str, Vector]:
        """Return the vector of part 0 of each owner that has one."""
        keys = [(owner, 0) for owner in dict.fromkeys(owners)]
        return {owner: row for batch, matrix in self._read(keys) for (owner, _), row in zip(batch, matrix, strict=True)}

    def _known(self) -> dict[str, tuple[int, ...]]:
        if self._parts is None:
            with chroma_errors(self._folder):
                ids = self._chroma.get(include=[])["ids"]
            known: dict[str, tuple[int, ...]] = {}
            for owner, part in map(_key, ids):
                known[owner] = _ONE_PART if part == 0 and owner not in known else (*known.get(owner, ()), part)
            self._parts = known
        return self._parts

    def _drop(self, keys: Sequence[RowKey]) -> None:
        with chroma_errors(self._folder):
            for at in range(0, len(keys), _BATCH):
                self._chroma.delete([_id(key) for key in keys[at : at + _BATCH]])

    def _read(self, keys: Sequence[RowKey]) -> Iterator[tuple[list[RowKey], Matrix]]:
        for at in range(0, len(keys), _BATCH):
            with chroma_errors(self._folder):
                rows = self._chroma.get([_id(key) for key in keys[at : at + _BATCH]], include=["embeddings"])
            if rows["ids"]:
                yield [_key(row) for row in rows["ids"]], np.asarray(rows["embeddings"], dtype=np.float32)


def _id(key: RowKey) -> str:
    """Return the id in Chroma; the part comes first, so that an owner may contain anything."""
    return f"{key[1]}:{key[0]}"


def _key(row: str) -> RowKey:
    part, _, owner = row.partition(":")
    return owner, int(part)
