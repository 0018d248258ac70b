"""Graphiti's own objects on Neo4j, read and written by statements that bind the group.

Graphiti offers the hook of ``GroupOperations`` for other databases. Here it replaces the reads by
uuid alone of the pipeline that PPS runs. The saves are Graphiti's own statements, one for one: the
hook has no way to leave them out. What is not here raises NotImplementedError, and Graphiti falls
back to a statement of its own, under the guard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.edges import EntityEdge, get_entity_edge_from_record
from graphiti_core.errors import NodeNotFoundError
from graphiti_core.models.edges.edge_db_queries import (
    get_entity_edge_return_query,
    get_entity_edge_save_bulk_query,
    get_episodic_edge_save_bulk_query,
)
from graphiti_core.models.nodes.node_db_queries import (
    EPISODIC_NODE_RETURN,
    get_entity_node_return_query,
    get_entity_node_save_bulk_query,  # pyright: ignore[reportUnknownVariableType] - a bare dict
    get_episode_node_save_bulk_query,
)
from graphiti_core.nodes import (
    EntityNode,
    EpisodicNode,
    get_entity_node_from_record,
    get_episodic_node_from_record,
)
from pydantic import PrivateAttr

from pps.core.ids import EntityId
from pps.graph.graph_store import Executor, GraphStore, Rows
from pps.graph.mapping import in_order, mention_id, moment_of
from pps.isolation.counters import IsolationCounters

_Object = TypeVar("_Object", EntityNode, EntityEdge, EpisodicNode)

_OURS = "WHERE {x}.uuid = id AND {x}.group_id = $group_id"
# The hints are for young databases, whose statistics mislead the planner.
_NODE_BY_UUID = (
    f"UNWIND $uuids AS id MATCH ({{x}}:{{label}}) USING INDEX SEEK {{x}}:{{label}}(uuid) {_OURS} "
    "RETURN "
)
_EDGE_BY_UUID = (
    "UNWIND $uuids AS id MATCH (n:Entity)-[e:RELATES_TO]->(m:Entity) "
    "USING INDEX SEEK e:RELATES_TO(uuid) "
    f"{_OURS.format(x='e')} AND n.group_id = $group_id AND m.group_id = $group_id RETURN "
)
_SENT = {
    "properties(n)": "n {.*, name_embedding: null, created_at: null}",
    "properties(e)": (
        "e {.*, fact_embedding: null, created_at: null, expired_at: null, valid_at: null, "
        "invalid_at: null, reference_time: null}"
    ),
}
"""All properties but those that Graphiti's readers ignore, such as vectors, which are large."""


def _sent(columns: str) -> str:
    for whole, needed in _SENT.items():
        columns = columns.replace(whole, needed)
    return columns


_NODE_COLUMNS = _sent(get_entity_node_return_query(GraphProvider.NEO4J))
NODES_BY_UUID = _NODE_BY_UUID.format(x="n", label="Entity") + _NODE_COLUMNS
EDGES_BY_UUID = _EDGE_BY_UUID + _sent(get_entity_edge_return_query(GraphProvider.NEO4J))
EPISODES_BY_UUID = _NODE_BY_UUID.format(x="e", label="Episodic") + EPISODIC_NODE_RETURN
NODES_BY_NAME = (
    "MATCH (n:Entity) WHERE n.group_id = $group_id AND n.name IN $names RETURN " + _NODE_COLUMNS
)
_LATEST = """
MATCH (e:Episodic)
WHERE e.group_id = $group_id AND e.valid_at <= $before
RETURN e.uuid AS uuid, e.valid_at AS valid_at, e.created_at AS created_at
ORDER BY valid_at DESC, created_at DESC, uuid
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
_STRANGERS = "\nUNION ALL\n".join(
    f"MATCH (n:{label}) WHERE coalesce(n.group_id, '') <> $group_id "
    "RETURN DISTINCT (coalesce(n.group_id, '') STARTS WITH 'ent_' "
    "AND size(coalesce(n.group_id, '')) = 30) AS is_group"
    for label in ("Entity", "Episodic", "Community", "Saga")
)
"""Whether values in place of other groups have the shape of a group; no value itself returns."""


MENTIONS_OF = """
UNWIND $uuids AS id
MATCH (e:Episodic)-[m:MENTIONS]->(n:Entity) USING INDEX SEEK e:Episodic(uuid)
WHERE e.uuid = id AND e.group_id = $group_id AND n.group_id = $group_id
RETURN e.uuid AS episode, n.uuid AS node, m.uuid AS mention, m.created_at AS created_at"""


class GraphitiObjects(ABC):
    """Graphiti's objects of one group, in the order of the ids; foreign ids read as absent."""

    @abstractmethod
    async def nodes(self, uuids: Sequence[str]) -> list[EntityNode]: ...

    @abstractmethod
    async def edges(self, uuids: Sequence[str]) -> list[EntityEdge]: ...

    @abstractmethod
    async def episodes(self, uuids: Sequence[str]) -> list[EpisodicNode]: ...

    @abstractmethod
    async def nodes_named(self, names: Iterable[str]) -> list[EntityNode]:
        """Return the nodes that have one of the names, exactly."""

    @abstractmethod
    async def latest_episodes(self, before: datetime, limit: int) -> list[str]:
        """Return the uuids of the latest episodes with ``valid_at <= before``, oldest first."""

    @abstractmethod
    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node → uuids of the episodes that mention it, sorted; others are left out."""

    @abstractmethod
    async def read_by_graphiti(self, episode: str) -> list[str]:
        """Return the nodes that Graphiti's pipeline found in an episode; not PPS's own mentions."""

    @abstractmethod
    async def strangers(self) -> set[bool]:
        """Return for other groups in an entity's file whether they have the shape of a group."""


class GroupObjects(GraphitiObjects):
    """Graphiti's objects, asked for in Cypher."""

    def __init__(self, own: Executor, group: str) -> None:
        self._own = own
        self._group = group

    async def nodes(self, uuids: Sequence[str]) -> list[EntityNode]:
        return await self._by_uuid(NODES_BY_UUID, uuids, _node)

    async def edges(self, uuids: Sequence[str]) -> list[EntityEdge]:
        return await self._by_uuid(
            EDGES_BY_UUID,
            uuids,
            lambda row: get_entity_edge_from_record(row, GraphProvider.NEO4J),
        )

    async def episodes(self, uuids: Sequence[str]) -> list[EpisodicNode]:
        return await self._by_uuid(EPISODES_BY_UUID, uuids, get_episodic_node_from_record)

    async def nodes_named(self, names: Iterable[str]) -> list[EntityNode]:
        wanted = sorted({name for name in names if name})
        return (
            [_node(row) for row in await self._rows(NODES_BY_NAME, names=wanted)] if wanted else []
        )

    async def latest_episodes(self, before: datetime, limit: int) -> list[str]:
        return [
            str(row["uuid"])
            for row in reversed(await self._rows(_LATEST, before=before, limit=limit))
        ]

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        rows = await self._rows(_MENTIONS, uuids=list(nodes)) if nodes else []
        episodes_by_node: dict[str, list[str]] = {}
        for row in rows:
            episodes_by_node.setdefault(str(row["node"]), []).append(str(row["episode"]))
        return {node: sorted(episodes) for node, episodes in episodes_by_node.items()}

    async def read_by_graphiti(self, episode: str) -> list[str]:
        rows = await self._rows(_MENTIONED, episode=episode)
        return sorted(
            {
                str(row["node"])
                for row in rows
                if row["mention"] != mention_id(self._group, episode, str(row["node"]))
            }
        )

    async def mentions_of(self, episodes: Sequence[str]) -> list[tuple[str, str, str, datetime]]:
        """Return the mentions of episodes as (episode, node, uuid of the mention, created_at)."""
        rows = await self._rows(MENTIONS_OF, uuids=list(episodes)) if episodes else []
        return [
            (
                str(row["episode"]),
                str(row["node"]),
                str(row["mention"]),
                moment_of(row["created_at"]),
            )
            for row in rows
        ]

    async def strangers(self) -> set[bool]:
        return {bool(row["is_group"]) for row in await self._rows(_STRANGERS)}

    async def _by_uuid(
        self, statement: str, uuids: Sequence[str], make: Callable[[Any], _Object]
    ) -> list[_Object]:
        rows = await self._rows(statement, uuids=list(uuids)) if uuids else []
        return in_order(map(make, rows), uuids)

    async def _rows(self, statement: str, **parameters: Any) -> Rows:
        rows, _, _ = await self._own.execute_query(statement, group_id=self._group, **parameters)
        return rows


class GroupOperations(GraphOperationsInterface):
    """Graphiti's graph operations for one entity. Ids of another entity read as absent."""

    _entity: EntityId = PrivateAttr()
    _store: GraphStore = PrivateAttr()
    _objects: GraphitiObjects = PrivateAttr()
    _counters: IsolationCounters = PrivateAttr()

    def __init__(
        self,
        entity: EntityId,
        store: GraphStore,
        objects: GraphitiObjects,
        counters: IsolationCounters,
    ) -> None:
        super().__init__()
        self._entity = entity
        self._store = store
        self._objects = objects
        self._counters = counters

    async def node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str], group_id: str | None = None
    ) -> list[EntityNode]:
        if group_id is not None:
            self._check([group_id])
        return await self._objects.nodes(uuids)

    async def node_get_by_names(
        self, _cls: Any, driver: Any, names: list[str], group_ids: list[str]
    ) -> list[EntityNode]:
        self._check(group_ids)
        return await self._objects.nodes_named(names)

    async def node_load_embeddings_bulk(
        self, driver: Any, nodes: list[EntityNode], batch_size: int = 100
    ) -> dict[str, list[float]]:
        vectors = await self._store.node_vectors([node.uuid for node in nodes]) if nodes else {}
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def edge_load_embeddings_bulk(
        self, driver: Any, edges: list[EntityEdge], batch_size: int = 100
    ) -> dict[str, list[float]]:
        vectors = await self._store.fact_vectors([edge.uuid for edge in edges]) if edges else {}
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def episodic_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EpisodicNode:
        episodes = await self._objects.episodes([uuid])
        if episodes:
            return episodes[0]
        raise NodeNotFoundError(uuid)

    async def episodic_node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[EpisodicNode]:
        return await self._objects.episodes(uuids)

    async def episodic_node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        query = get_episode_node_save_bulk_query(driver.provider)
        await transaction.run(query, episodes=nodes)

    async def node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        query = get_entity_node_save_bulk_query(driver.provider, nodes)
        await transaction.run(query, nodes=nodes)

    async def episodic_edge_save_bulk(
        self,
        _cls: Any,
        driver: Any,
        transaction: Any,
        episodic_edges: list[Any],
        batch_size: int = 100,
    ) -> None:
        query = get_episodic_edge_save_bulk_query(driver.provider)
        await transaction.run(query, episodic_edges=episodic_edges)

    async def edge_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, edges: list[Any], batch_size: int = 100
    ) -> None:
        query = get_entity_edge_save_bulk_query(driver.provider)
        await transaction.run(query, entity_edges=edges)

    def _check(self, group_ids: Sequence[str]) -> None:
        if any(group != self._entity.group for group in group_ids):
            raise self._counters.refuse(self._entity, "group", "a look-up asked for another group")


def _node(row: Any) -> EntityNode:
    return get_entity_node_from_record(row, GraphProvider.NEO4J)
