"""Reads beside the writer: small ones at once, others in a thread, none on a file that is closed."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from pps.core.errors import StoreUnavailable
from pps.journal.db import prepare_file
from pps.journal.store import FEW, SqliteReaders


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    prepare_file(path, "ent_" + "a" * 26)
    return path


@pytest.fixture
async def readers(path: Path) -> AsyncIterator[SqliteReaders]:
    readers = SqliteReaders(path)
    yield readers
    await asyncio.to_thread(readers.close)


def _thread(_: sqlite3.Connection) -> str:
    return threading.current_thread().name


def _group(connection: sqlite3.Connection) -> str:
    return connection.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()[0]


@pytest.mark.parametrize(
    ("asked", "at_once"), [(0, True), (1, True), (FEW, True), (FEW + 1, False)]
)
async def test_only_a_few_rows_are_looked_up_without_a_thread(
    readers: SqliteReaders, asked: int, at_once: bool
) -> None:
    assert (await readers.look_up(_thread, asked) == threading.current_thread().name) is at_once


async def test_a_look_up_cannot_write(readers: SqliteReaders) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        await readers.look_up(lambda db: db.execute("DELETE FROM meta"), 1)
    assert await readers.look_up(_group, 1)


async def test_a_look_up_is_one_snapshot_and_the_next_sees_what_was_written_since(
    readers: SqliteReaders, path: Path
) -> None:
    def twice(db: sqlite3.Connection) -> tuple[int, int]:
        first = db.execute("SELECT count(*) FROM meta").fetchone()[0]
        with sqlite3.connect(path) as other:
            other.execute("INSERT INTO meta (key, value) VALUES ('new', '1')")
        other.close()
        return first, db.execute("SELECT count(*) FROM meta").fetchone()[0]

    before, after = await readers.look_up(twice, 1)
    assert before == after
    assert (
        await readers.look_up(lambda db: db.execute("SELECT count(*) FROM meta").fetchone()[0], 1)
        == before + 1
    )


async def test_a_locked_file_is_waited_for_without_stopping_the_loop(
    readers: SqliteReaders, path: Path
) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    asked = asyncio.create_task(readers.look_up(_group, 1))
    for _ in range(20):
        await asyncio.sleep(0.005)  # the loop turns meanwhile
    assert not asked.done()
    other.close()
    assert await asked == "ent_" + "a" * 26


async def test_nothing_is_read_of_a_file_that_is_closed_and_nothing_stays_open(path: Path) -> None:
    readers = SqliteReaders(path)
    assert await readers.look_up(_group, 1) == await readers.read(_group)
    await asyncio.to_thread(readers.close)
    for asked in (1, FEW + 1):
        with pytest.raises(StoreUnavailable, match="closed"):
            await readers.look_up(_group, asked)
    assert not [one for one in psutil.Process().open_files() if one.path == str(path)]


async def test_a_file_that_is_gone_is_not_made_again_by_reading(
    readers: SqliteReaders, path: Path
) -> None:
    await asyncio.to_thread(path.unlink)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await readers.look_up(_group, 1)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await readers.read(_group)
    assert not await asyncio.to_thread(path.exists)
