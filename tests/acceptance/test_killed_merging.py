"""A process is killed while two nodes become one, or two again: all of it is done, or nothing; on each store."""

from __future__ import annotations

from pps.config import Settings
from pps.memory import Memory
from tests.acceptance.killed_merging import (
    STEPS,
    UNDONE_STEPS,
    ids,
    merge_killed_at,
    names,
    undo_killed_at,
)
from tests.acceptance.killed_steps import killed, taken_up


async def _homes(memory: Memory, number: int) -> dict[str, bool]:
    """Return "who lives where" of a round's person, by the nodes that there are, and whether each is open."""
    both = await ids(memory, number)
    facts = await memory.parts.client.facts_of_nodes([*both.values()], 100)
    kept, gone = names(number)
    subjects = {both[gone]: gone, both[kept]: kept}
    return {
        f"{subjects[fact.subject]} {fact.text.split()[-1]}": fact.invalid_at is None
        for fact in facts
    }


def _two(number: int) -> dict[str, bool]:
    kept, gone = names(number)
    return {f"{kept} Rome.": True, f"{gone} Milan.": True}


def _one(number: int) -> dict[str, bool]:
    kept, _ = names(number)
    return {f"{kept} Rome.": False, f"{kept} Milan.": True}


async def test_a_kill_while_two_nodes_become_one_leaves_two_or_one(settings: Settings) -> None:
    rounds = killed(STEPS, merge_killed_at, settings)
    undone = [number for number in rounds if STEPS[number] in UNDONE_STEPS]
    async with taken_up(settings) as memory:
        for number in rounds:
            expected = _two(number) if number in undone else _one(number)
            assert await _homes(memory, number) == expected
        merges = await memory.records.merging.merges()
        assert [one.state for one in merges] == ["applied"] * (len(rounds) - len(undone))
        for merge in merges:
            await memory.records.merging.undo(merge.id)
        for number in rounds:
            assert await _homes(memory, number) == _two(number)


async def test_a_kill_while_one_becomes_two_again_leaves_one_or_two(settings: Settings) -> None:
    rounds = killed(STEPS, undo_killed_at, settings)
    undone = [number for number in rounds if STEPS[number] in UNDONE_STEPS]
    async with taken_up(settings) as memory:
        for number in rounds:
            expected = _one(number) if number in undone else _two(number)
            assert await _homes(memory, number) == expected
        states = [one.state for one in await memory.records.merging.merges()]
        assert sorted(states) == ["applied"] * len(undone) + ["undone"] * (
            len(rounds) - len(undone)
        )
