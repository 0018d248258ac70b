"""Entities that stand for a whole file of tests, and are put right between two of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from pps.isolation.client import bound_driver
from pps.isolation.counters import IsolationCounters
from pps.proof.arena import Arena, Being, ExposedClient
from pps.proof.honest import Honest


@asynccontextmanager
async def renewed(arena: Arena) -> AsyncGenerator[Arena]:
    """Lend the arena with every entity as it was planted and all counts at nothing."""
    arena.counters = IsolationCounters(logging.DEBUG)
    async with AsyncExitStack() as stack:
        for being in arena.beings:
            if being.made != being.planted or await Honest(arena).differences(being):
                await planted_anew(arena, being)
            being.bare = bound_driver(being.entity, being.driver, IsolationCounters())
            models = being.client.inside.models
            being.client = await ExposedClient.open(
                being.entity, being.driver, being.indexes, models, arena.counters
            )
            stack.push_async_callback(being.client.close)
        yield arena


async def planted_anew(arena: Arena, being: Being) -> None:
    """Empty an entity and plant what all are planted with."""
    await being.client.clear()
    await being.indexes.clear()
    for held in (being.nodes, being.facts, being.episodes):
        held.clear()
    await arena.plant(being)
