"""A Pydantic model for each kind and relation of an entity's packs: validation and JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic_core import ErrorDetails

from pps.core.argument_reading import read_arguments
from pps.core.bounds import MAX_ATTRIBUTES_BYTES
from pps.core.errors import InvalidRequest
from pps.core.ids import ID_PATTERN
from pps.core.json_shapes import plain_name, shape_of
from pps.core.kinds import FieldSpec, FieldType, Kinds
from pps.core.record_values import Record
from pps.core.text import nearest_name, snake, visible
from pps.core.time import CoarseTime, coarse, coarse_text, read_moment
from pps.core.values import JSON
from pps.ingest.given_input import ZONE, Moment, Tag, described_time

MAX_TITLE = 160
MAX_SUMMARY = 2_000
MAX_TEXT = 4_000
"""Most characters of any text that a pack does not bound."""
MAX_ITEMS = 50
"""Most items of a list that a pack does not bound."""
_MOST = 2**53
"""Greatest whole number that all readers of JSON agree on."""


def _plain_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    if value and not visible(value).strip():
        raise ValueError("must not be white space only")
    return value


def _text(least: int, most: int) -> Any:
    bounds = StringConstraints(min_length=least, max_length=most)
    return Annotated[str, bounds, AfterValidator(_plain_text)]


def _small(value: JsonValue) -> JsonValue:
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_ATTRIBUTES_BYTES:
        raise ValueError(f"must be at most {MAX_ATTRIBUTES_BYTES:,} bytes as JSON")
    return value


_MAX_TOLD = 10
"""Mistakes of one record that are told."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Provenance(_Strict):
    """Where a record comes from."""

    module: Literal["discuss", "plan", "execute", "mind"] | None = None
    actor: Literal["human", "agent", "joint"] | None = None
    source: str | None = Field(default=None, max_length=500)
    confidence: float | None = Field(default=None, ge=0, le=1)
    notes: str | None = Field(default=None, max_length=500)


class Common(_Strict):
    """What every kind of records has."""

    title: Annotated[
        str, StringConstraints(min_length=1, max_length=MAX_TITLE), AfterValidator(_plain_text)
    ]
    summary: Annotated[
        str, StringConstraints(min_length=1, max_length=MAX_SUMMARY), AfterValidator(_plain_text)
    ]
    description: (
        Annotated[str, StringConstraints(max_length=MAX_TEXT), AfterValidator(_plain_text)] | None
    ) = None
    status: Literal["draft", "active", "archived", "deprecated"] = "active"
    tags: tuple[Tag, ...] = Field(default=(), max_length=20)
    metadata: dict[str, str | int | float | bool] | None = Field(
        default=None,
        max_length=50,
        description="Fields of your own: texts, numbers, true or false.",
    )
    provenance: Provenance | None = None


class KindModels:
    """The models of an entity's kinds, each built when it is first used.

    Times without a zone are in ``zone``.
    """

    def __init__(self, kinds: Kinds, zone: tzinfo = UTC) -> None:
        self._kinds = kinds
        self._zone = zone
        self._models: dict[str, type[BaseModel]] = {}

    def model(self, kind: str) -> type[BaseModel]:
        """Return a kind's model; InvalidRequest names the kinds that there are."""
        if kind not in self._models:
            spec = self._kinds.kind(kind)
            fields = {name: _typed(field) for name, field in spec.fields.items()}
            made = create_model(
                kind, __base__=Common, __doc__=spec.about or None, **cast("dict[str, Any]", fields)
            )
            self._models[kind] = made
        return self._models[kind]

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON schema of a kind's fields, the common ones among them."""
        return self.model(kind).model_json_schema()

    def read_names(
        self, kind: str, fields: Mapping[str, JSON]
    ) -> tuple[dict[str, JSON], dict[str, str]]:
        """Return fields by their names in the pack (or in camelCase), and mistakes by path."""
        return _read_names(kind, fields, [*self.model(kind).model_fields])

    def check(
        self, kind: str, values: Mapping[str, JSON], mistakes: Mapping[str, str] | None = None
    ) -> dict[str, JSON]:
        """Return a record's fields as stored: title, summary, status, tags and the kind's own.

        Dates, times and durations are ISO 8601 texts, times in UTC. What is null is left out.

        Args:
            kind: The record's.
            values: Its fields.
            mistakes: Those that were found before (path → what is wrong), to be told with the
                others.

        Raises:
            InvalidRequest: Names the kind, the field and the bound of each mistake.
        """
        fields, wrong = self.read_names(kind, values)
        return _checked(kind, self.model(kind), fields, self._zone, {**(mistakes or {}), **wrong})

    def check_relation(
        self, name: str, source: str, target: str, properties: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """Return a relation's properties as they are kept.

        Raises:
            InvalidRequest: It does not join two such kinds, or a property is wrong; each is named.
        """
        fields = self._kinds.relation(name, source, target).fields
        key = f"{source} {name} {target}"
        if key not in self._models:
            typed = cast("dict[str, Any]", {name: _typed(spec) for name, spec in fields.items()})
            self._models[key] = create_model(name, __base__=_Strict, **typed)
        named, wrong = _read_names(name, properties, [*fields])
        return _checked(name, self._models[key], named, self._zone, wrong)

    def misfit(self, record: Record) -> str:
        """Return why a record stored under another version of its pack no longer fits, or empty."""
        if record.kind not in self._kinds:
            return f"{record.kind}: no kind of this memory's packs any more"
        cycle = self._kinds.kind(record.kind).lifecycle
        if cycle and record.state and record.state not in cycle.states:
            return f"{record.kind}: {record.state} is no state of its life cycle"
        whole = {
            **record.fields,
            "title": record.title,
            "summary": record.summary,
            "status": record.status,
        }
        try:
            self.check(record.kind, whole)
        except InvalidRequest as error:
            return error.message
        return ""


def _typed(spec: FieldSpec) -> tuple[Any, Any]:
    """Return a field's annotation and its default as ``create_model`` takes them."""
    about = spec.about or None
    if spec.required:
        return _annotation(spec), Field(description=about)
    return _annotation(spec) | None, Field(default=None, description=about)


def _annotation(spec: FieldSpec) -> Any:
    of = _annotation(spec.of) if spec.of else None
    match spec.type:
        case "text":
            most = MAX_TEXT if spec.max is None else int(spec.max)
            least = int(spec.min or 0) or int(spec.required)
            return _text(least, most)
        case "number":
            return Annotated[float, Field(ge=spec.min, le=spec.max)]
        case "integer":
            low = -_MOST if spec.min is None else spec.min
            high = _MOST if spec.max is None else spec.max
            return Annotated[int, Field(ge=low, le=high)]
        case "enum":
            return Literal[spec.enum]
        case "ref":
            return Annotated[
                str, Field(pattern=ID_PATTERN, description=f"Id of a {spec.kind or 'node'}.")
            ]
        case "list":
            most = MAX_ITEMS if spec.max is None else int(spec.max)
            return Annotated[
                tuple[of or _text(0, MAX_TEXT), ...],
                Field(min_length=int(spec.min or 0), max_length=most),
            ]
        case "json":
            return _map(spec, of)
        case "bool" | "date" | "datetime" | "duration":
            return _PLAIN[spec.type]


_A_DATE = "an ISO 8601 date, such as 2026-01-31"


def _read_date(value: object) -> CoarseTime:
    """Parse a day, month or year.

    Midnight counts as its day. Another time of day is refused, because it would be lost.
    """
    if not isinstance(value, str):
        raise ValueError(_A_DATE)
    try:
        moment = read_moment(value, None)
    except InvalidRequest:
        raise ValueError(_A_DATE) from None
    if isinstance(moment, CoarseTime):
        return moment
    if moment.time() != time():
        raise ValueError(f"{_A_DATE}, without a time of day")
    return coarse(moment.date())


_PLAIN: dict[FieldType, Any] = {
    "bool": bool,
    "date": Annotated[
        datetime,
        BeforeValidator(_read_date),
        PlainSerializer(coarse_text, return_type=str),
        WithJsonSchema({"type": "string", "format": "date"}),
    ],
    "datetime": Annotated[
        Moment, PlainSerializer(coarse_text, return_type=str), described_time("")
    ],
    "duration": timedelta,
}


def _map(spec: FieldSpec, of: Any) -> Any:
    """Return the annotation of a json field: with names or values bound, it is a map."""
    value = of or JsonValue
    if spec.enum:
        fields = cast("dict[str, Any]", dict.fromkeys(spec.enum, (value | None, None)))
        return create_model(spec.name, __base__=_Strict, **fields)
    return Annotated[dict[str, value] if of else JsonValue, AfterValidator(_small)]


def _read_names(
    kind_text: str, fields: Mapping[str, JSON], known: list[str]
) -> tuple[dict[str, JSON], dict[str, str]]:
    read: dict[str, JSON] = {}
    mistakes: dict[str, str] = {}
    by_plain_name = {plain_name(name): name for name in known}
    for name, value in fields.items():
        own = name if name in known else by_plain_name.get(plain_name(name), snake(name))
        if own not in known and value is None:
            own = name  # what an older version of the pack had can be taken out
        elif own not in known:
            near = nearest_name(own, known) if len(mistakes) < _MAX_TOLD else ""
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known) or 'none'}"
            mistakes[f"{kind_text}.{name[:100]}"] = f"no such field; {hint}"
            continue
        if own in read:
            mistakes[f"{kind_text}.{own}"] = "is given twice"
        read[own] = value
    return read, mistakes


def _checked(
    kind_text: str,
    model: type[BaseModel],
    fields: Mapping[str, JSON],
    zone: tzinfo,
    mistakes: Mapping[str, str],
) -> dict[str, JSON]:
    """Return the fields as they are stored.

    Raises:
        InvalidRequest: With the earlier mistakes and the new ones.
    """
    present = {name: value for name, value in fields.items() if value is not None}
    present = read_arguments(present, shape_of(model), kind_text)
    texts = dict(mistakes)
    made: BaseModel | None = None
    try:
        made = model.model_validate_json(json.dumps(present), context={ZONE: zone})
    except (RecursionError, TypeError):
        raise InvalidRequest(kind_text, "must be plain JSON, at most 64 levels deep") from None
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            texts.setdefault(_path(kind_text, detail), _said(detail))
    if texts or made is None:
        first, *rest = texts.items()
        more = "".join(f"; {path}: {text}" for path, text in rest[: _MAX_TOLD - 1])
        raise InvalidRequest(first[0], first[1] + more)
    return cast("dict[str, JSON]", made.model_dump(mode="json", exclude_none=True))


def _path(kind_text: str, error: ErrorDetails) -> str:
    inner = [str(part) for part in error["loc"] if str(part) not in ("int", "float", "str", "bool")]
    return ".".join((kind_text, *inner))


_SAID = {
    "missing": "is required",
    "extra_forbidden": "no such field",
    "string_too_long": "at most {max_length:,} characters",
    "string_too_short": "at least {min_length:,} characters",
    "too_long": "at most {max_length:,} items",
    "too_short": "at least {min_length:,} items",
    "greater_than_equal": "at least {ge:,}",
    "less_than_equal": "at most {le:,}",
    "literal_error": "one of {expected}",
    "time_delta_type": "an ISO 8601 duration, such as PT2H30M",
    "time_delta_parsing": "an ISO 8601 duration, such as PT2H30M",
    "datetime_type": "ISO 8601, such as 2026-01-31 or 2026-01-31T09:00:00Z",
}


def _said(error: ErrorDetails) -> str:
    """Return one mistake in words: the bound that is broken, never the value."""
    if error["type"] not in _SAID:
        text = error["msg"].removeprefix("Value error, ")
        return text[:1].lower() + text[1:]
    text = _SAID[error["type"]].format(**error.get("ctx", {})).removesuffix(".0")
    return text.replace("'", "").replace(" or ", ", ") if error["type"] == "literal_error" else text
