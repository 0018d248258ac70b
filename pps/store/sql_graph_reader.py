"""Reads a ``graph.db``, which had the graph's SQL tables before ``memory.db``, for upgrades."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from pps.core.errors import IsolationError, StoreError
from pps.core.ids import is_group
from pps.core.time import from_micros
from pps.core.values import Vector
from pps.journal.db import APPLICATION_ID, mapping_errors, open_untouched
from pps.store.graph_rows import (
    SELECT_EPISODE,
    SELECT_FACT,
    SELECT_NODE,
    StoredEpisode,
    StoredFact,
    StoredNode,
    vector_from_blob,
)
from pps.store.graphiti_tables import (
    COMMUNITY_COLUMNS,
    LINK_COLUMNS,
    SAGA_COLUMNS,
    GraphitiCommunity,
    GraphitiLink,
    GraphitiSaga,
)
from pps.store.old_graph_rows import ROWS_IN_A_PAGE, OldPage
from pps.store.sql_session import Row, SqlSession

_T = TypeVar("_T")
_VERSION = 1
_OWNED: Final = ("node", "fact", "episode", "community", "saga")


class SqlGraph:
    """An open ``graph.db``; see ``open_sql_graph``."""

    def __init__(self, connection: sqlite3.Connection, group: str, path: Path) -> None:
        self._session = SqlSession(connection, group)
        self._group = group
        self._path = path

    def check_group(self) -> None:
        owner = self._session.first("SELECT value FROM meta WHERE key = 'group'")
        strangers = {str(owner[0])} if owner and owner[0] != self._group else set[str]()
        for table in _OWNED:
            rows = self._session.rows(
                f"SELECT DISTINCT grp FROM {table} WHERE grp <> :grp LIMIT 10"
            )
            strangers.update(str(row[0]) for row in rows)
        if any(is_group(stranger) for stranger in strangers):
            raise IsolationError(
                f"{self._path} holds another entity's data; "
                "check that the right data folder is mounted"
            )
        if strangers:
            raise StoreError(f"{self._path} is damaged: its rows name no valid owner")

    def pages(self) -> Iterator[OldPage]:
        """Yield all rows of the file, up to ``ROWS_IN_A_PAGE`` of a table at a time."""
        for total, nodes in self._pages("node", SELECT_NODE, StoredNode.from_row):
            yield OldPage("nodes", total, nodes=nodes)
        for total, facts in self._pages("fact", SELECT_FACT, StoredFact.from_row):
            yield OldPage("facts", total, facts=facts)
        for total, episodes in self._pages("episode", SELECT_EPISODE, StoredEpisode.from_row):
            yield OldPage("episodes", total, episodes=episodes)
        select = "SELECT uuid, episode, node, created_at FROM mention"
        for total, rows in self._pages("mention", select, tuple):
            mentions = [
                (episode, node, uuid, from_micros(created_at))
                for uuid, episode, node, created_at in rows
            ]
            yield OldPage("mentions", total, mentions=mentions)
        select = f"SELECT {COMMUNITY_COLUMNS} FROM community"
        for total, communities in self._pages("community", select, GraphitiCommunity.from_row):
            vectors = self._community_vectors([community.uuid for community in communities])
            yield OldPage("communities", total, communities=communities, vectors=vectors)
        select = f"SELECT {SAGA_COLUMNS} FROM saga"
        for total, sagas in self._pages("saga", select, GraphitiSaga.from_row):
            yield OldPage("sagas", total, sagas=sagas)
        for table, columns in LINK_COLUMNS.items():
            select = f"SELECT {columns} FROM {table}"
            for total, links in self._pages(table, select, GraphitiLink.from_row):
                yield OldPage("links", total, links={table: links})

    def _pages(
        self, table: str, select: str, make: Callable[[Row], _T]
    ) -> Iterator[tuple[int, list[_T]]]:
        """Yield (number of rows of the table, rows of the page), by uuid, the first column."""
        (total,) = self._session.first(f"SELECT count(*) FROM {table} WHERE grp = :grp") or (0,)
        statement = f"{select} WHERE uuid > :after AND grp = :grp ORDER BY uuid LIMIT :most"
        after = ""
        while True:
            rows = self._session.rows(statement, after=after, most=ROWS_IN_A_PAGE)
            if not rows:
                return
            yield total, [make(row) for row in rows]
            after = rows[-1][0]

    def _community_vectors(self, uuids: list[str]) -> dict[str, Vector]:
        rows = self._session.rows(
            "SELECT uuid, vector FROM community WHERE uuid IN EACH(:uuids) AND grp = :grp "
            "AND vector IS NOT NULL",
            uuids=uuids,
        )
        return {uuid: vector_from_blob(blob) for uuid, blob in rows}


@contextlib.contextmanager
def open_sql_graph(path: Path, group: str) -> Generator[SqlGraph]:
    """Open a ``graph.db`` for reading. Blocks.

    Raises:
        StoreError: The file is damaged, or not a graph of PPS.
        StoreConflict, StoreUnavailable: The file is locked, or cannot be opened.
    """
    with mapping_errors(path), closing(open_untouched(path)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if (application, version) != (APPLICATION_ID, _VERSION):
            raise StoreError(f"{path} is not a graph of PPS, or of an unknown version")
        connection.execute("BEGIN")
        yield SqlGraph(connection, group, path)
