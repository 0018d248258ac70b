"""Taking an entity's graph out, and bringing one in without ever creating something under an id from outside."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pps.core.ids import check_uuid, stable_id
from pps.core.values import Community, Episode, Fact, Node
from pps.isolation.bound import Bound
from pps.isolation.requests import Changes, Exported

_PAGE = 1_000
_Item = TypeVar("_Item", Node, Fact, Episode, Community)


class Transfer(Bound):
    """Export and import."""

    async def export(self) -> AsyncGenerator[Exported]:
        """Yield everything of this entity: nodes, episodes, facts, communities, each in uuid order.

        In that order an import finds the ends of whatever it reads. Vectors are left out: they are made anew.
        """
        store, group = self._store, self.entity.group
        async for node in _pages(store.scan_nodes):
            yield Exported(group, node)
        after = ""
        while episodes := await store.scan_episodes(after, _PAGE):
            mentions = await store.mentioned_nodes([episode.uuid for episode in episodes])
            for episode in episodes:
                yield Exported(group, episode, tuple(mentions.get(episode.uuid, ())))
            after = episodes[-1].uuid
        async for fact in _pages(store.scan_facts):
            yield Exported(group, fact)
        async for community in _pages(store.scan_communities):
            yield Exported(group, community)

    async def import_(self, items: AsyncIterable[Exported]) -> Changes:
        """Save what an export holds, in the order of the export; run again, it changes nothing.

        An item that was exported from this very entity keeps its id. All others get the uuid5 of this group and
        their old id, so nothing is ever created under an id from outside.

        Raises:
            NotFound: A fact, mention or community refers to something that is in neither the import nor here.
        """
        batch, ids = _Batch(self), _Ids(self.entity.group)
        async for one in items:
            await batch.add(one, ids)
        await batch.flush()
        return batch.changes()


class _Ids:
    def __init__(self, group: str) -> None:
        self._group = group

    def of(self, exported: Exported, uuid: str) -> str:
        check_uuid(uuid)
        return uuid if exported.group == self._group else stable_id(self._group, "import", uuid)


class _Batch:
    """Saves items of one kind together."""

    def __init__(self, client: Transfer) -> None:
        self._client = client
        self._store = client._store  # pyright: ignore[reportPrivateUsage] - a part of it
        self._items: list[Node | Fact | Episode | Community] = []
        self._mentions: list[tuple[str, str]] = []
        self._done: dict[type, dict[str, None]] = {Node: {}, Fact: {}, Episode: {}, Community: {}}

    async def add(self, one: Exported, ids: _Ids) -> None:
        item = _renamed(one, ids)
        if self._items and (type(item) is not type(self._items[0]) or len(self._items) >= _PAGE):
            await self.flush()
        self._items.append(item)
        self._mentions += [(item.uuid, ids.of(one, node)) for node in one.mentions]
        self._done[type(item)][item.uuid] = None

    async def flush(self) -> None:
        items, self._items = self._items, []
        nodes = [item for item in items if isinstance(item, Node)]
        episodes = [item for item in items if isinstance(item, Episode)]
        facts = [item for item in items if isinstance(item, Fact)]
        communities = [item for item in items if isinstance(item, Community)]
        await self._client._free([item.uuid for item in items])  # pyright: ignore[reportPrivateUsage] - a part of it
        if nodes:
            await self._store.save_nodes(nodes, {})
        if episodes:
            await self._store.save_episodes(episodes)
        if facts:
            await self._store.save_facts(facts, {})
        if communities:
            await self._store.save_communities(communities, {})
        mentions, self._mentions = self._mentions, []
        if mentions:
            await self._store.save_mentions(mentions)

    def changes(self) -> Changes:
        return Changes(
            tuple(self._done[Node]), tuple(self._done[Fact]), tuple(self._done[Episode]), tuple(self._done[Community])
        )


def _renamed(one: Exported, ids: _Ids) -> Node | Fact | Episode | Community:
    """Return the item with its own id and all ids in it as they are here."""
    item = one.item
    uuid = ids.of(one, item.uuid)

    def all_of(uuids: Sequence[str]) -> tuple[str, ...]:
        return tuple(ids.of(one, other) for other in uuids)

    if isinstance(item, Node):
        return replace(item, uuid=uuid)
    if isinstance(item, Episode):
        return replace(item, uuid=uuid, facts=all_of(item.facts))
    if isinstance(item, Community):
        return replace(item, uuid=uuid, members=all_of(item.members))
    subject, object_ = all_of((item.subject, item.object))
    return replace(item, uuid=uuid, subject=subject, object=object_, episodes=all_of(item.episodes))


async def _pages(scan: Callable[[str, int], Awaitable[list[_Item]]]) -> AsyncGenerator[_Item]:
    after = ""
    while page := await scan(after, _PAGE):
        for item in page:
            yield item
        after = page[-1].uuid
