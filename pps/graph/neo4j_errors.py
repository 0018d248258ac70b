"""What Neo4j's errors mean to PPS, and which of them are worth another try."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

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

_T = TypeVar("_T")

_AWAY = (ServiceUnavailable, SessionExpired, ConnectionPoolError, DatabaseUnavailable)
_CONFLICTS = (ConstraintError, TransientError)
_UNFIT = (ValueError, TypeError, OverflowError)
_DELAYS_S = (0.01, 0.03, 0.1, 0.3, 0.6)
_TRIES_WHEN_AWAY = 2


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Neo4j is and as whom it is used; what an error message may say of it."""

    uri: str
    user: str
    database: str


def mapped(error: Exception, address: Address) -> PPSError:
    """Return PPS's error for one of the library's. Neo4j's own text may quote memory, so it stays out.

    Args:
        error: What the library raised.
        address: Where.
    """
    code = str(getattr(error, "code", None) or type(error).__name__)
    if isinstance(error, AuthError) or "AuthenticationRateLimit" in code or "CredentialsExpired" in code:
        return ConfigError(
            f"Neo4j at {address.uri} refused user '{address.user}' ({code.rpartition('.')[2]}): "
            "check NEO4J_USER and NEO4J_PASSWORD"
        )
    if "DatabaseNotFound" in code:
        return ConfigError(f"Neo4j at {address.uri} has no database '{address.database}': check NEO4J_DATABASE")
    if isinstance(error, Forbidden):
        return ConfigError(f"Neo4j at {address.uri} does not let user '{address.user}' do that ({code})")
    if isinstance(error, _AWAY):
        return StoreUnavailable(
            f"Neo4j at {address.uri} cannot be reached: start it (scripts/neo4j start) or check NEO4J_URI"
        )
    if isinstance(error, ConfigurationError):
        return ConfigError(f"NEO4J_URI '{address.uri}' cannot be used: write bolt://HOST:PORT or neo4j://HOST:PORT")
    if isinstance(error, _CONFLICTS):
        return StoreConflict(f"Neo4j at {address.uri}: somebody else changed the same data ({code})")
    return StoreError(f"Neo4j at {address.uri} refused a statement ({code})")


@contextmanager
def mapping(address: Address) -> Generator[None]:
    """Map what the library raises inside the block; all else passes."""
    try:
        yield
    except (DriverError, Neo4jError) as error:
        raise mapped(error, address) from error


@contextmanager
def fitting() -> Generator[None]:
    """Map what the library raises for a parameter that it cannot send; nothing but a statement goes inside."""
    try:
        yield
    except _UNFIT as error:
        raise StoreError(f"Neo4j cannot keep a value of this statement ({type(error).__name__})") from error


async def again(work: Callable[[], Awaitable[_T]], address: Address) -> _T:
    """Run a unit of work, again when it lost against another transaction; map what is left.

    Deadlocks and the like are tried six times within about a second; a server that is away twice, since the
    first connection after its restart is a stale one.
    """
    for tries, delay_s in enumerate((*_DELAYS_S, 0.0), start=1):
        try:
            return await work()
        except (DriverError, Neo4jError) as error:
            last = tries > (_TRIES_WHEN_AWAY - 1 if isinstance(error, _AWAY) else len(_DELAYS_S))
            if last or not error.is_retryable():
                raise mapped(error, address) from error
        await asyncio.sleep(delay_s * random.uniform(0.5, 1.5))  # noqa: S311 - spreads tries; guards nothing
    raise AssertionError("the last try returns or raises")
