"""What an embedded graph answers: values by id, pages, walks and timelines of one group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar, Unpack

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import Episode, Fact, GraphCounts, Node, Vector
from pps.graph import embedded_statements as statements
from pps.graph import traverse
from pps.graph.embedded_statements import AT_ONCE, ByNumber
from pps.graph.embedded_write import parts
from pps.graph.graph_store import Executor, Rows, TimelineOptions
from pps.graph.mapping import episode_of, fact_of, in_order, joined, node_of, parse_cursor, vector_of
from pps.graph.traverse import Link

_Value = TypeVar("_Value", Node, Fact, Episode)

_Run: TypeAlias = Callable[..., Awaitable[Rows]]

_FEW = 64
_IDS_AT_ONCE = 2_000
_MAX_PAGE = 100_000
_TIMELINE_MAX = 1_000


class EmbeddedReads:
    """The reading half of ``EmbeddedStore``; all of it is documented in ``GraphStore``."""

    def __init__(self, executor: Executor, group: str) -> None:
        self._executor = executor
        self._group = group

    @property
    def group(self) -> str:
        """The group that every statement binds."""
        return self._group

    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        """Return nodes in the order asked."""
        return await self._values(statements.NODES, uuids, node_of)

    async def facts(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts in the order asked."""
        return await self._values(statements.FACTS, uuids, fact_of)

    async def episodes(self, uuids: Sequence[str]) -> list[Episode]:
        """Return episodes in the order asked."""
        return await self._values(statements.EPISODES, uuids, episode_of)

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of nodes."""
        return await self._vectors(statements.vectors("Entity", "name_embedding"), uuids)

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of facts."""
        return await self._vectors(statements.vectors("RelatesToNode_", "fact_embedding"), uuids)

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        """Return a page of nodes in uuid order."""
        return await self.nodes(await self._page("Entity", after, limit))

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        """Return a page of facts in uuid order."""
        return await self.facts(await self._page("RelatesToNode_", after, limit))

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        """Return a page of episodes in uuid order."""
        return await self.episodes(await self._page("Episodic", after, limit))

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        """Return facts that touch any of the nodes, newest first."""
        rows = {row["fact"]: row["created_at"] for row in await self._links(uuids)}
        newest = sorted(sorted(rows), key=lambda fact: rows[fact], reverse=True)
        return await self.facts(newest[: _bounded("limit", limit, _MAX_PAGE)])

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts that any of the episodes supports, in uuid order."""
        found: set[str] = set()
        for part in parts(list(dict.fromkeys(uuids)), _IDS_AT_ONCE):
            rows = await self._run(statements.FACTS_OF_EPISODES, uuids=list(part))
            found.update(row["uuid"] for row in rows)
        return await self.facts(sorted(found))

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return facts from subject to object for each pair, in uuid order."""
        wanted = set(pairs)
        rows = await self._links([subject for subject, _ in wanted])
        return await self.facts(sorted({row["fact"] for row in rows if (row["subject"], row["object"]) in wanted}))

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode uuid → uuids of the nodes it mentions."""
        rows = await rows_of(self._run, statements.MENTIONED, episodes)
        found: dict[str, list[str]] = {}
        for episode, node in sorted({(row["episode"], row["node"]) for row in rows}):
            found.setdefault(episode, []).append(node)
        return found

    async def distances(self, center: str, max_hops: int) -> dict[str, int]:
        """Return the hops from a node to all within reach."""
        traverse.check_hops(max_hops)
        if not await self._present([center]):
            return {}
        return await traverse.distances(self._expand, center, max_hops)

    async def timeline(self, **options: Unpack[TimelineOptions]) -> list[Fact]:
        """Return facts ordered by (valid_at, uuid)."""
        conditions, parameters = _timeline(options)
        statement = statements.timeline(conditions, of_node=options.get("node") is not None)
        rows = await self._run(statement, **parameters)
        return await self.facts([row["uuid"] for row in rows])

    async def counts(self) -> GraphCounts:
        """Return how many of each the group owns."""
        return GraphCounts(**{row["name"]: row["number"] for row in await self._run(statements.COUNTS)})

    async def foreign_edges(self) -> int:
        """Return how many edges join this group to another."""
        return sum(row["number"] for row in await self._run(statements.FOREIGN_EDGES))

    async def _expand(self, uuids: Sequence[str]) -> Iterable[Link]:
        return [Link(row["fact"], row["subject"], row["object"]) for row in await self._links(uuids)]

    async def _links(self, uuids: Sequence[str]) -> Rows:
        return await rows_of(self._run, statements.LINKS, uuids)

    async def _present(self, uuids: Sequence[str]) -> list[str]:
        rows = await self._by_uuid(statements.present("Entity"), uuids)
        found = {row["uuid"] for row in rows}
        return [uuid for uuid in dict.fromkeys(uuids) if uuid in found]

    async def _values(
        self, statement: str, uuids: Sequence[str], value_of: Callable[[Mapping[str, Any]], _Value]
    ) -> list[_Value]:
        return in_order(map(value_of, await self._by_uuid(statement, uuids)), uuids)

    async def _vectors(self, statement: str, uuids: Sequence[str]) -> dict[str, Vector]:
        found = {row["uuid"]: vector_of(row["vector"]) for row in await self._by_uuid(statement, uuids)}
        return {uuid: vector for uuid, vector in found.items() if vector is not None}

    async def _page(self, table: str, after: str, limit: int) -> list[str]:
        limit = _bounded("limit", limit, _MAX_PAGE)
        return [row["uuid"] for row in await self._run(statements.page(table), after=after, limit=limit)]

    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        rows: Rows = []
        for part in parts(list(dict.fromkeys(uuids)), _IDS_AT_ONCE):
            rows += await self._run(statement, uuids=joined(part))
        return rows

    async def _run(self, statement: str, **parameters: Any) -> Rows:
        rows, _, _ = await self._executor.execute_query(statement, group_id=self._group, **parameters)
        return rows


async def rows_of(run: _Run, question: ByNumber, uuids: Sequence[str]) -> Rows:
    """Return the rows of a question about some ids; a row may come twice."""
    unique = list(dict.fromkeys(uuids))
    if len(unique) == 1:
        return await run(question.one, uuid=unique[0])
    rows: Rows = []
    if len(unique) <= _FEW:
        for part in parts(unique, AT_ONCE):
            padded = [*part, *[part[0]] * (AT_ONCE - len(part))]
            rows += await run(question.few, **{f"uuid{number}": uuid for number, uuid in enumerate(padded)})
        return rows
    for part in parts(unique, _IDS_AT_ONCE):
        rows += await run(question.many, uuids=list(part))
    return rows


def _timeline(options: TimelineOptions) -> tuple[str, dict[str, Any]]:
    """Return the conditions, each from a constant text, and the parameters that they name."""
    clauses: list[str] = []
    parameters: dict[str, Any] = {"limit": _bounded("limit", options.get("limit", 100), _TIMELINE_MAX)}
    if (node := options.get("node")) is not None:
        parameters["node"] = node
    for name, clause, value in (
        ("relation", "e.name = $relation", options.get("relation")),
        ("from_at", "e.valid_at >= $from_at", _moment(options.get("after"))),
        ("until_at", "e.valid_at < $until_at", _moment(options.get("before"))),
        ("as_of", _HOLDS, _moment(options.get("as_of"))),
    ):
        if value is not None:
            clauses.append(clause)
            parameters[name] = value
    if cursor := options.get("cursor"):
        valid_at, uuid = parse_cursor(cursor)
        clauses.append(_PAST_UNDATED if valid_at is None else _PAST)
        parameters |= {"cursor_uuid": uuid} if valid_at is None else {"cursor_uuid": uuid, "cursor_at": valid_at}
    return "".join(f" AND ({clause})" for clause in clauses), parameters


_HOLDS = (
    "(e.valid_at IS NULL OR e.valid_at <= $as_of) AND (e.invalid_at IS NULL OR $as_of < e.invalid_at) "
    "AND NOT (e.expired_at IS NOT NULL AND e.invalid_at IS NULL)"
)
_PAST = "e.valid_at > $cursor_at OR (e.valid_at = $cursor_at AND e.uuid > $cursor_uuid) OR e.valid_at IS NULL"
_PAST_UNDATED = "e.valid_at IS NULL AND e.uuid > $cursor_uuid"


def _moment(value: datetime | None) -> datetime | None:
    return None if value is None else utc(value)


def _bounded(field: str, value: int, most: int) -> int:
    if not 1 <= value <= most:
        raise InvalidRequest(field, f"must be 1 to {most}")
    return value
