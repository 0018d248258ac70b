"""Several entities on one shared database: ids that another has, and the same moment."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from pps.core.errors import NotFound
from pps.core.values import Episode, Fact, Node
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import CREATES, Ids
from pps.proof.honest import Honest

NOW = datetime(2026, 5, 1, tzinfo=UTC)

pytestmark = [pytest.mark.neo4j, pytest.mark.timeout(300)]

MAKES: dict[str, Callable[[Being, str], Awaitable[None]]] = {
    "node": lambda b, i: b.client.save_nodes([Node(i, b.mark, NOW)], {}),
    "fact": lambda b, i: b.client.save_facts(
        [Fact(i, *list(b.nodes)[:2], "KNOWS", b.mark, NOW)], {}
    ),
    "episode": lambda b, i: b.client.save_episodes([Episode(i, "x", b.mark, NOW, NOW)]),
}
READS: dict[str, Callable[[Being, str], Awaitable[list[Any]]]] = {
    "node": lambda b, i: b.client.nodes([i]),
    "fact": lambda b, i: b.client.facts([i]),
    "episode": lambda b, i: b.client.episodes([i]),
}


@pytest.mark.parametrize("kind", sorted(MAKES))
async def test_of_two_entities_that_make_one_id_at_once_one_wins(
    shared_arena: Arena, kind: str
) -> None:
    first, second, _ = shared_arena.beings
    for _ in range(15):
        one = str(uuid.uuid4())
        made = await asyncio.gather(
            *(MAKES[kind](being, one) for being in (first, second)), return_exceptions=True
        )
        assert sorted(type(result) for result in made if result is not None) == [NotFound]
        winner, loser = (first, second) if made[0] is None else (second, first)
        assert len(await READS[kind](winner, one)) == 1
        assert await READS[kind](loser, one) == []
        assert (
            shared_arena.watch.leaks(winner.name, await READS[kind](winner, one), frozenset([one]))
            == []
        )


async def test_one_that_deletes_beside_one_that_writes_touches_nothing_of_it(
    shared_arena: Arena,
) -> None:
    first, second, third = shared_arena.beings
    honest = Honest(shared_arena)

    async def write() -> None:
        for seed in range(12):
            await honest.add_node(second, dice(seed))
            await honest.add_fact(second, dice(seed))

    await asyncio.gather(write(), first.client.clear())
    for being in (second, third):
        assert await honest.differences(being) == []


async def test_a_shared_database_takes_nothing_under_a_foreign_id(shared_arena: Arena) -> None:
    chance = dice(2)
    for attack in CREATES:
        being = shared_arena.beings[0]
        ids = Ids.of(shared_arena.random_of(being, chance), chance)
        with pytest.raises(NotFound):
            await attack.call(being, ids)
    for being in shared_arena.beings:
        assert await Honest(shared_arena).differences(being) == []
