"""The graph of one entity on SQL tables.

Each method of the store runs in one transaction. The functions over a ``SqlSession`` are the parts
of larger transactions: Graphiti's pipeline saves episodes, nodes, facts and mentions together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar, Unpack

from pps.core.errors import InvalidRequest, NotFound
from pps.core.text import fold
from pps.core.time import micros, now, utc
from pps.core.values import JSON, Episode, Fact, GraphCounts, Node, Vector
from pps.graph.graph_store import (
    GraphChange,
    GraphStore,
    GraphTimelineOptions,
    Rows,
    as_of_bounds,
)
from pps.graph.mapping import foreign_attributes, in_order, mention_id, parse_cursor
from pps.journal.db import Work, nothing
from pps.store.graph_rows import (
    EPISODE_COLUMNS,
    FACT_COLUMNS,
    NAME_COLUMNS,
    NODE_COLUMNS,
    REPLACE_EPISODE,
    REPLACE_FACT,
    REPLACE_NODE,
    SELECT_EPISODE,
    SELECT_FACT,
    SELECT_NODE,
    StoredEpisode,
    StoredFact,
    StoredNode,
    episode_from_row,
    fact_from_row,
    node_from_row,
)
from pps.store.graph_tables import GraphTables
from pps.store.sql_session import Row, SqlSession, Value

_T = TypeVar("_T")

_MOST_IN_A_PAGE: Final = 100_000
_MOST_IN_A_TIMELINE: Final = 1_000

_NODES = f"{SELECT_NODE} WHERE n.uuid IN EACH(:uuids) AND n.grp = :grp"
_FACTS = f"{SELECT_FACT} WHERE f.uuid IN EACH(:uuids) AND f.grp = :grp"
_EPISODES = f"{SELECT_EPISODE} WHERE e.uuid IN EACH(:uuids) AND e.grp = :grp"
_NODE_PAGE = f"{SELECT_NODE} WHERE n.uuid > :after AND n.grp = :grp ORDER BY n.uuid LIMIT :most"
_FACT_PAGE = f"{SELECT_FACT} WHERE f.uuid > :after AND f.grp = :grp ORDER BY f.uuid LIMIT :most"
_EPISODE_PAGE = (
    f"{SELECT_EPISODE} WHERE e.uuid > :after AND e.grp = :grp ORDER BY e.uuid LIMIT :most"
)
# A UNION of two look-ups by index; with OR, SQLite's planner reads the whole table.
_TOUCHING = (
    "SELECT uuid FROM fact WHERE subject IN EACH(:nodes) AND grp = :grp "
    "UNION SELECT uuid FROM fact WHERE object IN EACH(:nodes) AND grp = :grp"
)
_FACTS_OF_NODES = (
    f"{SELECT_FACT} WHERE f.uuid IN ({_TOUCHING}) AND f.grp = :grp "
    "ORDER BY f.created_at DESC, f.uuid LIMIT :most"
)
_STATED = "SELECT fact FROM support WHERE episode IN EACH(:episodes) AND grp = :grp"
_FACTS_OF_EPISODES = f"{SELECT_FACT} WHERE f.uuid IN ({_STATED}) AND f.grp = :grp ORDER BY f.uuid"
_FACTS_OF_SUBJECTS = (
    f"{SELECT_FACT} WHERE f.subject IN EACH(:subjects) AND f.object IN EACH(:objects) "
    "AND f.grp = :grp ORDER BY f.uuid"
)
_LINKS = (
    "SELECT uuid, subject, object FROM fact WHERE subject IN EACH(:nodes) AND grp = :grp "
    "UNION ALL SELECT uuid, subject, object FROM fact WHERE object IN EACH(:nodes) AND grp = :grp"
)
_MENTIONED = "SELECT episode, node FROM mention WHERE episode IN EACH(:episodes) AND grp = :grp"
_COUNTS = "SELECT COUNT_OF(node), COUNT_OF(fact), COUNT_OF(episode), COUNT_OF(mention)"
_HOLDS = (
    "(f.valid_at IS NULL OR f.valid_at <= :as_of) "
    "AND (f.invalid_at IS NULL OR :as_of_first < f.invalid_at) "
    # Expired without an end in world time: it never held.
    "AND NOT (f.expired_at IS NOT NULL AND f.invalid_at IS NULL)"
)
_JOINS: Final = (
    ("fact", "subject", "node"),
    ("fact", "object", "node"),
    ("mention", "episode", "episode"),
    ("mention", "node", "node"),
    ("support", "fact", "fact"),
    ("member", "community", "community"),
    ("member", "node", "node"),
    ("node_name", "node", "node"),
    ("node_tag", "node", "node"),
    ("saga_episode", "saga", "saga"),
    ("saga_episode", "episode", "episode"),
    ("episode_order", "earlier", "episode"),
    ("episode_order", "later", "episode"),
)
"""Table, column, and the table whose id the column holds."""
_OWNED: Final = ("node", "fact", "episode", "community", "saga")
GRAPH_TABLES: Final = (
    "saga_episode",
    "episode_order",
    "saga",
    "member",
    "community",
    "mention",
    "support",
    "fact",
    "node_name",
    "node_tag",
    "node",
    "episode",
)
"""Every table of the graph, in an order in which they can be emptied."""


class SqlGraphStore(GraphStore):
    """A ``GraphStore`` on the tables of ``memory.db``; its group is the file's.

    It does not store the vectors that are saved with nodes and facts: the vector index has them.
    """

    def __init__(self, file: GraphTables) -> None:
        super().__init__(file.group)
        self._file = file

    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        return in_order(await self._by_uuid(_NODES, uuids, node_from_row), uuids)

    async def facts(self, uuids: Sequence[str]) -> list[Fact]:
        return in_order(await self._by_uuid(_FACTS, uuids, fact_from_row), uuids)

    async def episodes(self, uuids: Sequence[str]) -> list[Episode]:
        return in_order(await self._by_uuid(_EPISODES, uuids, episode_from_row), uuids)

    async def stored_nodes(self, uuids: Sequence[str]) -> list[StoredNode]:
        """Return nodes with Graphiti's own attributes, in the order of the ids.

        ``stored_facts`` and ``stored_episodes`` do the same.
        """
        return in_order(await self._by_uuid(_NODES, uuids, StoredNode.from_row), uuids)

    async def stored_facts(self, uuids: Sequence[str]) -> list[StoredFact]:
        return in_order(await self._by_uuid(_FACTS, uuids, StoredFact.from_row), uuids)

    async def stored_episodes(self, uuids: Sequence[str]) -> list[StoredEpisode]:
        return in_order(await self._by_uuid(_EPISODES, uuids, StoredEpisode.from_row), uuids)

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return await self._file.vectors(("nodes",), uuids)

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return await self._file.vectors(("facts", "past_facts"), uuids)

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        return await self._page(_NODE_PAGE, after, limit, node_from_row)

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        return await self._page(_FACT_PAGE, after, limit, fact_from_row)

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        return await self._page(_EPISODE_PAGE, after, limit, episode_from_row)

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        most = _check_limit(limit, _MOST_IN_A_PAGE)
        if not uuids:
            return []
        return await self._read(_FACTS_OF_NODES, fact_from_row, nodes=uuids, most=most)

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        if not uuids:
            return []
        return await self._read(_FACTS_OF_EPISODES, fact_from_row, episodes=uuids)

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        unique_pairs = set(pairs)
        if not unique_pairs:
            return []
        facts = await self._read(
            _FACTS_OF_SUBJECTS,
            fact_from_row,
            subjects=sorted({subject for subject, _ in unique_pairs}),
            objects=sorted({object_ for _, object_ in unique_pairs}),
        )
        return [fact for fact in facts if (fact.subject, fact.object) in unique_pairs]

    async def timeline(self, **options: Unpack[GraphTimelineOptions]) -> list[Fact]:
        """Return facts by (``valid_at``, uuid): dated facts by their index, then undated facts.

        Bounds of time leave the facts without a time out.
        """
        most = _check_limit(options.get("limit", 100), _MOST_IN_A_TIMELINE)
        conditions, values = _timeline_conditions(options)
        cursor = options.get("cursor", "")
        last_at, last = parse_cursor(cursor) if cursor else (None, "")
        is_bounded = options.get("after") is not None or options.get("before") is not None

        def page(session: SqlSession) -> list[Fact]:
            rows = list[Row]()
            if not cursor or last_at is not None:
                past = (
                    "(f.valid_at, f.uuid) > (:last_at, :last)"
                    if cursor
                    else "f.valid_at IS NOT NULL"
                )
                position = {"last_at": micros(last_at), "last": last} if last_at else {}
                rows = session.rows(
                    f"{SELECT_FACT} WHERE {' AND '.join([past, *conditions])} "
                    "ORDER BY f.valid_at, f.uuid LIMIT :most",
                    most=most,
                    **position,
                    **values,
                )
            if len(rows) < most and not is_bounded:
                rows += session.rows(
                    f"{SELECT_FACT} WHERE f.valid_at IS NULL AND f.uuid > :last "
                    f"AND {' AND '.join(conditions)} ORDER BY f.uuid LIMIT :most",
                    most=most - len(rows),
                    last=last if cursor and last_at is None else "",
                    **values,
                )
            return [fact_from_row(row) for row in rows]

        return await self._file.look_up(page, most)

    async def counts(self) -> GraphCounts:
        (counts,) = await self._read(_COUNTS, lambda row: GraphCounts(*row))
        return counts

    async def foreign_edges(self) -> int:
        """Return the number of references to rows that the group lacks; 0 if only PPS wrote."""

        def count(session: SqlSession) -> int:
            total = 0
            for table, column, referenced in _JOINS:
                statement = (
                    f"SELECT count(*) FROM {table} x LEFT JOIN {referenced} y "
                    f"ON y.uuid = x.{column} AND y.grp = x.grp WHERE y.uuid IS NULL"
                )
                total += int(session.rows(statement)[0][0])
            return total

        return await self._file.read(count)

    async def strangers(self) -> set[bool]:
        """Return for the other groups in the file whether they have the shape of an entity's group.

        Empty when there is no other group.
        """
        has_shape = "grp LIKE 'ent\\_%' ESCAPE '\\' AND length(grp) = 30"
        statement = " UNION ".join(
            f"SELECT DISTINCT {has_shape} FROM {table} WHERE grp <> :grp" for table in _OWNED
        )
        rows = await self._file.read(lambda session: session.rows(statement))
        return {bool(is_group) for (is_group,) in rows}

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        latest = {node.uuid: node for node in nodes}
        if not latest:
            return

        def save(session: SqlSession) -> None:
            attributes = _graphiti_attributes(session, "node", latest)
            put_nodes(
                session,
                [StoredNode.of(node, attributes.get(uuid, {})) for uuid, node in latest.items()],
            )

        await self._file.write(save)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        latest = {fact.uuid: fact for fact in facts}
        if not latest:
            return

        def save(session: SqlSession) -> None:
            attributes = _graphiti_attributes(session, "fact", latest)
            put_facts(
                session,
                [StoredFact(fact, attributes.get(uuid, {})) for uuid, fact in latest.items()],
            )

        await self._file.write(save)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        latest = {episode.uuid: episode for episode in episodes}
        rows = [StoredEpisode(episode, episode.source) for episode in latest.values()]
        if rows:
            await self._file.write(lambda session: put_episodes(session, rows))

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        rows = _mention_rows(self.group, pairs, now())
        if rows:
            await self._file.write(lambda session: put_mentions(session, rows))

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        if pairs:
            await self._file.write(lambda session: part(session, pairs))

    async def apply(
        self,
        change: GraphChange,
        before: Work[object] = nothing,
        after: Work[object] = nothing,
    ) -> None:
        """Write a change in one transaction; ``before`` and ``after`` write other tables in it."""
        nodes = {node.uuid: node for node in change.nodes}
        facts = {fact.uuid: fact for fact in change.facts}
        at = now()

        def work(session: SqlSession) -> None:
            attributes = _graphiti_attributes(session, "node", nodes)
            put_nodes(
                session,
                [StoredNode.of(node, attributes.get(uuid, {})) for uuid, node in nodes.items()],
            )
            attributes = _graphiti_attributes(session, "fact", facts)
            put_facts(
                session,
                [StoredFact(fact, attributes.get(uuid, {})) for uuid, fact in facts.items()],
            )
            part(session, change.parted)
            episodes = [StoredEpisode(episode, episode.source) for episode in change.episodes]
            put_episodes(session, episodes)
            put_mentions(session, _mention_rows(self.group, change.mentions, at))
            delete(session, "fact", change.gone_facts)
            delete(session, "episode", change.gone_episodes)
            delete(session, "node", change.gone_nodes)

        is_deleting = bool(change.gone_facts or change.gone_episodes or change.gone_nodes)
        await self._file.write(work, before=before, after=after, secure=is_deleting)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        return await self._delete("node", uuids)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        return await self._delete("fact", uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        return await self._delete("episode", uuids)

    async def clear(self) -> None:
        await self._file.write(clear, secure=True)

    async def _has(self, node: str) -> bool:
        statement = "SELECT 1 FROM node WHERE uuid = :uuid AND grp = :grp"
        return bool(await self._file.look_up(lambda s: s.rows(statement, uuid=node), 1))

    async def _links(self, uuids: Sequence[str]) -> Rows:
        names = ("fact", "subject", "object")
        return await self._read(_LINKS, lambda row: dict(zip(names, row, strict=True)), nodes=uuids)

    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        names = ("episode", "node")
        return await self._read(
            _MENTIONED, lambda row: dict(zip(names, row, strict=True)), episodes=episodes
        )

    async def _delete(self, table: str, uuids: Sequence[str]) -> int:
        if not uuids:
            return 0
        return await self._file.write(lambda session: delete(session, table, uuids), secure=True)

    async def _by_uuid(
        self, statement: str, uuids: Sequence[str], make: Callable[[Row], _T]
    ) -> list[_T]:
        def read(session: SqlSession) -> list[_T]:
            return [make(row) for row in session.rows(statement, uuids=uuids)]

        return await self._file.look_up(read, len(uuids)) if uuids else []

    async def _page(
        self, statement: str, after: str, limit: int, make: Callable[[Row], _T]
    ) -> list[_T]:
        most = _check_limit(limit, _MOST_IN_A_PAGE)

        def read(session: SqlSession) -> list[_T]:
            return [make(row) for row in session.rows(statement, after=after, most=most)]

        return await self._file.look_up(read, most)

    async def _read(
        self, statement: str, make: Callable[[Row], _T], **values: Value | Sequence[str]
    ) -> list[_T]:
        return await self._file.read(
            lambda session: [make(row) for row in session.rows(statement, **values)]
        )


def facts_in(session: SqlSession, uuids: Sequence[str]) -> list[Fact]:
    """Return facts in the order of the ids; absent facts are left out."""
    return in_order([fact_from_row(row) for row in session.rows(_FACTS, uuids=uuids)], uuids)


def put_nodes(session: SqlSession, nodes: Sequence[StoredNode]) -> None:
    """Create or update nodes; of several with the same id, the last is saved."""
    latest = {node.uuid: node for node in nodes}
    rows = [node.columns() for node in latest.values()]
    session.insert("node", NODE_COLUMNS, rows, REPLACE_NODE)
    _put_names_and_tags(session, latest)


def put_facts(session: SqlSession, facts: Sequence[StoredFact]) -> None:
    """Create or update facts and their support; of several with the same id, the last is saved.

    Raises:
        NotFound: A subject or object is not a node of the group.
    """
    latest = {stored.uuid: stored for stored in facts}
    nodes: set[str] = set()
    for stored in latest.values():
        nodes |= {stored.fact.subject, stored.fact.object}
    require(session, "node", nodes)
    rows = [stored.columns() for stored in latest.values()]
    session.insert("fact", FACT_COLUMNS, rows, REPLACE_FACT)
    session.change(
        "DELETE FROM support WHERE fact IN EACH(:facts) AND grp = :grp", facts=list(latest)
    )
    session.insert(
        "support",
        "fact, place, episode",
        [
            (uuid, place, episode)
            for uuid, stored in latest.items()
            for place, episode in enumerate(stored.fact.episodes)
        ],
    )


def put_episodes(session: SqlSession, episodes: Sequence[StoredEpisode]) -> None:
    """Create or update episodes; of several with the same id, the last is saved."""
    latest = {episode.uuid: episode for episode in episodes}
    rows = [episode.columns() for episode in latest.values()]
    session.insert("episode", EPISODE_COLUMNS, rows, REPLACE_EPISODE)


def put_mentions(session: SqlSession, rows: Sequence[tuple[str, str, str, datetime]]) -> None:
    """Save mentions, as (episode, node, uuid, created_at); an existing mention stays as it is.

    Raises:
        NotFound: The episode or the node of a mention is not in the group.
    """
    require(session, "episode", {episode for episode, *_ in rows})
    require(session, "node", {node for _, node, *_ in rows})
    session.insert(
        "mention",
        "episode, node, uuid, created_at",
        [(episode, node, uuid, micros(at)) for episode, node, uuid, at in rows],
        "ON CONFLICT DO NOTHING",
    )


def part(session: SqlSession, pairs: Sequence[tuple[str, str]]) -> None:
    """Delete the mentions of (episode, node) pairs; a pair without a mention is skipped."""
    for episode, node in dict.fromkeys(pairs):
        session.change(
            "DELETE FROM mention WHERE episode = :episode AND node = :node AND grp = :grp",
            episode=episode,
            node=node,
        )


def require(session: SqlSession, table: str, uuids: Collection[str]) -> None:
    """Raise NotFound unless all of the ids are rows of the group."""
    statement = f"SELECT count(*) FROM {table} WHERE uuid IN EACH(:uuids) AND grp = :grp"
    if session.rows(statement, uuids=list(uuids))[0][0] < len(uuids):
        raise NotFound(table)


def delete(session: SqlSession, table: str, uuids: Sequence[str]) -> int:
    """Delete rows, and by foreign keys the rows that refer to them; return how many ids existed."""
    statement = f"DELETE FROM {table} WHERE uuid IN EACH(:uuids) AND grp = :grp"
    return session.change(statement, uuids=list(uuids))


def clear(session: SqlSession) -> None:
    """Delete every row of the group."""
    for table in GRAPH_TABLES:
        session.change(f"DELETE FROM {table} WHERE grp = :grp")


def _put_names_and_tags(session: SqlSession, nodes: Mapping[str, StoredNode]) -> None:
    for table in ("node_name", "node_tag"):
        session.change(
            f"DELETE FROM {table} WHERE node IN EACH(:nodes) AND grp = :grp", nodes=list(nodes)
        )
    session.insert(
        "node_name", NAME_COLUMNS, [row for node in nodes.values() for row in node.name_rows()]
    )
    session.insert(
        "node_tag",
        "tag, node",
        [(fold(tag), uuid) for uuid, node in nodes.items() for tag in node.node.tags],
        "ON CONFLICT DO NOTHING",
    )


def _mention_rows(
    group: str, pairs: Iterable[tuple[str, str]], at: datetime
) -> list[tuple[str, str, str, datetime]]:
    return [
        (episode, node, mention_id(group, episode, node), at)
        for episode, node in dict.fromkeys(pairs)
    ]


def _graphiti_attributes(
    session: SqlSession, table: str, uuids: Iterable[str]
) -> dict[str, dict[str, JSON]]:
    """Return uuid → Graphiti's own attributes of a row; rows without any are left out."""
    rows = session.rows(
        f"SELECT uuid, graphiti FROM {table} "
        "WHERE uuid IN EACH(:uuids) AND grp = :grp AND graphiti <> '{}'",
        uuids=list(uuids),
    )
    return {uuid: foreign_attributes(graphiti) for uuid, graphiti in rows}


def _timeline_conditions(options: GraphTimelineOptions) -> tuple[list[str], dict[str, Value]]:
    conditions = ["f.grp = :grp"]
    values = dict[str, Value]()
    node = options.get("node")
    if node is not None:
        conditions.append(
            "f.uuid IN (SELECT uuid FROM fact WHERE subject = :node AND grp = :grp "
            "UNION SELECT uuid FROM fact WHERE object = :node AND grp = :grp)"
        )
        values["node"] = node
    relation = options.get("relation")
    if relation is not None:
        conditions.append("+f.relation = :relation")  # a page is read in the order of times
        values["relation"] = relation
    after = options.get("after")
    if after is not None:
        conditions.append("f.valid_at >= :after_at")
        values["after_at"] = micros(utc(after, "after"))
    before = options.get("before")
    if before is not None:
        conditions.append("f.valid_at < :before_at")
        values["before_at"] = micros(utc(before, "before"))
    bounds = as_of_bounds(options)
    if bounds:
        conditions.append(_HOLDS)
        values["as_of_first"] = micros(bounds[0])
        values["as_of"] = micros(bounds[1])
    return conditions, values


def _check_limit(limit: int, most: int) -> int:
    if not 1 <= limit <= most:
        raise InvalidRequest("limit", f"must be 1 to {most}")
    return limit
