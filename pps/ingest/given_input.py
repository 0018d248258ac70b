"""Nodes and facts as JSON, in a tool's arguments or a line of an import."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Annotated, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)

from pps.core import bounds
from pps.core.errors import InvalidRequest
from pps.core.json_shapes import INSTANT, SHORT
from pps.core.time import CoarseTime, in_zone, read_imported, read_moment, zoned
from pps.core.values import FactDraft, NodeDraft

ZONE = "time_zone"
"""Key of a validation's context: the zone for times without one.

The value None leaves such times naive; the memory then reads them in its own zone.
"""
EXPORTED = "exported"
"""Key of a validation's context for input from a file, which an earlier PPS may have written."""


def _moment(value: object, info: ValidationInfo) -> object:
    context = cast("Mapping[str, tzinfo | None]", info.context or {})
    zone = context.get(ZONE, UTC)
    try:
        if isinstance(value, str):
            if EXPORTED in context:
                return read_imported(value)
            return read_moment(value, zone)
        return zoned(value, zone or UTC) if isinstance(value, datetime) else value
    except InvalidRequest as error:
        raise ValueError(error.problem) from None


def _join_pair(value: object) -> object:
    """Return a pair of subject and relation joined to a text, other values unchanged."""
    return " ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value


def described_time(description: str) -> WithJsonSchema:
    """Return the JSON schema of a time, for a calling model."""
    return WithJsonSchema(
        {
            "type": "string",
            "description": (
                f"{description} ISO 8601, local without an offset; a date alone stays that date."
            ),
            INSTANT: True,
        }
    )


def _day(value: object, info: ValidationInfo) -> object:
    """Return the day of an instant in the context's zone, or the first day of a month or year."""
    if not isinstance(value, str):
        return value
    moment = _moment(value, info)
    if not isinstance(moment, datetime):
        return moment
    if isinstance(moment, CoarseTime) or moment.time() == time():
        return moment.date()
    zone = cast("Mapping[str, tzinfo | None]", info.context or {}).get(ZONE) or UTC
    return in_zone(moment, zone).date()


Day = Annotated[date, BeforeValidator(_day)]
"""A day: ISO 8601 text of a date, of an instant (its day in the entity's zone), or of a month or
year (its first day). Midnight stands for the day that it is written with, in any zone."""
Moment = Annotated[datetime, BeforeValidator(_moment)]
"""ISO 8601 text or a datetime, made aware. A date alone is a ``CoarseTime``; another time without a
zone is in the zone under ``ZONE`` in the validation's context, the entity's."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=bounds.MAX_NAME)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=65)]
Replaced = Annotated[
    str, BeforeValidator(_join_pair), StringConstraints(min_length=1, max_length=bounds.MAX_TEXT)
]


class Input(BaseModel):
    """Base of what comes from outside: an unknown name or a value of another type is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NodeInput(Input):
    """A person, place, thing or idea that the text speaks of; a plain text is one of that name."""

    model_config = ConfigDict(json_schema_extra={SHORT: "name"})

    name: Name = Field(description="Usual name. Names that differ only in case are one node.")
    kind: str = Field(
        default="Thing", max_length=64, description="One word, such as Person, Place, Project."
    )
    summary: str = Field(
        default="",
        max_length=bounds.MAX_TEXT,
        description="What is known of the node, in one or two sentences.",
    )
    aliases: tuple[Name, ...] = Field(
        default=(), max_length=bounds.MAX_ALIASES, description="Other names of the node."
    )
    tags: tuple[Tag, ...] = Field(default=(), max_length=bounds.MAX_TAGS)
    attributes: Mapping[str, JsonValue] = Field(
        default={}, description="Any fields of your own, as JSON."
    )

    def draft(self) -> NodeDraft:
        return NodeDraft(**dict(self))


class FactInput(Input):
    """One sentence that joins two nodes, with the time in which it holds."""

    subject: Name = Field(description="Name of the node that the fact is about.")
    relation: Name = Field(description="The verb in capitals, such as LIVES_IN.")
    object: Name = Field(description="Name of the node at the other end.")
    text: str = Field(
        default="", max_length=bounds.MAX_TEXT, description="The whole sentence, readable alone."
    )
    valid_at: Annotated[Moment, described_time("Since when it holds.")] | None = None
    invalid_at: Annotated[Moment, described_time("Until when it held.")] | None = None
    invalidates: tuple[Replaced, ...] = Field(
        default=(),
        max_length=bounds.MAX_REPLACED,
        description="Texts or ids of facts that this one replaces, or subject and relation, "
        "such as 'Ana LIVES_IN'; they are closed, not erased.",
    )
    kind: Literal["fact", "relation"] = Field(
        default="fact", description="'relation' for a link that is no sentence."
    )

    def draft(self) -> FactDraft:
        return FactDraft(**dict(self))
