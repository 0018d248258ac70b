"""Authentication of pages: a cookie, this very origin, and a key that a form cannot send.

A browser sends a cookie to every port of a host, so a server on another port may see it. It is only
half of a session's token: the page keeps the other half in a store that browsers separate by
origin, port included, and sends it in a header; a socket, which can have no header of its own,
sends it as a subprotocol. Neither half reveals anything of the other.

A page is an entity's (``/page/NAME/``) or the owner's (``/haven/``).
"""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.ids import EntityId
from pps.entities.registry import Registry
from pps.entities.tokens import SESSION_S
from pps.interfaces.http.problems import Forbidden, Refused
from pps.operations.calls import Caller

KEY_HEADER = "PPS-Page"
SUBPROTOCOL = "pps"
"""Subprotocol of a page's socket."""
KEY_SUBPROTOCOL = "pps-key."
"""Prefix of the second subprotocol that a page offers; the key follows it."""
_KEY = 20
"""Characters of a session's token that are not in the cookie: 103 bits."""
_AGAIN = "this page's session has ended; open it again with `pps open {name}`"
_AGAIN_HAVEN = "this page's session has ended; open it again with `pps haven`"


class Browsers:
    """Opens sessions of pages, and finds the entity of a request.

    The cookie's name is this data folder's own.
    """

    def __init__(self, registry: Registry) -> None:
        self._pages = registry.pages
        self.cookie = (
            "pps_"
            + hashlib.sha256(str(registry.entities_folder.resolve()).encode()).hexdigest()[:12]
        )

    async def caller_of(self, connection: HTTPConnection) -> Caller:
        """Return the caller, the same as for a token of the entity; raises as ``entity_of``."""
        return Caller.of_entity(await self.entity_of(connection))

    async def entity_of(self, connection: HTTPConnection) -> EntityId:
        """Return the entity that a request of its page speaks for.

        Raises:
            Forbidden: The request was not sent by a page of this origin.
            Refused: The session is unknown, has ended, or is of another entity than the path's.
        """
        _check_origin(connection)
        name = connection.path_params["name"]
        entity = await asyncio.to_thread(self._pages.entity_of, self.session(connection))
        if entity is None or entity.name != name:
            raise Refused(_AGAIN.format(name=name))
        return entity

    async def check_haven(self, connection: HTTPConnection) -> None:
        """Raise unless a request is of the owner's page, as ``entity_of`` does."""
        _check_origin(connection)
        if not await asyncio.to_thread(self._pages.is_haven, self.session(connection)):
            raise Refused(_AGAIN_HAVEN)

    async def open(self, connection: HTTPConnection, link: str) -> Response:
        """Return the answer that gives a browser a new session: a cookie, and the page's key.

        Raises:
            Forbidden: The request was not sent by a page of this origin.
            Refused: The link was used or is too old.
        """
        _check_origin(connection)
        name = connection.path_params["name"]
        session = await asyncio.to_thread(self._pages.open, name, link)
        if session is None:
            raise Refused(
                f"this link was used already or is too old; `pps open {name}` makes another"
            )
        return self._opened(connection, session, f"/page/{name}/")

    async def open_haven(self, connection: HTTPConnection, link: str) -> Response:
        """Return the answer that gives a browser a new session of the owner's page.

        Raises as ``open``.
        """
        _check_origin(connection)
        session = await asyncio.to_thread(self._pages.open_haven, link)
        if session is None:
            raise Refused("this link was used already or is too old; `pps haven` makes another")
        return self._opened(connection, session, "/haven/")

    async def end(self, connection: HTTPConnection) -> None:
        await self.entity_of(connection)
        await asyncio.to_thread(self._pages.end, self.session(connection))

    async def end_haven(self, connection: HTTPConnection) -> None:
        await self.check_haven(connection)
        await asyncio.to_thread(self._pages.end, self.session(connection))

    def is_still(self, session: str, entity: EntityId | None) -> bool:
        """Tell whether a session of an entity's page, or with None of the owner's, is still open.

        Blocks.
        """
        if entity is None:
            return self._pages.is_haven(session)
        return self._pages.entity_of(session) == entity

    def session(self, connection: HTTPConnection) -> str:
        """Return the session that a request names, both halves joined, valid or not."""
        return connection.cookies.get(self.cookie, "") + (_key(connection) or "")

    def _opened(self, connection: HTTPConnection, session: str, path: str) -> Response:
        answer = Response(session[-_KEY:], media_type="text/plain")
        answer.set_cookie(
            self.cookie,
            session[:-_KEY],
            max_age=SESSION_S,
            path=path,
            secure=connection.headers["origin"].startswith("https:"),
            httponly=True,
            samesite="strict",
        )
        return answer


class HavenDoor:
    """Authenticates requests of the owner's page for the entity that their path names."""

    def __init__(self, browsers: Browsers, app: App) -> None:
        self._browsers = browsers
        self._app = app

    async def caller_of(self, connection: HTTPConnection) -> Caller:
        """Return the caller.

        Raises:
            Forbidden, Refused: As ``Browsers.check_haven``.
            UnknownEntity: No entity has the path's name.
            InvalidRequest: The name is that of a squad's pool.
        """
        await self._browsers.check_haven(connection)
        name = connection.path_params["name"]
        registry = self._app.registry
        entry = await asyncio.to_thread(registry.mount, name)
        if registry.squads.pool_of(name):
            raise InvalidRequest("entity", f"{name!r} is the pool of a squad")
        return Caller.of_entity(entry.entity)


def _is_socket(connection: HTTPConnection) -> bool:
    return connection.scope["type"] == "websocket"


def _key(connection: HTTPConnection) -> str | None:
    """Return the half of a session that the page keeps; None if a request has none."""
    if not _is_socket(connection):
        return connection.headers.get(KEY_HEADER)
    offered = connection.scope.get("subprotocols", [])
    if len(offered) != 2 or offered[0] != SUBPROTOCOL:
        return None
    key: str = offered[1]
    return key.removeprefix(KEY_SUBPROTOCOL) if key.startswith(KEY_SUBPROTOCOL) else None


def _check_origin(connection: HTTPConnection) -> None:
    """Raise Forbidden unless the browser's headers show that this very page sent the request."""
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "").lower()
    # Browsers send no origin with a page's reads within its own origin; with a socket they always
    # do.
    reads = not _is_socket(connection) and connection.scope.get("method") == "GET"
    is_ours = origin is None or (urlsplit(origin.lower())[:2] in (("http", host), ("https", host)))
    names_source = site is not None if origin is None and reads else origin is not None
    is_one_site = site in (None, "same-origin")
    if not (names_source and is_ours and is_one_site and _key(connection) is not None):
        raise Forbidden("only this page itself may ask that")
