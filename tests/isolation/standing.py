"""Entities that stand for a whole file of tests, and are put right between two of them."""

from __future__ import annotations

from pps.isolation.counters import IsolationCounters
from pps.isolation.guard import GuardedDriver
from pps.proof.arena import Arena, Being
from pps.proof.honest import Honest


async def renewed(arena: Arena) -> Arena:
    """Return the arena with every entity as it was planted and all counts at nothing."""
    for being in arena.beings:
        if being.made != being.planted or await Honest(arena).differences(being):
            await planted_anew(arena, being)
        counters = IsolationCounters()
        being.bare = GuardedDriver(being.driver.driver, being.entity, counters, shared=being.shared)
    arena.counters._by_kind.clear()
    arena.counters._by_entity.clear()
    return arena


async def planted_anew(arena: Arena, being: Being) -> None:
    """Empty an entity and plant what all are planted with."""
    await being.client.clear()
    await being.indexes.clear()
    for held in (being.nodes, being.facts, being.episodes):
        held.clear()
    await arena.plant(being)
