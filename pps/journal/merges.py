"""Merges of nodes: what each changed, so that it can be undone; and names that several nodes have."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias, cast

from pps.core.errors import InvalidRequest
from pps.core.sql import listed
from pps.core.time import from_micros, micros
from pps.journal.reader import Readers
from pps.journal.writer import Writer

MergeState: TypeAlias = Literal["applying", "applied", "undoing", "undone"]


@dataclass(frozen=True, slots=True)
class MergeRow:
    """One merge. ``change`` is JSON of what it changed; only ``ingest.merging`` reads it."""

    id: str
    kept: str
    gone: str
    state: MergeState
    at: datetime
    change: str


@dataclass(frozen=True, slots=True)
class SameName:
    """Two nodes with one name: ``by_alias`` when it is an alias of either."""

    first: str
    second: str
    name: str
    by_alias: bool


class Merges:
    """The merges of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, row: MergeRow) -> None:
        """Store a merge, or its new state."""
        values = (row.id, row.kept, row.gone, row.state, micros(row.at), row.change)
        await self._writer.write(
            lambda db: db.execute("INSERT OR REPLACE INTO merges VALUES (?, ?, ?, ?, ?, ?)", values)
        )

    async def list(self, limit: int) -> list[MergeRow]:
        """Return the latest merges, newest first."""
        return await self._readers.read(partial(_select, rest="ORDER BY at DESC, id LIMIT ?", values=(limit,)))

    async def get(self, merge: str) -> MergeRow | None:
        """Return a merge by its id or the beginning of it, or None when this entity has none of that id."""
        rest = "WHERE id >= ? AND id < ? || 'g' LIMIT 2"  # 'g' follows all that an id has
        found = await self._readers.read(partial(_select, rest=rest, values=(merge, merge)))
        if len(found) > 1:
            raise InvalidRequest("id", f"{merge!r} begins more than one id: give more of it")
        return found[0] if found else None

    async def unfinished(self) -> list[MergeRow]:
        """Return merges that a crash cut short, oldest first."""
        rest = "WHERE state IN ('applying', 'undoing') ORDER BY at"
        return await self._readers.read(partial(_select, rest=rest, values=()))

    async def forget(self, nodes: Sequence[str]) -> None:
        """Erase the merges of nodes that are forgotten: they hold names and summaries."""
        wanted = listed(nodes)
        await self._writer.write(partial(_forget, wanted=wanted), secure=True)

    async def same_names(self, limit: int) -> list[SameName]:
        """Return pairs of nodes with the same folded name, then by alias; the older node first."""
        return await self._readers.read(partial(_same_names, limit=limit))


def _forget(db: sqlite3.Connection, wanted: str) -> None:
    db.execute(
        """DELETE FROM merges WHERE kept IN (SELECT value FROM json_each(?))
            OR gone IN (SELECT value FROM json_each(?))""",
        (wanted, wanted),
    )


def _select(db: sqlite3.Connection, rest: str, values: tuple[str | int, ...]) -> list[MergeRow]:
    # `rest` is always a literal of this module; values are bound.
    rows = db.execute(f"SELECT id, kept, gone, state, at, change FROM merges {rest}", values)  # noqa: S608
    return [
        MergeRow(id_, kept, gone, cast("MergeState", state), from_micros(at), change)
        for id_, kept, gone, state, at, change in rows
    ]


def _same_names(db: sqlite3.Connection, limit: int) -> list[SameName]:
    rows = db.execute(
        """SELECT x.uuid, y.uuid, min(a.name), min(max(a.is_alias, b.is_alias)) AS by_alias
            FROM mirror_name AS a JOIN mirror_name AS b ON b.folded = a.folded AND b.node != a.node
            JOIN mirror_node AS x ON x.id = a.node JOIN mirror_node AS y ON y.id = b.node
            WHERE (x.created_at, x.uuid) < (y.created_at, y.uuid)
            GROUP BY x.uuid, y.uuid ORDER BY by_alias, min(a.name), x.uuid, y.uuid LIMIT ?""",
        (limit,),
    )
    return [SameName(first, second, name, bool(by_alias)) for first, second, name, by_alias in rows]
