"""Tables of items that only Graphiti makes: communities and sagas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pps.core.time import from_micros, micros
from pps.core.values import Vector
from pps.store.graph_rows import vector_blob, vector_from_blob
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import delete, require
from pps.store.sql_session import Row, SqlSession, Value, assignments, page_before

COMMUNITY_COLUMNS: Final = "uuid, name, summary, created_at"
SAGA_COLUMNS: Final = (
    "uuid, name, summary, first_episode, last_episode, created_at, "
    "summarized_at, summarized_valid_at"
)
_SELECT_COMMUNITY = "SELECT c.uuid, c.name, c.summary, c.created_at FROM community c"
_REPLACE_COMMUNITY = (
    f"ON CONFLICT (uuid, grp) DO UPDATE SET {assignments('name, summary')}, "
    "vector = coalesce(excluded.vector, community.vector)"
)
_AROUND = (
    "SELECT m.community FROM member m JOIN ("
    "SELECT object AS node FROM fact WHERE subject = :node AND grp = :grp "
    "UNION ALL SELECT subject FROM fact WHERE object = :node AND grp = :grp) x ON x.node = m.node "
    "WHERE m.grp = :grp GROUP BY m.community ORDER BY count(*) DESC, m.community LIMIT 1"
)
_PREVIOUS = (
    "SELECT e.uuid FROM saga_episode t JOIN episode e ON e.uuid = t.episode AND e.grp = t.grp "
    "WHERE t.saga = :saga AND t.grp = :grp AND e.uuid <> :current "
    "ORDER BY e.valid_at DESC, e.created_at DESC LIMIT 1"
)
_CONTENTS = (
    "SELECT e.content, e.valid_at, e.created_at FROM saga_episode t "
    "JOIN episode e ON e.uuid = t.episode AND e.grp = t.grp "
    "WHERE t.saga = :saga AND t.grp = :grp{since} "
    "ORDER BY e.created_at, e.valid_at LIMIT :most"
)

LinkTable: TypeAlias = Literal["member", "saga_episode", "episode_order"]
_LINKS: Final[dict[LinkTable, tuple[tuple[str, str], tuple[str, str]]]] = {
    "member": (("community", "community"), ("node", "node")),
    "saga_episode": (("saga", "saga"), ("episode", "episode")),
    "episode_order": (("earlier", "episode"), ("later", "episode")),
}
"""Table of links → (column, referenced table) of its source, and of its target."""
LINK_COLUMNS: Final[dict[LinkTable, str]] = {
    table: f"uuid, {source}, {target}, created_at"
    for table, ((source, _), (target, _)) in _LINKS.items()
}


@dataclass(frozen=True, slots=True)
class GraphitiCommunity:
    """A group of nodes with a summary of what they have in common."""

    uuid: str
    name: str
    summary: str
    created_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> GraphitiCommunity:
        uuid, name, summary, created_at = row
        return cls(uuid, name, summary, from_micros(created_at))

    def columns(self, vector: Vector | None) -> Row:
        """Return the values of ``COMMUNITY_COLUMNS`` and the vector."""
        blob = None if vector is None else vector_blob(vector)
        return self.uuid, self.name, self.summary, micros(self.created_at), blob


@dataclass(frozen=True, slots=True)
class GraphitiSaga:
    """A named sequence of episodes, with a summary of those saved up to ``summarized_at``."""

    uuid: str
    name: str
    summary: str
    first_episode: str | None
    last_episode: str | None
    created_at: datetime
    summarized_at: datetime | None = None
    summarized_valid_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Row) -> GraphitiSaga:
        uuid, name, summary, first, last, created_at, at, valid_at = row
        return cls(
            uuid,
            name,
            summary,
            first,
            last,
            from_micros(created_at),
            _moment(at),
            _moment(valid_at),
        )

    def columns(self) -> Row:
        """Return the values of ``SAGA_COLUMNS``."""
        return (
            *(self.uuid, self.name, self.summary, self.first_episode, self.last_episode),
            *map(_micros, (self.created_at, self.summarized_at, self.summarized_valid_at)),
        )


@dataclass(frozen=True, slots=True)
class GraphitiLink:
    """A row of a ``LinkTable``: community and member, saga and episode, or two episodes."""

    uuid: str
    source: str
    target: str
    created_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> GraphitiLink:
        uuid, source, target, created_at = row
        return cls(uuid, source, target, from_micros(created_at))

    def columns(self) -> Row:
        """Return the values of ``LINK_COLUMNS``."""
        return self.uuid, self.source, self.target, micros(self.created_at)


class GraphitiTables:
    """Communities, sagas and their links of one group."""

    def __init__(self, file: GraphTables) -> None:
        self._file = file

    async def save_community(self, community: GraphitiCommunity, vector: Vector | None) -> None:
        """Create or update a community; without a new vector it keeps its vector."""
        vectors = {} if vector is None else {community.uuid: vector}
        await self._file.write(lambda session: put_communities(session, [community], vectors))

    async def communities(self, uuids: Sequence[str]) -> list[GraphitiCommunity]:
        """Return communities in the order of the ids; absent ones are left out."""
        statement = f"{_SELECT_COMMUNITY} WHERE c.uuid IN EACH(:uuids) AND c.grp = :grp"
        rows = await self._select(statement, uuids=uuids) if uuids else []
        by_uuid = {row[0]: GraphitiCommunity.from_row(row) for row in rows}
        return [by_uuid[uuid] for uuid in dict.fromkeys(uuids) if uuid in by_uuid]

    async def communities_before(
        self, cursor: str | None, limit: int | None
    ) -> list[GraphitiCommunity]:
        """Return communities with ``uuid < cursor``, last uuid first; None: no bound, no limit."""
        statement, values = page_before(_SELECT_COMMUNITY, "c", cursor, limit)
        return [GraphitiCommunity.from_row(row) for row in await self._select(statement, **values)]

    async def communities_of(self, nodes: Sequence[str]) -> list[GraphitiCommunity]:
        """Return the communities with any of the nodes as a member, in uuid order."""
        statement = (
            f"{_SELECT_COMMUNITY} WHERE c.uuid IN "
            "(SELECT community FROM member WHERE node IN EACH(:nodes) AND grp = :grp) "
            "AND c.grp = :grp ORDER BY c.uuid"
        )
        rows = await self._select(statement, nodes=nodes) if nodes else []
        return [GraphitiCommunity.from_row(row) for row in rows]

    async def community_around(self, node: str) -> GraphitiCommunity | None:
        """Return the community with the most facts between its members and the node, or None."""
        rows = await self._select(_AROUND, node=node)
        return (await self.communities([rows[0][0]]))[0] if rows else None

    async def community_vectors(self, uuids: Sequence[str] | None = None) -> dict[str, Vector]:
        """Return uuid → vector of communities (None: of all); those without are left out."""
        statement = "SELECT uuid, vector FROM community WHERE vector IS NOT NULL AND grp = :grp"
        if uuids is None:
            rows = await self._select(statement)
        else:
            rows = await self._select(f"{statement} AND uuid IN EACH(:uuids)", uuids=uuids)
        return {uuid: vector_from_blob(blob) for uuid, blob in rows}

    async def remove_communities(self) -> None:
        await self._file.write(
            lambda session: session.change("DELETE FROM community WHERE grp = :grp"), secure=True
        )

    async def save_saga(self, saga: GraphitiSaga) -> None:
        await self._file.write(lambda session: put_sagas(session, [saga]))

    async def sagas(self, uuids: Sequence[str]) -> list[GraphitiSaga]:
        """Return sagas in the order of the ids; absent ones are left out."""
        statement = f"SELECT {SAGA_COLUMNS} FROM saga WHERE uuid IN EACH(:uuids) AND grp = :grp"
        rows = await self._select(statement, uuids=uuids) if uuids else []
        by_uuid = {row[0]: GraphitiSaga.from_row(row) for row in rows}
        return [by_uuid[uuid] for uuid in dict.fromkeys(uuids) if uuid in by_uuid]

    async def sagas_before(self, cursor: str | None, limit: int | None) -> list[GraphitiSaga]:
        """Return sagas with ``uuid < cursor``, last uuid first; None: no bound, no limit."""
        statement, values = page_before(f"SELECT {SAGA_COLUMNS} FROM saga s", "s", cursor, limit)
        return [GraphitiSaga.from_row(row) for row in await self._select(statement, **values)]

    async def previous_episode(self, saga: str, current: str) -> str | None:
        """Return the uuid of a saga's latest episode other than the current one, or None."""
        rows = await self._select(_PREVIOUS, saga=saga, current=current)
        return rows[0][0] if rows else None

    async def episode_contents(
        self, saga: str, since: datetime | None, limit: int
    ) -> list[tuple[str, datetime, datetime]]:
        """Return (content, valid_at, created_at) of a saga's episodes saved after ``since``."""
        values: dict[str, Value] = {"saga": saga, "most": limit}
        if since is not None:
            values["since"] = micros(since)
        statement = _CONTENTS.format(since="" if since is None else " AND e.created_at > :since")
        return [
            (content, from_micros(valid_at), from_micros(created_at))
            for content, valid_at, created_at in await self._select(statement, **values)
        ]

    async def save_link(self, table: LinkTable, link: GraphitiLink) -> None:
        """Save a link unless it exists; NotFound if an end is not a row of the group."""
        await self._file.write(lambda session: put_links(session, table, [link]))

    async def links(self, table: LinkTable, uuids: Sequence[str]) -> list[GraphitiLink]:
        """Return links in the order of the ids; absent ones are left out."""
        statement = (
            f"SELECT {LINK_COLUMNS[table]} FROM {table} WHERE uuid IN EACH(:uuids) AND grp = :grp"
        )
        rows = await self._select(statement, uuids=uuids) if uuids else []
        by_uuid = {row[0]: GraphitiLink.from_row(row) for row in rows}
        return [by_uuid[uuid] for uuid in dict.fromkeys(uuids) if uuid in by_uuid]

    async def links_before(
        self, table: LinkTable, cursor: str | None, limit: int | None
    ) -> list[GraphitiLink]:
        """Return links with ``uuid < cursor``, last uuid first; None: no bound, no limit."""
        select = f"SELECT {LINK_COLUMNS[table]} FROM {table} t"
        statement, values = page_before(select, "t", cursor, limit)
        return [GraphitiLink.from_row(row) for row in await self._select(statement, **values)]

    async def delete(self, table: str, uuids: Sequence[str]) -> int:
        """Delete rows, and the rows that reference them; return how many of the ids existed."""
        if not uuids:
            return 0
        return await self._file.write(lambda session: delete(session, table, uuids), secure=True)

    async def _select(self, statement: str, **values: Value | Sequence[str]) -> list[Row]:
        return await self._file.read(lambda session: session.rows(statement, **values))


def put_communities(
    session: SqlSession, communities: Sequence[GraphitiCommunity], vectors: Mapping[str, Vector]
) -> None:
    """Create or update communities; one without a new vector keeps its vector."""
    session.insert(
        "community",
        f"{COMMUNITY_COLUMNS}, vector",
        [community.columns(vectors.get(community.uuid)) for community in communities],
        _REPLACE_COMMUNITY,
    )


def put_sagas(session: SqlSession, sagas: Sequence[GraphitiSaga]) -> None:
    """Create or update sagas."""
    conflict = f"ON CONFLICT (uuid, grp) DO UPDATE SET {assignments(SAGA_COLUMNS)}"
    session.insert("saga", SAGA_COLUMNS, [saga.columns() for saga in sagas], conflict)


def put_links(session: SqlSession, table: LinkTable, links: Sequence[GraphitiLink]) -> None:
    """Save links that do not exist; NotFound if an end is not a row of the group."""
    (_, of_source), (_, of_target) = _LINKS[table]
    require(session, of_source, {link.source for link in links})
    require(session, of_target, {link.target for link in links})
    rows = [link.columns() for link in links]
    session.insert(table, LINK_COLUMNS[table], rows, "ON CONFLICT DO NOTHING")


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)
