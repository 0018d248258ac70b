"""The graph of one entity on a shared Neo4j: reads and writes of its group, and walks over its facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pps.core.values import Fact, Path, Subgraph
from pps.graph import mapping, traverse
from pps.graph import neo4j_cypher as cypher
from pps.graph.neo4j_reads import Neo4jReads
from pps.graph.neo4j_writes import Neo4jWrites
from pps.graph.traverse import Link

_FEW = 200


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

    async def neighbours(self, uuid: str, max_hops: int, limit: int) -> Subgraph:
        """Return the node, the nearest ``limit`` nodes around it and the facts among them."""
        traverse.check_hops(max_hops)
        if not await self._has(uuid):
            return Subgraph((), (), {})
        hops = await traverse.distances(self._links, uuid, max_hops, limit)
        ids = list(hops)
        return Subgraph(tuple(await self.nodes(ids)), tuple(await self._among(ids)), hops)

    async def shortest_path(self, start: str, end: str, max_hops: int) -> Path | None:
        """Return a shortest walk between two nodes, or None within ``max_hops``."""
        traverse.check_hops(max_hops)
        if not await self._has(start, end):
            return None
        found = await traverse.shortest_path(self._links, start, end, max_hops)
        if found is None:
            return None
        nodes, facts = found
        return Path(tuple(await self.nodes(nodes)), tuple(await self.facts(facts)))

    async def subgraph(self, uuids: Sequence[str]) -> Subgraph:
        """Return the nodes and all facts among them."""
        nodes = await self.nodes(uuids)
        ids = [node.uuid for node in nodes]
        return Subgraph(tuple(nodes), tuple(await self._among(ids)), dict.fromkeys(ids, 0))

    async def _has(self, *uuids: str) -> bool:
        wanted = set(uuids)
        return (await self._read_one(cypher.OWN_NODES, uuids=list(wanted)))["found"] == len(wanted)

    async def _links(self, uuids: Sequence[str]) -> Iterable[Link]:
        rows = await self._read(cypher.LINKS, uuids=list(uuids))
        return [Link(str(row["fact"]), str(row["subject"]), str(row["object"])) for row in rows]

    async def _among(self, uuids: list[str]) -> list[Fact]:
        statement = cypher.FACTS_AMONG_FEW if len(uuids) <= _FEW else cypher.FACTS_AMONG_MANY
        return [mapping.fact_of(row) for row in await self._by_uuid(statement, uuids)]
