"""Times are aware UTC, intervals half-open; spans are what "in May 2023" or "last spring" covers.

A time is an instant, or a calendar day, month or year that was named without a time of day. A
``CoarseTime`` is the second kind: a ``datetime`` at the midnight in UTC that begins it, with its
precision. It has no zone, so it is the same date wherever it is read. To compare one with an
instant, use ``interval`` (as a stretch of instants in a zone) or ``has_begun`` (against the wall
clock of a reference time); to show any time, use ``shown``.

A person's zone travels in the ``tzinfo`` of reference times ("now" of a question, the time of a
turn, the ends of a filter): their wall clock is what dates are compared with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any, Literal, TypeAlias

from pps.core.errors import InvalidRequest

Precision: TypeAlias = Literal["instant", "day", "month", "year"]
Grain: TypeAlias = Literal["day", "week", "month", "season", "year", "decade", "stretch"]

_LEAST_MARGIN = timedelta(days=2)
_DAY = timedelta(days=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each meteorological season of the northern hemisphere; each lasts three."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MICROS = 86_400_000_000

_COARSE_TEXT = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
_COARSE_FORMATS: dict[Precision, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_GRAIN_PRECISIONS: dict[Grain, Precision] = {
    "month": "month",
    "season": "month",
    "year": "year",
    "decade": "year",
}


class CoarseTime(datetime):
    """A calendar day, month or year: the midnight in UTC that begins it, and how precise it is.

    It compares, sorts and is stored as that instant. What is computed from it (``+``, ``replace``,
    ``astimezone`` to another zone) is a plain ``datetime``: a time of day is no date. ``micros``
    and back is the caller's to mend with ``with_precision``.
    """

    __slots__ = ("precision",)
    precision: Precision

    def __new__(  # pyright: ignore[reportInconsistentConstructor]
        cls, *parts: Any, **more: Any
    ) -> datetime:
        """Return a plain datetime: arithmetic on a subclass calls this.

        Use ``coarse`` to make one.
        """
        return datetime(*parts, **more)  # noqa: DTZ001 - as it is given

    def replace(self, *parts: Any, **more: Any) -> datetime:
        return plain(self).replace(*parts, **more)

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return coarse, (date(self.year, self.month, self.day), self.precision)


def coarse(day: date, precision: Precision = "day") -> CoarseTime:
    """Return the day, month or year that a date lies in.

    A ``precision`` of ``instant`` is refused.
    """
    if precision == "instant":
        raise ValueError("an instant is no date")
    month = 1 if precision == "year" else day.month
    number = day.day if precision == "day" else 1
    made = datetime.__new__(CoarseTime, day.year, month, number, tzinfo=UTC)
    made.precision = precision
    return made


def precision_of(moment: datetime) -> Precision:
    """Return how precise a time is; any datetime that is no ``CoarseTime`` is an instant."""
    return moment.precision if isinstance(moment, CoarseTime) else "instant"


def is_midnight(moment: datetime) -> bool:
    """Tell whether a time is exactly midnight in UTC, as dates without a precision are stored."""
    return micros(moment) % _DAY_MICROS == 0


def with_precision(moment: datetime, precision: str = "") -> datetime:
    """Return a stored instant with its stored precision.

    An unknown one goes by the rule of old homes.

    Before precisions were stored, a date was kept as midnight in UTC and so shown: such a time is
    that day.
    """
    moment = plain(moment)
    if precision == "instant" or not is_midnight(moment):
        return moment
    known = precision if precision in _COARSE_FORMATS else "day"
    return coarse(moment.astimezone(UTC).date(), known)


def plain(moment: datetime) -> datetime:
    """Return the instant alone, as a datetime that drivers of databases know."""
    if not isinstance(moment, CoarseTime):
        return moment
    return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)


def interval(moment: datetime, zone: tzinfo = UTC) -> tuple[datetime, datetime]:
    """Return the half-open stretch of instants, in UTC, that a time covers in a zone.

    A day of Berlin in March has 23 to 25 hours; an instant begins and ends in itself.
    """
    if not isinstance(moment, CoarseTime):
        return moment, moment
    months = {"day": 0, "month": 1, "year": 12}[moment.precision]
    first = plain(moment)
    after = months_on(first, months) if months else later(first, _DAY)
    return at_wall(first, zone), at_wall(after, zone)


def wall(moment: datetime) -> datetime:
    """Return what the clock on the wall shows at a time in its own zone, as if that were UTC."""
    return plain(moment).replace(tzinfo=UTC, fold=0)


def wall_day(moment: datetime) -> datetime:
    """Return the day that a time falls on in its own zone, as its midnight in UTC."""
    return wall(moment).replace(hour=0, minute=0, second=0, microsecond=0)


def at_wall(clock: datetime, zone: tzinfo) -> datetime:
    """Return the instant in UTC at which a zone's clock shows this; the inverse of ``wall``.

    Of two such instants (the clock was set back) it is the first; where there is none (it was set
    forward), the one at which it would have been: midnight in a night without one is the first
    moment of that day.
    """
    if clock in (_FIRST, _LAST):
        return clock
    try:
        return clock.replace(tzinfo=zone, fold=0).astimezone(UTC)
    except OverflowError:
        return _FIRST if clock.year == 1 else _LAST


def in_zone(moment: datetime | date, zone: tzinfo, field: str = "time") -> datetime:
    """Return a reference time in a person's zone; a date is its first instant there.

    Raises:
        InvalidRequest: It lies beyond the years 1 to 9999 of UTC.
    """
    moment = zoned(moment, zone, field)
    if isinstance(moment, CoarseTime):
        moment, _ = interval(moment, zone)
    try:
        return moment.astimezone(zone)
    except OverflowError:  # the first or the last moment that there is
        return moment


def has_begun(moment: datetime, at: datetime) -> bool:
    """Tell whether a time has come at a reference time.

    A date comes at midnight of ``at``'s zone.
    """
    return moment <= (wall(at) if isinstance(moment, CoarseTime) else at)


def begins_within(moment: datetime, since: datetime, until: datetime) -> bool:
    """Tell whether a time begins in ``[since, until)``; a date counts on their wall clock."""
    if isinstance(moment, CoarseTime):
        return wall_day(since) <= moment < wall(until)
    return since <= moment < until


def shown(moment: datetime, zone: tzinfo = UTC) -> str:
    """Return a time for readers: an instant to the minute in a zone, a date unchanged."""
    if isinstance(moment, CoarseTime):
        return moment.strftime(_COARSE_FORMATS[moment.precision]).zfill(4)
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def shown_day(moment: datetime, zone: tzinfo = UTC) -> str:
    """Return the day that a time falls on in a zone; a date as ``shown`` has it."""
    return shown(moment, zone)[:10]


def coarse_text(moment: datetime) -> str:
    """Return ISO 8601 that ``read_moment`` reads with its precision: ``2026-03`` for a month."""
    return shown(moment) if isinstance(moment, CoarseTime) else iso(moment)


class _StoredTime:
    """Pydantic's part of ``Time``; nothing else here knows of Pydantic."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            _read_stored,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(
                coarse_text, when_used="json"
            ),
        )


Time: TypeAlias = Annotated[datetime, _StoredTime()]
"""A time in a value that is stored as JSON: its text tells its precision (``coarse_text``)."""


def _read_stored(value: object) -> object:
    if not isinstance(value, str):
        return value
    moment = parse(value)
    # JSON of before precisions had no fraction of a second at midnight, which stood for the day.
    return with_precision(moment) if value.endswith("T00:00:00Z") else moment


@dataclass(frozen=True, slots=True)
class RunningMark:
    """A running time: seconds, and the id of the clock that counts them.

    Only marks of one clock compare.
    """

    clock: str
    seconds: float


def now() -> datetime:
    return datetime.now(UTC)


def utc(moment: datetime, field: str = "time") -> datetime:
    """Return an aware time in UTC, a date as it is.

    A naive one is refused, since its zone is a guess.
    """
    if moment.tzinfo is None:
        raise InvalidRequest(field, "must carry a time zone, such as 2026-01-31T09:00:00Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest(field, "must be in the years 1 to 9999 of UTC") from None


def zoned(moment: datetime | date, zone: tzinfo, field: str = "time") -> datetime:
    """Return a caller's time as an aware one: a naive one is of ``zone``, a ``date`` is that day.

    Raises:
        InvalidRequest: It lies beyond the years 1 to 9999 of UTC.
    """
    if not isinstance(moment, datetime):
        return coarse(moment)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    utc(moment, field)
    return moment


def offset_of(moment: datetime) -> int | None:
    """Return the seconds east of UTC that a time was given with.

    None for a date, and for UTC itself.

    Machines note times in UTC, as ``Z`` or ``+00:00``, wherever the person is: that tells nothing
    of their clock.
    """
    offset = moment.utcoffset()
    if isinstance(moment, CoarseTime) or not offset:
        return None
    return int(offset.total_seconds())


def later(moment: datetime, by: timedelta) -> datetime:
    """Return a moment so much later, or earlier.

    The last or the first that there is, where that lies beyond.
    """
    try:
        return moment + by
    except OverflowError:
        return _LAST if by > timedelta() else _FIRST


def read_moment(text: str, zone: tzinfo | None = UTC, field: str = "time") -> datetime:
    """Return the aware time of an ISO 8601 text, with its own offset or that of ``zone``.

    Without a ``zone`` such a time stays naive, for who knows the zone.

    A date alone (``2026-03-10``, ``2026-03``, ``2026``) is a ``CoarseTime``.

    Raises:
        InvalidRequest: It is no such text, or lies beyond the years 1 to 9999 of UTC.
    """
    text = text.strip()
    try:
        match = _COARSE_TEXT.fullmatch(text)
        if match:
            year, month, day = match.groups()
            precision: Precision = "day" if day else "month" if month else "year"
            return coarse(date(int(year), int(month or 1), int(day or 1)), precision)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(
            field, "must be ISO 8601, such as 2026-01-31 or 2026-01-31T09:00:00Z"
        ) from None
    if len(text) <= len("2026-W05-6"):  # other forms of a date alone
        return coarse(moment.date())
    return moment if zone is None and moment.tzinfo is None else zoned(moment, zone or UTC, field)


def read_imported(text: str) -> datetime:
    """Return a time of a file as ``read_moment`` does, but naive if it has no zone.

    An export of before precisions wrote a day as its midnight in UTC, to the microsecond.
    """
    moment = read_moment(text, None)
    return with_precision(moment) if text.endswith("T00:00:00.000000Z") else moment


def export_text(moment: datetime, utc_offset_s: int | None = None) -> str:
    """Return ISO 8601 that ``read_imported`` reads back: with the offset, or in UTC.

    A date as that.
    """
    if isinstance(moment, CoarseTime):
        return shown(moment)
    if utc_offset_s is not None:
        return moment.astimezone(timezone(timedelta(seconds=utc_offset_s))).isoformat(
            timespec="microseconds"
        )
    return iso(moment).replace("T00:00:00.000000Z", "T00:00:00Z")


def parse(text: str, field: str = "time") -> datetime:
    """Return the time of an ISO 8601 text in UTC, a date alone as a ``CoarseTime``.

    One without a zone is refused.
    """
    return utc(read_moment(text, None, field), field)


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
    """A stretch of time, half-open ``[start, end)``, aware, in ``zone``.

    None is an end that is not named.

    Attributes:
        grain: How exactly it was named: ``week`` for "last week", ``stretch`` for one with its own
            ends.
        text: The words that name it.
        zone: Whose days it is made of.
    """

    start: datetime | None
    end: datetime | None
    grain: Grain
    text: str = ""
    zone: tzinfo = UTC

    def began(self) -> CoarseTime | None:
        """Return its first day, month or year, as the start of a fact that was said of the span.

        "Yesterday" is a day, "in March" and "last spring" begin with a month, "in 2019" with a
        year.
        """
        if self.start is None:
            return None
        first = self.start.astimezone(self.zone).date()
        return coarse(first, _GRAIN_PRECISIONS.get(self.grain, "day"))

    def in_zone(self, zone: tzinfo) -> Span:
        """Return the span whose ends stand on this span's wall clocks, as instants of a zone."""
        start = None if self.start is None else in_zone(at_wall(self.start, zone), zone)
        end = None if self.end is None else in_zone(at_wall(self.end, zone), zone)
        return Span(start, end, self.grain, self.text, zone)

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
        """Return 1 inside the span, falling linearly to 0 over its margin on either side."""
        early = (self.start - at) if self.start is not None and at < self.start else timedelta()
        late = (at - self.end) if self.end is not None and at >= self.end else timedelta()
        return max(0.0, 1 - max(early, late) / self.margin())


def unit(moment: datetime, grain: Grain, text: str = "") -> Span:
    """Return the day, week (from Monday), month, season, year or decade of a moment."""
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
    """Return the same day some months later or earlier, at most the month's last day."""
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
