"""Records of packs' kinds as operations take and show them: inputs, outputs and their words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints

from pps.core.errors import InvalidRequest
from pps.core.kinds import Status
from pps.core.record_values import Cite, Compare, Record, Relation, Transition
from pps.core.text import counted, first_line
from pps.core.time import iso
from pps.core.values import JSON
from pps.ingest.given_input import Input, Moment, Name, Tag, described_time
from pps.operations.forgetting import ForgetInput
from pps.operations.inputs import (
    Ids,
    Names,
    Title,
    argument,
    fields_of,
    json_file,
    json_text,
    option,
    unoffered,
)
from pps.operations.item_views import value_text
from pps.operations.pages import EMPTY, FOLLOWING, PAGE_CHARACTERS, as_json, fitting, json_size
from pps.operations.table import ModelView
from pps.records.listing import MAX_CONDITIONS, MAX_LIST
from pps.records.records import JoinedRecords, SavedRecords
from pps.records.saving import (
    MAX_CITES,
    MAX_RECORDS,
    MAX_RELATIONS,
    Change,
    RecordGiven,
    RelationGiven,
)
from pps.records.session import Parent

Word = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Fields = Mapping[str, JsonValue]
_ALWAYS = ("id", "kind", "title")
_ROOM_FOR_RECORDS = 15_000
"""Characters of a page of records; the rest is for their relations and moves."""


class RelationInput(Input):
    """A relation from the record."""

    type: Word = Field(
        description="Such as SERVES; {schema_inventory} says which kinds each joins."
    )
    target: Title = Field(
        description="Id or title of a record, of this call too, or of another node."
    )
    properties: Fields = Field(
        default={}, description="Properties that the pack defines for the relation, such as weight."
    )


class RecordInput(Input):
    """A record to make or to change; what is left out stays as it is."""

    kind: str = Field(
        default="",
        max_length=64,
        description="A kind from {schema_inventory}. Not needed with an id.",
    )
    title: Title | None = Field(
        default=None, description="Title. Kind and title find an existing record."
    )
    summary: str | None = Field(
        default=None,
        min_length=1,
        max_length=2_000,
        description="Content of the record in a few words.",
    )
    id: Name | None = Field(default=None, description="Id or title of the record to change.")
    fields: Fields = Field(
        default={},
        description="Fields of the kind, and description, metadata, provenance. null removes a "
        "field.",
    )
    status: Status | None = None
    tags: tuple[Tag, ...] | None = Field(
        default=None, max_length=20, description="All tags of the record."
    )
    relations: tuple[RelationInput, ...] = Field(
        default=(), max_length=MAX_RELATIONS, description="Relations to make with the record."
    )
    cites: tuple[Name, ...] | None = Field(
        default=None,
        max_length=MAX_CITES,
        description=("Ids of all facts, turns and records that it rests on, or titles of records."),
    )
    expected_version: int | None = Field(
        default=None,
        ge=0,
        description="Version that must be the current one; 0 if the record must be new.",
    )
    created_at: Annotated[
        Moment | None, described_time("When it happened, of a new one; now when not given.")
    ] = None
    ref: str = Field(
        default="",
        max_length=200,
        description="Id at its source. The same id is the same record.",
    )
    another: bool = Field(
        default=False,
        description="True makes a new record even if one of this kind and title exists.",
    )

    def given(self) -> RecordGiven:
        """Return the value that a save takes."""
        named: dict[str, Any] = {**dict(self), "id": self.id or ""}
        named["relations"] = tuple(RelationGiven(**dict(relation)) for relation in self.relations)
        return RecordGiven(**named)


class SaveRecordsInput(Input):
    """Records to make or to change: all of them, or none when one is wrong."""

    records: tuple[RecordInput, ...] = Field(
        min_length=1,
        max_length=MAX_RECORDS,
        description=(
            "1 to 200 records; a kind's own fields, such as deadline, go in 'fields' of each."
        ),
        json_schema_extra=json_file(
            "--file", """A JSON file (stdin if '-') such as {"records": [{"kind": "Goal", …}]}."""
        ),
    )


class GetRecordsInput(Input):
    """Ids that another operation returned."""

    ids: Names = Field(description="Ids or titles of records.", json_schema_extra=argument())
    cursor: str = Field(
        default="",
        pattern=r"^\d{0,4}$",
        description="'next_cursor' of the page before, with the same ids.",
        json_schema_extra=unoffered(),
    )

    @property
    def start(self) -> int:
        """Return how many of the records earlier pages had."""
        start = int(self.cursor or 0)
        if start >= len(self.ids):
            raise InvalidRequest(
                "cursor", "give the 'next_cursor' of a page before as it is, with the same ids"
            )
        return start


class ConditionInput(Input):
    """What a field must be."""

    field: Word = Field(
        description="Of the kind, or title, summary, status, state, created_at, updated_at."
    )
    op: Compare = Field(
        default="=", description="'contains': a part of a text, or an item of a list."
    )
    value: JsonValue = Field(
        default=None, description="A list with 'in', true or false with 'is_null'."
    )


class ListRecordsInput(Input):
    """Which records. Values of one argument are alternatives; arguments add up."""

    kinds: tuple[Word, ...] = Field(
        default=(),
        max_length=100,
        description="Only of these kinds, such as Goal; {schema_inventory} names them.",
        json_schema_extra=option("--kind"),
    )
    layers: tuple[Word, ...] = Field(
        default=(),
        max_length=20,
        description="Only of these layers, such as vision.",
        json_schema_extra=option("--layer"),
    )
    status: tuple[Status, ...] = Field(
        default=(), max_length=4, description="Only with one of these statuses. Default: all."
    )
    states: tuple[Word, ...] = Field(
        default=(),
        max_length=50,
        description="Only in one of these states of a life cycle, such as todo.",
        json_schema_extra=option("--state"),
    )
    tags: tuple[Tag, ...] = Field(
        default=(),
        max_length=50,
        description="Only with one of these tags.",
        json_schema_extra=option("--tag"),
    )
    where: tuple[ConditionInput, ...] = Field(
        default=(),
        max_length=MAX_CONDITIONS,
        description="Conditions on fields, all of which must hold: "
        '{"field": "deadline", "op": "<", "value": '
        '"2027-01-01"}.',
        json_schema_extra=json_text("--where"),
    )
    since: Annotated[Moment | None, described_time("Nothing that happened before.")] = None
    until: Annotated[Moment | None, described_time("Nothing that happened at or after.")] = None
    order: tuple[Word, ...] = Field(
        default=(),
        max_length=5,
        description="Fields to sort by; '-' before a field sorts it descending. Ties: oldest "
        "first.",
    )
    limit: int = Field(default=100, ge=1, le=MAX_LIST, description="Maximum records on a page.")
    cursor: str = Field(default="", max_length=100, description="'next_cursor' of the page before.")
    fields: tuple[Word, ...] = Field(
        default=(),
        max_length=100,
        description="Only these fields of each record, beside id, kind and title.",
    )
    exclude_fields: tuple[Word, ...] = Field(
        default=(),
        max_length=100,
        description=(
            "All fields but these. 'properties' stands for the kind's own fields, for most "
            "kinds with the description."
        ),
    )
    include_hierarchy: bool = Field(
        default=False,
        description=(
            "True adds what each record is supported by, serves and aligns with, and groups "
            "a page by kind and horizon."
        ),
    )
    include_relationships: bool = Field(
        default=False, description="True adds the relations among the records of the page."
    )


class MoveRecordInput(Input):
    """Which record goes on to which state."""

    id: Name = Field(description="Id or title of the record.", json_schema_extra=argument())
    to: Word = Field(description="New state.", json_schema_extra=argument())
    expected: Word | None = Field(default=None, description="State that the record must be in now.")
    why: str = Field(default="", max_length=2_000, description="Reason, kept with the move.")


class DeleteRecordsInput(ForgetInput):
    """What to erase for good."""

    ids: Names = Field(description="Ids or titles of records.", json_schema_extra=argument())


class RelateRecordsInput(Input):
    """A relation to make."""

    source: Name = Field(
        description="Id or title of the record where the relation begins.",
        json_schema_extra=argument(),
    )
    type: Word = Field(description="Such as SERVES.", json_schema_extra=argument())
    target: Name = Field(
        description="Id or title of the record or node where the relation ends.",
        json_schema_extra=argument(),
    )
    properties: Fields = Field(
        default={},
        description="Properties that the pack defines for the relation, such as weight.",
        json_schema_extra=json_text("--properties"),
    )


class UnrelateRecordsInput(Input):
    """Which relations no longer hold."""

    ids: Ids = Field(description="Ids of relations.", json_schema_extra=argument())


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record; ``fields`` are its kind's own. What was not asked for is left out."""

    id: str
    kind: str
    title: str
    summary: str | None = None
    fields: Mapping[str, JSON] | None = None
    status: str | None = None
    state: str | None = None
    tags: tuple[str, ...] | None = None
    version: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    actor: str | None = None
    author: str | None = None
    pack: str | None = None
    pack_version: int | None = None
    turn: str | None = None
    cites: tuple[Cite, ...] | None = None
    parents: tuple[Parent, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavedView:
    """What became of a record.

    ``relations`` are the ids of those given with it, ``warnings`` say which were turned.
    """

    id: str
    kind: str
    title: str
    change: Change
    version: int
    status: str
    state: str
    turn: str
    relations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedViews:
    """What a save did. ``accepted`` is safe on disk, and in graph and indexes in a moment."""

    records: tuple[SavedView, ...]
    state: str
    redacted: int = 0


@dataclass(frozen=True, slots=True)
class ListStats:
    """How many records match, by kind.

    What the page takes in tokens, and how those were counted.
    """

    total_nodes: int
    by_type: Mapping[str, int]
    token_estimate: int
    counted_by: str


@dataclass(frozen=True, slots=True)
class RecordList:
    """A page of records; ``next_cursor`` is empty on the last."""

    items: tuple[RecordView, ...]
    relationships: tuple[Relation, ...]
    stats: ListStats
    next_cursor: str = ""


@dataclass(frozen=True, slots=True)
class RecordsWhole:
    """Records with what joins them, and the moves of their life cycles."""

    records: tuple[RecordView, ...]
    relationships: tuple[Relation, ...]
    transitions: tuple[Transition, ...]


def joined(view: JoinedRecords) -> str:
    """Return the relations of a call as text, a line each, then its warnings."""
    state = "Related" if view.created else "Related already"
    lines = [f"{state}. [{id_}]" for id_ in view.ids]
    return "\n".join([*lines, *view.warnings])


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """A page of records with what joins them and their moves, as many of each as have room."""

    records: tuple[RecordView, ...]
    relationships: tuple[Relation, ...]
    transitions: tuple[Transition, ...]
    relationships_left_out: int | None = None
    transitions_left_out: int | None = None
    next_cursor: str | None = None


def records_for_model(view: RecordsWhole, request: GetRecordsInput) -> ModelView:
    """Return as many records as have room, each whole, and the cursor that continues after them."""
    sizes = [json_size(as_json(record)) for record in view.records]
    count = fitting(sizes, _ROOM_FOR_RECORDS)
    records = view.records[:count]
    ids = {record.id for record in records}
    joins = [
        relationship
        for relationship in view.relationships
        if relationship.source in ids or relationship.target in ids
    ]
    moves = [move for move in view.transitions if move.record in ids]
    room = PAGE_CHARACTERS - FOLLOWING - sum(sizes[:count]) - 2 * count
    beside = [json_size(as_json(item)) for item in (*joins, *moves)]
    fitting_count = fitting(beside, room) if beside and room > beside[0] else 0
    page = RecordsPage(
        records,
        tuple(joins[:fitting_count]),
        tuple(moves[: max(0, fitting_count - len(joins))]),
        max(0, len(joins) - fitting_count) or None,
        min(len(moves), len(joins) + len(moves) - fitting_count) or None,
        str(request.start + count) if count < len(view.records) else None,
    )
    text = [whole(RecordsWhole(page.records, page.relationships, page.transitions))]
    if page.relationships_left_out:
        text.append(f"… and {counted(page.relationships_left_out, 'relation')} more")
    if page.transitions_left_out:
        text.append(f"… and {counted(page.transitions_left_out, 'move')} more")
    if page.next_cursor:
        text.append(f"More: call again with the same ids and cursor={page.next_cursor}")
    return ModelView(page, "\n".join(text))


def record_view(record: Record, cites: Sequence[Cite] = ()) -> RecordView:
    """Return a record whole."""
    own = fields_of(record)
    own |= {"state": record.state or None, "cites": tuple(cites) or None}
    return RecordView(**own)


def chosen(view: RecordView, only: Collection[str], without: Collection[str]) -> RecordView:
    """Return a record with some fields alone, or without some.

    The names may be a record's or its kind's.
    """
    own = view.fields or {}
    if "fields" not in only:
        own = {
            name: value
            for name, value in own.items()
            if name not in without and (not only or name in only)
        }
    gone: dict[str, Any] = {
        field.name: None
        for field in fields(RecordView)
        if field.name not in _ALWAYS
        and (field.name in without or (only and field.name not in only))
    }
    return replace(view, **{**gone, "fields": None if "fields" in without else own or None})


def saved_views(saved_records: SavedRecords) -> SavedViews:
    """Return what a save did, as it is shown."""
    views = tuple(
        SavedView(
            record.record.id,
            record.record.kind,
            record.record.title,
            record.change,
            record.record.version,
            record.record.status,
            record.record.state,
            record.record.turn,
            record.relations,
            record.warnings,
        )
        for record in saved_records.records
    )
    return SavedViews(views, "done" if saved_records.done else "accepted", saved_records.redacted)


def saved(view: SavedViews) -> str:
    lines: list[str] = []
    for record in view.records:
        lines.append(
            f"{record.kind} {record.title} [{record.id}]: {record.change}, version {record.version}"
        )
        lines += [f"  {warning}" for warning in record.warnings]
    return "\n".join(
        [*lines, *(["Safe on disk; graph and indexes follow."] if view.state == "accepted" else [])]
    )


def _line(record: RecordView) -> str:
    state = "".join(
        f" ({word})" for word in (record.state, record.status) if word and word != "active"
    )
    return f"{record.kind} {record.title} [{record.id}]{state}" + (
        f": {first_line(record.summary, 200)}" if record.summary else ""
    )


def _below(record: RecordView) -> list[str]:
    """Return the lines below a record in a list: its chosen fields, and the records above it."""
    fields = (record.fields or {}) if record.version is None else {}
    own = [f"{name}: {value_text(value)}" for name, value in fields.items()]
    above = [
        f"{parent.relation} “{parent.title}” ({parent.kind})" for parent in record.parents or ()
    ]
    return [f"  {line}" for line in (*own, *above)]


def _joins(relations: Sequence[Relation], titles: Mapping[str, str]) -> list[str]:
    return [
        f"{titles.get(relation.source, relation.source)} -{relation.type}-> "
        f"{titles.get(relation.target, relation.target)} [{relation.id}]"
        for relation in relations
    ]


def listed(view: RecordList) -> str:
    if not view.stats.total_nodes:
        return EMPTY["record_list"]
    titles = {item.id: item.title for item in view.items}
    lines = [line for item in view.items for line in (_line(item), *_below(item))] + _joins(
        view.relationships, titles
    )
    return "\n".join([f"{counted(view.stats.total_nodes, 'record')}.", *lines])


def whole(view: RecordsWhole) -> str:
    """Return records with their fields, cites, relations and moves, one line each."""
    lines: list[str] = []
    for record in view.records:
        entry: dict[str, object] = {
            "status": record.status,
            "version": record.version,
            **(record.fields or {}),
        }
        entry |= {"tags": ", ".join(record.tags)} if record.tags else {}
        lines += [
            _line(record),
            *(f"  {name}: {value_text(value)}" for name, value in entry.items()),
        ]
        lines += [
            f"  cites {cite.kind} [{cite.id}]{' (forgotten)' if cite.gone else ''}"
            for cite in record.cites or ()
        ]
    lines += _joins(view.relationships, {record.id: record.title for record in view.records})
    return "\n".join(
        [
            *lines,
            *(f"{iso(m.at)} {m.before} -> {m.after} {m.actor} {m.why}" for m in view.transitions),
        ]
    )
