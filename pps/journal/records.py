"""Records: which node a turn is the source of, and which titles turns link to, whether they exist yet or not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from pps.core.sql import LIST, listed
from pps.core.text import fold
from pps.core.values import Turn
from pps.journal import turns
from pps.journal.links import node_times
from pps.journal.reader import Readers
from pps.journal.writer import Writer


def put(connection: sqlite3.Connection, nodes: Mapping[str, str]) -> None:
    """Note turn → record; a turn that was forgotten meanwhile is passed over."""
    connection.executemany(
        "INSERT OR REPLACE INTO records (turn, node) SELECT uuid, ? FROM turns WHERE uuid = ?",
        [(node, turn) for turn, node in nodes.items()],
    )


def of_turns(connection: sqlite3.Connection, turns: Sequence[str]) -> dict[str, str]:
    """Return turn → its record, for those that have one."""
    rows = connection.execute(
        f"SELECT turn, node FROM records WHERE turn IN {LIST}",  # noqa: S608 - literals
        (listed(turns),),
    )
    return dict(rows.fetchall())


def of_nodes(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, str]:
    """Return record → the turn that it comes from, for those nodes that are records."""
    rows = connection.execute(
        f"SELECT node, turn FROM records WHERE node IN {LIST}",  # noqa: S608 - literals
        (listed(nodes),),
    )
    return dict(rows.fetchall())


def texts(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, Turn]:
    """Return record → the turn whose text it is, for those nodes that are records."""
    sources = of_nodes(connection, nodes)
    found = {turn.uuid: turn for turn in turns.get_many(connection, list(sources.values()))}
    return {node: found[turn] for node, turn in sources.items() if turn in found}


def all_nodes(connection: sqlite3.Connection) -> set[str]:
    """Return every node that is a record."""
    return {node for (node,) in connection.execute("SELECT node FROM records")}


def move(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Let a record be another node."""
    connection.execute("UPDATE records SET node = ? WHERE node = ?", (new, old))


def put_links(connection: sqlite3.Connection, links: Mapping[str, Iterable[str]]) -> None:
    """Note turn → the titles that it links to, in place of those it linked to before."""
    connection.execute(f"DELETE FROM turn_links WHERE turn IN {LIST}", (listed(links),))  # noqa: S608 - literals
    connection.executemany(
        "INSERT OR IGNORE INTO turn_links (folded, turn) SELECT ?, uuid FROM turns WHERE uuid = ?",
        [(fold(title), turn) for turn, titles in links.items() for title in titles],
    )


def linking(connection: sqlite3.Connection, folded: Sequence[str]) -> list[tuple[str, str]]:
    """Return (folded title, turn) for the turns that link to any of these titles, oldest first."""
    rows = connection.execute(
        f"""SELECT l.folded, l.turn FROM turn_links AS l JOIN turns AS t ON t.uuid = l.turn
            WHERE l.folded IN {LIST} ORDER BY t.seq""",  # noqa: S608 - literals
        (listed(folded),),
    )
    return rows.fetchall()


class RecordBook:
    """Records and links of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, nodes: Mapping[str, str], links: Mapping[str, Sequence[str]]) -> None:
        """Note turn → record, and turn → the titles that it links to; those of a turn replace its earlier ones."""

        def work(db: sqlite3.Connection) -> None:
            put(db, nodes)
            put_links(db, links)

        await self._writer.write(work)

    async def move(self, old: str, new: str) -> None:
        """Let a record be another node."""
        await self._writer.write(partial(move, old=old, new=new))

    async def of_turns(self, turns: Sequence[str]) -> dict[str, str]:
        """Return turn → its record, for those that have one."""
        return await self._readers.read(partial(of_turns, turns=turns))

    async def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return record → the turn that it comes from, for those nodes that are records."""
        return await self._readers.read(partial(of_nodes, nodes=nodes))

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn whose text it is, for those nodes that are records."""
        return await self._readers.look_up(partial(texts, nodes=nodes), len(nodes))

    async def times(self, nodes: Sequence[str]) -> dict[str, datetime]:
        """Return node → when what it tells of happened: a record's text, else the latest turn that speaks of it."""
        return await self._readers.read(partial(node_times, nodes=nodes))

    async def nodes(self) -> set[str]:
        """Return every node that is a record."""
        return await self._readers.read(all_nodes)

    async def linking(self, folded: Sequence[str]) -> list[tuple[str, str]]:
        """Return (folded title, turn) for the turns that link to any of these folded titles, oldest first."""
        return await self._readers.read(partial(linking, folded=folded))
