"""Pages of rows of an old graph file, and the reader of ``graph.db``, for upgrades.

A ``graph.db`` had the graph's SQL tables before ``memory.db``. Readers of the other old format
(``store.ladybug_reader``) yield the same pages.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

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
    LinkTable,
)
from pps.store.sql_session import Row, SqlSession

ROWS_IN_A_PAGE: Final = 1_000
Mention: TypeAlias = tuple[str, str, str, datetime]
"""Uuids of the episode, the node and the edge, and the time of the edge's creation."""
Section: TypeAlias = Literal[
    "nodes", "facts", "episodes", "mentions", "communities", "sagas", "links"
]
_T = TypeVar("_T")
_VERSION = 1
_OWNED: Final = ("node", "fact", "episode", "community", "saga")


@dataclass(frozen=True, slots=True)
class OldPage:
    """A page of rows of one section of a graph; the lists of other sections are empty.

    Attributes:
        total: Number of rows in the section, as far as known before they are read.
        vectors: Uuid → vector of the page's communities. Vectors of nodes and facts are in the
            indexes.
    """

    section: Section
    total: int
    nodes: list[StoredNode] = field(default_factory=list[StoredNode])
    facts: list[StoredFact] = field(default_factory=list[StoredFact])
    episodes: list[StoredEpisode] = field(default_factory=list[StoredEpisode])
    mentions: list[Mention] = field(default_factory=list[Mention])
    communities: list[GraphitiCommunity] = field(default_factory=list[GraphitiCommunity])
    sagas: list[GraphitiSaga] = field(default_factory=list[GraphitiSaga])
    links: dict[LinkTable, list[GraphitiLink]] = field(
        default_factory=dict["LinkTable", "list[GraphitiLink]"]
    )
    vectors: dict[str, Vector] = field(default_factory=dict[str, Vector])

    @property
    def rows(self) -> int:
        """The number of rows, without vectors."""
        links = sum(len(rows) for rows in self.links.values())
        lists = (self.nodes, self.facts, self.episodes, self.mentions, self.communities, self.sagas)
        return links + sum(len(rows) for rows in lists)


class OldGraph(Protocol):
    """An open graph file of an earlier PPS, bound to one group; it is read only."""

    def check_group(self) -> None:
        """Raise IsolationError for a row of another group, StoreError for an invalid group."""
        ...

    def pages(self) -> Iterator[OldPage]:
        """Yield all rows of the file: nodes, facts and episodes before links between them."""
        ...


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
