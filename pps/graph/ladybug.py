"""Graphiti's graph driver on LadybugDB, the maintained successor of Kuzu: one file, one entity, no server."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from pps.graph import quiet as quiet  # before anything of Graphiti
from pps.graph.graph_store import Rows
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.ladybug_pool import LadybugPool, LadybugTransaction

from graphiti_core.driver.driver import GraphDriver, GraphDriverSession, GraphProvider  # isort: skip
from graphiti_core.driver.query_executor import Transaction  # isort: skip

_OPTIONS = ("database_", "routing_")
_SAVED_FACT = re.compile(
    r"(\(e:RelatesToNode_ \{uuid: \$uuid\}\)-\[:RELATES_TO\]->\(target\)\s+SET)"
)
# Graphiti's own statements save a fact without the uuids of its ends, which PPS reads instead of joining.
_WITH_ENDS = r"\1 e.source_node_uuid = source.uuid, e.target_node_uuid = target.uuid,"


class LadybugDriver(GraphDriver):
    """Graphiti's driver interface; ``provider`` is KUZU, whose dialect LadybugDB speaks.

    All four ways to a statement (``execute_query``, ``session().run``, ``session().execute_write``,
    ``transaction()``) return rows as dictionaries with times in aware UTC. The last two are real transactions:
    committed when their block or function ends, rolled back when it raises. There are no full-text and vector
    indexes: both are extensions that LadybugDB downloads.
    """

    provider = GraphProvider.KUZU
    aoss_client: None = None

    def __init__(self, pool: LadybugPool) -> None:
        self._pool = pool
        self._database = ""

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> tuple[Rows, None, None]:
        """Run one statement in a transaction of its own. Parameters are keyword arguments or ``params=``.

        Raises:
            StoreError, StoreConflict, StoreUnavailable: See ``LadybugPool``.
        """
        statement, parameters = _prepared(cypher_query_, kwargs)
        return await self._pool.execute(statement, parameters), None, None

    def session(self, database: str | None = None) -> GraphDriverSession:
        """Return a session; there is one database, so ``database`` means nothing."""
        return _Session(self)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Open a transaction; writers wait for each other. Errors as in ``LadybugPool.transaction``."""
        async with self._pool.transaction() as transaction:
            yield _Transaction(transaction)

    async def close(self) -> None:
        """Give back the file, its lock, its memory and its threads; doing it again does nothing."""
        await self._pool.close()

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Do nothing: the tables are made when the file is opened."""

    def delete_all_indexes(self) -> Coroutine[Any, Any, None]:
        """Do nothing: there are none."""
        return _nothing()


async def open_ladybug(path: Path, options: LadybugOptions | None = None) -> LadybugDriver:
    """Open an embedded graph, or create it, and return its driver.

    Args:
        path: The database file; its folder exists.
        options: Buffer pool, threads and checkpoints.

    Raises:
        StoreConflict: The file is open already, here or in another process.
        StoreUnavailable: It cannot be read or written.
        StoreError: It is damaged or no graph of PPS.
    """
    return LadybugDriver(await LadybugPool.open(path, options or LadybugOptions()))


class _Transaction(Transaction):
    def __init__(self, inner: LadybugTransaction) -> None:
        self._inner = inner

    async def run(self, query: str, **kwargs: Any) -> Rows:
        statement, parameters = _prepared(query, kwargs)
        return await self._inner.run(statement, parameters)


class _Session(GraphDriverSession):
    provider = GraphProvider.KUZU

    def __init__(self, driver: LadybugDriver) -> None:
        self._driver = driver

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def run(self, query: str | list[tuple[str, Mapping[str, Any]]], **kwargs: Any) -> Rows:
        if isinstance(query, str):
            return (await self._driver.execute_query(query, **kwargs))[0]
        async with self._driver.transaction() as transaction:
            for statement, parameters in query:
                await transaction.run(statement, **parameters)
        return []

    async def execute_write(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        async with self._driver.transaction() as transaction:
            return await func(transaction, *args, **kwargs)

    async def close(self) -> None:
        """Do nothing: connections belong to the pool."""


def _prepared(query: str, keywords: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    nested = cast(Mapping[str, Any], keywords.get("params") or {})
    given = {
        key: value for key, value in keywords.items() if key not in _OPTIONS and key != "params"
    }
    return (_SAVED_FACT.sub(_WITH_ENDS, query) if "(target)" in query else query), {
        **nested,
        **given,
    }


async def _nothing() -> None:
    return None
