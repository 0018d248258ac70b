"""Rows of a collection that are kept in memory and found by scanning them: nearly exact, and quick to some 100,000.

As in a log-structured store's memtable, rows are here first; what is too much for memory goes on into the graph of
neighbours. Up to 8,192 rows every one is scored. Of more, the codes (``simhash``) are compared, and the rows whose
codes are nearest are scored: of 100,000 sentences embedded by MiniLM that finds the ten nearest in 99 of 100 cases,
even for questions far from all of them, in a third of the time that a graph of neighbours takes to find nine in ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from pps.index.neighbours import Neighbours
from pps.index.rows import RowKey
from pps.index.simhash import WORDS, Codes, SimHash
from pps.models.protocols import Matrix, Vector

_ROOM = 64
_ALL_SCORED = 8_192
"""Rows up to which all are scored: comparing codes saves nothing."""
_SHARE, _TIMES, _MOST_SCORED = 25, 10, 2_000
"""Of more, so many of those with the nearest codes are scored: one in 25, between 10 and 30 for each that is wanted,
and up to 2,000 however few are wanted."""
_AS_QUICK = 4
"""Scoring so many rows takes as long as comparing codes and scoring one of them."""
_NO_MATCH = np.float32(-2.0)

_Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """Some keys; those of them that were held, with their vectors; and those that lay over older ones."""

    keys: list[RowKey]
    held: list[RowKey]
    units: Matrix
    over: frozenset[RowKey]


class RowBuffer:
    """Unit vectors by key. One writer at a time; readers may run beside it, and see a row once it is there.

    Args:
        dimension: Of the vectors.
        expected: How many there will be soon; for more, all are copied now and then.

    Attributes:
        over: Keys of which the graph holds an older vector.
    """

    def __init__(self, dimension: int, expected: int = 0) -> None:
        self.over: set[RowKey] = set()
        self._rows = _Rows(dimension, expected + expected // 4 + _ROOM)

    def __len__(self) -> int:
        return self._rows.count

    def __contains__(self, key: RowKey) -> bool:
        return self._rows.place(key) is not None

    def put(self, keys: Sequence[RowKey], matrix: Matrix, over: Iterable[RowKey]) -> None:
        """Add rows or replace their vectors, shape (keys, dimension); ``over`` are those that the graph holds."""
        self.over.update(over)
        rows = self._rows
        if len(rows.keys) + len(keys) > len(rows.units):
            rows = rows.copy(len(keys))
        rows.append(keys, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
        self._rows = rows

    def before(self, keys: Sequence[RowKey]) -> Before:
        """Return what is held of these keys now."""
        held = {key: place for key in keys if (place := self._rows.place(key)) is not None}
        units = self._rows.units[list(held.values())]
        return Before(list(keys), list(held), units, frozenset(self.over.intersection(keys)))

    def undo(self, before: Before) -> None:
        """Make the rows of some keys what they were."""
        self.drop(before.keys)
        self.put(before.held, before.units, before.over)

    def drop(self, keys: Iterable[RowKey]) -> None:
        """Take rows out; absent ones are no error."""
        for key in keys:
            self._rows.remove(key)
            self.over.discard(key)

    def oldest(self, n: int) -> list[RowKey]:
        """Return up to ``n`` keys: those that the graph holds an older vector of, then the longest there."""
        found = [*self.over]
        for key in self._rows:
            if len(found) >= n:
                break
            if key not in self.over:
                found.append(key)
        return found[:n]

    def nearest(self, probe: Vector, n: int, owners: AbstractSet[str] | None = None) -> list[tuple[RowKey, float]]:
        """Return the ``n`` rows most like a probe with their cosine, best first; fewer only when no more exist.

        Args:
            probe: Shape (dimension,).
            n: Most rows.
            owners: Only their rows; None allows all.
        """
        rows, unit = self._rows, (probe / np.linalg.norm(probe)).astype(np.float32)
        size = rows.count if owners is None else min(len(owners), rows.count)
        most = min(max(3 * _TIMES * n, _MOST_SCORED), max(_TIMES * n, size // _SHARE))
        if owners is None:
            return rows.best(rows.near(unit, most), unit, n)
        wider = most * rows.count // max(1, len(owners))
        if len(owners) > wider:  # looking up each of them takes longer than passing over some of the nearest
            best = rows.best(rows.near(unit, wider), unit, 2 * n * rows.count // len(owners))
            found = [hit for hit in best if hit[0][0] in owners]
            if len(found) >= n:
                return found[:n]
        return rows.best(rows.near(unit, most, rows.of(owners)), unit, n)


class _Rows:
    """A matrix with room at its end. A place is written once, so whoever reads it reads one row."""

    def __init__(self, dimension: int, room: int) -> None:
        self.units = np.empty((room, dimension), dtype=np.float32)
        self.alive: NDArray[np.bool_] = np.zeros(room, dtype=np.bool_)
        self.keys: list[RowKey] = []
        self.count = 0
        self._places: dict[str, tuple[int, ...]] = {}
        self._codes: Codes = np.empty((WORDS, 0), dtype=np.uint64)
        self._hash: SimHash | None = None

    def __iter__(self) -> Iterator[RowKey]:
        """Yield the keys of the rows that are alive, the longest there first."""
        return (key for key, alive in zip(self.keys, self.alive[: len(self.keys)].tolist(), strict=True) if alive)

    def copy(self, more: int) -> _Rows:
        """Return the rows that are alive, with room for as many again and ``more``."""
        places = np.flatnonzero(self.alive[: len(self.keys)])
        made = _Rows(self.units.shape[1], 2 * (len(places) + more))
        made.append([self.keys[place] for place in places.tolist()], self.units[places])
        return made

    def append(self, keys: Sequence[RowKey], units: Matrix) -> None:
        start, end = len(self.keys), len(self.keys) + len(keys)
        self.units[start:end] = units
        if self._hash is not None:
            self._codes[:, start:end] = self._hash.codes(units)
        self.keys += keys
        for place, key in enumerate(keys, start):
            if key[0] in self._places:
                self.remove(key)
            self.alive[place] = True
            self.count += 1
            self._places[key[0]] = (*self._places.get(key[0], ()), place)
        if self._hash is None and end > _ALL_SCORED:
            self._codes = np.empty((WORDS, len(self.units)), dtype=np.uint64)
            made = SimHash(self.units[:end])
            self._codes[:, :end] = made.codes(self.units[:end])
            self._hash = made  # last: whoever sees it finds every code

    def place(self, key: RowKey) -> int | None:
        return next((place for place in self._places.get(key[0], ()) if self.keys[place] == key), None)

    def remove(self, key: RowKey) -> None:
        place = self.place(key)
        if place is None:
            return
        self.alive[place] = False
        self.count -= 1
        rest = tuple(one for one in self._places[key[0]] if one != place)
        if rest:
            self._places[key[0]] = rest
        else:
            del self._places[key[0]]

    def of(self, owners: Iterable[str]) -> _Places:
        """Return where the rows of the owners are."""
        return np.fromiter(chain.from_iterable(self._places.get(owner, ()) for owner in owners), dtype=np.intp)

    def near(self, unit: Vector, most: int, among: _Places | None = None) -> _Places:
        """Return where the rows are whose codes are the ``most`` nearest, or all when scoring them is as quick."""
        places = np.flatnonzero(self.alive[: len(self.keys)]) if among is None else among
        if self._hash is None or len(places) <= _AS_QUICK * most:
            return places
        distances = self._hash.distances(self._codes[:, : places.max() + 1], unit)[places]
        chosen = np.flatnonzero(distances <= np.partition(distances, most)[most])
        if len(chosen) > 2 * most:  # many with the same code
            chosen = chosen[np.argsort(distances[chosen], kind="stable")[:most]]
        return places[chosen]

    def best(self, places: _Places, unit: Vector, n: int) -> list[tuple[RowKey, float]]:
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


@dataclass(frozen=True, slots=True)
class Covered:
    """A collection's graph with its buffer over it, asked as one."""

    graph: Neighbours
    buffer: RowBuffer

    def inside(self, key: RowKey) -> bool:
        """Tell of a row that there is whether the graph has a vector of it, the latest or an older one."""
        return key not in self.buffer or key in self.buffer.over

    def nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> list[tuple[RowKey, float]]:
        """Return about the ``n`` rows most like a probe with their cosine, best first; as ``Neighbours.nearest``.

        ``among`` must be every row of some owners.
        """
        buffer = self.buffer
        if not len(buffer):
            return self.graph.nearest(probe, n, among)
        over = frozenset(buffer.over)
        owners = None if among is None else {owner for owner, _ in among}
        fresh = buffer.nearest(probe, n, owners)  # first: what leaves the buffer meanwhile is in the graph
        inside = None if among is None else [key for key in among if key not in buffer]
        kept = [] if inside == [] else self.graph.nearest(probe, n + len(over), inside)
        seen = over.union(key for key, _ in fresh)
        return sorted([*fresh, *(hit for hit in kept if hit[0] not in seen)], key=lambda hit: -hit[1])[:n]
