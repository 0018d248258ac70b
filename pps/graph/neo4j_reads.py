"""What can be read of one group on Neo4j."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import Episode, Fact, GraphCounts, Node, Vector
from pps.graph import mapping
from pps.graph import neo4j_cypher as cypher
from pps.graph.graph_store import TimelineOptions
from pps.graph.neo4j_group import Neo4jGroup

_MOST_OF_TIMELINE = 1_000
_HOLDS = (
    "coalesce(e.valid_at <= $as_of, true)",
    # Given up without an end in world time: it never held.
    "coalesce(e.invalid_at > $as_of, e.expired_at IS NULL)",
)


class Neo4jReads(Neo4jGroup):
    """The reading half of ``Neo4jStore``; what each method promises stands in ``GraphStore``."""

    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        """Return nodes in the order asked."""
        return mapping.in_order(map(mapping.node_of, await self._by_uuid(cypher.NODES, uuids)), uuids)

    async def facts(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts in the order asked."""
        return mapping.in_order(map(mapping.fact_of, await self._by_uuid(cypher.FACTS, uuids)), uuids)

    async def episodes(self, uuids: Sequence[str]) -> list[Episode]:
        """Return episodes in the order asked."""
        return mapping.in_order(map(mapping.episode_of, await self._by_uuid(cypher.EPISODES, uuids)), uuids)

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of nodes."""
        return _vectors(await self._by_uuid(cypher.NODE_VECTORS, uuids))

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of facts."""
        return _vectors(await self._by_uuid(cypher.FACT_VECTORS, uuids))

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        """Return a page of nodes in uuid order."""
        return [mapping.node_of(row) for row in await self._read(cypher.SCAN_NODES, after=after, limit=limit)]

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        """Return a page of facts in uuid order."""
        return [mapping.fact_of(row) for row in await self._read(cypher.SCAN_FACTS, after=after, limit=limit)]

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        """Return a page of episodes in uuid order."""
        return [mapping.episode_of(row) for row in await self._read(cypher.SCAN_EPISODES, after=after, limit=limit)]

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        """Return facts that touch any of the nodes, newest first."""
        if not uuids or limit <= 0:
            return []
        rows = await self._read(cypher.FACTS_OF_NODES, uuids=_once(uuids), limit=limit)
        return [mapping.fact_of(row) for row in rows]

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts that any of the episodes supports.

        Neo4j has no index into lists, so this looks at every fact of the group (about 2 µs each).
        """
        return [mapping.fact_of(row) for row in await self._by_uuid(cypher.FACTS_OF_EPISODES, uuids)]

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return facts from subject to object for each pair."""
        if not pairs:
            return []
        rows = [{"subject": subject, "object": target} for subject, target in dict.fromkeys(pairs)]
        return [mapping.fact_of(row) for row in await self._read(cypher.FACTS_BETWEEN, rows=rows)]

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode uuid → uuids of the nodes it mentions."""
        found = dict[str, list[str]]()
        for row in await self._by_uuid(cypher.MENTIONED, episodes):
            found.setdefault(str(row["episode"]), []).append(str(row["node"]))
        return found

    async def timeline(self, **options: Unpack[TimelineOptions]) -> list[Fact]:
        """Return facts ordered by (``valid_at``, uuid); undated facts come last."""
        limit = options.get("limit", 100)
        if not 1 <= limit <= _MOST_OF_TIMELINE:
            raise InvalidRequest("limit", f"must be 1 to {_MOST_OF_TIMELINE}")
        parameters, conditions = _timeline_filters(options)
        cursor = options.get("cursor", "")
        at, last = mapping.parse_cursor(cursor) if cursor else (None, "")
        facts = list[Fact]()
        if not cursor or at is not None:
            since = [cypher.after_last()] if at else []
            facts = await self._timeline_page(
                options, True, [*conditions, *since], **parameters, at=at, last=last, limit=limit
            )
        bounded = options.get("after") is not None or options.get("before") is not None
        if len(facts) < limit and not bounded:
            last = last if at is None else ""
            facts += await self._timeline_page(
                options, False, conditions, **parameters, last=last, limit=limit - len(facts)
            )
        return facts

    async def counts(self) -> GraphCounts:
        """Return how many of each the group owns."""
        row = await self._read_one(cypher.COUNTS)
        return GraphCounts(**{name: int(row[name]) for name in GraphCounts.__dataclass_fields__})

    async def foreign_edges(self) -> int:
        """Return how many edges join something of this group to something of another."""
        return int((await self._read_one(cypher.FOREIGN_EDGES))["edges"])

    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> list[dict[str, Any]]:
        return await self._read(statement, uuids=_once(uuids)) if uuids else []

    async def _timeline_page(
        self, options: TimelineOptions, dated: bool, conditions: list[str], **parameters: Any
    ) -> list[Fact]:
        statement = cypher.timeline(node=options.get("node") is not None, dated=dated, conditions=conditions)
        return [mapping.fact_of(row) for row in await self._read(statement, **parameters)]


def _timeline_filters(options: TimelineOptions) -> tuple[dict[str, Any], list[str]]:
    parameters: dict[str, Any] = {"node": options.get("node"), "relation": options.get("relation")}
    conditions = ["e.name = $relation"] if options.get("relation") is not None else []
    for name, condition in (("after", "e.valid_at >= $after"), ("before", "e.valid_at < $before")):
        if (moment := options.get(name)) is not None:
            parameters[name] = utc(moment, name)
            conditions.append(condition)
    if (as_of := options.get("as_of")) is not None:
        parameters["as_of"] = utc(as_of, "as_of")
        conditions.extend(_HOLDS)
    return parameters, conditions


def _vectors(rows: Sequence[dict[str, Any]]) -> dict[str, Vector]:
    found = {str(row["uuid"]): mapping.vector_of(row["vector"]) for row in rows}
    return {uuid: vector for uuid, vector in found.items() if vector is not None}


def _once(uuids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(uuids))
