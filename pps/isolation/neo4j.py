"""Connections to one Neo4j database: the pool of a process, and Graphiti's driver on it.

All entities share the pool. The driver raises errors of PPS and returns plain rows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, LiteralString, Protocol, TypeVar, cast

from graphiti_core.driver.driver import GraphDriverSession
from graphiti_core.driver.neo4j_driver import Neo4jDriver
from graphiti_core.driver.query_executor import Transaction
from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncResult,
    AsyncSession,
    NotificationMinimumSeverity,
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
from pps.isolation import neo4j_schema

_T = TypeVar("_T")

_AWAY = (ServiceUnavailable, SessionExpired, ConnectionPoolError, DatabaseUnavailable)
_CONFLICTS = (ConstraintError, TransientError)
_UNFIT = (ValueError, TypeError, OverflowError)
_DELAYS_S = (0.01, 0.03, 0.1, 0.3, 0.6)
_TRIES_WHEN_AWAY = 2
_Work = Callable[..., Awaitable[Any]]
_OLDEST = (5, 26)
_SCHEME = re.compile(r"(bolt|neo4j)(\+s|\+ssc)?://")
_SchemaWork = Callable[[neo4j_schema.Runs], Awaitable[tuple[neo4j_schema.Index, ...]]]


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


class Neo4jPool:
    """Connections to one Neo4j database, for one event loop; made by ``open_neo4j``.

    Attributes:
        address: The database and its user, without the password.
        version: The server's version, such as ``5.26.30``.
    """

    def __init__(
        self, client: AsyncDriver, driver: PooledNeo4jDriver, address: Address, version: str
    ) -> None:
        self._client = client
        self._driver = driver
        self.address = address
        self.version = version

    def driver(self) -> PooledNeo4jDriver:
        """Return the driver that the guarded driver of each entity wraps.

        It is bound to no group and closes nothing, so all entities share it.
        """
        return self._driver

    async def missing(self) -> tuple[str, ...]:
        """Return the indexes and constraints that are absent or not online, as text.

        Raises:
            StoreUnavailable: The server cannot be reached.
        """
        return tuple(map(str, await _schema(self._client, self.address, neo4j_schema.missing)))

    async def check(self) -> None:
        """Raise StoreUnavailable if the server does not answer."""
        await self._driver.execute_query("RETURN 1", routing_="r")

    async def close(self) -> None:
        await self._client.close()


async def open_neo4j(uri: str, user: str, password: str, database: str) -> Neo4jPool:
    """Connect, create missing indexes and constraints, and return the pool.

    Args:
        uri: ``bolt://HOST:PORT`` or ``neo4j://HOST:PORT``; with ``+s`` for TLS.
        user: The user who signs in.
        password: The user's password; never part of an error.
        database: The database to use.

    Raises:
        StoreUnavailable: The server does not answer; safe to retry.
        ConfigError: The address, the user, the password or the database is wrong; the server is
            older than 5.26; or an index that isolation depends on cannot be created.
    """
    address = Address(uri, user, database)
    _hush()
    if not _SCHEME.match(uri):  # the library would try HTTP too, which it calls a preview
        raise mapped(ConfigurationError(), address)
    with mapping(address):
        # The library's options are untyped.
        client = AsyncGraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]
            uri,
            auth=(user, password),
            connection_timeout=5.0,
            connection_acquisition_timeout=15.0,
            liveness_check_timeout=30.0,
            max_transaction_retry_time=0.0,  # ``again`` retries, without logging each try
            notifications_min_severity=NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
            user_agent="pps",
        )
    try:
        version = await _version(client, address)
        _refuse_without(await _schema(client, address, neo4j_schema.ensure), address)
        return Neo4jPool(client, await driver_on(client, address), address, version)
    except BaseException:
        await client.close()
        raise


def _hush() -> None:
    """Keep the library from logging errors that it also raises, unless its level is set."""
    library = logging.getLogger("neo4j")
    if library.level == logging.NOTSET:
        library.setLevel(logging.CRITICAL)


async def _version(client: AsyncDriver, address: Address) -> str:
    with mapping(address):
        info = await client.get_server_info()  # pyright: ignore[reportUnknownMemberType]
    agent = info.agent.partition("/")[2]
    numbers = re.match(r"(\d+)\.(\d+)", agent)
    if numbers and (int(numbers[1]), int(numbers[2])) < _OLDEST:
        raise ConfigError(f"Neo4j at {address.uri} is version {agent}; PPS needs 5.26 or later")
    return agent


async def _schema(
    client: AsyncDriver, address: Address, work: _SchemaWork
) -> tuple[neo4j_schema.Index, ...]:
    async def run(query: LiteralString) -> list[dict[str, Any]]:
        answer = await client.execute_query(query, database_=address.database)
        return [dict(record) for record in answer.records]

    return await again(lambda: work(run), address)


def _refuse_without(absent: tuple[neo4j_schema.Index, ...], address: Address) -> None:
    needed = [str(index) for index in absent if index.keeps_apart]
    if needed:
        raise ConfigError(
            f"Neo4j at {address.uri} cannot keep entities apart, "
            f"because data of another program are in the way of: {'; '.join(needed)}. "
            "Remove what is there twice, or give PPS a server of its own"
        )
