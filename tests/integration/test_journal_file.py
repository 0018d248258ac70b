"""The file itself: whose it is, which version, what its errors mean, and what closing gives back."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from pps.core.errors import IsolationError, StoreConflict, StoreError, StoreUnavailable
from pps.core.ids import new_group
from pps.core.values import Node
from pps.journal import JobPayload, TurnDraft, db, writer
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal
from tests.graph_file import save_nodes
from tests.waiting import settle_until

GROUP = new_group()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def size(path: Path) -> int:
    return path.stat().st_size


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def filled(path: Path, turns: int = 3) -> None:
    async with await Journal.open(path, GROUP) as journal:
        for number in range(turns):
            await journal.append(TurnDraft(f"turn {number} " + "x" * 2_000))


async def test_a_file_is_private_and_one_file_when_closed(path: Path) -> None:
    await filled(path)
    assert mode(path) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["memory.db"]


async def test_the_log_is_private_too(path: Path) -> None:
    async with await Journal.open(path, GROUP) as journal:
        await journal.append(TurnDraft("x"))
        assert {mode(entry) for entry in path.parent.iterdir()} == {0o600}
        assert {entry.name for entry in path.parent.iterdir()} == {
            "memory.db",
            "memory.db-wal",
            "memory.db-shm",
        }


async def test_the_connections_are_set_to_lose_nothing_and_to_keep_nothing_deleted(
    path: Path,
) -> None:
    db.prepare_file(path, GROUP)
    with closing(db.open_writer(path)) as writer, closing(db.open_reader(path)) as reader:
        settings = {
            name: writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "secure_delete")
        }
        assert settings == {"synchronous": 2, "secure_delete": 1}
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert writer.execute("PRAGMA foreign_keys").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM turns")


async def test_another_group_is_refused_and_reads_nothing(path: Path) -> None:
    await filled(path)
    before = read(path)
    with pytest.raises(IsolationError, match="another entity"):
        await Journal.open(path, new_group())
    assert read(path) == before
    async with await Journal.open(path, GROUP) as journal:
        assert await journal.count_turns() == 3


async def test_many_may_open_a_new_file_at_once(path: Path) -> None:
    journals = await asyncio.gather(*(Journal.open(path, GROUP) for _ in range(6)))
    await asyncio.gather(*(one.append(TurnDraft(f"from {n}")) for n, one in enumerate(journals)))
    assert await journals[0].count_turns() == 6
    await asyncio.gather(*(one.close() for one in journals))


async def test_a_file_of_a_newer_version_is_refused_with_the_way_out(path: Path) -> None:
    await filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(db.MIGRATIONS) + 6}")
    with pytest.raises(
        StoreError,
        match=rf"newer PPS \(schema {len(db.MIGRATIONS) + 6}, this one knows {len(db.MIGRATIONS)}\): upgrade pps",
    ):
        await Journal.open(path, GROUP)


async def test_an_older_file_is_brought_forward_with_what_it_holds(path: Path) -> None:
    await filled(path)
    longer = (*db.MIGRATIONS, ("CREATE TABLE later (x TEXT)", "INSERT INTO later VALUES ('y')"))
    db.prepare_file(path, GROUP, longer)
    db.prepare_file(path, GROUP, longer)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(longer),)
        assert connection.execute("SELECT count(*) FROM later").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM turns").fetchone() == (3,)


async def test_what_the_mirror_of_the_graph_had_is_written_over_when_it_goes(path: Path) -> None:
    db.prepare_file(path, GROUP, db.MIGRATIONS[:24])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO mirror_id VALUES (1, 'n')")
        connection.execute("INSERT INTO mirror_node VALUES (1, 'n', 'Goal', '', 0, '')")
        connection.execute(
            "INSERT INTO mirror_name VALUES (1, 'Zanzibar', 'zanzibar', 'zanzibar', 'zanzibar', 1, 0)"
        )
    async with await Journal.open(path, GROUP):
        pass
    assert b"anzibar" not in path.read_bytes()  # noqa: ASYNC240


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    await filled(path)
    with pytest.raises(StoreError):
        db.prepare_file(
            path,
            GROUP,
            (*db.MIGRATIONS, ("CREATE TABLE later (x TEXT)", "CREATE TABLE turns (x TEXT)")),
        )
    async with await Journal.open(path, GROUP) as journal:
        assert await journal.count_turns() == 3
    with closing(sqlite3.connect(path)) as connection:
        assert (
            connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchone()
            is None
        )


async def test_another_programs_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x TEXT)")
    with pytest.raises(StoreError, match="another program"):
        await Journal.open(path, GROUP)
    with closing(sqlite3.connect(path)) as connection:
        assert [name for (name,) in connection.execute("SELECT name FROM sqlite_master")] == [
            "mine"
        ]


async def test_a_file_that_is_no_database_is_told_as_such(path: Path) -> None:
    write(path, b"this is a letter, not a memory\n" * 400)
    with pytest.raises(StoreError, match="not a memory") as failure:
        await Journal.open(path, GROUP)
    assert not failure.value.retryable


@pytest.mark.parametrize("share", [0.1, 0.5])
async def test_a_damaged_file_is_an_error_and_not_an_empty_answer(path: Path, share: float) -> None:
    await filled(path, 200)
    content = read(path)
    kept = int(len(content) * share)
    write(path, content[:kept] + os.urandom(len(content) - kept))
    with pytest.raises(StoreError, match="damaged") as failure:
        async with await Journal.open(path, GROUP) as journal:
            await journal.scan(0, 1_000)
    assert not failure.value.retryable


async def test_a_text_that_rotted_is_told_as_damage_and_not_quoted(path: Path) -> None:
    await filled(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE turns SET content = CAST(x'736563726574ff' AS TEXT)")
    async with await Journal.open(path, GROUP) as journal:
        with pytest.raises(StoreError, match="the file is damaged") as failure:
            await journal.scan(0, 10)
    assert "secret" not in str(failure.value)


async def test_a_folder_in_the_place_of_the_file_is_told(path: Path) -> None:
    write(path / "inside", b"")
    with pytest.raises(StoreUnavailable, match=r"cannot be opened .*check its folder"):
        await Journal.open(path, GROUP)


async def test_a_file_locked_by_another_process_is_a_conflict_and_then_works(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "BUSY_TIMEOUT_S", 0.2)
    async with await Journal.open(path, GROUP) as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            tasks = [journal.append(TurnDraft(f"turn {n}")) for n in range(5)]
            failures = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(failure, StoreConflict) for failure in failures)
            assert "locked by another process" in str(failures[0])
            assert await journal.count_turns() == 0  # reads go on
            other.execute("ROLLBACK")
        await journal.append(TurnDraft("after"))
        assert await journal.count_turns() == 1


async def test_deleted_text_leaves_the_log_as_soon_as_nobody_reads_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "BUSY_TIMEOUT_S", 0.1)
    log = path.with_name("memory.db-wal")
    async with await Journal.open(path, GROUP) as journal:
        uuid = (await journal.append(TurnDraft("ZEBRACROSSING"))).turn.uuid
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM turns").fetchone()
            assert await journal.forget_turns([uuid]) == 1
            assert b"ZEBRACROSSING" in read(log)
            other.execute("ROLLBACK")
        await settle_until(lambda: b"ZEBRACROSSING" not in read(log) + read(path))


async def test_the_log_does_not_grow_without_end(path: Path) -> None:
    async with await Journal.open(path, GROUP) as journal:
        for _ in range(30):
            await journal.append_many([(TurnDraft("x" * 500 + os.urandom(8).hex()), JobPayload())])
            await asyncio.gather(
                *(journal.append(TurnDraft("y" * 500 + os.urandom(8).hex())) for _ in range(100))
            )
        await journal.count_turns()
        assert size(path.with_name("memory.db-wal")) < 24_000_000
        assert size(path) > 1_000_000


async def test_a_closed_journal_says_so_and_closing_twice_is_fine(path: Path) -> None:
    journal = await Journal.open(path, GROUP)
    waiting = [asyncio.create_task(journal.append(TurnDraft(f"turn {n}"))) for n in range(20)]
    await asyncio.sleep(0)
    await journal.close()
    await journal.close()
    assert len({done.turn.uuid for done in await asyncio.gather(*waiting)}) == 20
    for call in (journal.append(TurnDraft("x")), journal.count_turns()):
        with pytest.raises(StoreUnavailable, match="closed"):
            await call
    async with await Journal.open(path, GROUP) as reopened:
        assert await reopened.count_turns() == 20


async def test_closing_gives_back_every_thread_and_file_descriptor(tmp_path: Path) -> None:
    async def use(number: int) -> None:
        async with await Journal.open(tmp_path / f"{number}.db", GROUP) as journal:
            await journal.append(TurnDraft("x"))
            await save_nodes(
                journal, [Node("n", "Priya", (await journal.recent(1))[0].occurred_at)]
            )
            await asyncio.gather(
                *(journal.allowed("node", ItemFilter(kinds=("Thing",))) for _ in range(20))
            )

    await use(0)  # the loop's own pool of threads is there from here on
    await asyncio.gather(*(asyncio.to_thread(threading.active_count) for _ in range(40)))
    threads, files = threading.active_count(), descriptors()
    for number in range(1, 60):
        await use(number)
    assert threading.active_count() <= threads
    assert descriptors() <= files


async def test_an_open_journal_costs_few_threads_and_descriptors(tmp_path: Path) -> None:
    await asyncio.gather(*(asyncio.to_thread(threading.active_count) for _ in range(40)))
    threads, files = threading.active_count(), descriptors()
    journals = [await Journal.open(tmp_path / f"{number}.db", GROUP) for number in range(10)]
    for journal in journals:
        await journal.append(TurnDraft("x"))
        await asyncio.gather(*(journal.recent(5) for _ in range(20)))
    assert threading.active_count() - threads <= 30
    assert descriptors() - files <= 10 * 8
    await asyncio.gather(*(journal.close() for journal in journals))


async def scattered(path: Path) -> tuple[Journal, set[bytes]]:
    """Fill a journal with small rows that SQLite has to move about, then forget many at random."""
    pick = random.Random(0)  # noqa: S311 - test data
    journal = await Journal.open(path, GROUP)
    uuids: list[str] = []
    while len(uuids) < 3_000:
        batch = [
            TurnDraft(
                f"SECRET{n:06}Z" + "x" * pick.randrange(300),
                source_ref=f"REF{n:06}Z",
                actor=f"ACT{n:06}Z",
            )
            for n in range(len(uuids), len(uuids) + pick.randrange(1, 60))
        ]
        uuids += [
            one.turn.uuid
            for one in await journal.append_many([(draft, JobPayload()) for draft in batch])
        ]
    order = list(range(len(uuids)))
    pick.shuffle(order)
    for start in range(0, 1_800, 60):
        await journal.forget_turns([uuids[n] for n in order[start : start + 60]])
    return journal, {f"{n:06}Z".encode() for n in order[:1_800]}


def leftovers(path: Path, gone: set[bytes]) -> set[bytes]:
    content = b"".join(entry.read_bytes() for entry in path.parent.iterdir())
    return {number for _, number in re.findall(rb"(SECRET|REF|ACT)(\d{6}Z)", content)} & gone


async def test_a_scrub_that_is_due_comes_by_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SCRUB_IDLE_S", 0.05)
    journal, gone = await scattered(path)

    async def is_scrubbed() -> bool:
        return not await journal.get_meta("scrub_due") and not leftovers(path, gone)

    await settle_until(is_scrubbed)
    assert (await journal.append(TurnDraft("after"))).turn.seq > 3_000
    await journal.close()


async def test_a_scrub_that_is_due_comes_at_close_at_the_latest(path: Path) -> None:
    journal, gone = await scattered(path)
    assert await journal.get_meta("scrub_due")
    await journal.close()
    assert leftovers(path, gone) == set()
    async with await Journal.open(path, GROUP) as reopened:
        assert await reopened.get_meta("scrub_due") is None
        assert await reopened.count_turns() == len(await reopened.scan(0, 10_000))


async def test_a_scrub_that_cannot_be_done_is_tried_again_and_writing_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(db, "BUSY_TIMEOUT_S", 0.1)
    monkeypatch.setattr(writer, "SCRUB_IDLE_S", 0.05)
    monkeypatch.setattr(writer, "SCRUB_RETRY_S", 0.05)
    async with await Journal.open(path, GROUP) as journal:
        uuid = (await journal.append(TurnDraft("x"))).turn.uuid
        await journal.forget_turns([uuid])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await settle_until(lambda: "could not be scrubbed yet" in caplog.text)
            assert await journal.get_meta("scrub_due")
            other.execute("ROLLBACK")
        await journal.append(TurnDraft("y"))

        async def is_scrubbed() -> bool:
            return await journal.get_meta("scrub_due") is None

        await settle_until(is_scrubbed)
