"""Forgetting and merging are one transaction each: what fails in it changes nothing, and the receipt names what has not followed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ModelUnavailable, StoreUnavailable
from pps.core.values import FactDraft, NodeDraft
from pps.graph.graph_store import GraphChange
from pps.index.text_index import TextIndex
from pps.index.vector_index import VectorIndex
from pps.ingest.anchors import Anchors
from pps.ingest.indexer import Indexer
from pps.ingest.slots import Slots
from pps.journal.closing_rows import Closings
from pps.journal.journal import Journal
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from tests.erasing import left_in

WORDS = "Ana lives in Quizzenfeld now."


def _fails(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("disk full: free some space")


async def _fails_later(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("disk full: free some space")


async def _moved(memory: Memory) -> str:
    """Tell where Ana lived and where she lives; return the later turn."""
    turns = [
        await memory.remember(
            text,
            occurred_at=datetime(2026, month, 3, tzinfo=UTC),
            facts=[FactDraft("Ana", "LIVES_IN", place, text=text)],
        )
        for text, place, month in (
            ("Ana lives in Rome.", "Rome", 1),
            (WORDS, "Quizzenfeld", 4),
        )
    ]
    assert await memory.settled(30)
    return turns[1].turn_id


async def _state(memory: Memory) -> tuple[object, ...]:
    """Return everything that the tables say of the graph, of what is closed, and of the recycle bin."""
    client, journal = memory.parts.client, memory.parts.journal
    facts = await client.scan_facts("", 100)
    return (
        sorted((f.text, f.episodes, f.valid_at, f.invalid_at) for f in facts),
        sorted((n.uuid, n.name, n.aliases) for n in await client.scan_nodes("", 100)),
        [turn.uuid for turn in await journal.scan(0, 100)],
        await journal.closings.of([fact.uuid for fact in facts]),
        [one.id for one in await memory.forgetting.list()],
        await memory.records.merging.merges(),
    )


@pytest.mark.parametrize("soft", [False, True], ids=["for good", "softly"])
@pytest.mark.parametrize(
    ("kind", "name"), [(Closings, "forget"), (Slots, "settle"), (Journal, "set_meta")]
)
async def test_a_forget_that_fails_on_the_way_changes_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, soft: bool
) -> None:
    turn = await _moved(memory)
    before = await _state(memory)
    with monkeypatch.context() as patch:
        patch.setattr(kind, name, _fails_later)
        with pytest.raises(StoreUnavailable, match="disk full"):
            await memory.forget([turn], dry_run=False, soft=soft)
    assert await _state(memory) == before
    done = await memory.forget([turn], dry_run=False, soft=soft)
    assert done.turns == (turn,)
    assert done.pending == ()
    (home,) = await memory.parts.client.scan_facts("", 100)
    assert (home.text, home.invalid_at) == ("Ana lives in Rome.", None)


async def test_a_merge_that_fails_on_the_way_changes_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.remember("Sam and Samuel met.", nodes=[NodeDraft("Sam"), NodeDraft("Samuel")])
    assert await memory.settled(30)
    nodes = {node.name: node.uuid for node in await memory.parts.client.scan_nodes("", 100)}
    merging = memory.records.merging
    before = await _state(memory)
    with monkeypatch.context() as patch:
        patch.setattr(Slots, "settle", _fails_later)
        with pytest.raises(StoreUnavailable):
            await merging.merge(nodes["Sam"], nodes["Samuel"], dry_run=False)
    assert await _state(memory) == before
    merged = await merging.merge(nodes["Sam"], nodes["Samuel"], dry_run=False)
    between = await _state(memory)
    with monkeypatch.context() as patch:
        patch.setattr(Slots, "settle", _fails_later)
        with pytest.raises(StoreUnavailable):
            await merging.undo(merged.id)
    assert await _state(memory) == between
    await merging.undo(merged.id)
    assert (await _state(memory))[:2] == before[:2]


async def test_an_index_that_cannot_follow_is_named_and_erased_later(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _moved(memory)
    with monkeypatch.context() as patch:
        patch.setattr(TextIndex, "purge", _fails)
        patch.setattr(VectorIndex, "purge", _fails)
        done = await memory.forget([turn], dry_run=False)
    assert done.turns == (turn,)
    assert set(done.pending) == {"text", "vectors"}
    found = await memory.recall("Quizzenfeld", limit=20)
    hits = [hit for channel in ("facts", "nodes", "episodes") for hit in found[channel]]
    assert not [hit for hit in hits if "Quizz" in hit.text]
    await memory.forgetting.tend()
    assert left_in(_data(memory), ["Quizzenfeld"]) == []
    assert (await memory.ledger()).problems == ()


async def test_a_model_that_is_away_keeps_nothing_from_being_forgotten(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _moved(memory)

    async def away(*_: Any, **__: Any) -> Any:
        raise ModelUnavailable("the embedding model is away")

    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "drain", away)
        done = await memory.forget([turn], dry_run=False)
    assert set(done.pending) == {"text", "vectors"}
    await memory.forgetting.tend()
    assert left_in(_data(memory), ["Quizzenfeld"]) == []


async def test_an_anchors_file_that_cannot_be_removed_is_named_and_removed_later(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = await memory.parts.anchors.save("Harbour", "The boat lies at Quizzenfeld.")
    with monkeypatch.context() as patch:
        patch.setattr(Anchors, "delete", _fails_later)
        done = await memory.forget([anchor.slug], dry_run=False)
    assert done.pending == (f"anchor:{anchor.slug}",)
    await memory.forgetting.tend()
    assert await memory.parts.anchors.list() == []
    assert left_in(_data(memory), ["Quizzenfeld"]) == []


async def test_an_agent_is_told_what_is_pending(
    app: App, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await _moved(memory)
    monkeypatch.setattr(VectorIndex, "purge", _fails)
    told = await Calls(app).answer(
        Caller.of_entity("ana"), "forget", {"ids": [turn], "dry_run": False}
    )
    assert told.data["pending"] == ["vectors"]
    assert "still on disk in: vectors" in told.text


def _data(memory: Memory) -> Path:
    return memory.parts.journal.path.parent


async def test_what_an_older_pps_had_begun_to_forget_is_gone_at_the_next_start(
    settings: Settings,
) -> None:
    """It noted its plan before it removed anything, in several transactions; a crash may have come after any."""
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            turn = await _moved(memory)
            [later] = [
                fact for fact in await memory.parts.client.scan_facts("", 100) if fact.text == WORDS
            ]
            plan = {
                "turns": [turn],
                "facts": [later.uuid],
                "nodes": [later.object],
                "asked": [turn],
            }
            await memory.parts.client.apply(GraphChange(gone_facts=[later.uuid]))
            await memory.parts.journal.set_meta("forgetting", json.dumps(plan))
    async with App.open(settings) as app, app.memory("ana") as memory:
        (home,) = await memory.parts.client.scan_facts("", 100)
        assert (home.text, home.invalid_at) == ("Ana lives in Rome.", None)
        assert [one.uuid for one in await memory.parts.journal.turns([turn])] == []
        assert await memory.parts.journal.get_meta("forgetting") == ""
        assert left_in(_data(memory), ["Quizzenfeld"]) == []
        assert (await memory.ledger()).problems == ()
