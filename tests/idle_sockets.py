"""Measures what idle pages cost a server: ``python -m tests.idle_sockets`` opens 200 sockets that hear of one entity each."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.browser_session import page_of
from tests.integration.interfaces.serving import serving
from tests.room_socket import connected

_SOCKETS, _OF_A_SESSION = 200, 20
_WATCHED_S = 20.0


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "home") as served,
        contextlib.ExitStack() as stack,
    ):
        served.create("mira")
        server = psutil.Process(served.run.pid)
        page = page_of(served, "mira")
        for number in range(_SOCKETS):
            if number % _OF_A_SESSION == 0:
                page = page_of(served, "mira")
            socket = stack.enter_context(connected(page, max_queue=None))
            socket.send(json.dumps({"id": 1, "do": "subscribe", "entities": ["mira"]}))
            if number == 0:
                time.sleep(5)
                memory_before = server.memory_info().rss
                idle = _share(server)
        share, memory = _share(server), server.memory_info().rss - memory_before
    sys.stdout.write(
        f"1 socket {idle:.1%} of a core, {_SOCKETS} sockets {share:.1%}, "
        f"{memory / _SOCKETS / 1000:.0f} kB each\n"
    )


def _share(server: psutil.Process) -> float:
    """Return which part of a core a process takes, over some seconds."""
    before, began = sum(server.cpu_times()[:2]), time.monotonic()
    time.sleep(_WATCHED_S)
    return (sum(server.cpu_times()[:2]) - before) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
