"""The client's writes. Nothing is created under an id that another entity owns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pps.core.errors import InvalidRequest
from pps.core.values import Community, Episode, Fact, Node
from pps.isolation.bound import Bound
from pps.isolation.requests import check_uuids
from pps.models.protocols import Vector


class Writes(Bound):
    """Writes to one entity's graph: a batch is one transaction. The same uuid again is an update.

    Ids are the entity's already, or were minted by PPS (uuid5 of group and content, or uuid4); one that
    another entity owns raises the same NotFound as an absent one would for a read, and changes nothing.
    """

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        """Create or update nodes.

        Args:
            nodes: At most one for each uuid.
            vectors: uuid → vector of the name; a node without one keeps what it has.

        Raises:
            InvalidRequest: An id is no canonical UUID or comes twice; a kind or attribute is refused.
            NotFound: An id belongs to another entity.
        """
        ids = _check_batch(node.uuid for node in nodes)
        _check_vectors(vectors, {node.uuid for node in nodes})
        if nodes:
            await self._free(ids)
            await self._store.save_nodes(nodes, vectors)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        """Create or update facts between nodes of this entity; as ``save_nodes``.

        Raises:
            NotFound: An end is not a node of this entity, or an id belongs to another.
        """
        ids = _check_batch(fact.uuid for fact in facts)
        _check_vectors(vectors, {fact.uuid for fact in facts})
        check_uuids([id_ for fact in facts for id_ in (fact.subject, fact.object, *fact.episodes)])
        if facts:
            await self._free(ids)
            await self._store.save_facts(facts, vectors)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        """Create or update episodes; as ``save_nodes``."""
        ids = _check_batch(episode.uuid for episode in episodes)
        check_uuids([id_ for episode in episodes for id_ in episode.facts])
        if episodes:
            await self._free(ids)
            await self._store.save_episodes(episodes)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Join (episode, node) pairs of this entity; a pair that is joined already stays as it is.

        Raises:
            NotFound: An end is not this entity's.
        """
        check_uuids([id_ for pair in pairs for id_ in pair])
        if pairs:
            await self._store.save_mentions(pairs)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Part (episode, node) pairs of this entity; one that is not joined, or not its own, is passed over."""
        for pair in pairs:
            check_uuids(pair)
        if pairs:
            await self._store.delete_mentions(pairs)

    async def save_communities(self, communities: Sequence[Community], vectors: Mapping[str, Vector]) -> None:
        """Create or update communities with exactly the members given; as ``save_nodes``.

        Raises:
            NotFound: A member is not a node of this entity.
        """
        ids = _check_batch(community.uuid for community in communities)
        _check_vectors(vectors, {community.uuid for community in communities})
        for community in communities:
            check_uuids(community.members)
        if communities:
            await self._free(ids)
            await self._store.save_communities(communities, vectors)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        """Delete nodes with their facts and mentions; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_nodes(wanted) if wanted else 0

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        """Delete facts; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_facts(wanted) if wanted else 0

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many of them this entity had."""
        wanted = check_uuids(uuids)
        return await self._store.delete_episodes(wanted) if wanted else 0

    async def clear(self) -> None:
        """Delete everything of this entity from the graph, sagas and communities too."""
        await self._store.clear()


def _check_batch(uuids: Iterable[str]) -> list[str]:
    ids = list(uuids)
    if len(check_uuids(ids)) != len(ids):
        raise InvalidRequest("id", "comes twice in one batch")
    return ids


def _check_vectors(vectors: Mapping[str, Vector], ids: set[str]) -> None:
    if not vectors.keys() <= ids:
        raise InvalidRequest("vectors", "may only be of what is saved")
