"""What is asked of records as a whole: ranks, named queries, and everything page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints

from pps.core.record_values import Record, Relation
from pps.core.text import counted
from pps.memory import Memory
from pps.operations.inputs import Input, Label, Labels, argument, json_text, option, options
from pps.operations.item_views import FactView, NodeView, fact_view, node_view
from pps.operations.pages import as_json, fitting, json_size, with_next_page
from pps.operations.table import READS, RECORDS, ModelView
from pps.records.named_query import Query, QueryMatch, path_words
from pps.records.ranks import LIVE, Algorithm, Ranked, Ranking, RankRequest

Named = Annotated[str, StringConstraints(max_length=500)]
Cursor = Annotated[str, StringConstraints(max_length=100)]


class GraphRankInput(Input):
    """What to rank records by, and which."""

    algorithm: Algorithm = Field(
        description="'pagerank' for what much leads to, 'betweenness' for what joins the rest, "
        "'communities' for what belongs together, 'shortest_path' for how two are joined.",
        json_schema_extra=argument(),
    )
    layers: tuple[Label, ...] = Field(
        default=(),
        max_length=20,
        description="Only records of these layers.",
        json_schema_extra=option("--layer"),
    )
    kinds: Labels = Field(
        default=(), description="Only records of these kinds.", json_schema_extra=option("--kind")
    )
    relations: Labels = Field(
        default=(),
        description="Only over these relations, such as SERVES.",
        json_schema_extra=option("--relation"),
    )
    status: tuple[Label, ...] = Field(
        default=LIVE, max_length=4, description="Only records with one of these statuses."
    )
    source: Named = Field(
        default="", description="Where a shortest path begins: id or title of a record."
    )
    target: Named = Field(default="", description="Where it ends.")
    limit: int = Field(
        default=20,
        ge=1,
        le=1_000,
        description="Maximum records; maximum communities, and members of each.",
    )


class RecordAskInput(Input):
    """Which query, with what."""

    query: Label = Field(
        default="",
        description="Name of the query. Without a name, the answer lists all queries with their "
        "parameters.",
        json_schema_extra=argument(default=""),
    )
    parameters: Mapping[str, JsonValue] = Field(
        default={},
        description=(
            'Parameters by name, such as {"id": "Finish the thesis"}. An id or a title '
            "names a record."
        ),
        json_schema_extra=json_text("--with"),
    )


class GraphAllInput(Input):
    """Which page."""

    cursor: Cursor = Field(default="", description="'next_cursor' of the page before.")
    limit: int = Field(default=200, ge=1, le=1_000, description="Maximum items on a page.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query."""

    name: str
    about: str
    required: bool


@dataclass(frozen=True, slots=True)
class QueryLine:
    """A query that can be asked."""

    name: str
    about: str
    kinds: tuple[str, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    """What a query answers, or without one the ``queries`` that there are.

    Each of ``found`` has a sentence in ``said``, and where one leads to it a ``path`` of relations.
    """

    query: str
    said: str
    total: int
    found: tuple[QueryMatch, ...] = ()
    queries: tuple[QueryLine, ...] | None = None


@dataclass(frozen=True, slots=True)
class Everything:
    """A page of everything: records, then other nodes, relations of records, facts."""

    records: tuple[Record, ...]
    nodes: tuple[NodeView, ...]
    relations: tuple[Relation, ...]
    facts: tuple[FactView, ...]
    next_cursor: str | None = None


def ranking_words(view: Ranking) -> str:
    """Return how many were ranked and by what, then a line a record, a community or a hop."""
    lines = [
        f"{counted(view.records, 'record')}, {counted(view.relations, 'relation')}; {view.formula}."
    ]
    lines += [f"{at}. {_ranked(ranked)}" for at, ranked in enumerate(view.ranked, 1)]
    if view.modularity is not None:
        lines.append(f"modularity {view.modularity:.3f}")
    for at, part in enumerate(view.communities, 1):
        lines.append(f"community {at}, {counted(part.size, 'record')}:")
        lines += [f"  {_ranked(member)}" for member in part.members]
    if view.start is not None:
        joined = "nothing joins them" if view.length is None else f"length {view.length:.3f}"
        lines.append(f"{path_words(view.start.title, view.start.kind, view.path)}: {joined}")
    return "\n".join(lines)


def answer_words(view: RecordAnswer) -> str:
    """Return the answer in a sentence, then a line each.

    Of the list of queries a line a query and parameter.
    """
    lines = [
        view.said,
        *(f"{at}. {match.said}{_id(match.id)}" for at, match in enumerate(view.found, 1)),
    ]
    for query in view.queries or ():
        lines.append(f"{query.name}: {query.about}")
        lines += [
            f"    {it.name}{'' if it.required else ' (may be left out)'}: {it.about}"
            for it in query.parameters
        ]
    if view.found and view.total > len(view.found):
        lines.append(f"{view.total - len(view.found)} more: ask with a higher limit.")
    return "\n".join(lines)


def everything_words(view: Everything) -> str:
    lines = [
        f"{record.title} ({record.kind}, {record.status}): {record.summary}{_id(record.id)}"
        for record in view.records
    ]
    lines += [f"{node.name} ({node.kind}){_id(node.id)}" for node in view.nodes]
    lines += [
        f"{relation.source} —{relation.type}→ {relation.target}" for relation in view.relations
    ]
    lines += [
        f"{fact.subject} —{fact.relation}→ {fact.object}: {fact.text}{_id(fact.id)}"
        for fact in view.facts
    ]
    return "\n".join(lines or ["Nothing yet."])


def everything_for_model(view: Everything, _: Input) -> ModelView:
    """Return as many items as have room, and the cursor that continues after them."""
    parts: dict[str, Sequence[Record | NodeView | Relation | FactView]] = {
        "records": view.records,
        "nodes": view.nodes,
        "relations": view.relations,
        "facts": view.facts,
    }
    items = [(part, item) for part, some in parts.items() for item in some]
    count = fitting(json_size(as_json(item)) for _, item in items)
    if count < len(items):
        last_part, last = items[count - 1]
        left = count
        members: dict[str, Any] = {}
        for part, some in parts.items():
            members[part] = tuple(some[:left])
            left -= len(members[part])
        view = Everything(**members, next_cursor=f"{last_part}:{last.id}")
    return ModelView(view, with_next_page(everything_words(view), view.next_cursor))


@RECORDS.operation(
    "Rank records by their relations",
    ranking_words,
    READS,
    command="rank",
    examples=(
        "pps rank ana pagerank --layer foundation",
        'pps rank ana shortest_path --source "Pay the bill" --target Honesty',
    ),
)
async def graph_rank(memory: Memory, request: GraphRankInput) -> Ranking:
    """Use it to rank records by their relations.

    It finds central records, connecting ones, communities, or the path between two. Weights of
    relations count. Returns scores, communities with their modularity, or the path, and the
    formula.
    """
    return await memory.asks.rank(
        RankRequest(**options(request, "status"), statuses=request.status)
    )


@RECORDS.operation(
    "Ask records a named query",
    answer_words,
    READS,
    command="ask",
    examples=("pps ask ana", 'pps ask ana why --with \'{"id": "Pay the bill"}\''),
)
async def record_ask(memory: Memory, request: RecordAskInput) -> RecordAnswer:
    """Use it for questions along relations: why something matters, what a goal serves, what is due, what contradicts.

    Without {query} it lists the queries and their parameters. Returns records, each with a sentence
    and the path to it.
    """
    if request.query:
        answer = await memory.asks.ask(request.query, request.parameters)
        return RecordAnswer(answer.query, answer.said, answer.total, answer.found)
    return listed(memory.asks.queries)


def listed(queries: Sequence[Query]) -> RecordAnswer:
    """Return the list of queries with their parameters."""
    lines = tuple(
        QueryLine(query.name, query.about, query.kinds, _parameters(query)) for query in queries
    )
    return RecordAnswer("", f"{len(lines)} queries can be asked.", len(lines), queries=lines)


def _parameters(query: Query) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    for name, schema in query.given.model_json_schema()["properties"].items():
        description = str(schema.get("description", ""))
        is_required = query.given.model_fields[name].is_required()
        parameters.append(Parameter(name, description, is_required))
    return tuple(parameters)


@RECORDS.operation(
    "Read the whole graph",
    everything_words,
    READS,
    command="graph-all",
    examples=("pps graph-all ana --json",),
    for_model=everything_for_model,
)
async def graph_all(memory: Memory, request: GraphAllInput) -> Everything:
    """Use it to export or draw the whole graph.

    To find something use {recall} or {record_ask}. Returns records, other nodes, relations and
    facts, a page at a time: pass 'next_cursor' as {cursor} for the next.
    """
    page = await memory.asks.page(request.cursor, request.limit)
    return Everything(
        page.records,
        tuple(map(node_view, page.nodes)),
        page.relations,
        tuple(fact_view(fact, {}) for fact in page.facts),
        page.next_cursor or None,
    )


def _ranked(ranked: Ranked) -> str:
    return f"{ranked.title} ({ranked.kind}) {ranked.score:.4f}{_id(ranked.id)}"


def _id(id_: str) -> str:
    return f" [{id_}]" if id_ else ""
