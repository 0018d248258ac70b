"""Compares two graphs of one entity item by item: missing, extra and different items."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from pps.core.time import plain, precision_of
from pps.core.values import Episode, Fact, Node
from pps.graph.graph_store import GraphStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Item = TypeVar("_Item", Node, Fact, Episode)
Digests: TypeAlias = dict[str, str]
"""Uuid → digest of the item."""

_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of a copy of a graph: uuids by kind (``nodes``, ``facts``, ``episodes``).

    Attributes:
        expected: The items of the graph.
        missing: Items that the copy lacks, or has with other content.
        extra: Items that only the copy has.
    """

    expected: Mapping[str, AbstractSet[str]]
    missing: Mapping[str, AbstractSet[str]]
    extra: Mapping[str, AbstractSet[str]]

    def without(self, uuids: AbstractSet[str]) -> Differences:
        """Return the differences without those of these ids."""
        return Differences(
            self.expected,
            {kind: ids - uuids for kind, ids in self.missing.items()},
            {kind: ids - uuids for kind, ids in self.extra.items()},
        )

    @property
    def any(self) -> bool:
        return any(self.missing.values()) or any(self.extra.values())


async def compare_graphs(
    graph: GraphStore, copy: GraphStore, *, vectors: bool = False
) -> Differences:
    """Compare all nodes, facts, episodes and mentions; with ``vectors`` also their vectors."""
    truth = await digests_of(graph, vectors=vectors)
    copied = await digests_of(copy, vectors=vectors)
    expected: dict[str, AbstractSet[str]] = {}
    missing: dict[str, AbstractSet[str]] = {}
    extra: dict[str, AbstractSet[str]] = {}
    for kind, items in truth.items():
        copies = copied[kind]
        expected[kind] = items.keys()
        missing[kind] = {uuid for uuid, digest in items.items() if copies.get(uuid) != digest}
        extra[kind] = copies.keys() - items.keys()
    return Differences(expected, missing, extra)


async def digests_of(store: GraphStore, *, vectors: bool = False) -> dict[str, Digests]:
    """Return by kind the digests of nodes, facts, and episodes with their mentions."""
    nodes = Digests()
    facts = Digests()
    episodes = Digests()
    async for page_of_nodes in _pages(store.scan_nodes):
        vectors_by_id = (
            await store.node_vectors([node.uuid for node in page_of_nodes]) if vectors else {}
        )
        nodes.update(
            (node.uuid, _digest(node, vectors_by_id.get(node.uuid))) for node in page_of_nodes
        )
    async for page_of_facts in _pages(store.scan_facts):
        vectors_by_id = (
            await store.fact_vectors([fact.uuid for fact in page_of_facts]) if vectors else {}
        )
        facts.update(
            (fact.uuid, _digest(fact, vectors_by_id.get(fact.uuid))) for fact in page_of_facts
        )
    async for page in _pages(store.scan_episodes):
        mentioned = await store.mentioned_nodes([episode.uuid for episode in page])
        # Neo4j keeps no precision of an episode's time: midnight is a day there, whatever it was.
        plain_times = [replace(episode, valid_at=plain(episode.valid_at)) for episode in page]
        episodes.update(
            (episode.uuid, _digest(episode, sorted(mentioned.get(episode.uuid, []))))
            for episode in plain_times
        )
    return {"nodes": nodes, "facts": facts, "episodes": episodes}


async def _pages(scan: Callable[[str, int], Awaitable[list[_Item]]]) -> AsyncIterator[list[_Item]]:
    after = ""
    while page := await scan(after, _PAGE):
        yield page
        after = page[-1].uuid


def _digest(item: Node | Fact | Episode, more: object) -> str:
    fields = {name: getattr(item, name) for name in item.__dataclass_fields__}
    content = {"item": fields, "more": more}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=_plain)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return [value.isoformat(), precision_of(value)]
    if isinstance(value, np.ndarray):
        return cast("NDArray[np.float32]", value).tolist()
    return str(value)
