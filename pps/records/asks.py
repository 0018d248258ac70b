"""Questions about one entity's records as a whole: ranks, named queries, and pages of all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pps.core import time
from pps.core.errors import InvalidRequest, StoreUnavailable
from pps.core.ids import is_uuid
from pps.core.kinds import Kinds
from pps.core.record_values import Record, RecordGraph, Relation
from pps.core.values import JSON, Fact, Matrix, Node
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.filters import ItemFilter
from pps.journal.links import holds
from pps.models.protocols import Embedder
from pps.recall.engine import RecallEngine
from pps.recall.floor import least_similarity
from pps.recall.request import make_request
from pps.records.named_query import LEAST, Ground, Query, QueryAnswer, Web
from pps.records.outcomes import OUTCOMES
from pps.records.queries import NAMED
from pps.records.ranks import Ranking, RankRequest, Ranks
from pps.records.reasons import REASONS
from pps.records.records import Records

QUERIES: Final[tuple[Query, ...]] = (*NAMED, *REASONS, *OUTCOMES)
_FACTS = 5_000
_PAGE = 1_000
_PARTS = ("records", "nodes", "relations", "facts")
_Item: TypeAlias = Record | Node | Relation | Fact


@dataclass(frozen=True, slots=True)
class GraphPage:
    """A page of everything: records, then other nodes, relations, facts.

    ``next_cursor`` is empty on the last.
    """

    records: tuple[Record, ...] = ()
    nodes: tuple[Node, ...] = ()
    relations: tuple[Relation, ...] = ()
    facts: tuple[Fact, ...] = ()
    next_cursor: str = ""


@dataclass(slots=True)
class Asks:
    """What can be asked of the records of one entity.

    Args:
        queries: The table of named queries; a room above may add its own.
    """

    reads: Records
    kinds: Kinds
    client: IsolatedGraphitiClient
    engine: RecallEngine
    embedder: Embedder | None
    queries: tuple[Query, ...] = QUERIES
    _ranks: Ranks = field(init=False)
    _web: Web | None = None

    def __post_init__(self) -> None:
        self._ranks = Ranks(self.reads, self.kinds)

    async def rank(self, asked: RankRequest) -> Ranking:
        """Return a ranking; raises as ``Ranks.rank``."""
        return await self._ranks.rank(asked)

    async def ask(
        self, name: str, parameters: Mapping[str, JSON], *, within: RecordGraph | None = None
    ) -> QueryAnswer:
        """Answer a named query, over every record or over those of a part of the graph.

        Raises:
            InvalidRequest: There is none of that name, a parameter is wrong, or the entity lacks
                the kinds.
            NotFound: A record that is named is not this entity's.
        """
        chosen = next((query for query in self.queries if query.name == name), None)
        if chosen is None:
            known = ", ".join(query.name for query in self.queries)
            raise InvalidRequest("query", f"{name!r} is no query; there are {known}")
        return await chosen.ask(await self._ground(within), parameters)

    async def page(self, cursor: str, limit: int) -> GraphPage:
        """Return a page of everything, by id within records, nodes, relations and facts.

        Raises:
            InvalidRequest: The cursor is none that a page gave.
        """
        part, _, after = cursor.partition(":") if cursor else (_PARTS[0], "", "")
        if part not in _PARTS or (after and not is_uuid(after)):
            raise InvalidRequest("cursor", "give the 'next_cursor' of a page before, as it is")
        at = _PARTS.index(part)
        left = limit
        graph = await self.reads.graph()
        page = GraphPage()
        while at < len(_PARTS) and left:
            scanned = await self._scan(_PARTS[at], graph, after, left)
            page = replace(
                page, **{_PARTS[at]: tuple(item for item in scanned if _new(item, graph))}
            )
            at, after = (at, _id(scanned[-1])) if len(scanned) == left else (at + 1, "")
            left -= len(scanned)
        return replace(page, next_cursor=f"{_PARTS[at]}:{after}" if at < len(_PARTS) else "")

    async def _scan(self, part: str, graph: RecordGraph, after: str, limit: int) -> Sequence[_Item]:
        """Return the first items of a part by id after one."""
        if part == "nodes":
            return await self.client.scan_nodes(after, limit)
        if part == "facts":
            return await self.client.scan_facts(after, limit)
        them: Iterable[Record | Relation] = (
            graph.records.values() if part == "records" else graph.relations
        )
        return sorted((item for item in them if item.id > after), key=_id)[:limit]

    async def _ground(self, within: RecordGraph | None) -> Ground:
        graph = within or await self.reads.graph()
        if self._web is None or self._web.graph is not graph:
            self._web = await asyncio.to_thread(Web, graph)
        return Ground(
            self._web,
            self.kinds,
            self.reads,
            self._similar,
            self._embed,
            self._facts,
            self._least,
            self.engine.sources.journal.zone,
        )

    @property
    def _least(self) -> float:
        known = None if self.embedder is None else least_similarity(self.embedder.fingerprint.model)
        return LEAST if known is None else known

    async def _similar(self, text: str, kinds: Sequence[str], limit: int) -> Mapping[str, float]:
        filters = ItemFilter(kinds=tuple(kinds))
        request = make_request(
            text,
            {"profile": "semantic", "limit": limit, "filters": filters, "min_similarity": -1.0},
        )
        channel = (await self.engine.recall(request)).channels["nodes"]
        if channel.error:
            raise StoreUnavailable(channel.error)
        return {hit.id: hit.score for hit in channel.hits}

    async def _embed(self, texts: Sequence[str]) -> Matrix | None:
        return (
            None
            if self.embedder is None
            else await asyncio.to_thread(self.embedder.embed_passages, texts)
        )

    async def _facts(self) -> Sequence[Fact]:
        """Return at most ``_FACTS`` facts that hold now, without relations between records."""
        facts: list[Fact] = []
        moment = time.now()
        after = ""
        while len(facts) < _FACTS:
            page = await self.client.scan_facts(after, _PAGE)
            facts += [link for link in page if link.kind == "fact" and holds(link, moment)]
            if len(page) < _PAGE:
                break
            after = page[-1].uuid
        return facts[:_FACTS]


def _id(item: _Item) -> str:
    return item.uuid if isinstance(item, Node | Fact) else item.id


def _new(item: _Item, graph: RecordGraph) -> bool:
    """Tell whether it is not shown as a record or a relation already."""
    if isinstance(item, Node):
        return item.uuid not in graph.records
    return not isinstance(item, Fact) or item.kind == "fact"
