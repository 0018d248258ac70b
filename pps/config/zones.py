"""Time zones of the IANA database: names, suggestions for wrong names, and the machine's zone."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from pps.core.user_files import read_text

_FOLDERS = ("posix/", "right/", "Etc/", "SystemV/")
"""Of names that nobody lives by: they are never suggested."""
_LOCALTIME = Path("/etc/localtime")
_TIMEZONE = Path("/etc/timezone")


@cache
def known_zones() -> frozenset[str]:
    """Return the names of all zones.

    Reading their folder takes a tenth of a second, once a process.
    """
    return frozenset(available_timezones())


def checked_zone(name: str) -> str:
    """Return a zone's name.

    Raises:
        ValueError: There is no such zone; the message suggests the nearest.
    """
    if name in known_zones():
        return name
    near = nearest_zone(name)
    suggested = f"; did you mean {near!r}?" if near else ""
    raise ValueError(
        f"must be a time zone of the IANA database, such as 'Europe/Lisbon'{suggested}"
    )


def nearest_zone(name: str) -> str:
    """Return the zone that a wrong name (``berlin``, ``Europe/Berlyn``) most likely means.

    Return an empty text if none is similar.
    """
    wanted = name.strip().replace(" ", "_").casefold()
    names = {
        known_zone.casefold(): known_zone
        for known_zone in known_zones()
        if not known_zone.startswith(_FOLDERS)
    }
    if wanted in names:
        return names[wanted]
    places = {name.rpartition("/")[2]: name for name in sorted(names, reverse=True)}
    place = wanted.rpartition("/")[2]
    for choices in (names, places):
        matches = difflib.get_close_matches(wanted, list(choices), 1, cutoff=0.75)
        if matches:
            return names[places.get(matches[0], matches[0])]
    matches = difflib.get_close_matches(place, list(places), 1, cutoff=0.75)
    if matches:
        return names[places[matches[0]]]
    return ""


def zone_of(name: str) -> tzinfo:
    """Return the zone of a checked name; UTC is Python's own."""
    return UTC if name == "UTC" else ZoneInfo(name)


def zone_name(zone: tzinfo) -> str:
    """Return the name of a zone that ``zone_of`` returned."""
    return zone.key if isinstance(zone, ZoneInfo) else "UTC"


def machine_zone(env: Mapping[str, str] | None = None) -> str:
    """Return the IANA name of the zone that this machine is in: of ``$TZ``, else of its files.

    UTC when none tells.
    """
    env = os.environ if env is None else env
    candidates = (env.get("TZ", "").removeprefix(":"), _linked(), _written())
    return next((name for name in map(_zone_name, candidates) if name), "UTC")


def _zone_name(text: str) -> str:
    """Return the name in a text, or in the path of a zone's file; empty when there is none."""
    name = text.strip().rpartition("zoneinfo/")[2]
    for folder in ("posix/", "right/"):
        name = name.removeprefix(folder)
    return name if name in known_zones() and name not in ("localtime", "posixrules") else ""


def _linked() -> str:
    try:
        return str(_LOCALTIME.readlink())
    except OSError:
        return ""


def _written() -> str:
    try:
        return read_text(_TIMEZONE, encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
