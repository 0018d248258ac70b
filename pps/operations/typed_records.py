"""Records: typed ones saved, moved, related and deleted, and all of them read and listed.

Titled texts are written by the operations of ``titled_texts``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

from pps.core.errors import InvalidRequest
from pps.core.kinds import Kinds
from pps.core.model_text import escape_all
from pps.core.record_values import Condition, RecordQuery, Relation
from pps.core.reports import Forgotten
from pps.core.text import counted, snake
from pps.memory import Memory
from pps.models.token_counts import count_tokens, counter_name
from pps.operations import record_shapes as shapes
from pps.operations.forgetting import forgotten_text
from pps.operations.table import ADDS, ERASES, READS, RECORDS, SETS, Hints
from pps.operations.titled_texts import WAIT_S
from pps.records.records import Join, JoinedRecords
from pps.records.saving import RelationGiven
from pps.records.session import QUERY_TOKENS, Parent, parents_of


@RECORDS.operation(
    "Save records",
    shapes.saved,
    SETS,
    command="records save",
    examples=("pps records save ana --file goals.json",),
)
async def record_save(memory: Memory, request: shapes.SaveRecordsInput) -> shapes.SavedViews:
    """Use it to save or change goals, tasks, decisions and other records of this memory's packs.

    A record is found by its id, or by kind and title; if there is none it is made. One call is one
    transaction: if one record is wrong nothing is saved. Returns ids and versions, and a warning
    for each relation that the packs define in the other direction: it is stored that way. To change
    a state of a life cycle use {record_move}.
    """
    records = [record.given() for record in request.records]
    return shapes.saved_views(await memory.records.save(records, timeout_s=WAIT_S))


@RECORDS.operation(
    "Read records whole",
    shapes.whole,
    READS,
    command="records get",
    examples=("pps records get ana 1b4e28ba",),
    for_model=shapes.records_for_model,
)
async def record_get(memory: Memory, request: shapes.GetRecordsInput) -> shapes.RecordsWhole:
    """Use it to read records in full: fields, citations, relations, and moves of life cycles.

    Of a titled text it returns the first sentence as the summary; {get} returns the whole text.
    It answers a page at a time: pass 'next_cursor' as {cursor}, with the same ids, for the next.
    """
    start = request.start
    records = (await memory.records.get(request.ids, titled=True))[start:]
    ids = [record.id for record in records]
    cites = await memory.records.cites(ids)
    relations = await memory.records.relations(ids)
    moves = [move for id_ in dict.fromkeys(ids) for move in await memory.records.transitions(id_)]
    views = tuple(shapes.record_view(record, cites.get(record.id, ())) for record in records)
    return shapes.RecordsWhole(views, tuple(relations), tuple(moves))


@RECORDS.operation(
    "List records",
    shapes.listed,
    READS,
    command="records list",
    examples=(
        "pps records list ana --kind Goal --order deadline",
        """pps records list ana --where '[{"field": "deadline", "op": "<", "value": "2027-01-01"}]'""",
    ),
)
async def record_list(memory: Memory, request: shapes.ListRecordsInput) -> shapes.RecordList:
    """Use it to list records by kind, layer, status, state, tag, time and fields, sorted.

    It lists titled texts too, such as those of {add_event}, if {kinds} names their kind. Returns a
    page of at most 15,000 tokens, how many records match by kind, and the tokens of the page.
    """
    kinds = tuple(memory.kinds.typed_or_open(name).name for name in request.kinds)
    if request.layers:
        of_layers = memory.kinds.of_layers(request.layers)
        kinds = tuple(kind for kind in of_layers if not kinds or kind in kinds)
        if not kinds:
            which = "none of these kinds lies" if request.kinds else "no kind lies"
            raise InvalidRequest("layers", f"{which} in {', '.join(request.layers)}")
    query = RecordQuery(
        kinds=kinds,
        statuses=request.status,
        states=tuple(map(memory.kinds.state_name, request.states)),
        tags=request.tags,
        where=tuple(
            Condition(condition.field, condition.op, condition.value) for condition in request.where
        ),
        since=request.since,
        until=request.until,
        order=request.order,
        limit=request.limit,
        cursor=request.cursor,
    )
    page = await _page(memory, request, query)
    while page.stats.token_estimate > QUERY_TOKENS and len(page.items) > 1:
        share = 0.95 * QUERY_TOKENS / page.stats.token_estimate
        query = replace(query, limit=max(1, int(len(page.items) * share)))
        page = await _page(memory, request, query)
    return page


async def _page(
    memory: Memory, request: shapes.ListRecordsInput, query: RecordQuery
) -> shapes.RecordList:
    page = await memory.records.list(query)
    # As they are, too: fields of titled texts are of any spelling.
    only = {*request.fields, *map(snake, request.fields)}
    without = {*request.exclude_fields, *map(snake, request.exclude_fields)}
    views = [shapes.record_view(record) for record in page.records]
    if request.include_hierarchy:
        views = _by_horizon(
            memory.kinds,
            views,
            parents_of(await memory.records.graph(), [view.id for view in views]),
        )
    items = tuple(shapes.chosen(view, only, _hidden(memory.kinds, view, without)) for view in views)
    joins: tuple[Relation, ...] = ()
    if request.include_relationships:
        joins = tuple(await memory.records.relations([item.id for item in items]))
    if joins and request.layers:  # a list of layers hides records of other layers
        listed = set(query.kinds)
        records = (await memory.records.graph()).records
        inside = {id_ for id_, record in records.items() if record.kind in listed}
        joins = tuple(
            relation
            for relation in joins
            if relation.source in inside and relation.target in inside
        )
    dumped = escape_all([asdict(item) for item in (*items, *joins)])
    tokens = count_tokens(json.dumps(dumped, ensure_ascii=False, default=str))
    stats = shapes.ListStats(page.total, page.by_kind, tokens, counter_name())
    return shapes.RecordList(items, joins, stats, page.next_cursor)


def _by_horizon(
    kinds: Kinds, views: Sequence[shapes.RecordView], parents: Mapping[str, Sequence[Parent]]
) -> list[shapes.RecordView]:
    """Return records with those above each, in the packs' order of kinds, then nearest horizon."""
    places = {kind.name: number for number, kind in enumerate(kinds)}

    def place(record: shapes.RecordView) -> tuple[int, int]:
        spec = kinds.by_name[record.kind].fields.get("horizon") if record.kind in kinds else None
        horizon = (record.fields or {}).get("horizon")
        return places.get(record.kind, len(places)), spec.enum.index(
            horizon
        ) if spec and horizon in spec.enum else 99

    return [
        replace(view, parents=tuple(parents.get(view.id, ())) or None)
        for view in sorted(views, key=place)
    ]


_PROVENANCE = ("actor", "author", "pack", "pack_version", "turn", "version")
"""Where a record comes from: left out with ``provenance``."""


def _hidden(kinds: Kinds, record: shapes.RecordView, without: Collection[str]) -> set[str]:
    """Return which fields of a record are left out: ``properties`` are its kind's own.

    Its description then goes too, unless the pack wants it in lists.
    """
    without = {*without, *(_PROVENANCE if "provenance" in without else ())}
    if "properties" not in without:
        return without
    spec = kinds.by_name.get(record.kind)
    own = set(record.fields or ()) - {"description", "metadata", "provenance"}
    return {*without, *own, *(() if spec and spec.describe else ("description",))}


@RECORDS.operation(
    "Move a record through its life cycle",
    shapes.saved,
    ADDS,
    command="records move",
    examples=('pps records move ana 1b4e28ba done --why "The shoes fit."',),
)
async def record_move(memory: Memory, request: shapes.MoveRecordInput) -> shapes.SavedViews:
    """Use it to change the state of a record in its kind's life cycle, such as todo to in_progress.

    Who moved it, when and why is kept. Some moves must be made by somebody other than the record's
    author.
    """
    moved = await memory.records.move(
        request.id, request.to, expected=request.expected, why=request.why, timeout_s=WAIT_S
    )
    return shapes.saved_views(moved)


@RECORDS.operation(
    "Delete records",
    forgotten_text,
    ERASES,
    command="records delete",
    examples=("pps records delete ana 1b4e28ba --yes",),
)
async def record_delete(memory: Memory, request: shapes.DeleteRecordsInput) -> Forgotten:
    """Use it only to erase records that must not be kept, with their versions and relations.

    It cannot be undone. By default it is a dry run that returns what would be erased: show that,
    and only then call again with {dry_run=false}. A record that is merely over should be archived
    instead: {record_save} with status 'archived'.
    """
    return await memory.records.delete(request.ids, dry_run=request.dry_run)


@RECORDS.operation(
    "Relate two records",
    shapes.joined,
    SETS,
    command="records relate",
    examples=('pps records relate ana "Buy shoes" SERVES "Run a marathon"',),
)
async def record_relate(memory: Memory, request: shapes.RelateRecordsInput) -> JoinedRecords:
    """Use it to join two records by a relation of the packs.

    If the relation exists, only its properties change. Returns the relation's id, and a warning if
    the packs define it only in the other direction: it is then stored that way. {schema_inventory}
    lists which kinds a relation joins, and its properties.
    """
    relation = RelationGiven(request.type, request.target, request.properties)
    try:
        made = await memory.records.join_with_warnings([Join(request.source, relation)])
    except InvalidRequest as error:  # of many it says which; here there is one
        raise InvalidRequest(error.field.removeprefix("relations[0]."), error.problem) from None
    warnings = tuple(warning.removeprefix("relations[0]: ") for warning in made.warnings)
    return replace(made, warnings=warnings)


@RECORDS.operation(
    "End relations between records",
    lambda view: f"{counted(len(view.ids), 'relation')} ended.",
    Hints(destructive=True),
    command="records unrelate",
    examples=("pps records unrelate ana 1b4e28ba",),
)
async def record_unrelate(memory: Memory, request: shapes.UnrelateRecordsInput) -> JoinedRecords:
    """Use it when relations no longer hold.

    A question with as_of still shows the past.
    """
    return JoinedRecords(tuple(await memory.records.part(request.ids)))
