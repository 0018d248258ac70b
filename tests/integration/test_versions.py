"""Update and append make versions; history shows them with what changed; forgetting takes them along."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import Node, NodeDraft, Turn
from pps.memory import Memory
from tests.held_files import files_below
from tests.secrets import SECRETS


async def node(memory: Memory, uuid: str) -> Node:
    (found,) = await memory.get([uuid])
    assert isinstance(found, Node)
    return found


async def test_an_update_changes_text_record_tags_links_and_index_and_keeps_what_was(
    memory: Memory,
) -> None:
    first, other = await memory.records.add_events(
        [
            ("Meet at the quay, see [[Plan B]]. #old", {"title": "Meeting", "tags": ["harbour"]}),
            ("x", {"title": "Plan B"}),
        ]
    )
    updated = await memory.records.update(
        first.node_id,
        content="Meet at the lighthouse. #new",
        title="Where we meet",
        metadata={"hour": 9},
        actor="Mira",
    )
    assert (updated.state, updated.version, updated.node_id) == ("done", 2, first.node_id)
    record = await node(memory, first.node_id)
    assert (record.name, record.summary, record.tags) == (
        "Where we meet",
        "Meet at the lighthouse.",
        ("harbour", "new"),
    )
    assert record.attributes["hour"] == 9
    facts = await memory.parts.client.facts_of_nodes([other.node_id], 10)
    assert [fact.invalid_at is not None for fact in facts] == [True], (
        "the link is no longer in the text"
    )
    assert [hit.id for hit in (await memory.recall("lighthouse"))["episodes"]][:1] == [
        first.turn_id
    ]
    assert "quay" not in (await memory.recall("quay"))["episodes"][0].text
    newest, oldest = await memory.records.history(first.node_id)
    assert [(one.version.number, one.version.change) for one in (newest, oldest)] == [
        (2, "modified"),
        (1, "created"),
    ]
    assert (newest.version.actor, oldest.version.content) == (
        "Mira",
        "Meet at the quay, see [[Plan B]]. #old",
    )
    assert newest.diff.split("\n") == [
        "--- version 1",
        "+++ version 2",
        "@@ -1,4 +1,5 @@",
        "-title: Meeting",
        "+title: Where we meet",
        " kind: manual",
        "-tags: harbour, old",
        "-Meet at the quay, see [[Plan B]]. #old",
        "+hour: 9",
        "+tags: harbour, new",
        "+Meet at the lighthouse. #new",
    ]


async def test_append_adds_a_paragraph_to_a_turn_and_a_record_and_many_at_once_all_land(
    memory: Memory,
) -> None:
    turn = await memory.remember("Milk.", source_ref="list")
    await asyncio.gather(*(memory.records.append(turn.turn_id, f"Item {at}.") for at in range(8)))
    (found,) = await memory.get([turn.turn_id])
    assert isinstance(found, Turn)
    assert sorted(found.content.split("\n\n")) == sorted(
        ["Milk.", *(f"Item {at}." for at in range(8))]
    )
    history = await memory.records.history(turn.turn_id)
    assert [one.version.number for one in history] == list(range(9, 0, -1))
    assert {one.version.change for one in history[:-1]} == {"appended"}
    assert [hit.id for hit in (await memory.recall("item 7"))["episodes"]] == [turn.turn_id]


async def test_nothing_changed_makes_no_version_and_bad_input_changes_nothing(
    memory: Memory,
) -> None:
    record = await memory.records.add_event("as it is", title="It")
    plain = await memory.remember("About Sam.", nodes=[NodeDraft("Sam")])
    same = await memory.records.update(record.turn_id, content="as it is")
    assert (same.version, same.state) == (1, "done")
    sam = (await memory.parts.journal.resolve(["sam"]))["sam"]
    for field, call in {
        "title": memory.records.update(plain.turn_id, title="no"),
        "content": memory.records.update(plain.turn_id),
        "kind": memory.records.update(record.node_id, kind="two words"),
        "metadata.source": memory.records.update(record.node_id, metadata={"source": 1}),
        "id": memory.records.update(sam, content="x"),
        "limit": memory.records.history(record.node_id, limit=0),
    }.items():
        with pytest.raises(InvalidRequest) as caught:
            await call
        assert caught.value.field == field
    with pytest.raises(InvalidRequest, match="content"):
        await memory.records.append(record.turn_id, "x" * 65_530)
    for call in (
        memory.records.update(str(uuid4()), content="x"),
        memory.records.history(str(uuid4())),
    ):
        with pytest.raises(NotFound):
            await call
    assert [len(await memory.records.history(one)) for one in (record.node_id, plain.turn_id)] == [
        1,
        1,
    ]


async def test_forgetting_a_record_erases_its_source_and_every_version_from_the_disk(
    tmp_path: Path,
) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            kept = await memory.records.add_event("Others point here: [[Xylophone]].", title="Kept")
            record = await memory.records.add_event("the first zanzibar", title="Xylophone")
            await memory.records.update(
                record.node_id, content="the second quixotic", actor="wilhelmina"
            )
            text, _ = SECRETS["GitHub Token"]
            assert (await memory.records.append(record.node_id, f"third {text}")).redacted == 1
            planned = await memory.forget([record.turn_id])
            assert (planned.turns, planned.nodes) == ((record.turn_id,), (record.node_id,))
            gone = await memory.forget([record.node_id], dry_run=False)
            assert gone.turns == (record.turn_id,)
            with pytest.raises(NotFound):
                await memory.records.history(record.node_id)
            again = await memory.records.add_event("anew", title="xylophone")
            facts = await memory.parts.client.facts_of_nodes([kept.node_id], 10)
            assert [(fact.subject, fact.object) for fact in facts] == [
                (kept.node_id, again.node_id)
            ]
    held = b"".join(content for _, content in files_below(tmp_path))
    assert [word for word in (b"zanzibar", b"quixotic", b"wilhelmina") if word in held] == []


async def test_forgetting_the_text_of_a_node_that_others_know_too_leaves_the_node_plain(
    memory: Memory,
) -> None:
    await memory.remember("Sam is here.", nodes=[NodeDraft("Tide Table")])
    record = await memory.records.add_event("High at nine. #tides", title="Tide Table")
    await memory.forget([record.turn_id], dry_run=False)
    left = await node(memory, record.node_id)
    assert (left.name, left.kind, left.summary, left.tags, left.attributes) == (
        "Tide Table",
        "Thing",
        "",
        (),
        {},
    )
