"""What both stores read in the same way, each by its own statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pps.core.errors import InvalidRequest
from pps.core.values import Episode, Fact, Node, Vector
from pps.graph import traverse
from pps.graph.graph_store import Executor, Rows
from pps.graph.mapping import episode_of, fact_of, in_order, node_of, vector_of
from pps.graph.traverse import Link

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ByUuid:
    """Statements of one dialect that read by a list of uuids."""

    nodes: str
    facts: str
    episodes: str
    node_vectors: str
    fact_vectors: str


class GroupReads(ABC):
    """Base of the stores: an executor, and the one group that every statement binds.

    Args:
        executor: What runs statements: the entity's guarded driver in production.
        group: The one group of this store, for life.
    """

    _statements: ClassVar[ByUuid]

    def __init__(self, executor: Executor, group: str) -> None:
        if not group.strip():
            raise InvalidRequest("group", "must not be blank")
        self._executor = executor
        self._group = group

    @property
    def group(self) -> str:
        return self._group

    async def nodes(self, uuids: Sequence[str]) -> list[Node]:
        return in_order(map(node_of, await self._by_uuid(self._statements.nodes, uuids)), uuids)

    async def facts(self, uuids: Sequence[str]) -> list[Fact]:
        return in_order(map(fact_of, await self._by_uuid(self._statements.facts, uuids)), uuids)

    async def episodes(self, uuids: Sequence[str]) -> list[Episode]:
        return in_order(map(episode_of, await self._by_uuid(self._statements.episodes, uuids)), uuids)

    async def node_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return _vectors(await self._by_uuid(self._statements.node_vectors, uuids))

    async def fact_vectors(self, uuids: Sequence[str]) -> dict[str, Vector]:
        return _vectors(await self._by_uuid(self._statements.fact_vectors, uuids))

    async def mentioned_nodes(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for episode, node in sorted({(row["episode"], row["node"]) for row in await self._mentions(episodes)}):
            found.setdefault(str(episode), []).append(str(node))
        return found

    async def distances(self, center: str, max_hops: int) -> dict[str, int]:
        traverse.check_hops(max_hops)
        return await traverse.distances(self._expand, center, max_hops) if await self._has(center) else {}

    async def _expand(self, uuids: Sequence[str]) -> Iterable[Link]:
        return [Link(row["fact"], row["subject"], row["object"]) for row in await self._links(uuids)]

    @abstractmethod
    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        """Return the rows of a statement about uuids, each asked for once; none for none."""

    @abstractmethod
    async def _has(self, node: str) -> bool: ...

    @abstractmethod
    async def _links(self, uuids: Sequence[str]) -> Rows:
        """Return fact, subject and object of every fact that touches one of the nodes; a row may come twice."""

    @abstractmethod
    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        """Return pairs of episode and node; a row may come twice."""


def slices(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return slices of at most ``size``; nothing for nothing."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _vectors(rows: Sequence[dict[str, Any]]) -> dict[str, Vector]:
    found = {str(row["uuid"]): vector_of(row["vector"]) for row in rows}
    return {uuid: vector for uuid, vector in found.items() if vector is not None}
