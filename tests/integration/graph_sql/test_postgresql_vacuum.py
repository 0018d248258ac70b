"""What PostgreSQL keeps of what was forgotten for good: no row, no dead row, and bytes in free room until it is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.sql import Connection
from pps.journal import postgresql
from pps.memory import Memory
from tests.postgresql_server import PostgresqlServer
from tests.waiting import wait_until

pytestmark = pytest.mark.postgresql

MARK = "vacuumberry"
TOUCHED = ("turns", "episode", "jobs")


@pytest.fixture
async def memory(postgresql_server: PostgresqlServer, tmp_path: Path) -> AsyncIterator[Memory]:
    settings = Settings(
        home=tmp_path / "home",
        store="postgresql",
        embedder=EmbedderSettings(name="hash"),
        postgresql=postgresql_server.settings,
    )
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as opened:
            yield opened


def files_with(server: PostgresqlServer, text: str) -> list[str]:
    """Return the tables and indexes of PPS in whose files a text stands, once everything written is in them."""
    server.as_superuser("CHECKPOINT", "SELECT 1")
    places = server.as_superuser(
        "SELECT c.relname, pg_relation_filepath(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname IN ('pps', 'pg_toast') AND c.relkind IN ('r', 'i', 't')"
    )
    files = {str(name): server.folder / "data" / str(path) for name, path in places}
    return [
        name for name, file in files.items() if file.exists() and text.encode() in file.read_bytes()
    ]


def dead_rows(server: PostgresqlServer) -> dict[str, int]:
    """Return table → how many dead rows lie in its pages, counted there: the server's statistics lag behind a vacuum."""
    server.as_superuser("CREATE EXTENSION IF NOT EXISTS pgstattuple", "SELECT 1")
    rows = [
        server.as_superuser(f"SELECT dead_tuple_count FROM pgstattuple('pps.{table}')")  # noqa: S608
        for table in TOUCHED
    ]
    return {table: int(str(row[0][0])) for table, row in zip(TOUCHED, rows, strict=True)}


async def test_rows_that_somebody_still_reads_are_vacuumed_once_they_are_read(
    memory: Memory, postgresql_server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that began before a forget keeps PostgreSQL from taking the rows away: it is tried again."""
    monkeypatch.setattr(postgresql, "_OLDER_READS_S", 0.1)
    monkeypatch.setattr(postgresql, "_VACUUM_RETRY_S", 0.2)
    turn = (await memory.remember("Klara lives in Oslo.")).turn_id
    assert await memory.settled()
    reads, is_read = threading.Event(), threading.Event()

    def long_read(db: Connection) -> None:
        db.execute("SELECT count(*) FROM turns").fetchall()
        reads.set()
        is_read.wait()

    reading = asyncio.create_task(memory.parts.journal.read(long_read))
    try:
        await asyncio.to_thread(reads.wait)
        await memory.forget([turn], dry_run=False)
        dead = await asyncio.to_thread(dead_rows, postgresql_server)
        assert dead["turns"] > 0
    finally:
        is_read.set()
    await reading

    def are_gone() -> bool:
        return dead_rows(postgresql_server)["turns"] == 0

    await asyncio.to_thread(wait_until, are_gone)


async def test_a_final_forget_vacuums_what_it_touched_and_writing_anew_takes_the_last_bytes(
    memory: Memory, postgresql_server: PostgresqlServer
) -> None:
    for number in range(20):
        await memory.remember(f"Klara lives in Oslo {number}.", source_ref=str(number))
    turn = (await memory.remember(f"Klara is the {MARK} one.", source_ref="last")).turn_id
    assert await memory.settled()
    assert {"turns", "episode"} <= {*await asyncio.to_thread(files_with, postgresql_server, MARK)}
    await memory.forget([turn], dry_run=False)
    assert await postgresql_server.rows_with(MARK) == []
    dead = await asyncio.to_thread(dead_rows, postgresql_server)
    assert dead == dict.fromkeys(TOUCHED, 0)
    # The latest row's bytes lie in free room of its page, until a row takes that or the table is written anew.
    await postgresql_server.as_superuser_async(
        *[f"VACUUM FULL {table}" for table in TOUCHED], "SELECT 1"
    )
    assert await asyncio.to_thread(files_with, postgresql_server, MARK) == []
