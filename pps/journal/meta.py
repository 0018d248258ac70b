"""Key-value settings in an entity's memory, such as the fingerprint of its vectors."""

from __future__ import annotations

import secrets

from pps.core.errors import InvalidRequest, IsolationError
from pps.core.sql import Connection

_OWN = "group"
_SECRET_BYTES = 32
PUBLISHED_AT = "published_position"
"""Key of the change log's position that the published graph has reached, or ``publishing.ANEW``.

If the key exists, the graph is in these tables: memories of an earlier PPS had it on Neo4j only. On
PostgreSQL it exists only while the graph is published, because the triggers that log rows of the
graph depend on it.
"""
OF_STORE = ("layout", "scrub_due", "vacuum_due")
"""Keys about the file or the database itself; they are not copied when a memory is moved."""
PUT = (
    "INSERT INTO meta (key, value) VALUES (?, ?) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


def get(connection: Connection, key: str) -> str | None:
    """Return a value, or None if the key does not exist."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def put(connection: Connection, key: str, value: str) -> None:
    """Set a value; InvalidRequest for the key of the memory's owner."""
    if key == _OWN or not 1 <= len(key) <= 100:
        raise InvalidRequest("key", f"must be 1 to 100 characters and not {_OWN!r}")
    connection.execute(PUT, (key, value))


def drop(connection: Connection, key: str) -> None:
    """Remove a value if it exists."""
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))


def put_owner(connection: Connection, group: str) -> None:
    """Record the owner of the memory; IsolationError if it belongs to another entity."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (_OWN, group)
    )
    if get(connection, _OWN) != group:
        raise IsolationError("the memory belongs to another entity: nothing was read")


def stored_secret(connection: Connection, name: str) -> bytes | None:
    """Return a random key, or None if ``secret`` never created it."""
    stored = get(connection, f"secret {name}")
    return bytes.fromhex(stored) if stored else None


def secret(connection: Connection, name: str) -> bytes:
    """Return a random key; the first call creates and stores it."""
    key = f"secret {name}"
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (key, secrets.token_hex(_SECRET_BYTES)),
    )
    return bytes.fromhex(get(connection, key) or "")
