"""A process is killed while a fact is closed, opened again or put back: the slot comes to the same end.

On each store; each round is a person of its own, and the next round's process takes up what the last one left.
"""

from __future__ import annotations

import pytest

from pps.config import Settings
from pps.ingest.worker import Worker
from pps.memory import Memory
from tests.acceptance.killed_closings import (
    CLOSE_STEPS,
    OPEN_STEPS,
    RESTORE_STEPS,
    close_killed_at,
    open_killed_at,
    person,
    restore_killed_at,
)
from tests.acceptance.killed_steps import killed, taken_up


async def homes(memory: Memory, number: int) -> dict[str, bool]:
    """Return the homes of a round's person, and whether each is open."""
    node = (await memory.parts.journal.resolve([person(number)]))[person(number).lower()]
    facts = await memory.parts.client.facts_of_nodes([node], 100)
    return {fact.text.split()[-1]: fact.invalid_at is None for fact in facts}


async def closings(memory: Memory, number: int) -> list[str]:
    """Return why facts of a round's person are closed."""
    node = (await memory.parts.journal.resolve([person(number)]))[person(number).lower()]
    facts = await memory.parts.client.facts_of_nodes([node], 100)
    return [one.cause for one in await memory.parts.journal.closings.of([f.uuid for f in facts])]


async def stated(memory: Memory, number: int, place: str) -> str:
    """Return the turn that says that a round's person lives in a place."""
    node = (await memory.parts.journal.resolve([person(number)]))[person(number).lower()]
    facts = await memory.parts.client.facts_of_nodes([node], 100)
    return next(fact for fact in facts if place in fact.text).episodes[0]


async def test_a_kill_while_a_later_home_closes_the_earlier_leaves_one_open(
    settings: Settings,
) -> None:
    rounds = killed(CLOSE_STEPS, close_killed_at, settings)
    async with taken_up(settings) as memory:
        for number in rounds:
            assert await homes(memory, number) == {"Rome.": False, "Milan.": True}
            assert await closings(memory, number) == ["superseded"]


async def test_a_kill_while_the_later_home_is_forgotten_opens_the_earlier(
    settings: Settings,
) -> None:
    """One transaction does both: a kill within it leaves the later home there, and the earlier closed."""
    rounds = killed(OPEN_STEPS, open_killed_at, settings)
    async with taken_up(settings) as memory:
        for number in rounds:
            if OPEN_STEPS[number] != (Worker, "forgotten"):
                assert await homes(memory, number) == {"Rome.": False, "Milan.": True}
                assert await closings(memory, number) == ["superseded"]
                await memory.forget([await stated(memory, number, "Milan")], dry_run=False)
            assert await homes(memory, number) == {"Rome.": True}
            assert await closings(memory, number) == []


@pytest.mark.parametrize("forgotten", [False, True], ids=["restored", "forgotten again"])
async def test_a_kill_while_the_later_home_is_restored_closes_the_earlier_again(
    settings: Settings, forgotten: bool
) -> None:
    rounds = killed(RESTORE_STEPS, restore_killed_at, settings)
    async with taken_up(settings) as memory:
        for number in rounds:
            # A kill before the restoring was noted leaves it to be asked for again.
            for row in await memory.forgetting.list():
                await memory.forgetting.restore(row.id)
            assert await homes(memory, number) == {"Rome.": False, "Milan.": True}
            assert await closings(memory, number) == ["superseded"]
            if forgotten:
                await memory.forget([await stated(memory, number, "Milan")], dry_run=False)
                assert await homes(memory, number) == {"Rome.": True}
