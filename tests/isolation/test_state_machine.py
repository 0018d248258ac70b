"""No operation on one entity changes what another sees: random operations of three, interleaved, against a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any, ClassVar, TypeVar

import hypothesis
import pytest
from hypothesis import HealthCheck, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pps.config import Settings
from pps.core.errors import PPSError
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import READS, SEARCHES, WRITES, Ids
from pps.proof.honest import Honest
from pps.proof.verify import throw_away
from tests.sampling import sized

T = TypeVar("T")
WHO = strategies.integers(0, 2)
SEED = strategies.integers(0, 2**32)


class ThreeEntities(RuleBasedStateMachine):
    """Rules are the operations; the invariant is that each entity holds exactly what it did to itself."""

    at: ClassVar[Settings]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.arena: Arena | None = None

    def run(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    @initialize()
    def open(self) -> None:
        async def start() -> Arena:
            folder, open_driver = await self.stack.enter_async_context(throw_away(self.at))
            return await self.stack.enter_async_context(Arena.open(folder, open_driver))

        self.arena = self.run(start())

    def being(self, who: int) -> Being:
        assert self.arena is not None
        return self.arena.beings[who]

    @rule(who=WHO, seed=SEED, which=strategies.integers(0, 10))
    def work(self, who: int, seed: int, which: int) -> None:
        assert self.arena is not None
        operations = Honest(self.arena).operations()
        operation = operations[which % len(operations)]
        found = self.run(operation(self.being(who), dice(seed)))
        assert self.arena.watch.leaks(self.being(who).name, found) == []

    @rule(
        who=WHO,
        seed=SEED,
        which=strategies.integers(0, len(READS) + len(SEARCHES) + len(WRITES) - 1),
    )
    def reach_for_anothers(self, who: int, seed: int, which: int) -> None:
        assert self.arena is not None
        chance, being = dice(seed), self.being(who)
        attack = (*READS, *SEARCHES, *WRITES)[which]
        ids = Ids.of(self.arena.random_of(being, chance), chance)
        seen: object
        try:
            seen = self.run(attack.call(being, ids))
        except PPSError as error:
            seen = error
        assert self.arena.watch.leaks(being.name, seen, ids.all()) == [], attack.name

    @rule(
        seeds=strategies.tuples(SEED, SEED, SEED),
        which=strategies.tuples(*([strategies.integers(0, 10)] * 3)),
    )
    def work_at_once(self, seeds: tuple[int, ...], which: tuple[int, ...]) -> None:
        assert self.arena is not None
        operations = Honest(self.arena).operations()

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(
                *(
                    operations[which[who] % len(operations)](self.being(who), dice(seeds[who]))
                    for who in range(3)
                )
            )

        for who, found in enumerate(self.run(all_at_once())):
            assert self.arena.watch.leaks(self.being(who).name, found) == []

    @rule(who=WHO)
    def start_anew(self, who: int) -> None:
        assert self.arena is not None
        being = self.being(who)
        self.run(being.client.clear())
        self.run(being.indexes.clear())
        for held in (being.nodes, being.facts, being.episodes):
            held.clear()
        self.run(self.arena.plant(being))

    @invariant()
    def each_holds_what_it_did_to_itself(self) -> None:
        if self.arena is None:
            return
        for being in self.arena.beings:
            assert self.run(Honest(self.arena).differences(being)) == []
        assert self.arena.counters.total == 0

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.mark.timeout(600)
def test_no_operation_on_one_entity_changes_what_another_sees(settings: Settings) -> None:
    machine = type("Machine", (ThreeEntities,), {"at": settings})
    machine.TestCase.settings = hypothesis.settings(  # type: ignore[attr-defined]
        max_examples=sized(3, 5),
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    machine.TestCase().runTest()  # type: ignore[attr-defined]
