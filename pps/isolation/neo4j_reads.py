"""What can be read of one group on a shared Neo4j."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import Episode, Fact, GraphCounts, Node
from pps.graph.graph_store import CypherStore, GraphTimelineOptions, Rows, as_of_bounds
from pps.graph.mapping import FACT_TIMES, episode_of, fact_of, node_of, parse_cursor
from pps.isolation import neo4j_cypher as cypher

_TIMES = frozenset(FACT_TIMES)
_MOST_OF_TIMELINE = 1_000
_HOLDS = (
    "coalesce(e.valid_at <= $as_of, true)",
    # Given up without an end in world time: it never held.
    "coalesce(e.invalid_at > $as_of_first, e.expired_at IS NULL)",
)


class Neo4jReads(CypherStore):
    """The reading half of ``Neo4jStore``."""

    _statements = cypher.BY_UUID

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        return [
            node_of(row) for row in await self._read(cypher.SCAN_NODES, after=after, limit=limit)
        ]

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        return await self._facts(cypher.SCAN_FACTS, after=after, limit=limit)

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        return [
            episode_of(row)
            for row in await self._read(cypher.SCAN_EPISODES, after=after, limit=limit)
        ]

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        if not uuids or limit <= 0:
            return []
        return await self._facts(cypher.FACTS_OF_NODES, uuids=_once(uuids), limit=limit)

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        # Neo4j has no index into lists, so this looks at every fact of the group (about 2 µs each).
        return await self._facts(cypher.FACTS_OF_EPISODES, uuids=_once(uuids)) if uuids else []

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        rows = [{"subject": subject, "object": target} for subject, target in dict.fromkeys(pairs)]
        return await self._facts(cypher.FACTS_BETWEEN, rows=rows) if rows else []

    async def timeline(self, **options: Unpack[GraphTimelineOptions]) -> list[Fact]:
        limit = options.get("limit", 100)
        if not 1 <= limit <= _MOST_OF_TIMELINE:
            raise InvalidRequest("limit", f"must be 1 to {_MOST_OF_TIMELINE}")
        parameters, conditions = _timeline_filters(options)
        cursor = options.get("cursor", "")
        at, last = parse_cursor(cursor) if cursor else (None, "")
        of_node = options.get("node") is not None
        facts = list[Fact]()
        if not cursor or at is not None:
            since = [cypher.after_last()] if at else []
            statement = cypher.timeline(node=of_node, dated=True, conditions=[*conditions, *since])
            facts = await self._facts(statement, **parameters, at=at, last=last, limit=limit)
        bounded = options.get("after") is not None or options.get("before") is not None
        if len(facts) < limit and not bounded:
            last = last if at is None else ""
            statement = cypher.timeline(node=of_node, dated=False, conditions=conditions)
            facts += await self._facts(statement, **parameters, last=last, limit=limit - len(facts))
        return facts

    async def counts(self) -> GraphCounts:
        row = await self._read_one(cypher.COUNTS)
        return GraphCounts(**{name: int(row[name]) for name in GraphCounts.__dataclass_fields__})

    async def foreign_edges(self) -> int:
        return int((await self._read_one(cypher.FOREIGN_EDGES))["edges"])

    async def _has(self, node: str) -> bool:
        return (await self._read_one(cypher.OWN_NODES, uuids=[node]))["found"] == 1

    async def _links(self, uuids: Sequence[str]) -> Rows:
        return await self._read(cypher.LINKS, uuids=list(uuids))

    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        return await self._by_uuid(cypher.MENTIONED, episodes)

    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        return await self._read(statement, uuids=_once(uuids)) if uuids else []

    async def _facts(self, statement: str, **parameters: Any) -> list[Fact]:
        return [fact_of(row) for row in await self._read(statement, **parameters)]

    async def _read(self, statement: str, **parameters: Any) -> Rows:
        """Return the rows of a reading statement as a list, with attributes as mappings."""
        return readable((await self._read_one(statement, **parameters))["rows"])

    async def _read_one(self, statement: str, **parameters: Any) -> dict[str, Any]:
        """Return the one record of a statement that changes nothing."""
        rows, _, _ = await self._executor.execute_query(
            statement, group_id=self.group, routing_="r", **parameters
        )
        (record,) = rows
        return record


def readable(rows: Rows) -> Rows:
    """Return rows in the shape that ``mapping`` reads; ``neo4j_cypher`` documents the columns."""
    for place, row in enumerate(rows):
        if row.get("attributes") is not None:
            row = rows[place] = {**row["attributes"], **row}
        for name in _TIMES & row.keys():
            if row[name] is not None:
                row[name] = str(row[name]).partition("[")[0]  # a zone's name may follow the offset
    return rows


def _timeline_filters(options: GraphTimelineOptions) -> tuple[dict[str, Any], list[str]]:
    parameters: dict[str, Any] = {"node": options.get("node"), "relation": options.get("relation")}
    conditions = ["e.name = $relation"] if options.get("relation") is not None else []
    for name, condition in (("after", "e.valid_at >= $after"), ("before", "e.valid_at < $before")):
        moment = options.get(name)
        if moment is not None:
            parameters[name] = utc(moment, name)
            conditions.append(condition)
    bounds = as_of_bounds(options)
    if bounds:
        parameters["as_of_first"], parameters["as_of"] = bounds
        conditions.extend(_HOLDS)
    return parameters, conditions


def _once(uuids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(uuids))
