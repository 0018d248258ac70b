"""Acknowledged means on disk: fsyncs are counted, disks fail, and processes are killed.

How fsyncs are counted: SQLite calls the C library's ``fdatasync``; a small shim (``journal_disk.c``),
compiled here and preloaded into a subprocess, counts the completed calls on the memory's files and can
let them fail. That needs a C compiler and nothing else: no tracing rights, no special SQLite.
``kill -9`` shows that nothing depends on the process's own memory; only the counted fsync shows that
nothing depends on the machine's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.journal.journal import Journal
from tests.sampling import sized

GROUP = new_group()
SHIM = Path(__file__).with_name("journal_disk.c")

PRELUDE = """
import asyncio, ctypes, json, os, sys
from pathlib import Path
from pps.core.errors import PPSError
from pps.journal import JobPayload, TurnDraft
from pps.journal.journal import Journal

path, group = Path(sys.argv[1]), sys.argv[2]
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.fail(
            "counting fsyncs needs a C compiler: install gcc (Debian, Ubuntu: apt install gcc libc6-dev)"
        )
    library = tmp_path_factory.mktemp("shim") / "journal_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return library


def run(shim: Path, path: Path, body: str) -> dict[str, int | list[str]]:
    """Run a program on a journal behind the shim and return the JSON that it prints."""
    script = PRELUDE + "disk = ctypes.CDLL(None)\n" + body
    done = subprocess.run(
        [sys.executable, "-c", script, path, GROUP],
        env=os.environ | {"LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.cc
def test_every_acknowledgement_stands_after_an_fsync(shim: Path, tmp_path: Path) -> None:
    counted = run(
        shim,
        tmp_path / "memory.db",
        """
async def main():
    journal = await Journal.open(path, group)
    bare = 0
    begun = disk.disk_syncs()
    for number in range(100):
        before = disk.disk_syncs()
        await journal.append(TurnDraft(f"turn {number}"))
        bare += disk.disk_syncs() == before
    print(json.dumps({"bare": bare, "syncs": disk.disk_syncs() - begun}))
    await journal.close()

asyncio.run(main())
""",
    )
    assert counted["bare"] == 0
    # One fsync a lonely write (checkpoints add a few, only after many rows): the bound on work, too.
    assert 100 <= int(str(counted["syncs"])) <= 110


@pytest.mark.cc
def test_writers_that_wait_together_share_an_fsync_and_none_is_answered_before_it(
    shim: Path, tmp_path: Path
) -> None:
    counted = run(
        shim,
        tmp_path / "memory.db",
        """
async def main():
    journal = await Journal.open(path, group)
    bare = 0

    async def client(number):
        nonlocal bare
        for turn in range(50):
            before = disk.disk_syncs()
            await journal.append(TurnDraft(f"{number}/{turn}", session=str(number)))
            bare += disk.disk_syncs() == before

    begun = disk.disk_syncs()
    await asyncio.gather(*map(client, range(8)))
    print(json.dumps({"bare": bare, "syncs": disk.disk_syncs() - begun}))
    await journal.close()

asyncio.run(main())
""",
    )
    assert counted["bare"] == 0
    assert int(str(counted["syncs"])) <= 400 * 0.6  # eight at a time: about 60 to 110 are seen


@pytest.mark.cc
def test_a_batch_of_a_thousand_turns_costs_a_handful_of_fsyncs(shim: Path, tmp_path: Path) -> None:
    counted = run(
        shim,
        tmp_path / "memory.db",
        """
async def main():
    journal = await Journal.open(path, group)
    begun = disk.disk_syncs()
    await journal.append_many([(TurnDraft(f"turn {n}"), JobPayload()) for n in range(1000)])
    print(json.dumps({"syncs": disk.disk_syncs() - begun}))
    await journal.close()

asyncio.run(main())
""",
    )
    assert 1 <= int(str(counted["syncs"])) <= 4


@pytest.mark.cc
@pytest.mark.parametrize(
    ("fault", "told"),
    [("disk_sync_fails", "the disk reported an error"), ("disk_is_full", "the disk is full")],
)
def test_a_disk_that_fails_is_told_and_what_was_not_stored_is_not_acknowledged(
    shim: Path, tmp_path: Path, fault: str, told: str
) -> None:
    path = tmp_path / "memory.db"
    answer = run(
        shim,
        path,
        f"""
async def main():
    journal = await Journal.open(path, group)
    errors, kept = [], []

    async def attempt(text):
        try:
            await journal.append(TurnDraft(text))
            kept.append(text)
        except PPSError as error:
            errors.append(f"{{error.code}} {{error.retryable}} {{error.message}}")

    await attempt("before")
    disk.{fault}(1)
    await asyncio.gather(*(attempt(f"during {{n}}") for n in range(10)))
    disk.{fault}(0)
    for number in range(5):
        await attempt(f"after {{number}}")
    print(json.dumps({{"errors": errors, "kept": kept}}))
    await journal.close()

asyncio.run(main())
""",
    )
    errors = list(map(str, list(answer["errors"])))  # pyright: ignore[reportArgumentType]
    assert len(errors) == 10
    assert all(
        error.startswith("store_unavailable True memory.db: ") and told in error for error in errors
    )
    assert answer["kept"] == ["before", *(f"after {number}" for number in range(5))]
    with closing(sqlite3.connect(path)) as connection:
        stored = [text for (text,) in connection.execute("SELECT content FROM turns ORDER BY seq")]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert stored == answer["kept"]


VICTIM = (
    PRELUDE
    + """
async def main():
    journal = await Journal.open(path, group)
    run = sys.argv[3]

    async def client(number):
        for turn in range(100_000):
            name = f"{run}/{number}/{turn}"
            await journal.append(TurnDraft(name + " " + "x" * 600, source_ref=name), JobPayload())
            os.write(1, f"{name}\\n".encode())

    async def batches():
        for batch in range(100_000):
            names = [f"{run}/b{batch}/{n}" for n in range(20)]
            await journal.append_many([(TurnDraft(name, source_ref=name), JobPayload()) for name in names])
            os.write(1, "".join(f"{name}\\n" for name in names).encode())

    await asyncio.gather(batches(), *map(client, range(6)))

asyncio.run(main())
"""
)
KILLS = sized(8, 24)


def test_kill_9_at_random_moments_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    moment = random.Random(20260307)  # noqa: S311 - moments of a test
    acknowledged: list[str] = []
    for number in itertools.count():
        if number >= KILLS and len(acknowledged) > KILLS * 5:
            break
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, path, GROUP, str(number)], stdout=subprocess.PIPE
        )
        assert victim.stdout is not None
        first = victim.stdout.readline()
        time.sleep(moment.random() * 0.15)
        victim.send_signal(signal.SIGKILL)
        rest = victim.stdout.read()
        victim.stdout.close()
        assert victim.wait() == -signal.SIGKILL
        # A line that the kill cut short was acknowledged, too, but cannot be told apart: left out.
        lines = (first + rest).decode().split("\n")[:-1]
        acknowledged.extend(lines)
        check(path, acknowledged)
    asyncio.run(recovered(path, len(set(acknowledged))))


def check(path: Path, acknowledged: list[str]) -> None:
    """Every acknowledged turn is there once, with its one job; batches are there whole or not at all."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = Counter(name for (name,) in connection.execute("SELECT source_ref FROM turns"))
        jobs = connection.execute(
            "SELECT count(*) FROM jobs JOIN turns ON turns.uuid = jobs.turn"
        ).fetchone()
    assert set(acknowledged) <= stored.keys()
    assert max(stored.values()) == 1
    assert jobs == (len(stored),)
    batches = Counter(name.rsplit("/", 1)[0] for name in stored if "/b" in name)
    assert set(batches.values()) <= {20}


async def recovered(path: Path, at_least: int) -> None:
    async with await Journal.open(path, GROUP) as journal:
        count = await journal.count_turns()
        assert count >= at_least
        assert count == await journal.unfinished() == await journal.count_entries(0)
        seqs = [turn.seq for turn in await journal.scan(0, 10_000)]
        assert seqs == sorted(set(seqs))
