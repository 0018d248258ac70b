"""Times are aware UTC, intervals half-open; spans are what "in May 2023" or "last spring" covers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Literal, TypeAlias

from pps.core.errors import InvalidRequest

Grain: TypeAlias = Literal["day", "week", "month", "season", "year", "decade", "stretch"]

_LEAST_MARGIN = timedelta(days=2)
_DAY = timedelta(days=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each meteorological season of the northern hemisphere; each lasts three."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


def utc(moment: datetime, field: str = "time") -> datetime:
    """Return an aware instant in UTC; a naive one is refused, since its zone is a guess."""
    if moment.tzinfo is None:
        raise InvalidRequest(field, "must carry a time zone, such as 2026-01-31T09:00:00Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest(field, "must be in the years 1 to 9999 of UTC") from None


def later(moment: datetime, by: timedelta) -> datetime:
    """Return a moment so much later, or earlier; the last or the first that there is, where that lies beyond."""
    try:
        return moment + by
    except OverflowError:
        return _LAST if by > timedelta() else _FIRST


def parse(text: str, field: str = "time") -> datetime:
    """Return the instant of an ISO 8601 text; a date alone is its midnight in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(
            field, "must be ISO 8601, such as 2026-01-31 or 2026-01-31T09:00:00Z"
        ) from None
    if moment.tzinfo is None and len(text.strip()) <= 10:
        moment = moment.replace(tzinfo=UTC)
    return utc(moment, field)


def iso(moment: datetime) -> str:
    """Return ISO 8601 in UTC with microseconds and ``Z``: sorts as text, reads everywhere."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def micros(moment: datetime) -> int:
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, half-open ``[start, end)``, aware UTC; None is an end that is not named.

    Attributes:
        grain: How exactly it was named: ``week`` for "last week", ``stretch`` for one with its own ends.
        text: The words that name it.
    """

    start: datetime | None
    end: datetime | None
    grain: Grain
    text: str = ""

    def margin(self) -> timedelta:
        """Return how far outside still counts as near: half the span's length, two days at least.

        People speak of a thing some days before and after it happened.
        """
        if self.start is None or self.end is None:
            return _LEAST_MARGIN
        return max(_LEAST_MARGIN, (self.end - self.start) / 2)

    def bounds(self) -> tuple[datetime, datetime]:
        """Return the first moment that is near, and the first one that is not any more."""
        margin = self.margin()
        start = (
            _FIRST if self.start is None or self.start - _FIRST < margin else self.start - margin
        )
        end = _LAST if self.end is None or _LAST - self.end < margin else self.end + margin
        return start, end

    def nearness(self, at: datetime) -> float:
        """Return 1 inside the span, falling to 0 in a straight line over its margin on either side."""
        early = (self.start - at) if self.start is not None and at < self.start else timedelta()
        late = (at - self.end) if self.end is not None and at >= self.end else timedelta()
        return max(0.0, 1 - max(early, late) / self.margin())


def unit(moment: datetime, grain: Grain, text: str = "") -> Span:
    """Return the calendar day, week (from Monday), month, season, year or decade that a moment lies in."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if grain == "week":
        start = day - timedelta(days=day.weekday())
        return Span(start, start + timedelta(days=7), grain, text)
    if grain == "day":
        return Span(day, day + _DAY, grain, text)
    first = day.replace(day=1)
    if grain == "month":
        return Span(first, months_on(first, 1), grain, text)
    if grain == "season":
        start = months_on(first, -(first.month % 3))
        return Span(start, months_on(start, 3), grain, text)
    years = 10 if grain == "decade" else 1
    start = first.replace(year=first.year - first.year % years, month=1)
    return Span(start, months_on(start, 12 * years), grain, text)


def season(name: str, year: int, text: str = "") -> Span:
    """Return a season; the winter of a year begins in its December."""
    start = datetime(year, SEASONS[name], 1, tzinfo=UTC)
    return Span(start, months_on(start, 3), "season", text)


def months_on(moment: datetime, months: int) -> datetime:
    """Return the same day so many months later (or earlier), the month's last day where it is shorter."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year < MAXYEAR:
        return _LAST if year > 1 else _FIRST
    first = moment.replace(year=year, month=month + 1, day=1)
    following = first + timedelta(days=31)
    last = (following.replace(day=1) - _DAY).day
    return first.replace(day=min(moment.day, last))


def third(span: Span, which: Literal["early", "mid", "late"]) -> Span:
    """Return the first, middle or last third of a span that has both ends."""
    if span.start is None or span.end is None:
        return span
    step = (span.end - span.start) / 3
    start = span.start + ("early", "mid", "late").index(which) * step
    return Span(start, start + step, "stretch", span.text)


def joined(first: Span, last: Span) -> Span:
    """Return the stretch from the beginning of one span to the end of another."""
    if first.start is not None and last.end is not None and first.start > last.end:
        first, last = last, first
    return Span(first.start, last.end, "stretch", f"{first.text} {last.text}")
