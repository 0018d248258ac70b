"""The disk of the data folder is full while turns come in: what was acknowledged stays, and goes on when there is room.

The disk is a tmpfs of a few MiB. Mounting one takes rights: those of root, or a user namespace of one's own, in
which the server then runs; its files are seen through ``/proc/PID/root``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from pps.core.errors import StoreConflict, StoreUnavailable
from pps.link import Link, runfile
from tests.integration.surfaces.serving import clean_env

SIZE_MB = 160
PATIENCE_S = 90.0
_MOUNT = 'mount -t tmpfs -o size="$1"m tmpfs "$2" && exec "$3" -m pps serve'


@contextlib.contextmanager
def served_on_a_small_disk(home: Path) -> Iterator[tuple[Link, Path]]:
    """Run a server whose data folder is a small disk of its own; yield a link to it and its view of the folder."""
    home.mkdir(mode=0o700)
    env = clean_env(home, PPS_JOBS__FIRST_WAIT_S="0.1", PPS_JOBS__LONGEST_WAIT_S="1", PPS_JOBS__BREAKER_FAILURES="1")
    space = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    command = [*space, "sh", "-c", _MOUNT, "sh", str(SIZE_MB), str(home), sys.executable]
    with (home.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        inside = Path(f"/proc/{process.pid}/root{home}")
        try:
            deadline = time.monotonic() + 60
            while (run := runfile.read(inside)) is None:
                assert process.poll() is None, (home.parent / "server.log").read_text()[-2000:]
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield Link(run), inside
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()


def fill(inside: Path) -> Path:
    """Leave not a byte on the disk, about as fast as a real disk is filled: 200 MiB/s."""
    file = inside / "filler"
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0" * size)
                    time.sleep(0.005 if size == 1 << 20 else 0)
    return file


def tell(link: Link, number: int) -> bool:
    """Tell whether a turn was acknowledged."""
    facts = [{"subject": f"Person{number % 5}", "relation": "WENT_TO", "object": f"Place{number}"}]
    text = f"Turn {number}: " + "on and on and " * 200
    try:
        link.call("remember", "ana", {"content": text, "source_ref": f"t{number}", "wait": "journal", "facts": facts})
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
        link.admin("entity.create", {"name": "ana"})
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
        examined = list_of(link.work("doctor", {"entity": "ana"}))
        assert examined["problems"] == []
        assert all(tell(link, number) for number in refused)
        until_idle_and_well(link)
        assert asked(link, "stats")["turns"] == len(acknowledged | refused)


def list_of(reports: Any) -> dict[str, Any]:
    """Run work to its end and return its result."""
    while True:
        try:
            next(reports)
        except StopIteration as ended:
            return cast("dict[str, Any]", ended.value)
