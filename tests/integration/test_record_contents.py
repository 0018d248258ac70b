"""A record is found by what it says and dated by when that happened, on both stores; chat around it changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.time import now
from pps.core.values import Node, NodeDraft
from pps.journal.entries import Change
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.recall.perspectives import PERSPECTIVES
from tests.integration.recall_scene import ask, by_name

START = datetime(2021, 5, 1, 9, 0, tzinfo=UTC)
NOTES: Mapping[str, tuple[str, str]] = {
    "Flat": ("The landlord gets 940 euros on the first of each month.", "What is the rent?"),
    "Bram": ("He looks after three hives behind the barn and sells honey.", "Who keeps bees?"),
    "Router": (
        "The password of the wireless network is on the back of the box.",
        "How do I get on the wifi?",
    ),
    "Ada": (
        "Peanuts make her throat swell, so she carries an injection.",
        "Which allergy is there?",
    ),
    "Car": (
        "The blue hatchback goes to the garage for its inspection in March.",
        "When is the vehicle checked?",
    ),
    "Tuesday": ("Choir practice begins at seven in the church hall.", "Where do we sing?"),
    "Grandfather": (
        "He was a stoker on a steam ship before the war.",
        "What work did my ancestor do at sea?",
    ),
    "Bread": (
        "Feed the sourdough starter every evening with rye flour.",
        "How is the bread starter kept alive?",
    ),
    "Lisbon": (
        "We fly on the ninth and stay in a small hotel by the river.",
        "Where do we go on holiday?",
    ),
    "Cat": (
        "The old tom needs his kidney tablets twice a day.",
        "Which medicine does our pet take?",
    ),
}
CHAT = (
    "Good morning! Did you sleep well?",
    "The rain has stopped at last.",
    "Shall we watch something tonight?",
    "I read half of that novel on the train.",
    "Please send me the slides when they are ready.",
    "Ha, that reminds me of last summer.",
)


async def notes(memory: Memory) -> None:
    await memory.remember_many(
        [(text, {"session": f"s{n % 4}", "source_ref": f"c{n}"}) for n, text in enumerate(CHAT * 4)]
    )
    await memory.records.add_events(
        [
            (
                text,
                {
                    "title": title,
                    "source": "notes",
                    "source_ref": title,
                    "timestamp": START + timedelta(days=n),
                },
            )
            for n, (title, (text, _)) in enumerate(NOTES.items())
        ]
    )
    assert await memory.settled()


@pytest.fixture
async def meaning(settings: Settings, tmp_path: Path) -> AsyncIterator[Memory]:
    """A memory with the notes, on each store, and with the model that is shipped."""
    shipped = settings.model_copy(
        update={"embedder": EmbedderSettings(), "home": tmp_path / "shipped"}
    )
    async with App.open(shipped) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await notes(memory)
            yield memory


async def test_ten_questions_find_the_ten_notes_that_answer_them(meaning: Memory) -> None:
    for profile in ("default", "ambient", "blended"):
        first: list[str] = []
        for _, question in NOTES.values():
            hits = (await meaning.recall(question, profile=profile, channels=("nodes",)))["nodes"]
            first.append(hits[0].item.name if isinstance(hits[0].item, Node) else "")
        right = sum(one == title for one, title in zip(first, NOTES, strict=True))
        assert right >= 9, (profile, first)
    pack = await meaning.ambient_recall("Who keeps bees?")
    assert "three hives behind the barn" in pack.text


async def found(memory: Memory, query: str, perspective: str = "dense") -> Mapping[str, float]:
    find = PERSPECTIVES[perspective].retrieve
    assert find is not None
    scored = {one.id: one.score for one in await find(ask(memory, query), "nodes", 50)}
    assert scored
    return {
        item.name: scored[item.uuid]
        for item in await memory.get(list(scored))
        if isinstance(item, Node)
    }


async def test_the_entry_of_what_a_record_says_follows_every_change(memory: Memory) -> None:
    made = await memory.records.add_event("The gate is green.", title="Gate", source="notes")
    await memory.remember("A hinge.", nodes=[NodeDraft("Hinge", summary="It bears the gate.")])
    assert (await found(memory, "Gate\nThe gate is green."))["Gate"] == pytest.approx(1.0, abs=1e-5)
    assert (await found(memory, "Gate", "dense_names"))["Gate"] == pytest.approx(1.0, abs=1e-5)
    assert (await found(memory, "Hinge"))["Hinge"] == pytest.approx(
        1.0, abs=1e-5
    )  # a plain node says its name

    await memory.records.append(
        made.node_id, "Its bolt is iron."
    )  # the summary, its first sentence, stays
    assert (await found(memory, "Gate\nThe gate is green.\n\nIts bolt is iron."))[
        "Gate"
    ] == pytest.approx(1, abs=1e-5)
    assert "Gate" in by_name((await memory.recall("bolt", channels=("nodes",)))["nodes"])
    await memory.records.update(made.node_id, content="The gate is gone.", title="Gap")
    assert (await found(memory, "Gap\nThe gate is gone."))["Gap"] == pytest.approx(1.0, abs=1e-5)
    assert set(await found(memory, "bolt or gap", "bm25")) == {"Gap"}
    assert (
        by_name((await memory.recall("bolt", profile="blended", weights={"dense": 0.0}))["nodes"])
        == {}
    )

    await memory.reindex()
    assert (await found(memory, "Gap\nThe gate is gone."))["Gap"] == pytest.approx(1.0, abs=1e-5)
    await memory.forget([made.node_id], dry_run=False)
    vectors, _ = await memory.parts.indexes.owners("records")
    assert vectors == set()
    assert (await memory.ledger()).problems == ()


async def test_a_record_whose_text_lost_its_vectors_is_seen_and_mended(memory: Memory) -> None:
    made = await memory.records.add_event("The gate is green.", title="Gate", source="notes")
    await memory.parts.indexes.apply([], [("records", made.node_id)])
    assert [one.what for one in (await memory.ledger()).agreements if not one.ok] == [
        "nodes and vector index"
    ]
    await memory.reindex(which="vectors")
    assert (await found(memory, "Gate\nThe gate is green."))["Gate"] == pytest.approx(1.0, abs=1e-5)


async def test_what_an_upgrade_marks_gets_its_entry_and_its_time(memory: Memory) -> None:
    made = await memory.records.add_event(
        "The gate is green.", title="Gate", source="notes", timestamp=START
    )
    await memory.remember(
        "A hinge.", nodes=[NodeDraft("Hinge", summary="It bears the gate.")], occurred_at=START
    )
    nodes = [node.uuid for node in await memory.parts.client.scan_nodes("", 100)]
    await memory.parts.indexes.apply([], [("records", made.node_id)])
    await memory.parts.journal.log_changes([Change("node", one) for one in nodes])

    await memory.parts.indexer.drain()

    assert (await found(memory, "Gate\nThe gate is green."))["Gate"] == pytest.approx(1.0, abs=1e-5)
    assert await names_in(memory, until=START + timedelta(days=1)) == ["Gate", "Hinge"]


async def names_in(memory: Memory, **filters: datetime) -> Sequence[str]:
    recalled = await memory.recall("gate hinge", channels=("nodes",), filters=ItemFilter(**filters))
    return sorted(set(by_name(recalled["nodes"])) - {"Ana"})


async def test_nodes_are_as_old_as_what_tells_of_them_and_not_as_their_ingestion(
    memory: Memory,
) -> None:
    late = START + timedelta(days=400)
    made = await memory.records.add_event(
        "The gate is green.", title="Gate", source="notes", timestamp=START
    )
    turn = await memory.remember(
        "A hinge for the gate.",
        nodes=[NodeDraft("Hinge", summary="It bears the gate.")],
        occurred_at=START,
    )
    await memory.remember(
        "Hinge and gate again.",
        nodes=[NodeDraft("Hinge", summary="It bears the gate."), NodeDraft("Gate")],
        occurred_at=late,
    )

    assert await names_in(memory, until=START + timedelta(days=1)) == ["Gate", "Hinge"]
    assert await names_in(memory, since=late) == ["Hinge"]  # a record goes by its own text alone
    assert await names_in(memory, since=now() - timedelta(hours=1)) == []
    then = await memory.recall("gate", channels=("nodes",), during="May 2021")
    assert {"Gate", "Hinge"} <= set(by_name(then["nodes"]))
    hits = by_name(
        (await memory.recall("gate hinge", profile="blended", as_of=late + timedelta(days=7)))[
            "nodes"
        ]
    )
    assert hits["Hinge"].signals["recency"] == pytest.approx(0.75)
    assert hits["Gate"].signals["recency"] == 0.0
    await memory.forget([turn.turn_id], dry_run=False)
    assert await names_in(memory, until=START + timedelta(days=1)) == ["Gate"]
    await memory.reindex()
    assert await names_in(memory, since=late) == ["Hinge"]
    [node] = await memory.get([made.node_id])
    assert node.created_at > now() - timedelta(
        hours=1
    )  # the graph's own stays the moment of taking in


async def test_the_own_node_is_near_nothing_when_no_anchor_is_given(memory: Memory) -> None:
    await memory.records.add_event("The gate is green.", title="Gate", source="notes")
    hits = (await memory.recall("what colour is the gate", profile="blended", channels=("nodes",)))[
        "nodes"
    ]
    assert next(iter(by_name(hits))) == "Gate"
    assert all("near_center" not in hit.signals for hit in hits)
