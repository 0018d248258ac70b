"""The writing thread: each write whole or not at all, results in order, callers of any event loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, StoreError
from pps.core.ids import new_group
from pps.journal import db
from pps.journal.writer import BATCH_LIMIT, SqliteWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    db.prepare_file(path, new_group())
    return path


@pytest.fixture
def writer(path: Path) -> Iterator[SqliteWriter]:
    with closing(SqliteWriter(path)) as opened:
        yield opened


def keys(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT key FROM meta WHERE key NOT IN ('group', 'layout') ORDER BY key"
        ).fetchall()
    return [key for (key,) in rows]


def put(connection: sqlite3.Connection, key: str) -> str:
    connection.execute("INSERT INTO meta VALUES (?, '')", (key,))
    return key


async def test_a_write_that_fails_in_the_middle_leaves_nothing_of_itself(
    path: Path, writer: SqliteWriter
) -> None:
    def half(connection: sqlite3.Connection) -> None:
        put(connection, "half")
        raise InvalidRequest("x", "no")

    def broken(connection: sqlite3.Connection) -> None:
        put(connection, "broken")
        connection.execute("SELECT * FROM no_such_table")

    def twice(connection: sqlite3.Connection) -> None:
        put(connection, "twice")
        put(connection, "twice")

    results = await asyncio.gather(
        writer.write(lambda c: put(c, "a")),
        writer.write(half),
        writer.write(broken),
        writer.write(lambda c: put(c, "b")),
        writer.write(twice),
        writer.write(lambda c: put(c, "c")),
        return_exceptions=True,
    )
    kinds = [type(result) for result in results]
    assert kinds == [str, InvalidRequest, StoreError, str, StoreError, str]
    assert keys(path) == ["a", "b", "c"]


async def test_more_writes_than_a_transaction_holds_are_all_done_in_order(
    path: Path, writer: SqliteWriter
) -> None:
    count = BATCH_LIMIT * 3 + 7
    tasks = [writer.write(lambda c, n=number: put(c, f"{n:05}")) for number in range(count)]
    assert await asyncio.gather(*tasks) == keys(path) == [f"{number:05}" for number in range(count)]


def test_callers_of_several_event_loops_are_each_answered(path: Path, writer: SqliteWriter) -> None:
    async def many(name: int) -> None:
        for number in range(20):
            assert (
                await writer.write(lambda c, n=number: put(c, f"{name}-{n:02}"))
                == f"{name}-{number:02}"
            )

    threads = [threading.Thread(target=asyncio.run, args=(many(name),)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys(path)) == 80


def test_a_loop_that_is_gone_does_not_stop_the_writer(path: Path, writer: SqliteWriter) -> None:
    gate = threading.Event()

    def wait(connection: sqlite3.Connection) -> None:
        gate.wait(60)
        put(connection, "orphan")

    async def leave() -> None:
        task = asyncio.ensure_future(writer.write(wait))
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(leave())
    gate.set()
    asyncio.run(writer.write(lambda c: put(c, "next")))  # pyright: ignore[reportArgumentType]
    assert keys(path) == ["next", "orphan"]


async def test_a_defect_is_in_the_log_and_takes_back_nothing_that_was_acknowledged(
    path: Path,
    writer: SqliteWriter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = "what Ana said in confidence"

    def fall(**_: bool) -> None:
        raise OSError(said)

    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR):
        broken.setattr(writer, "_tidy", fall)
        assert await writer.write(lambda c: put(c, "a")) == "a"
        with pytest.raises(OSError, match=said):
            await writer.write(lambda c: put(c, "b"), secure=True)
    told = [record for record in caplog.records if "a defect in the writer" in record.getMessage()]
    assert len(told) == 2
    assert all(
        "OSError" in record.getMessage() and "in fall" in record.getMessage() for record in told
    )
    assert said not in caplog.text
    assert await writer.write(lambda c: put(c, "c")) == "c"
    assert keys(path) == ["a", "b", "c", "scrub_due"]


async def test_a_defect_within_a_transaction_fails_no_write_of_the_next(
    path: Path, writer: SqliteWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall(_: sqlite3.Error, __: Path) -> BaseException:
        raise OSError("no reason is known")

    with monkeypatch.context() as broken:
        broken.setattr("pps.journal.writer.store_error", fall)
        with pytest.raises(OSError, match="no reason is known"):
            await writer.write(lambda c: c.execute("SELECT * FROM no_such_table"))
    assert await writer.write(lambda c: put(c, "next")) == "next"
    assert keys(path) == ["next"]
