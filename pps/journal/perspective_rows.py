"""Features that perspectives derive from turns, facts and nodes; they hold no text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from pps.core.sql import LIST, Connection, insert, listed
from pps.core.values import ItemKind
from pps.journal.store import Readers, Store
from pps.journal.writer import Writer

T = TypeVar("T")
FAILED = 0
"""Version of a feature that could not be computed and must be tried again."""


def ids_of(features: Mapping[str, bytes]) -> frozenset[str]:
    """Return the items of features; a ``make`` for ``PerspectiveRows.every`` that needs no data."""
    return frozenset(features)


@dataclass(frozen=True, slots=True)
class PerspectiveDatum:
    """Data of one perspective about one item; ``version`` is that of the rules that made it."""

    item: str
    kind: ItemKind
    perspective: str
    version: int
    blob: bytes = b""


class PerspectiveRows(Store):
    """The features of one memory; all features of a kind are cached after ``every`` read them."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        super().__init__(writer, readers)
        self._held: dict[tuple[str, str], tuple[dict[str, bytes], dict[object, object]]] = {}
        self._changing = asyncio.Lock()

    async def of(self, perspective: str, items: Sequence[str]) -> dict[str, bytes]:
        """Return item → its feature of a perspective; items without are left out."""
        query = (
            f"SELECT item, blob FROM features WHERE item IN {LIST} "  # noqa: S608 - literals
            f"AND perspective = ? AND version > {FAILED}"
        )
        return dict(await self.select(query, listed(items), perspective))

    async def every(
        self, perspective: str, kind: ItemKind, make: Callable[..., T], *args: Hashable
    ) -> T:
        """Return ``make(features, *args)``, cached until a feature of the kind changes.

        ``features`` maps every item of the kind to its feature.
        """
        async with self._changing:
            key = (perspective, kind)
            if key not in self._held:
                rows = await self.select(
                    "SELECT item, blob FROM features "
                    "WHERE perspective = ? AND kind = ? AND version > 0",
                    *key,
                )
                self._held[key] = dict(rows), {}
            blobs, made = self._held[key]
            if (make, args) not in made:
                made[make, args] = make(blobs, *args)
            return cast("T", made[make, args])

    async def put(self, items: Iterable[str], features: Sequence[PerspectiveDatum]) -> None:
        """Replace all features of ``items``; writes nothing if they are unchanged."""
        ids = list(items)
        async with self._changing:
            stored = set(await self.look_up(lambda db: _features(db, ids), len(ids)))
            gone = stored - set(features)
            new = set(features) - stored
            if not gone and not new:
                return

            def change(db: Connection) -> None:
                db.executemany(
                    "DELETE FROM features WHERE item = ? AND perspective = ?", _keys(gone)
                )
                rows = [
                    (feature.item, feature.kind, feature.perspective, feature.version, feature.blob)
                    for feature in new
                ]
                insert(db, "INSERT INTO features (item, kind, perspective, version, blob)", rows)

            await self.write(change)
            for feature in (*gone, *new):
                held_of_kind = self._held.get((feature.perspective, feature.kind))
                if held_of_kind is not None:
                    blobs, made = held_of_kind
                    made.clear()
                    blobs.pop(feature.item, None)
                    if feature in new and feature.version > FAILED:
                        blobs[feature.item] = feature.blob

    async def failed(self, perspective: str = "", limit: int = 500) -> list[tuple[ItemKind, str]]:
        """Return (kind, id) of items whose feature failed, for one perspective or all."""
        query = (
            "SELECT DISTINCT kind, item FROM features "
            "WHERE version = 0 AND ? IN ('', perspective) LIMIT ?"
        )
        return await self.select(query, perspective, limit)

    async def clear(self) -> None:
        """Delete all features, before all are computed again."""
        async with self._changing:
            await self.write(lambda db: db.execute("DELETE FROM features"))
            self._held.clear()


def _features(db: Connection, ids: Sequence[str]) -> list[PerspectiveDatum]:
    columns = "item, kind, perspective, version, blob"
    query = f"SELECT {columns} FROM features WHERE item IN {LIST}"  # noqa: S608 - literals
    return [PerspectiveDatum(*row) for row in db.execute(query, (listed(ids),))]


def _keys(features: Iterable[PerspectiveDatum]) -> list[tuple[str, str]]:
    return [(feature.item, feature.perspective) for feature in features]
