"""The server's WebSocket protocol: uvicorn's, without its logs or waits for a slow reader.

Its logs would hold paths, headers and frames.
"""

from __future__ import annotations

import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_FRAME = 512 * 1024
"""Most bytes of one message from a client; one text of the longest length in JSON takes less."""
PING_S = 20.0
_log = logging.getLogger(__name__)
# It would log each connection's path, and at debug what is said and both halves of the session.
_log.setLevel(logging.WARNING)


class QuietSocket(WebSocketsSansIOProtocol):
    """A socket of a page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self.conn.logger = _log
        self.conn.debug = False

    async def send(self, message: Any) -> None:
        """Send a message; at a close, a client that has not read the earlier ones is dropped."""
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.transport.abort()
            return
        await super().send(message)
