"""Nodes that are one thing are proposed, shown, merged, and made two again exactly as they were, on both stores."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.core.values import FactDraft, Node, NodeDraft
from pps.ingest.duplicates import dump, load, merged, unmerged
from pps.memory import Memory

AT = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


async def sam_twice(memory: Memory) -> tuple[str, str]:
    """Tell of one person under two names and learn only then that they are one; return both nodes."""
    await memory.remember(
        "Samuel minds the quay with Ben.",
        nodes=[
            NodeDraft(
                "Samuel",
                kind="Person",
                summary="Minds the quay.",
                tags=("quay",),
                attributes={"age": 41},
            )
        ],
        facts=[
            FactDraft("Samuel", "KNOWS", "Ben", text="Samuel knows Ben."),
            FactDraft("Ben", "TRUSTS", "Samuel"),
        ],
    )
    await memory.remember(
        "Sam likes tea; Samuel too.",
        nodes=[
            NodeDraft("Sam", tags=("tea",), attributes={"age": 40, "hat": "blue"}),
            NodeDraft("Samuel"),
        ],
        facts=[
            FactDraft("Sam", "LIKES", "Tea", text="Sam likes tea."),
            FactDraft("Sam", "KNOWS", "Samuel"),
        ],
    )
    found = await memory.parts.journal.resolve(["sam", "samuel"])
    return found["samuel"], found["sam"]


async def everything(memory: Memory) -> object:
    """Return all that the graph, the filters and the indexes hold, in one order."""
    client, journal = memory.parts.client, memory.parts.journal
    nodes = await client.scan_nodes("", 500)
    episodes = await client.episodes_of_nodes([node.uuid for node in nodes])
    return (
        nodes,
        sorted(await client.scan_facts("", 500), key=lambda fact: fact.uuid),
        {node: sorted(found) for node, found in episodes.items()},
        await client.counts(),
        {
            name: (await journal.resolve([name])).get(name)
            for name in ("sam", "samuel", "tea", "ben")
        },
        await memory.parts.indexes.counts(),
        [hit.text for hit in (await memory.recall("Sam tea"))["facts"]],
    )


async def test_a_merge_is_shown_done_and_undone_exactly(memory: Memory) -> None:
    keep, drop = await sam_twice(memory)
    before = await everything(memory)
    planned = await memory.records.merging.merge(keep, drop)
    assert (planned.dry_run, planned.id, planned.facts, planned.mentions) == (True, "", 2, 1)
    assert await everything(memory) == before, "a dry run changes nothing"
    done = await memory.records.merging.merge(keep, drop, dry_run=False)
    assert replace(planned, id=done.id, dry_run=False) == done
    (node,) = await memory.get([keep])
    assert isinstance(node, Node)
    assert (node.name, node.kind, node.aliases, node.tags) == (
        "Samuel",
        "Person",
        ("Sam",),
        ("quay", "tea"),
    )
    assert node.attributes == {"age": 41, "hat": "blue"}
    with pytest.raises(NotFound):
        await memory.get([drop])
    assert {fact.text for fact in (await memory.timeline(id="sam")).facts} >= {
        "Samuel knows Ben.",
        "Sam likes tea.",
    }
    assert (await memory.ledger()).problems == ()
    assert [
        (one.state, one.keep_name, one.drop_name) for one in await memory.records.merging.merges()
    ] == [("applied", "Samuel", "Sam")]
    undone = await memory.records.merging.undo(done.id)
    assert undone.state == "undone"
    assert await everything(memory) == before
    assert (await memory.ledger()).problems == ()
    with pytest.raises(InvalidRequest, match="undone already"):
        await memory.records.merging.undo(done.id)


async def test_what_came_after_a_merge_stays_when_it_is_undone(memory: Memory) -> None:
    keep, drop = await sam_twice(memory)
    done = await memory.records.merging.merge(keep, drop, dry_run=False)
    later = await memory.remember(
        "Sam sings.", facts=[FactDraft("Sam", "SINGS_IN", "Choir", text="Sam sings.")]
    )
    await memory.remember(
        "x", nodes=[NodeDraft("Samuel", tags=("choir",), attributes={"voice": "low"})]
    )
    forgotten = [
        fact.uuid
        for fact in (await memory.timeline(id=keep)).facts
        if fact.text == "Sam likes tea."
    ]
    await memory.forget(forgotten, dry_run=False)
    await memory.records.merging.undo(done.id)
    kept, back = await memory.get([keep, drop])
    assert isinstance(kept, Node)
    assert isinstance(back, Node)
    assert (kept.aliases, kept.tags, kept.attributes) == (
        (),
        ("quay", "choir"),
        {"age": 41, "voice": "low"},
    )
    assert (back.name, back.tags, back.attributes) == ("Sam", ("tea",), {"age": 40, "hat": "blue"})
    assert later.turn_id in {
        turn for fact in (await memory.timeline(id=keep)).facts for turn in fact.episodes
    }
    assert "Sam likes tea." not in {fact.text for fact in (await memory.timeline()).facts}


async def test_equal_names_are_proposed_first_then_aliases_and_two_records_never(
    memory: Memory,
) -> None:
    records = await memory.records.add_events(
        [("one text", {"title": "Log"}), ("another", {"title": "log"})]
    )
    await memory.remember(
        "x", nodes=[NodeDraft("Priya", kind="Person"), NodeDraft("Tide"), NodeDraft("Flood")]
    )
    note = await memory.records.add_event("About her.", title="Priya")
    flood = (await memory.parts.journal.resolve(["flood"]))["flood"]
    (node,) = await memory.parts.client.nodes([flood])
    await memory.parts.client.save_nodes([replace(node, aliases=("TIDE",))], {})
    found = await memory.records.merging.duplicates()
    assert [(*sorted((one.keep_name, one.drop_name)), one.why) for one in found] == [
        ("Priya", "Priya", "the same name"),
        ("Flood", "Tide", "an alias of one is a name of the other"),
    ]
    assert found[0].keep == note.node_id, "the record stays, with its text"
    with pytest.raises(InvalidRequest, match="texts of their own"):
        await memory.records.merging.merge(records[0].node_id, records[1].node_id)
    done = await memory.records.merging.merge(found[0].drop, note.node_id, dry_run=False)
    assert [len(await memory.records.history(one)) for one in (found[0].drop, note.turn_id)] == [
        1,
        1,
    ]
    await memory.records.merging.undo(done.id)
    assert len(await memory.records.history(note.node_id)) == 1


async def test_names_that_are_written_differently_are_proposed_unless_their_kinds_differ(
    memory: Memory,
) -> None:
    names = ("USA", "U.S.A.", "OpenAI", "OpenAI, Inc.", "Jon", "John", "SR-052", "SR-053")
    await memory.remember("x", nodes=[NodeDraft(name) for name in names])
    await memory.remember(
        "y", nodes=[NodeDraft("my-app", kind="Project"), NodeDraft("my_app", kind="Folder")]
    )
    proposed = await memory.records.merging.duplicates()
    assert sorted(sorted((pair.keep_name, pair.drop_name)) for pair in proposed) == [
        ["OpenAI", "OpenAI, Inc."],
        ["U.S.A.", "USA"],
    ]
    assert {pair.why for pair in proposed} == {
        "the names differ only in titles, company forms, marks or signs"
    }
    merging = memory.records.merging
    await merging.merge(proposed[0].keep, proposed[0].drop, dry_run=False)
    assert len(await merging.duplicates()) == 1


async def test_bad_requests_change_nothing_and_forgetting_a_node_erases_its_merges(
    memory: Memory,
) -> None:
    keep, drop = await sam_twice(memory)
    before, merging = await everything(memory), memory.records.merging
    own = memory.parts.self_node
    calls = {
        "the same": (merging.merge(keep, keep, dry_run=False), InvalidRequest),
        "its own": (merging.merge(keep, own, dry_run=False), InvalidRequest),
        "absent": (merging.merge(keep, str(uuid4()), dry_run=False), NotFound),
        "no name": (merging.merge(keep, "Nobody", dry_run=False), NotFound),
        "no merge": (merging.undo(str(uuid4())), NotFound),
        "limit": (merging.duplicates(limit=0), InvalidRequest),
    }
    for name, (call, kind) in calls.items():
        with pytest.raises(PPSError) as caught:
            await call
        assert isinstance(caught.value, kind), name
    assert await everything(memory) == before
    await merging.merge(keep, drop, dry_run=False)
    await memory.forget([keep], dry_run=False)
    assert await merging.merges() == []


@pytest.mark.parametrize("way", ["applying", "undoing"])
async def test_a_merge_that_a_crash_cut_short_is_carried_through_at_the_next_start(
    tmp_path: Path, way: str
) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            keep, drop = await sam_twice(memory)
            before, merging = await everything(memory), memory.records.merging
            done = await merging.merge(keep, drop, dry_run=False)
            after = await everything(memory)
            row = await memory.parts.journal.merges.get(done.id)
            assert row is not None
            if way == "applying":  # the row was written, and half of what follows
                await merging.undo(done.id)
                change = load(row.change)
                await memory.parts.client.save_nodes([merged(change.kept, change.gone)], {})
            else:
                (gone,) = (load(row.change).gone,)
                await memory.parts.client.save_nodes([gone], {})
            await memory.parts.journal.merges.put(
                replace(row, state="applying" if way == "applying" else "undoing")
            )
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert await everything(memory) == (after if way == "applying" else before)
        assert [one.state for one in await memory.records.merging.merges()] == [
            "applied" if way == "applying" else "undone"
        ]


NAMES = st.sampled_from(["Sam", "sam", "Samuel", "S.", "茶"])
NODES = st.builds(
    Node,
    uuid=st.just(str(uuid4())),
    name=NAMES,
    created_at=st.just(AT),
    kind=st.sampled_from(["Thing", "Person"]),
    summary=st.sampled_from(["", "a", "b"]),
    aliases=st.lists(NAMES, max_size=3, unique=True).map(tuple),
    tags=st.lists(st.sampled_from("xyz"), max_size=3, unique=True).map(tuple),
    attributes=st.dictionaries(st.sampled_from("pq"), st.integers(0, 2), max_size=2),
)


@given(NODES, NODES)
def test_undoing_gives_back_the_node_letter_for_letter_and_loses_no_name_on_the_way(
    kept: Node, gone: Node
) -> None:
    after = merged(kept, gone)
    assert unmerged(after, kept, gone) == kept
    names = {name.casefold() for name in (after.name, *after.aliases)}
    assert {
        name.casefold() for node in (kept, gone) for name in (node.name, *node.aliases)
    } == names
    assert merged(after, gone) == after
    assert set(after.tags) == {*kept.tags, *gone.tags}


def test_the_change_of_a_merge_comes_back_from_json_as_it_was() -> None:
    from pps.ingest.duplicates import MergeMoves

    node = Node(
        str(uuid4()), "Sam", AT, attributes={"a": [1, {"b": None}]}, aliases=("S",), tags=("x",)
    )
    moves = MergeMoves(node, node, ("1",), (), ("2", "3"), ("3",), record=True)
    assert load(dump(moves)) == moves
    assert json.loads(dump(moves))["record"] is True
