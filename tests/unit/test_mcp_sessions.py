"""The bound on the protocol's sessions holds whatever else a caller asks at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from starlette.types import Receive, Scope, Send

from pps.interfaces.mcp.endpoint import BoundedSessions

MOST = 3


async def test_a_session_that_begins_while_another_request_ends_is_counted() -> None:
    """The other request leaves nothing in hand, so what is known of its caller is let go meanwhile."""
    sessions: set[str] = set()

    async def protocol(scope: Scope, _: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["method"] == "DELETE":
            sessions.discard(headers[b"mcp-session-id"].decode())
            return
        begins = b"begins" in headers
        if begins:
            await asyncio.sleep(0)  # the other request ends
            sessions.add(headers[b"begins"].decode())
        answered = [(b"mcp-session-id", headers[b"begins"])] if begins else []
        await send({"type": "http.response.start", "status": 200, "headers": answered})

    bounded = BoundedSessions(protocol, MOST)
    for number in range(10):
        one = bounded.serve("ana", request(begins=f"{number}"), nothing, heard)
        await asyncio.gather(one, bounded.serve("ana", request(), nothing, heard))
    assert sessions == {"7", "8", "9"}


def request(**headers: str) -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }


async def nothing() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def heard(_: MutableMapping[str, Any]) -> None:
    return None
