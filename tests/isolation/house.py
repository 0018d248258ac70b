"""Memories side by side in one application: what each is told, all that it shows, and the words that only it may."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pps.app import App
from pps.core.errors import PPSError
from pps.core.values import FactDraft, NodeDraft
from pps.memory import Memory
from pps.operations.calls import Calls
from pps.proof.arena import Watch
from pps.records.saving import RecordGiven, RelationGiven

WHEN = datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
NAMES = ("ana", "ana_2", "coffee")
SAME = (
    "Ana drinks coffee in the kitchen every morning.",
    "Lisbon is where Ana lives.",
    "Tea is for the evening.",
)


@dataclass
class One:
    """A memory, and ids and words that only it may ever show."""

    memory: Memory
    mark: str
    turn: str
    fact: str
    node: str
    slug: str
    record: str = ""
    relation: str = ""
    binned: str = ""
    edited: str = ""
    corrected: str = ""


@dataclass
class House:
    """Memories side by side."""

    app: App
    calls: Calls
    all: list[One]
    watch: Watch

    def seen(self, one: One, value: object, *known: str) -> list[str]:
        return self.watch.leaks(one.memory.entity.name, value, frozenset(known))


async def told(memory: Memory, watch: Watch) -> One:
    """Tell a memory what all are told, and a word that is only its own."""
    mark = f"kanarie{uuid.uuid4().hex[:12]}"
    watch.mark(memory.entity.name, mark, memory.entity.group)
    for number, text in enumerate(SAME):
        await memory.remember(
            text,
            source_ref=f"m{number}",
            session="morning",
            occurred_at=WHEN,
            nodes=[
                NodeDraft("Ana", kind="Person", summary=mark),
                NodeDraft("Coffee", summary=mark),
            ],
            facts=[FactDraft("Ana", "DRINKS", "Coffee", text="Ana drinks coffee.", valid_at=WHEN)],
        )
    secret = FactDraft("Ana", "KNOWS", mark, text=f"Ana knows {mark}.", valid_at=WHEN)
    receipt = await memory.remember(
        f"The word is {mark}.", source_ref="secret", session="morning", facts=[secret]
    )
    anchor = await memory.anchor_save(f"Kitchen {mark}", f"# Kitchen\n\nCoffee, tea and {mark}.")
    await memory.anchor_save("Kitchen", f"# Kitchen\n\nCoffee and tea. {mark}", slug="kitchen")
    page = await memory.timeline(limit=100)
    fact = next(fact for fact in page.facts if mark in fact.text)
    watch.own(
        memory.entity.name, *(one.uuid for one in page.facts), *(one.subject for one in page.facts)
    )
    watch.own(memory.entity.name, receipt.turn_id, fact.object)
    one = One(memory, mark, receipt.turn_id, fact.uuid, fact.subject, anchor.slug)
    if "Goal" in memory.kinds:
        await _planned(one, watch)
    one.edited = f"menu-{mark}"
    for text in (f"Soup and {mark}.", f"Bread and {mark}."):
        await memory.anchor_save(f"Menu {mark}", text, slug=one.edited)
    wrong = FactDraft("Ana", "FEARS", mark, text=f"Ana fears {mark}.", valid_at=WHEN)
    fears = await memory.remember(f"She fears {mark}.", source_ref="wrong", facts=[wrong])
    [feared] = [
        found for found in (await memory.timeline(limit=100)).facts if "fears" in found.text
    ]
    correction = await memory.correcting.correct(feared.uuid, "never_true")
    one.corrected = correction.turn_id
    watch.own(memory.entity.name, fears.turn_id, feared.uuid, one.corrected)
    moot = await memory.remember(f"Moot: {mark} {mark}.", source_ref="moot", session="evening")
    one.binned = (
        await memory.forget([moot.turn_id], dry_run=False, soft=True, why=mark)
    ).restorable_as
    watch.own(memory.entity.name, one.binned, moot.turn_id)
    return one


async def _planned(one: One, watch: Watch) -> None:
    """Keep records of a pack's kinds in a memory, whose words only it may show."""
    serves = RelationGiven("SERVES", "Drink less coffee")
    goal = RecordGiven(
        "Goal", "Drink less coffee", one.mark, fields={"target": one.mark}, cites=(one.fact,)
    )
    saved = await one.memory.records.save(
        [goal, RecordGiven("Task", "Buy tea", one.mark, relations=(serves,))]
    )
    one.record, one.relation = saved.records[0].record.id, saved.records[1].relations[0]
    watch.own(one.memory.entity.name, one.relation, *(r.record.id for r in saved.records))
    watch.own(one.memory.entity.name, *(r.record.turn for r in saved.records))


async def everything(one: One) -> object:
    """Return all that a memory shows of itself, in an order that does not change."""
    memory = one.memory
    stats = await memory.stats()
    return (
        replace(stats, index_lag=0),
        await memory.timeline(limit=1000),
        await memory.get([one.turn, one.fact, one.node]),
        await memory.anchor_list(),
        await memory.anchor_versions(one.edited),
        await memory.undoing.list(limit=200),
        await memory.forgetting.list(),
        await memory.records.graph() if "Goal" in memory.kinds else (),
        await memory.records.cites([one.record]),
        await memory.records.transitions(one.record),
        [
            (hit.id, hit.text)
            for hit in (await memory.recall("coffee kitchen Ana", limit=50))["facts"]
        ],
        [(hit.id, hit.text) for hit in (await memory.recall(one.mark, limit=50))["episodes"]],
    )


async def outcome(work: Any) -> object:
    try:
        return await work
    except PPSError as error:
        return f"{type(error).__name__}: {error}"
