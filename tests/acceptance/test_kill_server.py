"""The server is killed at random moments while it remembers: nothing acknowledged is missing, nothing is doubled.

The long form kills fifty times.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from pps.core.errors import PPSError
from pps.server import runfile
from pps.server.link import Link, connect, stop
from tests.sampling import sized
from tests.waiting import wait_until

KILLS = sized(2, 50)
CLIENTS = 3
ENTITY = "ana"


@dataclass(slots=True)
class Ledger:
    """What the server acknowledged: source_ref → turn id, and what was asked without an answer."""

    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    asked: set[str] = field(default_factory=set[str])
    numbers: count[int] = field(default_factory=count)
    lock: threading.Lock = field(default_factory=threading.Lock)


def data(link: Link, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", link.call(verb, ENTITY, arguments)["data"])


def remember_until_dead(link: Link, ledger: Ledger, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a reproducible choice
    while True:
        with ledger.lock:
            number = next(ledger.numbers)
        ref = f"turn-{number}"
        ledger.asked.add(ref)
        arguments = {
            "content": f"Turn {number}: Person{number % 40} went to Place{number}.",
            "source_ref": ref,
            "wait": chance.choice(["journal", "done"]),
            "facts": [
                {
                    "subject": f"Person{number % 40}",
                    "relation": "WENT_TO",
                    "object": f"Place{number}",
                }
            ],
        }
        try:
            receipt = data(link, "remember", arguments)
        except PPSError:
            return
        ledger.acknowledged[ref] = str(receipt["turn_id"])


def killed_once(home: Path, ledger: Ledger, seed: int) -> None:
    link = connect(home)
    chance = random.Random(seed)  # noqa: S311 - a reproducible choice
    clients = [
        threading.Thread(target=remember_until_dead, args=(link, ledger, seed * 10 + n))
        for n in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    if chance.random() < 0.8:  # else at any moment, opening the memory included
        wait_for_acknowledgement(ledger, len(ledger.acknowledged))
    time.sleep(chance.uniform(0.0, 0.8))
    os.kill(link.run.pid, signal.SIGKILL)
    for client in clients:
        client.join(timeout=60)
        assert not client.is_alive()


def wait_for_acknowledgement(ledger: Ledger, before: int) -> None:
    wait_until(lambda: len(ledger.acknowledged) > before, pause_s=0.005)


def finished(link: Link) -> dict[str, Any]:
    stats: dict[str, Any] = {}

    def is_idle() -> bool:
        stats.update(data(link, "stats", {}))
        return not (stats["unfinished_jobs"] or stats["index_lag"])

    wait_until(is_idle, timeout_s=600, pause_s=0.1, state=lambda: stats)
    return stats


@pytest.mark.timeout(1200)
def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PPS_HOME", str(home))
    monkeypatch.setenv("PPS_EMBEDDER__NAME", "hash")
    monkeypatch.setenv("PPS_SERVER__PORT", "0")
    connect(home).call("entity_create", "", {"name": ENTITY})
    ledger = Ledger()
    for seed in itertools.count():
        if seed >= KILLS and len(ledger.acknowledged) >= KILLS:
            break
        killed_once(home, ledger, seed)
    link = connect(home)
    try:
        stats = finished(link)
        check(link, ledger, stats)
    finally:
        stop(home)
    assert runfile.read(home) is None


def check(link: Link, ledger: Ledger, stats: dict[str, Any]) -> None:
    assert len(ledger.acknowledged) >= KILLS, "too few turns were acknowledged to prove anything"
    ids = list(ledger.acknowledged.values())
    assert len(set(ids)) == len(ids)
    for start in range(0, len(ids), 100):
        wanted = ids[start : start + 100]
        got = data(link, "get", {"ids": wanted})["items"]
        assert [item["id"] for item in got] == wanted
    turns = stats["turns"]
    assert len(ids) <= turns <= len(ledger.asked)
    assert (stats["episodes"], stats["facts"]) == (turns, turns)
    indexed = stats["text_indexed"]
    assert (indexed["episodes"], indexed["facts"], indexed["nodes"]) == (
        turns,
        turns,
        stats["nodes"],
    )
    assert stats["vector_indexed"] == stats["text_indexed"]
