"""Requests within the bounds of ``core.json_bounds``, before the protocol's library reads them on the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pps.core import json_bounds
from pps.core.errors import InvalidRequest
from pps.core.json_bounds import TooLarge

_INVALID_REQUEST = -32600


class BoundedBodies:
    """An ASGI app around another: a POST whose body is too large, too wide or too deep is refused as JSON-RPC error."""

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
        except InvalidRequest as error:
            status = 413 if isinstance(error, TooLarge) else 400
            answer = refusal(error.message, None)
            await Response(answer, status, media_type="application/json")(scope, receive, send)
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
        json_bounds.check_raw(raw)
    else:
        await asyncio.to_thread(json_bounds.check_raw, raw)


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


def refusal(text: str, request_id: str | int | None) -> str:
    """Return a JSON-RPC error, on one line, for a message that was not read."""
    error = {"code": _INVALID_REQUEST, "message": text}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})
