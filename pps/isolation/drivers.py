"""How the drivers under the boundary are opened by the benchmarks."""

from __future__ import annotations

from pathlib import Path

from pps.graph.ladybug import open_ladybug
from pps.graph.neo4j import Neo4jPool, open_neo4j
from pps.isolation.client import EntityDriver as EntityDriver


class Neo4jServer:
    """One pool of connections to a Neo4j database, for any number of entities."""

    def __init__(self, pool: Neo4jPool) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, uri: str, user: str, password: str, database: str) -> Neo4jServer:
        return cls(await open_neo4j(uri, user, password, database))

    async def driver(self) -> EntityDriver:
        return EntityDriver(self._pool.driver(), "neo4j", _nothing)

    async def close(self) -> None:
        await self._pool.close()


async def open_embedded(path: Path) -> EntityDriver:
    """Open an entity's own database file; errors as ``open_ladybug``."""
    driver = await open_ladybug(path)
    return EntityDriver(driver, "embedded", driver.close)


async def _nothing() -> None:
    """Give nothing back."""
