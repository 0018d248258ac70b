"""The disk of the data folder is full while turns come in: what was acknowledged stays, and the rest goes on later."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, cast

import pytest

from pps.core.errors import StoreConflict, StoreUnavailable
from pps.server import Link
from tests.acceptance.small_disk import fill, served_on_a_small_disk, small_disk

PATIENCE_S = 240.0


def tell(link: Link, number: int) -> bool:
    """Tell whether a turn was acknowledged."""
    facts = [{"subject": f"Person{number % 5}", "relation": "WENT_TO", "object": f"Place{number}"}]
    text = f"Turn {number}: " + "on and on and " * 200
    try:
        link.call(
            "remember",
            "ana",
            {"content": text, "source_ref": f"t{number}", "wait": "journal", "facts": facts},
        )
    except (StoreUnavailable, StoreConflict):
        return False
    return True


def asked(link: Link, verb: str) -> dict[str, Any]:
    return cast("dict[str, Any]", link.call(verb, "ana", {})["data"])


def until_idle_and_well(link: Link) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        stats, health = asked(link, "ingestion_stats"), asked(link, "health")
        if health["ok"] and not (stats["queued"] + stats["running"] + stats["index_lag"]):
            return
        assert time.monotonic() < deadline, (stats, health)
        time.sleep(0.1)


@pytest.mark.timeout(300)
def test_a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing_else(tmp_path: Path) -> None:
    with served_on_a_small_disk(tmp_path / "home") as (link, inside):
        link.call("entity_create", "", {"name": "ana"})
        acknowledged = {number for number in range(20) if tell(link, number)}
        assert len(acknowledged) == 20
        filler = fill(inside)
        refused: set[int] = set()
        deadline = time.monotonic() + PATIENCE_S
        for number in range(20, 10_000):
            (acknowledged if tell(link, number) else refused).add(number)
            health = asked(link, "health")
            if len(refused) >= 3 and not health["ok"]:
                assert "disk is full" in json.dumps(health["problems"])
                break
            assert time.monotonic() < deadline, asked(link, "ingestion_stats")
        filler.unlink()
        until_idle_and_well(link)
        stats = asked(link, "stats")
        assert stats["turns"] == stats["episodes"] == stats["facts"] == len(acknowledged)
        examined = link.call("doctor", "", {"entity": "ana"})["data"]
        assert examined["problems"] == []
        assert all(tell(link, number) for number in refused)
        until_idle_and_well(link)
        assert asked(link, "stats")["turns"] == len(acknowledged | refused)


def test_a_forgetting_on_a_full_disk_is_refused_and_done_once_there_is_room(tmp_path: Path) -> None:
    with served_on_a_small_disk(tmp_path / "home") as (link, inside):
        link.call("entity_create", "", {"name": "ana"})
        assert all(tell(link, number) for number in range(3))
        until_idle_and_well(link)
        (turn, *_) = [hit["id"] for hit in found(link)]
        filler = fill(inside)
        for number in itertools.count(100):  # until there is no room in the log either
            if not tell(link, number):
                break
        with pytest.raises(StoreUnavailable, match="free some space"):
            link.call("forget", "ana", {"ids": [turn], "dry_run": False})
        assert turn in [hit["id"] for hit in found(link)], "refused, and nothing has changed"
        filler.unlink()
        gone = link.call("forget", "ana", {"ids": [turn], "dry_run": False})
        assert turn in cast("Any", gone["data"])["turns"]
        assert turn not in [hit["id"] for hit in found(link)]
        until_idle_and_well(link)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_restart_on_a_full_disk_what_is_there_is_read_and_nothing_is_lost(
    tmp_path: Path, end: signal.Signals
) -> None:
    with small_disk(tmp_path / "home") as disk:
        with disk.served(end=end) as link:
            link.call("entity_create", "", {"name": "ana"})
            link.call("entity_create", "", {"name": "ben"})  # nothing was ever asked of it
            assert all(tell(link, number) for number in range(5))
            until_idle_and_well(link)
        filler = fill(disk.inside)
        assert os.statvfs(disk.inside).f_bavail == 0
        acknowledged = 5
        for start in (100, 200):  # the second server has the room of the first, not more
            with disk.served() as link:
                check_reads(link)
                answers = [tell(link, number) for number in range(start, start + 100)]
                acknowledged += sum(answers)
                assert not answers[-1]
                with pytest.raises(StoreUnavailable, match="free some space"):
                    link.call("remember", "ana", {"content": "more and more " * 4_000})
                health = asked(link, "health")
                assert not health["ok"]
                assert "free some space" in json.dumps(health["problems"])
                check_reads(link)
            filler.unlink()
            filler = fill(disk.inside)
        filler.unlink()
        with disk.served() as link:
            until_idle_and_well(link)
            assert asked(link, "stats")["turns"] == acknowledged
            assert link.call("doctor", "", {"entity": "ana"})["data"]["problems"] == []
            assert tell(link, 1_000)
            until_idle_and_well(link)
            assert asked(link, "stats")["turns"] == acknowledged + 1


def check_reads(link: Link) -> None:
    """Ask in every way that agents read; none may be refused."""
    assert len(found(link)) >= 5
    ambient = link.call("ambient_recall", "ana", {"context": "Where did Person1 go?"})["text"]
    assert "\nShown: " in ambient
    started = {"context": "", "mode": "startup", "session": "s"}
    assert "\nShown: " in link.call("ambient_recall", "ana", started)["text"]
    assert asked(link, "timeline")["facts"]
    assert asked(link, "session_context") is not None
    assert asked(link, "turns_list")["turns"]
    assert asked(link, "stats")["turns"] >= 5
    assert link.call("recall", "ben", {"query": "anything"})["data"]["channels"] is not None


def found(link: Link) -> list[dict[str, Any]]:
    answer = link.call("recall", "ana", {"query": "Turn on and on", "channels": ["episodes"]})
    return cast("list[dict[str, Any]]", cast("Any", answer["data"])["channels"]["episodes"]["hits"])
