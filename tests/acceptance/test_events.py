"""S1-20: a hundred events from every source, end to end: nodes, tags, relations, versions and indexes are right."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import Node
from pps.ingest.recorder import EventOptions

SOURCES = {
    "whisper": "voice",
    "screenpipe": "ambient",
    "mcp": "agent",
    "editor": "manual",
    "telegram": "manual",
}
START = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)


def event(number: int) -> tuple[str, EventOptions]:
    """Return an event that links to the one after it, which does not exist yet, and is a child of the one before."""
    source = list(SOURCES)[number % len(SOURCES)]
    options: EventOptions = {
        "source": source,
        "source_ref": f"e{number}",
        "title": f"Event {number}",
        "timestamp": START + timedelta(minutes=number),
        "tags": [f"by-{source}"],
        "metadata": {"number": number},
    }
    if number:
        options["parent_node_id"] = f"event {number - 1}"
    return f"Number {number} of many. Then [[Event {number + 1}]]. #many", options


async def test_a_hundred_events_from_every_source_are_all_there_once_and_joined(
    tmp_path: Path,
) -> None:
    async with App.open(Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            events = [event(number) for number in range(100)]
            receipts = [
                one
                for at in range(0, 100, 20)
                for one in await memory.records.add_events(events[at : at + 20])
            ]
            again = await memory.records.add_events(events)
            assert {one.state for one in receipts} == {"done"}
            assert [one.node_id for one in again] == [one.node_id for one in receipts]
            assert {one.state for one in again} == {"duplicate"}
            nodes = [
                node
                for node in await memory.get([one.node_id for one in receipts])
                if isinstance(node, Node)
            ]
            assert Counter(node.kind for node in nodes) == {
                "voice": 20,
                "ambient": 20,
                "agent": 20,
                "manual": 40,
            }
            for number, node in enumerate(nodes):
                source = list(SOURCES)[number % len(SOURCES)]
                assert (node.name, node.tags) == (f"Event {number}", (f"by-{source}", "many"))
                assert (node.attributes["number"], node.attributes["source"]) == (number, source)
                assert node.summary == f"Number {number} of many."
            facts = await memory.parts.client.facts_of_nodes([node.uuid for node in nodes], 1_000)
            place = {node.uuid: number for number, node in enumerate(nodes)}
            joined = Counter(
                (fact.relation, place[fact.object] - place[fact.subject]) for fact in facts
            )
            assert joined == {("references", 1): 99, ("child_of", -1): 99}
            stats = await memory.stats()
            assert (stats.turns, stats.nodes, stats.unfinished_jobs, stats.index_lag) == (
                100,
                101,
                0,
                0,
            )
            assert stats.text_indexed["nodes"] == stats.vector_indexed["nodes"] == 101
            assert (await memory.ledger()).problems == ()
            assert receipts[42].turn_id in {
                hit.id for hit in (await memory.recall("number 42 of many"))["episodes"]
            }
