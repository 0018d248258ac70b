"""The second lock alone: Graphiti's own calls and raw statements on a guarded driver, by all four ways."""

from __future__ import annotations

import copy
import pickle
import random

import pytest
from graphiti_core.nodes import EntityNode

from pps.core.errors import IsolationError, PPSError
from pps.isolation.counters import IsolationCounters
from pps.isolation.guard import GuardedDriver
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import Ids
from pps.proof.by_statement import HOOKED, STOCK, WAYS, Strike, raw_statements
from pps.proof.honest import Honest
from tests.sampling import sample

UUID = "6f2a4f0e-6d0f-5c57-9a4e-0a5b1d6f3c11"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
    pytest.mark.neo4j,
    pytest.mark.parametrize(  # the store that runs Cypher; of SQL tables see test_sql_store
        "module_settings",
        ["neo4j"],
        indirect=True,
        scope="module",
    ),
]


def strike_of(arena: Arena, chance: random.Random) -> Strike:
    being = chance.choice(arena.beings)
    other = arena.random_of(being, chance)
    return Strike(being, other.entity.group, Ids.of(other, chance))


async def take_away_what_was_made(being: Being, ids: Ids) -> None:
    """In a file of one's own, ids that another entity uses elsewhere are free."""
    if not being.shared:
        await being.client.delete_nodes([ids.node])
        await being.client.delete_episodes([ids.episode])


async def test_every_call_of_graphiti_that_reaches_out_is_refused_or_finds_nothing(
    arena: Arena,
) -> None:
    chance = dice(11)
    for attack in STOCK:
        for _ in arena.beings:
            strike = strike_of(arena, chance)
            seen: object
            if attack.refused:
                with pytest.raises(IsolationError):
                    await attack.call(strike)
                continue
            try:
                seen = await attack.call(strike)
            except Exception as error:  # noqa: BLE001 - Graphiti's own "not found" among them
                seen = error
            assert arena.watch.leaks(strike.being.name, seen, strike.ids.all()) == [], attack.name
            if strike.being.shared:
                assert isinstance(seen, IsolationError), attack.name
            await take_away_what_was_made(strike.being, strike.ids)
    for being in arena.beings:
        assert await Honest(arena).differences(being) == []


async def test_what_graphitis_pipeline_asks_in_place_of_the_database_finds_nothing_of_anothers(
    arena: Arena,
) -> None:
    chance = dice(13)
    for attack in HOOKED:
        for _ in arena.beings:
            strike = strike_of(arena, chance)
            seen: object
            try:
                seen = await attack.call(strike)
            except IsolationError as refused:  # a search of Graphiti's own names what is another's
                seen = refused
            assert arena.watch.leaks(strike.being.name, seen, strike.ids.all()) == [], attack.name
    for being in arena.beings:
        assert await Honest(arena).differences(being) == []
    strike = strike_of(arena, chance)
    operations = strike.being.client.inside.guard.graph_operations_interface
    with pytest.raises(IsolationError):
        await operations.node_get_by_names(None, strike.guard, ["Ana"], [strike.group])


@pytest.mark.parametrize("way", [name for name, _ in WAYS])
async def test_raw_statements_are_refused_or_find_nothing_by_every_way(
    arena: Arena, way: str
) -> None:
    run, chance = dict(WAYS)[way], dice(12)
    statements = range(len(raw_statements(strike_of(arena, chance))))
    for index in sample(statements, len(statements) // 2, way):
        strike = strike_of(arena, chance)
        name, text, parameters, refused = raw_statements(strike)[index]
        seen: object
        try:
            seen = await run(strike, text, **parameters)
        except PPSError as error:
            seen = error
        if refused or strike.being.shared:
            assert isinstance(seen, IsolationError), name
        assert arena.watch.leaks(strike.being.name, seen, strike.ids.all()) == [], name
    for being in arena.beings:
        assert await Honest(arena).differences(being) == []


async def test_a_refusal_inside_a_transaction_rolls_it_back(arena: Arena) -> None:
    being, other, _ = arena.beings
    mine, theirs = next(iter(being.nodes)), next(iter(other.nodes))
    forget = "MATCH (n:Entity {uuid: $uuid}) WHERE n.group_id = $group_id SET n.summary = 'gone'"

    async def both() -> None:
        async with being.bare.transaction() as transaction:
            await transaction.run(forget, uuid=mine, group_id=being.entity.group)
            await transaction.run(forget, uuid=theirs, group_id=other.entity.group)

    with pytest.raises(IsolationError):
        await both()
    assert await Honest(arena).differences(being) == []


async def test_only_empty_lists_are_answered_with_nothing_and_do_not_reach_the_store(
    arena: Arena,
) -> None:
    guard = arena.beings[0].bare
    assert await EntityNode.get_by_uuids(guard, []) == []
    everything = "MATCH (n) RETURN n.uuid AS uuid"
    assert (await guard.execute_query(everything, uuids=[]))[0] == []
    async with guard.session() as session:
        assert await session.run(everything, uuids=[]) == []
    async with guard.transaction() as transaction:
        assert await transaction.run(everything, uuids=[]) == []


async def test_closing_a_guarded_driver_closes_nothing(arena: Arena) -> None:
    being = arena.beings[0]
    await being.bare.close()
    await being.client.inside.graphiti.close()
    assert await being.client.nodes([next(iter(being.nodes))])


async def test_a_guarded_driver_cannot_be_copied_cloned_or_rebound(arena: Arena) -> None:
    guard = arena.beings[0].bare
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(IsolationError):
            attempt(guard)
    for group in (arena.beings[1].entity.group, "", "neo4j"):
        with pytest.raises(IsolationError):
            guard.clone(group)
        with pytest.raises(IsolationError):
            guard.with_database(group)
    assert guard.clone(arena.beings[0].entity.group) is guard


async def test_each_refusal_is_counted_by_kind_and_by_entity(arena: Arena) -> None:
    being, other, _ = arena.beings
    counters = IsolationCounters()
    guard = GuardedDriver(being.driver.driver, being.entity, counters)
    text = "MATCH (n:Entity) RETURN n.uuid AS uuid"
    for parameters in ({}, {"group_id": other.entity.group}, {"group_id": None}, {"uuid": "x"}):
        with pytest.raises(IsolationError):
            await guard.execute_query(text, **parameters)
    assert counters.by_kind() == {"unbound": 1, "group": 2, "id": 1}
    assert counters.by_entity() == {being.name: 4}
    assert counters.total == 4


async def test_pps_own_statements_must_bind_the_group(arena: Arena) -> None:
    being, other, _ = arena.beings
    door = being.bare.for_own_statements()
    for parameters in (
        {},
        {"uuids": [UUID]},
        {"group_id": other.entity.group},
        {"group_id": None},
        {"x": []},
    ):
        with pytest.raises(IsolationError):
            await door.execute_query("MATCH (n:Entity) RETURN n.uuid AS uuid", **parameters)
        with pytest.raises(IsolationError):
            async with door.transaction() as transaction:
                await transaction.run("MATCH (n:Entity) RETURN n.uuid AS uuid", **parameters)
