"""The drivers under the boundary, for whoever opens and closes them; only the client runs statements on one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphiti_core.driver.driver import GraphDriver

from pps.graph.ladybug import open_ladybug
from pps.graph.neo4j import Neo4jPool, open_neo4j


@dataclass(frozen=True, slots=True)
class EntityDriver:
    """The driver that an entity's client is opened on, and how to give it back."""

    driver: GraphDriver
    store: Literal["embedded", "neo4j"]
    close: Callable[[], Awaitable[None]]


class Neo4jServer:
    """One pool of connections to a Neo4j database, for any number of entities."""

    def __init__(self, pool: Neo4jPool) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, uri: str, user: str, password: str, database: str) -> Neo4jServer:
        """Connect and make the indexes that are missing; errors as ``open_neo4j``."""
        return cls(await open_neo4j(uri, user, password, database))

    async def driver(self) -> EntityDriver:
        """Return what an entity's client is opened on; giving it back closes nothing, the pool is shared."""
        return EntityDriver(self._pool.driver(), "neo4j", _nothing)

    async def check(self) -> None:
        """Return when the server answers; raise StoreUnavailable when it does not."""
        await self._pool.check()

    async def missing(self) -> tuple[str, ...]:
        """Return the indexes and constraints that are absent, in words; empty when sound."""
        return await self._pool.missing()

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()


async def open_embedded(path: Path) -> EntityDriver:
    """Open an entity's own database file; errors as ``open_ladybug``."""
    driver = await open_ladybug(path)
    return EntityDriver(driver, "embedded", driver.close)


async def _nothing() -> None:
    """Give nothing back."""
