"""What ``recall`` and ``timeline`` may be told, checked and made a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, TypedDict

from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest
from pps.core.layers import LAYERS
from pps.core.time import now, utc
from pps.core.time_reading import read_time
from pps.core.values import ChannelName
from pps.journal.values import ItemFilter
from pps.recall.proximity import MAX_HOPS
from pps.recall.request import DEFAULT_PROFILE, RecallRequest

MAX_WEIGHT = 1_000
MAX_QUERY = 65_536
"""Most characters of a query; what exceeds 8,000 is condensed."""


class RecallOptions(TypedDict, total=False):
    """What ``recall`` may be told.

    Attributes:
        profile: A name from ``pps profiles``; ``default`` when not given.
        channels: Names of channels, or ``auto`` to route by the kind of query.
        limit: Most results in each channel, 1 to 100 (10); 1 to 50 with ``semantic`` and ``hybrid``.
        as_of: Aware instant of world time; None is now.
        session: What it was shown lately is damped, where the profile does so.
        center: Uuid of a node that the graph perspectives start from; the entity's own when None.
        weights: Perspective → weight, 0 to 1,000, in place of the profile's or beside them (``pps profiles`` shows
            them); also as ``vector``, ``text``, ``graph``, ``tags`` and ``recency``.
        min_similarity: Raw cosine, -1 to 1, in place of the profile's: the meaning perspective drops what is below.
        max_hops: How far from the centre the ``hybrid`` profile looks, 1 to 4 (2).
        include_relationships: With each node that is found, the newest facts and relations that hold and join it.
        during: Words that name a time, such as "last spring": a filter, as ``since`` and ``until`` are. A time that
            the query itself names only ranks higher what happened then.
        filters: Applied before ranking in every perspective, beside the profile's own: both must hold.
    """

    profile: str
    channels: Sequence[ChannelName] | Literal["auto"] | None
    limit: int
    as_of: datetime | None
    session: str | None
    center: str | None
    weights: Mapping[str, float]
    min_similarity: float | None
    max_hops: int
    include_relationships: bool
    during: str
    filters: ItemFilter


class TimelineOptions(TypedDict, total=False):
    """What ``timeline`` may be told: a node, a relation, half-open bounds of world time, a page.

    Attributes:
        about: Name or uuid of a node whose facts are wanted.
        relation: Only facts of this relation.
        as_of: Only facts that held at this instant.
        after, before: Only facts with ``after <= valid_at < before``.
        cursor, limit: ``next_cursor`` of the page before; 1 to 1,000 facts a page (100).
    """

    about: str | None
    relation: str | None
    as_of: datetime | None
    after: datetime | None
    before: datetime | None
    cursor: str
    limit: int


def make_request(query: str, options: RecallOptions) -> RecallRequest:
    """Return the engine's request; InvalidRequest names the first bound that is broken."""
    if not query.strip() or len(query) > MAX_QUERY:
        raise InvalidRequest("query", f"must have 1 to {MAX_QUERY:,} characters, not only white space")
    limit = options.get("limit", 10)
    check_range("limit", limit, 1, 100)
    channels = options.get("channels")
    as_of = checked_utc(options.get("as_of"), "as_of")
    max_hops = options.get("max_hops", 2)
    filters = options.get("filters", ItemFilter())
    if unknown := set(filters.layers).difference(LAYERS):
        raise InvalidRequest("filters.layers", f"{min(unknown)!r} is none of {', '.join(LAYERS)}")
    check_range("max_hops", max_hops, 1, MAX_HOPS)
    return RecallRequest(
        query=query,
        profile=options.get("profile", DEFAULT_PROFILE),
        limit=limit,
        as_of=as_of,
        session=options.get("session"),
        center=options.get("center") or None,
        channels="auto" if channels == "auto" else tuple(channels) if channels else None,
        weights=_checked_weights(options.get("weights", {})),
        min_similarity=_checked_cosine(options.get("min_similarity")),
        max_hops=max_hops,
        include_relationships=options.get("include_relationships", False),
        filters=_during(options.get("during", ""), filters, as_of or now()),
    )


def known_by(request: RecallRequest, identifier: Callable[[str], str]) -> RecallRequest:
    """Return a request that names sessions and sources as they are kept: without secrets."""
    filters = request.filters
    if not (request.session or filters.sessions or filters.sources):
        return request
    sessions, sources = (tuple(map(identifier, some)) for some in (filters.sessions, filters.sources))
    session = identifier(request.session or "") or None
    return replace(request, session=session, filters=replace(filters, sessions=sessions, sources=sources))


def _during(words: str, filters: ItemFilter, moment: datetime) -> ItemFilter:
    """Return the filter that also holds to the time that the words name."""
    if not words.strip():
        return filters
    if filters.since or filters.until:
        raise InvalidRequest("during", "cannot stand beside the filters' since and until: give one or the other")
    span = read_time(words, moment)
    if span is None:
        raise InvalidRequest("during", "must name one time, such as 'last spring', 'May 2023' or '2023-05-07'")
    return replace(filters, since=span.start, until=span.end)


def _checked_weights(weights: Mapping[str, float]) -> Mapping[str, float]:
    for name, weight in weights.items():
        if not 0 <= weight <= MAX_WEIGHT:
            raise InvalidRequest("weights", f"{name} must be 0 to {MAX_WEIGHT:,}")
    return dict(weights)


def _checked_cosine(least: float | None) -> float | None:
    if least is not None and not -1 <= least <= 1:
        raise InvalidRequest("min_similarity", "must be -1 to 1: it is a raw cosine")
    return least


def checked_utc(moment: datetime | None, field: str) -> datetime | None:
    """Return an aware instant in UTC, or None for None."""
    return utc(moment, field) if moment else None
