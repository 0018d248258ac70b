"""The graph of one entity on a shared Neo4j: reads and writes of its group, and walks over its facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pps.graph import neo4j_cypher as cypher
from pps.graph import traverse
from pps.graph.neo4j_reads import Neo4jReads
from pps.graph.neo4j_writes import Neo4jWrites
from pps.graph.traverse import Link


class Neo4jStore(Neo4jReads, Neo4jWrites):
    """A ``GraphStore`` on Neo4j: a plain Graphiti graph that stock Graphiti reads, vectors included.

    Args:
        executor: What runs statements: the entity's guarded driver in production.
        group: The one group that every statement binds.
    """

    async def distances(self, center: str, max_hops: int) -> dict[str, int]:
        """Return the hops from ``center`` to every node within ``max_hops``."""
        traverse.check_hops(max_hops)
        if not await self._has(center):
            return {}
        return await traverse.distances(self._links, center, max_hops)

    async def _has(self, *uuids: str) -> bool:
        wanted = set(uuids)
        return (await self._read_one(cypher.OWN_NODES, uuids=list(wanted)))["found"] == len(wanted)

    async def _links(self, uuids: Sequence[str]) -> Iterable[Link]:
        rows = await self._read(cypher.LINKS, uuids=list(uuids))
        return [Link(str(row["fact"]), str(row["subject"]), str(row["object"])) for row in rows]
