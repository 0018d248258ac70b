"""Ranks of records by the relations among them: pagerank, communities, betweenness, shortest path.

rustworkx computes them on an export of the records, but for communities, where networkx has
Louvain's method. Relations between two records are added up; one of weight 0 joins nothing, a
record does not join itself.
"""

from __future__ import annotations

import asyncio
import itertools
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast

import rustworkx
from cachetools import TTLCache

from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.record_values import Record, RecordGraph, Relation
from pps.records.named_query import LIVE, QueryStep, Web, step, strength
from pps.records.records import Records

Algorithm: TypeAlias = Literal["pagerank", "communities", "betweenness", "shortest_path"]

FORMULAS: Mapping[Algorithm, str] = {
    "pagerank": "PageRank (Page et al. 1998), damping .85, along the relations' directions; a "
    "record gives to each that it points to by the sum of the weights (none counts as 1); scores "
    "add up to 1",
    "communities": "Louvain (Blondel et al. 2008) with one seed, without directions, by the sum of "
    "the weights (none counts as 1); score is the sum of a record's weights within its community",
    "betweenness": "betweenness (Brandes 2001) by hops, without directions: the share of shortest "
    "paths between two others that lead over a record",
    "shortest_path": "Dijkstra without directions; a hop is 1 / weight long, 1 where there is none",
}
KEPT_S = 3_600.0
_KEPT = 32
_SEED = 0
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class RankRequest:
    """What to rank.

    Attributes:
        layers, kinds: Only records of these are returned; all are ranked, so that what joins others
            counts.
        relations: Only relations of these names count; empty for all.
        statuses: Only records with one of these.
        source, target: Ends of a shortest path: an id or a title.
        limit: Most records; of communities most communities and most members of each.
    """

    algorithm: Algorithm
    layers: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    statuses: tuple[str, ...] = LIVE
    source: str = ""
    target: str = ""
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record with its score."""

    id: str
    kind: str
    title: str
    score: float


@dataclass(frozen=True, slots=True)
class Community:
    """Records that are joined more among themselves than with others.

    The strongest members first.
    """

    size: int
    members: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer of a ranking.

    Attributes:
        records, relations: How many it was computed on.
        modularity: Of communities: 0 is as by chance, towards 1 is well parted.
        start, path, length: Of a shortest path: where it begins, each hop; None and empty when
            there is none.
    """

    algorithm: Algorithm
    formula: str
    records: int
    relations: int
    ranked: tuple[Ranked, ...] = ()
    communities: tuple[Community, ...] = ()
    modularity: float | None = None
    start: Ranked | None = None
    path: tuple[QueryStep, ...] = ()
    length: float | None = None


@dataclass(frozen=True, slots=True)
class Ties:
    """The chosen records by id, and their relations by (source, target)."""

    records: Mapping[str, Record]
    joined: Mapping[tuple[str, str], tuple[Relation, ...]]

    @property
    def count(self) -> int:
        return sum(map(len, self.joined.values()))

    def undirected(self) -> dict[tuple[str, str], tuple[Relation, ...]]:
        """Return the pairs in one order of their ends."""
        pairs: dict[tuple[str, str], tuple[Relation, ...]] = {}
        for (a, b), relations in self.joined.items():
            key = (min(a, b), max(a, b))
            pairs[key] = (*pairs.get(key, ()), *relations)
        return pairs


@dataclass(slots=True)
class Ranks:
    """Rankings of one entity's records, each cached until the next write, an hour at most."""

    reads: Records
    kinds: Kinds
    seconds: Callable[[], float] = clock.monotonic
    _kept: TTLCache[RankRequest, tuple[int, Ranking]] = field(init=False)

    def __post_init__(self) -> None:
        self._kept = TTLCache(_KEPT, KEPT_S, self.seconds)

    async def rank(self, request: RankRequest) -> Ranking:
        """Return a ranking, best first.

        Raises:
            InvalidRequest: An unknown layer or kind; ends given to what takes none, or missing for
                a path.
            NotFound: An end is no record of this entity that the filters let through.
        """
        ends = request.source and request.target
        if (request.algorithm == "shortest_path") != bool(ends) or (
            not ends and (request.source or request.target)
        ):
            raise InvalidRequest(
                "source", "a shortest path takes 'source' and 'target', the others neither"
            )
        kinds = self._kinds(request)
        graph = await self.reads.graph()
        whole = replace(request, limit=0)
        cached = self._kept.get(whole)
        if cached is None or cached[0] != graph.stamp:
            made = await asyncio.to_thread(ranking, graph, request, kinds)
            cached = self._kept[whole] = (graph.stamp, made)
        return cut(cached[1], request.limit)

    def _kinds(self, request: RankRequest) -> frozenset[str] | None:
        """Return the kinds that are wanted; None for all."""
        named = frozenset(self.kinds.kind(name).name for name in request.kinds)
        chosen = [named] if named else []
        if request.layers:
            chosen.append(frozenset(self.kinds.of_layers(request.layers)))
        return frozenset[str].intersection(*chosen) if chosen else None


def ranking(graph: RecordGraph, request: RankRequest, kinds: frozenset[str] | None) -> Ranking:
    """Return a whole ranking of a graph.

    Args:
        graph: All records and relations.
        request: What to rank by.
        kinds: The only kinds that are returned; None for all. Scores are those among all records.
    """
    ties = chosen(graph, request)
    empty = Ranking(request.algorithm, FORMULAS[request.algorithm], len(ties.records), ties.count)
    if request.algorithm == "pagerank":
        return replace(empty, ranked=_of_kinds(_ranked(ties, pagerank(ties)), kinds))
    if request.algorithm == "betweenness":
        return replace(empty, ranked=_of_kinds(_ranked(ties, betweenness(ties)), kinds))
    if request.algorithm == "communities":
        groups, modularity = communities(ties)
        listed = (replace(group, members=_of_kinds(group.members, kinds)) for group in groups)
        return replace(
            empty,
            communities=tuple(group for group in listed if group.members),
            modularity=modularity,
        )
    among = Web(replace(graph, records=ties.records, relations=()))
    start = among.find(request.source, "source")
    end = among.find(request.target, "target")
    path, length = shortest_path(ties, start.id, end.id)
    return replace(
        empty, start=Ranked(start.id, start.kind, start.title, 0.0), path=path, length=length
    )


def _of_kinds(ranked: Sequence[Ranked], kinds: frozenset[str] | None) -> tuple[Ranked, ...]:
    return tuple(record for record in ranked if kinds is None or record.kind in kinds)


def chosen(graph: RecordGraph, request: RankRequest) -> Ties:
    """Return the records and relations that a request ranks, by id."""
    records = {
        record.id: record
        for record in sorted(graph.records.values(), key=lambda record: record.id)
        if not request.statuses or record.status in request.statuses
    }
    joined: dict[tuple[str, str], tuple[Relation, ...]] = {}
    for relation in sorted(graph.relations, key=lambda relation: relation.id):
        wanted = not request.relations or relation.type in request.relations
        if (
            wanted
            and relation.source in records
            and relation.target in records
            and relation.source != relation.target
            and strength(relation)
        ):
            joined[relation.source, relation.target] = (
                *joined.get((relation.source, relation.target), ()),
                relation,
            )
    return Ties(records, joined)


def pagerank(ties: Ties) -> dict[str, float]:
    """Return record → PageRank."""
    graph, ids = _exported(ties, {ends: _sum(them) for ends, them in ties.joined.items()})
    scores = rustworkx.pagerank(graph, 0.85, weight_fn=float, tol=_TOLERANCE, max_iter=1_000)
    return {ids[at]: score for at, score in scores.items()}


def betweenness(ties: Ties) -> dict[str, float]:
    """Return record → betweenness, 0 to 1."""
    graph, ids = _exported(ties, dict.fromkeys(ties.undirected(), 1.0))
    scores = rustworkx.betweenness_centrality(
        graph.to_undirected(multigraph=False), normalized=True
    )
    return {ids[at]: score for at, score in scores.items()}


def communities(ties: Ties) -> tuple[tuple[Community, ...], float | None]:
    """Return the communities, the largest first, and their modularity; None without relations."""
    networkx: Any = import_module(
        "networkx"
    )  # three hundred modules, which no start of a server needs
    graph = networkx.Graph()
    graph.add_nodes_from(ties.records)
    graph.add_weighted_edges_from((a, b, _sum(them)) for (a, b), them in ties.undirected().items())
    if not graph.number_of_edges():
        return (), None
    parts = cast("list[set[str]]", networkx.community.louvain_communities(graph, seed=_SEED))
    modularity = float(networkx.community.modularity(graph, parts))
    made = [_community(ties, graph, part) for part in parts]
    return tuple(
        sorted(made, key=lambda community: (-community.size, community.members[0].id))
    ), modularity


def shortest_path(ties: Ties, start: str, end: str) -> tuple[tuple[QueryStep, ...], float | None]:
    """Return the hops of a shortest path and its length; no hop and None if there is no path."""
    best = {ends: max(them, key=strength) for ends, them in ties.undirected().items()}
    graph, ids = _exported(ties, {ends: 1 / strength(relation) for ends, relation in best.items()})
    at = {id_: index for index, id_ in enumerate(ids)}
    if start == end:
        return (), 0.0
    ways = rustworkx.dijkstra_shortest_paths(
        graph.to_undirected(), at[start], target=at[end], weight_fn=float
    )
    if at[end] not in ways:
        return (), None
    passed = [ids[record] for record in ways[at[end]]]
    hops: list[tuple[Relation, str]] = [
        (best[min(a, b), max(a, b)], b) for a, b in itertools.pairwise(passed)
    ]
    steps = tuple(
        step(relation, ties.records[to], forward=relation.target == to) for relation, to in hops
    )
    return steps, sum(1 / strength(relation) for relation, _ in hops)


def _exported(ties: Ties, edges: Mapping[tuple[str, str], float]) -> tuple[Any, Sequence[str]]:
    """Return a graph of rustworkx, and the record of each of its indices."""
    ids = tuple(ties.records)
    at = {id_: index for index, id_ in enumerate(ids)}
    graph: Any = rustworkx.PyDiGraph()
    graph.add_nodes_from(ids)
    graph.add_edges_from([(at[a], at[b], weight) for (a, b), weight in edges.items()])
    return graph, ids


def _sum(relations: Sequence[Relation]) -> float:
    return sum(map(strength, relations))


def _ranked(ties: Ties, scores: Mapping[str, float]) -> tuple[Ranked, ...]:
    """Return the records by score, those of the same by id."""
    order = sorted(scores, key=lambda score: (-scores[score], score))
    return tuple(
        Ranked(id_, ties.records[id_].kind, ties.records[id_].title, round(scores[id_], 9))
        for id_ in order
    )


def _community(ties: Ties, graph: Any, part: set[str]) -> Community:
    within: dict[str, float] = {}
    for id_ in part:
        within[id_] = sum(edge["weight"] for to, edge in graph[id_].items() if to in part)
    return Community(len(part), _ranked(ties, within))


def cut(whole: Ranking, limit: int) -> Ranking:
    """Return as many of a ranking as are wanted."""
    groups = tuple(
        replace(community, members=community.members[:limit])
        for community in whole.communities[:limit]
    )
    return replace(whole, ranked=whole.ranked[:limit], communities=groups)
