"""Graphiti's operation classes for its Kuzu dialect, with the columns that they forget."""

from __future__ import annotations

import json
from typing import Any

from pps.graph import quiet as quiet  # before anything of Graphiti

from graphiti_core.driver.driver import GraphProvider  # isort: skip
from graphiti_core.driver.kuzu.operations.community_edge_ops import KuzuCommunityEdgeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.community_node_ops import KuzuCommunityNodeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.entity_edge_ops import KuzuEntityEdgeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.entity_node_ops import KuzuEntityNodeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.episode_node_ops import KuzuEpisodeNodeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.episodic_edge_ops import KuzuEpisodicEdgeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.graph_ops import KuzuGraphMaintenanceOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.has_episode_edge_ops import KuzuHasEpisodeEdgeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.next_episode_edge_ops import KuzuNextEpisodeEdgeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.saga_node_ops import KuzuSagaNodeOperations  # isort: skip
from graphiti_core.driver.kuzu.operations.search_ops import KuzuSearchOperations  # isort: skip
from graphiti_core.driver.query_executor import QueryExecutor, Transaction  # isort: skip
from graphiti_core.edges import EntityEdge  # isort: skip
from graphiti_core.errors import NodeNotFoundError  # isort: skip
from graphiti_core.models.edges.edge_db_queries import get_entity_edge_save_query  # isort: skip
from graphiti_core.models.nodes.node_db_queries import SAGA_NODE_RETURN, get_saga_node_save_query  # isort: skip
from graphiti_core.nodes import SagaNode, get_saga_node_from_record  # isort: skip

_SAGA_FIELDS = (
    *("uuid", "name", "group_id", "created_at", "summary", "first_episode_uuid", "last_episode_uuid"),
    *("last_summarized_at", "last_summarized_episode_valid_at"),
)


class _EntityEdges(KuzuEntityEdgeOperations):
    async def save(self, executor: QueryExecutor, edge: EntityEdge, tx: Transaction | None = None) -> None:
        """Save an edge with its reference time, which the stock class leaves out."""
        parameters: dict[str, Any] = {
            **edge.model_dump(exclude={"attributes", "source_node_uuid", "target_node_uuid"}),
            "source_uuid": edge.source_node_uuid,
            "target_uuid": edge.target_node_uuid,
            "attributes": json.dumps(edge.attributes or {}),
        }
        await _run(executor, tx, get_entity_edge_save_query(GraphProvider.KUZU), parameters)


class _SagaNodes(KuzuSagaNodeOperations):
    async def save(self, executor: QueryExecutor, node: SagaNode, tx: Transaction | None = None) -> None:
        """Save a saga whole; the stock class names four of its nine columns."""
        parameters = {name: getattr(node, name) for name in _SAGA_FIELDS}
        await _run(executor, tx, get_saga_node_save_query(GraphProvider.KUZU), parameters)

    async def get_by_uuid(self, executor: QueryExecutor, uuid: str) -> SagaNode:
        """Return a saga whole, or raise Graphiti's NodeNotFoundError."""
        found = await self.get_by_uuids(executor, [uuid])
        if not found:
            raise NodeNotFoundError(uuid)
        return found[0]

    async def get_by_uuids(self, executor: QueryExecutor, uuids: list[str]) -> list[SagaNode]:
        """Return sagas whole."""
        query = f"MATCH (s:Saga) WHERE s.uuid IN $uuids RETURN {SAGA_NODE_RETURN}"
        records, _, _ = await executor.execute_query(query, uuids=uuids)
        return [get_saga_node_from_record(record) for record in records]

    async def get_by_group_ids(
        self, executor: QueryExecutor, group_ids: list[str], limit: int | None = None, uuid_cursor: str | None = None
    ) -> list[SagaNode]:
        """Return sagas whole, by falling uuid."""
        found = await super().get_by_group_ids(executor, group_ids, limit, uuid_cursor)
        whole = {saga.uuid: saga for saga in await self.get_by_uuids(executor, [saga.uuid for saga in found])}
        return [whole[saga.uuid] for saga in found if saga.uuid in whole]


class _Maintenance(KuzuGraphMaintenanceOperations):
    async def build_indices_and_constraints(self, executor: QueryExecutor, delete_existing: bool = False) -> None:
        """Do nothing: the stock class makes full-text indexes, whose extension would be a download."""


def operations() -> dict[str, Any]:
    """Return Graphiti's operation objects by the name of the driver's property."""
    return {
        "entity_node_ops": KuzuEntityNodeOperations(),
        "episode_node_ops": KuzuEpisodeNodeOperations(),
        "community_node_ops": KuzuCommunityNodeOperations(),
        "saga_node_ops": _SagaNodes(),
        "entity_edge_ops": _EntityEdges(),
        "episodic_edge_ops": KuzuEpisodicEdgeOperations(),
        "community_edge_ops": KuzuCommunityEdgeOperations(),
        "has_episode_edge_ops": KuzuHasEpisodeEdgeOperations(),
        "next_episode_edge_ops": KuzuNextEpisodeEdgeOperations(),
        "search_ops": KuzuSearchOperations(),
        "graph_ops": _Maintenance(),
    }


async def _run(executor: QueryExecutor, tx: Transaction | None, query: str, parameters: dict[str, Any]) -> None:
    if tx is not None:
        await tx.run(query, **parameters)
    else:
        await executor.execute_query(query, **parameters)
