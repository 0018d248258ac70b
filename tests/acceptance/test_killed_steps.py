"""A process is killed after steps of the write path (all of them in the long form): every step can be done again.

Each round tells the same turns to a real memory whose process dies by SIGKILL at one step. The next round's
process takes up what is left; at the end every id is there once, in journal, graph and both indexes. On each store.
"""

from __future__ import annotations

import pytest

from pps.config import Settings
from pps.entities.registry import Registry
from pps.memory import Memory
from tests.acceptance.killed_steps import (
    FORGET_STEPS,
    RECORD_STEPS,
    RESTORE_STEPS,
    SOFT_STEPS,
    STEPS,
    TURNS,
    UNDONE_FORGET_STEPS,
    UNDONE_RESTORE_STEPS,
    UNDONE_SOFT_STEPS,
    forget_killed_at,
    killed,
    killed_at,
    record_killed_at,
    restore_killed_at,
    soft_killed_at,
    taken_up,
    tell_records,
)
from tests.postgresql_server import PostgresqlServer


async def test_a_kill_after_any_step_loses_and_doubles_nothing(settings: Settings) -> None:
    rounds = killed(STEPS, killed_at, settings)
    async with taken_up(settings) as memory:
        told = len(rounds) * TURNS
        stats = await memory.stats()
        assert (stats.turns, stats.episodes, stats.facts) == (told, told, told)
        assert len(await memory.jobs.list("done", limit=1_000)) == told


async def test_a_kill_while_records_are_kept_linked_and_changed_loses_and_doubles_nothing(
    settings: Settings,
) -> None:
    """What was not acknowledged is told again by its reference, as a client would."""
    rounds = killed(RECORD_STEPS, record_killed_at, settings)
    async with taken_up(settings) as memory:
        for number in rounds:
            await tell_records(memory, number)
        assert await memory.settled(60)
        stats = await memory.stats()
        assert (stats.turns, stats.episodes) == (2 * len(rounds), 2 * len(rounds))
        nodes = {node.uuid: node for node in await memory.parts.client.scan_nodes("", 100)}
        records = {node.name: node for node in nodes.values() if node.kind != "Self"}
        assert sorted(records) == sorted(
            f"{name} {number}" for name in ("Early", "Later") for number in rounds
        )
        relations = [
            (nodes[fact.subject].name, fact.relation, nodes[fact.object].name)
            for fact in await memory.parts.client.scan_facts("", 100)
            if fact.invalid_at is None
        ]
        assert sorted(relations) == [
            (f"Early {number}", "references", f"Later {number}") for number in rounds
        ]
        for number in rounds:
            versions = await memory.records.history(records[f"Early {number}"].uuid)
            assert [one.version.change for one in versions] == ["modified", "created"]
            assert versions[0].version.content.startswith("Changed. ")
            assert len(await memory.records.history(records[f"Later {number}"].uuid)) == 1


async def test_a_kill_while_something_is_forgotten_leaves_all_or_nothing_of_it(
    settings: Settings, request: pytest.FixtureRequest
) -> None:
    """One transaction forgets; what the files still hold after it is erased when the memory is opened."""
    rounds = killed(FORGET_STEPS, forget_killed_at, settings)
    whole = [number for number in rounds if FORGET_STEPS[number] in UNDONE_FORGET_STEPS]
    gone = [number for number in rounds if number not in whole]
    async with taken_up(settings) as memory:
        stats = await memory.stats()
        assert (stats.turns, stats.episodes, stats.facts) == (len(gone) + 2 * len(whole),) * 3
        facts = await memory.parts.client.scan_facts("", 100)
        assert sorted(len(fact.episodes) for fact in facts) == (
            [1] * len(rounds) + [2] * len(whole)
        ), "a turn that is gone supports none"
        names = {node.name for node in await memory.parts.client.scan_nodes("", 100)}
        assert {f"Both{number}" for number in rounds} < names
        assert {f"Gone{number}" for number in rounds} & names == {
            f"Gone{number}" for number in whole
        }
        for channel in ("episodes", "facts", "nodes"):
            found = (await memory.recall("Gone", limit=100))[channel]
            texts = " ".join(hit.text for hit in found)
            assert not [number for number in gone if f"Gone{number} " in f"{texts} "]
    assert await is_held(f"Kept {rounds[0]}.", settings, request)
    held = [number for number in rounds if await is_held(f"Gone {number}.", settings, request)]
    assert held == whole


async def is_held(text: str, settings: Settings, request: pytest.FixtureRequest) -> bool:
    """Tell whether the store has a text of the entity: in a byte of its files, or in a row of the database."""
    if settings.store == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql_server")
        group = Registry(settings.home).get("ana").entity.group
        return bool(await server.rows_with(text, group))
    files = (settings.home / "entities" / "ana" / "data").glob("memory.db*")
    return any(text.encode() in file.read_bytes() for file in files)


async def test_a_kill_while_something_is_forgotten_softly_leaves_it_there_or_restorable(
    settings: Settings,
) -> None:
    rounds = killed(SOFT_STEPS, soft_killed_at, settings)
    whole = [number for number in rounds if SOFT_STEPS[number] in UNDONE_SOFT_STEPS]
    async with taken_up(settings) as memory:
        held = await memory.forgetting.list()
        assert len(held) == len(rounds) - len(whole)
        assert (await memory.stats()).turns == len(rounds) + len(whole)
        for one in held:
            await memory.forgetting.restore(one.id)
        await _all_there(memory, rounds)


async def test_a_kill_while_something_is_restored_leaves_it_restorable_or_restored(
    settings: Settings,
) -> None:
    rounds = killed(RESTORE_STEPS, restore_killed_at, settings)
    still = [number for number in rounds if RESTORE_STEPS[number] in UNDONE_RESTORE_STEPS]
    async with taken_up(settings) as memory:
        held = await memory.forgetting.list()
        assert len(held) == len(still)
        for one in held:
            await memory.forgetting.restore(one.id)
        await _all_there(memory, rounds)


async def _all_there(memory: Memory, rounds: list[int]) -> None:
    """Both turns of each round are there, with two facts: one that both say, and one of the second alone."""
    stats = await memory.stats()
    assert (stats.turns, stats.episodes, stats.facts) == (2 * len(rounds),) * 3
    facts = await memory.parts.client.scan_facts("", 100)
    assert sorted(len(fact.episodes) for fact in facts) == [1] * len(rounds) + [2] * len(rounds)
    names = {node.name for node in await memory.parts.client.scan_nodes("", 100)}
    assert {f"{name}{number}" for number in rounds for name in ("Both", "Gone")} <= names
    assert await memory.forgetting.list() == []
