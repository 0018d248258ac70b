"""Attacks on the guard: Graphiti's calls and raw statements with another's items, in four ways."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from graphiti_core.edges import (
    CommunityEdge,
    Edge,
    EntityEdge,
    EpisodicEdge,
    HasEpisodeEdge,
    NextEpisodeEdge,
)
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode, Node, SagaNode
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.search.search_utils import (
    edge_bfs_search,
    edge_fulltext_search,
    episode_mentions_reranker,
    get_communities_by_nodes,
    get_embeddings_for_edges,
    get_embeddings_for_nodes,
    get_mentioned_nodes,
    node_bfs_search,
    node_distance_reranker,
    node_fulltext_search,
)
from graphiti_core.utils.maintenance.community_operations import (
    get_community_clusters,
    remove_communities,
)
from graphiti_core.utils.maintenance.graph_data_operations import clear_data, retrieve_episodes

from pps.proof.arena import Being
from pps.proof.by_id import Ids

_NOW = datetime(2026, 3, 1, tzinfo=UTC)

# Graphiti leaves the types of these open.
_EntityNode = cast(Any, EntityNode)
_EntityEdge = cast(Any, EntityEdge)
_Node = cast(Any, Node)


@dataclass(frozen=True, slots=True)
class Strike:
    """What an attack on the guard has at hand."""

    being: Being
    group: str
    ids: Ids

    @property
    def guard(self) -> Any:
        return self.being.bare

    @property
    def own_group(self) -> str:
        return self.being.entity.group


@dataclass(frozen=True, slots=True)
class GuardAttack:
    """One attack.

    ``refused``: it must raise IsolationError on every store; else it may find nothing instead.
    """

    name: str
    call: Callable[[Strike], Awaitable[object]]
    refused: bool = True


def _entity(s: Strike, uuid: str, group: str) -> Any:
    return EntityNode(
        uuid=uuid, name="planted by an attack", group_id=group, name_embedding=[0.1, 0.2]
    )


def _episode(s: Strike, uuid: str, group: str) -> Any:
    return EpisodicNode(
        uuid=uuid,
        name="x",
        group_id=group,
        source="text",  # pyright: ignore[reportArgumentType] - pydantic makes the enum of it
        source_description="",
        content="planted by an attack",
        valid_at=_NOW,
    )


def _edge(s: Strike, kind: type[Edge], source: str, target: str, uuid: str = "") -> Any:
    return kind(  # pyright: ignore[reportAbstractUsage] - one of the concrete kinds
        uuid=uuid or s.being.mint("edge"),
        group_id=s.own_group,
        source_node_uuid=source,
        target_node_uuid=target,
        created_at=_NOW,
        **(
            {"name": "KNOWS", "fact": "planted", "fact_embedding": [0.1]}
            if kind is EntityEdge
            else {}
        ),
    )


async def _session(s: Strike, query: str, **parameters: Any) -> object:
    async with s.guard.session() as session:
        return await session.run(query, **parameters)


async def _write(s: Strike, query: str, **parameters: Any) -> object:
    async def work(transaction: Any) -> object:
        return await transaction.run(query, **parameters)

    async with s.guard.session() as session:
        return await session.execute_write(work)


async def _transaction(s: Strike, query: str, **parameters: Any) -> object:
    async with s.guard.transaction() as transaction:
        return await transaction.run(query, **parameters)


async def _execute(s: Strike, query: str, **parameters: Any) -> object:
    return await s.guard.execute_query(query, **parameters)


WAYS: tuple[tuple[str, Callable[..., Awaitable[object]]], ...] = (
    ("execute_query", _execute),
    ("session.run", _session),
    ("execute_write", _write),
    ("transaction", _transaction),
)
_ALL = "MATCH (n:Entity) RETURN n.uuid AS uuid, n.name AS name, n.summary AS summary"
_OF_GROUP = (
    "MATCH (n:Entity) WHERE n.group_id = $group_id RETURN n.name AS name, n.summary AS summary"
)
_OF_GROUPS = (
    "MATCH (n:Entity) WHERE n.group_id IN $group_ids RETURN n.name AS name, n.summary AS summary"
)
_BY_UUID = "MATCH (n:Entity {uuid: $uuid}) RETURN n.name AS name, n.summary AS summary"
_OTHERS = (
    "MATCH (n:Entity) WHERE n.group_id <> $group_id RETURN n.uuid AS uuid, n.group_id AS group_id"
)
_OTHERS_RENAMED = "MATCH (n:Entity) WHERE n.group_id <> $group_id RETURN n.group_id AS whose"
_OTHERS_NESTED = (
    "MATCH (n:Entity) WHERE n.group_id <> $group_id RETURN collect({a: {group_id: n.group_id}}) AS "
    "found"
)
_OTHERS_WHOLE = "MATCH (n:Entity) WHERE n.group_id <> $group_id RETURN n"
_OTHERS_BY_ID = "MATCH (n:Entity) WHERE n.group_id <> $group_id RETURN n.uuid AS uuid, 1 AS score"
_DELETE = "MATCH (n:Entity {uuid: $uuid}) DETACH DELETE n"
_MOVE = "MATCH (n:Entity {uuid: $uuid}) SET n.group_id = $group_id"
_STEAL = "UNWIND $nodes AS node MATCH (n:Entity {uuid: node.uuid}) SET n.group_id = node.group_id"


def raw_statements(s: Strike) -> list[tuple[str, str, dict[str, Any], bool]]:
    """Return (name, text, parameters, refused on every store)."""
    node = s.ids.node
    theirs = s.group
    ours = s.own_group
    return [
        ("everything", _ALL, {}, True),
        ("everything, with a decoy", _ALL, {"limit": 10, "name": "x"}, True),
        ("their group", _OF_GROUP, {"group_id": theirs}, True),
        ("no group", _OF_GROUP, {"group_id": None}, True),
        ("an empty group", _OF_GROUP, {"group_id": ""}, True),
        ("no groups", _OF_GROUPS, {"group_ids": None}, True),
        ("empty groups", _OF_GROUPS, {"group_ids": []}, True),
        ("a blank group", _OF_GROUPS, {"group_ids": [""]}, True),
        ("both groups", _OF_GROUPS, {"group_ids": [ours, theirs]}, True),
        ("both groups in params", _OF_GROUPS, {"params": {"group_ids": [ours, theirs]}}, True),
        ("theirs hidden in params", _OF_GROUP, {"params": {"group_id": theirs}}, True),
        (
            "theirs under another name",
            _OF_GROUP.replace("$group_id", "$g"),
            {"g": theirs, "group_id": ours},
            True,
        ),
        (
            "theirs in the text",
            f"MATCH (n:Entity {{group_id: '{theirs}'}}) RETURN n",
            {"group_id": ours},
            True,
        ),
        ("theirs nested", _OF_GROUP, {"group_id": ours, "a": {"b": [{"group_id": theirs}]}}, True),
        ("another database", _OF_GROUP, {"group_id": ours, "database_": "system"}, True),
        ("another user", _OF_GROUP, {"group_id": ours, "impersonated_user_": "x"}, True),
        ("their node", _BY_UUID, {"uuid": node}, False),
        ("their node, our group", _BY_UUID, {"uuid": node, "group_id": ours}, False),
        ("their node, shouted", _BY_UUID, {"uuid": node.upper()}, True),
        ("their node, nested", _BY_UUID.replace("$uuid", "$a.uuid"), {"a": {"uuid": node}}, False),
        ("a blank node", _BY_UUID, {"uuid": ""}, True),
        ("delete their node", _DELETE, {"uuid": node, "group_id": ours}, False),
        ("move their node", _MOVE, {"uuid": node, "group_id": ours}, False),
        ("move their nodes", _STEAL, {"nodes": [{"uuid": node, "group_id": ours}]}, False),
        ("rows of others", _OTHERS, {"group_id": ours}, False),
        ("rows of others, by id", _OTHERS_BY_ID, {"group_id": ours}, False),
        ("rows of others, renamed", _OTHERS_RENAMED, {"group_id": ours}, False),
        ("rows of others, nested", _OTHERS_NESTED, {"group_id": ours}, False),
        ("rows of others, whole", _OTHERS_WHOLE, {"group_id": ours}, False),
    ]


def raw_attacks(strike: Strike, chance: random.Random) -> list[GuardAttack]:
    """Return raw statements, each on one of the four ways."""

    def attack(name: str, text: str, parameters: dict[str, Any], refused: bool) -> GuardAttack:
        way, run = chance.choice(WAYS)
        return GuardAttack(f"{name} ({way})", lambda s: run(s, text, **parameters), refused)

    return [attack(*raw_statement) for raw_statement in raw_statements(strike)]


async def _clone(s: Strike) -> object:
    return s.guard.clone(s.group)


async def _other_database(s: Strike) -> object:
    return s.guard.with_database("system")


async def _other_session(s: Strike) -> object:
    return s.guard.session("system")


def _hook(s: Strike, name: str) -> Any:
    """Return what Graphiti's pipeline asks in place of the database."""
    return getattr(s.being.client.inside.guard, name)


def _client_guard(s: Strike) -> Any:
    """Return the driver of the client's own searches, with PPS's hooks or Graphiti's statements."""
    return s.being.client.inside.guard


def _operations(s: Strike) -> Any:
    return _hook(s, "graph_operations_interface")


def _between(s: Strike) -> SearchFilters:
    ends = [next(iter(s.being.nodes)), s.ids.node]
    return SearchFilters(edge_source_node_uuids=ends, edge_target_node_uuids=ends)


def _attacks(
    calls: Mapping[str, Callable[[Strike], Awaitable[object]]], *, refused: bool
) -> tuple[GuardAttack, ...]:
    return tuple(GuardAttack(name, call, refused) for name, call in calls.items())


STOCK: tuple[GuardAttack, ...] = (
    *_attacks(
        {
            "clear_data of all": lambda s: clear_data(s.guard),
            "clear_data of theirs": lambda s: clear_data(s.guard, [s.group]),
            "remove_communities of all": lambda s: remove_communities(s.guard),
            "remove_communities of theirs": lambda s: remove_communities(s.guard, [s.group]),
            "communities of all": lambda s: get_community_clusters(s.guard, None),
            "communities of theirs": lambda s: get_community_clusters(s.guard, [s.group]),
            "episodes of all": lambda s: retrieve_episodes(s.guard, _NOW, 10, None),
            "episodes of theirs": lambda s: retrieve_episodes(s.guard, _NOW, 10, [s.group]),
            "nodes of theirs": lambda s: EntityNode.get_by_group_ids(s.guard, [s.group]),
            "nodes of both": lambda s: EntityNode.get_by_group_ids(s.guard, [s.own_group, s.group]),
            "nodes of none": lambda s: EntityNode.get_by_group_ids(s.guard, []),
            "names of theirs": lambda s: _EntityNode.get_by_names(s.guard, ["Ana"], [s.group]),
            "delete_by_group_id of theirs": lambda s: _Node.delete_by_group_id(s.guard, s.group),
            "save a node as theirs": lambda s: _entity(s, s.being.mint("x"), s.group).save(s.guard),
            "save an episode as theirs": lambda s: _episode(s, s.being.mint("x"), s.group).save(
                s.guard
            ),
            "build_indices": lambda s: s.guard.build_indices_and_constraints(),
            "clone": _clone,
            "with_database": _other_database,
            "session on another database": _other_session,
            "search everywhere": lambda s: node_fulltext_search(
                _client_guard(s), "Ana", SearchFilters(), None, 10
            ),
            "search theirs": lambda s: edge_fulltext_search(
                _client_guard(s), "Ana", SearchFilters(), [s.own_group, s.group], 10
            ),
        },
        refused=True,
    ),
    *_attacks(
        {
            "node": lambda s: EntityNode.get_by_uuid(s.guard, s.ids.node),
            "nodes": lambda s: EntityNode.get_by_uuids(s.guard, [s.ids.node], group_id=s.own_group),
            "episode": lambda s: EpisodicNode.get_by_uuid(s.guard, s.ids.episode),
            "episodes": lambda s: EpisodicNode.get_by_uuids(s.guard, [s.ids.episode]),
            "episodes of a node": lambda s: EpisodicNode.get_by_entity_node_uuid(
                s.guard, s.ids.node
            ),
            "edge": lambda s: EntityEdge.get_by_uuid(s.guard, s.ids.fact),
            "edges": lambda s: _EntityEdge.get_by_uuids(s.guard, [s.ids.fact]),
            "edges of a node": lambda s: EntityEdge.get_by_node_uuid(s.guard, s.ids.node),
            "edges between": lambda s: EntityEdge.get_between_nodes(
                s.guard, s.ids.node, next(iter(s.being.nodes))
            ),
            "community": lambda s: CommunityNode.get_by_uuid(s.guard, s.ids.community),
            "saga": lambda s: SagaNode.get_by_uuid(s.guard, s.ids.saga),
            "embedding": lambda s: _entity(s, s.ids.node, s.own_group).load_name_embedding(s.guard),
            "embeddings": lambda s: get_embeddings_for_nodes(
                s.guard, [_entity(s, s.ids.node, s.own_group)]
            ),
            "fact embeddings": lambda s: get_embeddings_for_edges(
                s.guard, [_edge(s, EntityEdge, s.ids.node, s.ids.node, s.ids.fact)]
            ),
            "mentioned nodes": lambda s: get_mentioned_nodes(
                s.guard, [_episode(s, s.ids.episode, s.own_group)]
            ),
            "communities of nodes": lambda s: get_communities_by_nodes(
                s.guard, [_entity(s, s.ids.node, s.own_group)]
            ),
            "distance": lambda s: node_distance_reranker(s.guard, list(s.being.nodes), s.ids.node),
            "move a node by saving it": lambda s: _entity(s, s.ids.node, s.own_group).save(s.guard),
            "move an episode by saving it": lambda s: _episode(s, s.ids.episode, s.own_group).save(
                s.guard
            ),
            "delete a node": lambda s: _entity(s, s.ids.node, s.own_group).delete(s.guard),
            "delete an episode": lambda s: _episode(s, s.ids.episode, s.own_group).delete(s.guard),
            "delete nodes": lambda s: _Node.delete_by_uuids(s.guard, [s.ids.node, s.ids.episode]),
            "delete edges": lambda s: Edge.delete_by_uuids(s.guard, [s.ids.fact]),
            "an edge to a node": lambda s: _edge(
                s, EntityEdge, next(iter(s.being.nodes)), s.ids.node
            ).save(s.guard),
            "a mention of a node": lambda s: _edge(
                s, EpisodicEdge, next(iter(s.being.episodes)), s.ids.node
            ).save(s.guard),
            "a membership of a node": lambda s: _edge(
                s, CommunityEdge, s.being.community, s.ids.node
            ).save(s.guard),
            "a saga with an episode": lambda s: _edge(
                s, HasEpisodeEdge, s.being.saga, s.ids.episode
            ).save(s.guard),
            "an episode after an episode": lambda s: _edge(
                s, NextEpisodeEdge, s.ids.episode, next(iter(s.being.episodes))
            ).save(s.guard),
        },
        refused=False,
    ),
)

HOOKED: tuple[GuardAttack, ...] = (
    *_attacks(
        {
            "a walk from a node": lambda s: node_bfs_search(
                _client_guard(s), [s.ids.node], SearchFilters(), 3, [s.own_group]
            ),
            "a walk from an episode": lambda s: edge_bfs_search(
                _client_guard(s), [s.ids.episode], 3, SearchFilters(), [s.own_group]
            ),
            "a search by a fact": lambda s: edge_fulltext_search(
                _client_guard(s), "Ana", SearchFilters(edge_uuids=[s.ids.fact]), [s.own_group]
            ),
            "a search by ends": lambda s: edge_fulltext_search(
                _client_guard(s), "Ana", _between(s), [s.own_group]
            ),
            "mentions of a node": lambda s: episode_mentions_reranker(
                _client_guard(s), [[s.ids.node]]
            ),
            "a node, hooked": lambda s: _operations(s).node_get_by_uuids(
                None, s.guard, [s.ids.node]
            ),
            "an episode, hooked": lambda s: _operations(s).episodic_node_get_by_uuids(
                None, s.guard, [s.ids.episode]
            ),
            "embeddings, hooked": lambda s: _operations(s).node_load_embeddings_bulk(
                s.guard, [_entity(s, s.ids.node, s.own_group)]
            ),
        },
        refused=False,
    ),
)
"""Requests of Graphiti's searches and pipeline to PPS's hooks: none finds another's items."""
