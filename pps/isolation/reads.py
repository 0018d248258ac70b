"""The client's reads: by id, by page, along facts and along time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from pps.core.errors import NotFound
from pps.core.ids import check_uuid
from pps.core.values import Community, Episode, Fact, GraphCounts, Node, Path, Subgraph
from pps.graph import mapping
from pps.graph.protocol import TimelineOptions
from pps.isolation.bound import Bound, strictly
from pps.isolation.requests import check_limit, check_uuids
from pps.models.protocols import Vector

_PAGE = 10_000
_MANY = 100_000


class Reads(Bound):
    """Reads of one entity's graph. Ids are canonical UUIDs; one that another entity owns reads as absent."""

    async def nodes(self, uuids: Sequence[str], *, strict: bool = False) -> list[Node]:
        """Return nodes in the order asked, absent ones left out.

        Args:
            uuids: Canonical UUIDs; repeats count once.
            strict: Raise NotFound when any is absent.

        Raises:
            InvalidRequest: An id is not a canonical UUID.
            NotFound: ``strict``, and one is absent.
        """
        wanted = check_uuids(uuids)
        found = await self._store.nodes(wanted) if wanted else []
        self._asked(found, wanted)
        strictly(len(found), len(wanted), strict=strict)
        return found

    async def facts(self, uuids: Sequence[str], *, strict: bool = False) -> list[Fact]:
        """Return facts in the order asked; as ``nodes``."""
        wanted = check_uuids(uuids)
        found = await self._store.facts(wanted) if wanted else []
        self._asked(found, wanted)
        strictly(len(found), len(wanted), strict=strict)
        return found

    async def episodes(self, uuids: Sequence[str], *, strict: bool = False) -> list[Episode]:
        """Return episodes in the order asked; as ``nodes``."""
        wanted = check_uuids(uuids)
        found = await self._store.episodes(wanted) if wanted else []
        self._asked(found, wanted)
        strictly(len(found), len(wanted), strict=strict)
        return found

    async def communities(self, uuids: Sequence[str], *, strict: bool = False) -> list[Community]:
        """Return communities in the order asked; as ``nodes``."""
        wanted = check_uuids(uuids)
        found = await self._store.communities(wanted) if wanted else []
        self._asked(found, wanted)
        strictly(len(found), len(wanted), strict=strict)
        return found

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that the graph keeps of nodes, shape (dimension,); those without are left out."""
        wanted = check_uuids(uuids)
        return await self._store.node_vectors(wanted) if wanted else {}

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors that the graph keeps of facts; as ``node_vectors``."""
        wanted = check_uuids(uuids)
        return await self._store.fact_vectors(wanted) if wanted else {}

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        """Return at most ``limit`` (1 to 10,000) nodes with ``uuid > after`` in uuid order; ``""`` is the start."""
        return await self._store.scan_nodes(_cursor(after), check_limit(limit, _PAGE))

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        """Return a page of facts; as ``scan_nodes``."""
        return await self._store.scan_facts(_cursor(after), check_limit(limit, _PAGE))

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        """Return a page of episodes; as ``scan_nodes``."""
        return await self._store.scan_episodes(_cursor(after), check_limit(limit, _PAGE))

    async def scan_communities(self, after: str, limit: int) -> list[Community]:
        """Return a page of communities; as ``scan_nodes``."""
        return await self._store.scan_communities(_cursor(after), check_limit(limit, _PAGE))

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        """Return facts that touch any of the nodes: newest first, at most ``limit``; absent nodes have none."""
        wanted = check_uuids(uuids)
        return await self._store.facts_of_nodes(wanted, check_limit(limit, _MANY)) if wanted else []

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts that any of the episodes supports, in uuid order."""
        wanted = check_uuids(uuids)
        return await self._store.facts_of_episodes(wanted) if wanted else []

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return facts from subject to object for each (subject, object) pair, in uuid order."""
        for pair in pairs:
            check_uuids(pair)
        return await self._store.facts_between(list(pairs)) if pairs else []

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode uuid → uuids of the nodes it mentions; an episode without any is left out."""
        wanted = check_uuids(episodes)
        return await self._store.mentioned_nodes(wanted) if wanted else {}

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node uuid → uuids of the episodes that mention it; a node without any is left out."""
        wanted = check_uuids(nodes)
        return await self._inside.objects.episodes_of_nodes(wanted) if wanted else {}

    async def distances(self, center: str, max_hops: int) -> dict[str, int]:
        """Return the hops from ``center`` (0) to every node within ``max_hops`` (0 to 8), both directions.

        Raises:
            NotFound: The centre is not a node of this entity.
        """
        found = await self._store.distances(check_uuid(center, "center"), max_hops)
        if not found:
            raise NotFound()
        return found

    async def neighbours(self, uuid: str, max_hops: int, limit: int) -> Subgraph:
        """Return the node, the nearest ``limit`` nodes within ``max_hops`` and the facts among them.

        Raises:
            NotFound: It is not a node of this entity.
        """
        found = await self._store.neighbours(check_uuid(uuid), max_hops, check_limit(limit))
        if not found.nodes:
            raise NotFound()
        return found

    async def shortest_path(self, start: str, end: str, max_hops: int) -> Path | None:
        """Return a shortest walk between two nodes, either direction, or None within ``max_hops``.

        Raises:
            NotFound: One of them is not a node of this entity.
        """
        await self._owned("Entity", [start, end])
        return await self._store.shortest_path(start, end, max_hops)

    async def subgraph(self, uuids: Sequence[str]) -> Subgraph:
        """Return the nodes, absent ones left out, and all facts among them."""
        return await self._store.subgraph(check_uuids(uuids))

    async def timeline(self, **options: Unpack[TimelineOptions]) -> list[Fact]:
        """Return facts in order of (``valid_at``, uuid), undated ones last; options as in the graph's protocol.

        Raises:
            NotFound: ``node`` is given and is not a node of this entity.
        """
        node = options.get("node")
        if node is not None:
            await self._owned("Entity", [node])
        return await self._store.timeline(**options)

    @staticmethod
    def timeline_cursor(fact: Fact) -> str:
        """Return the cursor that continues a timeline after this fact."""
        return mapping.timeline_cursor(fact)

    async def counts(self) -> GraphCounts:
        """Return how many of each the entity owns."""
        return await self._store.counts()


def _cursor(after: str) -> str:
    return check_uuid(after, "after") if after else ""
