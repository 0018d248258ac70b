"""One collection's graph of neighbours in Chroma: approximate, quick, and made again when it is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pps.index.chroma import HNSW, ChromaClient, ChromaCollection, Number, chroma_errors
from pps.index.rows import RowKey, RowStore
from pps.models.protocols import Matrix, Vector

_BATCH = 1000
SLICE = 256
"""Rows of one upsert. Chroma keeps the interpreter until they are on disk, and nothing is answered then: 0.33 s for
1,000 rows, 0.13 for these, which take a quarter more time a row; half as many take half as much again, for 0.1 s."""
_PROBES = 32
_ALIKE = 0.999


class Neighbours:
    """One Chroma collection; ids and vectors only. Calls may run beside each other.

    Args:
        filled: Whether anything was put into it. Chroma fails on a query beside the very first rows (it looks for
            files that are not there yet), so until those are in nothing is asked of it.
    """

    def __init__(self, folder: Path, chroma: ChromaCollection, *, filled: bool) -> None:
        self._folder = folder
        self._chroma = chroma
        self._filled = filled

    @classmethod
    def make(cls, folder: Path, client: ChromaClient, name: str, marks: Mapping[str, Number]) -> Neighbours:
        """Make an empty collection that carries the marks of its owner and model."""
        with chroma_errors(folder):
            return cls(
                folder,
                client.create_collection(name, configuration={"hnsw": HNSW}, metadata=marks, embedding_function=None),
                filled=False,
            )

    @property
    def is_filled(self) -> bool:
        """Whether anything was ever put into it."""
        return self._filled

    def upsert(self, keys: Sequence[RowKey], matrix: Matrix) -> None:
        """Add rows or replace their vectors."""
        with chroma_errors(self._folder):
            for at in range(0, len(keys), SLICE):
                part = slice(at, at + SLICE)
                self._chroma.upsert([_id(key) for key in keys[part]], matrix[part])
                self._filled = True

    def delete(self, keys: Sequence[RowKey]) -> None:
        """Drop rows."""
        with chroma_errors(self._folder):
            for at in range(0, len(keys), _BATCH):
                self._chroma.delete([_id(key) for key in keys[at : at + _BATCH]])

    def agrees(self, rows: RowStore, collection: str) -> bool:
        """Tell by counting whether the rows here are those that should be."""
        with chroma_errors(self._folder):
            held = self._chroma.count()
        return held == rows.inside(collection)

    def nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> list[tuple[RowKey, float]]:
        """Return about the ``n`` rows most like a probe with their cosine, best first.

        A few rows of such a graph cannot be reached from everywhere, so it can be fewer than exist.
        """
        if not self._filled:
            return []
        with chroma_errors(self._folder):
            found = self._chroma.query(
                query_embeddings=[probe],
                ids=None if among is None else [_id(key) for key in among],
                n_results=n,
                include=["distances"],
            )
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [(_key(row), 1.0 - distance) for row, distance in pairs]

    def agree(self, rows: RowStore, collection: str) -> None:
        """Add rows that are missing here and drop those that should not be here."""
        with chroma_errors(self._folder):
            held = set(map(_key, self._chroma.get(include=[])["ids"]))
        wanted = rows.merged(collection).keys()
        self.delete(sorted(held - wanted))
        for keys, matrix in rows.vectors(collection, wanted - held):
            self.upsert(keys, matrix)

    def answers(self, rows: RowStore, collection: str) -> bool:
        """Tell whether some rows, the first, the last and others between, are found by their own vectors."""
        keys = [key for key, stale in rows.merged(collection).items() if not stale]
        some = keys[:: max(1, len(keys) // _PROBES)] + keys[-1:]
        for _, matrix in rows.vectors(collection, some):
            for probe in matrix:
                best = self.nearest(probe, 1)
                if not best or best[0][1] < _ALIKE:
                    return False
        return True


def _id(key: RowKey) -> str:
    """Return the id in Chroma; the part comes first, so that an owner may contain anything."""
    return f"{key[1]}:{key[0]}"


def _key(row: str) -> RowKey:
    part, _, owner = row.partition(":")
    return owner, int(part)
