"""A small memory that recall tests share: two friends, a kitchen, a move, and things that changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pps.config import Settings
from pps.core.recalled import Hit, Recall
from pps.core.values import FactDraft, Node, NodeDraft
from pps.ingest.drafts import RememberOptions
from pps.memory import Memory
from pps.recall.engine import RecallEngine
from pps.recall.profiles import Profiles
from pps.recall.request import RecallRequest
from pps.recall.search import Search, Sources, Tuning

BLEND = {"dense": 0.4, "bm25": 0.3, "near_center": 0.15, "tags": 0.1, "recency": 0.05}
"""Weights of the profile ``blended``."""
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

PEOPLE = (
    NodeDraft("Mira", "Person", "A gardener.", aliases=("Mirabel",)),
    NodeDraft("Tomas", "Person", "A baker.", tags=("friend",)),
)

# (days after START, session, speaker, words, facts, tags)
SAID: tuple[tuple[int, str, str, str, tuple[FactDraft, ...], tuple[str, ...]], ...] = (
    (0, "s1", "Tomas", "What do you drink in the morning?", (), ()),
    (
        0,
        "s1",
        "Mira",
        "Black coffee, always, while the kitchen is still quiet.",
        (
            FactDraft(
                "Mira", "DRINKS", "coffee", "Mira drinks black coffee in the kitchen each morning."
            ),
        ),
        ("food",),
    ),
    (0, "s1", "Tomas", "I would never get up for that.", (), ()),
    (
        3,
        "s2",
        "Mira",
        "The roses came back after the frost.",
        (FactDraft("Mira", "GROWS", "roses", "Mira grows roses."),),
        ("garden",),
    ),
    (3, "s2", "Tomas", "Lovely.", (), ()),
    (
        20,
        "s3",
        "Tomas",
        "We sold the flat in Tarn last week.",
        (FactDraft("Tomas", "LIVED_IN", "Tarn", "Tomas sold his flat in Tarn."),),
        (),
    ),
    (
        20,
        "s3",
        "Tomas",
        "My bakery opens in Oslo in May.",
        (
            FactDraft("Tomas", "OPENS", "bakery", "Tomas opens a bakery in Oslo."),
            FactDraft("bakery", "IN", "Oslo"),
        ),
        ("work",),
    ),
    (40, "s4", "Mira", "Green tea these days, coffee keeps me awake.", (), ("food",)),
)


def drafts() -> list[tuple[str, RememberOptions]]:
    """Return the scene as ``remember_many`` takes it."""
    return [
        (
            words,
            RememberOptions(
                actor=speaker,
                session=session,
                source="chat" if session != "s4" else "diary",
                occurred_at=START + timedelta(days=day, minutes=number),
                nodes=PEOPLE if number == 0 else (),
                facts=tuple(replace(fact, valid_at=START + timedelta(days=day)) for fact in facts),
                tags=tags,
                source_ref=f"m{number}",
            ),
        )
        for number, (day, session, speaker, words, facts, tags) in enumerate(SAID)
    ]


async def play(memory: Memory) -> None:
    """Remember the whole scene and wait until it is in graph and indexes."""
    await memory.remember_many(drafts())
    assert await memory.settled()


async def uuid_of(memory: Memory, name: str) -> str:
    """Return the uuid of a node by its name."""
    (uuid,) = (await memory.parts.journal.resolve([name])).values()
    return uuid


def by_name(hits: Iterable[Hit]) -> dict[str, Hit]:
    """Return name → hit, of those that are nodes."""
    return {hit.item.name: hit for hit in hits if isinstance(hit.item, Node)}


def facts_of(recalled: Recall) -> list[str]:
    """Return the sentences of the facts that were found, best first."""
    return [hit.text for hit in recalled["facts"]]


def sources(memory: Memory, tuning: Tuning | None = None) -> Sources:
    """Return what the engine of a memory reads from."""
    found = memory.parts.engine.sources
    return replace(found, tuning=tuning) if tuning else found


def ask(memory: Memory, query: str, **request: object) -> Search:
    """Return a recall in progress, for tests of one perspective."""
    return Search(sources(memory), RecallRequest(query, **request))  # pyright: ignore[reportArgumentType]


def engine(
    memory: Memory, home: Path, tuning: Tuning | None = None, **changed: object
) -> RecallEngine:
    """Return an engine on a memory's sources, some of them changed, with the profiles of a data folder."""
    found = sources(memory)
    profiles = Profiles.load(Settings(home=home))
    profiles.tuning = tuning or profiles.tuning
    return RecallEngine(replace(found, **changed, tuning=profiles.tuning), profiles)
