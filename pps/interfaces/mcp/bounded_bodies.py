"""Bodies are decoded within bounds before the protocol's library reads them on the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pps.core import json_bounds
from pps.core.json_bounds import TooLarge
from pps.interfaces.mcp import messages
from pps.interfaces.mcp.messages import INVALID_REQUEST, Undecodable, error_response


class BoundedBodies:
    """An ASGI app around another: a POST whose body is too large, or no JSON-RPC message, is refused with such an error.

    The error has the request's id where exactly one can be read. A malformed notification is refused too, since HTTP
    asks for an answer, but with the id null.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            stated = int(Headers(scope=scope).get("content-length", "0"))
            if stated > json_bounds.MAX_BYTES:
                raise TooLarge
            raw = await _read(receive)
            if raw is None:
                return  # the client went away
            await _check(raw)
        except TooLarge as error:
            refusal = error_response(None, INVALID_REQUEST, error.message)
            await _refuse(413, refusal)(scope, receive, send)
            return
        except Undecodable as error:
            request_id = error.ids[0] if len(error.ids) == 1 else None
            refusal = error_response(request_id, error.code, error.message)
            await _refuse(400, refusal)(scope, receive, send)
            return
        await self._app(scope, _replaying(bytes(raw), receive), send)


async def _read(receive: Receive) -> bytearray | None:
    raw = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        raw.extend(message.get("body", b""))
        if len(raw) > json_bounds.MAX_BYTES:
            raise TooLarge
        if not message.get("more_body", False):
            return raw


async def _check(raw: bytearray) -> None:
    if len(raw) < json_bounds.LARGE_BYTES:
        messages.decode(bytes(raw))
    else:
        await asyncio.to_thread(messages.decode, bytes(raw))


def _refuse(status: int, refusal: dict[str, Any]) -> Response:
    return Response(json.dumps(refusal), status, media_type="application/json")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body that was read before, and then what comes after it."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        message: MutableMapping[str, object] = {"type": "http.request", "body": body}
        return {**message, "more_body": False}

    return replay
