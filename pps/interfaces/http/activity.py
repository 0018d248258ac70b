"""What the server is doing: requests in hand, since when it is idle, and the wish to stop."""

from __future__ import annotations

import asyncio
import time as clock

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Activity:
    """Counts requests in hand.

    ``stopping`` is set once, and then the server lets its streams go.
    """

    def __init__(self) -> None:
        self.started = clock.monotonic()
        self.in_flight = 0
        self.stopping = asyncio.Event()
        self._last = self.started

    @property
    def uptime_s(self) -> float:
        """Seconds since the start."""
        return clock.monotonic() - self.started

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 while one is in hand."""
        return 0.0 if self.in_flight else clock.monotonic() - self._last

    def begin(self) -> None:
        """Note that a request came in."""
        self.in_flight += 1

    def end(self) -> None:
        """Note that a request was answered."""
        self.in_flight -= 1
        self._last = clock.monotonic()


class ActivityMeter:
    """ASGI middleware: counts requests, and ends the streams that only wait when the server stops.

    A client may hold a stream open for hours, just to listen. When the server stops, such a stream
    is told that its client hung up; requests that are being worked on are not.
    """

    def __init__(self, app: ASGIApp, activity: Activity) -> None:
        self._app = app
        self._activity = activity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        waits = scope["type"] == "http" and scope["method"] == "GET"
        self._activity.begin()
        try:
            await self._app(scope, self._until_stop(receive) if waits else receive, send)
        finally:
            self._activity.end()

    def _until_stop(self, receive: Receive) -> Receive:
        stopping = self._activity.stopping

        async def receive_or_stop() -> Message:
            message = asyncio.ensure_future(receive())
            stop = asyncio.ensure_future(stopping.wait())
            try:
                await asyncio.wait({message, stop}, return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()
                stop.cancel()

        return receive_or_stop
