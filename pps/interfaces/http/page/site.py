"""The page's routes: its files, its session, the operations of ``/v1`` under the entity's path, and what is new.

``/page/NAME/`` is one document for every entity; who has no session gets nothing but that. The files lie in
``static``: no build step, nothing from outside; ``assets`` serves them. ``static/app.js`` says how a view is added.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound, PPSError
from pps.core.ids import EntityId, check_name
from pps.interfaces.http.page.assets import Assets, compressed
from pps.interfaces.http.page.browsers import Browsers
from pps.interfaces.http.problems import answered, body
from pps.interfaces.http.v1 import V1
from pps.operations.calls import Calls
from pps.operations.feature import shown_view

STATIC = Path(__file__).with_name("static")
_LOOK_S, _BEAT_S = 0.5, 4.0
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    # The two style sheets that force-graph puts in by itself, empty first, by their digests; a test compares them.
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=' "
    "'sha256-9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY='",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    # No text becomes HTML: the one policy that there is (static/start.js) lets nothing but the empty text through.
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


class Site:
    """The pages of all entities."""

    def __init__(self, app: App, calls: Calls, browsers: Browsers) -> None:
        self._app = app
        self._browsers = browsers
        self._calls = calls
        self._v1 = V1(calls, browsers)
        self._assets = Assets(STATIC, HEADERS)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/page/_/{path:path}", answered(self._file), methods=["GET"]),
            Route("/page/{name}", answered(self._to_page), methods=["GET"]),
            Route("/page/{name}/", answered(self._page), methods=["GET"]),
            Route("/page/{name}/session", answered(self._session), methods=["POST"]),
            Route("/page/{name}/events", answered(self._events), methods=["GET"]),
            Route("/page/{name}/features", answered(self._features), methods=["GET"]),
            Route("/page/{name}/v1/{operation}", answered(self._call), methods=["POST"]),
        ]

    async def _to_page(self, request: Request) -> Response:
        return RedirectResponse(f"/page/{_name(request)}/", 308)

    async def _page(self, request: Request) -> Response:
        _name(request)
        return await asyncio.to_thread(self._assets.document, request)

    async def _file(self, request: Request) -> Response:
        answer = await asyncio.to_thread(self._assets.file, request, request.path_params["path"])
        if answer is None:
            raise NotFound("page")
        return answer

    async def _call(self, request: Request) -> Response:
        answer = await self._v1.call(request)
        if isinstance(answer, StreamingResponse):
            return answer
        return await asyncio.to_thread(compressed, request, answer)

    async def _session(self, request: Request) -> Response:
        """Open a session with a link's secret, or end the one that asks: ``{"link": "…"}`` or ``{"end": true}``."""
        given = await body(request)
        if given == {"end": True}:
            await self._browsers.end(request)
            return Response(status_code=204)
        link = given.get("link")
        if not isinstance(link, str) or len(given) != 1:
            raise InvalidRequest("link", "must be the link's secret")
        return await self._browsers.open(request, link)

    async def _features(self, request: Request) -> Response:
        """Return which features are on, and the views of those that give theirs as data."""
        await self._browsers.entity_of(request)
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

    async def _events(self, request: Request) -> Response:
        changes = self._changes(request, await self._browsers.entity_of(request))
        return StreamingResponse(
            changes, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _changes(self, request: Request, entity: EntityId) -> AsyncGenerator[str]:
        """Yield an event whenever the entity's journal has changed, which all writes pass, and whether work waits.

        It ends with the session, or when the memory cannot be had any more.
        """
        loop, seen, told_at = asyncio.get_running_loop(), None, 0.0
        while await self._browsers.is_still(request, entity):
            try:
                async with self._app.memory(entity) as memory:
                    now = await memory.jobs.mark()
            except PPSError:
                return
            if now != seen:
                seen, told_at = now, loop.time()
                yield f"event: changed\ndata: {json.dumps({'version': now[0], 'pending': now[1]})}\n\n"
            elif loop.time() - told_at > _BEAT_S:
                told_at = loop.time()
                yield ": nothing new\n\n"
            await asyncio.sleep(_LOOK_S)
        yield "event: ended\ndata: {}\n\n"


def _name(request: Request) -> str:
    try:
        return check_name(request.path_params["name"])
    except InvalidRequest:
        raise NotFound("page") from None
