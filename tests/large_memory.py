"""A memory of the size that the page is held to: 5,000 turns, 1,500 facts of a life, and a hub that 3,000 nodes join."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft, NodeDraft
from pps.ingest.drafts import RememberOptions

TURNS, FACTS, HUB_NODES = 5_000, 1_500, 3_000
HUB = "Harbour club"
_PEOPLE = 200
_PLACES = 40
_BEGIN = datetime(2024, 1, 1, 8, tzinfo=UTC)
_BATCH = 100
_FACTS_A_TURN, _MEMBERS_A_TURN = 30, 60


async def build_large_memory(home: Path, name: str) -> None:
    """Make a data folder whose entity has a memory of that size."""
    settings = Settings(
        home=home,
        store="embedded",
        embedder=EmbedderSettings(name="hash"),
    )
    async with App.open(settings) as app:
        await app.create(name)
        async with app.memory(name) as memory:
            entries = _entries()
            for start in range(0, len(entries), _BATCH):
                await memory.remember_many(entries[start : start + _BATCH])
            if not await memory.settled(300):
                raise TimeoutError("the large memory was not taken in")


def _entries() -> list[tuple[str, RememberOptions]]:
    """Return the turns: the first ones bring the facts, the others are talk."""
    stated = [_with_facts(start) for start in range(0, FACTS, _FACTS_A_TURN)]
    joined = [_with_members(start) for start in range(0, HUB_NODES, _MEMBERS_A_TURN)]
    talk = [_talk(number) for number in range(TURNS - len(stated) - len(joined))]
    entries = [*stated, *joined, *talk]
    for number, (_, options) in enumerate(entries):
        options["occurred_at"] = _BEGIN + timedelta(minutes=10 * number)
        options["session"] = f"talk {number // 50}"
        options["extraction"] = "given"
    return entries


def _with_facts(start: int) -> tuple[str, RememberOptions]:
    numbers = range(start, start + _FACTS_A_TURN)
    nodes = [
        NodeDraft(f"Person {number % _PEOPLE}", "Person", summary=f"member {number % _PEOPLE}")
        for number in numbers
    ]
    nodes += [NodeDraft(f"Town {number % _PLACES}", "Place") for number in numbers]
    facts = [
        FactDraft(
            f"Person {number % _PEOPLE}",
            "VISITED",
            f"Town {number % _PLACES}",
            text=f"Person {number % _PEOPLE} visited Town {number % _PLACES}, visit {number}.",
            valid_at=_BEGIN + timedelta(days=number % 900),
        )
        for number in numbers
    ]
    unique = list({node.name: node for node in nodes}.values())
    return f"Visits {start} to {numbers[-1]} were written down.", {"nodes": unique, "facts": facts}


def _with_members(start: int) -> tuple[str, RememberOptions]:
    numbers = range(start, start + _MEMBERS_A_TURN)
    nodes = [NodeDraft(HUB, "Organization")]
    nodes += [NodeDraft(f"Boat {number}", "Boat") for number in numbers]
    facts = [FactDraft(f"Boat {number}", "BERTHS_AT", HUB) for number in numbers]
    return f"Boats {start} to {numbers[-1]} were entered.", {"nodes": nodes, "facts": facts}


def _talk(number: int) -> tuple[str, RememberOptions]:
    return f"Remark {number}: the tide turns at pier {number % 97}.", {
        "role": "assistant" if number % 2 else "user"
    }
