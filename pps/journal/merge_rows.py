"""Merges of two nodes, stored so that each can be undone, and queries for nodes with one name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.sql import LIST, Connection, listed
from pps.core.time import from_micros, micros
from pps.journal.store import Store

MergeState: TypeAlias = Literal["applying", "applied", "undoing", "undone"]


def forget_merges(db: Connection, nodes: Sequence[str]) -> None:
    """Delete the merges of forgotten nodes: they contain names and summaries."""
    wanted = listed(nodes)
    statement = f"DELETE FROM merges WHERE kept IN {LIST} OR gone IN {LIST}"  # noqa: S608
    db.execute(statement, (wanted, wanted))


@dataclass(frozen=True, slots=True)
class MergeRow:
    """One merge. ``change`` is JSON that only ``ingest.merging`` reads, to undo it."""

    id: str
    kept: str
    gone: str
    state: MergeState
    at: datetime
    change: str


@dataclass(frozen=True, slots=True)
class SameName:
    """Two nodes with the same name; ``by_alias`` if it is an alias of either."""

    first: str
    second: str
    name: str
    by_alias: bool


class Merges(Store):
    """The merges of one ``memory.db``."""

    async def put(self, row: MergeRow) -> None:
        """Store a merge, or its new state."""
        values = (row.id, row.kept, row.gone, row.state, micros(row.at), row.change)
        await self.write(
            lambda db: db.execute(
                """INSERT INTO merges (id, kept, gone, state, at, change) VALUES (?, ?, ?, ?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET kept = excluded.kept, gone = excluded.gone,
                    state = excluded.state, at = excluded.at, change = excluded.change""",
                values,
            )
        )

    async def list(self, limit: int) -> list[MergeRow]:
        """Return the latest merges, newest first."""
        return await self._rows("ORDER BY at DESC, id LIMIT ?", limit)

    async def get(self, merge: str) -> MergeRow | None:
        """Return a merge by its id or a prefix of it; None if there is none.

        Raises:
            InvalidRequest: Several ids have the prefix.
        """
        # Ids are hexadecimal, so every id with the prefix sorts before prefix + 'g'.
        rows = await self._rows("WHERE id >= ? AND id < ? || 'g' LIMIT 2", merge, merge)
        if len(rows) > 1:
            raise InvalidRequest("id", f"{merge!r} begins more than one id: give more of it")
        return rows[0] if rows else None

    async def unfinished(self) -> list[MergeRow]:
        """Return merges that a crash interrupted, oldest first."""
        return await self._rows("WHERE state IN ('applying', 'undoing') ORDER BY at")

    async def same_names(self, limit: int) -> list[SameName]:
        """Return up to ``limit`` pairs of nodes with the same folded name, the older node first.

        Pairs with the same main name come before pairs by an alias.
        """
        statement = """SELECT x.uuid, y.uuid, min(a.name),
                min(CASE WHEN a.is_alias > b.is_alias THEN a.is_alias ELSE b.is_alias END)
                    AS by_alias
            FROM node_name AS a JOIN node_name AS b ON b.folded = a.folded AND b.node != a.node
            JOIN node AS x ON x.uuid = a.node JOIN node AS y ON y.uuid = b.node
            WHERE (x.created_at, x.uuid) < (y.created_at, y.uuid)
            GROUP BY x.uuid, y.uuid ORDER BY by_alias, min(a.name), x.uuid, y.uuid LIMIT ?"""
        rows = await self.select(statement, limit)
        return [
            SameName(first, second, name, bool(by_alias)) for first, second, name, by_alias in rows
        ]

    async def all_names(self) -> list[tuple[str, str]]:
        """Return (node, name) for each name and alias, those of the older node first."""
        statement = """SELECT n.uuid, m.name FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            ORDER BY n.created_at, n.uuid, m.is_alias, m.name"""
        return [(node, name) for node, name in await self.select(statement)]

    async def _rows(self, rest: str, *values: str | int) -> list[MergeRow]:
        # `rest` is always a literal of this class; values are bound.
        rows = await self.select(
            f"SELECT id, kept, gone, state, at, change FROM merges {rest}",  # noqa: S608 - literals
            *values,
        )
        return [
            MergeRow(id_, kept, gone, state, from_micros(at), change)
            for id_, kept, gone, state, at, change in rows
        ]
