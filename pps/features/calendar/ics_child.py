"""Reading ICS texts in a child process, which is killed when it takes too long.

A recurrence rule can make the library search without end for the next time.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from datetime import datetime
from threading import Timer
from zoneinfo import ZoneInfo

from pps.records.agenda import Agenda, Busy

READ_S = 15.0
"""Longest time for one text. 10,000 recurring events take half of it on a loaded machine."""


async def read_apart(
    text: str, source: str, start: datetime, end: datetime, zone: ZoneInfo
) -> Agenda:
    """Run ``read_ics`` in a child process; a crash there becomes a problem of the agenda.

    Raises:
        TimeoutError: It took longer than ``READ_S``.
    """
    arguments = [text, source, start.isoformat(), end.isoformat(), zone.key, READ_S]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __spec__.name, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(READ_S):
            output, _ = await process.communicate(json.dumps(arguments).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    if process.returncode:
        return Agenda(problems=(f"{source}: could not be read, its events are not counted",))
    events, problems = json.loads(output)
    busy = (
        Busy(datetime.fromisoformat(begin), datetime.fromisoformat(stop), all_day, title)
        for begin, stop, all_day, title in events
    )
    return Agenda(tuple(busy), tuple(problems))


def main() -> None:
    """Read the arguments as JSON from standard input and write the agenda as JSON."""
    # Imported here alone, because its library would add a tenth to a server's start.
    from pps.features.calendar.ics import read_ics

    text, source, start, end, key, most_s = json.load(sys.stdin.buffer)
    last = Timer(most_s, os._exit, (1,))  # in case the parent died and cannot kill this process
    last.daemon = True
    last.start()
    zone = ZoneInfo(key)
    agenda = read_ics(
        text,
        source,
        datetime.fromisoformat(start).astimezone(zone),
        datetime.fromisoformat(end).astimezone(zone),
        zone,
    )
    events = [
        (event.start.isoformat(), event.end.isoformat(), event.all_day, event.title)
        for event in agenda.events
    ]
    sys.stdout.write(json.dumps([events, agenda.problems]))


if __name__ == "__main__":
    main()
