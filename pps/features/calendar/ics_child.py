"""Reading ICS texts in a process of its own, which is ended when it takes too long: a rule may never yield a time."""

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
"""Most seconds that one text takes.

10,000 events that recur take half of it on a loaded machine.
"""


async def read_apart(
    text: str, source: str, start: datetime, end: datetime, zone: ZoneInfo
) -> Agenda:
    """Return what ``read_ics`` returns, or that the text could not be read.

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
        Busy(datetime.fromisoformat(a), datetime.fromisoformat(b), days, title)
        for a, b, days, title in events
    )
    return Agenda(tuple(busy), tuple(problems))


def main() -> None:
    """Read what is asked from the standard input and write what was found to the standard output."""
    from pps.features.calendar.ics import (
        read_ics,  # its library takes a tenth of a server's start, and is needed here alone
    )

    text, source, start, end, key, most_s = json.load(sys.stdin.buffer)
    last = Timer(most_s, os._exit, (1,))  # when the parent is gone and ends it no more
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
