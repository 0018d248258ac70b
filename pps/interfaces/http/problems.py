"""Bodies within a bound, and errors as problem details (RFC 9457)."""

from __future__ import annotations

import http
import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pps.core import errors, json_bounds
from pps.core.json_bounds import TooLarge
from pps.core.log_context import request_id, unforeseen
from pps.core.values import JSON

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Refused(errors.PPSError):
    """A request without a token, or with a wrong one."""

    code = "refused"


class Forbidden(errors.PPSError):
    """A token asks for more than it stands for."""

    code = "forbidden"


class NoOperation(errors.InvalidRequest):
    """There is none of that name for this token."""

    code = "unknown_operation"


class Outdated(errors.PPSError):
    """A client asks in a way that an older PPS had."""

    code = "outdated"


class NotJSON(errors.InvalidRequest):
    """The body's media type is not application/json."""


_STATUS: tuple[tuple[type[errors.PPSError], int], ...] = (
    (Refused, 401),
    (Forbidden, 403),
    (NoOperation, 404),
    (Outdated, 410),
    (TooLarge, 413),
    (NotJSON, 415),
    (errors.InvalidRequest, 400),
    (errors.ConfigError, 400),
    (errors.UnknownEntity, 404),
    (errors.NotFound, 404),
    (errors.StoreConflict, 409),
    (errors.Overloaded, 503),
    (errors.BudgetSpent, 503),
    (errors.StoreUnavailable, 503),
    (errors.ModelUnavailable, 503),
)


def answered(handler: Handler) -> Handler:
    """Return the handler with every error turned into an answer.

    Nothing of an unknown error is told.
    """

    async def safe(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:  # noqa: BLE001 - the surface's outermost call
            return refusal(error, f"{request.method} {request.url.path}")

    return safe


class Answered:
    """An ASGI app whose errors, before it began to answer, are answered too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            if begun:
                raise
            await refusal(error, f"{scope['method']} {scope['path']}")(scope, receive, send)


def no_route(_: Request, error: Exception) -> Response:
    """Return that there is nothing at an address, or nothing by this method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, detail = (
        ("not_found", "there is nothing here")
        if status == 404
        else ("no_method", "not by this method")
    )
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse(details(status, code, detail), status, headers, "application/problem+json")


def refusal(error: BaseException, request_line: str) -> Response:
    """Return an error as an answer; one that nobody foresaw is logged."""
    members = problem(error, request_line)
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.Overloaded):
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return JSONResponse(
        members, cast("int", members["status"]), headers, "application/problem+json"
    )


def problem(error: BaseException, request_line: str) -> dict[str, JSON]:
    """Return an error's problem details."""
    if not isinstance(error, errors.PPSError):
        unforeseen(_log, f"{request_line} failed", error)
        error = errors.PPSError("something went wrong inside PPS; its log has the details")
        error.code = "internal"
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return details(status, error.code, error.message, error)


def details(
    status: int, code: str, detail: str, error: errors.PPSError | None = None
) -> dict[str, JSON]:
    """Return problem details with the error's data."""
    members: dict[str, JSON] = {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "retryable": bool(error and error.retryable),
        "request": request_id(),
    }
    if isinstance(error, errors.InvalidRequest):
        members["field"] = error.field
        members["problems"] = [_problem_data(item) for item in error.problems]
    elif isinstance(error, errors.NotFound):
        members["noun"] = error.noun
        members["values"] = [*error.values]
        members["remedy"] = error.remedy
    elif isinstance(error, errors.UnknownEntity):
        members["name"] = error.name
    elif isinstance(error, errors.Changed):
        members["path"] = error.path
        members["problem"] = error.problem
    return members


def _problem_data(item: errors.Problem) -> dict[str, JSON]:
    """Return a problem's fields that say something; ``path`` and ``problem`` always."""
    data: dict[str, JSON] = {"path": item.path, "problem": item.problem}
    if item.value:
        data["value"] = item.value
    if item.remedy:
        data["remedy"] = item.remedy
    return data


async def body(request: Request) -> dict[str, JSON]:
    """Return a request's JSON object; an absent body is an empty one.

    Raises:
        TooLarge: It has more than 16 MiB.
        NotJSON: Its media type is another.
        InvalidRequest: It is not JSON, not an object, or holds more values or levels than a request
            may.
    """
    raw = bytearray()
    async for piece in request.stream():
        raw.extend(piece)
        if len(raw) > json_bounds.MAX_BYTES:
            raise TooLarge
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and kind != "application/json":
        raise NotJSON("Content-Type", "must be application/json")
    return await json_bounds.read_object_aside(raw)
