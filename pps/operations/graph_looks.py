"""An entity's graph without a question: the surroundings of a node, and changes in a period."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.core.reports import Histogram
from pps.core.text import counted, one_line
from pps.ingest.given_input import Moment, Name, described_time
from pps.memory import Memory
from pps.operations.inputs import Input, Label, argument, option
from pps.operations.item_views import (
    FactLine,
    FactView,
    NodeView,
    fact_line,
    fact_line_view,
    fact_text,
    fact_view,
    node_view,
)
from pps.operations.pages import (
    EMPTY,
    FOLLOWING,
    PAGE_CHARACTERS,
    as_json,
    fitting,
    json_size,
    with_next_page,
)
from pps.operations.table import READS, RECORDS, ModelView

_LONGEST_SUMMARY = 300


class AroundInput(Input):
    """From where, and how far."""

    id: Name | None = Field(
        default=None,
        description="Id or name of a node; your own node when not given.",
        json_schema_extra=argument(rest=True),
    )
    max_hops: int = Field(default=1, ge=1, le=4, description="Maximum distance, in facts.")
    limit: int = Field(
        default=100, ge=1, le=999, description="Maximum nodes around it, nearest first."
    )
    as_of: Annotated[Moment | None, described_time("What held at that time instead of now.")] = None
    cursor: Annotated[str, StringConstraints(pattern=r"^\d{0,5}$")] = Field(
        default="",
        description="'next_cursor' of the page before, with the other arguments unchanged.",
    )


class NodesInput(Input):
    """Which nodes."""

    kind: Label | None = Field(
        default=None,
        description="Only of this kind, such as Person or Place.",
        json_schema_extra=option("--kind"),
    )
    query: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="",
        description="Only nodes whose name or alias contains this text.",
        json_schema_extra=argument(rest=True),
    )
    cursor: Label = Field(default="", description="'next_cursor' of the page before.")
    limit: int = Field(default=100, ge=1, le=500, description="Maximum nodes on a page.")


class ChangesInput(Input):
    """Between which moments."""

    since: Annotated[Moment, described_time("Changes at that time or later.")]
    until: Annotated[Moment, described_time("Changes before that time.")]
    id: Name | None = Field(
        default=None,
        description="Id or name of a node: only facts that join it.",
        json_schema_extra=option("--about"),
    )
    limit: int = Field(
        default=200, ge=1, le=1_000, description="Maximum changes; a replacement counts as one."
    )
    cursor: Label = Field(default="", description="'next_cursor' of the page before.")


class HistogramInput(Input):
    """How finely."""

    bins: int = Field(default=60, ge=1, le=500, description="Bins of equal length.")


@dataclass(frozen=True, slots=True)
class Around:
    """A node with what is near it, and the facts and relations among them.

    ``hops`` is each node's distance.

    Further pages have the nodes that come next, without the first one, and the facts that join them
    to any node so far.
    """

    node: str
    nodes: tuple[NodeView, ...]
    facts: tuple[FactView, ...]
    hops: Mapping[str, int]
    more: bool
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListedNode:
    """A node in a list; ``facts`` counts those that join it, ended ones too."""

    id: str
    name: str
    kind: str
    summary: str
    facts: int


@dataclass(frozen=True, slots=True)
class NodesView:
    """A page of nodes by name; on the first page ``kinds`` counts all nodes of each kind."""

    nodes: tuple[ListedNode, ...]
    kinds: Mapping[str, int]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """A fact that ended, and the one that took its place."""

    old: FactView
    new: FactView


@dataclass(frozen=True, slots=True)
class ChangesView:
    """What began, ended and was replaced between two moments, newest first.

    ``total`` counts all changes.
    """

    opened: tuple[FactView, ...]
    closed: tuple[FactView, ...]
    replaced: tuple[Replacement, ...]
    more: bool
    next_cursor: str = ""
    total: int = 0


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node in a line."""

    name: str
    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class AroundLines:
    """A node with what is near it; ``facts_left_out`` are those that had no room."""

    nodes: tuple[NodeLine, ...]
    facts: tuple[FactLine, ...]
    node: str
    hops: Mapping[str, int]
    more: bool
    facts_left_out: int | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ReplacementLines:
    """A fact that ended, and the one that took its place."""

    old: FactLine
    new: FactLine


@dataclass(frozen=True, slots=True)
class ChangesLines:
    """What began, ended and was replaced between two moments; ``more`` means that not all is here.

    Without a ``next_cursor`` what is left out had no room: ask for a shorter time, or with a lower
    ``limit``.
    """

    opened: tuple[FactLine, ...]
    closed: tuple[FactLine, ...]
    replaced: tuple[ReplacementLines, ...]
    more: bool
    next_cursor: str | None = None


def around_for_model(view: Around, request: AroundInput) -> ModelView:
    """Return the nodes and facts as lines, as many as have room; the nearest nodes first."""
    sizes = [
        json_size(as_json(_node_line(node))) + json_size({node.id: view.hops[node.id]})
        for node in view.nodes
    ]
    count = fitting(sizes)
    nodes = view.nodes[:count]
    room = PAGE_CHARACTERS - FOLLOWING - sum(sizes[:count]) - 4 * count
    ids = {node.id for node in nodes}
    among = [fact for fact in view.facts if {fact.subject, fact.object} <= ids]
    facts = among[: fitting(_fact_sizes(among), room)] if room > 0 else []
    left_out = len(view.facts) - len(facts)
    more = view.more or count < len(view.nodes)
    # The first page begins with the node itself, which is not counted.
    passed = int(request.cursor or 0) + count - (0 if request.cursor else 1)
    data = AroundLines(
        tuple(map(_node_line, nodes)),
        tuple(map(fact_line_view, facts)),
        view.node,
        {node.id: view.hops[node.id] for node in nodes},
        more,
        left_out or None,
        str(passed) if more and passed else None,
    )
    lines = [f"{view.hops[node.id]}: {node.name} ({node.kind}) [{node.id}]" for node in nodes]
    lines += map(fact_text, facts)
    lines += [f"… and {counted(left_out, 'fact')} more"] if left_out else []
    return ModelView(data, with_next_page("\n".join(lines), data.next_cursor))


def changes_for_model(view: ChangesView, _: Input) -> ModelView:
    """Return as many facts as have room, as lines: replaced ones, then begun, then ended ones."""
    pairs = [fact for pair in view.replaced for fact in (pair.old, pair.new)]
    facts = [*pairs, *view.opened, *view.closed]
    count = fitting(_fact_sizes(facts))
    replaced = view.replaced[: count // 2]
    opened = view.opened[: max(0, count - len(pairs))]
    closed = view.closed[: max(0, count - len(pairs) - len(view.opened))]
    is_whole = count >= len(facts)
    changes = ChangesView(
        opened,
        closed,
        replaced,
        view.more or not is_whole,
        view.next_cursor if is_whole else "",
        view.total,
    )
    data = ChangesLines(
        tuple(map(fact_line_view, opened)),
        tuple(map(fact_line_view, closed)),
        tuple(
            ReplacementLines(fact_line_view(pair.old), fact_line_view(pair.new))
            for pair in replaced
        ),
        changes.more,
        changes.next_cursor or None,
    )
    text = changes_words(changes, line=fact_text)
    return ModelView(data, with_next_page(text, data.next_cursor))


def _fact_sizes(facts: Sequence[FactView]) -> Iterator[int]:
    return (json_size(as_json(fact_line_view(fact))) for fact in facts)


def _node_line(node: NodeView) -> NodeLine:
    return NodeLine(node.name, node.kind, node.id)


def around_words(view: Around) -> str:
    lines = [f"{view.hops[node.id]}: {node.name} ({node.kind}) [{node.id}]" for node in view.nodes]
    lines += [fact_line(fact) for fact in view.facts]
    return "\n".join(lines)


def changes_words(view: ChangesView, line: Callable[[FactView], str] = fact_line) -> str:
    """Return how many facts began, ended and were replaced, then each in a line."""
    counts = ((view.opened, "began"), (view.closed, "ended"), (view.replaced, "replaced"))
    lines = [", ".join(f"{counted(len(some), 'fact')} {verb}" for some, verb in counts) + "."]
    lines += [f"+ {line(change)}" for change in view.opened]
    lines += [f"- {line(change)}" for change in view.closed]
    lines += [f"- {line(change.old)}\n  + {line(change.new)}" for change in view.replaced]
    if view.more:
        narrower = "" if view.next_cursor else "; ask for a shorter time or with a lower limit"
        lines.append(f"… of {view.total:,} changes in all{narrower}")
    return "\n".join(lines)


@RECORDS.operation(
    "Look around a node",
    around_words,
    READS,
    command="around",
    examples=("pps around ana", "pps around ana Priya", "pps around ana 1b4e28ba --max-hops 2"),
    for_model=around_for_model,
)
async def graph_around(memory: Memory, request: AroundInput) -> Around:
    """Use it to see what a node is connected to by facts and relations that hold now.

    It begins at your own node if you name none. A name of several nodes is refused, with their ids.
    Returns the nodes, nearest first, with their distance, and the facts among them.
    """
    node = await memory.graph.find(request.id) if request.id else memory.graph.own
    passed = int(request.cursor or 0)
    subgraph = await memory.graph.around(
        node, max_hops=request.max_hops, limit=request.limit + 1, as_of=request.as_of, offset=passed
    )
    places = {uuid: place for place, uuid in enumerate(subgraph.hops)}
    nodes = sorted(subgraph.nodes, key=lambda node: places[node.uuid])
    page = nodes[: request.limit if passed else request.limit + 1]
    more = len(nodes) > len(page)
    left_out = {node.uuid for node in nodes[len(page) :]}
    names = {node.uuid: node.name for node in page}
    return Around(
        node,
        tuple(map(node_view, page)),
        tuple(
            fact_view(fact, names)
            for fact in subgraph.facts
            if left_out.isdisjoint((fact.subject, fact.object))
        ),
        {uuid: hop for uuid, hop in subgraph.hops.items() if uuid in names},
        more,
        str(passed + request.limit) if more else None,
    )


def nodes_words(view: NodesView) -> str:
    """Return how many nodes of each kind there are, then a line a node."""
    kinds = ", ".join(f"{name or 'no kind'} {count:,}" for name, count in view.kinds.items())
    lines = [
        f"{node.name} ({node.kind}): {counted(node.facts, 'fact')} [{node.id}]"
        for node in view.nodes
    ]
    return "\n".join([*([kinds] if kinds else []), *(lines or ["No such nodes."])])


def nodes_for_model(view: NodesView, _: Input) -> ModelView:
    """Return as many nodes as have room, and the cursor after them."""
    room = PAGE_CHARACTERS - FOLLOWING - json_size(dict(view.kinds))
    count = fitting((json_size(as_json(node)) for node in view.nodes), room)
    if count < len(view.nodes):
        view = replace(view, nodes=view.nodes[:count], next_cursor=view.nodes[count - 1].id)
    return ModelView(view, with_next_page(nodes_words(view), view.next_cursor))


@RECORDS.operation(
    "List people, places and other nodes",
    nodes_words,
    READS,
    command="nodes",
    examples=("pps nodes ana", "pps nodes ana --kind Person", "pps nodes ana harb"),
    for_model=nodes_for_model,
)
async def nodes_list(memory: Memory, request: NodesInput) -> NodesView:
    """Use it to list known people, places and things: all, of one kind, or by a part of the name.

    Returns nodes with their number of facts, the number of nodes of each kind, and a cursor for the
    next page. For the facts of one node use {timeline} with its id.
    """
    page = await memory.graph.nodes(
        request.kind or "", query=request.query, cursor=request.cursor, limit=request.limit
    )
    return NodesView(
        tuple(
            ListedNode(
                node.uuid,
                node.name,
                node.kind,
                one_line(node.summary, _LONGEST_SUMMARY),
                page.facts.get(node.uuid, 0),
            )
            for node in page.nodes
        ),
        page.kinds,
        page.next_cursor or None,
    )


@RECORDS.operation(
    "List changes between two times",
    changes_words,
    READS,
    command="changes",
    examples=(
        "pps changes ana --since 2026-01-01 --until 2026-02-01",
        "pps changes ana --since 2026-01-01 --until 2026-02-01 --about Lisbon",
    ),
    for_model=changes_for_model,
)
async def changes(memory: Memory, request: ChangesInput) -> ChangesView:
    """Use it to learn which facts began, ended, or were replaced between two times.

    Returns facts, the newest change first, of one node or of all, a page at a time. For what held
    at one time use {timeline} with 'as_of'.
    """
    report = await memory.graph.changes(
        request.since,
        request.until,
        id=request.id or "",
        limit=request.limit,
        cursor=request.cursor,
    )
    return ChangesView(
        tuple(fact_view(fact, report.names) for fact in report.opened),
        tuple(fact_view(fact, report.names) for fact in report.closed),
        tuple(
            Replacement(fact_view(old, report.names), fact_view(new, report.names))
            for old, new in report.replaced
        ),
        report.more,
        report.next_cursor,
        report.total,
    )


def histogram_words(value: Histogram) -> str:
    if value.since is None or value.until is None:
        undated = counted(value.undated, "fact")
        return f"No fact has a time; {undated} without one. {EMPTY['fact_histogram']}"
    most = max(bin_.began + bin_.ended for bin_ in value.bins) or 1
    lines = [
        f"{bin_.since:%Y-%m-%d} {'█' * -(-40 * (bin_.began + bin_.ended) // most)} "
        f"+{bin_.began} -{bin_.ended}"
        for bin_ in value.bins
        if bin_.began or bin_.ended
    ]
    head = f"{counted(value.dated, 'fact')} with a time, {value.undated:,} without"
    return "\n".join([head, *lines])


@RECORDS.operation(
    "Count facts by time",
    histogram_words,
    READS,
    command="histogram",
    examples=("pps histogram ana", "pps histogram ana --bins 12"),
)
async def fact_histogram(memory: Memory, request: HistogramInput) -> Histogram:
    """Use it to see when things happened.

    It counts the facts that began and ended in each bin of time. Then call {changes} for a time, or
    {timeline} with 'as_of'.
    """
    return await memory.graph.histogram(request.bins)
