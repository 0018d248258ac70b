"""What Graphiti reads and writes around its searches, by statements that bind the group.

Graphiti offers this hook for other databases. Here it replaces the reads that it addresses by uuid alone and
the saga helpers, which return an episode's content without saying whose it is. The saves are its own
statements, one for one: the hook has no way to leave them out. What is not here raises NotImplementedError,
and Graphiti falls back to a statement of its own, under the guard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import EdgeNotFoundError, NodeNotFoundError
from graphiti_core.helpers import parse_db_date
from graphiti_core.models.edges.edge_db_queries import (
    get_entity_edge_save_bulk_query,
    get_episodic_edge_save_bulk_query,
)
from graphiti_core.models.nodes.node_db_queries import (
    get_entity_node_save_bulk_query,  # pyright: ignore[reportUnknownVariableType] - it says a bare dict
    get_episode_node_save_bulk_query,
)
from graphiti_core.nodes import EntityNode, EpisodicNode, SagaNode
from pydantic import PrivateAttr

from pps.core.ids import EntityId
from pps.graph.protocol import GraphStore
from pps.isolation.counters import IsolationCounters
from pps.isolation.objects import GroupObjects

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class GroupOperations(GraphOperationsInterface):
    """Graphiti's graph operations for one entity. Ids of another entity read as absent."""

    _entity: EntityId = PrivateAttr()
    _store: GraphStore = PrivateAttr()
    _objects: GroupObjects = PrivateAttr()
    _counters: IsolationCounters = PrivateAttr()

    def __init__(self, entity: EntityId, store: GraphStore, objects: GroupObjects, counters: IsolationCounters) -> None:
        super().__init__()
        self._entity = entity
        self._store = store
        self._objects = objects
        self._counters = counters

    async def node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityNode:
        """Return a node, or raise Graphiti's NodeNotFoundError."""
        found = await self._objects.nodes([uuid])
        if not found:
            raise NodeNotFoundError(uuid)
        return found[0]

    async def node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str], group_id: str | None = None
    ) -> list[EntityNode]:
        """Return nodes in the order asked; absent ones are left out."""
        if group_id is not None:
            self._check([group_id])
        return await self._objects.nodes(uuids)

    async def node_get_by_names(
        self, _cls: Any, driver: Any, names: list[str], group_ids: list[str]
    ) -> list[EntityNode]:
        """Return the nodes that have one of the names, exactly."""
        self._check(group_ids)
        return await self._objects.nodes_named([name for name in names if name])

    async def node_load_embeddings_bulk(
        self, driver: Any, nodes: list[EntityNode], batch_size: int = 100
    ) -> dict[str, list[float]]:
        """Return the vectors of nodes' names."""
        vectors = await self._store.node_vectors([node.uuid for node in nodes]) if nodes else {}
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def edge_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityEdge:
        """Return an edge, or raise Graphiti's EdgeNotFoundError."""
        found = await self._objects.edges([uuid])
        if not found:
            raise EdgeNotFoundError(uuid)
        return found[0]

    async def edge_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str]) -> list[EntityEdge]:
        """Return edges in the order asked; absent ones are left out."""
        return await self._objects.edges(uuids)

    async def edge_load_embeddings_bulk(
        self, driver: Any, edges: list[EntityEdge], batch_size: int = 100
    ) -> dict[str, list[float]]:
        """Return the vectors of edges' facts."""
        vectors = await self._store.fact_vectors([edge.uuid for edge in edges]) if edges else {}
        return {uuid: vector.tolist() for uuid, vector in vectors.items()}

    async def edge_get_between_nodes(
        self, _cls: Any, driver: Any, source_node_uuid: str, target_node_uuid: str
    ) -> list[EntityEdge]:
        """Return the edges from one node to another."""
        facts = await self._store.facts_between([(source_node_uuid, target_node_uuid)])
        return await self._objects.edges([fact.uuid for fact in facts])

    async def episodic_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EpisodicNode:
        """Return an episode, or raise Graphiti's NodeNotFoundError."""
        found = await self._objects.episodes([uuid])
        if not found:
            raise NodeNotFoundError(uuid)
        return found[0]

    async def episodic_node_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str]) -> list[EpisodicNode]:
        """Return episodes in the order asked; absent ones are left out."""
        return await self._objects.episodes(uuids)

    async def episodic_node_get_by_entity_node_uuid(
        self, _cls: Any, driver: Any, entity_node_uuid: str
    ) -> list[EpisodicNode]:
        """Return the episodes that mention a node."""
        mentions = await self._objects.episodes_of_nodes([entity_node_uuid])
        return await self._objects.episodes(mentions.get(entity_node_uuid, []))

    async def get_mentioned_nodes(self, driver: Any, episodes: list[EpisodicNode]) -> list[EntityNode]:
        """Return the nodes that any of the episodes mentions."""
        mentioned = await self._store.mentioned_nodes([episode.uuid for episode in episodes]) if episodes else {}
        return await self._objects.nodes(sorted({node for nodes in mentioned.values() for node in nodes}))

    async def saga_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> SagaNode:
        """Return a saga, or raise Graphiti's NodeNotFoundError."""
        found = await self._objects.sagas([uuid])
        if not found:
            raise NodeNotFoundError(uuid)
        return found[0]

    async def saga_get_previous_episode_uuid(
        self, driver: Any, saga_uuid: str, current_episode_uuid: str
    ) -> str | None:
        """Return the uuid of a saga's latest episode other than the current one."""
        return await self._objects.saga_previous(saga_uuid, current_episode_uuid)

    async def saga_get_episode_contents(
        self, driver: Any, saga_uuid: str, since: datetime | None = None, limit: int = 200
    ) -> list[tuple[str, datetime | None, datetime]]:
        """Return (content, valid_at, created_at) of a saga's episodes received after ``since``, oldest first."""
        rows = await self._objects.saga_contents(saga_uuid, since or _BEGINNING, limit)
        found: list[tuple[str, datetime | None, datetime]] = []
        for row in rows:
            created_at = parse_db_date(row["created_at"])
            if row["content"] and created_at is not None:
                found.append((str(row["content"]), parse_db_date(row["valid_at"]), created_at))
        return found

    async def episodic_node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        """Save episodes with Graphiti's own statement."""
        await _save(driver, transaction, get_episode_node_save_bulk_query(driver.provider), "episodes", nodes)

    async def node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        """Save nodes with Graphiti's own statement."""
        await _save(driver, transaction, get_entity_node_save_bulk_query(driver.provider, nodes), "nodes", nodes)

    async def episodic_edge_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, episodic_edges: list[Any], batch_size: int = 100
    ) -> None:
        """Save mentions with Graphiti's own statement."""
        query = get_episodic_edge_save_bulk_query(driver.provider)
        await _save(driver, transaction, query, "episodic_edges", episodic_edges)

    async def edge_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, edges: list[Any], batch_size: int = 100
    ) -> None:
        """Save edges with Graphiti's own statement."""
        await _save(driver, transaction, get_entity_edge_save_bulk_query(driver.provider), "entity_edges", edges)

    def _check(self, group_ids: Sequence[str]) -> None:
        if any(group != self._entity.group for group in group_ids):
            raise self._counters.refuse(self._entity, "group", "a look-up asked for another group")


async def _save(driver: Any, transaction: Any, query: str, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if driver.provider != GraphProvider.KUZU:
        await transaction.run(query, **{name: rows})
        return
    for row in rows:  # the dialect's statements take one row each
        await transaction.run(query, **row)
