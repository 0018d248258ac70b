"""What can be read of one embedded graph, and the statements for it; each binds the group.

``UNWIND … {uuid: id}`` is a look-up by primary key, ``WHERE x.uuid IN $uuids`` a scan. A pattern with an edge is a
look-up only for ONE id, given as a parameter: a few ids are asked for in one statement of ``_AT_ONCE`` such patterns,
and many by a join over the columns that name a fact's ends (9 ms for 100 nodes among 24,000 facts, against 77).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, Unpack

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import Episode, Fact, GraphCounts, Node
from pps.graph.graph_store import (
    ByUuid,
    CypherStore,
    Rows,
    TimelineOptions,
    as_of_bounds,
    slices,
)
from pps.graph.mapping import joined, parse_cursor

_Run: TypeAlias = Callable[..., Awaitable[Rows]]

_FEW = 64
_AT_ONCE = 8
_IDS_AT_ONCE = 2_000
_MAX_PAGE = 100_000
_TIMELINE_MAX = 1_000

_NODE = (
    "n.uuid AS uuid, n.name AS name, n.labels AS labels, n.created_at AS created_at, n.summary AS summary, "
    "n.attributes AS attributes"
)
_FACT = (
    "n.uuid AS uuid, n.source_node_uuid AS source_node_uuid, n.target_node_uuid AS target_node_uuid, n.name AS name, "
    "n.fact AS fact, n.created_at AS created_at, n.episodes AS episodes, n.valid_at AS valid_at, "
    "n.invalid_at AS invalid_at, n.expired_at AS expired_at, n.attributes AS attributes"
)
_EPISODE = (
    "n.uuid AS uuid, n.name AS name, n.content AS content, n.source AS source, n.valid_at AS valid_at, "
    "n.source_description AS source_description, n.created_at AS created_at, n.entity_edges AS entity_edges"
)
_LINK = "e.uuid AS fact, e.source_node_uuid AS subject, e.target_node_uuid AS object, e.created_at AS created_at"

IDS: Final = "UNWIND string_split($uuids, ',') AS id"
"""Ids come as one text with commas between: handing a list over takes twice as long."""


def own(table: str, columns: str = "n.uuid AS uuid") -> str:
    """Return the statement that reads columns of the group's rows by uuid."""
    return f"{IDS} MATCH (n:{table} {{uuid: id}}) WHERE n.group_id = $group_id RETURN {columns}"


def _vector(table: str, column: str) -> str:
    return (
        own(table).replace(" RETURN", f" AND n.{column} IS NOT NULL RETURN")
        + f", n.{column} AS vector"
    )


BY_UUID: Final = ByUuid(
    nodes=own("Entity", _NODE),
    facts=own("RelatesToNode_", _FACT),
    episodes=own("Episodic", _EPISODE),
    node_vectors=_vector("Entity", "name_embedding"),
    fact_vectors=_vector("RelatesToNode_", "fact_embedding"),
)


@dataclass(frozen=True, slots=True)
class ByNumber:
    """One question for one, few (``$uuid0`` … up to ``_AT_ONCE``) and many ids (``$uuids``)."""

    one: str
    few: str
    many: str


def _by_number(of_one: str, of_many: str) -> ByNumber:
    """Make the three from a statement with ``$uuid`` and one with ``$uuids``."""
    few = " UNION ALL ".join(
        of_one.replace("$uuid}", f"$uuid{number}}}") for number in range(_AT_ONCE)
    )
    return ByNumber(of_one, few, of_many)


LINKS: Final = _by_number(
    f"MATCH (n:Entity {{uuid: $uuid}})-[:RELATES_TO]-(e:RelatesToNode_) WHERE e.group_id = $group_id RETURN {_LINK}",
    " UNION ALL ".join(
        f"UNWIND $uuids AS id MATCH (e:RelatesToNode_) WHERE e.{end} = id AND e.group_id = $group_id RETURN {_LINK}"
        for end in ("source_node_uuid", "target_node_uuid")
    ),
)
_MENTIONS_OF = (
    "-[:MENTIONS]->(n:Entity) WHERE p.group_id = $group_id AND n.group_id = $group_id "
    "RETURN p.uuid AS episode, n.uuid AS node"
)
MENTIONED: Final = _by_number(
    f"MATCH (p:Episodic {{uuid: $uuid}}){_MENTIONS_OF}",
    f"UNWIND $uuids AS id MATCH (p:Episodic {{uuid: id}}){_MENTIONS_OF}",
)
FACTS_OF_EPISODES: Final = (
    "MATCH (e:RelatesToNode_) WHERE e.group_id = $group_id AND list_has_any(e.episodes, $uuids) "
    "RETURN e.uuid AS uuid ORDER BY uuid"
)
# Counted before the name is put beside it: grouped by a constant, an empty table gives no row at all.
COUNTS: Final = " UNION ALL ".join(
    f"MATCH {pattern} WHERE x.group_id = $group_id WITH count(*) AS number RETURN '{name}' AS name, number"
    for name, pattern in (
        *(("nodes", "(x:Entity)"), ("facts", "(x:RelatesToNode_)"), ("episodes", "(x:Episodic)")),
        ("mentions", "()-[x:MENTIONS]->()"),
    )
)
_CROSSING = "(coalesce(a.group_id, '') = $group_id) <> (coalesce(b.group_id, '') = $group_id)"
FOREIGN_EDGES: Final = " UNION ALL ".join(
    f"MATCH (a:{start})-[r:{edge}]->(b:{end}) WHERE {_CROSSING} RETURN count(*) AS number"
    for start, edge, end in (
        ("Entity", "RELATES_TO", "RelatesToNode_"),
        ("RelatesToNode_", "RELATES_TO", "Entity"),
        ("Episodic", "MENTIONS", "Entity"),
        ("Community", "HAS_MEMBER", "Entity"),
        ("Community", "HAS_MEMBER", "Community"),
        ("Saga", "HAS_EPISODE", "Episodic"),
        ("Episodic", "NEXT_EPISODE", "Episodic"),
    )
)
_HOLDS = (
    "(e.valid_at IS NULL OR e.valid_at <= $as_of) "
    "AND (e.invalid_at IS NULL OR $as_of_first < e.invalid_at) "
    "AND NOT (e.expired_at IS NOT NULL AND e.invalid_at IS NULL)"
)
_PAST = "e.valid_at > $cursor_at OR (e.valid_at = $cursor_at AND e.uuid > $cursor_uuid) OR e.valid_at IS NULL"
_PAST_UNDATED = "e.valid_at IS NULL AND e.uuid > $cursor_uuid"


class EmbeddedReads(CypherStore):
    """The reading half of ``EmbeddedStore``."""

    _statements = BY_UUID

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        return await self.nodes(await self._page("Entity", after, limit))

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        return await self.facts(await self._page("RelatesToNode_", after, limit))

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        return await self.episodes(await self._page("Episodic", after, limit))

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        rows = {row["fact"]: row["created_at"] for row in await self._links(uuids)}
        newest = sorted(sorted(rows), key=lambda fact: rows[fact], reverse=True)
        return await self.facts(newest[: _bounded(limit, _MAX_PAGE)])

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        found: set[str] = set()
        for part in slices(list(dict.fromkeys(uuids)), _IDS_AT_ONCE):
            found.update(
                row["uuid"] for row in await self._run(FACTS_OF_EPISODES, uuids=list(part))
            )
        return await self.facts(sorted(found))

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        wanted = set(pairs)
        rows = await self._links([subject for subject, _ in wanted])
        return await self.facts(
            sorted({row["fact"] for row in rows if (row["subject"], row["object"]) in wanted})
        )

    async def timeline(self, **options: Unpack[TimelineOptions]) -> list[Fact]:
        statement, parameters = _timeline(options)
        return await self.facts([row["uuid"] for row in await self._run(statement, **parameters)])

    async def counts(self) -> GraphCounts:
        return GraphCounts(**{row["name"]: row["number"] for row in await self._run(COUNTS)})

    async def foreign_edges(self) -> int:
        return sum(row["number"] for row in await self._run(FOREIGN_EDGES))

    async def _has(self, node: str) -> bool:
        return bool(await self._run(own("Entity"), uuids=node))

    async def _links(self, uuids: Sequence[str]) -> Rows:
        return await rows_of(self._run, LINKS, uuids)

    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        return await rows_of(self._run, MENTIONED, episodes)

    async def _page(self, table: str, after: str, limit: int) -> list[str]:
        statement = (
            f"MATCH (n:{table}) WHERE n.group_id = $group_id AND n.uuid > $after "
            "RETURN n.uuid AS uuid ORDER BY uuid LIMIT $limit"
        )
        rows = await self._run(statement, after=after, limit=_bounded(limit, _MAX_PAGE))
        return [row["uuid"] for row in rows]

    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        rows: Rows = []
        for part in slices(list(dict.fromkeys(uuids)), _IDS_AT_ONCE):
            rows += await self._run(statement, uuids=joined(part))
        return rows

    async def _run(self, statement: str, **parameters: Any) -> Rows:
        rows, _, _ = await self._executor.execute_query(
            statement, group_id=self.group, **parameters
        )
        return rows


async def rows_of(run: _Run, question: ByNumber, uuids: Sequence[str]) -> Rows:
    """Return the rows of a question about some ids; a row may come twice."""
    unique = list(dict.fromkeys(uuids))
    if len(unique) == 1:
        return await run(question.one, uuid=unique[0])
    rows: Rows = []
    if len(unique) <= _FEW:
        for part in slices(unique, _AT_ONCE):
            padded = [*part, *[part[0]] * (_AT_ONCE - len(part))]
            rows += await run(
                question.few, **{f"uuid{number}": uuid for number, uuid in enumerate(padded)}
            )
        return rows
    for part in slices(unique, _IDS_AT_ONCE):
        rows += await run(question.many, uuids=list(part))
    return rows


def _timeline(options: TimelineOptions) -> tuple[str, dict[str, Any]]:
    """Return the statement for one page, uuids by (valid_at, uuid), undated last, and the parameters that it names."""
    clauses: list[str] = []
    node = options.get("node")
    parameters: dict[str, Any] = {"limit": _bounded(options.get("limit", 100), _TIMELINE_MAX)}
    parameters |= {} if node is None else {"node": node}
    for name, clause, value in (
        ("relation", "e.name = $relation", options.get("relation")),
        ("from_at", "e.valid_at >= $from_at", _moment(options.get("after"))),
        ("until_at", "e.valid_at < $until_at", _moment(options.get("before"))),
    ):
        if value is not None:
            clauses.append(clause)
            parameters[name] = value
    if bounds := as_of_bounds(options):
        clauses.append(_HOLDS)
        parameters["as_of_first"], parameters["as_of"] = bounds
    if cursor := options.get("cursor"):
        valid_at, uuid = parse_cursor(cursor)
        clauses.append(_PAST_UNDATED if valid_at is None else _PAST)
        parameters |= (
            {"cursor_uuid": uuid}
            if valid_at is None
            else {"cursor_uuid": uuid, "cursor_at": valid_at}
        )
    # A fact that joins a node to itself is met twice from there.
    start = (
        "(:Entity {uuid: $node})-[:RELATES_TO]-(e:RelatesToNode_)"
        if node is not None
        else "(e:RelatesToNode_)"
    )
    where = " AND ".join(["e.group_id = $group_id", *(f"({clause})" for clause in clauses)])
    columns = f"{'' if node is None else 'DISTINCT '}e.uuid AS uuid, e.valid_at AS valid_at"
    return (
        f"MATCH {start} WHERE {where} RETURN {columns} ORDER BY valid_at, uuid LIMIT $limit",
        parameters,
    )


def _moment(value: datetime | None) -> datetime | None:
    return None if value is None else utc(value)


def _bounded(limit: int, most: int) -> int:
    if not 1 <= limit <= most:
        raise InvalidRequest("limit", f"must be 1 to {most}")
    return limit
