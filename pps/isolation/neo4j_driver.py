"""Graphiti's Neo4j driver on a shared pool of connections, with PPS's errors and plain rows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, LiteralString, Protocol, TypeVar, cast

# isort: off
from pps.isolation import quiet as quiet  # before anything of Graphiti

from graphiti_core.driver.driver import GraphDriverSession
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.driver.query_executor import Transaction
# isort: on

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncManagedTransaction,
    AsyncResult,
    AsyncSession,
)
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConnectionPoolError,
    ConstraintError,
    DatabaseUnavailable,
    DriverError,
    Forbidden,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from pps.core.errors import ConfigError, PPSError, StoreConflict, StoreError, StoreUnavailable
from pps.graph.graph_store import Rows

_T = TypeVar("_T")

_AWAY = (ServiceUnavailable, SessionExpired, ConnectionPoolError, DatabaseUnavailable)
_CONFLICTS = (ConstraintError, TransientError)
_UNFIT = (ValueError, TypeError, OverflowError)
_DELAYS_S = (0.01, 0.03, 0.1, 0.3, 0.6)
_TRIES_WHEN_AWAY = 2
_Work = Callable[..., Awaitable[Any]]


class _QueryRunner(Protocol):
    async def run(
        self, query: LiteralString, parameters: dict[str, Any] | None = None
    ) -> AsyncResult: ...


@dataclass(frozen=True, slots=True)
class Address:
    """A Neo4j database and the user of it, without the password; errors may show all of it."""

    uri: str
    user: str
    database: str


def mapped(error: Exception, address: Address) -> PPSError:
    """Return PPS's error for an error of the library, without Neo4j's text: it may quote memory."""
    code = str(getattr(error, "code", None) or type(error).__name__)
    if (
        isinstance(error, AuthError)
        or "AuthenticationRateLimit" in code
        or "CredentialsExpired" in code
    ):
        return ConfigError(
            f"Neo4j at {address.uri} refused user '{address.user}' ({code.rpartition('.')[2]}): "
            "check NEO4J_USER and NEO4J_PASSWORD"
        )
    if "DatabaseNotFound" in code:
        return ConfigError(
            f"Neo4j at {address.uri} has no database '{address.database}': check NEO4J_DATABASE"
        )
    if isinstance(error, Forbidden):
        return ConfigError(
            f"Neo4j at {address.uri} does not let user '{address.user}' do that ({code})"
        )
    if isinstance(error, _AWAY):
        return StoreUnavailable(
            f"Neo4j at {address.uri} cannot be reached: "
            "start it (scripts/neo4j start) or check NEO4J_URI"
        )
    if isinstance(error, ConfigurationError):
        return ConfigError(
            f"NEO4J_URI '{address.uri}' cannot be used: write bolt://HOST:PORT or neo4j://HOST:PORT"
        )
    if isinstance(error, _CONFLICTS):
        return StoreConflict(
            f"Neo4j at {address.uri}: somebody else changed the same data ({code})"
        )
    return StoreError(f"Neo4j at {address.uri} refused a statement ({code})")


@contextmanager
def mapping(address: Address) -> Generator[None]:
    """Raise the library's errors inside the block as ``PPSError``; others pass through."""
    try:
        yield
    except (DriverError, Neo4jError) as error:
        raise mapped(error, address) from error


@contextmanager
def fitting() -> Generator[None]:
    """Raise StoreError for a parameter that the library cannot send.

    The block may only run a statement: every ValueError or TypeError in it is taken for that.
    """
    try:
        yield
    except _UNFIT as error:
        raise StoreError(
            f"Neo4j cannot keep a value of this statement ({type(error).__name__})"
        ) from error


async def again(work: Callable[[], Awaitable[_T]], address: Address) -> _T:
    """Run work; retry it when it conflicts with another transaction. Raises ``PPSError``.

    Deadlocks and the like: up to six tries within about a second. An unreachable server: two tries,
    because the first connection after its restart is stale.
    """
    for tries, delay_s in enumerate((*_DELAYS_S, 0.0), start=1):
        try:
            return await work()
        except (DriverError, Neo4jError) as error:
            last = tries > (_TRIES_WHEN_AWAY - 1 if isinstance(error, _AWAY) else len(_DELAYS_S))
            if last or not error.is_retryable():
                raise mapped(error, address) from error
        await asyncio.sleep(delay_s * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
    raise AssertionError("the last try returns or raises")


class PooledNeo4jDriver(Neo4jDriver):
    """Graphiti's Neo4j driver on a shared pool, which it does not close; made by ``driver_on``.

    Rows are plain dictionaries. Statements that lose a deadlock are retried. The pool creates the
    schema when it is opened, so ``build_indices_and_constraints`` does nothing.
    """

    address: Address

    async def execute_query(  # pyright: ignore[reportIncompatibleMethodOverride] - plain rows
        self, cypher_query_: str, /, **kwargs: Any
    ) -> tuple[Rows, Any, Any]:
        """Run one statement in a transaction of its own; return rows, summary and column names.

        A read (``routing_="r"``) is sent without BEGIN and COMMIT: one round trip instead of two.
        """
        parameters = _merged(kwargs)
        reads = parameters.pop("routing_", None) == "r"
        if parameters.pop("database_", self._database) != self._database:
            raise StoreError("a statement asked for another database")

        async def work() -> tuple[Rows, Any, Any]:
            statement = cast(LiteralString, cypher_query_)
            with fitting():
                if reads:
                    async with _session(self.client, self._database, READ_ACCESS) as session:
                        answer = await (await session.run(statement, parameters)).to_eager_result()
                else:
                    answer = await self.client.execute_query(
                        statement, parameters_=parameters, database_=self._database
                    )
            return [dict(record) for record in answer.records], answer.summary, answer.keys

        return await again(work, self.address)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """Open a transaction: committed when the block ends, rolled back when it raises."""
        with mapping(self.address):
            async with (
                _session(self.client, self._database) as session,
                await session.begin_transaction() as transaction,
            ):
                yield _Transaction(transaction, self.address)

    def session(self, database: str | None = None) -> GraphDriverSession:
        if database not in (None, self._database):
            raise StoreError("a session asked for another database")
        return _Neo4jSession(_session(self.client, self._database), self.address)

    async def close(self) -> None:
        """Do nothing: the pool is shared, and its owner closes it."""

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Do nothing: the pool made the schema when it was opened; refuse to delete it."""
        if delete_existing:
            raise StoreError("the schema belongs to the pool")

    def delete_all_indexes(self) -> Coroutine[Any, Any, Any]:
        raise StoreError("the schema belongs to the pool")


async def driver_on(pool: AsyncDriver, address: Address) -> PooledNeo4jDriver:
    """Return a driver on a pool; it owns no resource and need not be closed."""
    driver = PooledNeo4jDriver(address.uri, None, None, address.database)
    # Graphiti's constructor opens a client, which is never used, and schedules
    # ``build_indices_and_constraints``, which does nothing: both end here.
    await driver.client.close()
    scheduled = cast("asyncio.Task[None] | None", getattr(driver, "_init_task", None))
    if scheduled:
        await scheduled
    driver.client = pool
    driver.address = address
    return driver


class _Transaction(Transaction):
    def __init__(self, inner: _QueryRunner, address: Address) -> None:
        self._inner = inner
        self._address = address

    async def run(self, query: str, **kwargs: Any) -> Rows:
        with mapping(self._address):
            return await _rows(self._inner, query, _merged(kwargs))


class _Neo4jSession(GraphDriverSession):
    def __init__(self, inner: AsyncSession, address: Address) -> None:
        self._inner = inner
        self._address = address

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def run(self, query: str, **kwargs: Any) -> Rows:
        parameters = _merged(kwargs)

        return await again(lambda: _rows(self._inner, query, parameters), self._address)

    async def execute_write(self, func: _Work, *args: Any, **kwargs: Any) -> Any:
        async def inner(transaction: AsyncManagedTransaction) -> Any:
            return await func(_Unmapped(transaction), *args, **kwargs)

        return await again(lambda: self._inner.execute_write(inner), self._address)

    async def close(self) -> None:
        with mapping(self._address):
            await self._inner.close()


class _Unmapped:
    """Passes the library's own errors on to ``execute_write``, which retries the function."""

    def __init__(self, inner: _QueryRunner) -> None:
        self._inner = inner

    async def run(self, query: str, **kwargs: Any) -> Rows:
        return await _rows(self._inner, query, _merged(kwargs))


def _session(client: AsyncDriver, database: str, access: str = WRITE_ACCESS) -> AsyncSession:
    return client.session(  # pyright: ignore[reportUnknownMemberType] - its options are untyped
        database=database,
        default_access_mode=access,
        # In a cluster, reads see earlier writes.
        bookmark_manager=client.execute_query_bookmark_manager,
    )


class _Short(list[Any]):
    """A list with a short repr: the library formats all parameters for its log."""

    def __repr__(self) -> str:
        return f"<{len(self)} values>"


async def _rows(runner: _QueryRunner, query: str, parameters: dict[str, Any]) -> Rows:
    short = {
        name: _Short(cast("list[Any]", value)) if isinstance(value, list) else value
        for name, value in parameters.items()
    }
    with fitting():
        result = await runner.run(cast(LiteralString, query), short)
        return [dict(record) async for record in result]


def _merged(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Merge ``params=``, ``parameters=`` and keywords; keywords win, as in Neo4j's driver."""
    nested: dict[str, Any] = {
        **(kwargs.pop("params", None) or {}),
        **(kwargs.pop("parameters", None) or {}),
    }
    return {**nested, **kwargs}
