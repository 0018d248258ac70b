"""How a vector query is answered: full lists, one hit an owner, and a filter that costs little.

Chroma's own filters walk the graph of neighbours until enough allowed rows are met: 10 times the price
of a plain query at any share of allowed rows (50,000 rows). So a few allowed rows are read and scored
exactly; for many, more rows are asked for than needed and those not allowed are dropped. Only when that
comes back short, because what is allowed lies far from the query, is Chroma told the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pps.index.rows import CollectionRows, RowKey, VectorHit
from pps.models.protocols import Vector

_FEW = 64
_PRICE = 0.5
"""Rows that a query ranks for the time in which one row is read and scored, times the surplus asked for."""
_SURPLUS = 1.5


@dataclass(frozen=True, slots=True)
class Nearest:
    """One query of one collection for ``k`` owners; ``allowed`` as in ``VectorIndex.query``."""

    rows: CollectionRows
    probe: Vector
    k: int
    allowed: AbstractSet[str] | None = None

    def hits(self) -> list[VectorHit]:
        """Return the best owners, best first; fewer than ``k`` only when no more exist."""
        size = self.rows.size()
        if size == 0:
            return []
        if self.allowed is None:
            return self._best(self._ranked(size, self.k))
        if len(self.allowed) <= max(_FEW, math.isqrt(int(_PRICE * self.k * size))):
            return self._best(self.rows.scored(self.probe, self.rows.keys(self.allowed)))
        share = min(1.0, len(self.allowed) / max(1, self.rows.count()))
        n = min(size, math.ceil(_SURPLUS * self.k / share) + 10)
        hits = self._best(self.rows.nearest(self.probe, n))
        return hits if len(hits) >= self.k else self._best(self._among(self.allowed))

    def _ranked(self, size: int, n: int) -> list[tuple[RowKey, float]]:
        """Rank more and more rows until they are of ``k`` owners or all are seen."""
        while True:
            n = min(n, size)
            found = self.rows.nearest(self.probe, n)
            if len({owner for (owner, _), _ in found}) >= self.k:
                return found
            if n >= size or len(found) < n:
                return self._completed(found, self.rows.keys())
            n *= 2

    def _among(self, allowed: AbstractSet[str]) -> list[tuple[RowKey, float]]:
        """Rank only allowed rows, more and more, until they are of ``k`` owners or all are seen."""
        keys = self.rows.keys(allowed)
        n = self.k
        while keys:
            n = min(n, len(keys))
            found = self.rows.nearest(self.probe, n, keys)
            if len({owner for (owner, _), _ in found}) >= self.k:
                return found
            if n >= len(keys) or len(found) < n:
                return self._completed(found, keys)
            n *= 2
        return []

    def _completed(self, found: list[tuple[RowKey, float]], keys: list[RowKey]) -> list[tuple[RowKey, float]]:
        """Add, exactly scored, the rows that the graph of neighbours did not reach."""
        seen = {key for key, _ in found}
        return found + self.rows.scored(self.probe, [key for key in keys if key not in seen])

    def _best(self, found: Iterable[tuple[RowKey, float]]) -> list[VectorHit]:
        best: dict[str, tuple[float, int]] = {}
        for (owner, part), similarity in found:
            if self.allowed is not None and owner not in self.allowed:
                continue
            if owner not in best or (-similarity, part) < (-best[owner][0], best[owner][1]):
                best[owner] = (similarity, part)
        ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[: self.k]
        return [VectorHit(owner, part, max(-1.0, min(1.0, similarity))) for owner, (similarity, part) in ranked]
