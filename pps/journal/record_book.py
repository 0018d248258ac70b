"""Records: which node a turn is the source of, and which titles turns link to; and merges of nodes, to be undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias

from pps.core.errors import InvalidRequest
from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros, micros
from pps.core.values import Turn
from pps.journal import graph_queries, turns
from pps.journal.links import node_times
from pps.journal.store import Store, reads

MergeState: TypeAlias = Literal["applying", "applied", "undoing", "undone"]


def put_records(
    db: Connection, nodes: Mapping[str, str], links: Mapping[str, Sequence[str]]
) -> None:
    """Note turn → record, and turn → the titles that it links to; those of a turn replace its earlier ones.

    A turn that was forgotten meanwhile is passed over; a title need not exist yet.
    """
    pairs = [(node, turn) for turn, node in nodes.items()]
    db.executemany("DELETE FROM records WHERE node = ? AND turn <> ?", pairs)
    db.executemany(
        """INSERT INTO records (turn, node) SELECT uuid, ? FROM turns WHERE uuid = ?
            ON CONFLICT (turn) DO UPDATE SET node = excluded.node""",
        pairs,
    )
    db.execute(f"DELETE FROM turn_links WHERE turn IN {LIST}", (listed(links),))  # noqa: S608 - literals
    db.executemany(
        """INSERT INTO turn_links (folded, turn) SELECT ?, uuid FROM turns WHERE uuid = ?
            ON CONFLICT DO NOTHING""",
        [(fold(title), turn) for turn, titles in links.items() for title in titles],
    )


def move_record(db: Connection, old: str, new: str) -> None:
    """Let a record be another node."""
    db.execute("UPDATE records SET node = ? WHERE node = ?", (new, old))


def forget_merges(db: Connection, nodes: Sequence[str]) -> None:
    """Erase the merges of nodes that are forgotten: they hold names and summaries."""
    wanted = listed(nodes)
    statement = f"DELETE FROM merges WHERE kept IN {LIST} OR gone IN {LIST}"  # noqa: S608 - literals
    db.execute(statement, (wanted, wanted))


class RecordBook(Store):
    """Records and links of one ``memory.db``."""

    times = reads(node_times)

    async def of_turns(self, turns: Sequence[str]) -> dict[str, str]:
        """Return turn → its record, for those that have one."""
        query = f"SELECT turn, node FROM records WHERE turn IN {LIST}"  # noqa: S608 - literals
        return dict(await self.select(query, listed(turns)))

    async def plain_nodes_named(self, titles: Iterable[str]) -> dict[str, str]:
        """Return folded title → the plain node (a ``Thing`` that is no record) that has it as a name."""

        def look(db: Connection) -> dict[str, str]:
            named = graph_queries.resolve(db, [*titles])
            query = (
                f"SELECT uuid FROM node WHERE uuid IN {LIST} AND kind = 'Thing'"  # noqa: S608 - literals
                " AND uuid NOT IN (SELECT node FROM records WHERE node IS NOT NULL)"
            )
            plain = {uuid for (uuid,) in db.execute(query, (listed(named.values()),))}
            return {title: node for title, node in named.items() if node in plain}

        return await self.read(look)

    async def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return record → the turn that it comes from, for those nodes that are records."""
        return await self.look_up(partial(_sources, nodes=nodes), len(nodes))

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn whose text it is, for those nodes that are records."""

        def work(db: Connection) -> dict[str, Turn]:
            sources = _sources(db, nodes)
            found = {turn.uuid: turn for turn in turns.get_many(db, list(sources.values()))}
            return {node: found[turn] for node, turn in sources.items() if turn in found}

        return await self.look_up(work, len(nodes))

    async def nodes(self) -> set[str]:
        """Return every node that is a record."""
        return {node for (node,) in await self.select("SELECT node FROM records")}

    async def linking(self, folded: Sequence[str]) -> list[tuple[str, str]]:
        """Return (folded title, turn) for the turns that link to any of these folded titles, oldest first."""
        query = f"""SELECT l.folded, l.turn FROM turn_links AS l JOIN turns AS t ON t.uuid = l.turn
            WHERE l.folded IN {LIST} ORDER BY t.seq"""  # noqa: S608 - literals
        return await self.select(query, listed(folded))


def _sources(db: Connection, nodes: Sequence[str]) -> dict[str, str]:
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
        """Return a merge by its id or the beginning of it, or None when this entity has none of that id."""
        found = await self._rows(
            "WHERE id >= ? AND id < ? || 'g' LIMIT 2", merge, merge
        )  # 'g' follows all of an id
        if len(found) > 1:
            raise InvalidRequest("id", f"{merge!r} begins more than one id: give more of it")
        return found[0] if found else None

    async def unfinished(self) -> list[MergeRow]:
        """Return merges that a crash cut short, oldest first."""
        return await self._rows("WHERE state IN ('applying', 'undoing') ORDER BY at")

    async def same_names(self, limit: int) -> list[SameName]:
        """Return pairs of nodes with the same folded name, then by alias; the older node first."""
        statement = """SELECT x.uuid, y.uuid, min(a.name), min(CASE WHEN a.is_alias > b.is_alias THEN a.is_alias ELSE b.is_alias END) AS by_alias
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
            f"SELECT id, kept, gone, state, at, change FROM merges {rest}",  # noqa: S608 - literals of this class
            *values,
        )
        return [
            MergeRow(id_, kept, gone, state, from_micros(at), of)
            for id_, kept, gone, state, at, of in rows
        ]
