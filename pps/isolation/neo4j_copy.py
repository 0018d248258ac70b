"""A graph on Neo4j with a copy in the entity's own tables, which filters and look-ups by name and by time read.

Every write goes to the server first, then into the copy. A crash between the two leaves the ids in the change log, and
``refresh`` reads them from the server again; so does whoever lets Graphiti write by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from pps.core.values import Episode, Fact, ItemKind, Node, Vector
from pps.graph.graph_store import Executor
from pps.graph.store_neo4j import Neo4jStore
from pps.store.sql_graph import SqlGraphStore

_Item = TypeVar("_Item", Node, Fact, Episode)
_PAGE = 1_000


class CopiedNeo4jStore(Neo4jStore):
    """The store of one group on Neo4j. The copy has no vectors: they are derived, and the indexes have them."""

    def __init__(self, executor: Executor, group: str, copy: SqlGraphStore) -> None:
        super().__init__(executor, group)
        self._copy = copy

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        await super().save_nodes(nodes, vectors)
        await self._copy.save_nodes(nodes, {})

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        await super().save_facts(facts, vectors)
        await self._copy_facts(facts)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        await super().save_episodes(episodes)
        await self._copy.save_episodes(episodes)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        await super().save_mentions(pairs)
        await self._copy_mentions(pairs)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        await super().delete_mentions(pairs)
        await self._copy.delete_mentions(pairs)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        number = await super().delete_nodes(uuids)
        await self._copy.delete_nodes(uuids)
        return number

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        number = await super().delete_facts(uuids)
        await self._copy.delete_facts(uuids)
        return number

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        number = await super().delete_episodes(uuids)
        await self._copy.delete_episodes(uuids)
        return number

    async def clear(self) -> None:
        await super().clear()
        await self._copy.clear()

    async def copied_facts(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts as the copy has them, in the order asked."""
        return await self._copy.facts(uuids)

    async def copied_ids(self, kind: ItemKind) -> set[str]:
        """Return the ids of all nodes, or of all facts that are not relations, that the copy has."""
        if kind == "node":
            return {node.uuid async for page in _pages(self._copy.scan_nodes) for node in page}
        return {
            fact.uuid
            async for page in _pages(self._copy.scan_facts)
            for fact in page
            if fact.kind == "fact"
        }

    async def refresh(self, kind: ItemKind, uuids: Sequence[str]) -> None:
        """Let the copy have some nodes with their mentions, facts or episodes as the server has them now."""
        if kind == "node":
            nodes = await self.nodes(uuids)
            await self._copy.save_nodes(nodes, {})
            await self._copy.delete_nodes(_absent(uuids, nodes))
        elif kind == "fact":
            facts = await self.facts(uuids)
            await self._copy_facts(facts)
            await self._copy.delete_facts(_absent(uuids, facts))
        elif kind == "episode":
            episodes = await self.episodes(uuids)
            await self._copy.save_episodes(episodes)
            await self._copy.delete_episodes(_absent(uuids, episodes))
            await self._refresh_mentions([episode.uuid for episode in episodes])

    async def fill(self) -> None:
        """Make the copy anew of all that the server has."""
        await self._copy.clear()
        async for nodes in _pages(self.scan_nodes):
            await self._copy.save_nodes(nodes, {})
        async for facts in _pages(self.scan_facts):
            await self._copy_facts(facts)
        async for episodes in _pages(self.scan_episodes):
            await self._copy.save_episodes(episodes)
            await self._refresh_mentions([episode.uuid for episode in episodes])

    async def _copy_facts(self, facts: Sequence[Fact]) -> None:
        """Copy facts; an end that the copy lacks is read from the server first."""
        ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
        known = await self._copy_missing(ends, self._copy.nodes, self.nodes, self._save_copy_nodes)
        whole = [fact for fact in facts if fact.subject in known and fact.object in known]
        await self._copy.save_facts(whole, {})

    async def _copy_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        nodes = await self._copy_missing(
            list(dict.fromkeys(node for _, node in pairs)),
            self._copy.nodes,
            self.nodes,
            self._save_copy_nodes,
        )
        episodes = await self._copy_missing(
            list(dict.fromkeys(episode for episode, _ in pairs)),
            self._copy.episodes,
            self.episodes,
            self._copy.save_episodes,
        )
        await self._copy.save_mentions(
            [(episode, node) for episode, node in pairs if episode in episodes and node in nodes]
        )

    async def _refresh_mentions(self, episodes: Sequence[str]) -> None:
        mentioned = await self.mentioned_nodes(episodes)
        before = await self._copy.mentioned_nodes(episodes)
        parted = [
            (episode, node)
            for episode, nodes in before.items()
            for node in nodes
            if node not in mentioned.get(episode, ())
        ]
        await self._copy.delete_mentions(parted)
        await self._copy_mentions(
            [(episode, node) for episode, nodes in mentioned.items() for node in nodes]
        )

    async def _save_copy_nodes(self, nodes: Sequence[Node]) -> None:
        await self._copy.save_nodes(nodes, {})

    async def _copy_missing(
        self,
        uuids: Sequence[str],
        copied: Callable[[Sequence[str]], Awaitable[list[_Item]]],
        stored: Callable[[Sequence[str]], Awaitable[list[_Item]]],
        save: Callable[[Sequence[_Item]], Awaitable[None]],
    ) -> set[str]:
        """Copy those of some things that the copy lacks; return the ids of those that it has then."""
        known = {item.uuid for item in await copied(uuids)}
        if missing := [uuid for uuid in uuids if uuid not in known]:
            items = await stored(missing)
            await save(items)
            known.update(item.uuid for item in items)
        return known


async def _pages(scan: Callable[[str, int], Awaitable[list[_Item]]]) -> AsyncIterator[list[_Item]]:
    after = ""
    while page := await scan(after, _PAGE):
        yield page
        after = page[-1].uuid


def _absent(
    uuids: Sequence[str], items: Sequence[Node] | Sequence[Fact] | Sequence[Episode]
) -> list[str]:
    present = {item.uuid for item in items}
    return [uuid for uuid in uuids if uuid not in present]
