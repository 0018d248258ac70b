"""Soft forgetting: what comes back is what went, what cannot come back yet says so, and what is over is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import Record
from pps.core.sql import Connection
from pps.core.time import RunningMark, now
from pps.core.values import FactDraft, NodeDraft
from pps.entities.installation_rows import RunningTime
from pps.journal.bin_rows import ERASE_AFTER_S
from pps.journal.postgresql import tables_of
from pps.models.hash import HashEmbedder
from pps.records.saving import RecordGiven, RelationGiven
from tests.waiting import settle_until

if TYPE_CHECKING:
    from pathlib import Path

    from pps.memory import Memory


@pytest.fixture
async def ana(app: App) -> AsyncIterator[Memory]:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as memory:
        yield memory


async def everything(memory: Memory) -> object:
    """Return all that a memory holds, but for the number of its writes."""
    client = memory.parts.client
    records = await memory.records.graph()
    ids = list(records.records)
    turns = await memory.parts.journal.scan(0, 100)
    found = await memory.recall("gold bees tea", limit=50)
    return (
        replace(await memory.stats(), index_lag=0),
        turns,
        [await memory.records.history(turn.uuid) for turn in turns],
        [await memory.jobs.status(turn.uuid) for turn in turns],
        await client.scan_nodes("", 100),
        sorted(await client.scan_facts("", 100), key=lambda fact: fact.uuid),
        await client.scan_episodes("", 100),
        await client.mentioned_nodes([turn.uuid for turn in turns]),
        replace(records, stamp=0),
        await memory.records.cites(ids),
        [await memory.records.transitions(one) for one in ids],
        await memory.records.merging.merges(),
        await memory.anchor_list(),
        sorted(
            (name, hit.id, hit.text) for name, one in found.channels.items() for hit in one.hits
        ),
    )


async def test_what_is_restored_is_what_went_and_no_model_is_asked_for_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.create("ana", packs=["constitution"])
    async with app.memory("ana") as ana:
        turn, goal, task = await told_of_gold(ana)
        before = await everything(ana)
    asked: list[str] = []
    embed = HashEmbedder.embed_passages

    def noting_embed(self: HashEmbedder, texts: Sequence[str]) -> object:
        asked.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_passages", noting_embed)
    for ids in ([turn], [goal.id, "bread"], [task.turn, turn]):
        async with app.memory("ana") as ana:
            gone = await ana.forget(ids, dry_run=False, soft=True, why="Moot.")
            [held] = await ana.forgetting.list()
            assert (held.id, held.why, held.turns) == (gone.restorable_as, "Moot.", len(gone.turns))
            assert held.until - held.at == timedelta(days=30)
            assert (await ana.ledger()).problems == ()
        await app.close_all()  # with it goes what was embedded before
        async with app.memory("ana") as ana:
            assert await ana.settled()
            asked.clear()
            back = await ana.forgetting.restore(gone.restorable_as[:8])
            assert (back.turns, set(back.facts), set(back.nodes)) == (
                gone.turns,
                set(gone.facts),
                set(gone.nodes),
            )
            assert await ana.settled()
            assert asked == []
            assert await everything(ana) == before
            assert await ana.forgetting.list() == []
            with pytest.raises(NotFound):
                await ana.forgetting.restore(gone.restorable_as)
            assert (await ana.ledger()).problems == ()


async def told_of_gold(ana: Memory) -> tuple[str, Record, Record]:
    """Tell of gold and bees and keep a goal, a task and an anchor; return the id of a turn, the goal and the task."""
    bees, gold = FactDraft("Ana", "KEEPS", "Bees"), FactDraft("Ana", "HIDES", "Gold")
    await ana.remember(
        "Ana keeps bees.",
        source_ref="1",
        session="s",
        facts=[bees],
        nodes=[NodeDraft("The cellar")],
    )
    told = await ana.remember(
        "Ana hides gold, and keeps bees.", source_ref="2", session="s", facts=[bees, gold]
    )
    await ana.remember(
        "It is in the cellar.", source_ref="3", session="s", nodes=[NodeDraft("The cellar")]
    )
    await ana.records.update(told.turn_id, content="Ana hides gold, and keeps bees. #secret")
    goal = RecordGiven(
        "Goal", "Drink tea", "Less coffee.", fields={"target": "none"}, cites=(told.turn_id,)
    )
    task = RecordGiven(
        "Task", "Buy tea", "Green.", relations=(RelationGiven("SERVES", "Drink tea"),)
    )
    [kept_goal, kept_task] = [one.record for one in (await ana.records.save([goal, task])).records]
    await ana.records.move(kept_task.id, "in_progress")
    await ana.anchor_save("Bread", "# Bread\n\nFlour and water.", slug="bread")
    assert await ana.settled()
    return told.turn_id, kept_goal, kept_task


async def test_what_was_forgotten_later_and_belongs_to_it_is_restored_first(ana: Memory) -> None:
    knows = FactDraft("Bea", "KNOWS", "Cai", text="Bea knows Cai.")
    one = await ana.remember("Bea knows Cai.", facts=[knows])
    two = await ana.remember("Bea knows Cai, really.", facts=[knows])
    [fact] = [one for one in (await ana.timeline()).facts if one.text == knows.text]
    first = await ana.forget([one.turn_id], dry_run=False, soft=True)
    second = await ana.forget([two.turn_id], dry_run=False, soft=True)
    assert (first.facts_kept, second.facts) == ((fact.uuid,), (fact.uuid,))
    await ana.forgetting.restore(
        first.restorable_as
    )  # with the fact and its ends, though they went with the second
    [back] = (await ana.timeline()).facts
    assert back.episodes == (one.turn_id,)
    await ana.forgetting.restore(second.restorable_as)
    assert (await ana.timeline()).facts == (fact,)
    first = await ana.forget([fact.uuid], dry_run=False, soft=True)
    assert (await ana.parts.journal.queue.of_turn(one.turn_id)).payload.facts == ()  # pyright: ignore[reportOptionalMemberAccess]
    third = await ana.forget([fact.subject], dry_run=False, soft=True)
    with pytest.raises(InvalidRequest, match=f"restore that first .{third.restorable_as}"):
        await ana.forgetting.restore(first.restorable_as)
    await ana.forgetting.restore(third.restorable_as)
    await ana.forgetting.restore(first.restorable_as)
    assert (await ana.timeline()).facts == (fact,)
    assert (await ana.parts.journal.queue.of_turn(one.turn_id)).payload.facts == (knows,)  # pyright: ignore[reportOptionalMemberAccess]


async def test_what_came_back_by_itself_stays_and_the_rest_is_restored(ana: Memory) -> None:
    told = await ana.remember(
        "Ana hides gold.", source_ref="1", facts=[FactDraft("Ana", "HIDES", "Gold")]
    )
    gone = await ana.forget([told.turn_id], dry_run=False, soft=True)
    again = await ana.remember("Ana hides silver.", source_ref="1")
    assert again.turn_id == told.turn_id
    await ana.forgetting.restore(gone.restorable_as)
    assert await ana.settled()
    [turn] = await ana.get([told.turn_id])
    assert "silver" in str(turn)
    assert [fact.text for fact in (await ana.timeline()).facts] == ["Ana hides Gold"]
    assert (await ana.ledger()).problems == ()


async def test_forgetting_for_good_reaches_what_was_softly_forgotten(app: App, ana: Memory) -> None:
    both = FactDraft("Bea", "KNOWS", "Cai")
    one = await ana.remember("Zanzibar one.", facts=[both])
    two = await ana.remember("Zanzibar two.", facts=[both, FactDraft("Bea", "HIDES", "Topaz")])
    other = await ana.remember("Zanzibar three.", facts=[both])
    gone = await ana.forget([one.turn_id, two.turn_id], dry_run=False, soft=True)
    shown = await ana.forget([two.turn_id])
    assert shown.no_longer_restorable == (gone.restorable_as,)
    assert (await ana.forgetting.list())[0].turns == 2
    await ana.forget([two.turn_id], dry_run=False)
    assert await gone_from_store(app, ana, "Zanzibar two", "Topaz")
    [topaz] = [
        node.uuid for node in await ana.parts.client.scan_nodes("", 100) if node.name == "Cai"
    ]
    await ana.forget(
        [topaz], dry_run=False
    )  # a live node that a fact in the bin needs: that fact goes too
    back = await ana.forgetting.restore(gone.restorable_as)
    assert (back.turns, back.facts) == ((one.turn_id,), ())
    assert not [
        node for node in await ana.parts.client.scan_nodes("", 100) if node.name in ("Cai", "Topaz")
    ]
    gone = await ana.forget([other.turn_id, one.turn_id], dry_run=False, soft=True)
    await ana.forget([gone.restorable_as[:8]], dry_run=False)
    assert await ana.forgetting.list() == []
    assert await gone_from_store(app, ana, "Zanzibar")


class Clocks:
    """The wall clock and the running time of an app, moved by a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = timedelta(0)
        self.ran_s = 0.0
        real, mark = now, RunningTime.mark
        for module in ("pps.ingest.recycle_bin", "pps.ingest.write_path", "pps.core.time"):
            monkeypatch.setattr(f"{module}.now", lambda: real() + self.ahead)

        def moved(running: RunningTime) -> RunningMark:
            done = mark(running)
            return replace(done, seconds=done.seconds + self.ran_s)

        monkeypatch.setattr(RunningTime, "mark", moved)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


async def forgotten_softly(app: App, text: str) -> str:
    """Let ana be told something and forget it softly; return the id by which it can be restored."""
    async with app.memory("ana") as memory:
        told = await memory.remember(text)
        return (await memory.forget([told.turn_id], dry_run=False, soft=True)).restorable_as


async def reopened(app: App) -> None:
    await app.archive("ana")  # closes it
    await app.archive("ana", undo=True)


async def test_it_is_erased_when_two_checks_a_day_of_running_apart_found_it_over_its_time(
    app: App, clocks: Clocks
) -> None:
    await app.create("ana")
    restorable = await forgotten_softly(app, "Zanzibar.")
    clocks.ahead = timedelta(days=30)
    async with app.memory("ana") as memory:
        assert await memory.forgetting.list() == []
        with pytest.raises(NotFound):
            await memory.forgetting.restore(restorable)
        await memory.remember("Something else.")
        assert await memory.settled()
        assert await held_in_store(app, memory, "Zanzibar")
        clocks.ran_s = ERASE_AFTER_S - 60
        await memory.remember("Something else again.")
        assert await memory.settled()
        assert await held_in_store(app, memory, "Zanzibar")
        clocks.ran_s = ERASE_AFTER_S + 60
        await memory.remember("And again.")
        assert await memory.settled()
        assert await gone_from_store(app, memory, "Zanzibar")


async def test_a_clock_that_jumps_at_a_start_erases_nothing_and_is_reported(
    app: App, clocks: Clocks
) -> None:
    await app.create("ana")
    restorable = await forgotten_softly(app, "Zanzibar.")
    clocks.ahead = timedelta(days=40)
    for _ in range(3):  # however often it starts
        await reopened(app)
        async with app.memory("ana") as memory:
            assert await held_in_store(app, memory, "Zanzibar")
            [problem] = (await memory.health()).problems
            assert "40 days after the latest entry" in problem
            assert "set it right" in problem
    clocks.ahead = timedelta(0)
    clocks.ran_s = ERASE_AFTER_S + 60
    await reopened(app)
    clocks.ahead = timedelta(days=40)
    clocks.ran_s += 60  # the first jump was taken back in between: it counts anew
    await reopened(app)
    clocks.ahead = timedelta(0)
    await reopened(app)
    async with app.memory("ana") as memory:
        assert (await memory.health()).problems == ()
        back = await memory.forgetting.restore(restorable)
        assert len(back.turns) == 1


async def test_running_time_adds_up_over_starts_and_closed_memories_are_looked_at(
    tmp_path: Path, clocks: Clocks
) -> None:
    settings = Settings(home=tmp_path / "home", embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        await forgotten_softly(app, "Zanzibar.")
        clocks.ahead = timedelta(days=31)
        await app.erase_overdue()
        clocks.ran_s = ERASE_AFTER_S / 2
        await app.close_all()
    clocks.ran_s = 0.0  # what ran before is stored
    async with App.open(settings) as app:
        clocks.ran_s = ERASE_AFTER_S / 2 - 60
        await app.erase_overdue()
        async with app.memory("ana") as memory:
            assert await held_in_store(app, memory, "Zanzibar")
        await app.close_all()
        clocks.ran_s = ERASE_AFTER_S / 2 + 60
        await app.erase_overdue()  # nobody opens it otherwise
        async with app.memory("ana") as memory:
            assert await gone_from_store(app, memory, "Zanzibar")


async def test_a_clock_before_the_latest_entry_is_reported(app: App, clocks: Clocks) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await memory.remember("Tea.")
        clocks.ahead = -timedelta(days=2)
        [problem] = (await memory.health()).problems
        assert "before the latest entry" in problem
        clocks.ahead = timedelta(days=50)
        health = await memory.health()
        assert health.problems == ()
        assert any("50 days after the latest entry" in note for note in health.notes)


async def test_a_folder_that_is_dropped_takes_its_softly_forgotten_passages_along(
    app: App, ana: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Zanzibar\n\nCloves.")
    await ana.documents.follow(folder)
    assert await ana.settled()
    [turn] = await ana.parts.journal.scan(0, 10)
    await ana.forget([turn.uuid], dry_run=False, soft=True)
    await ana.documents.follow(folder)
    assert (await ana.stats()).turns == 0
    await ana.documents.drop(folder)
    assert await ana.forgetting.list() == []
    assert await gone_from_store(app, ana, "Cloves")


async def test_what_an_actor_may_not_write_it_may_not_restore_or_erase_and_secrets_of_a_reason_go(
    ana: Memory,
) -> None:
    task = (await ana.records.save([RecordGiven("Task", "Buy tea", "Green.")])).records[0].record
    gone = await ana.by("execute").forget(
        [task.id], dry_run=False, soft=True, why="password: hunter2hunter2"
    )
    [held] = await ana.forgetting.list()
    assert held.by == "execute"
    assert "hunter2" not in held.why
    plan = ana.by("plan")
    for refused in (
        plan.forgetting.restore(gone.restorable_as),
        plan.forget([gone.restorable_as], dry_run=False),
    ):
        with pytest.raises(InvalidRequest, match="'plan' may not write Task"):
            await refused
    await ana.by("execute").forgetting.restore(gone.restorable_as)
    assert (await ana.records.get([task.id]))[0] == task


async def gone_from_store(app: App, memory: Memory, *words: str) -> bool:
    """Wait until words leave the store: what was erased is overwritten once the journal is idle."""

    async def are_gone() -> bool:
        return not await held_in_store(app, memory, *words)

    await settle_until(are_gone)
    return True


async def held_in_store(app: App, memory: Memory, *words: str) -> list[str]:
    """Return the files of a memory's journal, or its tables in a database, that hold any of some words."""
    if app.settings.store == "postgresql":
        return await memory.parts.journal.read(partial(tables_holding, words=words))
    folder = memory.parts.journal.path.parent
    return [
        file.name
        for file in folder.glob("memory.db*")
        if any(word.encode() in file.read_bytes() for word in words)
    ]


def tables_holding(rows: Connection, words: Sequence[str]) -> list[str]:
    """Return the tables of a PostgreSQL database that have a row of the entity with any of some words."""
    condition = " OR ".join("strpos(t::text, ?) > 0" for _ in words)
    return [
        table
        for table in tables_of(rows)
        if rows.execute(
            f'SELECT 1 FROM "{table}" AS t WHERE {condition} LIMIT 1',  # noqa: S608 - of the catalogue
            words,
        ).fetchone()
    ]
