"""The routes of pages: files, sessions, the operations of ``/v1`` under a page's path, and sockets.

``/page/NAME/`` is one document for every entity, ``/haven/`` that of the owner; without a session a
browser gets nothing else. The files are in ``static``: no build step, nothing from outside;
``assets`` serves them. ``static/app.js`` describes how to add a view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId, check_name
from pps.interfaces.http.page.assets import ENTITY_PAGE, OWNER_PAGE, Assets, compressed
from pps.interfaces.http.page.browsers import Browsers, HavenDoor
from pps.interfaces.http.page.sockets import RoomsOfViewer, Sockets
from pps.interfaces.http.problems import answered, body
from pps.interfaces.http.v1 import V1
from pps.operations.calls import Calls
from pps.operations.feature import shown_view

STATIC = Path(__file__).with_name("static")
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    # The two style sheets that force-graph puts in by itself, empty first, by their digests; a test
    # compares them.
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=' "
    "'sha256-9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY='",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    # No text becomes HTML: the only policy (static/start.js) lets nothing but the
    # empty text through.
    "require-trusted-types-for 'script'",
    "trusted-types default",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Talking(Protocol):
    """The rooms of an installation, as the feature ``haven`` provides them."""

    def for_viewer(self, entity: EntityId | None) -> RoomsOfViewer:
        """Return the rooms that an entity's page may see; with None, the owner's page."""
        ...

    async def close(self) -> None:
        """End all answers; their text so far is stored."""
        ...


class Site:
    """The pages of all entities, and the owner's page.

    Args:
        talk: Returns the rooms of the feature ``haven``; None while it is off.
    """

    def __init__(
        self, app: App, calls: Calls, browsers: Browsers, talk: Callable[[], Talking | None]
    ) -> None:
        self._app = app
        self._browsers = browsers
        self._calls = calls
        self._v1 = V1(calls, browsers)
        self._v1_of_owner = V1(calls, HavenDoor(browsers, app))
        self._assets = Assets(STATIC, HEADERS)

        def rooms(viewer: EntityId | None) -> RoomsOfViewer | None:
            talking = talk()
            return None if talking is None else talking.for_viewer(viewer)

        self._sockets = Sockets(app, browsers, rooms)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/page/_/{path:path}", answered(self._file), methods=["GET"]),
            Route("/page/{name}", answered(self._to_page), methods=["GET"]),
            Route("/page/{name}/", answered(self._page), methods=["GET"]),
            Route("/page/{name}/session", answered(self._session), methods=["POST"]),
            Route("/page/{name}/features", answered(self._features), methods=["GET"]),
            Route("/page/{name}/v1/{operation}", answered(self._call), methods=["POST"]),
            WebSocketRoute("/page/{name}/socket", self._sockets.of_entity),
            Route("/haven", answered(self._to_haven), methods=["GET"]),
            Route("/haven/", answered(self._haven), methods=["GET"]),
            Route("/haven/session", answered(self._haven_session), methods=["POST"]),
            Route("/haven/features", answered(self._haven_features), methods=["GET"]),
            Route("/haven/open", answered(self._open_from_haven), methods=["POST"]),
            Route("/haven/{name}/v1/{operation}", answered(self._haven_call), methods=["POST"]),
            WebSocketRoute("/haven/socket", self._sockets.of_owner),
        ]

    async def settled(self) -> None:
        """Wait until the requests of all sockets have ended."""
        await self._sockets.settled()

    async def _to_page(self, request: Request) -> Response:
        return RedirectResponse(f"/page/{_name(request)}/", 308)

    async def _page(self, request: Request) -> Response:
        _name(request)
        return await asyncio.to_thread(self._assets.document, request, ENTITY_PAGE)

    async def _to_haven(self, _: Request) -> Response:
        return RedirectResponse("/haven/", 308)

    async def _haven(self, request: Request) -> Response:
        return await asyncio.to_thread(self._assets.document, request, OWNER_PAGE)

    async def _file(self, request: Request) -> Response:
        answer = await asyncio.to_thread(self._assets.file, request, request.path_params["path"])
        if answer is None:
            raise NotFound("page")
        return answer

    async def _call(self, request: Request) -> Response:
        return await _compressed(request, await self._v1.call(request))

    async def _haven_call(self, request: Request) -> Response:
        return await _compressed(request, await self._v1_of_owner.call(request))

    async def _session(self, request: Request) -> Response:
        """Open a session with a link's secret, or end the request's own session.

        The body is ``{"link": "…"}`` or ``{"end": true}``.
        """
        link = await _link_of(request)
        if link is None:
            await self._browsers.end(request)
            return Response(status_code=204)
        return await self._browsers.open(request, link)

    async def _haven_session(self, request: Request) -> Response:
        """Open or end a session of the owner's page, as ``_session`` does of an entity's."""
        link = await _link_of(request)
        if link is None:
            await self._browsers.end_haven(request)
            return Response(status_code=204)
        return await self._browsers.open_haven(request, link)

    async def _open_from_haven(self, request: Request) -> Response:
        """Return the secret of a link that opens an entity's page: ``{"name": "…"}``."""
        await self._browsers.check_haven(request)
        fields = await body(request)
        name = fields.get("name")
        if not isinstance(name, str) or len(fields) != 1:
            raise InvalidRequest("name", "must be the entity's name")
        entry = await asyncio.to_thread(self._app.registry.mount, check_name(name))
        if self._app.registry.squads.pool_of(name):
            raise InvalidRequest("name", "is the pool of a squad")
        secret = await asyncio.to_thread(self._app.registry.pages.link, entry.entity)
        return JSONResponse({"link": secret}, headers={"Cache-Control": "no-store"})

    async def _features(self, request: Request) -> Response:
        """Return the names of the enabled features, and the views that they define as data."""
        await self._browsers.entity_of(request)
        return self._enabled_features()

    async def _haven_features(self, request: Request) -> Response:
        """Return the same as ``_features``, to the owner's page."""
        await self._browsers.check_haven(request)
        return self._enabled_features()

    def _enabled_features(self) -> Response:
        enabled = self._app.features.enabled()
        return JSONResponse(
            {
                "features": [feature.name for feature in enabled],
                "views": [
                    shown_view(feature.name, view, self._calls.table)
                    for feature in enabled
                    for view in feature.views
                ],
            },
            headers={"Cache-Control": "no-store"},
        )


async def _compressed(request: Request, answer: Response) -> Response:
    if isinstance(answer, StreamingResponse):
        return answer
    return await asyncio.to_thread(compressed, request, answer)


async def _link_of(request: Request) -> str | None:
    """Return the secret of the link in a request; None if the request ends its own session."""
    fields = await body(request)
    if fields == {"end": True}:
        return None
    link = fields.get("link")
    if not isinstance(link, str) or len(fields) != 1:
        raise InvalidRequest("link", "must be the link's secret")
    return link


def _name(request: Request) -> str:
    try:
        return check_name(request.path_params["name"])
    except InvalidRequest:
        raise NotFound("page") from None
