"""Reads the graph that an earlier PPS stored in LadybugDB, for the upgrade.

Only this module imports ``ladybug``. The file is opened read-only with its log; neither changes.
Properties of LadybugDB 0.22 that shape this code (measured):

- A prepared statement keeps the memory of its last run until its connection is closed, so each page
    has a connection of its own.
- ``UNWIND $uuids AS id MATCH (n:T {uuid: id})`` is a look-up by primary key; ``WHERE n.uuid >
    $after`` is a scan. So the uuids of a table are read first, and the rows by uuid. A pattern with
    an edge always scans its first table, so it is read by ranges of uuids.
- A log with an incomplete last write (a crash, a full disk) is rejected, although it holds every
    acknowledged write.
- While one thread imports the library, a second thread gets an ImportError.
- A fact is a node between its two ends. Facts written by stock Graphiti have no uuids of their ends
    in their columns.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from pps.core.errors import (
    ConfigError,
    IsolationError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)
from pps.core.ids import is_group, stable_id
from pps.core.values import Vector
from pps.graph.mapping import (
    episode_of,
    fact_of,
    foreign_attributes,
    mention_id,
    node_of,
    vector_of,
)
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graphiti_tables import GraphitiCommunity, GraphitiLink, GraphitiSaga, LinkTable
from pps.store.sql_graph_reader import ROWS_IN_A_PAGE, Mention, OldPage

_log = logging.getLogger(__name__)
_Row: TypeAlias = dict[str, Any]

_NODE_TABLES: Final = ("Entity", "RelatesToNode_", "Episodic", "Community", "Saga")
_COLUMNS: Final = {
    "Entity": ("uuid", "name", "labels", "created_at", "summary", "attributes", "name_embedding"),
    "RelatesToNode_": (
        *("uuid", "source_node_uuid", "target_node_uuid", "name", "fact", "created_at", "episodes"),
        *("valid_at", "invalid_at", "expired_at", "reference_time", "attributes", "fact_embedding"),
    ),
    "Episodic": (
        *("uuid", "name", "content", "source", "source_description", "valid_at", "created_at"),
        "entity_edges",
    ),
    "Community": ("uuid", "name", "summary", "created_at", "name_embedding"),
    "Saga": (
        *("uuid", "name", "summary", "created_at", "first_episode_uuid", "last_episode_uuid"),
        *("last_summarized_at", "last_summarized_episode_valid_at"),
    ),
}
"""Table → the columns that are read; a column that the file does not have yet is read as null."""
_LINKS: Final[tuple[tuple[LinkTable, str, str, str], ...]] = (
    ("member", "Community", "HAS_MEMBER", "Entity"),
    ("saga_episode", "Saga", "HAS_EPISODE", "Episodic"),
    ("episode_order", "Episodic", "NEXT_EPISODE", "Episodic"),
)
"""Table of links in ``memory.db``, and its pattern in LadybugDB: source, edge, target."""
_ENDS = (
    "MATCH (s:Entity)-[:RELATES_TO]->(f:RelatesToNode_)-[:RELATES_TO]->(o:Entity) "
    "WHERE f.source_node_uuid IS NULL OR f.target_node_uuid IS NULL "
    "RETURN f.uuid AS fact, s.uuid AS subject, o.uuid AS object"
)
_MIB = 2**20
_BUFFER_POOL_BYTES = 1024 * _MIB
"""An upper bound; nothing is reserved, and a page needs a few MB."""
_ADDRESS_SPACE_BYTES = 64 * 1024 * _MIB
_NOT_THE_LOG = (
    "Could not set lock",
    "IO exception",
    "not a valid Lbug database",
    "cannot be a directory",
)
# Errors of opening and reading damaged files. A damaged log may hold an absurd length of a string,
# for which allocation fails.
_UNREADABLE = (RuntimeError, ValueError, MemoryError, OverflowError, LookupError)
_LOADING = threading.Lock()


class LadybugGraph:
    """An open ``graph.lbug``; see ``open_ladybug_graph``."""

    def __init__(self, ladybug: Any, database: Any, group: str, path: Path) -> None:
        self._ladybug = ladybug
        self._database = database
        self._group = group
        self._path = path
        self._tables = {
            str(row["name"]): str(row["type"]) for row in self._rows("CALL show_tables() RETURN *")
        }

    def check_group(self) -> None:
        strangers: set[Any] = set()
        for table in _NODE_TABLES:
            if table in self._tables:
                rows = self._rows(
                    f"MATCH (n:{table}) WHERE n.group_id IS NULL OR n.group_id <> $group_id "
                    "RETURN DISTINCT n.group_id AS stranger LIMIT 10",
                    group_id=self._group,
                )
                strangers.update(row["stranger"] for row in rows)
        if not strangers:
            return
        if any(isinstance(stranger, str) and is_group(stranger) for stranger in strangers):
            raise IsolationError(
                f"{self._path} holds another entity's data; "
                "check that the right data folder is mounted"
            )
        raise StoreError(f"{self._path} is damaged: its rows name no valid owner")

    def pages(self) -> Iterator[OldPage]:
        """Yield all rows of the file, up to ``ROWS_IN_A_PAGE`` of a table at a time.

        Errors as ``open_ladybug_graph``.
        """
        yield from self._node_pages()
        yield from self._fact_pages()
        yield from self._episode_pages()
        yield from self._mention_pages()
        yield from self._graphiti_pages()

    def _node_pages(self) -> Iterator[OldPage]:
        for total, rows in self._table_pages("Entity"):
            nodes = [_stored_node(row) for row in rows]
            yield OldPage("nodes", total, nodes=nodes)

    def _fact_pages(self) -> Iterator[OldPage]:
        ends = {
            row["fact"]: (row["subject"], row["object"])
            for row in (self._rows(_ENDS) if "RelatesToNode_" in self._tables else ())
        }
        for total, rows in self._table_pages("RelatesToNode_"):
            for row in rows:
                if row["uuid"] in ends:
                    row["source_node_uuid"], row["target_node_uuid"] = ends[row["uuid"]]
            facts = [
                StoredFact(
                    fact_of(row), foreign_attributes(row["attributes"]), row["reference_time"]
                )
                for row in rows
            ]
            yield OldPage("facts", total, facts=facts)

    def _episode_pages(self) -> Iterator[OldPage]:
        for total, rows in self._table_pages("Episodic"):
            episodes = [StoredEpisode(episode_of(row), str(row["source"])) for row in rows]
            yield OldPage("episodes", total, episodes=episodes)

    def _mention_pages(self) -> Iterator[OldPage]:
        for total, rows in self._edge_pages("Episodic", "MENTIONS", "Entity"):
            mentions: dict[tuple[str, str], Mention] = {}
            for row in rows:
                mention = self._mention(row)
                pair = mention[:2]
                if pair not in mentions or (
                    self._is_from_graphiti(mention) and not self._is_from_graphiti(mentions[pair])
                ):
                    mentions[pair] = mention
            yield OldPage("mentions", total, mentions=[*mentions.values()])

    def _mention(self, row: _Row) -> Mention:
        episode = str(row["source"])
        node = str(row["target"])
        uuid = str(row["uuid"] or mention_id(self._group, episode, node))
        return episode, node, uuid, _moment(row["created_at"])

    def _is_from_graphiti(self, mention: Mention) -> bool:
        """Return whether Graphiti's pipeline made a mention; it is preferred to one of PPS."""
        episode, node, uuid, _ = mention
        return uuid != mention_id(self._group, episode, node)

    def _graphiti_pages(self) -> Iterator[OldPage]:
        for total, rows in self._table_pages("Community"):
            communities = [
                GraphitiCommunity(
                    str(row["uuid"]),
                    str(row["name"] or ""),
                    str(row["summary"] or ""),
                    _moment(row["created_at"]),
                )
                for row in rows
            ]
            vectors = _vectors(rows)
            yield OldPage("communities", total, communities=communities, vectors=vectors)
        for total, rows in self._table_pages("Saga"):
            yield OldPage("sagas", total, sagas=[_saga(row) for row in rows])
        for table, source, edge, target in _LINKS:
            seen: set[str] = set()
            for total, rows in self._edge_pages(source, edge, target):
                links = [self._link(table, row) for row in rows]
                fresh = {_link_key(table, link): link for link in reversed(links)}
                new_links = [link for key, link in fresh.items() if key not in seen]
                seen.update(fresh)
                yield OldPage("links", total, links={table: new_links})

    def _link(self, table: LinkTable, row: _Row) -> GraphitiLink:
        source = str(row["source"])
        target = str(row["target"])
        uuid = str(row["uuid"] or stable_id(self._group, table, source, target))
        return GraphitiLink(uuid, source, target, _moment(row["created_at"]))

    def _table_pages(self, table: str) -> Iterator[tuple[int, list[_Row]]]:
        """Yield (number of rows of the table, rows of the page) with all of ``_COLUMNS``."""
        if table not in self._tables:
            return
        uuids = self._uuids(table)
        known = {str(row["name"]) for row in self._rows(f"CALL table_info('{table}') RETURN *")}
        columns = ", ".join(
            f"{f'n.{name}' if name in known else 'NULL'} AS {name}" for name in _COLUMNS[table]
        )
        statement = f"UNWIND $uuids AS id MATCH (n:{table} {{uuid: id}}) RETURN {columns}"
        for at in range(0, len(uuids), ROWS_IN_A_PAGE):
            yield len(uuids), self._rows(statement, uuids=uuids[at : at + ROWS_IN_A_PAGE])

    def _edge_pages(self, source: str, edge: str, target: str) -> Iterator[tuple[int, list[_Row]]]:
        """Yield (number of edges, edges of the page); a page is all edges of a range of sources."""
        if not {source, edge, target} <= self._tables.keys():
            return
        pattern = f"MATCH (a:{source})-[e:{edge}]->(b:{target})"
        total = int(self._rows(f"{pattern} RETURN count(*) AS number")[0]["number"])
        if not total:
            return
        statement = (
            f"{pattern} WHERE a.uuid >= $first AND a.uuid <= $last "
            "RETURN a.uuid AS source, b.uuid AS target, e.uuid AS uuid, e.created_at AS created_at"
        )
        uuids = self._uuids(source)
        for at in range(0, len(uuids), ROWS_IN_A_PAGE):
            page = uuids[at : at + ROWS_IN_A_PAGE]
            yield total, self._rows(statement, first=page[0], last=page[-1])

    def _uuids(self, table: str) -> list[str]:
        rows = self._rows(f"MATCH (n:{table}) RETURN n.uuid AS uuid ORDER BY uuid")
        return [str(row["uuid"]) for row in rows]

    def _rows(self, statement: str, **parameters: Any) -> list[_Row]:
        try:
            connection = self._ladybug.Connection(self._database)
            try:
                result = connection.execute(statement, parameters)
                names = cast("list[str]", result.get_column_names())
                rows = [dict(zip(names, map(_aware, row), strict=True)) for row in result]
                result.close()
                return rows
            finally:
                connection.close()
        except _UNREADABLE as error:
            # The error's text may quote memory text: only its kind is repeated.
            kind = str(error).partition(":")[0][:60] if ":" in str(error) else type(error).__name__
            raise StoreError(f"{self._path} cannot be read: it is damaged ({kind})") from error


@contextlib.contextmanager
def open_ladybug_graph(path: Path, group: str) -> Generator[LadybugGraph]:
    """Open a ``graph.lbug`` for reading; neither it nor its log is changed. Blocks.

    Raises:
        ConfigError: The extra ``migrate`` is not installed.
        StoreConflict: Another process has the file open.
        StoreUnavailable: The file cannot be opened.
        StoreError: The file is damaged or not a graph of LadybugDB; also raised by later reads.
    """
    try:
        with _LOADING:
            import ladybug
            from ladybug._backend import get_pybind_module

            get_pybind_module()
    except ImportError:
        raise ConfigError(
            f"{path}: reading it needs the extra `migrate`: "
            "run `scripts/setup migrate` or `pip install 'pps[migrate]'`"
        ) from None
    database = _opened(ladybug, path)
    try:
        yield LadybugGraph(ladybug, database, group, path)
    finally:
        database.close()


def _opened(ladybug: Any, path: Path) -> Any:
    try:
        return _database(ladybug, path, strict=True)
    except _UNREADABLE as error:
        log = path.with_name(path.name + ".wal")
        if any(text in str(error) for text in _NOT_THE_LOG) or not log.exists():
            raise _not_opened(error, path) from error
    try:
        database = _database(ladybug, path, strict=False)
    except _UNREADABLE as error:
        raise _not_opened(error, path) from error
    _log.warning("the end of the log of %s is damaged: it was read up to there", path)
    return database


def _database(ladybug: Any, path: Path, *, strict: bool) -> Any:
    return ladybug.Database(
        path,
        read_only=True,
        buffer_pool_size=_BUFFER_POOL_BYTES,
        max_num_threads=2,
        max_db_size=_ADDRESS_SPACE_BYTES,
        throw_on_wal_replay_failure=strict,
    )


def _not_opened(error: Exception, path: Path) -> StoreError:
    text = str(error)
    if "Could not set lock" in text:
        return StoreConflict(f"{path} is open already, in another process")
    if "IO exception" in text:
        reason = text.partition(":")[2].strip().splitlines()[0][:200]
        return StoreUnavailable(f"{path} cannot be opened: {reason}")
    kind = text.partition(":")[0][:100] or type(error).__name__
    return StoreError(f"{path} cannot be opened: it is damaged or no graph of PPS ({kind})")


def _stored_node(row: _Row) -> StoredNode:
    node = node_of(row)
    graphiti = foreign_attributes(row["attributes"])
    labels = tuple(str(label) for label in row["labels"] or ())
    return StoredNode(node, labels, graphiti) if labels else StoredNode.of(node, graphiti)


def _saga(row: _Row) -> GraphitiSaga:
    return GraphitiSaga(
        uuid=str(row["uuid"]),
        name=str(row["name"] or ""),
        summary=str(row["summary"] or ""),
        first_episode=row["first_episode_uuid"],
        last_episode=row["last_episode_uuid"],
        created_at=_moment(row["created_at"]),
        summarized_at=row["last_summarized_at"],
        summarized_valid_at=row["last_summarized_episode_valid_at"],
    )


def _link_key(table: LinkTable, link: GraphitiLink) -> str:
    """Return the unique key of a link in its table."""
    return f"{link.source} {link.target}" if table == "member" else link.uuid


def _vectors(rows: Iterable[Mapping[str, Any]]) -> dict[str, Vector]:
    vectors: dict[str, Vector] = {}
    for row in rows:
        vector = vector_of(cast("Sequence[float] | None", row["name_embedding"]))
        if vector is not None and len(vector):
            vectors[str(row["uuid"])] = vector
    return vectors


def _aware(value: Any) -> Any:
    """Attach UTC to a naive time: LadybugDB returns times in UTC without a zone."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _moment(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise StoreError("a stored row has no time where one is required")
    return value
