"""One store with graphs of several groups, opened and opened again: what the store suite runs on."""

from __future__ import annotations

import sqlite3
import uuid
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path

from graphiti_core.driver.driver import GraphDriver

from pps.core.ids import EntityId
from pps.graph.graph_store import GraphStore
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.neo4j import Neo4jPool, open_neo4j
from pps.graph.store_embedded import EmbeddedStore
from pps.graph.store_neo4j import Neo4jStore
from pps.isolation.client import EntityDriver, bound_driver
from pps.isolation.counters import IsolationCounters
from pps.store.graph_file import GraphFile
from pps.store.sql_graph import SqlGraphStore
from tests.neo4j_server import Neo4jServer


class Backend(ABC):
    """A store that can be opened, closed and opened again on the same data.

    Attributes:
        shared: True when all groups live in one database, where an id belongs to one of them.
    """

    shared = True

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def driver_of(self, group: str) -> GraphDriver:
        """Return the driver that stock Graphiti runs on."""

    @abstractmethod
    def store(self, group: str) -> GraphStore: ...

    @abstractmethod
    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        """Write, below every check, a fact of the group from its node to a node of another group."""

    async def reopen(self) -> None:
        await self.close()
        await self.open()


class CypherBackend(Backend):
    """A store whose driver runs statements."""

    @property
    @abstractmethod
    def driver(self) -> GraphDriver: ...

    def driver_of(self, group: str) -> GraphDriver:
        return self.driver

    _crossing_edge = ""

    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        await self.driver.execute_query(
            f"MATCH (a:Entity {{uuid: $a}}) MATCH (b:Entity {{uuid: $b}}) "
            f"CREATE (a){self._crossing_edge}(b)",
            a=source,
            b=target,
            id=str(uuid.uuid4()),
            g=group,
        )


class EmbeddedBackend(CypherBackend):
    _crossing_edge = "-[:RELATES_TO]->(:RelatesToNode_ {uuid: $id, group_id: $g})-[:RELATES_TO]->"

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


class Neo4jBackend(CypherBackend):
    _crossing_edge = "-[:RELATES_TO {uuid: $id, group_id: $g}]->"

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


class SqlBackend(Backend):
    """A folder with a file for each group."""

    shared = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, GraphFile] = {}

    async def open(self) -> None:
        """Do nothing: a file is opened when its group is first asked for."""

    async def close(self) -> None:
        for file in self._files.values():
            await file.close()
        self._files.clear()

    def driver_of(self, group: str) -> GraphDriver:
        file = self._file(group)
        opened = EntityDriver(file, "sqlite", file.close)
        return bound_driver(EntityId("ana", group), opened, IsolationCounters())

    def store(self, group: str) -> GraphStore:
        return SqlGraphStore(self._file(group))

    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        statement = (
            "INSERT INTO fact VALUES (:id, :group, :source, :target, 'KNOWS', 'planted', 'fact', '{}', '{}', 0, "
            "NULL, '', NULL, '', NULL, NULL)"
        )
        values = {"id": str(uuid.uuid4()), "group": group, "source": source, "target": target}
        with closing(sqlite3.connect(self._file(group).path)) as connection, connection:
            connection.execute(statement, values)  # without foreign keys, as another program would

    def _file(self, group: str) -> GraphFile:
        if group not in self._files:
            self._files[group] = GraphFile(self._folder / f"{group}.db", group)
        return self._files[group]
