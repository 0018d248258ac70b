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
"""The version of a feature that could not be made: it is to be made again."""


def ids_of(features: Mapping[str, bytes]) -> frozenset[str]:
    """Return the items of features, for ``PerspectiveRows.every``, where their data are unused."""
    return frozenset(features)


@dataclass(frozen=True, slots=True)
class PerspectiveDatum:
    """What one perspective keeps of one item; ``version`` is that of the rules that made it."""

    item: str
    kind: ItemKind
    perspective: str
    version: int
    blob: bytes = b""


class PerspectiveRows(Store):
    """The features of one ``memory.db``; those that recalls went through stay in memory."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        super().__init__(writer, readers)
        self._held: dict[tuple[str, str], tuple[dict[str, bytes], dict[object, object]]] = {}
        self._changing = asyncio.Lock()

    async def of(self, perspective: str, items: Sequence[str]) -> dict[str, bytes]:
        """Return item → what the perspective keeps of it, for those that have it."""
        query = f"SELECT item, blob FROM features WHERE item IN {LIST} AND perspective = ? AND version > {FAILED}"  # noqa: S608 - literals
        return dict(await self.select(query, listed(items), perspective))

    async def every(
        self, perspective: str, kind: ItemKind, make: Callable[..., T], *args: Hashable
    ) -> T:
        """Return ``make`` of item → feature of all items of a kind, cached until one changes."""
        async with self._changing:
            key = (perspective, kind)
            if key not in self._held:
                rows = await self.select(
                    "SELECT item, blob FROM features WHERE perspective = ? AND kind = ? AND version > 0",
                    *key,
                )
                self._held[key] = dict(rows), {}
            blobs, made = self._held[key]
            if (make, args) not in made:
                made[make, args] = make(blobs, *args)
            return cast("T", made[make, args])

    async def put(self, items: Iterable[str], features: Sequence[PerspectiveDatum]) -> None:
        """Make ``features`` all that is kept of ``items``; nothing is written where that is so."""
        ids = list(items)
        async with self._changing:
            held = set(await self.look_up(lambda db: _features(db, ids), len(ids)))
            if held == set(features):
                return
            gone, new = held - set(features), set(features) - held

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
        query = "SELECT DISTINCT kind, item FROM features WHERE version = 0 AND ? IN ('', perspective) LIMIT ?"
        return await self.select(query, perspective, limit)

    async def clear(self) -> None:
        """Forget all, before all are made again."""
        async with self._changing:
            await self.write(lambda db: db.execute("DELETE FROM features"))
            self._held.clear()


def _features(db: Connection, ids: Sequence[str]) -> list[PerspectiveDatum]:
    query = f"SELECT item, kind, perspective, version, blob FROM features WHERE item IN {LIST}"  # noqa: S608 - literals
    return [PerspectiveDatum(*row) for row in db.execute(query, (listed(ids),))]


def _keys(features: Iterable[PerspectiveDatum]) -> list[tuple[str, str]]:
    return [(feature.item, feature.perspective) for feature in features]
