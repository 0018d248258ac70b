"""The bridge's requests to the server: POSTs on connections where the server proved itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

from pps.core.errors import StoreUnavailable
from pps.server import RunFile, connect
from pps.server.link import OwnerConnection, error_from, running

_PROOF_S = 5.0
_CALL_S = 300.0
"""Longest silence of the server within a call; it sends a sign of life every 15 s."""
_MAX_IDLE = 16
"""Most connections that are kept for later calls."""

Notify = Callable[[dict[str, Any]], None]
"""Receives reports of a call's progress, while the server works."""


class ServerLost(StoreUnavailable):
    """The server went away in the middle of a call: it may or may not have been done."""

    def __init__(self) -> None:
        super().__init__(
            "the server went away in the middle of the call; look whether it was done, then call "
            "again"
        )


class CallCancelled(Exception):
    """The client gave up a call; nobody waits for its answer."""


class Call:
    """A call in progress.

    Another thread may cancel it, which ends its connection and the server's work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give the call up."""
        with self._lock:
            self._is_cancelled = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise CallCancelled if the client gave the call up."""
        if self._is_cancelled:
            raise CallCancelled

    @contextlib.contextmanager
    def using(self, connection: http.client.HTTPConnection) -> Generator[None]:
        """Let ``cancel`` end a connection while the block runs."""
        with self._lock:
            self.check()
            self._socket = connection.sock
        try:
            yield
        finally:
            with self._lock:
                self._socket = None


class _NotReached(Exception):
    """No server could be connected to: nothing was sent."""


class Upstream:
    """Sends requests to a data folder's server, for the bridge's entity or roots.

    Any thread may call it. The server is started if it is away.
    """

    def __init__(self, home: Path, identity: str, toolset: str) -> None:
        """Name the server and who asks; nothing is connected yet.

        Args:
            home: The data folder.
            identity: An entity's name, with ``:actor`` where one writes, or quoted roots with
                commas between.
            toolset: The toolsets, with commas between; empty for the usual.
        """
        self._home = home
        self._identity = identity
        self._toolset = toolset
        self._lock = threading.Lock()
        self._idle: list[tuple[RunFile, OwnerConnection]] = []

    def start(self) -> None:
        """Start the server if it is away; raises the errors of ``pps.server.connect``."""
        connect(self._home)

    def ask(
        self, method: str, params: dict[str, Any], call: Call, notify: Notify
    ) -> dict[str, Any]:
        """Return the server's response to one request: an object with ``result`` or ``error``.

        ``notify`` is told the progress: an object with ``progress``, ``message`` and, where it is
        known, ``total``.

        A refused connection means that nothing was sent, so asking again cannot do a thing twice.

        Raises:
            ServerLost: The connection broke after the request was sent.
            StoreUnavailable: No server can be reached or started.
            UnknownEntity: The entity is not there, or archived.
            CallCancelled: The client gave the call up.
        """
        run = running(self._home)
        for is_last in (False, True):
            if run is None or is_last:
                run = connect(self._home).run
            try:
                return self._exchange(run, method, params, call, notify)
            except _NotReached:
                continue
        raise StoreUnavailable("the server cannot be reached; `pps doctor` says why")

    def _exchange(
        self, run: RunFile, method: str, params: dict[str, Any], call: Call, notify: Notify
    ) -> dict[str, Any]:
        connection = self._connection(run)
        is_reusable = False
        problem: dict[str, Any] | None = None
        answer: dict[str, Any] = {}
        try:
            with call.using(connection):
                message = {"method": method, "params": params, "toolset": self._toolset}
                headers = {
                    **connection.owner_headers(),
                    "PPS-Bridge": self._identity,
                    "Content-Type": "application/json",
                }
                connection.request("POST", "/owner/tools", json.dumps(message).encode(), headers)
                response = connection.getresponse()
                if response.status >= 400:
                    problem = _object(response.read())
                else:
                    answer = _read_answer(response, notify)
                is_reusable = not response.will_close
        except (OSError, http.client.HTTPException):
            call.check()
            raise ServerLost from None
        finally:
            if is_reusable:
                self._keep(run, connection)
            else:
                connection.close()
        call.check()
        if problem is not None:
            raise error_from(problem)
        return answer

    def _connection(self, run: RunFile) -> OwnerConnection:
        """Return a connection on which the server has proved itself; raises _NotReached."""
        with self._lock:
            while self._idle:
                owner, connection = self._idle.pop()
                if owner == run and not _is_readable(connection):
                    return connection
                connection.close()
        connection = OwnerConnection(run, _PROOF_S)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise _NotReached from None
        connection.sock.settimeout(_CALL_S)
        return connection

    def _keep(self, run: RunFile, connection: OwnerConnection) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append((run, connection))
                return
        connection.close()


def _is_readable(connection: http.client.HTTPConnection) -> bool:
    """Tell whether the server has closed a connection that nobody uses."""
    return bool(select.select([connection.sock], [], [], 0)[0])


def _read_answer(response: http.client.HTTPResponse, notify: Notify) -> dict[str, Any]:
    """Return the answer that ends a stream of events, one a line.

    ConnectionResetError where none comes.
    """
    answer: dict[str, Any] = {}
    for line in response:  # to its end: only then the connection can be used again
        event = _object(line)
        progress = event.get("progress")
        if isinstance(progress, dict):
            notify(cast("dict[str, Any]", progress))
        elif "result" in event or "error" in event:
            answer = event
    if not answer:
        raise ConnectionResetError
    return answer


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
