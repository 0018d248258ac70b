"""Graphiti's driver for an entity's SQL tables: Graphiti's hooks do the work; Cypher is refused."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, NoReturn

from graphiti_core.driver.driver import GraphDriverSession, GraphProvider
from graphiti_core.driver.query_executor import Transaction

from pps.core.errors import IsolationError
from pps.core.ids import EntityId
from pps.core.values import Fact
from pps.isolation.counters import IsolationCounters
from pps.isolation.guard import BoundDriver
from pps.store.graph_tables import GraphTables
from pps.store.sql_session import SqlSession

Save = Callable[[SqlSession], None]

NO_CYPHER = (
    "Graphiti sent a statement: this entity's graph is in SQL tables, which run no Cypher, "
    "and the call has no hook"
)


class SqlDriver(BoundDriver):
    """The driver between Graphiti and one entity's ``GraphTables``.

    The tables belong to one group permanently, so the owner of an id is not looked up. The hooks
    check the groups that Graphiti passes. Every method that runs a statement refuses it.
    """

    # For this provider Graphiti passes attributes as one JSON text; its Cypher is never run.
    provider = GraphProvider.KUZU

    def __init__(self, entity: EntityId, file: GraphTables, counters: IsolationCounters) -> None:
        super().__init__(entity, counters)
        self._file = file
        self.replaced_facts: dict[str, Fact] = {}
        """Uuid → a fact before a bulk save of Graphiti replaced it; cleared by its reader."""

    async def free(self, ids: Collection[str]) -> bool:
        return True

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> NoReturn:
        """Raise IsolationError."""
        raise self._refusal()

    def session(self, database: str | None = None) -> GraphDriverSession:
        """Open a session for bulk saves; refuse another database."""
        if database is not None and database != self._database:
            self._refuse_operation("a session asked for another database")
        return _SqlSession(self._file, self._refusal, self.replaced_facts)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Yield a transaction that refuses every statement."""
        yield _NoStatements(self._refusal)

    def _refusal(self) -> IsolationError:
        return self._counters.refuse(self._entity, "operation", NO_CYPHER)


class _NoStatements(Transaction):
    def __init__(self, refusal: Callable[[], IsolationError]) -> None:
        self._refusal = refusal

    async def run(self, query: str, **kwargs: Any) -> NoReturn:
        raise self._refusal()


class BulkSave(_NoStatements):
    """The "transaction" that Graphiti passes to the hooks of a bulk save.

    The hooks only collect their writes in it; all are written in one real transaction at the end.
    Graphiti computes embeddings within its transaction, and no real one may wait for a model.
    """

    def __init__(
        self, refusal: Callable[[], IsolationError], replaced_facts: dict[str, Fact]
    ) -> None:
        super().__init__(refusal)
        self._saves: list[Save] = []
        self.replaced_facts = replaced_facts

    def add(self, save: Save) -> None:
        self._saves.append(save)

    def write(self, session: SqlSession) -> None:
        for save in self._saves:
            save(session)


class _SqlSession(GraphDriverSession):
    provider = GraphProvider.KUZU

    def __init__(
        self,
        file: GraphTables,
        refusal: Callable[[], IsolationError],
        replaced_facts: dict[str, Fact],
    ) -> None:
        self._file = file
        self._refusal = refusal
        self._replaced_facts = replaced_facts

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def run(self, query: str, **kwargs: Any) -> NoReturn:
        """Raise IsolationError."""
        raise self._refusal()

    async def execute_write(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        """Run Graphiti's function with a ``BulkSave``, then write the saves in one transaction."""
        bulk = BulkSave(self._refusal, self._replaced_facts)
        result = await func(bulk, *args, **kwargs)
        await self._file.write(bulk.write)
        return result

    async def close(self) -> None:
        """Do nothing: the tables own their connections."""
