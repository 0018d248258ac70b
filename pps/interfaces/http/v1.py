"""``POST /v1/{operation}``: every operation of the table, for whoever the token stands for."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from pps.core.errors import InvalidRequest
from pps.core.values import JSON
from pps.interfaces.http.auth import bearer, is_by_socket
from pps.interfaces.http.problems import NoOperation, body, problem
from pps.operations.calls import Caller, Calls
from pps.operations.openapi import document
from pps.operations.table import Answer, AnyOperation

LINES = "application/x-ndjson"


class Authenticator(Protocol):
    """Says who asks: by a token, or by the session of a page."""

    async def caller_of(self, connection: Request) -> Caller:
        """Return who asks with a request; raises for nobody."""
        ...


TIME_ZONE = "PPS-Time-Zone"


class V1:
    """Answers in the form that the client accepts.

    That is JSON, text (``text/plain``), or lines of JSON (``application/x-ndjson``).

    The header ``PPS-Time-Zone`` names the time zone of the entity that answered, for clients that
    show the times of JSON.

    Lines report the progress of a long operation (``what``, ``done``, ``total``); the last one has
    ``result``, ``text`` and ``time_zone``, or ``problem``. When the reader goes away a long
    operation is given up.
    """

    def __init__(self, calls: Calls, door: Authenticator) -> None:
        self._calls = calls
        self._door = door

    async def call(self, request: Request) -> Response:
        caller = await self._door.caller_of(request)
        try:
            operation = await self._calls.find(caller, request.path_params["operation"])
        except InvalidRequest as error:
            raise NoOperation.of(error.problems) from None
        arguments = await body(request)
        wanted = request.headers.get("accept", "")
        if LINES in wanted:
            return StreamingResponse(self._lines(caller, operation, arguments), media_type=LINES)
        answer = await self._calls.answer(caller, operation.name, arguments)
        zone = {TIME_ZONE: answer.time_zone}
        return (
            PlainTextResponse(answer.text, headers=zone)
            if wanted.startswith("text/plain")
            else JSONResponse(answer.named, headers=zone)
        )

    async def openapi(self, request: Request) -> Response:
        """Return the document of what a token may ask.

        Without one that of an entity's operations.
        """
        is_known = bearer(request) or is_by_socket(request)
        caller = await self._door.caller_of(request) if is_known else Caller(("entity",))
        return JSONResponse(document((await self._calls.operations(caller)).values()))

    async def _lines(
        self, caller: Caller, any_operation: AnyOperation, arguments: Mapping[str, JSON]
    ) -> AsyncGenerator[bytes]:
        try:
            if not any_operation.long:
                yield _ended(await self._calls.answer(caller, any_operation.name, arguments))
                return
            async with aclosing(
                self._calls.reported(caller, any_operation.name, arguments)
            ) as steps:
                async for step in steps:
                    yield _ended(step) if isinstance(step, Answer) else _line(asdict(step))
        except Exception as error:  # noqa: BLE001 - outermost call; the answer has begun
            yield _line({"problem": problem(error, any_operation.name)})


def _ended(answer: Answer) -> bytes:
    return _line({"result": answer.named, "text": answer.text, "time_zone": answer.time_zone})


def _line(event: Mapping[str, JSON]) -> bytes:
    return json.dumps(event).encode() + b"\n"
