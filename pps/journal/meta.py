"""Small settings that are kept with an entity's memory, such as the fingerprint of its vectors."""

from __future__ import annotations

import secrets

from pps.core.errors import InvalidRequest, IsolationError
from pps.core.sql import Connection

_OWN = "group"
_SECRET_BYTES = 32
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
