"""Clients with a lock taken away: for tests only, to show that the other lock is enough, and that a leak is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphiti_core.edges import Edge, EntityEdge, EpisodicEdge
from graphiti_core.nodes import EntityNode, EpisodicNode, Node
from graphiti_core.search.search_utils import get_mentioned_nodes

from pps.core import values
from pps.core.time import now
from pps.graph.mapping import (
    ATTRIBUTE,
    episode_of,
    fact_of,
    fact_pps,
    node_labels,
    node_of,
    node_pps,
)
from pps.isolation import client as client_module
from pps.isolation.binding import FirstLock, Inside
from pps.isolation.graphiti_objects import GroupObjects
from pps.isolation.graphiti_search import GroupSearch
from pps.isolation.guard import GuardedDriver, _Checks
from pps.isolation.store_neo4j import Neo4jStore
from pps.models.protocols import Vector
from pps.proof.arena import ExposedClient


class StockStore(Neo4jStore):
    """A store that addresses things as stock Graphiti does: by uuid alone."""

    def __init__(self, driver: GuardedDriver, inner: Any, group: str) -> None:
        super().__init__(inner, group)
        self._driver = driver

    async def nodes(self, uuids: Sequence[str]) -> list[values.Node]:
        found = await EntityNode.get_by_uuids(self._driver, list(uuids))
        return [node_of({**node.model_dump(), "attributes": node.attributes}) for node in found]

    async def facts(self, uuids: Sequence[str]) -> list[values.Fact]:
        return [
            fact_of(edge.model_dump())
            for edge in await EntityEdge.get_by_uuids(self._driver, list(uuids))
        ]

    async def episodes(self, uuids: Sequence[str]) -> list[values.Episode]:
        found = await EpisodicNode.get_by_uuids(self._driver, list(uuids))
        return [episode_of({**one.model_dump(), "source": one.source.value}) for one in found]

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[values.Fact]:
        found = [
            edge for uuid in uuids for edge in await EntityEdge.get_by_node_uuid(self._driver, uuid)
        ]
        return [fact_of(edge.model_dump()) for edge in found][:limit]

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for uuid in episodes:
            bare = EpisodicNode(
                uuid=uuid,
                name="",
                group_id=self.group,
                source="text",
                source_description="",
                content="",
                valid_at=now(),
            )
            if nodes := await get_mentioned_nodes(self._driver, [bare]):
                found[uuid] = sorted(node.uuid for node in nodes)
        return found

    async def save_nodes(self, nodes: Sequence[values.Node], vectors: Mapping[str, Vector]) -> None:
        for node in nodes:
            await EntityNode(
                uuid=node.uuid,
                name=node.name,
                group_id=self.group,
                labels=node_labels(node)[1:],
                created_at=node.created_at,
                summary=node.summary,
                name_embedding=vectors[node.uuid].tolist() if node.uuid in vectors else [0.1],
                attributes={ATTRIBUTE: node_pps(node)},
            ).save(self._driver)

    async def save_facts(self, facts: Sequence[values.Fact], vectors: Mapping[str, Vector]) -> None:
        for fact in facts:
            await EntityEdge(
                uuid=fact.uuid,
                group_id=self.group,
                source_node_uuid=fact.subject,
                target_node_uuid=fact.object,
                created_at=fact.created_at,
                name=fact.relation,
                fact=fact.text,
                fact_embedding=vectors[fact.uuid].tolist() if fact.uuid in vectors else [0.1],
                episodes=list(fact.episodes),
                valid_at=fact.valid_at,
                invalid_at=fact.invalid_at,
                attributes={ATTRIBUTE: fact_pps(fact)},
            ).save(self._driver)

    async def save_episodes(self, episodes: Sequence[values.Episode]) -> None:
        for episode in episodes:
            await EpisodicNode(
                uuid=episode.uuid,
                name=episode.name,
                group_id=self.group,
                source=episode.source,
                source_description=episode.description,
                content=episode.content,
                created_at=episode.created_at,
                valid_at=episode.valid_at,
            ).save(self._driver)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        for episode, node in pairs:
            await EpisodicEdge(
                group_id=self.group,
                source_node_uuid=episode,
                target_node_uuid=node,
                created_at=now(),
            ).save(self._driver)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        await Node.delete_by_uuids(self._driver, list(uuids))
        return len(uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        return await self.delete_nodes(uuids)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        await Edge.delete_by_uuids(self._driver, list(uuids))
        return len(uuids)


class StockObjects(GroupObjects):
    """Graphiti's objects, read as Graphiti reads them: by uuid alone."""

    def __init__(self, driver: GuardedDriver, own: Any, group: str) -> None:
        super().__init__(own, group)
        self._driver = driver

    async def nodes(self, uuids: Sequence[str]) -> list[EntityNode]:
        return await EntityNode.get_by_uuids(self._driver, list(uuids))

    async def edges(self, uuids: Sequence[str]) -> list[EntityEdge]:
        return await EntityEdge.get_by_uuids(self._driver, list(uuids))

    async def episodes(self, uuids: Sequence[str]) -> list[EpisodicNode]:
        return await EpisodicNode.get_by_uuids(self._driver, list(uuids))

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for uuid in nodes:
            if episodes := await EpisodicNode.get_by_entity_node_uuid(self._driver, uuid):
                found[uuid] = sorted(episode.uuid for episode in episodes)
        return found


class _NoLock(FirstLock):
    async def free(self, ids: Sequence[str]) -> None:
        return None

    def asked(self, found: Any, wanted: Any) -> None:
        return None

    def own_groups(self, groups: Any) -> None:
        return None

    def all_there(self, found: int, wanted: int) -> None:
        return None


class FirstLockGone(ExposedClient):
    """A client that checks no id and addresses everything by uuid alone; the guard is all there is."""

    def __init__(self, inside: Inside) -> None:
        guard, group = inside.guard, inside.entity.group
        own = guard.for_own_statements()
        store, objects = StockStore(guard, own, group), StockObjects(guard, own, group)
        guard.graph_operations_interface = None
        guard.search_interface = GroupSearch(
            inside.entity, store, objects, inside.indexes, inside.counters
        )
        lock = _NoLock(inside.entity, guard, inside.counters)
        super().__init__(replace(inside, lock=lock, store=store, objects=objects))


class _NoChecks(_Checks):
    async def before(self, query: object, parameters: Mapping[str, Any], *, own: bool) -> bool:
        return True

    async def after(self, rows: Any, *, own: bool) -> Any:
        return rows


class Unguarded(GuardedDriver):
    """A guard that lets everything by."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        checks = self._GuardedDriver__checks  # type: ignore[attr-defined]
        checks.__class__ = _NoChecks


def without_guard(monkeypatch: Any) -> None:
    """Let every client that is opened from now on run on a guard that lets everything by."""
    monkeypatch.setattr(client_module, "GuardedDriver", Unguarded)
