"""Probes of what a server needs: a disk that takes writes; PostgreSQL and Neo4j where used."""

from __future__ import annotations

import asyncio
import os
import time as clock
from pathlib import Path
from urllib.parse import urlsplit

from pps.app import App
from pps.core.errors import PPSError

_KEEP_S = 5.0
_CONNECT_S = 2.0
_BOLT_PORT = 7687


class Probes:
    """Probes what all entities share. A result is used for 5 seconds."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self._failing: dict[str, str] = {}
        self._publishing = ""
        self._until = 0.0

    async def failing(self) -> dict[str, str]:
        """Return the problems, by what was tried: ``registry``, ``disk``, ``postgresql``."""
        await self._try()
        return self._failing

    async def publishing(self) -> str:
        """Return why graphs cannot be published; empty when they can, or none is.

        Everything else works meanwhile.
        """
        await self._try()
        return self._publishing

    async def _try(self) -> None:
        async with self._lock:
            if clock.monotonic() >= self._until:
                self._failing = await self._tried()
                self._until = clock.monotonic() + _KEEP_S

    async def _tried(self) -> dict[str, str]:
        failing: dict[str, str] = {}
        if reason := await asyncio.to_thread(_refused_write, self._app.settings.home):
            failing["disk"] = f"the data folder takes no writes ({reason})"
        try:
            entries = await asyncio.to_thread(self._app.registry.list)
        except PPSError as error:
            return {**failing, "registry": error.message}
        if any(entry.store == "postgresql" for entry in entries):
            from pps.journal.postgresql import refused_connection  # few servers need it

            reason = await refused_connection(self._app.settings.postgresql, _CONNECT_S)
            if reason:
                failing["postgresql"] = (
                    f"PostgreSQL does not answer ({reason}): check the server and postgresql.url"
                )
        self._publishing = ""
        if any(entry.is_published for entry in entries):
            uri = self._app.settings.neo4j.uri
            reason = await _refused_connection(uri)
            if reason:
                self._publishing = f"publishing waits: Neo4j does not answer at {uri} ({reason})"
        return failing


def _refused_write(home: Path) -> str:
    """Return why a file of 4 KB cannot be written to the disk of the data folder.

    Empty when it can.
    """
    probe = home / f".probe.{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, bytes(4096))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


async def _refused_connection(uri: str) -> str:
    """Return why nothing takes connections at the address; empty when something does."""
    parts = urlsplit(uri)
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _BOLT_PORT)
    except TimeoutError:
        return f"nothing within {_CONNECT_S:.0f} s"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or type(error).__name__
    writer.close()
    return ""
