"""The options of ``recall`` and ``timeline``, checked and made a request of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, TypeAlias, TypedDict, cast

from pps.core.bounds import MAX_CONTENT, check_range
from pps.core.errors import InvalidRequest
from pps.core.time import in_zone
from pps.core.time_reading import read_time
from pps.core.values import ChannelName
from pps.journal.filters import ItemFilter
from pps.recall.question import asks_for_several

Channels: TypeAlias = "Sequence[ChannelName] | Literal['auto'] | None"

DEFAULT_PROFILE = "default"
"""The profile of a deliberate recall that names none."""
MAX_HOPS = 4
"""Farthest hops from a node that still count."""
MAX_QUERY = MAX_CONTENT
"""Most characters of a query; one of more than 1,000 is condensed."""
MAX_WEIGHT = 1_000
USUAL_LIMIT = 10
"""Most results in each channel if the caller names no limit."""
SEVERAL_LIMIT = 20
"""The same if the query asks for several things."""


class RecallOptions(TypedDict, total=False):
    """Options of ``recall``.

    Attributes:
        profile: A name from ``pps profiles``, or a Graphiti recipe's; ``default`` when not given.
        channels: Names of channels, or ``auto`` to route by the kind of query.
        limit: Most results in each channel, 1 to 100; 1 to 50 with ``semantic`` and ``hybrid``.
            Where none is named 10, of nodes 5, and 20 where the question asks for several things.
        as_of: Time of the world; None is now.
        session: What it was shown lately is damped, where the profile does so.
        center: Uuid of a node that the graph perspectives start from; the entity's own when None.
        weights: Perspective → weight, 0 to 1,000, in place of the profile's or beside them (``pps
            profiles`` shows them); also as ``vector``, ``text``, ``graph``, ``tags`` and
            ``recency``.
        min_similarity: Raw cosine, -1 to 1, in place of the profile's: the meaning perspective
            drops what is below.
        max_hops: How far from the centre the ``hybrid`` profile looks, 1 to 4 (2).
        include_relationships: With each node that is found, the newest facts and relations that
            hold and join it.
        breakdown: With each hit what each perspective gave it, in [0, 1].
        connections: Which ways of the graph ``near`` goes from what the query names: ``source``
            those that go out from it, ``target`` those that come to it, or ``both``.
        during: Words that name a time, such as "last spring": a filter, as ``since`` and ``until``
            are. A time that the query itself names only ranks higher what happened then.
        filters: Applied before ranking in every perspective, beside the profile's own: both must
            hold.
    """

    profile: str
    channels: Channels
    limit: int | None
    as_of: datetime | None
    session: str | None
    center: str | None
    weights: Mapping[str, float]
    min_similarity: float | None
    max_hops: int
    include_relationships: bool
    breakdown: bool
    connections: Literal["source", "target", "both"]
    during: str
    filters: ItemFilter


class TimelineOptions(TypedDict, total=False):
    """Options of ``timeline``: a node, a relation, half-open bounds of world time, a page.

    Attributes:
        id: Id or name of a node whose facts are wanted.
        relation: Only facts of this relation.
        as_of: Only facts that held at this instant.
        after, before: Only facts with ``after <= valid_at < before``.
        cursor, limit: ``next_cursor`` of the page before; 1 to 1,000 facts a page (100).
    """

    id: str | None
    relation: str | None
    as_of: datetime | None
    after: datetime | None
    before: datetime | None
    cursor: str
    limit: int


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """One query to one entity's memory, checked.

    Its fields are those of ``RecallOptions`` and more.

    Attributes:
        is_usual: No limit was named: a profile may show fewer of a channel.
        without: Ids that the reader has before it: they take no place, and are evidence all the
            same.
        leave_out: Channels of the profile that are not wanted.
    """

    query: str
    profile: str = DEFAULT_PROFILE
    limit: int = USUAL_LIMIT
    is_usual: bool = False
    as_of: datetime | None = None
    session: str | None = None
    center: str | None = None
    channels: Channels = None
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    min_similarity: float | None = None
    max_hops: int = 2
    include_relationships: bool = False
    breakdown: bool = False
    connections: Literal["source", "target", "both"] = "both"
    filters: ItemFilter = field(default_factory=ItemFilter)
    without: frozenset[str] = frozenset()
    leave_out: frozenset[ChannelName] = frozenset()


def make_request(query: str, options: RecallOptions, zone: tzinfo = UTC) -> RecallRequest:
    """Return a checked request; its times are on the clock of ``zone``, the person's.

    A time without a zone is theirs, a date alone its first instant there, and "yesterday" their
    day.

    Raises:
        InvalidRequest: A bound is broken; the field is named.
    """
    if not query.strip() or len(query) > MAX_QUERY:
        raise InvalidRequest(
            "query", f"must have 1 to {MAX_QUERY:,} characters, not only white space"
        )
    values = {name: value for name, value in options.items() if name != "during"}
    if values.get("limit") is None:
        values["limit"] = SEVERAL_LIMIT if asks_for_several(query) else USUAL_LIMIT
        values["is_usual"] = True
    request = replace(RecallRequest(query), **cast("dict[str, Any]", values))
    check_range("limit", request.limit, 1, 100)
    as_of = request.as_of and in_zone(request.as_of, zone, "as_of")
    filters = request.filters
    check_range("max_hops", request.max_hops, 1, MAX_HOPS)
    for name, weight in request.weights.items():
        if not 0 <= weight <= MAX_WEIGHT:
            raise InvalidRequest("weights", f"{name} must be 0 to {MAX_WEIGHT:,}")
    if request.min_similarity is not None and not -1 <= request.min_similarity <= 1:
        raise InvalidRequest("min_similarity", "must be -1 to 1: it is a raw cosine")
    channels = request.channels
    return replace(
        request,
        as_of=as_of,
        center=request.center or None,
        channels="auto" if channels == "auto" else tuple(channels) if channels else None,
        filters=_during(options.get("during", ""), filters, as_of or datetime.now(zone)),
    )


def known_by(request: RecallRequest, identifier: Callable[[str], str]) -> RecallRequest:
    """Return a request whose sessions and sources are named as they are stored: without secrets."""
    filters = request.filters
    if not (request.session or filters.sessions or filters.sources):
        return request
    stored_filters = replace(
        filters,
        sessions=tuple(map(identifier, filters.sessions)),
        sources=tuple(map(identifier, filters.sources)),
    )
    session = identifier(request.session or "") or None
    return replace(request, session=session, filters=stored_filters)


def _during(words: str, filters: ItemFilter, moment: datetime) -> ItemFilter:
    if not words.strip():
        return filters
    if filters.since or filters.until:
        raise InvalidRequest(
            "during", "cannot stand beside the filters' since and until: give one or the other"
        )
    span = read_time(words, moment)
    if span is None:
        raise InvalidRequest(
            "during", "must name one time, such as 'last spring', 'May 2023' or '2023-05-07'"
        )
    return replace(filters, since=span.start, until=span.end)
