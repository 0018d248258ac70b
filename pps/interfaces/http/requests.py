"""Requests: what is in hand and since when the server is idle; ids, counts and lines in the log."""

from __future__ import annotations

import asyncio
import logging
import time as clock
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pps.core.log_context import SCOPE_KEY, new_request_id, serving

_log = logging.getLogger(__name__)
REQUEST_ID = "X-Request-Id"
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of times."""
NO_ROUTE = "none"
"""What requests are counted under that no route took."""
_METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS"})


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


@dataclass(slots=True)
class Durations:
    """A histogram of seconds: ``counts`` by bucket, the last one for what is above all bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.seconds += seconds


class RequestTallies:
    """The number of requests of each route, by method and status, and the time until answers began.

    A route is counted by its template (``/page/{name}``), never by its path, and a method that no
    route has as ``OTHER``: clients choose neither names nor the number of what is counted.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._templates = {
            route.endpoint if isinstance(route, Route) else route.app: route.path
            for route in routes
            if isinstance(route, Route | Mount)
        }
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.durations: defaultdict[str, Durations] = defaultdict(Durations)

    def template(self, scope: Scope) -> str:
        """Return the route that took a request, as it is written in the table of routes."""
        return self._templates.get(scope.get("endpoint"), NO_ROUTE)

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[method if method in _METHODS else "OTHER", route, status] += 1
        self.durations[route].add(seconds)


class RequestLog:
    """ASGI middleware: gives each request an id (``X-Request-Id``), counts and logs it.

    A client may propose an id in the same header. The log has the route, not the path: a path may
    hold what a client should have kept to itself.
    """

    def __init__(self, app: ASGIApp, tallies: RequestTallies) -> None:
        self._app = app
        self._tallies = tallies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_ = new_request_id(Headers(scope=scope).get(REQUEST_ID, ""))
        scope[SCOPE_KEY] = id_
        started = clock.perf_counter()
        status = 0
        begun_s = 0.0

        async def send_with_id(message: Message) -> None:
            nonlocal status, begun_s
            if message["type"] == "http.response.start":
                status = message["status"]
                begun_s = clock.perf_counter() - started
                MutableHeaders(scope=message)[REQUEST_ID] = id_
            await send(message)

        with serving(id_):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                seconds = begun_s if status else clock.perf_counter() - started
                self._note(scope, status or 500, seconds)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = self._tallies.template(scope)
        self._tallies.add(scope["method"], route, status, seconds)
        ms = round(seconds * 1000, 1)
        fields = {"method": scope["method"], "route": route, "status": status, "ms": ms}
        level = logging.WARNING if status >= 500 else logging.DEBUG
        _log.log(
            level,
            "%s %s status=%d ms=%.1f",
            scope["method"],
            route,
            status,
            ms,
            extra={"fields": fields},
        )
