"""Records: which node a turn is the source of, and which titles turns link to; and merges of nodes, to be undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias, cast

from pps.core.errors import InvalidRequest
from pps.core.sql import LIST, listed
from pps.core.text import fold
from pps.core.time import from_micros, micros
from pps.core.values import Turn
from pps.journal import turns
from pps.journal.links import node_times
from pps.journal.reader import Readers
from pps.journal.writer import Writer

MergeState: TypeAlias = Literal["applying", "applied", "undoing", "undone"]


class RecordBook:
    """Records and links of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, nodes: Mapping[str, str], links: Mapping[str, Sequence[str]]) -> None:
        """Note turn → record, and turn → the titles that it links to; those of a turn replace its earlier ones.

        A turn that was forgotten meanwhile is passed over; a title need not exist yet.
        """

        def work(db: sqlite3.Connection) -> None:
            pairs = [(node, turn) for turn, node in nodes.items()]
            db.executemany("DELETE FROM records WHERE node = ? AND turn <> ?", pairs)
            db.executemany(
                """INSERT INTO records (turn, node) SELECT uuid, ? FROM turns WHERE uuid = ?
                    ON CONFLICT (turn) DO UPDATE SET node = excluded.node""",
                pairs,
            )
            db.execute(f"DELETE FROM turn_links WHERE turn IN {LIST}", (listed(links),))  # noqa: S608 - literals
            db.executemany(
                "INSERT OR IGNORE INTO turn_links (folded, turn) SELECT ?, uuid FROM turns WHERE uuid = ?",
                [(fold(title), turn) for turn, titles in links.items() for title in titles],
            )

        await self._writer.write(work)

    async def move(self, old: str, new: str) -> None:
        """Let a record be another node."""
        await self._writer.write(lambda db: db.execute("UPDATE records SET node = ? WHERE node = ?", (new, old)))

    async def of_turns(self, turns: Sequence[str]) -> dict[str, str]:
        """Return turn → its record, for those that have one."""
        query = f"SELECT turn, node FROM records WHERE turn IN {LIST}"  # noqa: S608 - literals
        return await self._readers.read(lambda db: dict(db.execute(query, (listed(turns),)).fetchall()))

    async def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return record → the turn that it comes from, for those nodes that are records."""
        return await self._readers.read(partial(_sources, nodes=nodes))

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn whose text it is, for those nodes that are records."""

        def work(db: sqlite3.Connection) -> dict[str, Turn]:
            sources = _sources(db, nodes)
            found = {turn.uuid: turn for turn in turns.get_many(db, list(sources.values()))}
            return {node: found[turn] for node, turn in sources.items() if turn in found}

        return await self._readers.look_up(work, len(nodes))

    async def times(self, nodes: Sequence[str]) -> dict[str, datetime]:
        """Return node → when what it tells of happened: a record's text, else the latest turn that speaks of it."""
        return await self._readers.read(partial(node_times, nodes=nodes))

    async def nodes(self) -> set[str]:
        """Return every node that is a record."""
        return await self._readers.read(lambda db: {node for (node,) in db.execute("SELECT node FROM records")})

    async def linking(self, folded: Sequence[str]) -> list[tuple[str, str]]:
        """Return (folded title, turn) for the turns that link to any of these folded titles, oldest first."""
        query = f"""SELECT l.folded, l.turn FROM turn_links AS l JOIN turns AS t ON t.uuid = l.turn
            WHERE l.folded IN {LIST} ORDER BY t.seq"""  # noqa: S608 - literals
        return await self._readers.read(lambda db: db.execute(query, (listed(folded),)).fetchall())


def _sources(db: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, str]:
    query = f"SELECT node, turn FROM records WHERE node IN {LIST}"  # noqa: S608 - literals
    return dict(db.execute(query, (listed(nodes),)).fetchall())


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
