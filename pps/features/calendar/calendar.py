"""Calendars: reading the ICS files and URLs of an entity's settings for a period of time."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import httpx
from cachetools import LRUCache

from pps.config.settings import CalendarSettings, Settings
from pps.core.text import first_line
from pps.core.time import now
from pps.core.user_files import open_regular
from pps.features.calendar.ics_child import READ_S, read_apart
from pps.records.agenda import Agenda
from pps.records.work_hours import WorkHours

MOST_BYTES = 10_000_000
"""Largest size of one file or URL."""
FETCH_S = 5.0
REFRESH_S = 900.0
"""How long a fetched calendar is used, and how long a slow one is not read again."""
RETRY_S = 60.0
"""How long a URL that failed is not fetched again."""
_MOST_HOPS = 3
_MOST_READINGS = 64
_EMBEDDED_IPV4 = (ip_network("64:ff9b::/96"), ip_network("2002::/16"))
"""IPv6 networks that embed IPv4 addresses, which may belong to this machine's network."""

Address = IPv4Address | IPv6Address
Reachable = Callable[[Address], bool]


class Calendars(WorkHours):
    """The calendars that one entity's settings name.

    Args:
        base: The folder for relative paths of files.
        reachable: Returns whether an address may be connected to; ``is_public`` by default. Tests
            pass their own, because their server is local.
        zone: The entity's zone, used if the calendars' settings name none.
    """

    def __init__(
        self,
        settings: CalendarSettings,
        base: Path,
        reachable: Reachable | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        super().__init__(settings, zone)
        self._base = base
        self._reachable = reachable or is_public
        self._fetched: dict[str, tuple[float, datetime, bytes]] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._readings: LRUCache[tuple[object, ...], Agenda] = LRUCache(_MOST_READINGS)
        self._slow: dict[str, tuple[object, float]] = {}

    @classmethod
    def of(
        cls, settings: Settings, own: Mapping[str, object], folder: Path, zone: tzinfo = UTC
    ) -> Calendars:
        """Return an entity's calendars: the installation's settings, overridden by its own.

        Relative paths of its own files start at its folder.
        """
        merged = CalendarSettings.model_validate({**settings.calendar.model_dump(), **own})
        return cls(merged, folder if "files" in own else settings.home, zone=zone)

    async def agenda(self, start: datetime, end: datetime) -> Agenda:
        """Return the events of all calendars in a period, and their problems.

        A calendar that cannot be read is reported as a problem, never as empty.
        """
        files = [self._of_file(path, start, end) for path in self._settings.files]
        urls = [
            self._of_url(number, secret.get_secret_value(), start, end)
            for number, secret in enumerate(self._settings.urls)
        ]
        agendas = await asyncio.gather(*files, *urls)
        events = sorted(
            (event for agenda in agendas for event in agenda.events),
            key=lambda event: (event.start, event.end),
        )
        return Agenda(
            tuple(events), tuple(problem for agenda in agendas for problem in agenda.problems)
        )

    async def _of_file(self, path: Path, start: datetime, end: datetime) -> Agenda:
        def load() -> tuple[tuple[object, ...], bytes]:
            place = self._base / path.expanduser()
            with open_regular(place) as file:
                state = os.fstat(file.fileno())
                body = file.read(MOST_BYTES + 1)
            size = max(state.st_size, len(body))
            return (place, state.st_mtime_ns, size), b"" if size > MOST_BYTES else body

        try:
            state, body = await asyncio.to_thread(load)
        except OSError as error:
            return Agenda(problems=(f"{path.name}: cannot be read ({error.strerror})",))
        if not body and state[-1]:
            return Agenda(problems=(f"{path.name}: is larger than {MOST_BYTES:,} bytes",))
        return await self._read(body, path.name, state, start, end)

    async def _of_url(self, number: int, url: str, start: datetime, end: datetime) -> Agenda:
        """Read a URL; if it cannot be fetched, use the last copy and report that as a problem."""
        name = f"urls[{number}]"
        known = self._fetched.get(url)
        moment = time.monotonic()
        problem = ""
        if known is None or moment - known[0] > REFRESH_S:
            tried = self._failed.get(url)
            if tried is None or moment - tried[0] > RETRY_S:
                try:
                    async with asyncio.timeout(FETCH_S):
                        body = await fetch(url, self._reachable)
                    known = self._fetched[url] = (moment, now(), body)
                    self._failed.pop(url, None)
                    tried = None
                except (
                    httpx.HTTPError,
                    httpx.InvalidURL,
                    OSError,
                    TimeoutError,
                    ValueError,
                ) as error:
                    tried = self._failed[url] = (
                        moment,
                        first_line(str(error)) or type(error).__name__,
                    )
            problem = tried[1] if tried else ""
        if known is None:
            return Agenda(
                problems=(f"{name}: could not be fetched ({problem}), its events are not counted",)
            )
        at = known[1]
        body = known[2]
        agenda = await self._read(body, name, (url, at), start, end)
        if not problem:
            return agenda
        stale = (
            f"{name}: could not be fetched ({problem}), its events are as of {at:%Y-%m-%d %H:%M} "
            "UTC"
        )
        return Agenda(agenda.events, (stale, *agenda.problems))

    async def _read(
        self, data: bytes, name: str, state: tuple[object, ...], start: datetime, end: datetime
    ) -> Agenda:
        """Read a calendar, or return the earlier reading of the same content and period."""
        key = (*state, start, end)
        reading = self._readings.get(key)
        if reading is None:
            slow = self._slow.get(name)
            too_long = Agenda(
                problems=(
                    f"{name}: takes longer than {READ_S:g} s to read, its events are not counted",
                )
            )
            if slow and slow[0] == state and time.monotonic() - slow[1] < REFRESH_S:
                return too_long
            try:
                text = data.decode("utf-8")
                broken = ()
            except UnicodeDecodeError as error:
                text = data.decode("utf-8", "replace")
                line = data[: error.start].count(10) + 1
                broken = (f"{name}:{line}: is not UTF-8",)
            try:
                read = await read_apart(text, name, start, end, self.zone)
            except TimeoutError:
                self._slow[name] = (state, time.monotonic())
                return too_long
            reading = Agenda(read.events, (*broken, *read.problems))
        self._readings[key] = reading
        return reading


def is_public(address: Address) -> bool:
    """Return whether an address is on the Internet: not local, private, multicast or reserved."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    if (
        not address.is_global
        or address.is_multicast
        or any(address in inner for inner in _EMBEDDED_IPV4)
    ):
        return False
    kind = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(kind, socket.SOCK_DGRAM) as own:
            own.bind((str(address), 0))  # only this machine's own can be bound
    except OSError:
        return True
    return False


async def fetch(url: str, reachable: Reachable) -> bytes:
    """Fetch a URL, connecting to exactly the address that was checked.

    Raises:
        ValueError: It is no http URL, is on this machine or its network, is too large, or redirects
            to another host.
        OSError, httpx.HTTPError: It cannot be reached.
    """
    target = httpx.URL(re.sub(r"^webcals?:", "https:", url.strip()))
    host = target.host
    for _ in range(_MOST_HOPS):
        if target.scheme not in ("http", "https") or not target.host:
            raise ValueError("is no http or https address")
        if target.host != host:
            raise ValueError("leads to another host")
        address = await _resolved(target, reachable)
        headers = {
            "Host": target.netloc.decode(),
            "Accept": "text/calendar",
            "Accept-Encoding": "identity",
        }
        # Connect to the address itself: a second lookup of the name could give another one.
        address_url = target.copy_with(host=str(address))
        options = {"sni_hostname": target.host}
        async with (
            httpx.AsyncClient(timeout=FETCH_S, trust_env=False, follow_redirects=False) as client,
            client.stream("GET", address_url, headers=headers, extensions=options) as answer,
        ):
            if answer.is_redirect:
                target = target.join(answer.headers["location"])
                continue
            if not answer.is_success:
                raise ValueError(f"answers {answer.status_code}")
            body = bytearray()
            async for piece in answer.aiter_bytes(65_536):
                body += piece
                if len(body) > MOST_BYTES:
                    raise ValueError(f"is larger than {MOST_BYTES:,} bytes")
            return bytes(body)
    raise ValueError("leads on and on")


async def _resolved(target: httpx.URL, reachable: Reachable) -> Address:
    port = target.port or (443 if target.scheme == "https" else 80)
    answers = await asyncio.get_running_loop().getaddrinfo(
        target.host, port, type=socket.SOCK_STREAM
    )
    addresses = [ip_address(str(answer[4][0]).partition("%")[0]) for answer in answers]
    if not addresses or not all(map(reachable, addresses)):
        raise ValueError("lies on this machine or its net")
    return addresses[0]
