"""Titled texts are records of the pack ``events``: read and listed like any other, on each store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from pps.app import App
from pps.config import Settings
from pps.config.packs import shipped_pack
from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import (
    TITLED_PACK,
    TITLED_PACK_VERSION,
    Condition,
    Record,
    RecordQuery,
)
from pps.core.sql import Connection
from pps.core.values import EventReceipt, NodeDraft
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.records.saving import RecordGiven
from tests.erasing import left_in
from tests.postgresql_server import PostgresqlServer

START = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
LIGHT = "The harbour light is out. It went dark at nine, and the pilots have been told."


@pytest.fixture
async def memory(app: App) -> AsyncIterator[Memory]:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        yield memory


async def light(memory: Memory, **options: Any) -> EventReceipt:
    return await memory.records.add_event(
        LIGHT,
        source="whisper",
        title="Harbour  light",
        timestamp=START,
        actor="mara",
        tags=["harbour"],
        metadata={"place": "pier 3", "number": 7, "seen by": ["Mara", "Tom"]},
        **options,
    )


async def record(memory: Memory, id_: str) -> Record:
    (read,) = await memory.records.get([id_], titled=True)
    return read


async def titles(memory: Memory, *where: Condition, **query: Any) -> list[str]:
    page = await memory.records.list(
        RecordQuery(kinds=query.pop("kinds", ("voice",)), where=where, **query)
    )
    return [listed.title for listed in page.records]


async def row(memory: Memory, turn: str) -> dict[str, Any]:
    """Return the whole row of a turn's record."""

    def read(db: Connection) -> dict[str, Any]:
        cursor = db.execute("SELECT * FROM records WHERE turn = ?", (turn,))
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    return await memory.parts.journal.read(read)


async def write_row_of_an_earlier_version(memory: Memory, turn: str) -> None:
    def write(db: Connection) -> None:
        db.execute(
            """UPDATE records SET kind = '', title = '', folded = '', summary = '', fields = '{}',
                status = '', version = 1, pack = '', pack_version = 0, updated_at = 0, actor = '',
                author = '' WHERE turn = ?""",
            (turn,),
        )

    await memory.parts.journal.write(write)


def test_the_pack_of_titled_texts_is_the_shipped_one() -> None:
    pack = shipped_pack(TITLED_PACK)
    assert (pack.open, pack.version) == (True, TITLED_PACK_VERSION)


async def test_a_titled_text_is_read_by_node_turn_beginning_and_title(memory: Memory) -> None:
    receipt = await light(memory)
    read = await record(memory, receipt.node_id)
    assert read == Record(
        id=receipt.node_id,
        kind="voice",
        title="Harbour light",
        summary="The harbour light is out.",
        created_at=START,
        updated_at=read.updated_at,
        fields={"place": "pier 3", "number": 7, "seen by": ["Mara", "Tom"]},
        tags=("harbour",),
        pack=TITLED_PACK,
        pack_version=TITLED_PACK_VERSION,
        actor="mara",
        author="mara",
        turn=receipt.turn_id,
    )
    names = (receipt.turn_id, receipt.node_id[:8], "harbour light")
    assert await memory.records.get(names, titled=True) == [read] * 3


async def test_typed_readers_do_not_see_titled_texts(memory: Memory) -> None:
    receipt = await light(memory)
    assert await memory.records.find([receipt.node_id]) == {}
    assert await memory.records.titled("Harbour light") == []
    assert (await memory.records.graph()).records == {}
    assert (await memory.records.list(RecordQuery())).total == 0
    assert await memory.parts.journal.records.turns_of_typed() == set()
    with pytest.raises(NotFound):
        await memory.records.get([receipt.node_id])


async def test_changes_are_in_the_record_with_their_version_and_actor(memory: Memory) -> None:
    receipt = await light(memory)
    await memory.records.update(
        receipt.node_id,
        content="It is lit again. All is well.",
        title="Light lit",
        kind="memo",
        metadata={"number": None, "status": "archived"},
        actor="tom",
        wait="journal",
    )
    read = await record(memory, receipt.node_id)
    assert (read.title, read.kind, read.summary) == ("Light lit", "memo", "It is lit again.")
    assert read.fields == {"place": "pier 3", "seen by": ["Mara", "Tom"], "status": "archived"}
    assert (read.version, read.status) == (2, "archived")
    assert (read.actor, read.author, read.created_at) == ("tom", "mara", START)
    await memory.records.append(receipt.node_id, "Since noon. #lit")
    appended = await record(memory, receipt.node_id)
    assert (appended.version, appended.actor, appended.tags) == (3, "", ("harbour", "lit"))
    assert appended.updated_at > read.updated_at
    assert await row(memory, receipt.turn_id) == await row(memory, receipt.turn_id) | {
        "folded": "light lit",
        "version": 3,
    }


async def test_titled_texts_are_listed_where_their_kind_is_named(memory: Memory) -> None:
    await light(memory)
    await memory.records.add_event(
        "Tea at five.", source="whisper", title="Tea", metadata={"place": "kitchen", "hot": True}
    )
    await memory.records.add_event("Seen on a screen.", source="screenpipe", title="Screen")
    await memory.records.save([RecordGiven("Goal", "Run a marathon", "Finish one.")])
    assert await titles(memory) == ["Harbour light", "Tea"]
    assert await titles(memory, kinds=("Voice", "Goal"), order=("title",)) == [
        "Harbour light",
        "Run a marathon",
        "Tea",
    ]
    assert await titles(memory, Condition("place", "=", "kitchen")) == ["Tea"]
    assert await titles(memory, Condition("place", "contains", "PIER")) == ["Harbour light"]
    assert await titles(memory, Condition("seen by", "contains", "Tom")) == ["Harbour light"]
    assert await titles(memory, Condition("seen by", "contains", "To")) == []
    assert await titles(memory, Condition("place", "in", ["kitchen", "hall"])) == ["Tea"]
    assert await titles(memory, Condition("number", "is_null")) == ["Tea"]
    assert await titles(memory, Condition("number", ">", 6.5)) == ["Harbour light"]
    assert await titles(memory, Condition("number", ">", 10)) == []
    assert await titles(memory, Condition("number", "in", [7, 8.5])) == ["Harbour light"]
    assert await titles(memory, Condition("number", "!=", 7)) == ["Tea"]
    assert await titles(memory, Condition("number", "=", "7")) == []
    assert await titles(memory, Condition("hot", "=", True)) == ["Tea"]
    assert await titles(memory, Condition("place", ">", 0)) == []
    with pytest.raises(InvalidRequest, match="texts alone, or numbers alone"):
        await titles(memory, Condition("number", "in", [7, "seven"]))
    with pytest.raises(InvalidRequest, match="with contains, a text"):
        await titles(memory, Condition("seen by", "contains", 7))
    assert await titles(memory, Condition("Title", "=", "Tea")) == ["Tea"]
    assert await titles(memory, order=("-place",)) == ["Harbour light", "Tea"]
    assert await titles(memory, tags=("harbour",)) == ["Harbour light"]
    assert await titles(memory, statuses=("active",), until=datetime(2026, 4, 1, tzinfo=UTC)) == [
        "Harbour light"
    ]
    page = await memory.records.list(RecordQuery(kinds=("voice",), limit=1))
    assert (page.total, page.by_kind) == (2, {"voice": 2})
    rest = await memory.records.list(
        RecordQuery(kinds=("voice",), limit=1, cursor=page.next_cursor)
    )
    assert [listed.title for listed in (*page.records, *rest.records)] == ["Harbour light", "Tea"]
    for field in ('pl"ace', "pl\\ace", "\n"):
        with pytest.raises(InvalidRequest, match="no titled text has such a field"):
            await titles(memory, Condition(field, "=", "x"))
    with pytest.raises(InvalidRequest, match="no kind of this memory's packs"):
        await titles(memory, kinds=("no such kind",))


async def test_a_text_of_a_kind_that_a_pack_has_later_is_no_typed_record(app: App) -> None:
    await app.create("bob")
    async with app.memory("bob") as memory:
        event = await memory.records.add_event("Buy shoes.", title="Shoes", kind="Task")
    await app.enable_pack("bob", "constitution")
    async with app.memory("bob") as memory:
        assert (await record(memory, event.node_id)).kind == "Task"
        assert await titles(memory, kinds=("Task",)) == []
        assert await titles(memory, kinds=("Task", "voice")) == []
        assert await memory.records.find([event.node_id]) == {}


async def test_merging_gives_the_record_another_node_and_undoing_gives_it_back(
    memory: Memory,
) -> None:
    receipt = await light(memory)
    await memory.remember("The lamp.", nodes=[NodeDraft("The lamp")], wait="done")
    (lamp,) = (await memory.parts.journal.resolve(["The lamp"])).values()
    merge = await memory.records.merging.merge(lamp, receipt.node_id, dry_run=False)
    moved = await record(memory, lamp)
    assert (moved.title, moved.kind, moved.turn) == ("Harbour light", "voice", receipt.turn_id)
    with pytest.raises(NotFound):
        await record(memory, receipt.node_id)
    await memory.records.merging.undo(merge.id)
    assert (await record(memory, receipt.node_id)).title == "Harbour light"
    with pytest.raises(NotFound):
        await record(memory, lamp)


async def test_a_forgotten_record_is_gone_and_a_restored_one_is_as_before(memory: Memory) -> None:
    receipt = await light(memory)
    before = await record(memory, receipt.node_id)
    gone = await memory.forget([receipt.node_id], dry_run=False, soft=True)
    with pytest.raises(NotFound):
        await record(memory, receipt.node_id)
    assert await titles(memory) == []
    await memory.forgetting.restore(gone.restorable_as)
    assert await record(memory, receipt.node_id) == before


@pytest.mark.beside_the_graph
async def test_no_word_of_a_record_that_is_forgotten_for_good_is_left(
    memory: Memory, request: pytest.FixtureRequest
) -> None:
    words = ("Zwetschgen", "Quittenmus", "Marillen", "Dirndl", "Ribisel", "Kriecherl")
    receipt = await memory.records.add_event(
        f"{words[0]} are boiled.",
        title=f"{words[1]} today",
        metadata={"jar": words[2]},
        actor=words[3],
    )
    await memory.records.update(
        receipt.node_id, title=f"{words[4]} today", metadata={"jar": words[5]}
    )
    read = await record(memory, receipt.node_id)
    assert (read.title, read.fields, read.author) == (
        "Ribisel today",
        {"jar": "Kriecherl"},
        "Dirndl",
    )
    await memory.forget([receipt.node_id], dry_run=False)
    folded = (*words, *(word.lower() for word in words))
    assert left_in(memory.parts.journal.path.parent, folded) == []
    if memory.parts.journal.database is not None:
        server: PostgresqlServer = request.getfixturevalue("postgresql_server")
        for word in folded:
            assert await server.rows_with(word, memory.entity.group) == []


async def test_rows_of_an_earlier_version_are_completed_at_the_opening(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("bob", packs=["constitution"])
        async with app.memory("bob") as memory:
            receipt = await light(memory)
            await memory.records.append(receipt.node_id, "Since noon.", actor="tom")
            goal = RecordGiven("Goal", "Run a marathon", "Finish one.")
            saved = (await memory.records.save([goal])).records[0]
            turns = (receipt.turn_id, saved.record.turn)
            before = [await row(memory, turn) for turn in turns]
            await write_row_of_an_earlier_version(memory, receipt.turn_id)
            assert await row(memory, receipt.turn_id) != before[0]
    async with App.open(settings) as app, app.memory("bob") as memory:
        assert [await row(memory, turn) for turn in turns] == before


async def test_a_restored_row_of_an_earlier_version_is_completed(memory: Memory) -> None:
    receipt = await light(memory)
    before = await row(memory, receipt.turn_id)
    await write_row_of_an_earlier_version(memory, receipt.turn_id)
    gone = await memory.forget([receipt.node_id], dry_run=False, soft=True)
    await memory.forgetting.restore(gone.restorable_as)
    assert await row(memory, receipt.turn_id) == before


async def test_operations_read_and_list_titled_texts_and_say_what_changes_them(
    memory: Memory, app: App
) -> None:
    receipt = await light(memory)
    calls = Calls(app)
    ana = Caller.of_entity("ana")

    async def ask(name: str, **arguments: Any) -> Any:
        return (await calls.answer(ana, name, arguments)).data

    whole = await ask("record_get", ids=[receipt.node_id])
    assert [(view["kind"], view["title"], view["pack"]) for view in whole["records"]] == [
        ("voice", "Harbour light", "events")
    ]
    page = await ask(
        "record_list",
        kinds=["voice"],
        where=[{"field": "seen by", "op": "contains", "value": "Mara"}],
        fields=["seen by"],
    )
    assert [(view["title"], view["fields"]) for view in page["items"]] == [
        ("Harbour light", {"seen by": ["Mara", "Tom"]})
    ]
    assert (await ask("record_list"))["items"] == []
    with pytest.raises(InvalidRequest, match="add_event writes"):
        await ask("record_save", records=[{"kind": "voice", "title": "A", "summary": "B."}])
    with pytest.raises(InvalidRequest, match="update and append change it"):
        await ask("record_save", records=[{"id": receipt.node_id, "summary": "B."}])
    with pytest.raises(InvalidRequest, match="update and append change it"):
        await ask("record_move", id=receipt.node_id, to="done")
    with pytest.raises(NotFound):
        await ask("record_delete", ids=[receipt.node_id], dry_run=False)
    assert (await record(memory, receipt.node_id)).title == "Harbour light"


async def test_numbers_of_typed_records_are_compared_as_numbers_without_an_index(
    app: App, memory: Memory
) -> None:
    drafts = [
        RecordGiven(
            kind="Business",
            title=f"Shop {revenue}",
            summary="A shop.",
            fields={"revenue": revenue, "business_model": "Sales", "stage": "mvp"},
        )
        for revenue in (9, 10, 100)
    ]
    await memory.records.save(drafts)

    async def shops(*where: Condition, order: tuple[str, ...] = ()) -> list[str]:
        return await titles(memory, *where, kinds=("Business",), order=order)

    assert await shops(Condition("revenue", ">", 9.5)) == ["Shop 10", "Shop 100"]
    assert await shops(Condition("revenue", "=", 9)) == ["Shop 9"]
    assert await shops(Condition("revenue", "in", [9, 100])) == ["Shop 9", "Shop 100"]
    assert await shops(order=("-revenue",)) == ["Shop 100", "Shop 10", "Shop 9"]

    await app.create("crew", packs=["squad"])
    async with app.memory("crew") as crew:
        events = [
            RecordGiven(kind="Event", title=title, summary="So it went.", fields={"resolved": yes})
            for title, yes in (("Open", False), ("Settled", True))
        ]
        await crew.records.save(events)
        resolved = Condition("resolved", "=", True)
        assert await titles(crew, resolved, kinds=("Event",)) == ["Settled"]
        unresolved = Condition("resolved", "!=", True)
        assert await titles(crew, unresolved, kinds=("Event",)) == ["Open"]
