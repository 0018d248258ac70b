"""SQL tables after kills in mid-write: what was acknowledged is there, what was deleted is gone, nothing is half."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.store.sql_graph import SqlGraphStore
from tests.graph_file import open_graph_file
from tests.sampling import sized

KILLS = sized(6, 25)


async def killed_writer(path: Path, group: str, after_s: float) -> list[str]:
    """Let a process write and kill it; return the lines that it wrote whole."""
    arguments = [sys.executable, "-m", "tests.integration.sql_writer", str(path), group]
    writer = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    assert writer.stdout
    first = (await writer.stdout.readline()).decode()
    await asyncio.sleep(after_s)
    writer.kill()
    rest = (await writer.stdout.read()).decode()
    await writer.wait()
    return (first + rest[: rest.rfind("\n") + 1]).split()


def disagreements(path: Path) -> list[str]:
    """Return what is wrong with a closed file: its pages, its foreign keys, and whether any transaction is half there."""
    with closing(sqlite3.connect(path)) as db:
        found = [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        found += [str(row) for row in db.execute("PRAGMA foreign_key_check")]
        counts = db.execute(
            "SELECT (SELECT count(*) FROM node) / 2.0, (SELECT count(*) FROM fact), (SELECT count(*) FROM support), "
            "(SELECT count(*) FROM episode), (SELECT count(*) FROM mention) / 2.0"
        ).fetchone()
    return found if len(set(counts)) == 1 else [*found, f"half a transaction: {counts}"]


@pytest.mark.timeout(600)
async def test_no_kill_loses_doubles_or_halves_anything(tmp_path: Path) -> None:
    path, group = tmp_path / "graph.db", new_group()
    saved: set[str] = set()
    doubtful: set[str] = set()
    for _ in range(KILLS):
        after_s = random.uniform(0.0, 0.3)  # noqa: S311 - when to kill, not a secret
        for line in await killed_writer(path, group, after_s):
            fact = line[1:]
            if line[0] == "+":
                saved.add(fact)
            elif line[0] == "?":
                saved.discard(fact)
                doubtful.add(fact)
            else:
                doubtful.discard(fact)
        file = await open_graph_file(path, group)
        facts = {fact.uuid for fact in await SqlGraphStore(file).scan_facts("", 100_000)}
        await file.close()
        assert saved <= facts, "an acknowledged transaction is gone"
        assert not (disagreements(path))
        unknown = facts - saved - doubtful
        assert len(unknown) <= 1, "only the last transaction was not acknowledged in time"
        saved |= unknown
    assert len(saved) > KILLS
