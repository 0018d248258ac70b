"""Small settings that are kept with an entity's memory, such as the fingerprint of its vectors."""

from __future__ import annotations

import secrets

from pps.core.errors import InvalidRequest, IsolationError
from pps.core.sql import Connection

_OWN = "group"
_SECRET_BYTES = 32
PUBLISHED_AT = "published_position"
"""Set to the position up to which the published graph has everything, or to ``ANEW`` of ``isolation/publishing.py``.

Set to anything, it says that the graph is in these tables: memories of an earlier PPS had it on
Neo4j alone. On PostgreSQL it is there only while the graph is published: triggers log the rows of
the graph then.
"""
OF_STORE = ("layout", "scrub_due", "vacuum_due")
"""Keys of what concerns a file or a database itself: they do not go with a memory that is moved."""
PUT = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


def get(connection: Connection, key: str) -> str | None:
    """Return a value, or None when the key was never set."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def put(connection: Connection, key: str, value: str) -> None:
    """Set a value. The owner of the file is not among what can be set."""
    if key == _OWN or not 1 <= len(key) <= 100:
        raise InvalidRequest("key", f"must be 1 to 100 characters and not {_OWN!r}")
    connection.execute(PUT, (key, value))


def drop(connection: Connection, key: str) -> None:
    """Remove a value; nothing happens where there is none."""
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))


def put_owner(connection: Connection, group: str) -> None:
    """Note whose memory it is; IsolationError when it is another's."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (_OWN, group)
    )
    if get(connection, _OWN) != group:
        raise IsolationError("the memory belongs to another entity: nothing was read")


def stored_secret(connection: Connection, name: str) -> bytes | None:
    """Return a random key; None where it was never asked for."""
    stored = get(connection, f"secret {name}")
    return bytes.fromhex(stored) if stored else None


def secret(connection: Connection, name: str) -> bytes:
    """Return a random key, made when it is first asked for."""
    key = f"secret {name}"
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (key, secrets.token_hex(_SECRET_BYTES)),
    )
    return bytes.fromhex(get(connection, key) or "")
