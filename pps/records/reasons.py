"""Named queries along relations: surroundings, connections, reasons, support and analogies.

*Up* leads from a means to its end: along ``SERVES``, ``ADVANCES`` …, and against ``HAS_TASK``,
``CONTAINS`` …. Archived and deprecated records are not passed.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from pydantic import Field

from pps.core.record_values import Record, Relation
from pps.core.text import counted
from pps.core.values import JSON
from pps.ingest.given_input import Input
from pps.records.named_query import (
    At,
    Ground,
    Limited,
    QueryAnswer,
    QueryMatch,
    QueryStep,
    Web,
    alive,
    answer,
    found,
    outcome,
    query,
    step,
    strength,
    way,
)

_AHEAD, _BACK = (
    frozenset(names.split())
    for names in (
        "SERVES ALIGNS_WITH ADVANCES MEASURES DELIVERS EXECUTES ENABLES APPLIED_TO TRIGGERS "
        "SUPPORTS DEMONSTRATES TRACKS OBSERVES INFORMS VALIDATES LEADS_TO RELATES_TO",
        "CONTAINS HAS_KEY_RESULT HAS_MILESTONE HAS_GOAL HAS_PROJECT HAS_TASK HAS_PROCESS "
        "GENERATES_TASK SCHEDULED_AS LOGGED_AS ENFORCED_BY PROTECTED_BY USES DEPENDS_ON "
        "SUPPORTED_BY",
    )
)
"""Up from beginning to end, and from end to beginning.

``SUPPORTED_BY`` of two goals names the one above: ahead.
"""
Hop = tuple[Relation, Record, bool]
TOPS = ("Value", "Vision")
_TRIED = 200
_FAR = 12


@dataclass(frozen=True, slots=True)
class Chain:
    """A way up: its hops, and its length, the sum of 1 / weight."""

    length: float
    steps: tuple[QueryStep, ...]


class RecordAroundInput(Input):
    """What is around a record."""

    id: At = Field(description="Where to begin: id or title.")
    max_hops: int = Field(default=2, ge=1, le=5, description="Most hops.")
    relations: tuple[str, ...] = Field(
        default=(), max_length=50, description="Only over these; any when empty."
    )
    kinds: tuple[str, ...] = Field(
        default=(), max_length=50, description="Only answers of these kinds."
    )
    limit: int = Field(default=50, ge=1, le=500, description="Most answers.")


@query("expand", RecordAroundInput)
async def expand(ground: Ground, request: RecordAroundInput) -> QueryAnswer:
    """What is around a record, each with the way there: over strong relations first, at most so many hops away."""
    web = ground.web
    start = web.find(request.id)

    def nexts(record: str) -> Iterator[Hop]:
        return (
            step
            for step in web.steps(record)
            if not request.relations or step[0].type in request.relations
        )

    reached = _strongest(web, start.id, nexts, request.max_hops)
    rows = [
        found(web.records[id_], way(start, chain.steps), chain.steps, 1 / chain.length)
        for id_, chain in reached.items()
        if id_ != start.id and (not request.kinds or web.records[id_].kind in request.kinds)
    ]
    text = f"{counted(len(rows), 'record')} within {request.max_hops} hops of “{start.title}”."
    return answer("expand", text, rows, request.limit)


class Two(Limited):
    """Two records."""

    id: At = Field(description="One: id or title.")
    target: At = Field(description="The other: id or title.")
    max_hops: int = Field(default=5, ge=1, le=8, description="Most hops between them.")
    limit: int = Field(default=5, ge=1, le=20, description="Most ways.")


@query("bridge", Two)
async def bridge(ground: Ground, request: Two) -> QueryAnswer:
    """What joins two records: the shortest ways, in any direction; strong relations are short."""
    web = ground.web
    start = web.find(request.id)
    end = web.find(request.target, "target")
    ways = (
        await asyncio.to_thread(_ways, web, start.id, end.id, request) if start.id != end.id else []
    )
    between = Counter(step.id for chain in ways for step in chain.steps[:-1])
    rows = [
        found(
            end, way(start, chain.steps), chain.steps, 1 / chain.length, {"between": [*_mid(chain)]}
        )
        for chain in ways
    ]
    over = ", ".join(f"“{web.records[id_].title}”" for id_, _ in between.most_common(3))
    joined = f"{counted(len(rows), 'way')} between them" + (f", most over {over}" if over else "")
    none = f"nothing joins “{start.title}” and “{end.title}” within {request.max_hops} hops"
    return answer("bridge", (joined if rows else none) + ".", rows, request.limit)


class Matters(Limited):
    """A record."""

    id: At = Field(description="What is asked about: id or title.")


@query("why", Matters, *TOPS)
async def why(ground: Ground, request: Matters) -> QueryAnswer:
    """Why a record matters: the strongest chain from it up to each value and vision, with relations and weights."""
    web = ground.web
    start = web.find(request.id)
    rows = [
        found(
            web.records[top],
            f"{way(start, chain.steps)}; the weights on the way come to {_product(chain.steps):g}.",
            chain.steps,
            _product(chain.steps),
        )
        for top, chain in _reasons(web, start.id).items()
        if web.records[top].kind in TOPS and top != start.id
    ]
    rows.sort(key=lambda row: (-(row.score or 0), len(row.path), row.id))
    tops = ", ".join(f"“{row.title}” ({row.kind})" for row in rows[:3])
    text = (
        f"“{start.title}” matters for {tops}."
        if rows
        else f"“{start.title}” leads up to no value and no vision."
    )
    return answer("why", text, rows, request.limit)


@query("counterfactual", Matters, *TOPS)
async def counterfactual(ground: Ground, request: Matters) -> QueryAnswer:
    """What would lose its support if a record went: what then leads to no value and vision, what rests on it alone."""
    return await asyncio.to_thread(_without, ground.web, request)


class Alike(Limited):
    """A record, and among which to look."""

    id: At = Field(description="What it should be like: id or title.")
    kinds: tuple[str, ...] = Field(
        default=(), max_length=50, description="Among these kinds; its own when empty."
    )
    succeeded: bool = Field(
        default=False,
        description=(
            "Only what turned out well: goals reached, decisions of positive roi, tasks done."
        ),
    )


@query("analogy", Alike)
async def analogy(ground: Ground, request: Alike) -> QueryAnswer:
    """Which records have surroundings of the same shape: relations and kinds, two hops around, whatever the words."""
    return await asyncio.to_thread(_analogy, ground.web, request)


def up(web: Web, record: str) -> Iterator[Hop]:
    """Yield the hops up from a record, to live ones."""
    start = web.records[record]
    return (
        hop
        for hop in web.steps(record)
        if alive(hop[1]) and leads_up(hop[0], start, hop[1], hop[2])
    )


def leads_up(relation: Relation, start: Record, end: Record, forward: bool) -> bool:
    if relation.type == "SUPPORTED_BY" and start.kind == end.kind == "Goal":
        return forward
    return relation.type in (_AHEAD if forward else _BACK)


def _reasons(web: Web, start: str) -> Mapping[str, Chain]:
    def nexts(record: str) -> Iterator[Hop]:
        return up(web, record)

    return _strongest(web, start, nexts, _FAR)


def _strongest(
    web: Web, start: str, nexts: Callable[[str], Iterator[Hop]], depth: int
) -> Mapping[str, Chain]:
    """Return record → the shortest chain to it within so many hops, the nearest first.

    A hop is 1 / weight long.

    A record is met again when fewer hops lead to it than before, since from there more can be
    reached.
    """
    order = itertools.count()
    heap: list[tuple[float, int, str, tuple[QueryStep, ...]]] = [(0.0, next(order), start, ())]
    best: dict[str, Chain] = {}
    fewest: dict[str, int] = {}
    while heap:
        length, _, at, steps = heapq.heappop(heap)
        if fewest.get(at, depth + 1) <= len(steps):
            continue
        fewest[at] = len(steps)
        best.setdefault(at, Chain(length, steps))
        if len(steps) == depth:
            continue
        for relation, other, forward in nexts(at):
            if (
                strength(relation)
                and all(other.id != step.id for step in steps)
                and other.id != start
            ):
                hop = step(relation, other, forward=forward)
                heapq.heappush(
                    heap, (length + 1 / strength(relation), next(order), other.id, (*steps, hop))
                )
    return best


def _ways(web: Web, start: str, end: str, request: Two) -> list[Chain]:
    """Return the shortest ways without a circle (Yen 1971), by length."""
    best: dict[tuple[str, str], Relation] = {}
    for relation in web.graph.relations:
        ends = (min(relation.source, relation.target), max(relation.source, relation.target))
        if (
            strength(relation)
            and relation.source in web.records
            and relation.target in web.records
            and relation.source != relation.target
        ):
            best[ends] = max(relation, best.get(ends, relation), key=strength)
    # Imported late: it takes as long as 40 modules of PPS. Its stubs are unknown types to a strict
    # checker.
    networkx: Any = import_module("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from((start, end))
    graph.add_weighted_edges_from(
        (a, b, 1 / strength(relation)) for (a, b), relation in best.items()
    )
    ways: list[Chain] = []
    if not networkx.has_path(graph, start, end):
        return ways
    paths = networkx.shortest_simple_paths(graph, start, end, weight="weight")
    for path in itertools.islice(cast("Iterator[list[str]]", paths), _TRIED):
        if len(path) - 1 <= request.max_hops:
            hops = [
                (best[min(a, b), max(a, b)], web.records[b]) for a, b in itertools.pairwise(path)
            ]
            steps = tuple(
                step(relation, to, forward=relation.target == to.id) for relation, to in hops
            )
            ways.append(Chain(sum(1 / strength(relation) for relation, _ in hops), steps))
        if len(ways) == request.limit:
            break
    return ways


def _mid(chain: Chain) -> list[JSON]:
    return [step.title for step in chain.steps[:-1]]


def _product(steps: tuple[QueryStep, ...]) -> float:
    product = 1.0
    for relation in steps:
        product *= 1.0 if relation.weight is None else relation.weight
    return product


def _without(web: Web, request: Matters) -> QueryAnswer:
    gone = web.find(request.id)
    before = _led(web, "")
    after = _led(web, gone.id)
    rows: list[QueryMatch] = []
    for lost in sorted(before - after - {gone.id}):
        record = web.records[lost]
        chain = _reasons(web, lost).get(gone.id)
        steps = chain.steps if chain else ()
        text = (
            f"“{record.title}” ({record.kind}) leads to a value or vision only over "
            f"“{gone.title}”: {way(record, steps)}"
        )
        rows.append(found(record, text, steps, 1.0, {"loses": "its reason"}))
    named = {row.id for row in rows}
    for _, record, _ in up(web, gone.id):
        below = [other for other in _below(web, record.id) if other.id != gone.id]
        if record.id in named:
            continue
        named.add(record.id)
        rest = f"{len(below)} others still support it" if below else "nothing else supports it"
        text = f"“{record.title}” ({record.kind}) is supported by “{gone.title}”; {rest}."
        loses = "all support" if not below else "some support"
        rows.append(
            found(
                record,
                text,
                score=1 / (1 + len(below)),
                details={"loses": loses, "left": len(below)},
            )
        )
    rows.sort(key=lambda row: (-(row.score or 0), row.id))
    wholly = sum(row.score == 1 for row in rows)
    text = (
        f"Without “{gone.title}” {wholly} records would lose their reason or all support, "
        f"{len(rows) - wholly} some."
    )
    return answer("counterfactual", text, rows, request.limit)


def _led(web: Web, without: str) -> set[str]:
    """Return the live records that lead up to a value or a vision, and these tops themselves.

    One record can be left out.
    """
    reached = {record.id for record in web.of_kinds(*TOPS) if record.id != without}
    front = list(reached)
    while front:
        below = {step.id for at in front for step in _below(web, at)} - reached - {without}
        reached |= below
        front = list(below)
    return reached


def _below(web: Web, record: str) -> list[Record]:
    """Return the live records from which one hop up leads to a record."""
    end = web.records[record]
    below = {
        other.id: other
        for relation, other, forward in web.steps(record)
        if alive(other) and leads_up(relation, other, end, not forward)
    }
    return list(below.values())


def _analogy(web: Web, alike: Alike) -> QueryAnswer:
    start = web.find(alike.id)
    mine = shape(web, start.id)
    rows: list[QueryMatch] = []
    for record in web.of_kinds(*(alike.kinds or (start.kind,)), live=False):
        if record.id == start.id or (alike.succeeded and outcome(record) != "good"):
            continue
        other = shape(web, record.id)
        likeness = _alike(mine, other)
        if likeness:
            shared = [
                _shaped(part)
                for part, _ in sorted((mine & other).items(), key=lambda row: (-row[1], row[0]))
            ]
            ended = outcome(record)
            end = (
                "" if ended is None else f"; it turned out {'well' if ended == 'good' else 'badly'}"
            )
            text = (
                f"“{record.title}” has {likeness:.0%} of the shape: {', '.join(shared[:4])}{end}."
            )
            rows.append(
                found(record, text, score=likeness, details={"shared": [*shared], "outcome": ended})
            )
    rows.sort(key=lambda row: (-(row.score or 0), row.id))
    return answer(
        "analogy",
        f"{len(rows)} records have a shape like that of “{start.title}”.",
        rows,
        alike.limit,
    )


Part = tuple[str, ...]


def shape(web: Web, record: str) -> Counter[Part]:
    """Return each path of one or two hops from a record → how often it occurs.

    A path has the direction and relation of each hop and the kinds it reaches. These are the
    colours of Weisfeiler and Lehman (1968), two rounds, without the record itself.
    """
    parts: Counter[Part] = Counter()
    for relation, other, forward in web.steps(record):
        first = (_arrow(relation, forward), other.kind)
        parts[first] += 1
        parts.update(
            (*first, _arrow(then, on), further.kind)
            for then, further, on in web.steps(other.id)
            if further.id != record
        )
    return parts


def _alike(mine: Counter[Part], other: Counter[Part]) -> float:
    """Return the Ruzicka similarity of two shapes, 0 to 1.

    A first hop weighs as much as all hops beyond it.
    """
    ours = mine & other
    all_of = mine | other
    near = _of(all_of, 2)
    far = _of(all_of, 4)
    if not near:
        return 0.0
    shares = [_of(ours, 2) / near, *([_of(ours, 4) / far] if far else [])]
    return sum(shares) / len(shares)


def _of(parts: Mapping[Part, int], length: int) -> int:
    return sum(count for part, count in parts.items() if len(part) == length)


def _arrow(relation: Relation, forward: bool) -> str:
    return f"—{relation.type}→" if forward else f"←{relation.type}—"


def _shaped(part: Collection[str]) -> str:
    return " ".join(part)


REASONS = (expand, bridge, why, counterfactual, analogy)
