"""What PostgreSQL keeps of what was forgotten for good: no row, no dead row, and bytes in free room until it is used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from tests.postgresql_server import PostgresqlServer
from tests.waiting import wait_until

pytestmark = pytest.mark.postgresql

MARK = "vacuumberry"
TOUCHED = ("turns", "episode", "jobs")


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


def vacuums(server: PostgresqlServer) -> dict[str, tuple[int, int]]:
    """Return table → how often it was vacuumed by somebody, and how many dead rows it has."""
    rows = server.as_superuser(
        "SELECT relname, vacuum_count, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'pps'"
    )
    return {str(name): (int(str(count)), int(str(dead))) for name, count, dead in rows}


async def test_a_final_forget_vacuums_what_it_touched_and_writing_anew_takes_the_last_bytes(
    postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    settings = Settings(
        home=tmp_path / "home",
        store="postgresql",
        embedder=EmbedderSettings(name="hash"),
        postgresql=postgresql_server.settings,
    )
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            for number in range(20):
                await memory.remember(f"Klara lives in Oslo {number}.", source_ref=str(number))
            turn = (await memory.remember(f"Klara is the {MARK} one.", source_ref="last")).turn_id
            assert await memory.settled()
            assert {"turns", "episode"} <= {
                *await asyncio.to_thread(files_with, postgresql_server, MARK)
            }
            before = await asyncio.to_thread(vacuums, postgresql_server)
            await memory.forget([turn], dry_run=False)
            assert await postgresql_server.rows_with(MARK) == []

            def are_vacuumed() -> bool:
                after = vacuums(postgresql_server)
                return all(
                    after[table][0] > before[table][0] and after[table][1] == 0 for table in TOUCHED
                )

            await asyncio.to_thread(wait_until, are_vacuumed)
            # The latest row's bytes lie in free room of its page, until a row takes that or the table is written anew.
            await postgresql_server.as_superuser_async(
                *[f"VACUUM FULL {table}" for table in TOUCHED], "SELECT 1"
            )
            assert await asyncio.to_thread(files_with, postgresql_server, MARK) == []
