"""What joins a node comes with it: the newest that hold at the time that is asked about, twenty at most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pps.app import App
from pps.core.recalled import Recall
from pps.core.values import FactDraft
from pps.memory import Memory
from pps.recall.hits import MAX_RELATIONSHIPS

_MAY = datetime(2026, 5, 1, tzinfo=UTC)


def joined(recalled: Recall, name: str) -> list[str]:
    """Return the texts of what joins a node of this name, in order."""
    [hit] = [hit for hit in recalled["nodes"] if hit.text == name]
    return [one.fact.text for one in hit.relationships]


async def told(memory: Memory, facts: list[FactDraft]) -> None:
    await memory.remember("Of the harbour.", source_ref=facts[0].text, facts=facts)
    assert await memory.settled()


async def test_what_ended_is_left_out_and_stands_at_its_time(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await told(
            memory,
            [
                FactDraft(
                    "crane", "STANDS_AT", "quay", "The crane stands at the quay.", valid_at=_MAY
                )
            ],
        )
        later = _MAY + timedelta(days=60)
        moved = "The crane stands at the mill."
        await told(
            memory,
            [
                FactDraft(
                    "crane",
                    "STANDS_AT",
                    "mill",
                    moved,
                    valid_at=later,
                    invalidates=("The crane stands at the quay.",),
                )
            ],
        )
        now = await memory.recall("crane", include_relationships=True)
        assert joined(now, "crane") == [moved]
        then = await memory.recall(
            "crane", include_relationships=True, as_of=_MAY + timedelta(days=1)
        )
        assert joined(then, "crane") == ["The crane stands at the quay."]
        assert [hit.relationships for hit in now["facts"]] == [() for _ in now["facts"]]


async def test_of_many_the_newest_twenty_come(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        for at in range(MAX_RELATIONSHIPS + 5):
            await told(
                memory, [FactDraft("crane", "LIFTS", f"crate {at}", f"The crane lifts crate {at}.")]
            )
        found = joined(await memory.recall("crane", include_relationships=True), "crane")
        assert found == [
            f"The crane lifts crate {at}." for at in reversed(range(5, MAX_RELATIONSHIPS + 5))
        ]


async def test_what_holds_is_found_behind_many_that_ended(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await told(
            memory, [FactDraft("crane", "STANDS_AT", "quay", "The crane stands at the quay.")]
        )
        ended = [
            FactDraft(
                "crane",
                "LIFTS",
                f"crate {at}",
                f"The crane lifts crate {at}.",
                valid_at=_MAY,
                invalid_at=_MAY + timedelta(days=1),
            )
            for at in range(3 * MAX_RELATIONSHIPS)
        ]
        await told(memory, ended)
        found = joined(await memory.recall("crane", include_relationships=True), "crane")
        assert found == ["The crane stands at the quay."]
