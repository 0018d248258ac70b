"""A pool of connections to one Neo4j database, shared by all entities of a process."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

from neo4j import AsyncDriver, AsyncGraphDatabase, NotificationMinimumSeverity
from neo4j.exceptions import ConfigurationError

from pps.core.errors import ConfigError
from pps.isolation import neo4j_schema
from pps.isolation.neo4j_driver import Address, PooledNeo4jDriver, again, driver_on, mapped, mapping

_OLDEST = (5, 26)
_SCHEME = re.compile(r"(bolt|neo4j)(\+s|\+ssc)?://")

_Work = Callable[[neo4j_schema.Runs], Awaitable[tuple[neo4j_schema.Index, ...]]]


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
    client: AsyncDriver, address: Address, work: _Work
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
