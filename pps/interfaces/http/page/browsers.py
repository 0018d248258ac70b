"""Who may ask through a page: one entity, by a cookie, from this very origin, with a key that a form cannot send.

A browser sends a cookie to every port of a host, so whoever listens on another port may see it. It is half of a
session's token only: the page keeps the other half where a browser parts origins, port included, and sends it in a
header. Neither half says anything of the other.
"""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from pps.core.ids import EntityId
from pps.entities.page_sessions import SESSION_S
from pps.entities.registry import Registry
from pps.interfaces.http.problems import Forbidden, Refused
from pps.operations.calls import Caller

KEY_HEADER = "PPS-Page"
_KEY = 20
"""Characters of a session's token that are not in the cookie: 103 bits."""
_AGAIN = "this page's session has ended; open it again with `pps open {name}`"


class Browsers:
    """Opens sessions of pages, and says whose a request is. The cookie's name is this data folder's own."""

    def __init__(self, registry: Registry) -> None:
        self._pages = registry.pages
        self.cookie = (
            "pps_"
            + hashlib.sha256(str(registry.entities_folder.resolve()).encode()).hexdigest()[:12]
        )

    async def caller_of(self, connection: HTTPConnection) -> Caller:
        """Return who asks, as for a token of the entity; raises as ``entity_of``."""
        return Caller.of_entity(await self.entity_of(connection))

    async def entity_of(self, connection: HTTPConnection) -> EntityId:
        """Return the entity that a request of its page speaks for.

        Raises:
            Forbidden: It was not sent by a page of this origin.
            Refused: Its session is none, has ended, or is another entity's than the path's.
        """
        _check_origin(connection)
        name = connection.path_params["name"]
        entity = await asyncio.to_thread(self._pages.entity_of, self._session(connection))
        if entity is None or entity.name != name:
            raise Refused(_AGAIN.format(name=name))
        return entity

    async def open(self, connection: HTTPConnection, link: str) -> Response:
        """Return the answer that gives a browser a new session: its cookie, and its key to keep; raises as above."""
        _check_origin(connection)
        name = connection.path_params["name"]
        session = await asyncio.to_thread(self._pages.open, name, link)
        if session is None:
            raise Refused(
                f"this link was used already or is too old; `pps open {name}` makes another"
            )
        answer = Response(session[-_KEY:], media_type="text/plain")
        answer.set_cookie(
            self.cookie,
            session[:-_KEY],
            max_age=SESSION_S,
            path=f"/page/{name}/",
            secure=connection.headers["origin"].startswith("https:"),
            httponly=True,
            samesite="strict",
        )
        return answer

    async def end(self, connection: HTTPConnection) -> None:
        await self.entity_of(connection)
        await asyncio.to_thread(self._pages.end, self._session(connection))

    async def is_still(self, connection: HTTPConnection, entity: EntityId) -> bool:
        """Tell whether a request's session goes on."""
        return await asyncio.to_thread(self._pages.entity_of, self._session(connection)) == entity

    def _session(self, connection: HTTPConnection) -> str:
        return connection.cookies.get(self.cookie, "") + connection.headers.get(KEY_HEADER, "")


def _check_origin(connection: HTTPConnection) -> None:
    """Refuse what a page of another origin, a form, a frame or a link may have sent: a browser says where it is."""
    site, origin = connection.headers.get("sec-fetch-site"), connection.headers.get("origin")
    host = connection.headers.get("host", "").lower()
    reads = connection.scope.get("method") == "GET"  # of these browsers tell no origin within one
    is_ours = origin is None or (urlsplit(origin.lower())[:2] in (("http", host), ("https", host)))
    told = site is not None if origin is None and reads else origin is not None
    if not (
        told and is_ours and site in (None, "same-origin") and KEY_HEADER in connection.headers
    ):
        raise Forbidden("only this page itself may ask that")
