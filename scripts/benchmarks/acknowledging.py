"""How soon a turn is acknowledged at the server's HTTP endpoint, with several clients at once."""

from __future__ import annotations

import json
import threading
import time as clock
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.generator import World
from benchmarks.latency import percentiles
from pps.config import Settings
from pps.core.errors import StoreError
from pps.server.link import Link, OwnerConnection, connect, stop

CLIENTS = 8
PACE = 10
"""Turns a second and client, where clients do not send as fast as they can."""


def acknowledged(settings: Settings, world: World, calls: int) -> dict[str, Any]:
    """Start a server on a throw-away folder, send it turns from 8 clients, and return the percentiles. Blocks.

    Once at ``PACE`` turns a second and client, once with every client sending as fast as it is answered, which
    tells what a full server takes. The server works on the turns meanwhile, as it does in life: its worker
    embeds and indexes what it has acknowledged. It has taken some turns in before the clock starts, so that it has
    loaded its models.
    """
    link = connect(settings.home)
    try:
        link.call("entity_create", "", {"name": "live", "store": settings.store})["data"]
        texts = [content for content, _ in world.turns(0, 2 * calls + CLIENTS)]
        _send(link, texts[:CLIENTS], wait="done")
        paced = _by_clients(link, texts[CLIENTS : CLIENTS + calls], 1 / PACE)
        started = clock.perf_counter()
        full = _by_clients(link, texts[CLIENTS + calls :])
        rate = round(len(full) / (clock.perf_counter() - started))
        return {
            "clients": CLIENTS,
            "turns_per_s_and_client": PACE,
            **percentiles(paced),
            "as_fast_as_answered": {"turns_per_s": rate, **percentiles(full)},
        }
    finally:
        stop(settings.home)


def _by_clients(link: Link, texts: Sequence[str], every_s: float = 0.0) -> list[float]:
    shares = [texts[number::CLIENTS] for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        begins = [
            number * every_s / CLIENTS for number in range(CLIENTS)
        ]  # they do not beat in time
        sent = pool.map(partial(_send, link, every_s=every_s), shares, begins)
        return [took for times in sent for took in times]


def _send(
    link: Link,
    texts: Sequence[str],
    begin_s: float = 0.0,
    *,
    every_s: float = 0.0,
    wait: str = "journal",
) -> list[float]:
    """Send turns one after another over one connection; return how long each took, in milliseconds.

    A turn has its moment, ``every_s`` after the one before. What is late because the one before was slow counts
    from its moment on, as it does for a client that had to wait.
    """
    connection = OwnerConnection(link.run, 60)
    headers = {
        **connection.owner_headers(),
        "Content-Type": "application/json",
        "PPS-Entity": "live",
    }
    session = f"client-{threading.get_ident()}"
    times: list[float] = []
    begun = clock.perf_counter() + begin_s
    try:
        for number, text in enumerate(texts):
            arguments = {"content": text, "session": session, "wait": wait}
            body = json.dumps(arguments)
            started = clock.perf_counter()
            if every_s:
                clock.sleep(max(0.0, begun + number * every_s - started))
                started = begun + number * every_s
            connection.request("POST", "/v1/remember", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            times.append((clock.perf_counter() - started) * 1000)
            if answer.status != 200:
                raise StoreError(f"the server answered {answer.status}: {said[:200]!r}")
    finally:
        connection.close()
    return times
