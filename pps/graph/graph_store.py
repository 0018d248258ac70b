"""The operations of a graph store, those that all stores share, and what one needs of a driver.

Walks are breadth-first over facts in both directions, one statement a hop, for every store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from pps.core.errors import InvalidRequest
from pps.core.time import utc
from pps.core.values import Episode, Fact, GraphCounts, Node, Vector
from pps.graph.mapping import episode_of, fact_of, in_order, node_of, vector_of

MAX_HOPS = 8
"""Most hops that a traversal may ask for."""
Rows: TypeAlias = list[dict[str, Any]]
"""Rows of a database as its library gives them; read by ``mapping`` and nowhere else."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class GraphLink:
    """One fact as an edge: its uuid and the uuids of its ends."""

    fact: str
    subject: str
    object: str


Expand: TypeAlias = Callable[[Sequence[str]], Awaitable[Iterable[GraphLink]]]
"""Return every fact of the group that touches one of the nodes."""


def check_hops(max_hops: int) -> int:
    """Return a number of hops unchanged, or raise InvalidRequest unless it is 0 to ``MAX_HOPS``."""
    if not 0 <= max_hops <= MAX_HOPS:
        raise InvalidRequest("max_hops", f"must be 0 to {MAX_HOPS}")
    return max_hops


async def distances(
    expand: Expand, center: str, max_hops: int, limit: int | None = None
) -> dict[str, int]:
    """Return hops from ``center`` (0) by node, nearest first, in uuid order within a hop.

    With a ``limit``, the walk stops once that many nodes beside the centre are known.
    """
    hops = {center: 0}
    frontier = [center]
    for hop in range(1, check_hops(max_hops) + 1):
        links = await expand(frontier)
        ends = {end for link in links for end in (link.subject, link.object)}
        room = None if limit is None else max(0, limit + 1 - len(hops))
        frontier = sorted(ends - hops.keys())[:room]
        if not frontier:
            break
        hops.update(dict.fromkeys(frontier, hop))
    return hops


async def shortest_path(
    expand: Expand, start: str, end: str, max_hops: int
) -> tuple[list[str], list[str]] | None:
    """Return (nodes, facts between them) of a shortest walk from ``start`` to ``end``, or None.

    Of several, the one whose ids come first is taken at each hop, so the answer is always the same.
    """
    check_hops(max_hops)
    came: dict[str, tuple[str, str]] = {start: ("", "")}
    frontier = [start]
    while frontier and end not in came and max_hops > 0:
        max_hops -= 1
        reached: dict[str, tuple[str, str]] = {}
        for link in sorted(await expand(frontier), key=lambda link: link.fact):
            for near, far in ((link.subject, link.object), (link.object, link.subject)):
                if near in came and far not in came and far not in reached:
                    reached[far] = (near, link.fact)
        came.update(reached)
        frontier = sorted(reached)
    return _walk(came, end) if end in came else None


def _walk(came: dict[str, tuple[str, str]], end: str) -> tuple[list[str], list[str]]:
    nodes = [end]
    facts = list[str]()
    while came[nodes[-1]][0]:
        previous, fact = came[nodes[-1]]
        nodes.append(previous)
        facts.append(fact)
    return nodes[::-1], facts[::-1]


class Transaction(Protocol):
    """One open transaction: committed when its block ends, rolled back when its block raises."""

    async def run(self, query: str, /, **params: Any) -> Rows:
        """Run one statement inside the transaction and return its rows."""
        ...


class Executor(Protocol):
    """The two ways to a statement that the stores use.

    Graphiti's ``GraphDriver`` and the guard have both. Parameters are keyword arguments;
    ``group_id`` is always among those of PPS's own statements.

    Raises:
        StoreUnavailable: The database cannot be reached.
        StoreConflict: Somebody else holds it or changed it first; safe to run again.
        StoreError: It refused the statement.
        IsolationError: The guard refused the statement or a row.
    """

    async def execute_query(self, cypher_query_: str, /, **kwargs: Any) -> tuple[Rows, Any, Any]:
        """Run one statement in a transaction of its own; the rows are the first of the three."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction: ``async with executor.transaction() as tx: await tx.run(...)``."""
        ...


class GraphTimelineOptions(TypedDict, total=False):
    """What ``timeline`` can be asked.

    Attributes:
        node: Only facts that touch this node.
        relation: Only facts of this relation, exact.
        as_of: Only facts that held at this instant of world time: ``valid_at <= as_of <
            invalid_at``, where an unknown ``valid_at`` is the distant past and an open
            ``invalid_at`` the distant future. A fact that was given up (``expired_at``) without an
            ``invalid_at`` never holds.
        as_of_dates: What the wall clock shows at ``as_of``, as if that were UTC: facts that held at
            either are let through, since a date holds by the wall clock; the caller tells them
            apart.
        after, before: Only facts with ``after <= valid_at < before``; undated facts drop out if
            either is given.
        cursor: ``timeline_cursor`` of the last fact of the page before; empty is the start.
        limit: Most facts, 1 to 1,000; 100 by default.
    """

    node: str | None
    relation: str | None
    as_of: datetime | None
    as_of_dates: datetime | None
    after: datetime | None
    before: datetime | None
    cursor: str
    limit: int


def as_of_bounds(options: GraphTimelineOptions) -> tuple[datetime, datetime] | None:
    """Return the bounds of ``as_of`` and ``as_of_dates`` in UTC; None where facts need not hold."""
    as_of = options.get("as_of")
    if as_of is None:
        return None
    moments = [utc(as_of, "as_of"), utc(options.get("as_of_dates") or as_of, "as_of_dates")]
    return min(moments), max(moments)


@dataclass(frozen=True, slots=True)
class ByUuid:
    """Statements of one dialect that read by a list of uuids."""

    nodes: str
    facts: str
    episodes: str
    node_vectors: str
    fact_vectors: str


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What is written into a graph together, in the order of these fields.

    Attributes:
        nodes, facts, episodes: Created or updated.
        parted, mentions: Pairs of episode and node that are parted, and joined.
        gone_facts, gone_episodes, gone_nodes: Uuids of what is deleted.
    """

    nodes: Sequence[Node] = ()
    facts: Sequence[Fact] = ()
    parted: Sequence[tuple[str, str]] = ()
    episodes: Sequence[Episode] = ()
    mentions: Sequence[tuple[str, str]] = ()
    gone_facts: Sequence[str] = ()
    gone_episodes: Sequence[str] = ()
    gone_nodes: Sequence[str] = ()


class GraphStore(ABC):
    """The graph of one entity. Bound to ONE group for life; no method takes a group.

    Ids of another group read as absent. In a database of several groups, saving under an id that
    another group owns raises ``NotFound`` and changes nothing. Batches of any length are one
    transaction each: all of it, or nothing.

    Args:
        group: The one group of this store, for life.
    """

    def __init__(self, group: str) -> None:
        if not group.strip():
            raise InvalidRequest("group", "must not be blank")
        self.group = group

    @abstractmethod
    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        """Return nodes in the order of the ids, without absent and foreign ones.

        ``facts`` and ``episodes`` do the same.
        """

    @abstractmethod
    async def facts(self, uuids: Sequence[str]) -> list[Fact]: ...

    @abstractmethod
    async def episodes(self, uuids: Sequence[str]) -> list[Episode]: ...

    @abstractmethod
    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors; nodes without one are left out."""

    @abstractmethod
    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]: ...

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode → uuids of the nodes it mentions, sorted; others are left out."""
        grouped: dict[str, list[str]] = {}
        for episode, node in sorted(
            {(row["episode"], row["node"]) for row in await self._mentions(episodes)}
        ):
            grouped.setdefault(str(episode), []).append(str(node))
        return grouped

    async def distances(self, center: str, max_hops: int) -> dict[str, int]:
        """Return the hops from ``center`` (0) to every node within ``max_hops``, both directions.

        Facts and relations count alike. Empty when ``center`` is absent.
        """
        check_hops(max_hops)
        return await distances(self._expand, center, max_hops) if await self._has(center) else {}

    @abstractmethod
    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        """Create or update nodes; ``vectors`` maps uuid to the name's vector.

        A node without a vector keeps the one it has. Attributes that Graphiti's own pipeline wrote
        stay.
        """

    @abstractmethod
    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        """Create or update facts; ``vectors`` maps uuid to the sentence's vector, kept when absent.

        A fact whose ends changed is moved. Raises NotFound when an end is not a node of this group.
        """

    @abstractmethod
    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        """Create or update episodes."""

    @abstractmethod
    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Join (episode, node) pairs; a pair that is joined already stays as it is.

        Raises NotFound when either end is not of this group.
        """

    @abstractmethod
    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Part (episode, node) pairs; a pair that is not joined is passed over."""

    async def apply(self, change: GraphChange) -> None:
        """Write a change, one transaction after the other; errors as of the single writes."""
        await self.save_nodes(change.nodes, {})
        await self.save_facts(change.facts, {})
        await self.delete_mentions(change.parted)
        await self.save_episodes(change.episodes)
        await self.save_mentions(change.mentions)
        await self.delete_facts(change.gone_facts)
        await self.delete_episodes(change.gone_episodes)
        await self.delete_nodes(change.gone_nodes)

    @abstractmethod
    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        """Return at most ``limit`` nodes with ``uuid > after``, by uuid; ``""`` is the start."""

    @abstractmethod
    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        """Return at most ``limit`` facts with ``uuid > after`` in uuid order."""

    @abstractmethod
    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        """Return at most ``limit`` episodes with ``uuid > after`` in uuid order."""

    @abstractmethod
    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        """Delete nodes with their facts, mentions and memberships; return the number of nodes."""

    @abstractmethod
    async def delete_facts(self, uuids: Sequence[str]) -> int:
        """Delete facts; return how many there were."""

    @abstractmethod
    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        """Delete episodes with mentions, not the facts that name them; return their number."""

    @abstractmethod
    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        """Return facts of the nodes, newest ``created_at`` first, then by uuid, up to ``limit``."""

    @abstractmethod
    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        """Return facts that any of the episodes supports, in uuid order."""

    @abstractmethod
    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return facts from subject to object for each (subject, object) pair, in uuid order."""

    @abstractmethod
    async def timeline(self, **options: Unpack[GraphTimelineOptions]) -> list[Fact]:
        """Return facts ordered by (``valid_at``, uuid); undated facts come last."""

    @abstractmethod
    async def counts(self) -> GraphCounts:
        """Return how many of each the group owns."""

    @abstractmethod
    async def clear(self) -> None:
        """Delete everything of the group, what Graphiti made of it too."""

    @abstractmethod
    async def foreign_edges(self) -> int:
        """Return the number of edges between this group and another: 0 when sound."""

    async def _expand(self, uuids: Sequence[str]) -> Iterable[GraphLink]:
        return [
            GraphLink(row["fact"], row["subject"], row["object"])
            for row in await self._links(uuids)
        ]

    @abstractmethod
    async def _has(self, node: str) -> bool: ...

    @abstractmethod
    async def _links(self, uuids: Sequence[str]) -> Rows:
        """Return (fact, subject, object) of every fact of the nodes; a row may come twice."""

    @abstractmethod
    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        """Return pairs of episode and node; a row may come twice."""


class CypherStore(GraphStore):
    """A store whose database is asked in Cypher.

    Args:
        executor: What runs statements: the entity's guarded driver in production.
        group: The one group of this store, for life.
    """

    _statements: ClassVar[ByUuid]

    def __init__(self, executor: Executor, group: str) -> None:
        super().__init__(group)
        self._executor = executor

    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        return in_order(map(node_of, await self._by_uuid(self._statements.nodes, uuids)), uuids)

    async def facts(self, uuids: Sequence[str]) -> list[Fact]:
        return in_order(map(fact_of, await self._by_uuid(self._statements.facts, uuids)), uuids)

    async def episodes(self, uuids: Sequence[str]) -> list[Episode]:
        return in_order(
            map(episode_of, await self._by_uuid(self._statements.episodes, uuids)), uuids
        )

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return _vectors(await self._by_uuid(self._statements.node_vectors, uuids))

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return _vectors(await self._by_uuid(self._statements.fact_vectors, uuids))

    @abstractmethod
    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        """Return the rows of a statement about uuids, each asked for once; none for none."""


def slices(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return slices of at most ``size``; nothing for nothing."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _vectors(rows: Rows) -> dict[str, Vector]:
    vectors = {str(row["uuid"]): vector_of(row["vector"]) for row in rows}
    return {uuid: vector for uuid, vector in vectors.items() if vector is not None}
