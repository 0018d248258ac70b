"""A feature of another distribution: it listens, is switched off and on, and never stands in the way of forgetting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import InvalidRequest, NotFound, StoreError
from pps.ingest.importing.run import Wanted
from pps.operations.calls import Caller, Calls
from tests.erasing import left_in
from tests.third_party import (
    SOURCE,
    add_to_path,
    ask,
    feature_settings,
    install,
    listed,
    opened,
    remove_from_path,
    rows_in,
)

SECRET = "zanzibar-4711"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return feature_settings(tmp_path / "home")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = install(tmp_path / "site")
    add_to_path(folder, monkeypatch)
    return folder


async def test_a_listener_writes_in_the_transaction_of_the_turn(
    settings: Settings, package: Path
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        receipt = await memory.remember("By the way, deadline: the tax return on Friday")
        found = await ask(calls, "ana", "deadline_list")
        assert found["deadlines"] == [
            {
                "id": found["deadlines"][0]["id"],
                "text": "the tax return on Friday",
                "source": receipt.turn_id,
            }
        ]
        with pytest.raises(InvalidRequest, match="refused by a listener"):
            await memory.remember("refuse this turn, deadline: never")
        with pytest.raises(StoreError, match="pps feature disable deadlines"):
            await memory.remember("break the listener, deadline: never")
        assert await memory.parts.journal.count_turns() == 1
        assert len(await listed(calls)) == 1


async def test_switching_it_off_hides_operations_and_keeps_data(
    settings: Settings, package: Path
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        await ask(calls, "ana", "deadline_add", text="pay the rent")
        await app.switch_feature("deadlines", on=False)
        assert "deadline_list" not in await calls.operations(Caller.of_entity("ana"))
        with pytest.raises(InvalidRequest, match="none of that name"):
            await listed(calls)
        with pytest.raises(NotFound):
            memory.tables("deadlines")
        await memory.remember("deadline: told while it was off")
        assert await rows_in(memory) == 1
    async with App.open(settings) as app:
        calls = Calls(app)
        assert not app.features.is_on("deadlines")
        await app.switch_feature("deadlines", on=True)
        assert await listed(calls) == ["pay the rent"]


@pytest.mark.parametrize("state", ["on", "off", "gone"])
async def test_forgotten_text_is_erased_from_its_tables(
    settings: Settings, package: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        receipt = await memory.remember(f"deadline: {SECRET}")
        typed = await ask(calls, "ana", "deadline_add", text=f"by hand {SECRET}")
        assert await rows_in(memory) == 2
        if state == "off":
            await app.switch_feature("deadlines", on=False)
    if state == "gone":
        remove_from_path(package, monkeypatch)
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert (app.features.is_on("deadlines")) == (state == "on")
        shown = await memory.forget([receipt.turn_id])
        assert len(shown.rows or ()) == 1
        await memory.forget([receipt.turn_id, typed["id"]], dry_run=False)
        assert await rows_in(memory) == 0
    assert left_in(settings.home, [SECRET]) == []


async def test_soft_forgetting_takes_rows_along_and_brings_them_back(
    settings: Settings, package: Path
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        receipt = await memory.remember(f"deadline: {SECRET}")
        before = await ask(calls, "ana", "deadline_list")
        done = await memory.forget([receipt.turn_id], dry_run=False, soft=True)
        assert await listed(calls) == []
        await memory.forgetting.restore(done.restorable_as)
        assert await ask(calls, "ana", "deadline_list") == before
        await memory.forget([receipt.turn_id], dry_run=False, soft=True)
        await app.switch_feature("deadlines", on=False)
        await memory.forget([receipt.turn_id], dry_run=False)
    assert left_in(settings.home, [SECRET]) == []


async def test_an_export_has_its_rows_and_deleting_the_entity_leaves_none(
    settings: Settings, package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        await ask(calls, "ana", "deadline_add", text=f"by hand {SECRET}")
        await memory.remember("Ana likes her tea without sugar.")
    remove_from_path(package, monkeypatch)
    async with App.open(settings) as app:
        async with app.memory("ana") as memory:
            await memory.documents.export(tmp_path / "ana.jsonl")
        lines = [json.loads(line) for line in (tmp_path / "ana.jsonl").read_text().splitlines()]
        [row] = [line for line in lines if "feature" in line]
        assert (row["feature"], row["table"], row["values"]["text"]) == (
            "deadlines",
            "entries",
            f"by hand {SECRET}",
        )
        async with app.memory("ben") as memory:
            report = await memory.documents.import_files(Wanted((tmp_path / "ana.jsonl",)))
            assert not report.unreadable
            assert await rows_in(memory) == 0
        await app.delete("ana")
    assert left_in(settings.home, [SECRET]) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'Attack("deadline_drop", {"id": "{id}"})',
            'Attack("deadline_list")',
            "deadline_drop has no attack",
        ),
        ('Toolset("entity", "deadlines")', 'Toolset("owner", "deadlines")', "is for owners"),
        ('command="deadlines add"', 'command="entity add"', "must begin with `pps deadlines`"),
        ("async def deadline_add", "async def recall", "there is an operation recall"),
        ("from pps.memory import Memory", "from pps.nowhere import Memory", "cannot be imported"),
    ],
)
async def test_a_feature_that_cannot_be_used_is_named_and_keeps_nothing_else_waiting(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    problem: str,
) -> None:
    source = SOURCE.read_text("utf-8")
    assert old in source
    add_to_path(install(tmp_path / "site", source=source.replace(old, new)), monkeypatch)
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        assert problem in app.features.find("deadlines").problem
        assert "deadline_list" not in await calls.operations(Caller.of_entity("ana"))
        await memory.remember("deadline: nobody listens")
        assert await rows_in(memory) == 0


async def test_a_later_release_adds_a_column_and_an_earlier_one_is_left_out(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = install(tmp_path / "first")
    add_to_path(first, monkeypatch)
    async with opened(settings) as (_, calls):
        await ask(calls, "ana", "deadline_add", text="kept")
    remove_from_path(first, monkeypatch)
    later = SOURCE.read_text("utf-8").replace('Column("turn"))', 'Column("turn"), Column("day"))')
    second = install(tmp_path / "second", source=later)
    add_to_path(second, monkeypatch)
    async with App.open(settings) as app, app.memory("ana") as memory:
        [row] = await memory.tables("deadlines").select("entries", {"day": None})
        assert (row["text"], row["day"]) == ("kept", None)
    remove_from_path(second, monkeypatch)
    add_to_path(first, monkeypatch)
    async with App.open(settings) as app, app.memory("ana") as memory:
        health = await memory.health()
        assert any("deadlines" in one and "upgrade the package" in one for one in health.problems)
        await memory.remember("The memory works without it.")
        with pytest.raises(NotFound):
            memory.tables("deadlines")


async def test_a_follower_goes_on_from_its_position_and_tries_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same feature, but it follows the turns, and fails at one until a file is gone."""
    stumble = tmp_path / "stumble"
    following = SOURCE.read_text("utf-8").replace(
        'TurnListener("note", note_deadline)', 'Follower("note", follow)'
    )
    following = following.replace("    TurnListener,\n", "    Follower,\n").replace(
        "FEATURE = Feature(",
        f"""async def follow(memory: Memory, tables, turn: Turn) -> None:
    from pathlib import Path
    if "stumble" in turn.content and Path({str(stumble)!r}).exists():
        raise RuntimeError(turn.content)
    await tables.change(lambda rows: note_deadline(rows, turn))


FEATURE = Feature(""",
    )
    add_to_path(install(tmp_path / "site", source=following), monkeypatch)
    stumble.touch()
    async with opened(settings) as (app, calls), app.memory("ana") as memory:
        await memory.remember("deadline: one")
        await memory.remember("stumble, deadline: two")
        await memory.remember("deadline: three")
        await _until(lambda: memory.parts.features.problems)
        assert "RuntimeError" in memory.parts.features.problems[0]
        assert not (await memory.health()).ok
        assert await listed(calls) == ["one"]
    async with App.open(settings) as app, app.memory("ana") as memory:
        await _until(lambda: memory.parts.features.problems)
        stumble.unlink()
        calls = Calls(app)
        await _until_async(lambda: _has_all(calls, ["one", "three", "two"]))
        await app.switch_feature("deadlines", on=False)
        told = await memory.remember("deadline: four, told while it was off")
        assert await rows_in(memory) == 3
        await app.switch_feature("deadlines", on=True)
        await _until_async(
            lambda: _has_all(calls, ["four, told while it was off", "one", "three", "two"])
        )
        assert memory.parts.features.problems == ()
        await memory.forget([told.turn_id], dry_run=False)
        assert await listed(calls) == ["one", "three", "two"]


async def _has_all(calls: Calls, texts: list[str]) -> bool:
    return await listed(calls) == texts


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)


async def _until_async(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(120):
        while not await condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)
