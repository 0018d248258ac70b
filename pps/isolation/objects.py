"""Graphiti's own objects, read by statements that bind the group: what stands in for its uuid-only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from graphiti_core.driver.driver import GraphProvider
from graphiti_core.edges import EntityEdge, get_entity_edge_from_record
from graphiti_core.models.edges.edge_db_queries import get_entity_edge_return_query
from graphiti_core.models.nodes.node_db_queries import (
    COMMUNITY_NODE_RETURN,
    EPISODIC_NODE_RETURN,
    SAGA_NODE_RETURN,
    get_entity_node_return_query,
)
from graphiti_core.nodes import (
    CommunityNode,
    EntityNode,
    EpisodicNode,
    SagaNode,
    get_community_node_from_record,
    get_entity_node_from_record,
    get_episodic_node_from_record,
    get_saga_node_from_record,
)

from pps.graph.mapping import mention_id
from pps.graph.protocol import Executor, Rows

_Object = TypeVar("_Object", EntityNode, EntityEdge, EpisodicNode, CommunityNode, SagaNode)

_EDGE_ON_NEO4J = """
UNWIND $uuids AS id
MATCH (n:Entity)-[e:RELATES_TO]->(m:Entity) USING INDEX SEEK e:RELATES_TO(uuid)
WHERE e.uuid = id AND e.group_id = $group_id AND n.group_id = $group_id AND m.group_id = $group_id
RETURN """
_EDGE_ON_KUZU = """
UNWIND $uuids AS id
MATCH (e:RelatesToNode_ {uuid: id})
WHERE e.group_id = $group_id
RETURN """
_LABELS = ("Entity", "Episodic", "Community", "Saga")
_SENT = {
    "properties(n)": "n {.*, name_embedding: null, created_at: null}",
    "properties(e)": (
        "e {.*, fact_embedding: null, created_at: null, expired_at: null, valid_at: null, invalid_at: null, "
        "reference_time: null}"
    ),
}
"""All properties but those that Graphiti's readers drop unread: a vector takes longer over the wire than the rest."""


@dataclass(frozen=True, slots=True)
class _Statements:
    """The look-ups of one dialect, by uuid."""

    node: str
    edge: str
    episode: str
    community: str
    saga: str
    present: Mapping[str, str]


def _sent(columns: str) -> str:
    for whole, needed in _SENT.items():
        columns = columns.replace(whole, needed)
    return columns


def _on_neo4j() -> _Statements:
    def by_uuid(x: str, label: str, columns: str) -> str:
        # The hint is for young databases, whose statistics mislead the planner.
        return (
            f"UNWIND $uuids AS id MATCH ({x}:{label}) USING INDEX SEEK {x}:{label}(uuid) "
            f"WHERE {x}.uuid = id AND {x}.group_id = $group_id RETURN {columns}"
        )

    edge = _sent(get_entity_edge_return_query(GraphProvider.NEO4J))
    return _with(by_uuid, GraphProvider.NEO4J, _EDGE_ON_NEO4J + edge)


def _on_kuzu() -> _Statements:
    def by_uuid(x: str, label: str, columns: str) -> str:
        return f"UNWIND $uuids AS id MATCH ({x}:{label} {{uuid: id}}) WHERE {x}.group_id = $group_id RETURN {columns}"

    edge = get_entity_edge_return_query(GraphProvider.KUZU)
    # A fact there carries the ids of its ends: no join.
    edge = edge.replace("n.uuid AS", "e.source_node_uuid AS").replace("m.uuid AS", "e.target_node_uuid AS")
    return _with(by_uuid, GraphProvider.KUZU, _EDGE_ON_KUZU + edge)


def _with(by_uuid: Callable[[str, str, str], str], provider: GraphProvider, edge: str) -> _Statements:
    return _Statements(
        node=by_uuid("n", "Entity", _sent(get_entity_node_return_query(provider))),
        edge=edge,
        episode=by_uuid("e", "Episodic", EPISODIC_NODE_RETURN),
        community=by_uuid("c", "Community", COMMUNITY_NODE_RETURN),
        saga=by_uuid("s", "Saga", SAGA_NODE_RETURN),
        present={label: by_uuid("n", label, "n.uuid AS uuid") for label in _LABELS},
    )


_STATEMENTS = {GraphProvider.KUZU: _on_kuzu(), GraphProvider.NEO4J: _on_neo4j()}
_NAMED = {
    provider: f"MATCH (n:Entity) WHERE n.group_id = $group_id AND n.name IN $names RETURN {columns}"
    for provider, columns in ((one, _sent(get_entity_node_return_query(one))) for one in _STATEMENTS)
}
_SAGAS = f"MATCH (s:Saga) WHERE s.group_id = $group_id RETURN {SAGA_NODE_RETURN} ORDER BY s.created_at, s.uuid"
_LATEST = f"""
MATCH (e:Episodic)
WHERE e.group_id = $group_id AND e.valid_at <= $before
RETURN {EPISODIC_NODE_RETURN}
ORDER BY e.valid_at DESC, e.created_at DESC, e.uuid
LIMIT $limit"""
_SAGA_PREVIOUS = """
MATCH (s:Saga {uuid: $saga})-[:HAS_EPISODE]->(e:Episodic)
WHERE s.group_id = $group_id AND e.group_id = $group_id AND e.uuid <> $current
RETURN e.uuid AS uuid
ORDER BY e.valid_at DESC, e.created_at DESC
LIMIT 1"""
_SAGA_CONTENTS = """
MATCH (s:Saga {uuid: $saga})-[:HAS_EPISODE]->(e:Episodic)
WHERE s.group_id = $group_id AND e.group_id = $group_id AND e.created_at IS NOT NULL AND e.created_at > $since
RETURN e.uuid AS uuid, e.group_id AS group_id, e.content AS content, e.valid_at AS valid_at,
       e.created_at AS created_at
ORDER BY e.created_at, e.valid_at
LIMIT $limit"""
_SAGA_EPISODES = f"""
MATCH (s:Saga {{uuid: $saga}})-[:HAS_EPISODE]->(e:Episodic)
WHERE s.group_id = $group_id AND e.group_id = $group_id
RETURN {EPISODIC_NODE_RETURN}
ORDER BY e.valid_at, e.created_at
LIMIT $limit"""
_MENTIONS = """
UNWIND $uuids AS id
MATCH (e:Episodic)-[:MENTIONS]->(n:Entity {uuid: id})
WHERE e.group_id = $group_id AND n.group_id = $group_id
RETURN DISTINCT id AS node, e.uuid AS episode"""
_MENTIONED = """
MATCH (e:Episodic {uuid: $episode})-[m:MENTIONS]->(n:Entity)
WHERE e.group_id = $group_id AND n.group_id = $group_id
RETURN m.uuid AS mention, n.uuid AS node"""
_DELETE_COMMUNITIES = "MATCH (c:Community) WHERE c.group_id = $group_id DETACH DELETE c"
_DELETE_SAGA = "MATCH (s:Saga {uuid: $saga}) WHERE s.group_id = $group_id DETACH DELETE s"
_STRANGERS = "\nUNION ALL\n".join(
    f"MATCH (n:{label}) WHERE coalesce(n.group_id, '') <> $group_id RETURN n.uuid AS uuid LIMIT 1"
    for label in ("Entity", "RelatesToNode_", "Episodic", "Community", "Saga")
)


class GroupObjects:
    """Graphiti's objects of one group. Ids of another group read as absent."""

    def __init__(self, own: Executor, group: str, provider: GraphProvider) -> None:
        self._own = own
        self._group = group
        self._provider = provider
        self._text = _STATEMENTS[provider]

    async def nodes(self, uuids: Sequence[str]) -> list[EntityNode]:
        """Return nodes in the order asked; absent ones are left out."""
        rows = await self._rows(self._text.node, uuids=list(uuids)) if uuids else []
        return _ordered((get_entity_node_from_record(row, self._provider) for row in rows), uuids)

    async def nodes_named(self, names: Sequence[str]) -> list[EntityNode]:
        """Return the nodes that have one of the names, exactly."""
        rows = await self._rows(_NAMED[self._provider], names=sorted(set(names))) if names else []
        return [get_entity_node_from_record(row, self._provider) for row in rows]

    async def edges(self, uuids: Sequence[str]) -> list[EntityEdge]:
        """Return edges in the order asked; absent ones are left out."""
        rows = await self._rows(self._text.edge, uuids=list(uuids)) if uuids else []
        return _ordered((get_entity_edge_from_record(row, self._provider) for row in rows), uuids)

    async def episodes(self, uuids: Sequence[str]) -> list[EpisodicNode]:
        """Return episodes in the order asked; absent ones are left out."""
        return await self._objects(self._text.episode, get_episodic_node_from_record, uuids)

    async def communities(self, uuids: Sequence[str]) -> list[CommunityNode]:
        """Return communities in the order asked; absent ones are left out."""
        return await self._objects(self._text.community, get_community_node_from_record, uuids)

    async def sagas(self, uuids: Sequence[str] | None = None) -> list[SagaNode]:
        """Return sagas in the order asked, or all of them, oldest first."""
        if uuids is not None:
            return await self._objects(self._text.saga, get_saga_node_from_record, uuids)
        return [get_saga_node_from_record(row) for row in await self._rows(_SAGAS)]

    async def latest_episodes(self, before: datetime, limit: int) -> list[EpisodicNode]:
        """Return at most ``limit`` episodes with ``valid_at <= before``, oldest first."""
        rows = await self._rows(_LATEST, before=before, limit=limit)
        return [get_episodic_node_from_record(row) for row in reversed(rows)]

    async def saga_previous(self, saga: str, current: str) -> str | None:
        """Return the uuid of a saga's latest episode other than ``current``."""
        rows = await self._rows(_SAGA_PREVIOUS, saga=saga, current=current)
        return str(rows[0]["uuid"]) if rows else None

    async def saga_contents(self, saga: str, since: datetime, limit: int) -> Rows:
        """Return rows of content, valid_at and created_at of a saga's episodes received after ``since``."""
        return await self._rows(_SAGA_CONTENTS, saga=saga, since=since, limit=limit)

    async def saga_episodes(self, saga: str, limit: int) -> Rows:
        """Return rows of a saga's episodes, oldest first."""
        return await self._rows(_SAGA_EPISODES, saga=saga, limit=limit)

    async def delete_saga(self, saga: str) -> None:
        """Delete a saga; its episodes stay."""
        await self._rows(_DELETE_SAGA, saga=saga)

    async def delete_communities(self) -> None:
        """Delete all communities of the group; their members stay."""
        await self._rows(_DELETE_COMMUNITIES)

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node uuid → uuids of the episodes that mention it, in uuid order; nodes without any are left out."""
        rows = await self._rows(_MENTIONS, uuids=list(nodes)) if nodes else []
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(str(row["node"]), []).append(str(row["episode"]))
        return {node: sorted(episodes) for node, episodes in found.items()}

    async def read_by_graphiti(self, episode: str) -> list[str]:
        """Return the nodes that Graphiti's pipeline found in an episode: PPS's own mentions have ids of their own."""
        rows = await self._rows(_MENTIONED, episode=episode)
        return sorted(
            {str(row["node"]) for row in rows if row["mention"] != mention_id(self._group, episode, str(row["node"]))}
        )

    async def present(self, label: str, uuids: Sequence[str]) -> set[str]:
        """Return which of the ids are nodes of this label and of the group."""
        rows = await self._rows(self._text.present[label], uuids=list(uuids)) if uuids else []
        return {str(row["uuid"]) for row in rows}

    async def strangers(self) -> bool:
        """Tell whether a file of one entity (embedded) holds anything of another group."""
        return bool(await self._rows(_STRANGERS))

    async def _objects(
        self, statement: str, make: Callable[[Mapping[str, Any]], _Object], uuids: Sequence[str]
    ) -> list[_Object]:
        rows = await self._rows(statement, uuids=list(uuids)) if uuids else []
        return _ordered((make(row) for row in rows), uuids)

    async def _rows(self, statement: str, **parameters: Any) -> Rows:
        rows, _, _ = await self._own.execute_query(statement, group_id=self._group, **parameters)
        return rows


def _ordered(objects: Iterable[_Object], uuids: Sequence[str]) -> list[_Object]:
    found = {item.uuid: item for item in objects}
    return [found[uuid] for uuid in dict.fromkeys(uuids) if uuid in found]
