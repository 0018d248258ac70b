"""One store with graphs of several groups, opened and opened again: what the store suite runs on."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path

from graphiti_core.driver.driver import GraphDriver

from pps.core.ids import EntityId
from pps.graph.graph_store import GraphStore
from pps.isolation.client import EntityDriver, bound_driver
from pps.isolation.counters import IsolationCounters
from pps.isolation.neo4j import Neo4jPool, open_neo4j
from pps.isolation.store_neo4j import Neo4jStore
from pps.journal.db import prepare_file
from pps.journal.journal import Journal
from pps.journal.postgresql import database_of
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import SqlGraphStore
from tests.neo4j_server import Neo4jServer
from tests.postgresql_server import PostgresqlServer


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

    def driver_of(self, group: str) -> GraphDriver:
        return self.driver

    def store(self, group: str) -> GraphStore:
        return Neo4jStore(self._pool.driver(), group)

    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        await self.driver.execute_query(
            "MATCH (a:Entity {uuid: $a}) MATCH (b:Entity {uuid: $b}) "
            "CREATE (a)-[:RELATES_TO {uuid: $id, group_id: $g}]->(b)",
            a=source,
            b=target,
            id=str(uuid.uuid4()),
            g=group,
        )


class PostgresqlBackend(Backend):
    """One database with the rows of all groups."""

    shared = False  # ids are of a group: the same one may be two entities'

    def __init__(self, server: PostgresqlServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._journals: dict[str, Journal] = {}

    async def open(self) -> None:
        self._database = await asyncio.to_thread(database_of, self._server.settings)
        for group in list(self._journals):
            self._journals[group] = Journal(self._folder, group, database=self._database)

    async def close(self) -> None:
        for journal in self._journals.values():
            await journal.close()
        await asyncio.to_thread(self._database.close)

    def driver_of(self, group: str) -> GraphDriver:
        journal = self._journal(group)
        opened = EntityDriver(GraphTables(journal), "postgresql", journal.close)
        return bound_driver(EntityId("ana", group), opened, IsolationCounters())

    def store(self, group: str) -> GraphStore:
        return SqlGraphStore(GraphTables(self._journal(group)))

    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        await self._server.as_superuser_async(
            "SET session_replication_role = replica",  # without foreign keys, as another program might
            "INSERT INTO fact (uuid, grp, subject, object, relation, text, kind, attributes, created_at, "  # noqa: S608
            f"valid_precision, invalid_precision) VALUES ('{uuid.uuid4()}', '{group}', '{source}', '{target}', "
            "'KNOWS', 'planted', 'fact', '{}', 0, '', '') RETURNING 1",
        )

    def _journal(self, group: str) -> Journal:
        if group not in self._journals:
            self._journals[group] = Journal(self._folder, group, database=self._database)
        return self._journals[group]


class SqlBackend(Backend):
    """A folder with a file for each group."""

    shared = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journals: dict[str, Journal] = {}

    async def open(self) -> None:
        """Open again the files that were open; another is opened when its group is first asked for."""
        for group in list(self._journals):
            self._journals[group] = await Journal.open(self._path(group), group)

    async def close(self) -> None:
        for journal in self._journals.values():
            await journal.close()

    def driver_of(self, group: str) -> GraphDriver:
        journal = self._journal(group)
        opened = EntityDriver(GraphTables(journal), "embedded", journal.close)
        return bound_driver(EntityId("ana", group), opened, IsolationCounters())

    def store(self, group: str) -> GraphStore:
        return SqlGraphStore(GraphTables(self._journal(group)))

    async def plant_crossing_edge(self, group: str, source: str, target: str) -> None:
        statement = (
            "INSERT INTO fact VALUES (:id, :group, :source, :target, 'KNOWS', 'planted', 'fact', '{}', '{}', 0, "
            "NULL, '', NULL, '', NULL, NULL)"
        )
        values = {"id": str(uuid.uuid4()), "group": group, "source": source, "target": target}
        with closing(sqlite3.connect(self._path(group))) as connection, connection:
            connection.execute(statement, values)  # without foreign keys, as another program would

    def _path(self, group: str) -> Path:
        return self._folder / f"{group}.db"

    def _journal(self, group: str) -> Journal:
        if group not in self._journals:
            path = self._path(group)
            self._journals[group] = Journal(path, group, prepare_file(path, group))
        return self._journals[group]
