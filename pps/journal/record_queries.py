"""Which records: conditions on attributes and fields as SQL, and a page of what passes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pps.core.errors import InvalidRequest
from pps.core.record_values import TITLED_PACK, Compare, Record
from pps.core.sql import LIST, Connection, listed
from pps.core.time import from_micros, micros
from pps.core.values import JSON

Slot: TypeAlias = Literal["number", "text", "at"]
Scalar: TypeAlias = str | int | float | None
RECORD_COLUMNS = """r.node, r.kind, r.title, r.summary, t.occurred_at, r.updated_at, r.fields,
    r.status, r.state, t.tags, r.pack, r.pack_version, r.version, r.actor, r.author, r.turn"""
COLUMNS: Mapping[str, str] = {
    "title": "r.title",
    "summary": "r.summary",
    "kind": "r.kind",
    "status": "r.status",
    "state": "r.state",
    "created_at": "t.occurred_at",
    "updated_at": "r.updated_at",
}
"""What every record has, by name."""
TITLED = f"r.pack = '{TITLED_PACK}'"
"""True of the rows ``records AS r`` of titled texts: their kinds are of open packs, or of none."""
TYPED = f"r.pack <> '' AND r.pack <> '{TITLED_PACK}'"
"""True of the rows ``records AS r`` of typed records: their kinds are those of packs not open.

As it stands it is the condition of the indexes of titles, which are for such rows alone. The empty
pack is that of a row of an earlier PPS until the opening of the memory has completed it.
"""
_FROM = "FROM records AS r JOIN turns AS t ON t.uuid = r.turn"


@dataclass(frozen=True, slots=True)
class Where:
    """A field, and how it is found.

    Attributes:
        slot: The column of its value among the indexed ones; empty for a field that is read out of
            the record's own.
        many: It is a list.
        scalar: The type of a declared field that is read out of the record's own, where it is no
            text: PostgreSQL reads every value as text.
        declared: A pack has it; others are fields of titled texts, each of any type.
    """

    field: str
    slot: Slot | None = None
    many: bool = False
    scalar: Literal["number", "integer", "bool"] | None = None
    declared: bool = True


@dataclass(frozen=True, slots=True)
class Term:
    """A condition; its values are as stored: times in microseconds for slots and columns."""

    where: Where
    op: Compare
    value: Scalar | tuple[Scalar, ...] = None


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """A selection of records and its order, see ``RecordQuery``: (field, descending), then age.

    Attributes:
        kinds: Typed kinds.
        open_kinds: Kinds of titled texts. A name can be of both: a text keeps its kind when a pack
            that has it is enabled later.
    """

    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    open_kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    terms: tuple[Term, ...] = ()
    order: tuple[tuple[Where, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordRowPage:
    """A page; ``by_kind`` counts all matches, ``cursor`` begins the next page, or is empty."""

    records: tuple[Record, ...]
    by_kind: Mapping[str, int]
    cursor: str = ""


def select_page(db: Connection, wanted: RecordSelection, limit: int, cursor: str) -> RecordRowPage:
    """Return the records after a cursor, in order. InvalidRequest for a cursor that is none."""
    conditions, values = _conditions(wanted)
    order, order_values = _order(wanted.order)
    statement = f"SELECT r.node, r.kind {_FROM} WHERE {' AND '.join(conditions)} ORDER BY {order}"
    rows: list[tuple[str, str]] = db.execute(statement, [*values, *order_values]).fetchall()
    start = _start([node for node, _ in rows], cursor)
    page_ids = [node for node, _ in rows[start : start + limit]]
    by_kind: dict[str, int] = {}
    for _, kind in rows:
        by_kind[kind] = by_kind.get(kind, 0) + 1
    page_rows = db.execute(
        f"""SELECT {RECORD_COLUMNS} {_FROM} JOIN json_each(?) AS asked ON asked.value = r.node
            ORDER BY asked.key""",
        (listed(page_ids),),
    )
    after = start + len(page_ids)
    more = f"{after}:{page_ids[-1]}" if page_ids and after < len(rows) else ""
    return RecordRowPage(tuple(map(read_record, page_rows)), by_kind, more)


def select_records(db: Connection, where: str, *values: str) -> list[Record]:
    """Return the typed records that pass a condition, oldest first.

    ``where`` is a literal of the caller.
    """
    rows = db.execute(
        f"SELECT {RECORD_COLUMNS} {_FROM} WHERE {TYPED} AND {where} ORDER BY t.seq",
        values,
    )
    return [read_record(row) for row in rows]


def select_titled(db: Connection, ids: str) -> list[Record]:
    """Return the titled texts with these ids of nodes or turns, ``listed``, oldest first."""
    rows = db.execute(
        f"""SELECT {RECORD_COLUMNS} {_FROM} WHERE {TITLED}
            AND (r.node IN {LIST} OR r.turn IN {LIST}) ORDER BY t.seq""",
        (ids, ids),
    )
    return [read_record(row) for row in rows]


def read_record(
    row: tuple[str, str, str, str, int, int, str, str, str, str, str, int, int, str, str, str],
) -> Record:
    """Return the record of a row of ``RECORD_COLUMNS``."""
    node, kind, title, summary, created, updated, fields, status, state, tags = row[:10]
    pack, pack_version, version, actor, author, turn = row[10:]
    return Record(
        id=node,
        kind=kind,
        title=title,
        summary=summary,
        created_at=from_micros(created),
        updated_at=from_micros(updated),
        fields=cast("dict[str, JSON]", json.loads(fields)),
        status=status,
        state=state,
        tags=tuple(json.loads(tags)),
        pack=pack,
        pack_version=pack_version,
        version=version,
        actor=actor,
        author=author,
        turn=turn,
    )


def _start(nodes: Sequence[str], cursor: str) -> int:
    """Return where a page begins: behind the last record before, or at its old place if gone."""
    if not cursor:
        return 0
    number, _, last = cursor.partition(":")
    if not number.isdecimal():
        raise InvalidRequest("cursor", "is no 'next_cursor' of a list of records")
    return nodes.index(last) + 1 if last in nodes else int(number)


def _conditions(wanted: RecordSelection) -> tuple[list[str], list[Scalar]]:
    of_kinds, values = _of_kinds(wanted)
    conditions = [of_kinds]
    alternatives = {
        "r.node": wanted.ids,
        "r.status": wanted.statuses,
        "r.state": wanted.states,
    }
    for column, chosen in alternatives.items():
        if chosen:
            conditions.append(f"{column} IN {LIST}")
            values.append(listed(chosen))
    if wanted.tags:
        conditions.append(f"r.turn IN (SELECT turn FROM turn_tags WHERE tag IN {LIST})")  # noqa: S608 - literals
        values.append(listed(wanted.tags))
    for moment, compared in ((wanted.since, ">="), (wanted.until, "<")):
        if moment:
            conditions.append(f"t.occurred_at {compared} ?")
            values.append(micros(moment))
    for term in wanted.terms:
        condition, more = _condition(term)
        conditions.append(condition)
        values += more
    return conditions, values


def _of_kinds(wanted: RecordSelection) -> tuple[str, list[Scalar]]:
    """Return a condition on kinds: without any, every typed record passes and no titled text."""
    typed = f"{TYPED} AND r.kind IN {LIST}"
    titled = f"{TITLED} AND r.kind IN {LIST}"
    kinds = listed(wanted.kinds)
    open_kinds = listed(wanted.open_kinds)
    if wanted.kinds and wanted.open_kinds:
        return f"({typed} OR {titled})", [kinds, open_kinds]
    if wanted.open_kinds:
        return titled, [open_kinds]
    return (typed, [kinds]) if wanted.kinds else (TYPED, [])


def _condition(term: Term) -> tuple[str, list[Scalar]]:
    """Return a condition; what lacks the field passes ``!=`` and ``is_null``, nothing else."""
    value, at = _value(term.where)
    operands: list[Scalar] = [*term.value] if isinstance(term.value, tuple) else [term.value]
    if term.op == "is_null":
        return f"{value} IS {'' if operands == [1] else 'NOT '}NULL", at
    if term.op == "contains":
        path = _path(term.where)
        has_item = "EXISTS (SELECT 1 FROM json_each(r.fields, ?) AS e WHERE e.value = ?)"
        has_part = f"instr(lower({value}), lower(?)) > 0"
        if term.where.many:
            return has_item, [path, *operands]
        if term.where.declared:
            return has_part, [*at, *operands]
        is_list = "json_type(r.fields, ?) = 'array'"
        return f"CASE WHEN {is_list} THEN {has_item} ELSE {has_part} END", [
            path,
            path,
            *operands,
            *at,
            *operands,
        ]
    if not term.where.declared:
        value, at = _value_of_type(term.where, operands[0])
        operands = [str(item).lower() if isinstance(item, bool) else item for item in operands]
    test = f"IN ({','.join('?' * len(operands))})" if term.op == "in" else f"{term.op} ?"
    if term.op == "!=":
        return f"({value} <> ? OR {value} IS NULL)", [*at, *operands, *at]
    if term.where.slot:  # by the index of values, not record by record
        indexed = (
            f"SELECT f.node FROM record_field AS f WHERE f.field = ? AND f.{term.where.slot} {test}"  # noqa: S608 - literals
        )
        return f"r.node IN ({indexed})", [term.where.field, *operands]
    return f"{value} {test}", [*at, *operands]


def _order(order: Sequence[tuple[Where, bool]]) -> tuple[str, list[Scalar]]:
    """Return the terms of ORDER BY and their values; records without a field come last."""
    parts = list[str]()
    values = list[Scalar]()
    for where, descending in order:
        value, at = _value(where)
        parts += [f"{value} IS NULL", f"{value} {'DESC' if descending else 'ASC'}"]
        values += [*at, *at]
    return ", ".join([*parts, "t.occurred_at", "t.seq"]), values


def _value(where: Where) -> tuple[str, list[Scalar]]:
    """Return a field's value as SQL, and the parameters of it."""
    if where.field in COLUMNS:
        return COLUMNS[where.field], []
    if where.slot:
        return (
            f"(SELECT f.{where.slot} FROM record_field AS f WHERE f.node = r.node AND f.field = ?)",  # noqa: S608
            [where.field],
        )
    value = "json_extract(r.fields, ?)"
    match where.scalar:
        case "number":
            return f"CAST({value} AS DOUBLE PRECISION)", [_path(where)]
        case "integer":
            return f"CAST({value} AS BIGINT)", [_path(where)]
        case "bool":
            is_true = f"CASE lower(CAST({value} AS TEXT)) WHEN 'true' THEN 1 WHEN '1' THEN 1"
            return f"{is_true} WHEN 'false' THEN 0 WHEN '0' THEN 0 END", [_path(where)]
        case None:
            return value, [_path(where)]


def _value_of_type(where: Where, operand: Scalar) -> tuple[str, list[Scalar]]:
    """Return a field of titled texts as ``_value``; NULL where an operand is of another type.

    SQLite and PostgreSQL call types by other names. True and false are these words.
    """
    value = "json_extract(r.fields, ?)"
    paths: list[Scalar] = [_path(where)] * 2
    if isinstance(operand, str):
        return f"CASE WHEN json_type(r.fields, ?) IN ('text', 'string') THEN {value} END", paths
    if not isinstance(operand, bool):
        is_number = "json_type(r.fields, ?) IN ('integer', 'real', 'number')"
        return f"CASE WHEN {is_number} THEN CAST({value} AS DOUBLE PRECISION) END", paths
    of_sqlite = "WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'"
    return f"CASE json_type(r.fields, ?) {of_sqlite} WHEN 'boolean' THEN {value} END", paths


def _path(where: Where) -> str:
    return f'$."{where.field}"'
