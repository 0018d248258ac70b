"""One collection of vectors in Chroma: ids and vectors only, made of the rows in ``vectors.db`` and made again of them.

Chroma's own filters walk its graph of neighbours until enough allowed rows are met: 10 times the price of a plain query
at any share of allowed rows (50,000 rows). So a few allowed rows are read and scored exactly; for many, more rows are
asked for than needed and those not allowed are dropped. Only when that comes back short, because what is allowed lies
far from the query, is Chroma told the rows.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pps.core.errors import IsolationError, StoreError
from pps.index.chroma import HNSW, Blanking, Collection, Number, chroma_errors, open_client
from pps.index.vector_rows import RowKey, RowStore
from pps.models.protocols import Matrix, Vector

SLICE = 256
"""Rows of one upsert. Chroma keeps the interpreter until they are on disk, and nothing is answered then: 0.33 s for
1,000 rows, 0.13 for these, which take a quarter more time a row; half as many take half as much again, for 0.1 s."""
_BATCH = 1000
_FEW = 400
"""Rows that are scored exactly: the graph reads as many for every query (``ef_search``), and may miss the nearest."""
_PRICE = 3.0
"""What it costs to rank one more row in the graph and drop it, over reading one and scoring it, times the
surplus: with ``m`` allowed of ``size`` rows, scoring costs ``m`` and dropping ``_PRICE * k * size / m``."""
_SURPLUS = 3.0
_MARGIN = 20
_WIDEST = 2000
"""Rows past which telling Chroma the allowed ones is cheaper than asking for more."""

Scored = list[tuple[RowKey, float]]
"""Rows with their cosine."""


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An owner and its best part; ``similarity`` is raw cosine in [-1, 1]."""

    owner: str
    part: int
    similarity: float


class ChromaCollection:
    """One collection in a folder of its own. Writes take turns; queries run beside them."""

    def __init__(
        self, folder: Path, name: str, rows: RowStore, marks: Mapping[str, Number], *, make: bool
    ) -> None:
        """Open the collection, or ``make`` it, empty, in a folder that is not there.

        Raises:
            IsolationError: Chroma's files are another entity's.
            StoreError: They cannot be read, or hold another collection or another model's.
        """
        self._folder = folder
        self._name = name
        self._rows = rows
        self._blanking = Blanking(folder)
        with chroma_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._client = open_client(folder)
            try:
                if make:
                    self._chroma = self._client.create_collection(
                        name, configuration={"hnsw": HNSW}, metadata=marks, embedding_function=None
                    )
                else:
                    self._chroma = _own(self._client.list_collections(), folder, name, marks)
            except BaseException:
                self._client.close()
                raise

    @staticmethod
    def erase(folder: Path) -> None:
        """Take a collection's files away."""
        with chroma_errors(folder):
            if folder.exists():
                shutil.rmtree(folder)

    def put(self, keys: Sequence[RowKey], matrix: Matrix, drop: Sequence[RowKey] = ()) -> None:
        """Add rows or replace their vectors, and drop others; absent ones are no error."""
        with chroma_errors(self._folder):
            for at in range(0, len(drop), _BATCH):
                self._chroma.delete([_id(key) for key in drop[at : at + _BATCH]])
            for at in range(0, len(keys), SLICE):
                part = slice(at, at + SLICE)
                self._chroma.upsert([_id(key) for key in keys[part]], matrix[part])
            self._blanking.blank()

    def hits(self, probe: Vector, k: int, allowed: AbstractSet[str] | None) -> list[VectorHit]:
        """Return the best owners, best first; fewer than ``k`` only when no more exist."""
        size = self._rows.sizes().get(self._name, 0)
        if size == 0:
            return []
        if allowed is None:
            return best_owners(
                self._scored(probe, None) if size <= _FEW else self._ranked(probe, k, size), k
            )
        if min(size, len(allowed)) <= max(_FEW, math.isqrt(int(_PRICE * k * size))):
            return best_owners(self._scored(probe, allowed), k)
        n = math.ceil(_SURPLUS * k * max(1.0, size / len(allowed))) + _MARGIN
        while True:
            hits = best_owners(self._nearest(probe, min(n, size)), k, allowed)
            if len(hits) >= k:
                return hits
            if n >= min(size, _WIDEST):
                break
            n *= 4
        keys = self._rows.keys(self._name, allowed)
        return best_owners(self._ranked(probe, k, len(keys), keys), k)

    def close(self) -> None:
        """Give back Chroma's threads and files; what it saved is blanked, as it may save once more."""
        with chroma_errors(self._folder):
            self._client.close()
            Blanking(
                self._folder
            ).blank()  # every graph: of two saves in one tick of the clock it saw one

    def _ranked(
        self, probe: Vector, k: int, size: int, among: list[RowKey] | None = None
    ) -> Scored:
        """Rank more and more rows, of all or of some, until they are of ``k`` owners or all are seen."""
        n = k
        while size:
            n = min(n, size)
            found = self._nearest(probe, n, among)
            if len({owner for (owner, _), _ in found}) >= k:
                return found
            if n >= size or len(found) < n:
                return self._completed(probe, found, among or self._rows.keys(self._name))
            n *= 2
        return []

    def _nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> Scored:
        """Return about the ``n`` rows most like a probe, best first.

        A few rows of a graph of neighbours cannot be reached from everywhere, so it can be fewer than exist.
        """
        with chroma_errors(self._folder):
            found = self._chroma.query(
                query_embeddings=[probe],
                ids=None if among is None else [_id(key) for key in among],
                n_results=n,
                include=["distances"],
            )
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [(_key(row), 1.0 - distance) for row, distance in pairs]

    def _completed(self, probe: Vector, found: Scored, keys: list[RowKey]) -> Scored:
        """Add, exactly scored, the rows that the graph did not reach."""
        missing = set(keys).difference(key for key, _ in found)
        rest = self._scored(probe, {owner for owner, _ in missing})
        return found + [(key, similarity) for key, similarity in rest if key in missing]

    def _scored(self, probe: Vector, owners: AbstractSet[str] | None) -> Scored:
        """Score every row of the owners, or of all, exactly."""
        unit = probe / np.linalg.norm(probe)
        scored: Scored = []
        for keys, matrix in self._rows.pages(self._name, owners):
            cosines: list[float] = (
                (matrix @ unit) / np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
            ).tolist()
            scored += zip(keys, cosines, strict=True)
        return scored


def listing(folder: Path) -> str:
    """Return the files of a folder with their sizes as JSON; none of a folder that is not there."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return json.dumps({str(file.relative_to(folder)): file.stat().st_size for file in files})


def _own(
    found: Sequence[Collection], folder: Path, name: str, marks: Mapping[str, Number]
) -> Collection:
    """Return the one collection of a folder when it is the owner's, of its model and of this name."""
    if any((one.metadata or {}).get("pps_group") != marks["pps_group"] for one in found):
        raise IsolationError(f"{folder} holds the vectors of another entity")
    if [(one.name, one.metadata) for one in found] != [(name, marks)]:
        raise StoreError(
            f"the graph in {folder} is gone, or of another model or collection than its rows"
        )
    return found[0]


def best_owners(
    found: Iterable[tuple[RowKey, float]], k: int, allowed: AbstractSet[str] | None = None
) -> list[VectorHit]:
    """Return the ``k`` best owners of some rows, best first, each by its best part."""
    best: dict[str, tuple[float, int]] = {}
    for (owner, part), similarity in found:
        if allowed is not None and owner not in allowed:
            continue
        if owner not in best or (-similarity, part) < (-best[owner][0], best[owner][1]):
            best[owner] = (similarity, part)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:k]
    return [
        VectorHit(owner, part, max(-1.0, min(1.0, similarity)))
        for owner, (similarity, part) in ranked
    ]


def _id(key: RowKey) -> str:
    """Return the id in Chroma; the part comes first, so that an owner may contain anything."""
    return f"{key[1]}:{key[0]}"


def _key(row: str) -> RowKey:
    part, _, owner = row.partition(":")
    return owner, int(part)
