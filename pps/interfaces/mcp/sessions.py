"""How many sessions of the older era one caller may have: beyond that the one that was idle longest makes room."""

from __future__ import annotations

from collections import OrderedDict

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ID = "mcp-session-id"


class BoundedSessions:
    """An ASGI app around the protocol's own.

    A client whose session is ended is answered 404 and begins another.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._of: dict[str, OrderedDict[str, int]] = {}
        """Requests in hand by session, the least recently used first, by caller; a caller's is kept when it is empty,
        since another request of theirs may be about to begin a session."""

    async def serve(self, caller: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a caller."""
        held = self._of.setdefault(caller, OrderedDict())
        session = Headers(scope=scope).get(_ID)

        async def watched(message: Message) -> None:
            starts = (
                session is None
                and message["type"] == "http.response.start"
                and message["status"] < 400
            )
            if starts and (begun := Headers(raw=message["headers"]).get(_ID)):
                held[begun] = 0
                await self._make_room(held, scope)
            await send(message)

        if session in held:
            held[session] += 1
            held.move_to_end(session)
        try:
            await self._app(scope, receive, watched)
        finally:
            if session in held:
                held[session] -= 1
                if scope["method"] == "DELETE":
                    del held[session]

    async def _make_room(self, held: OrderedDict[str, int], scope: Scope) -> None:
        while len(held) > self._most:
            ended = next(
                (session for session, in_hand in held.items() if not in_hand), next(iter(held))
            )
            del held[ended]
            headers = [
                (name, value) for name, value in scope["headers"] if name in (b"host", b"origin")
            ]
            request_scope = {
                **scope,
                "method": "DELETE",
                "headers": [*headers, (_ID.encode(), ended.encode())],
            }
            await self._app(request_scope, _nothing, _unheard)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(message: Message) -> None:
    del message
