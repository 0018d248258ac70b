"""Rows of a collection that are not in its graph of neighbours yet: kept in memory, found exactly.

Putting rows into the graph one by one costs thirty times what it costs in a slice of some hundreds, and holds the
interpreter meanwhile. So they wait here, as in the memtable of a log-structured store; on disk they are rows like all
others, with a mark (``RowStore``). Scoring 4,096 of them takes about 0.15 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pps.index.neighbours import Neighbours
from pps.index.rows import RowKey
from pps.models.protocols import Matrix, Vector

_FIRST_ROOM = 64
_NO_MATCH = -2.0


class RowBuffer:
    """Unit vectors by key. One writer at a time; readers may run beside it, and see a row once it is there.

    Attributes:
        over: Keys of which the graph holds an older vector.
    """

    def __init__(self, dimension: int) -> None:
        self.over: set[RowKey] = set()
        self._rows = _Rows(dimension, _FIRST_ROOM)

    def __len__(self) -> int:
        return len(self._rows.places)

    def __contains__(self, key: object) -> bool:
        return key in self._rows.places

    def put(self, keys: Sequence[RowKey], matrix: Matrix, over: Iterable[RowKey]) -> None:
        """Add rows or replace their vectors, shape (keys, dimension); ``over`` are those that the graph holds."""
        self.over.update(over)
        rows = self._rows
        if len(rows.keys) + len(keys) > len(rows.units):
            rows = rows.copy(len(keys))
        rows.append(keys, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))
        self._rows = rows

    def drop(self, keys: Iterable[RowKey]) -> None:
        """Take rows out; absent ones are no error."""
        for key in keys:
            self._rows.remove(key)
            self.over.discard(key)

    def oldest(self, n: int) -> list[RowKey]:
        """Return up to ``n`` keys: those that the graph holds an older vector of, then the longest there."""
        return [*self.over, *(key for key in self._rows.places if key not in self.over)][:n]

    def nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> list[tuple[RowKey, float]]:
        """Return the ``n`` rows most like a probe with their cosine, best first; fewer only when no more exist."""
        return self._rows.nearest((probe / np.linalg.norm(probe)).astype(np.float32), n, among)


class _Rows:
    """A matrix with room at its end. A place is written once, so whoever reads it reads one row."""

    def __init__(self, dimension: int, room: int) -> None:
        self.units = np.empty((room, dimension), dtype=np.float32)
        self.alive: NDArray[np.bool_] = np.zeros(room, dtype=np.bool_)
        self.keys: list[RowKey] = []
        self.places: dict[RowKey, int] = {}

    def copy(self, more: int) -> _Rows:
        """Return the rows that are alive, with room for as many again and ``more``."""
        keys, places = list(self.places), list(self.places.values())
        made = _Rows(self.units.shape[1], max(_FIRST_ROOM, 2 * (len(keys) + more)))
        made.append(keys, self.units[places])
        return made

    def append(self, keys: Sequence[RowKey], units: Matrix) -> None:
        start = len(self.keys)
        self.units[start : start + len(keys)] = units
        self.keys += keys
        for place, key in enumerate(keys, start):
            self.remove(key)
            self.alive[place] = True
            self.places[key] = place

    def remove(self, key: RowKey) -> None:
        place = self.places.pop(key, None)
        if place is not None:
            self.alive[place] = False

    def nearest(self, unit: Vector, n: int, among: Sequence[RowKey] | None) -> list[tuple[RowKey, float]]:
        if among is None:
            end = len(self.keys)
            cosines = np.where(self.alive[:end], self.units[:end] @ unit, _NO_MATCH)
            places: NDArray[np.intp] = np.arange(end)
        else:
            found = [self.places.get(key, -1) for key in among]
            places = np.array([place for place in found if place >= 0], dtype=np.intp)
            cosines = self.units[places] @ unit
        if len(places) > n:
            best = np.argpartition(cosines, -n)[-n:]
            places, cosines = places[best], cosines[best]
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
        """Return about the ``n`` rows most like a probe with their cosine, best first; as ``Neighbours.nearest``."""
        buffer = self.buffer
        if not len(buffer):
            return self.graph.nearest(probe, n, among)
        over = frozenset(buffer.over)
        fresh = buffer.nearest(probe, n, among)  # first: what leaves the buffer meanwhile is in the graph
        inside = None if among is None else [key for key in among if key not in buffer]
        kept = [] if inside == [] else self.graph.nearest(probe, n + len(over), inside)
        seen = over.union(key for key, _ in fresh)
        return sorted([*fresh, *(hit for hit in kept if hit[0] not in seen)], key=lambda hit: -hit[1])[:n]
