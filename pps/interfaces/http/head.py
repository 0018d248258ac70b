"""The head of a request, bounded in size and time: it is read before anybody is asked for a token."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pps.interfaces.http.auth import OWNER_STATE
from pps.server.owner_socket import peer_uid

MAX_HEAD = 64 * 1024
"""Most bytes of a request's first line and headers, and of what a body has beside its content."""
HEAD_S = 30.0
"""How long a connection may take from its beginning, or from the first byte of a further request, to whole headers."""


class BoundedHead(HttpToolsProtocol):
    """uvicorn's protocol, which would gather headers for as long as they come."""

    _read = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        link: socket.socket = transport.get_extra_info("socket")
        if link.family == socket.AF_UNIX:
            if not _is_own(link):
                transport.abort()
                return
            # Each request's scope gets a copy; no client can write into it.
            self.app_state = {**self.app_state, OWNER_STATE: True}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        super().data_received(data)
        if self._read > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"Headers of more than {MAX_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._read -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._read = 0
        super().on_message_complete()

    def _await_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)

    def _head_is_here(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _is_own(link: Any) -> bool:
    """Tell whether the process at the other end of a Unix socket is of the server's own user."""
    try:
        return peer_uid(link) == os.getuid()
    except OSError:
        return False
