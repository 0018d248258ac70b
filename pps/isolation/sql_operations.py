"""Graphiti's graph operations on the SQL tables of one entity.

Every hook checks the groups it is passed: it refuses another entity's group, and it refuses no
group where Graphiti would mean all groups. Ids of another entity are not in the file and read as
absent. A hook that is missing here raises NotImplementedError; Graphiti then falls back to a
statement of its own, which the driver refuses.

Communities are found by label propagation with a bound on the rounds; Graphiti's own changes all
labels at once and may oscillate for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
from graphiti_core.edges import (
    CommunityEdge,
    EntityEdge,
    EpisodicEdge,
    HasEpisodeEdge,
    NextEpisodeEdge,
)
from graphiti_core.errors import EdgeNotFoundError, NodeNotFoundError
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodeType, EpisodicNode, SagaNode
from pydantic import PrivateAttr

from pps.core.errors import InvalidRequest
from pps.core.ids import EntityId
from pps.core.time import now
from pps.core.values import Vector
from pps.isolation.counters import IsolationCounters
from pps.isolation.guarded_values import same_group
from pps.isolation.sql_driver import BulkSave, Save
from pps.isolation.sql_objects import (
    community_edge,
    community_node,
    community_of,
    entity_edge,
    entity_node,
    episodic_node,
    has_episode_edge,
    link_of,
    next_episode_edge,
    saga_node,
    saga_of,
    stored_episode,
    stored_fact,
    stored_node,
)
from pps.store.graph_tables import GraphTables
from pps.store.graphiti_reads import GraphitiReads
from pps.store.graphiti_tables import GraphitiTables, LinkTable
from pps.store.sql_graph import (
    SqlGraphStore,
    facts_in,
    put_episodes,
    put_facts,
    put_mentions,
    put_nodes,
)
from pps.store.sql_session import SqlSession

_NODE_TABLES: Final[Mapping[type[Any], str]] = {
    EntityNode: "node",
    EpisodicNode: "episode",
    CommunityNode: "community",
    SagaNode: "saga",
}
_EDGE_TABLES: Final[Mapping[type[Any], str]] = {
    EntityEdge: "fact",
    EpisodicEdge: "mention",
    CommunityEdge: "member",
    HasEpisodeEdge: "saga_episode",
    NextEpisodeEdge: "episode_order",
}
_ROUNDS = 100
"""Most rounds of label propagation."""
_EVERY_KIND_OF_NODE = ("node", "episode", "community")
_EVERY_KIND_OF_EDGE = ("fact", "mention", "member")


class SqlOperations(GraphOperationsInterface):
    """Graphiti's graph operations for one entity, on its file.

    Raises:
        IsolationError: A method got another entity's group, or no group where that means all
            groups.
        NotFound: A saved edge begins or ends at a node that is not in the file.
    """

    _entity: EntityId = PrivateAttr()
    _counters: IsolationCounters = PrivateAttr()
    _file: GraphTables = PrivateAttr()
    _store: SqlGraphStore = PrivateAttr()
    _reads: GraphitiReads = PrivateAttr()
    _tables: GraphitiTables = PrivateAttr()

    def __init__(self, entity: EntityId, file: GraphTables, counters: IsolationCounters) -> None:
        super().__init__()
        self._entity = entity
        self._counters = counters
        self._file = file
        self._store = SqlGraphStore(file)
        self._reads = GraphitiReads(file)
        self._tables = GraphitiTables(file)

    # Nodes

    async def node_save(self, node: EntityNode, driver: Any) -> None:
        await self._file.write(self._saving_nodes([node.model_dump()]))

    async def node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        self._bulk(transaction).add(self._saving_nodes(nodes))

    async def node_delete(self, node: Any, driver: Any) -> None:
        self._own([node.group_id])
        await self._tables.delete(_NODE_TABLES[type(node)], [node.uuid])

    async def node_delete_by_group_id(
        self, _cls: Any, driver: Any, group_id: str, batch_size: int = 100
    ) -> None:
        self._own([group_id])
        await self._store.clear()

    async def node_delete_by_uuids(
        self,
        _cls: Any,
        driver: Any,
        uuids: list[str],
        group_id: str | None = None,
        batch_size: int = 100,
    ) -> None:
        if group_id is not None:
            self._own([group_id])
        for table in _EVERY_KIND_OF_NODE:
            await self._tables.delete(table, uuids)

    async def node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityNode:
        for stored in await self._store.stored_nodes([uuid]):
            return entity_node(self._group, stored)
        raise NodeNotFoundError(uuid)

    async def node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str], group_id: str | None = None
    ) -> list[EntityNode]:
        if group_id is not None:
            self._own([group_id])
        return [entity_node(self._group, node) for node in await self._store.stored_nodes(uuids)]

    async def node_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[EntityNode]:
        self._own(group_ids)
        stored = await self._reads.nodes_before(uuid_cursor, limit)
        return [entity_node(self._group, node) for node in stored]

    async def node_get_by_names(
        self, _cls: Any, driver: Any, names: list[str], group_ids: list[str]
    ) -> list[EntityNode]:
        self._own(group_ids)
        return [entity_node(self._group, node) for node in await self._reads.nodes_named(names)]

    async def node_load_embeddings(self, node: EntityNode, driver: Any) -> None:
        vectors = await self._store.node_vectors([node.uuid])
        if node.uuid not in vectors:
            raise NodeNotFoundError(node.uuid)
        node.name_embedding = vectors[node.uuid].tolist()

    async def node_load_embeddings_bulk(
        self, driver: Any, nodes: list[EntityNode], batch_size: int = 100
    ) -> dict[str, list[float]]:
        return _lists(await self._store.node_vectors([node.uuid for node in nodes]))

    # Episodes and mentions

    async def episodic_node_save(self, node: EpisodicNode, driver: Any) -> None:
        values = {**node.model_dump(), "source": node.source.value}
        await self._file.write(self._saving_episodes([values]))

    async def episodic_node_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, nodes: list[Any], batch_size: int = 100
    ) -> None:
        self._bulk(transaction).add(self._saving_episodes(nodes))

    async def episodic_node_delete(self, node: EpisodicNode, driver: Any) -> None:
        await self.node_delete(node, driver)

    async def episodic_node_delete_by_uuids(
        self,
        _cls: Any,
        driver: Any,
        uuids: list[str],
        group_id: str | None = None,
        batch_size: int = 100,
    ) -> None:
        if group_id is not None:
            self._own([group_id])
        await self._tables.delete("episode", uuids)

    async def episodic_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EpisodicNode:
        for stored in await self._store.stored_episodes([uuid]):
            return episodic_node(self._group, stored)
        raise NodeNotFoundError(uuid)

    async def episodic_node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[EpisodicNode]:
        return [
            episodic_node(self._group, episode)
            for episode in await self._store.stored_episodes(uuids)
        ]

    async def episodic_node_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[EpisodicNode]:
        self._own(group_ids)
        stored = await self._reads.episodes_before(uuid_cursor, limit)
        return [episodic_node(self._group, episode) for episode in stored]

    async def episodic_node_get_by_entity_node_uuid(
        self, _cls: Any, driver: Any, entity_node_uuid: str
    ) -> list[EpisodicNode]:
        stored = await self._reads.episodes_mentioning(entity_node_uuid)
        return [episodic_node(self._group, episode) for episode in stored]

    async def retrieve_episodes(
        self,
        driver: Any,
        reference_time: datetime,
        last_n: int = 3,
        group_ids: list[str] | None = None,
        source: EpisodeType | None = None,
        saga: str | None = None,
    ) -> list[EpisodicNode]:
        self._own(group_ids)
        stored = await self._reads.latest_episodes(
            reference_time, last_n, source=None if source is None else source.value, saga=saga
        )
        return [episodic_node(self._group, episode) for episode in stored]

    async def episodic_edge_save(self, edge: EpisodicEdge, driver: Any) -> None:
        await self._file.write(self._saving_mentions([edge.model_dump()]))

    async def episodic_edge_save_bulk(
        self,
        _cls: Any,
        driver: Any,
        transaction: Any,
        episodic_edges: list[Any],
        batch_size: int = 100,
    ) -> None:
        self._bulk(transaction).add(self._saving_mentions(episodic_edges))

    async def get_mentioned_nodes(
        self, driver: Any, episodes: list[EpisodicNode]
    ) -> list[EntityNode]:
        stored = await self._reads.nodes_mentioned([episode.uuid for episode in episodes])
        return [entity_node(self._group, node) for node in stored]

    # Facts

    async def edge_save(self, edge: EntityEdge, driver: Any) -> None:
        await self._file.write(self._saving_facts([edge.model_dump()]))

    async def edge_save_bulk(
        self, _cls: Any, driver: Any, transaction: Any, edges: list[Any], batch_size: int = 100
    ) -> None:
        bulk = self._bulk(transaction)
        save = self._saving_facts(edges)

        def save_and_note(session: SqlSession) -> None:
            for fact in facts_in(session, [str(values["uuid"]) for values in edges]):
                bulk.replaced_facts.setdefault(fact.uuid, fact)
            save(session)

        bulk.add(save_and_note)

    async def edge_delete(self, edge: Any, driver: Any) -> None:
        self._own([edge.group_id])
        await self._tables.delete(_EDGE_TABLES[type(edge)], [edge.uuid])

    async def edge_delete_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str], group_id: str | None = None
    ) -> None:
        if group_id is not None:
            self._own([group_id])
        for table in _EVERY_KIND_OF_EDGE:
            await self._tables.delete(table, uuids)

    async def edge_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityEdge:
        for stored in await self._store.stored_facts([uuid]):
            return entity_edge(self._group, stored)
        raise EdgeNotFoundError(uuid)

    async def edge_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str]) -> list[EntityEdge]:
        return [entity_edge(self._group, fact) for fact in await self._store.stored_facts(uuids)]

    async def edge_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[EntityEdge]:
        self._own(group_ids)
        stored = await self._reads.facts_before(uuid_cursor, limit)
        return [entity_edge(self._group, fact) for fact in stored]

    async def edge_get_between_nodes(
        self, _cls: Any, driver: Any, source_node_uuid: str, target_node_uuid: str
    ) -> list[EntityEdge]:
        stored = await self._reads.facts_between(source_node_uuid, target_node_uuid)
        return [entity_edge(self._group, fact) for fact in stored]

    async def edge_get_by_node_uuid(
        self, _cls: Any, driver: Any, node_uuid: str
    ) -> list[EntityEdge]:
        stored = await self._reads.facts_touching(node_uuid)
        return [entity_edge(self._group, fact) for fact in stored]

    async def edge_load_embeddings(self, edge: EntityEdge, driver: Any) -> None:
        vectors = await self._store.fact_vectors([edge.uuid])
        if edge.uuid not in vectors:
            raise EdgeNotFoundError(edge.uuid)
        edge.fact_embedding = vectors[edge.uuid].tolist()

    async def edge_load_embeddings_bulk(
        self, driver: Any, edges: list[EntityEdge], batch_size: int = 100
    ) -> dict[str, list[float]]:
        return _lists(await self._store.fact_vectors([edge.uuid for edge in edges]))

    # Communities

    async def community_node_save(self, node: CommunityNode, driver: Any) -> None:
        self._own([node.group_id])
        await self._tables.save_community(community_of(node), _vector(node.name_embedding))

    async def community_node_delete(self, node: CommunityNode, driver: Any) -> None:
        await self.node_delete(node, driver)

    async def community_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> CommunityNode:
        for stored in await self._tables.communities([uuid]):
            return community_node(self._group, stored)
        raise NodeNotFoundError(uuid)

    async def community_node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[CommunityNode]:
        return [
            community_node(self._group, community)
            for community in await self._tables.communities(uuids)
        ]

    async def community_node_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[CommunityNode]:
        self._own(group_ids)
        stored = await self._tables.communities_before(uuid_cursor, limit)
        return [community_node(self._group, community) for community in stored]

    async def community_node_load_name_embedding(self, node: CommunityNode, driver: Any) -> None:
        vectors = await self._tables.community_vectors([node.uuid])
        if node.uuid not in vectors:
            raise NodeNotFoundError(node.uuid)
        node.name_embedding = vectors[node.uuid].tolist()

    async def community_edge_save(self, edge: CommunityEdge, driver: Any) -> None:
        await self._save_link("member", edge)

    async def community_edge_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[CommunityEdge]:
        return [
            community_edge(self._group, link) for link in await self._tables.links("member", uuids)
        ]

    async def community_edge_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[CommunityEdge]:
        self._own(group_ids)
        links = await self._tables.links_before("member", uuid_cursor, limit)
        return [community_edge(self._group, link) for link in links]

    async def get_communities_by_nodes(
        self, driver: Any, nodes: list[EntityNode]
    ) -> list[CommunityNode]:
        stored = await self._tables.communities_of([node.uuid for node in nodes])
        return [community_node(self._group, community) for community in stored]

    async def get_community_clusters(
        self, driver: Any, group_ids: list[str] | None
    ) -> list[list[EntityNode]]:
        self._own(group_ids)
        stored = await self._reads.nodes_before(None, None)
        nodes = {row.node.uuid: entity_node(self._group, row) for row in stored}
        uuids_of_clusters = clusters(list(nodes), await self._reads.neighbours())
        return [[nodes[uuid] for uuid in uuids] for uuids in uuids_of_clusters]

    async def remove_communities(self, driver: Any, group_ids: list[str] | None = None) -> None:
        self._own(group_ids)
        await self._tables.remove_communities()

    async def determine_entity_community(
        self, driver: Any, entity: EntityNode
    ) -> tuple[CommunityNode | None, bool]:
        """Return the community of a node and False, or the community of its neighbours and True.

        True tells Graphiti to make the node a member. (None, False) where there is no community.
        """
        for community in await self._tables.communities_of([entity.uuid]):
            return community_node(self._group, community), False
        around = await self._tables.community_around(entity.uuid)
        return (None, False) if around is None else (community_node(self._group, around), True)

    # Sagas

    async def saga_node_save(self, node: SagaNode, driver: Any) -> None:
        self._own([node.group_id])
        await self._tables.save_saga(saga_of(node))

    async def saga_node_delete(self, node: SagaNode, driver: Any) -> None:
        await self.node_delete(node, driver)

    async def saga_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> SagaNode:
        for stored in await self._tables.sagas([uuid]):
            return saga_node(self._group, stored)
        raise NodeNotFoundError(uuid)

    async def saga_node_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[SagaNode]:
        return [saga_node(self._group, saga) for saga in await self._tables.sagas(uuids)]

    async def saga_node_get_by_group_ids(
        self,
        _cls: Any,
        driver: Any,
        group_ids: list[str],
        limit: int | None = None,
        uuid_cursor: str | None = None,
    ) -> list[SagaNode]:
        self._own(group_ids)
        stored = await self._tables.sagas_before(uuid_cursor, limit)
        return [saga_node(self._group, saga) for saga in stored]

    async def saga_get_previous_episode_uuid(
        self, driver: Any, saga_uuid: str, current_episode_uuid: str
    ) -> str | None:
        return await self._tables.previous_episode(saga_uuid, current_episode_uuid)

    async def saga_get_episode_contents(
        self, driver: Any, saga_uuid: str, since: datetime | None = None, limit: int = 200
    ) -> list[tuple[str, datetime, datetime]]:
        return await self._tables.episode_contents(saga_uuid, since, limit)

    async def has_episode_edge_save(self, edge: HasEpisodeEdge, driver: Any) -> None:
        await self._save_link("saga_episode", edge)

    async def has_episode_edge_delete(self, edge: HasEpisodeEdge, driver: Any) -> None:
        await self.edge_delete(edge, driver)

    async def has_episode_edge_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[HasEpisodeEdge]:
        links = await self._tables.links("saga_episode", uuids)
        return [has_episode_edge(self._group, link) for link in links]

    async def next_episode_edge_save(self, edge: NextEpisodeEdge, driver: Any) -> None:
        await self._save_link("episode_order", edge)

    async def next_episode_edge_delete(self, edge: NextEpisodeEdge, driver: Any) -> None:
        await self.edge_delete(edge, driver)

    async def next_episode_edge_get_by_uuids(
        self, _cls: Any, driver: Any, uuids: list[str]
    ) -> list[NextEpisodeEdge]:
        links = await self._tables.links("episode_order", uuids)
        return [next_episode_edge(self._group, link) for link in links]

    # Everything

    async def clear_data(self, driver: Any, group_ids: list[str] | None = None) -> None:
        self._own(group_ids)
        await self._store.clear()

    @property
    def _group(self) -> str:
        return self._entity.group

    def _own(self, groups: Sequence[str | None] | None) -> None:
        """Refuse every group but the entity's own, and no group, by which Graphiti means all."""
        if not groups or not all(same_group(group, self._group) for group in groups):
            raise self._counters.refuse(
                self._entity, "group", "a call of Graphiti's named another group, or none"
            )

    def _bulk(self, transaction: object) -> BulkSave:
        if not isinstance(transaction, BulkSave):
            raise InvalidRequest("transaction", "must be that of a session of this driver")
        return transaction

    def _saving_nodes(self, nodes: Sequence[Mapping[str, Any]]) -> Save:
        self._own_all(nodes)
        stored = [stored_node(values) for values in nodes]
        return lambda session: put_nodes(session, stored)

    def _saving_facts(self, edges: Sequence[Mapping[str, Any]]) -> Save:
        self._own_all(edges)
        stored = [stored_fact(values) for values in edges]
        return lambda session: put_facts(session, stored)

    def _saving_episodes(self, episodes: Sequence[Mapping[str, Any]]) -> Save:
        self._own_all(episodes)
        stored = [stored_episode(values) for values in episodes]
        return lambda session: put_episodes(session, stored)

    def _saving_mentions(self, edges: Sequence[Mapping[str, Any]]) -> Save:
        self._own_all(edges)
        rows = [
            (
                values["source_node_uuid"],
                values["target_node_uuid"],
                values["uuid"],
                values["created_at"] or now(),
            )
            for values in edges
        ]

        def save(session: SqlSession) -> None:
            put_mentions(session, rows)

        return save

    def _own_all(self, items: Sequence[Mapping[str, Any]]) -> None:
        if items:
            self._own([values["group_id"] for values in items])

    async def _save_link(
        self, table: LinkTable, edge: CommunityEdge | HasEpisodeEdge | NextEpisodeEdge
    ) -> None:
        self._own([edge.group_id])
        await self._tables.save_link(table, link_of(edge))


def _vector(embedding: Sequence[float] | None) -> Vector | None:
    return None if embedding is None else np.asarray(embedding, dtype=np.float32)


def _lists(vectors: Mapping[str, Vector]) -> dict[str, list[float]]:
    return {uuid: vector.tolist() for uuid, vector in vectors.items()}


def clusters(
    nodes: Sequence[str], neighbours: Iterable[tuple[str, str, int]], rounds: int = _ROUNDS
) -> list[list[str]]:
    """Return groups of nodes with more facts inside than to others; each node is in one group.

    Each round gives every node, in turn, the label that most of its facts lead to (Raghavan, Albert
    and Kumara 2007, the asynchronous form). As in Graphiti, a label that one fact alone leads to
    counts only where it is the greater.

    Args:
        nodes: All nodes; their order decides ties.
        neighbours: (node, neighbour, how many facts join them), both ways.
        rounds: Most rounds; label propagation need not come to rest.
    """
    joined: dict[str, list[tuple[str, int]]] = {node: [] for node in nodes}
    for node, neighbour, facts in neighbours:
        if node in joined and neighbour in joined:
            joined[node].append((neighbour, facts))
    label = {node: place for place, node in enumerate(nodes)}
    for _ in range(rounds):
        has_changed = False
        for node in nodes:
            new = _label(label, node, joined[node])
            has_changed = has_changed or new != label[node]
            label[node] = new
        if not has_changed:
            break
    by_label: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        by_label[label[node]].append(node)
    return list(by_label.values())


def _label(label: dict[str, int], node: str, neighbours: Sequence[tuple[str, int]]) -> int:
    votes: dict[int, int] = defaultdict(int)
    for neighbour, facts in neighbours:
        votes[label[neighbour]] += facts
    if not votes:
        return label[node]
    count, candidate = max((facts, place) for place, facts in votes.items())
    return candidate if count > 1 else max(candidate, label[node])
