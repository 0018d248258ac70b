"""Between Graphiti's objects and the rows of an entity's SQL tables.

What Graphiti has no place for (kind, aliases, tags, the user's attributes) travels on its objects
as one JSON text under the attribute ``pps``, as on the other stores; in the tables it has columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphiti_core.edges import (
    CommunityEdge,
    EntityEdge,
    EpisodicEdge,
    HasEpisodeEdge,
    NextEpisodeEdge,
)
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodeType, EpisodicNode, SagaNode

from pps.core.time import plain
from pps.graph.mapping import (
    ATTRIBUTE,
    episode_of,
    fact_of,
    fact_pps,
    foreign_attributes,
    mention_id,
    node_of,
    node_pps,
)
from pps.isolation.graphiti_objects import GraphitiObjects
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graphiti_reads import GraphitiReads
from pps.store.graphiti_tables import GraphitiCommunity, GraphitiLink, GraphitiSaga
from pps.store.sql_graph import SqlGraphStore


class SqlObjects(GraphitiObjects):
    """Graphiti's objects, made of rows."""

    def __init__(self, store: SqlGraphStore, reads: GraphitiReads) -> None:
        self._store = store
        self._reads = reads
        self._group = store.group

    async def nodes(self, uuids: Sequence[str]) -> list[EntityNode]:
        return [entity_node(self._group, node) for node in await self._store.stored_nodes(uuids)]

    async def edges(self, uuids: Sequence[str]) -> list[EntityEdge]:
        return [entity_edge(self._group, fact) for fact in await self._store.stored_facts(uuids)]

    async def episodes(self, uuids: Sequence[str]) -> list[EpisodicNode]:
        return [
            episodic_node(self._group, episode)
            for episode in await self._store.stored_episodes(uuids)
        ]

    async def nodes_named(self, names: Iterable[str]) -> list[EntityNode]:
        return [entity_node(self._group, node) for node in await self._reads.nodes_named(names)]

    async def latest_episodes(self, before: datetime, limit: int) -> list[str]:
        episodes = await self._reads.latest_episodes(before, limit)
        return [stored.episode.uuid for stored in episodes]

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        return await self._reads.episodes_of_nodes(nodes)

    async def read_by_graphiti(self, episode: str) -> list[str]:
        return sorted(
            node
            for uuid, node in await self._reads.mentions_of(episode)
            if uuid != mention_id(self._group, episode, node)
        )

    async def strangers(self) -> set[bool]:
        return await self._store.strangers()


def entity_node(group: str, stored: StoredNode) -> EntityNode:
    node = stored.node
    return EntityNode(
        uuid=node.uuid,
        name=node.name,
        group_id=group,
        labels=list(stored.labels),
        created_at=node.created_at,
        summary=node.summary,
        attributes={**stored.graphiti, ATTRIBUTE: node_pps(node, stored.graphiti)},
    )


def entity_edge(group: str, stored: StoredFact) -> EntityEdge:
    fact = stored.fact
    return EntityEdge(
        uuid=fact.uuid,
        group_id=group,
        source_node_uuid=fact.subject,
        target_node_uuid=fact.object,
        name=fact.relation,
        fact=fact.text,
        episodes=list(fact.episodes),
        created_at=fact.created_at,
        expired_at=fact.expired_at,
        valid_at=_plain(fact.valid_at),
        invalid_at=_plain(fact.invalid_at),
        reference_time=stored.reference_time,
        attributes={**stored.graphiti, ATTRIBUTE: fact_pps(fact, stored.graphiti)},
    )


def episodic_node(group: str, stored: StoredEpisode) -> EpisodicNode:
    episode = stored.episode
    return EpisodicNode(
        uuid=episode.uuid,
        name=episode.name,
        group_id=group,
        created_at=episode.created_at,
        source=EpisodeType.from_str(stored.source),
        source_description=episode.description,
        content=episode.content,
        valid_at=plain(episode.valid_at),
        entity_edges=list(episode.facts),
        episode_metadata=json.loads(stored.metadata) if stored.metadata else None,
    )


def community_node(group: str, community: GraphitiCommunity) -> CommunityNode:
    return CommunityNode(
        uuid=community.uuid,
        name=community.name,
        group_id=group,
        summary=community.summary,
        created_at=community.created_at,
    )


def saga_node(group: str, saga: GraphitiSaga) -> SagaNode:
    return SagaNode(
        uuid=saga.uuid,
        name=saga.name,
        group_id=group,
        summary=saga.summary,
        created_at=saga.created_at,
        first_episode_uuid=saga.first_episode,
        last_episode_uuid=saga.last_episode,
        last_summarized_at=saga.summarized_at,
        last_summarized_episode_valid_at=saga.summarized_valid_at,
    )


def community_edge(group: str, link: GraphitiLink) -> CommunityEdge:
    return CommunityEdge(**_edge_fields(group, link))


def has_episode_edge(group: str, link: GraphitiLink) -> HasEpisodeEdge:
    return HasEpisodeEdge(**_edge_fields(group, link))


def next_episode_edge(group: str, link: GraphitiLink) -> NextEpisodeEdge:
    return NextEpisodeEdge(**_edge_fields(group, link))


def stored_node(values: Mapping[str, Any]) -> StoredNode:
    """Return the row of an EntityNode's fields; attributes are a mapping or JSON text."""
    labels = tuple(sorted({*values["labels"], "Entity"}))
    node = node_of({**values, "labels": labels})
    return StoredNode(node, labels, foreign_attributes(values["attributes"]))


def stored_fact(values: Mapping[str, Any]) -> StoredFact:
    """Return the row of an EntityEdge's fields; attributes are a mapping or JSON text."""
    reference = values.get("reference_time")
    return StoredFact(
        fact_of(values),
        foreign_attributes(values["attributes"]),
        None if reference is None else _aware(reference),
    )


def stored_episode(values: Mapping[str, Any]) -> StoredEpisode:
    """Return the row of an EpisodicNode's fields; its source is a text."""
    metadata = values.get("episode_metadata")
    return StoredEpisode(
        episode_of(values),
        values["source"],
        "" if metadata is None else json.dumps(metadata, ensure_ascii=False, default=str),
    )


def link_of(edge: CommunityEdge | EpisodicEdge | HasEpisodeEdge | NextEpisodeEdge) -> GraphitiLink:
    return GraphitiLink(
        edge.uuid, edge.source_node_uuid, edge.target_node_uuid, _aware(edge.created_at)
    )


def community_of(node: CommunityNode) -> GraphitiCommunity:
    return GraphitiCommunity(node.uuid, node.name, node.summary, _aware(node.created_at))


def saga_of(node: SagaNode) -> GraphitiSaga:
    return GraphitiSaga(
        uuid=node.uuid,
        name=node.name,
        summary=node.summary,
        first_episode=node.first_episode_uuid,
        last_episode=node.last_episode_uuid,
        created_at=_aware(node.created_at),
        summarized_at=_maybe_aware(node.last_summarized_at),
        summarized_valid_at=_maybe_aware(node.last_summarized_episode_valid_at),
    )


def _edge_fields(group: str, link: GraphitiLink) -> dict[str, Any]:
    return {
        "uuid": link.uuid,
        "group_id": group,
        "source_node_uuid": link.source,
        "target_node_uuid": link.target,
        "created_at": link.created_at,
    }


def _plain(moment: datetime | None) -> datetime | None:
    return None if moment is None else plain(moment)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _maybe_aware(moment: datetime | None) -> datetime | None:
    return None if moment is None else _aware(moment)
