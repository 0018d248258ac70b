"""How soon a turn is acknowledged at the server's HTTP endpoint, with several clients at once."""

from __future__ import annotations

import http.client
import json
import threading
import time as clock
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pps.bench.generator import World
from pps.bench.latency import percentiles
from pps.config import Settings
from pps.core.errors import StoreError
from pps.link.client import Link
from pps.link.start import connect, stop

CLIENTS = 8


def acknowledged(settings: Settings, world: World, calls: int) -> dict[str, Any]:
    """Start a server on a throw-away folder, send it turns from 8 clients, and return the percentiles. Blocks.

    The server works on the turns meanwhile, as it does in life: its worker embeds and indexes what it has
    acknowledged.
    """
    link = connect(settings.home)
    try:
        link.admin("entity.create", {"name": "live", "store": settings.store})
        texts = [content for content, _ in world.turns(0, calls + CLIENTS)]
        _send(link, texts[:CLIENTS])
        return {"clients": CLIENTS, **percentiles(_by_clients(link, texts[CLIENTS:]))}
    finally:
        stop(settings.home)


def _by_clients(link: Link, texts: Sequence[str]) -> list[float]:
    shares = [texts[number::CLIENTS] for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        return [took for times in pool.map(partial(_send, link), shares) for took in times]


def _send(link: Link, texts: Sequence[str]) -> list[float]:
    """Send turns one after another over one connection; return how long each took, in milliseconds."""
    connection = http.client.HTTPConnection(link.run.address, link.run.port, timeout=60)
    headers = {"Authorization": f"Bearer {link.run.secret}", "Content-Type": "application/json"}
    session = f"client-{threading.get_ident()}"
    times: list[float] = []
    try:
        for text in texts:
            arguments = {"content": text, "session": session, "wait": "journal"}
            body = json.dumps({"entity": "live", "arguments": arguments})
            started = clock.perf_counter()
            connection.request("POST", "/owner/call/remember", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            times.append((clock.perf_counter() - started) * 1000)
            if answer.status != 200:
                raise StoreError(f"the server answered {answer.status}: {said[:200]!r}")
    finally:
        connection.close()
    return times
