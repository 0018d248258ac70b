"""One database with graphs of several groups on it, opened and opened again: what the store suite runs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from graphiti_core.driver.driver import GraphDriver

from pps.graph.graph_store import GraphStore
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.neo4j import Neo4jPool, open_neo4j
from pps.graph.store_embedded import EmbeddedStore
from pps.graph.store_neo4j import Neo4jStore
from tests.neo4j_server import Neo4jServer


class Backend(ABC):
    """A database that can be opened, closed and opened again on the same data."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @property
    @abstractmethod
    def driver(self) -> GraphDriver: ...

    @abstractmethod
    def store(self, group: str) -> GraphStore: ...

    async def reopen(self) -> None:
        await self.close()
        await self.open()


class EmbeddedBackend(Backend):
    def __init__(self, path: Path) -> None:
        self._path = path

    async def open(self) -> None:
        self._driver: LadybugDriver = await open_ladybug(self._path)

    async def close(self) -> None:
        await self._driver.close()

    @property
    def driver(self) -> GraphDriver:
        return self._driver

    def store(self, group: str) -> GraphStore:
        return EmbeddedStore(self._driver, group)


class Neo4jBackend(Backend):
    def __init__(self, server: Neo4jServer) -> None:
        self._server = server

    async def open(self) -> None:
        server = self._server
        self._pool: Neo4jPool = await open_neo4j(
            server.uri, server.user, server.password, server.database
        )

    async def close(self) -> None:
        await self._pool.close()

    @property
    def driver(self) -> GraphDriver:
        return self._pool.driver()

    def store(self, group: str) -> GraphStore:
        return Neo4jStore(self._pool.driver(), group)
