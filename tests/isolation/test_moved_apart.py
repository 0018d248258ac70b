"""Moving the memory of one between stores reads, writes and erases nothing of another, and no entity moves another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pps.app import App
from pps.app.moving import file_of
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, IsolationError, PPSError
from pps.core.values import FactDraft
from pps.entities.moves import Place
from pps.entities.registry import Registry
from pps.journal.copying import copy_to_database
from pps.operations.calls import Caller, Calls
from tests.erasing import left_in
from tests.isolation.test_bench import digest
from tests.postgresql_server import PostgresqlServer

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(300)]

HOMES: dict[str, Place] = {"ana": "embedded", "ben": "postgresql", "cleo": "embedded"}


@pytest.fixture
async def app(postgresql_server: PostgresqlServer, tmp_path: Path) -> AsyncIterator[App]:
    """Three memories of the same texts, each with a word of its own; one of them on PostgreSQL."""
    settings = Settings(
        home=tmp_path / "home",
        embedder=EmbedderSettings(name="hash"),
        postgresql=postgresql_server.settings,
    )
    async with App.open(settings) as opened:
        for name, store in HOMES.items():
            await opened.create(name, store=store)
            async with opened.memory(name) as memory:
                text = f"Kim lives in Rome, says only{name}."
                await memory.remember(
                    text, source_ref="one", facts=[FactDraft("Kim", "LIVES_IN", "Rome", text=text)]
                )
                assert await memory.settled()
        yield opened


def say_nothing(table: str, done: int, total: int) -> None:
    del table, done, total


async def untouched(app: App, server: PostgresqlServer, name: str) -> list[object]:
    """Return every row version that the database has of an entity, and every file of it; its memory is closed."""
    entry = app.registry.get(name)
    tables = await server.as_superuser_async(
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('grp', 'group_id') "
        "WHERE n.nspname = 'pps' AND c.relkind = 'r' ORDER BY 1"
    )
    rows: list[object] = [
        await server.as_superuser_async(
            f"SELECT '{table}', ctid::text, xmin::text, t::text FROM \"{table}\" AS t "  # noqa: S608 - of a test
            f"WHERE {column} = '{entry.entity.group}' ORDER BY 2"
        )
        for table, column in tables
    ]
    return [rows, digest(entry.folder), entry.store]


async def test_moving_one_touches_no_row_and_no_file_of_another(
    app: App, postgresql_server: PostgresqlServer
) -> None:
    await app.close_all()
    others = [name for name in HOMES if name != "ana"]
    before = {name: await untouched(app, postgresql_server, name) for name in others}

    async def all_untouched() -> bool:
        return before == {name: await untouched(app, postgresql_server, name) for name in others}

    for target in ("postgresql", "embedded", "postgresql"):
        await app.move("ana", target)
        assert await all_untouched(), f"moved to {target}"
        await app.drop_moved_source("ana")
        assert await all_untouched(), f"dropped after {target}"
    await app.archive("ana")
    await app.move("ana", "embedded")
    assert await all_untouched(), "moved while archived"
    await app.delete("ana")
    assert await all_untouched()
    assert left_in(app.settings.home, ["onlyana"]) == []
    assert await postgresql_server.rows_with("onlyana") == []
    for name in others:
        async with app.memory(name) as memory:
            found = await memory.recall("Kim Rome")
            assert [hit.text for hit in found["facts"]] == [f"Kim lives in Rome, says only{name}."]


async def test_no_entity_moves_another_or_itself(app: App) -> None:
    calls = Calls(app)
    for name in HOMES:
        for caller in (Caller.of_entity(name), Caller(("operator",))):
            for arguments in (
                {"entity": "ana", "to": "postgresql"},
                {"entity": "ben", "to": "embedded"},
                {"entity": "ben", "drop_source": True},
            ):
                with pytest.raises(InvalidRequest, match="there is none of that name"):
                    await calls.answer(caller, "move", dict(arguments))
    assert {name: app.registry.get(name).store for name in HOMES} == HOMES


async def test_the_file_of_another_is_not_copied_under_ones_own_name(
    app: App, postgresql_server: PostgresqlServer
) -> None:
    await app.close_all()
    ana, cleo = (app.registry.get(name) for name in ("ana", "cleo"))
    file_of(cleo).write_bytes(file_of(ana).read_bytes())
    with pytest.raises(IsolationError):
        await app.move("cleo", "postgresql")
    with pytest.raises(IsolationError):
        await asyncio.to_thread(
            copy_to_database,
            file_of(cleo),
            await app.database(),
            cleo.entity.group,
            say_nothing,
        )
    assert app.registry.get("cleo").store == "embedded"
    assert await postgresql_server.rows_with("onlyana") == []


async def test_a_move_that_was_cut_short_and_finished_leaves_the_rows_of_another(
    app: App, postgresql_server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed move left of one is written over, and of no other."""
    await app.close_all()
    before = await untouched(app, postgresql_server, "ben")

    def stop(*_: object) -> None:
        raise OSError("stopped")

    with monkeypatch.context() as broken:
        broken.setattr(Registry, "move", stop)
        with pytest.raises(OSError, match="stopped"):
            await app.move("ana", "postgresql")
    assert await postgresql_server.rows_with("onlyana")
    assert (await app.moved_copy("ana"))[1]
    assert await app.moved_copy("ben") == ([], [])
    assert await untouched(app, postgresql_server, "ben") == before
    await app.move("ana", "postgresql")
    assert await untouched(app, postgresql_server, "ben") == before


async def test_a_card_that_names_another_store_than_the_registry_opens_nothing_unless_a_move_explains_it(
    app: App,
) -> None:
    await app.close_all()
    card = app.registry.get("ben").folder / "entity.toml"
    text = card.read_text()
    card.write_text(text.replace('store = "postgresql"', 'store = "embedded"'))
    with pytest.raises(PPSError, match="made for the store 'embedded', registered for"):
        async with app.memory("ben"):
            pass
    assert not file_of(app.registry.get("ben")).exists()
    card.write_text(text)
    async with app.memory("ben") as memory:
        assert (await memory.stats()).turns == 1
