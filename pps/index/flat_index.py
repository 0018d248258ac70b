"""Rows of a collection that are kept in memory and found by scanning them: nearly exact, and quick to some 100,000.

As in a log-structured store's memtable, rows are here first; what is too much for memory goes on into the graph of
neighbours. Up to 8,192 rows every one is scored. Of more, the codes (``simhash``) are compared, and the rows whose
codes are nearest are scored: of 100,000 sentences embedded by MiniLM that finds the ten nearest in 99 of 100 cases,
even for questions far from all of them, in a third of the time that a graph of neighbours takes to find nine in ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain, islice
from typing import cast

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
_AT_ONCE = 1_000
"""Rows whose codes are made at once: their products fit a processor's cache."""
_NO_MATCH = np.float32(-2.0)

_Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """Some keys; those of them that were held, with their vectors; and those that lay over older ones."""

    keys: list[RowKey]
    held: list[RowKey]
    units: Matrix
    over: frozenset[RowKey]


class ScannedRows:
    """Unit vectors by key. One writer at a time; readers may run beside it, and see a row once it is there.

    Args:
        dimension: Of the vectors.
        expected: How many there will be soon; for more, all are copied now and then.
    """

    def __init__(self, dimension: int, expected: int = 0) -> None:
        self._rows = _Rows(dimension, expected + expected // 4 + _ROOM)

    def __len__(self) -> int:
        return self._rows.now.count

    @property
    def over(self) -> frozenset[RowKey]:
        """Keys of which the graph holds an older vector."""
        return self._rows.now.over

    def __contains__(self, key: RowKey) -> bool:
        return self._rows.place(key) is not None

    def put(self, keys: Sequence[RowKey], matrix: Matrix, over: Iterable[RowKey]) -> None:
        """Add rows or replace their vectors, shape (keys, dimension); ``over`` are those that the graph holds."""
        self.load(keys, matrix, over)
        self._rows.code()

    def load(self, keys: Sequence[RowKey], matrix: Matrix, over: Iterable[RowKey]) -> None:
        """Do as ``put``, but leave codes for later, when ``code`` makes many at once; till then every row is scored."""
        rows = self._rows
        if len(rows.keys) + len(keys) > len(rows.units):
            rows = rows.copy(len(keys))
        rows.append(keys, matrix / np.linalg.norm(matrix, axis=1, keepdims=True), over)
        self._rows = rows

    def code(self, workers: Executor) -> None:
        """Make the codes of what was loaded."""
        self._rows.code(workers)

    def before(self, keys: Sequence[RowKey]) -> Before:
        """Return what is held of these keys now."""
        held = {key: place for key in keys if (place := self._rows.place(key)) is not None}
        units = self._rows.units[list(held.values())]
        return Before(list(keys), list(held), units, frozenset(self.over.intersection(keys)))

    def undo(self, before: Before) -> None:
        """Make the rows of some keys what they were."""
        self.put(before.held, before.units, before.over)
        self.drop(set(before.keys).difference(before.held))

    def drop(self, keys: Iterable[RowKey]) -> None:
        """Take rows out; absent ones are no error."""
        self._rows.remove(list(keys))

    def cover(self, keys: Iterable[RowKey]) -> None:
        """Note that the graph may hold vectors of these rows, which do not count."""
        self._rows.cover(keys)

    def oldest(self, n: int) -> list[RowKey]:
        """Return up to ``n`` keys: those that the graph holds an older vector of, then the longest there."""
        over = self.over
        return list(islice(chain(over, (key for key in self._rows if key not in over)), n))

    def nearest(self, probe: Vector, n: int, owners: AbstractSet[str] | None = None) -> list[tuple[RowKey, float]]:
        """Return the ``n`` rows most like a probe with their cosine, best first; fewer only when no more exist.

        Args:
            probe: Shape (dimension,).
            n: Most rows.
            owners: Only their rows; None allows all.
        """
        rows, unit = self._rows, _unit(probe)
        count = rows.now.count
        if owners is None:
            return rows.nearest(unit, n, rows.now.places())
        wider = _most(n, min(len(owners), count)) * count // max(1, len(owners))
        if len(owners) > wider:  # looking up each of them takes longer than passing over some of the nearest
            best = rows.best(rows.near(unit, wider, rows.now.places()), unit, max(n, 2 * n * count // len(owners)))
            found = [hit for hit in best if hit[0][0] in owners]
            if len(found) >= n:
                return found[:n]
        return rows.nearest(unit, n, rows.of(owners))

    def over_graph(
        self, probe: Vector, n: int, owners: Iterable[str] | None
    ) -> tuple[list[tuple[RowKey, float]], frozenset[RowKey]]:
        """Answer as ``nearest``, with the keys that the graph is not asked for, all of one moment.

        They are those of which it holds an older vector; with ``owners``, all of theirs that are here.
        """
        rows, unit = self._rows, _unit(probe)
        if owners is None:
            now = rows.now
            return rows.nearest(unit, n, now.places()), now.over
        places = rows.of(owners)
        return rows.nearest(unit, n, places), frozenset(rows.at(places))


def _unit(probe: Vector) -> Vector:
    return (probe / np.linalg.norm(probe)).astype(np.float32)


def _most(n: int, size: int) -> int:
    """Return of how many rows with the nearest codes the cosine is worked out, to find ``n`` of ``size``."""
    return min(max(3 * _TIMES * n, _MOST_SCORED), max(_TIMES * n, size // _SHARE))


@dataclass(frozen=True, slots=True, eq=False)
class _Now:
    """Which places hold a row, how many do, and which keys lie over an older vector of the graph. Never changed."""

    alive: NDArray[np.bool_]
    count: int
    over: frozenset[RowKey]

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
        self.now = _Now(np.zeros(room, dtype=np.bool_), 0, frozenset())
        self._places: dict[str, tuple[int, ...]] = {}
        self._codes: Codes = np.empty((WORDS, 0), dtype=np.uint64)
        self._hash: SimHash | None = None

    def __iter__(self) -> Iterator[RowKey]:
        """Yield the keys of the rows that are alive, the longest there first."""
        return iter(self.at(self.now.places()))

    def copy(self, more: int) -> _Rows:
        """Return the rows that are alive, with room for as many again and ``more``."""
        places = self.now.places()
        room, count = 2 * (len(places) + more), len(places)
        made = _Rows(self.units.shape[1], room)
        np.take(self.units, places, axis=0, out=made.units[:count], mode="clip")  # "raise" would copy them once more
        if self._hash is not None:
            made._codes = np.empty((WORDS, room), dtype=np.uint64)
            made._codes[:, :count] = self._codes[:, places]
            made._hash = self._hash
        made._enter(self.at(places), self.now.over)
        return made

    def append(self, keys: Sequence[RowKey], units: Matrix, over: Iterable[RowKey]) -> None:
        start, end = len(self.keys), len(self.keys) + len(keys)
        self.units[start:end] = units
        if self._hash is not None:
            self._codes[:, start:end] = self._hash.codes(units)
        self._enter(keys, over)

    def code(self, workers: Executor | None = None) -> None:
        """Make codes of all rows, once there are more than are all scored; those that come later get theirs as they do.

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

    def _enter(self, keys: Sequence[RowKey], over: Iterable[RowKey]) -> None:
        """Make the next places those of the keys; what they hold is written already."""
        start = len(self.keys)
        self.keys += keys
        alive = self.now.alive.copy()
        alive[start : len(self.keys)] = True
        for place, key in enumerate(keys, start):
            older = self.place(key)
            if older is not None:
                alive[older] = False
            self._places[key[0]] = (*(one for one in self._places.get(key[0], ()) if one != older), place)
        self._change(alive, self.now.over.difference(keys).union(over))

    def place(self, key: RowKey) -> int | None:
        return next((place for place in self._places.get(key[0], ()) if self.keys[place] == key), None)

    def remove(self, keys: Sequence[RowKey]) -> None:
        alive = self.now.alive.copy()
        for key in keys:
            place = self.place(key)
            if place is None:
                continue
            alive[place] = False
            rest = tuple(one for one in self._places[key[0]] if one != place)
            if rest:
                self._places[key[0]] = rest
            else:
                del self._places[key[0]]
        self._change(alive, self.now.over.difference(keys))

    def cover(self, keys: Iterable[RowKey]) -> None:
        self._change(self.now.alive, self.now.over.union(keys))

    def _change(self, alive: NDArray[np.bool_], over: frozenset[RowKey]) -> None:
        self.now = _Now(alive, int(np.count_nonzero(alive)), over)

    def at(self, places: _Places) -> list[RowKey]:
        return [self.keys[place] for place in cast("list[int]", places.tolist())]

    def of(self, owners: Iterable[str]) -> _Places:
        """Return where the rows of the owners are."""
        return np.fromiter(chain.from_iterable(self._places.get(owner, ()) for owner in owners), dtype=np.intp)

    def nearest(self, unit: Vector, n: int, places: _Places) -> list[tuple[RowKey, float]]:
        """Return about the ``n`` best of the rows at these places, best first."""
        return self.best(self.near(unit, _most(n, len(places)), places), unit, n)

    def near(self, unit: Vector, most: int, places: _Places) -> _Places:
        """Return those of the places whose codes are the ``most`` nearest, or all when scoring them is as quick."""
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
    """A collection's graph with the rows in memory over it, asked as one."""

    graph: Neighbours
    scanned: ScannedRows

    def inside(self, key: RowKey) -> bool:
        """Tell of a row that there is whether the graph has a vector of it, the latest or an older one."""
        return key not in self.scanned or key in self.scanned.over

    def nearest(self, probe: Vector, n: int, among: Sequence[RowKey] | None = None) -> list[tuple[RowKey, float]]:
        """Return about the ``n`` rows most like a probe with their cosine, best first; as ``Neighbours.nearest``.

        ``among`` must be every row of some owners.
        """
        scanned = self.scanned
        if not len(scanned):
            return self.graph.nearest(probe, n, among)
        owners = None if among is None else {owner for owner, _ in among}
        fresh, hidden = scanned.over_graph(probe, n, owners)  # first: what leaves memory meanwhile is in the graph
        if among is None:
            kept = self.graph.nearest(probe, n + len(hidden))
        else:
            inside = [key for key in among if key not in hidden]
            kept = self.graph.nearest(probe, n, inside) if inside else []
        seen = hidden.union(key for key, _ in fresh)
        return sorted([*fresh, *(hit for hit in kept if hit[0] not in seen)], key=lambda hit: -hit[1])[:n]
