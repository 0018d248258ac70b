"""Normalisation of the lines of ICS events to RFC 5545, as the library requires.

Outlook uses Windows' names of zones, Thunderbird and Evolution put a prefix before the IANA name,
and others write "GMT+0100". UNTIL comes as a date, in UTC or in local time whatever type DTSTART
has. Rules have empty parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tzlocal.windows_tz import win_tz

_LINE = re.compile(r"^([A-Za-z-]+)((?:;[^:\";]+(?:=(?:\"[^\"]*\"|[^:;\"]*))?)*):(.*)$")
_PARAMETER = re.compile(r";([^=;:]+)=(\"[^\"]*\"|[^:;\"]*)")
_OFFSET = re.compile(r"(?:GMT|UTC)?\s*([+-])(\d{1,2}):?(\d{2})?", re.IGNORECASE)
_SHOWN_ZONE = re.compile(r"\((?:GMT|UTC)([+-]\d{1,2}:\d{2})?\)\s*(.+)", re.IGNORECASE)
"""A zone in Outlook's display form: "(UTC+01:00) Amsterdam, Berlin"."""
_UNQUOTED = re.compile(
    r"^([A-Z-]+(?:;[^:\"]*)?;TZID=)([^\":;]*:[^\"]*):((?:\d{8}(?:T\d{6}Z?)?,?)+)$", re.IGNORECASE
)
"""A TZID with a colon that should have been quoted: "TZID=GMT+01:00:20260324T090000"."""
_ZONED = frozenset(("DTSTART", "DTEND", "RDATE", "EXDATE", "RECURRENCE-ID"))
_WINDOWS = {name.casefold(): zone for name, zone in win_tz.items()}


@dataclass(frozen=True, slots=True)
class Property:
    """One property of an event: ``NAME;PARAMETER=value:value``."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    value: str

    def parameter(self, name: str) -> str:
        """Return a parameter's value without quotes, or an empty text."""
        return next((value for key, value in self.parameters if key.upper() == name), "")

    def without(self, *names: str) -> Property:
        parameters = tuple(pair for pair in self.parameters if pair[0].upper() not in names)
        return replace(self, parameters=parameters)

    def text(self) -> str:
        quoted = (
            f";{key}={chr(34) + value + chr(34) if set(value) & set(':;,') else value}"
            for key, value in self.parameters
        )
        return f"{self.name}{''.join(quoted)}:{self.value}"


def read_property(line: str) -> Property | None:
    """Parse an unfolded line; None if it is no property."""
    match = _LINE.match(_UNQUOTED.sub(r'\1"\2":\3', line))
    if match is None:
        return None
    parameters = tuple(
        (key.strip(), value.strip('"')) for key, value in _PARAMETER.findall(match[2])
    )
    return Property(match[1].upper(), parameters, match[3].strip())


@cache
def _iana_names() -> dict[str, str]:
    """Return lower-case name → name for all zones."""
    return {name.lower(): name for name in available_timezones()}


@cache
def _iana_cities() -> dict[str, list[str]]:
    """Return lower-case city → the zones named after it."""
    cities: dict[str, list[str]] = {}
    for name in sorted(available_timezones()):
        cities.setdefault(name.rsplit("/", 1)[-1].replace("_", " ").lower(), []).append(name)
    return cities


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo | None:
    """Return the time zone of a TZID, or None if it is unknown.

    Known are IANA names in any case, with or without a prefix such as "/mozilla.org/20050126_1/",
    Windows' names, Outlook's display names ("(UTC+01:00) Amsterdam, Berlin"), and offsets such as
    "GMT+0100".
    """
    plain = name.strip().strip('"')
    parts = [part for part in plain.split("/") if part]
    for start in range(len(parts)):
        candidate = "/".join(parts[start:]).lower()
        if candidate in _iana_names():
            return ZoneInfo(_iana_names()[candidate])
    windows_zone = _WINDOWS.get(plain.casefold())
    if windows_zone:
        return ZoneInfo(windows_zone)
    display_name = _SHOWN_ZONE.fullmatch(plain.replace("\\,", ","))
    if display_name:
        return _zone_of_cities(display_name[1] or "+00:00", display_name[2].split(","))
    offset = _OFFSET.fullmatch(plain)
    if offset and int(offset[2]) <= 14:
        away = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(away if offset[1] == "+" else -away)
    return None


def _zone_of_cities(offset: str, cities: Sequence[str]) -> tzinfo | None:
    """Return the zone of the first city that has this offset in winter or summer.

    If no city has it, return the offset itself as a zone.
    """
    fixed = zone_named(f"UTC{offset}")
    winter, summer = (datetime(2026, month, 15, tzinfo=UTC) for month in (1, 7))
    for city in cities:
        for name in _iana_cities().get(city.strip().lower(), ()):
            zone = ZoneInfo(name)
            offsets = {moment.astimezone(zone).utcoffset() for moment in (winter, summer)}
            if fixed and fixed.utcoffset(None) in offsets:
                return zone
    return fixed


def normalised(
    lines: Sequence[str], own_zones: Collection[str], reader: tzinfo
) -> tuple[list[str], list[str]]:
    """Return an event's lines in the form of RFC 5545, and messages about guesses.

    Args:
        lines: The unfolded lines.
        own_zones: TZIDs that the file itself defines; they are left as they are.
        reader: Zone of times with an unknown TZID.
    """
    guessed: list[str] = []
    zoned: list[Property] = []
    for line in lines:
        each = read_property(line)
        if each is None:
            continue
        name = each.parameter("TZID") if each.name in _ZONED else ""
        if name and name not in own_zones:
            zone = zone_named(name)
            if zone is None:
                guessed.append(f"time zone {name[:60]!r} is unknown: read as your own")
            each = _in_zone(each, zone or reader)
        zoned.append(each)
    start = next((each for each in zoned if each.name == "DTSTART"), None)
    stop = next((each for each in zoned if each.name == "DTEND"), None)
    if start and stop and start.parameters == stop.parameters and stop.value < start.value:
        guessed.append("it ends before it begins: it takes no time")
    normal: list[Property] = []
    has_rule = False
    for each in zoned:
        if each.name == "RRULE":
            rule = _rule(each.value, start, reader)
            if rule:
                has_rule = True
                normal.append(replace(each, value=rule))
            elif each.value:
                guessed.append("a rule without FREQ is left out")
        else:
            normal.append(each)
    if start and not has_rule and any(each.name == "RDATE" for each in normal):
        normal.append(replace(start, name="RDATE"))  # RFC 5545 counts DTSTART as a time too
    return [each.text() for each in normal], guessed


def is_declined(lines: Sequence[str], owner: str) -> bool:
    """Return whether the calendar's owner declined an event.

    If the owner is not among the attendees, return whether all attendees declined.

    Args:
        lines: The event's unfolded lines.
        owner: The owner's address, or empty if the file does not state it.
    """
    answers: dict[str, bool] = {}
    for line in lines:
        each = read_property(line)
        if each and each.name == "ATTENDEE":
            address = each.value.lower().removeprefix("mailto:")
            answers[address] = each.parameter("PARTSTAT").upper() == "DECLINED"
    if owner.lower() in answers:
        return answers[owner.lower()]
    return bool(answers) and all(answers.values())


def _in_zone(each: Property, zone: tzinfo) -> Property:
    """Put a property's times into a zone, by its IANA name or, if it has none, as UTC."""
    plain = each.without("TZID")
    if isinstance(zone, ZoneInfo):
        return replace(plain, parameters=(*plain.parameters, ("TZID", zone.key)))
    values = [_to_utc(value, zone) for value in each.value.split(",")]
    return replace(plain, value=",".join(values))


def _to_utc(value: str, zone: tzinfo) -> str:
    try:
        local = datetime.strptime(value.strip(), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - of the zone
    except ValueError:
        return value
    return f"{local.replace(tzinfo=zone).astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _rule(value: str, start: Property | None, reader: tzinfo) -> str:
    """Return a rule without empty parts and with UNTIL in the type that DTSTART requires.

    Return an empty text if it has no FREQ.
    """
    parts = [part.split("=", 1) for part in value.split(";") if "=" in part]
    rule = {key.strip().upper(): text.strip().upper() for key, text in parts if text.strip()}
    if "FREQ" not in rule:
        return ""
    if start and "UNTIL" in rule:
        rule["UNTIL"] = _until(rule["UNTIL"], start, reader)
    return ";".join(f"{key}={text}" for key, text in rule.items())


def _until(until: str, start: Property, reader: tzinfo) -> str:
    """Return UNTIL in the type of DTSTART: a date, a time in UTC, or a floating time."""
    if start.parameter("VALUE").upper() == "DATE" or len(start.value) == 8:
        return until[:8]
    name = start.parameter("TZID")
    zone = (zone_named(name) if name else None) or (UTC if start.value.endswith("Z") else reader)
    is_floating = not name and not start.value.endswith("Z")
    day_only = len(until) == 8
    stamp = f"{until}T235959" if day_only else until.rstrip("Z")
    try:
        moment = datetime.strptime(stamp, "%Y%m%dT%H%M%S")  # noqa: DTZ007 - its zone follows
    except ValueError:
        return until
    moment = moment.replace(tzinfo=UTC if until.endswith("Z") else zone)
    if is_floating:
        return f"{moment.astimezone(reader):%Y%m%dT%H%M%S}"
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
