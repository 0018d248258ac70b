"""What a profile lets through: its table ``[filters]``, the same fields as a request's own filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from pps.core.layers import LAYERS, Layer
from pps.core.time import iso
from pps.core.values import JSON
from pps.journal.values import ItemFilter


def _moment(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    raise ValueError("must be a date, or a time with its zone, such as 2026-01-31T08:00:00Z")


def _tag(value: str) -> str:
    if value.startswith("#") or any(map(str.isspace, value)):
        raise ValueError("must be a tag without '#' and without spaces")
    return value


Moment = Annotated[datetime, BeforeValidator(_moment)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Labels = Annotated[tuple[Label, ...], Field(max_length=50)]


class Filters(BaseModel):
    """The table ``[filters]`` of a profile's file; what its fields mean is told at ``ItemFilter``.

    Attributes:
        kinds, sources, relations, sessions, statuses: At most 50 of 1 to 200 characters each.
        tags: At most 50 of 1 to 64 characters, without ``#``.
        roles: Of ``user``, ``assistant``, ``system`` and ``tool``.
        layers: Of the seven in ``LAYERS``.
        since, until: Half-open, ``since`` before ``until``: times with a zone; a date is its midnight in UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: Labels = ()
    tags: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_tag)], ...],
        Field(max_length=50),
    ] = ()
    sources: Labels = ()
    relations: Labels = ()
    sessions: Labels = ()
    roles: Annotated[tuple[Literal["user", "assistant", "system", "tool"], ...], Field(max_length=4)] = ()
    layers: Annotated[tuple[Layer, ...], Field(max_length=len(LAYERS))] = ()
    statuses: Labels = ()
    since: Moment | None = None
    until: Moment | None = None

    def over(self, parent: ItemFilter) -> ItemFilter:
        """Return the parent's filter with the fields that this one names in place of its own; an empty list is none.

        Raises:
            ValueError: ``until`` is not after ``since``; says so in words that name the field and the bound.
        """
        own: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        found = replace(parent, **own)
        if found.since and found.until and found.until <= found.since:
            raise ValueError(f"filters.until: must be after since, which is {iso(found.since)}")
        return found


def said(filters: ItemFilter) -> Mapping[str, tuple[str, ...] | datetime]:
    """Return the fields of a filter that restrict something, by name."""
    named = {one.name: getattr(filters, one.name) for one in fields(filters)}
    return cast("Mapping[str, tuple[str, ...] | datetime]", {name: value for name, value in named.items() if value})


def as_json(filters: ItemFilter) -> dict[str, JSON]:
    """Return the fields that restrict something as plain JSON; times as ISO 8601."""
    return {name: iso(one) if isinstance(one, datetime) else list(one) for name, one in said(filters).items()}


def in_words(filters: ItemFilter) -> str:
    """Return what a filter lets through, in one line for people: ``tags work, home; since 2026-01-01T00:00:00+00:00``.

    Empty when it restricts nothing.
    """
    return "; ".join(
        f"{name} {iso(value) if isinstance(value, datetime) else ', '.join(value)}"
        for name, value in said(filters).items()
    )
