"""How a vector query is answered: full lists, one hit an owner, and a filter that costs little.

While all rows are in memory they are scanned. With a graph beside them it is less simple: Chroma's own
filters walk the graph of neighbours until enough allowed rows are met: 10 times the price of a plain query
at any share of allowed rows (50,000 rows). So a few allowed rows are read and scored exactly; for many, more
rows are asked for than needed and those not allowed are dropped. Only when that comes back short, because
what is allowed lies far from the query, is Chroma told the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pps.index.flat_index import Covered
from pps.index.rows import RowKey, RowStore
from pps.models.protocols import Vector

_FEW = 64
_PRICE = 3.0
"""What it costs to rank one more row in the graph and drop it, over reading one and scoring it, times the
surplus: with ``m`` allowed of ``size`` rows, scoring costs ``m`` and dropping ``_PRICE * k * size / m``."""
_SURPLUS = 3.0
_MARGIN = 20
_WIDEST = 2000
"""Rows past which telling Chroma the allowed ones is cheaper than asking for more."""

_Scored: TypeAlias = list[tuple[RowKey, float]]


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An owner and its best part; ``similarity`` is raw cosine in [-1, 1]."""

    owner: str
    part: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """One query of one collection for ``k`` owners; ``allowed`` as in ``VectorIndex.query``."""

    graph: Covered
    rows: RowStore
    collection: str
    probe: Vector
    k: int
    allowed: AbstractSet[str] | None = None

    def hits(self) -> list[VectorHit]:
        """Return the best owners, best first; fewer than ``k`` only when no more exist."""
        if not self.graph.graph.is_filled:
            hits = self._scanned()
            if not self.graph.graph.is_filled:  # else a row may have gone from memory to the graph meanwhile
                return hits
        size = self.rows.size(self.collection)
        if size == 0:
            return []
        if self.allowed is None:
            return self._best(self._scored(None) if size <= _FEW else self._ranked(size))
        if min(size, len(self.allowed)) <= max(_FEW, math.isqrt(int(_PRICE * self.k * size))):
            return self._best(self._scored(self.allowed))
        n = math.ceil(_SURPLUS * self.k * max(1.0, size / len(self.allowed))) + _MARGIN
        while True:
            hits = self._best(self.graph.nearest(self.probe, min(n, size)))
            if len(hits) >= self.k:
                return hits
            n *= 4
            if n > min(size, _WIDEST):
                return self._best(self._among(self.allowed))

    def _scanned(self) -> list[VectorHit]:
        """Take more and more rows until they are of ``k`` owners or all are seen."""
        n = self.k
        while True:
            found = self.graph.scanned.nearest(self.probe, n, self.allowed)
            if len(found) < n or _owners(found) >= self.k:
                return self._best(found)
            n *= 2

    def _ranked(self, size: int) -> _Scored:
        """Rank more and more rows until they are of ``k`` owners or all are seen."""
        n = self.k
        while True:
            n = min(n, size)
            found = self.graph.nearest(self.probe, n)
            if _owners(found) >= self.k:
                return found
            if n >= size or len(found) < n:
                return self._completed(found, self.rows.every_key(self.collection))
            n *= 2

    def _among(self, allowed: AbstractSet[str]) -> _Scored:
        """Rank only allowed rows, more and more, until they are of ``k`` owners or all are seen."""
        keys = self.rows.keys(self.collection, allowed)
        n = self.k
        while keys:
            n = min(n, len(keys))
            found = self.graph.nearest(self.probe, n, keys)
            if _owners(found) >= self.k:
                return found
            if n >= len(keys) or len(found) < n:
                return self._completed(found, keys)
            n *= 2
        return []

    def _completed(self, found: _Scored, keys: list[RowKey]) -> _Scored:
        """Add, exactly scored, the rows that the graph did not reach."""
        seen = {key for key, _ in found}
        missing = {key for key in keys if key not in seen}
        rest = self._scored({owner for owner, _ in missing})
        return found + [(key, similarity) for key, similarity in rest if key in missing]

    def _scored(self, owners: AbstractSet[str] | None) -> _Scored:
        """Score every row of the owners, or of all, exactly."""
        unit = self.probe / np.linalg.norm(self.probe)
        scored: _Scored = []
        for keys, matrix in self.rows.pages(self.collection, owners):
            cosines: list[float] = ((matrix @ unit) / np.sqrt(np.einsum("ij,ij->i", matrix, matrix))).tolist()
            scored += zip(keys, cosines, strict=True)
        return scored

    def _best(self, found: Iterable[tuple[RowKey, float]]) -> list[VectorHit]:
        best: dict[str, tuple[float, int]] = {}
        for (owner, part), similarity in found:
            if self.allowed is not None and owner not in self.allowed:
                continue
            if owner not in best or (-similarity, part) < (-best[owner][0], best[owner][1]):
                best[owner] = (similarity, part)
        ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[: self.k]
        return [VectorHit(owner, part, max(-1.0, min(1.0, similarity))) for owner, (similarity, part) in ranked]


def _owners(found: _Scored) -> int:
    return len({owner for (owner, _), _ in found})
