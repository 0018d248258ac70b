"""Times are aware UTC; intervals are half-open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pps.core.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return datetime.now(UTC)


def utc(moment: datetime, field: str = "time") -> datetime:
    """Return an aware instant in UTC; a naive one is refused, since its zone is a guess."""
    if moment.tzinfo is None:
        raise InvalidRequest(field, "must carry a time zone, such as 2026-01-31T09:00:00Z")
    return moment.astimezone(UTC)


def parse(text: str, field: str = "time") -> datetime:
    """Return the instant of an ISO 8601 text; a date alone is its midnight in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(field, "must be ISO 8601, such as 2026-01-31 or 2026-01-31T09:00:00Z") from None
    if moment.tzinfo is None and len(text.strip()) <= 10:
        moment = moment.replace(tzinfo=UTC)
    return utc(moment, field)


def iso(moment: datetime) -> str:
    """Return ISO 8601 in UTC with microseconds and ``Z``: sorts as text, reads everywhere."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def micros(moment: datetime) -> int:
    """Return microseconds since 1970-01-01 UTC, exact."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(value: int) -> datetime:
    """Return the instant of microseconds since 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=value)
