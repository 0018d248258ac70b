"""The outermost layer: checks every request's Host and Origin, before any other code sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pps.interfaces.http.auth import bearer, is_by_socket, is_local
from pps.interfaces.http.problems import details
from pps.server.owner_socket import HOME_HEADER, OwnHome
from pps.server.runfile import OWNER_PREFIX

_PORT = re.compile("[0-9]{1,5}")  # of digits in other scripts, str.isdigit thinks otherwise
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Names:
    """The names of this server in a request's Host, and the origins whose pages may use it.

    A page on another site that had its own name point at this machine sends its own Host; a page
    that asks across sites sends its own Origin. Both are refused.
    """

    def __init__(self, bound: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
        own = () if bound in _ANYWHERE else (f"[{bound}]" if ":" in bound else bound,)
        self.hosts = tuple(dict.fromkeys((*(f"{name}:*" for name in (*_LOOPBACK, *own)), *hosts)))
        local = tuple(f"http://{name}:*" for name in (*_LOOPBACK, *own))
        self.origins = tuple(dict.fromkeys((*local, *origins)))
        self.named_origins = tuple(origins)

    def is_host(self, value: str) -> bool:
        """Tell whether a Host header names this server; the port is free where ``:*`` allows it."""
        return _allowed(value.lower(), self.hosts)

    def is_origin(self, value: str) -> bool:
        """Tell whether a page of this origin may ask."""
        try:
            parts = urlsplit(value.lower())
        except ValueError:
            return False
        return bool(parts.scheme and parts.netloc) and _allowed(
            f"{parts.scheme}://{parts.netloc}", self.origins
        )


class HostGuard:
    """ASGI middleware: 421 for an unknown Host or data folder, 403 for a foreign Origin.

    The owner's secret from another machine is refused here too, for all routes.
    """

    def __init__(self, app: ASGIApp, names: Names, home: OwnHome | None = None) -> None:
        """Guard an app; clients of the owner's socket must name the data folder ``home``."""
        self._app = app
        self._names = names
        self._home = home

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if not self._names.is_host(headers.get("host", "")):
            await _refuse(421, "this server does not go by that name", scope, receive, send)
        elif origin is not None and not self._names.is_origin(origin):
            await _refuse(403, "pages of that origin may not ask this server", scope, receive, send)
        elif is_by_socket(HTTPConnection(scope)) and not self._is_own_home(headers):
            await _refuse(421, "this server is of another data folder", scope, receive, send)
        elif _is_strangers_secret(HTTPConnection(scope)):
            await _refuse(401, "the owner's secret is for this machine only", scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_own_home(self, headers: Headers) -> bool:
        return self._home is not None and self._home.is_named(headers.get(HOME_HEADER, ""))


def _is_strangers_secret(connection: HTTPConnection) -> bool:
    return bearer(connection).startswith(OWNER_PREFIX) and not is_local(connection)


async def _refuse(status: int, why: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    answer = JSONResponse(
        details(status, "refused", why), status, media_type="application/problem+json"
    )
    await answer(scope, receive, send)


def _allowed(value: str, patterns: Sequence[str]) -> bool:
    for pattern in patterns:
        name, _, port = pattern.lower().rpartition(":")
        if port != "*" and value == pattern.lower():
            return True
        if port == "*" and (
            value == name
            or (value.startswith(f"{name}:") and _PORT.fullmatch(value, len(name) + 1))
        ):
            return True
    return False
