"""Filters of records by the fields of their kinds: checked, and translated for the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo

from pydantic import TypeAdapter, ValidationError

from pps.core.bounds import check_range, check_tags
from pps.core.errors import InvalidRequest
from pps.core.kinds import STATUSES, FieldSpec, Kinds, KindSpec
from pps.core.record_values import Condition, RecordQuery
from pps.core.text import snake
from pps.core.time import in_zone, iso, micros, parse, read_moment
from pps.core.values import JSON
from pps.journal.record_queries import COLUMNS, RecordSelection, Scalar, Slot, Term, Where
from pps.journal.record_rows import FieldValue

MAX_LIST = 1_000
MAX_CONDITIONS = 20
_TIMES = ("created_at", "updated_at")
_NAMES = {"created": "created_at", "updated": "updated_at"}
_COMMON = {"description": FieldSpec("description", "text")}
_DURATION = TypeAdapter(timedelta)


def wanted_of(kinds: Kinds, query: RecordQuery, zone: tzinfo = UTC) -> RecordSelection:
    """Return a query in the journal's form.

    Fields of titled texts are of any type, and none is unknown.

    Raises:
        InvalidRequest: A kind, field, status, state or operator is unknown.
    """
    check_range("limit", query.limit, 1, MAX_LIST)
    named = [kinds.typed_or_open(kind) for kind in query.kinds]
    chosen = named or [*kinds]
    is_open = any(kind.name not in kinds for kind in named)
    for status in query.statuses:
        if status not in STATUSES:
            raise InvalidRequest("statuses", f"must be of {', '.join(STATUSES)}")
    if len(query.where) > MAX_CONDITIONS:
        raise InvalidRequest("where", f"at most {MAX_CONDITIONS} conditions")
    fields = _Fields(chosen, is_open)
    return RecordSelection(
        ids=query.ids,
        kinds=tuple(kind.name for kind in named if kind.name in kinds),
        open_kinds=tuple(kind.name for kind in named if kind.name not in kinds),
        statuses=query.statuses,
        states=query.states,
        tags=check_tags(query.tags),
        since=query.since and in_zone(query.since, zone, "since"),
        until=query.until and in_zone(query.until, zone, "until"),
        terms=tuple(
            _term(f"where[{at}]", fields, condition, zone)
            for at, condition in enumerate(query.where)
        ),
        order=tuple(
            (fields.where(f"order[{at}]", term.removeprefix("-"))[0], term.startswith("-"))
            for at, term in enumerate(query.order)
        ),
    )


def field_values(kind: KindSpec, fields: Mapping[str, JSON]) -> dict[str, FieldValue]:
    """Return what a record is found by: its kind's indexed fields, each as number, text or time."""
    values: dict[str, FieldValue] = {}
    for name, spec in kind.fields.items():
        slot = slot_of(spec)
        value = fields.get(name)
        if not spec.index or slot is None or value is None:
            continue
        stored = _stored(name, spec, value)
        values[name] = (
            float(stored) if slot == "number" and isinstance(stored, int | float) else None,
            str(stored) if slot == "text" else None,
            int(stored) if slot == "at" and isinstance(stored, int) else None,
        )
    return values


def slot_of(spec: FieldSpec) -> Slot | None:
    """Return how a field's value is found; None for what has no order: lists and maps."""
    match spec.type:
        case "number" | "integer" | "bool" | "duration":
            return "number"
        case "date" | "datetime":
            return "at"
        case "text" | "enum" | "ref":
            return "text"
        case "list" | "json":
            return None


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields that a query may name; ``is_open`` if titled texts, with any, are among them."""

    kinds: Sequence[KindSpec]
    is_open: bool

    def where(self, path: str, field: str) -> tuple[Where, FieldSpec | None]:
        """Return how a field is found, and what it is; None for what every record has.

        A field of titled texts is spelled as they have it, every other one in any case.
        """
        name = snake(field)
        name = _NAMES.get(name, name)
        if name in COLUMNS:
            return Where(name), None
        if any(kind.lifecycle and kind.lifecycle.field == name for kind in self.kinds):
            return Where("state"), None
        spec = next((kind.fields[name] for kind in self.kinds if name in kind.fields), None)
        if self.is_open:  # no values of titled texts are indexed
            if not _is_path(field):
                raise InvalidRequest(f"{path}.field", "no titled text has such a field")
            return Where(name if spec else field, declared=False), None
        spec = spec or _COMMON.get(name)
        if spec is None:
            fields = (field for kind in self.kinds for field in kind.fields)
            known = dict.fromkeys((*COLUMNS, *fields))
            raise InvalidRequest(
                f"{path}.field", f"no such field; there are {', '.join([*known][:60])}"
            )
        if spec.index:
            return Where(name, slot_of(spec)), spec
        if spec.type == "number" or spec.type == "integer" or spec.type == "bool":
            return Where(name, scalar=spec.type), spec
        return Where(name, many=spec.type == "list"), spec


def _is_path(field: str) -> bool:
    """Tell whether a name can stand between quotes in a path of JSON."""
    return field.isprintable() and not {'"', "\\"} & set(field)


def _term(path: str, fields: _Fields, condition: Condition, zone: tzinfo) -> Term:
    where, spec = fields.where(path, condition.field)
    op = condition.op
    value = condition.value
    if op == "is_null":
        if value not in (None, True, False):
            raise InvalidRequest(f"{path}.value", "with is_null, true or false")
        return Term(where, op, 0 if value is False else 1)
    if op == "in":
        if (
            isinstance(value, str)
            or not isinstance(value, Sequence)
            or not 1 <= len(value) <= MAX_LIST
        ):
            raise InvalidRequest(f"{path}.value", f"with in, a list of 1 to {MAX_LIST:,}")
        items = tuple(_compared(path, where, spec, item, zone) for item in value)
        if not where.declared and len({_type(item) for item in items}) > 1:
            raise InvalidRequest(f"{path}.value", "give texts alone, or numbers alone")
        return Term(where, op, items)
    if op == "contains":
        if not isinstance(value, str | int | float):
            raise InvalidRequest(f"{path}.value", "with contains, a text, or an item of a list")
        if not where.declared and not isinstance(value, str):
            raise InvalidRequest(f"{path}.value", "with contains, a text")
        return Term(where, op, _bindable(f"{path}.value", value))
    return Term(where, op, _compared(path, where, spec, value, zone))


def _compared(path: str, where: Where, spec: FieldSpec | None, value: JSON, zone: tzinfo) -> Scalar:
    """Return a value as what it is compared with is stored."""
    if not where.declared:
        if not isinstance(value, str | int | float):
            raise InvalidRequest(f"{path}.value", "must be a text, a number, true or false")
        return _bindable(f"{path}.value", value)
    if spec is None:
        if not isinstance(value, str):
            raise InvalidRequest(f"{path}.value", "must be a text")
        if where.field not in _TIMES:
            return value
        return micros(in_zone(read_moment(value, zone, f"{path}.value"), zone))
    if spec.type == "datetime" and isinstance(value, str):
        value = iso(read_moment(value, zone, f"{path}.value"))
    stored = _stored(f"{path}.value", spec, value)
    if isinstance(stored, int | float) and slot_of(spec) != "at":
        stored = _bindable(f"{path}.value", stored)
    if where.slot or slot_of(spec) != "at" or not isinstance(value, str):
        return stored
    moment = parse(value, f"{path}.value")
    return moment.date().isoformat() if spec.type == "date" else iso(moment)


def _stored(path: str, spec: FieldSpec, value: JSON) -> Scalar:
    match spec.type:
        case "date" | "datetime" if isinstance(value, str):
            return micros(parse(value, path))
        case "duration" if isinstance(value, str):
            try:
                return _DURATION.validate_python(value).total_seconds()
            except ValidationError:
                raise InvalidRequest(
                    path, "must be an ISO 8601 duration, such as PT2H30M"
                ) from None
        case "number" | "integer" | "bool" if isinstance(value, int | float):
            return value
        case "text" | "enum" | "ref" if isinstance(value, str):
            return value
        case _:
            raise InvalidRequest(
                path, f"must be a {spec.type}; of a list only contains and is_null ask"
            )


def _type(value: Scalar) -> type:
    """Return the type of a value among fields of titled texts: all numbers are of one."""
    return float if type(value) is int else type(value)


def _bindable(path: str, value: str | float) -> Scalar:
    """Return a value that the journal can compare with."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidRequest(path, "must be a whole number of 64 bits")
    return value
