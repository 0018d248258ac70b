"""Transactions of several steps: all on disk together or none, seen by their own task alone until then, on each store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.core.errors import InvalidRequest, StoreConflict
from pps.core.sql import Connection
from pps.journal import writer
from pps.journal.journal import Journal
from tests.journal_place import FilePlace, JournalPlace, PostgresqlPlace


@pytest.fixture
async def journal(place: JournalPlace) -> AsyncIterator[Journal]:
    journal = await place.open()
    yield journal
    await journal.close()


async def test_a_block_sees_what_it_wrote_and_others_see_it_when_it_ends(journal: Journal) -> None:
    written, looked = asyncio.Event(), asyncio.Event()

    async def other() -> str | None:
        await written.wait()
        value = await journal.get_meta("step")
        looked.set()
        return value

    looking = asyncio.create_task(other())
    async with journal.transaction():
        await journal.set_meta("step", "first")
        assert await journal.get_meta("step") == "first"
        assert await journal.look_up(_step, 1) == "first"
        await journal.set_meta("step", "second")
        written.set()
        await looked.wait()
    assert await looking is None
    assert await journal.get_meta("step") == "second"


async def test_what_a_block_raises_undoes_all_of_it(journal: Journal) -> None:
    await journal.set_meta("step", "before")

    async def block() -> None:
        async with journal.transaction():
            await journal.set_meta("step", "within")
            raise InvalidRequest("x", "no")

    with pytest.raises(InvalidRequest):
        await block()
    assert await journal.get_meta("step") == "before"


async def test_a_step_that_fails_is_undone_alone_where_the_block_goes_on(journal: Journal) -> None:
    def half(db: Connection) -> None:
        db.execute("INSERT INTO meta (key, value) VALUES ('half', '')")
        raise InvalidRequest("x", "no")

    async with journal.transaction():
        await journal.set_meta("step", "one")
        with pytest.raises(InvalidRequest):
            await journal.write(half)
        await journal.set_meta("other", "two")
    assert [await journal.get_meta(key) for key in ("step", "half", "other")] == [
        "one",
        None,
        "two",
    ]


async def test_other_writes_wait_and_are_done_after_it(journal: Journal) -> None:
    inside, begun = asyncio.Event(), asyncio.Event()

    def replaced(db: Connection) -> str:
        before = _step(db)
        db.execute("UPDATE meta SET value = 'outside' WHERE key = 'step'")
        return before

    async def outside() -> str:
        await inside.wait()
        begun.set()
        return await journal.write(replaced)

    waiting = asyncio.create_task(outside())
    async with journal.transaction():
        await journal.set_meta("step", "within")
        inside.set()
        await begun.wait()
        await journal.set_meta("step", "within again")
        assert not waiting.done()
    assert await waiting == "within again"
    assert await journal.get_meta("step") == "outside"


async def test_a_cancelled_block_leaves_nothing_and_the_journal_writes_on(journal: Journal) -> None:
    inside = asyncio.Event()

    async def hold() -> None:
        async with journal.transaction():
            await journal.set_meta("step", "within")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await inside.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await journal.get_meta("step") is None
    await journal.set_meta("step", "after")
    assert await journal.get_meta("step") == "after"


async def test_a_block_within_a_block_is_part_of_it(journal: Journal) -> None:
    async def block() -> None:
        async with journal.transaction():
            async with journal.transaction():
                await journal.set_meta("step", "inner")
            assert await journal.get_meta("step") == "inner"
            raise InvalidRequest("x", "no")

    with pytest.raises(InvalidRequest):
        await block()
    assert await journal.get_meta("step") is None


async def test_a_block_that_takes_no_step_is_undone_and_says_so(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "STEP_WAIT_S", 0.05)
    reader = asyncio.create_task(_other_writes(journal))

    async def block() -> None:
        async with journal.transaction():
            await journal.set_meta("step", "within")
            await reader  # waits for the block, which waits for it: the block gives way
            await journal.set_meta("step", "too late")

    with pytest.raises(StoreConflict):
        await block()
    assert await journal.get_meta("step") == "the other's"


async def test_a_task_that_outlives_the_block_reads_and_writes_as_any_other(
    journal: Journal,
) -> None:
    ended = asyncio.Event()

    async def later() -> str | None:
        await ended.wait()
        await journal.set_meta("later", "written")
        return await journal.get_meta("step")

    async with journal.transaction():
        await journal.set_meta("step", "within")
        task = asyncio.create_task(later())
    ended.set()
    assert await task == "within"
    assert await journal.get_meta("later") == "written"


async def test_no_mark_within_a_block_is_one_that_is_known(journal: Journal) -> None:
    before = await journal.mark()
    async with journal.transaction():
        marks = [await journal.mark() for _ in range(3)]
    assert len({before, *marks}) == 4


async def test_another_entitys_memory_takes_no_part_in_a_block(
    journal: Journal, place: JournalPlace, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What another entity writes meanwhile stands, and neither reads a row of the other."""
    beside = tmp_path / "other"
    other_place = (
        FilePlace(beside)
        if isinstance(place, FilePlace)
        else PostgresqlPlace(request.getfixturevalue("postgresql_server"), beside)
    )
    other = await other_place.open()

    async def block() -> None:
        async with journal.transaction():
            await journal.set_meta("step", "ana's")
            assert await other.get_meta("step") is None
            await other.set_meta("step", "ben's")
            assert await journal.get_meta("step") == "ana's"
            raise InvalidRequest("x", "no")

    try:
        with pytest.raises(InvalidRequest):
            await block()
        assert await other.get_meta("step") == "ben's"
        assert await journal.get_meta("step") is None
    finally:
        await other.close()
        await other_place.close()


async def _other_writes(journal: Journal) -> None:
    await asyncio.sleep(0)
    await journal.set_meta("step", "the other's")


def _step(db: Connection) -> str:
    return str(db.execute("SELECT value FROM meta WHERE key = 'step'").fetchone()[0])
