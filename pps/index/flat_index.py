"""Vectors of a collection in memory, found by scanning: nearly exact, and fast up to 100,000.

Up to 8,192 rows every one is scored. Of more, the codes (``SimHash``) are compared, and the rows
whose codes are nearest are scored: of 100,000 sentences embedded by MiniLM that finds the ten
nearest in 99 of 100 cases, even for questions far from all of them, in a third of the time that a
graph of neighbours takes to find nine in ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pps.index.chroma_collection import Scored, VectorHit, best_owners
from pps.index.vector_rows import RowKey
from pps.models.protocols import Matrix, Vector

_ROOM = 64
_ALL_SCORED = 8_192
"""Rows up to which all are scored: comparing codes saves nothing."""
_SHARE = 25
_TIMES = 10
_MOST_SCORED = 2_000
"""Of more, so many of those with the nearest codes are scored: one in 25, between 10 and 30 for
each that is wanted, and up to 2,000 however few are wanted."""
_AS_QUICK = 4
"""Scoring so many rows takes as long as comparing codes and scoring one of them."""
_AT_ONCE = 1_000
"""Rows whose codes are made at once: their products fit a processor's cache."""
_NO_MATCH = np.float32(-2.0)

_Places = NDArray[np.intp]

BITS = 768
_WORD_BITS = 64
WORDS = BITS // _WORD_BITS
_SEED = 2002

Codes: TypeAlias = NDArray[np.uint64]
"""Shape (WORDS, n): one column a vector, so that one word of all of them lies together."""


class FlatIndex:
    """Unit vectors by key. One writer at a time; readers may run beside it.

    A reader sees a row once it is written.

    Args:
        dimension: Of the vectors.
        expected: How many there will be soon; for more, all are copied now and then.
    """

    def __init__(self, dimension: int, expected: int = 0) -> None:
        self._rows = _Rows(dimension, expected + expected // 4 + _ROOM)

    def __len__(self) -> int:
        return self._rows.now.count

    def put(self, keys: Sequence[RowKey], matrix: Matrix) -> None:
        """Add rows or replace their vectors, shape (keys, dimension)."""
        self.load(keys, matrix)
        self._rows.code()

    def load(self, keys: Sequence[RowKey], matrix: Matrix) -> None:
        """Put rows without codes, which ``code`` makes later; until then every row is scored."""
        rows = self._rows
        if len(rows.keys) + len(keys) > len(rows.units):
            rows = rows.copy(len(keys))
        rows.append(keys, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
        self._rows = rows

    def code(self, workers: Executor) -> None:
        """Make the codes of what was loaded."""
        self._rows.code(workers)

    def drop(self, keys: Iterable[RowKey]) -> None:
        """Take rows out; absent ones are no error."""
        self._rows.remove(list(keys))

    def hits(self, probe: Vector, k: int, allowed: AbstractSet[str] | None) -> list[VectorHit]:
        """Return the ``k`` best owners, best first; ranks more and more rows until they suffice."""
        n = k
        while True:
            hits = self.nearest(probe, n, allowed)
            if len(hits) < n or len({owner for (owner, _), _ in hits}) >= k:
                return best_owners(hits, k)
            n *= 2

    def nearest(self, probe: Vector, n: int, owners: AbstractSet[str] | None = None) -> Scored:
        """Return the ``n`` rows most like a probe with their cosine, best first; or all.

        Args:
            probe: Shape (dimension,).
            n: Most rows.
            owners: Only their rows; None allows all.
        """
        rows = self._rows
        unit = (probe / np.linalg.norm(probe)).astype(np.float32)
        now = rows.now
        count = now.count
        if owners is None:
            return rows.nearest(unit, n, now.places())
        wider = _most(n, min(len(owners), count)) * count // max(1, len(owners))
        # Looking up many owners takes longer than skipping rows among the nearest.
        if len(owners) > wider:
            best = rows.best(
                rows.near(unit, wider, now.places()), unit, max(n, 2 * n * count // len(owners))
            )
            of_owners = [hit for hit in best if hit[0][0] in owners]
            if len(of_owners) >= n:
                return of_owners[:n]
        return rows.nearest(unit, n, rows.of(owners))


def _most(n: int, size: int) -> int:
    """Return the number of rows with the nearest codes to score, to find ``n`` of ``size``."""
    return min(max(3 * _TIMES * n, _MOST_SCORED), max(_TIMES * n, size // _SHARE))


@dataclass(frozen=True, slots=True, eq=False)
class _Now:
    """Which places hold a row, and how many do. Never changed."""

    alive: NDArray[np.bool_]
    count: int

    def places(self) -> _Places:
        return np.flatnonzero(self.alive)


class _Rows:
    """A matrix with room at its end. A place is written once, so whoever reads it reads one row.

    Attributes:
        now: Made anew by each write, so whoever takes it reads the rows of one moment.
    """

    def __init__(self, dimension: int, room: int) -> None:
        self.units = np.empty((room, dimension), dtype=np.float32)
        self.keys: list[RowKey] = []
        self.now = _Now(np.zeros(room, dtype=np.bool_), 0)
        self._places: dict[str, tuple[int, ...]] = {}
        self._codes: Codes = np.empty((WORDS, 0), dtype=np.uint64)
        self._hash: SimHash | None = None

    def copy(self, more: int) -> _Rows:
        """Return the rows that are alive, with room for as many again and ``more``."""
        places = self.now.places()
        room, count = 2 * (len(places) + more), len(places)
        made = _Rows(self.units.shape[1], room)
        np.take(
            self.units, places, axis=0, out=made.units[:count], mode="clip"
        )  # "raise" would copy them once more
        if self._hash is not None:
            made._codes = np.empty((WORDS, room), dtype=np.uint64)
            made._codes[:, :count] = self._codes[:, places]
            made._hash = self._hash
        made._enter([self.keys[place] for place in cast("list[int]", places.tolist())])
        return made

    def append(self, keys: Sequence[RowKey], units: Matrix) -> None:
        start, end = len(self.keys), len(self.keys) + len(keys)
        self.units[start:end] = units
        if self._hash is not None:
            self._codes[:, start:end] = self._hash.codes(units)
        self._enter(keys)

    def code(self, workers: Executor | None = None) -> None:
        """Make codes of all rows once there are too many to score; later rows get theirs at once.

        Args:
            workers: To make many at once; None makes them here.
        """
        end = len(self.keys)
        if self._hash is not None or end <= _ALL_SCORED:
            return
        made = SimHash(self.units[:end])
        codes: Codes = np.empty((WORDS, len(self.units)), dtype=np.uint64)

        def some(start: int) -> None:
            stop = min(end, start + _AT_ONCE)
            codes[:, start:stop] = made.codes(self.units[start:stop])

        for _ in (map if workers is None else workers.map)(some, range(0, end, _AT_ONCE)):
            pass
        self._codes = codes
        self._hash = made  # last: whoever sees it finds every code

    def _enter(self, keys: Sequence[RowKey]) -> None:
        """Make the next places those of the keys; what they hold is written already."""
        start = len(self.keys)
        self.keys += keys
        alive = self.now.alive.copy()
        alive[start : len(self.keys)] = True
        for place, key in enumerate(keys, start):
            older = self.place(key)
            if older is not None:
                alive[older] = False
            self._places[key[0]] = (
                *(other for other in self._places.get(key[0], ()) if other != older),
                place,
            )
        self._change(alive)

    def place(self, key: RowKey) -> int | None:
        return next(
            (place for place in self._places.get(key[0], ()) if self.keys[place] == key), None
        )

    def remove(self, keys: Sequence[RowKey]) -> None:
        alive = self.now.alive.copy()
        for key in keys:
            place = self.place(key)
            if place is None:
                continue
            alive[place] = False
            rest = tuple(other for other in self._places[key[0]] if other != place)
            if rest:
                self._places[key[0]] = rest
            else:
                del self._places[key[0]]
        self._change(alive)

    def _change(self, alive: NDArray[np.bool_]) -> None:
        self.now = _Now(alive, int(np.count_nonzero(alive)))

    def of(self, owners: Iterable[str]) -> _Places:
        """Return where the rows of the owners are."""
        return np.fromiter(
            chain.from_iterable(self._places.get(owner, ()) for owner in owners), dtype=np.intp
        )

    def nearest(self, unit: Vector, n: int, places: _Places) -> Scored:
        """Return about the ``n`` best of the rows at these places, best first."""
        return self.best(self.near(unit, _most(n, len(places)), places), unit, n)

    def near(self, unit: Vector, most: int, places: _Places) -> _Places:
        """Return the places of the ``most`` nearest codes, or all where scoring all is as quick."""
        if self._hash is None or len(places) <= _AS_QUICK * most:
            return places
        distances = self._hash.distances(self._codes[:, : places.max() + 1], unit)[places]
        chosen = np.flatnonzero(distances <= np.partition(distances, most)[most])
        if len(chosen) > 2 * most:  # many with the same code
            chosen = chosen[np.argsort(distances[chosen], kind="stable")[:most]]
        return places[chosen]

    def best(self, places: _Places, unit: Vector, n: int) -> Scored:
        """Score the rows at these places and return the ``n`` best, best first."""
        end = len(self.keys)
        if 2 * len(places) > end:  # reading all is quicker than picking
            cosines = np.full(end, _NO_MATCH)
            cosines[places] = (self.units[:end] @ unit)[places]
            places = np.arange(end)
        else:
            cosines = self.units[places] @ unit
        if len(places) > n:
            top = np.argpartition(cosines, -n)[-n:]
            places, cosines = places[top], cosines[top]
        order = np.argsort(-cosines, kind="stable")
        pairs = zip(places[order].tolist(), cosines[order].tolist(), strict=True)
        return [(self.keys[place], cosine) for place, cosine in pairs if cosine > _NO_MATCH]


class SimHash:
    """Makes short codes of vectors, shape (n, dimension); the bits that differ tell the angle.

    Random hyperplanes (M. Charikar, "Similarity estimation techniques from rounding algorithms",
    2002), orthogonal in groups as large as the dimension, which keeps the estimate's variance down
    (J. Ji et al., "Super-bit locality-sensitive hashing", 2012). The vectors' mean is taken off
    first: without that, vectors of a model that keeps all of them in a narrow cone would nearly all
    have the same code.
    """

    def __init__(self, sample: Matrix) -> None:
        self._planes = _planes(sample.shape[1])
        self._offsets: Vector = sample.mean(axis=0) @ self._planes

    def codes(self, matrix: Matrix) -> Codes:
        """Return the codes of vectors, shape (n, dimension)."""
        bits = np.packbits(matrix @ self._planes > self._offsets, axis=1)
        return np.ascontiguousarray(bits.view(np.uint64).T)

    def distances(self, codes: Codes, probe: Vector) -> NDArray[np.uint16]:
        """Return how many bits of each code, 0 to BITS, differ from a vector's."""
        distances = np.zeros(codes.shape[1], dtype=np.uint16)
        for row, word in zip(codes, self.codes(probe[np.newaxis])[:, 0], strict=True):
            distances += np.bitwise_count(row ^ word)
        return distances


@cache
def _planes(dimension: int) -> Matrix:
    """Return the normals, shape (dimension, BITS); the same for every index of a dimension."""
    draw = np.random.default_rng(_SEED)
    groups = [
        np.linalg.qr(draw.standard_normal((dimension, min(dimension, BITS))))[0]
        for _ in range(-(-BITS // dimension))
    ]
    return np.ascontiguousarray(np.hstack(groups)[:, :BITS], dtype=np.float32)
