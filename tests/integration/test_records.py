"""Events become records: titles, kinds, tags, parents, links and relations, on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import pytest

from pps.app import App
from pps.core.errors import ConfigError, InvalidRequest, NotFound
from pps.core.ids import stable_id
from pps.core.values import Fact, Node, NodeDraft, RelationDraft, Turn
from pps.graph.graph_store import GraphChange
from pps.index.indexes import FOLLOWERS, Follower, IndexDoc
from pps.journal.change_log import log_changes
from pps.journal.db import Work, nothing, tally_rows
from pps.journal.entries import Change
from pps.memory import Memory
from tests.waiting import PATIENCE_S

START = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


async def node(memory: Memory, uuid: str) -> Node:
    (found,) = await memory.get([uuid])
    assert isinstance(found, Node)
    return found


async def relations(memory: Memory, uuid: str) -> set[tuple[str, str, str]]:
    """Return (subject, relation, object) by name of the relations that hold around a node."""
    facts = await memory.parts.client.facts_of_nodes([uuid], 100)
    names = {
        n.uuid: n.name
        for n in await memory.parts.client.nodes([e for f in facts for e in (f.subject, f.object)])
    }
    return {
        (names[f.subject], f.relation, names[f.object])
        for f in facts
        if f.kind == "relation" and f.invalid_at is None
    }


async def test_an_event_becomes_a_record_with_its_source_in_the_journal(memory: Memory) -> None:
    receipt = await memory.records.add_event(
        "The harbour light is out. We should tell #Maintenance, and #maintenance only.",
        source="whisper",
        source_ref="w1",
        timestamp=START,
        tags=["Harbour"],
        metadata={"place": "pier 3"},
        project_path="/srv/tarn",
    )
    assert (receipt.state, receipt.edges_created, receipt.skipped) == ("done", 0, ())
    assert (
        receipt.title
        == "The harbour light is out. We should tell #Maintenance, and #maintenance only."
    )
    assert receipt.tags_applied == ("harbour", "maintenance")
    record = await node(memory, receipt.node_id)
    assert (record.kind, record.summary, record.tags) == (
        "voice",
        "The harbour light is out.",
        receipt.tags_applied,
    )
    assert record.attributes == {
        "place": "pier 3", "project_path": "/srv/tarn", "source": "whisper", "source_ref": "w1",
    }  # fmt: skip
    (turn,) = await memory.get([receipt.turn_id])
    assert isinstance(turn, Turn)
    assert (turn.source, turn.kind, turn.occurred_at) == ("whisper", "voice", START)
    again = await memory.records.add_event("other words", source="whisper", source_ref="w1")
    assert (again.state, again.node_id) == ("duplicate", receipt.node_id)


async def test_equal_words_within_half_a_minute_are_one_event_unless_their_titles_differ(
    memory: Memory,
) -> None:
    first = await memory.records.add_event("same words", title="One", timestamp=START)
    again = await memory.records.add_event("same   words", title="One", timestamp=START)
    other = await memory.records.add_event("same words", title="Two", timestamp=START)
    assert (again.state, again.node_id) == ("duplicate", first.node_id)
    assert (other.state, other.node_id != first.node_id) == ("done", True)


async def test_a_link_finds_its_title_in_any_case_and_one_to_a_later_title_is_made_when_that_appears(
    memory: Memory,
) -> None:
    early = await memory.records.add_event(
        "See [[token  STORAGE]] and [[Auth Flow]].", title="Notes"
    )
    assert (early.edges_created, len(early.skipped)) == (0, 2)
    talk = await memory.remember("We spoke of [[Auth flow]] for an hour.")
    flow = await memory.records.add_event(
        "OAuth with a proof key.", title="Auth Flow", source="mcp"
    )
    assert await relations(memory, flow.node_id) == {("Notes", "references", "Auth Flow")}
    assert (
        talk.turn_id in (await memory.parts.client.episodes_of_nodes([flow.node_id]))[flow.node_id]
    )
    late = await memory.records.add_event(
        "In the keychain; see [[auth flow]].", title="Token Storage"
    )
    assert late.edges_created == 1
    assert await relations(memory, late.node_id) == {
        ("Notes", "references", "Token Storage"),
        ("Token Storage", "references", "Auth Flow"),
    }
    facts = await memory.parts.client.facts_of_nodes([late.node_id], 10)
    assert {fact.attributes["weight"] for fact in facts} == {1.0}
    await memory.remember("Sam minds the quay.", nodes=[NodeDraft("Sam", aliases=("Samuel",))])
    waits = await memory.records.add_event("Ask [[samuel]].", title="Who")
    assert await relations(memory, waits.node_id) == {("Who", "references", "Sam")}


async def test_a_child_points_to_its_parent_by_id_or_title_and_one_that_is_missing_is_reported(
    memory: Memory,
) -> None:
    top = await memory.records.add_event("all of it", title="Plan")
    by_id = await memory.records.add_event("one part", title="Part one", parent_node_id=top.node_id)
    by_title = await memory.records.add_event("two part", title="Part two", parent_node_id="PLAN")
    lost = await memory.records.add_event(
        "three part", title="Part three", parent_node_id="Nowhere"
    )
    assert [one.edges_created for one in (by_id, by_title, lost)] == [1, 1, 0]
    assert [one.what for one in lost.skipped] == ["parent"]
    assert await relations(memory, top.node_id) == {
        ("Part one", "child_of", "Plan"),
        ("Part two", "child_of", "Plan"),
    }


async def test_events_of_one_call_are_one_transaction_and_link_to_each_other(
    memory: Memory,
) -> None:
    receipts = await memory.records.add_events(
        [("see [[B]]", {"title": "A"}), ("see [[A]]", {"title": "B", "parent_node_id": "A"})]
    )
    assert [one.state for one in receipts] == ["done", "done"]
    wanted = {("A", "references", "B"), ("B", "references", "A"), ("B", "child_of", "A")}
    assert await relations(memory, receipts[0].node_id) == wanted
    await memory.settled()
    before = await memory.stats()
    with pytest.raises(InvalidRequest, match="title"):
        await memory.records.add_events([("fine", {}), ("bad", {"title": "x" * 501})])
    assert await memory.stats() == before


async def test_relations_are_made_by_id_or_name_once_and_what_is_missing_is_skipped(
    memory: Memory,
) -> None:
    a, b = await memory.records.add_events([("a text", {"title": "A"}), ("b text", {"title": "B"})])
    drafts = [
        RelationDraft("a", b.node_id, "depends_on", 0.5),
        RelationDraft("A", "Nowhere", "extends"),
        RelationDraft("A", a.node_id, "extends"),
        RelationDraft("B", "A", "contradicts"),
    ]
    made = await memory.records.relate(drafts, created_by="mira")
    assert (made.edges_created, len(made.ids), [one.what for one in made.skipped]) == (
        2, 2, ["relations[1]", "relations[2]"],
    )  # fmt: skip
    again = await memory.records.relate(drafts)
    assert (again.edges_created, again.ids) == (0, made.ids)
    (fact,) = await memory.get([made.ids[0]])
    assert isinstance(fact, Fact)
    assert (fact.kind, fact.relation, fact.attributes["created_by"]) == (
        "relation",
        "depends_on",
        "mira",
    )
    with pytest.raises(InvalidRequest, match=r"relations\[0\]\.weight"):
        await memory.records.relate([RelationDraft("A", "B", "extends", 1.5)])


async def test_a_plain_node_becomes_the_record_of_its_title_and_a_second_record_is_one_of_its_own(
    memory: Memory,
) -> None:
    known = await memory.remember(
        "About it.", nodes=[NodeDraft("Tide Table"), NodeDraft("Priya", kind="Person")]
    )
    assert known.nodes == 2
    first = await memory.records.add_event("High at nine.", title="tide table")
    second = await memory.records.add_event("High at ten.", title="Tide Table")
    person = await memory.records.add_event("A note of hers.", title="Priya")
    assert (await node(memory, first.node_id)).summary == "High at nine."
    assert len({first.node_id, second.node_id, person.node_id}) == 3
    assert (await memory.stats()).nodes == 5  # with the entity's own


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("kind", {"kind": "two words"}),
        ("metadata.source", {"metadata": {"source": "x"}}),
        ("metadata._x", {"metadata": {"_x": 1}}),
        ("tags", {"tags": ["two words"]}),
    ],
)
async def test_a_broken_bound_names_its_field_and_changes_nothing(
    memory: Memory, field: str, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await memory.records.add_event("text", **options)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert (await memory.stats()).turns == 0


async def test_an_entity_may_keep_tags_and_relations_from_being_read_out_of_its_texts(
    app: App,
) -> None:
    created = await app.create("bo")
    await app.close_all()
    card = created.folder / "entity.toml"
    card.write_text(card.read_text().replace("= true", "= false"))
    async with app.memory("bo") as memory:
        plan = await memory.records.add_event("The plan.", title="Plan")
        other = await memory.records.add_event("See [[Plan]]. #tea", tags=["given"])
        assert (other.tags_applied, other.edges_created, other.skipped) == (("given",), 0, ())
        assert await relations(memory, plan.node_id) == set()
    await app.close_all()
    card.write_text(card.read_text().replace("relations = false", "relationz = false"))
    with pytest.raises(ConfigError, match=r"automatic\.relationz"):
        async with app.memory("bo"):
            pass


async def test_what_the_graph_refuses_is_neither_noted_nor_indexed(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = memory.parts
    ghost = Node(stable_id(memory.entity.group, "node", "ghost"), "Ghost Ship", START)
    nobody = str(uuid4())
    fact = Fact(str(uuid4()), ghost.uuid, nobody, "SAILS_WITH", "It sails.", START)
    notes = list[str]()

    with pytest.raises(NotFound):
        await parts.client.apply(
            GraphChange(nodes=[ghost], facts=[fact]), after=lambda _: notes.append("after")
        )
    assert notes == []
    await parts.indexer.drain()
    vectors, text = await parts.indexes.owners("facts")
    assert fact.uuid not in text | (vectors or set())
    if memory.parts.store == "embedded":  # one transaction: the node is undone too
        assert await parts.journal.resolve(["Ghost Ship"]) == {}


async def test_many_notes_are_indexed_page_by_page(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await memory.settled()  # from here on only this test drains
    monkeypatch.setattr("pps.ingest.indexer.DRAINED_AT_ONCE", 3)
    parts = memory.parts
    nodes = {
        one.uuid: one
        for one in (Node(str(uuid4()), f"Ship {number}", START) for number in range(8))
    }
    apply, applied = parts.indexes.apply, list[int]()

    async def counted(
        upserts: Sequence[IndexDoc],
        deletes: Sequence[tuple[str, str]],
        to: Collection[Follower] = FOLLOWERS,
    ) -> None:
        await apply(upserts, deletes, to)
        applied.append(len(upserts))

    monkeypatch.setattr(parts.indexes, "apply", counted)
    marks = [Change("node", uuid) for uuid in nodes]
    await parts.client.apply(
        GraphChange(nodes=list(nodes.values())), partial(log_changes, changes=marks)
    )
    assert await parts.indexer.drain() == len(nodes)
    assert applied == [3, 3, 2]
    assert await parts.indexer.lag() == 0
    assert nodes.keys() <= (await parts.indexes.owners("nodes"))[1]


async def test_a_drain_ends_although_there_is_always_something_new(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await memory.settled()  # from here on only this test drains
    parts, apply, pages = memory.parts, memory.parts.indexes.apply, list[int]()

    async def noted_meanwhile(
        upserts: Sequence[IndexDoc],
        deletes: Sequence[tuple[str, str]],
        to: Collection[Follower] = FOLLOWERS,
    ) -> None:
        await apply(upserts, deletes, to)
        pages.append(len(deletes))
        await parts.journal.log_changes([Change("node", str(uuid4()))])

    monkeypatch.setattr(parts.indexes, "apply", noted_meanwhile)
    await parts.journal.log_changes([Change("node", str(uuid4()))])
    async with asyncio.timeout(PATIENCE_S):
        assert await parts.indexer.drain() == 1
    assert len(pages) == 1
    assert await parts.indexer.lag() == 1  # for the next


async def test_what_is_being_written_is_not_taken_for_gone_by_another_drain(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [(await memory.records.add_event(text, title=text)).node_id for text in ("Mill", "Weir")]
    parts = memory.parts
    apply, drains = parts.client.apply, list[asyncio.Task[int]]()

    async def slowly(
        change: GraphChange, before: Work[object] = nothing, after: Work[object] = nothing
    ) -> None:
        drains.append(asyncio.create_task(parts.indexer.drain()))
        await asyncio.wait(
            drains, timeout=0.1
        )  # time enough to find nothing and to take the note away
        await apply(change, before, after)

    monkeypatch.setattr(parts.client, "apply", slowly)
    await memory.records.relate([RelationDraft(*ids, "feeds")])
    await asyncio.gather(*drains)
    assert len(drains) == 1
    counts = await parts.journal.read(partial(tally_rows, own=parts.self_node))
    assert counts.edges == 1
