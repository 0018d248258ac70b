"""JSON in, JSON out: bodies within a bound, errors in one shape."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pps.core import errors
from pps.core.bounds import check_length
from pps.core.log_context import unforeseen
from pps.core.values import JSON

_log = logging.getLogger(__name__)

MAX_BODY = 16 * 1024 * 1024
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_STATUS: tuple[tuple[type[errors.PPSError], int], ...] = (
    (errors.InvalidRequest, 400),
    (errors.ConfigError, 400),
    (errors.UnknownEntity, 404),
    (errors.NotFound, 404),
    (errors.StoreConflict, 409),
    (errors.Overloaded, 503),
    (errors.StoreUnavailable, 503),
    (errors.ModelUnavailable, 503),
)


class Refused(errors.PPSError):
    """A request without the right to do what it asks."""

    code = "refused"


def answered(handler: Handler) -> Handler:
    """Return the handler with every error turned into an answer; nothing of an unknown error is told."""

    async def safe(request: Request) -> Response:
        try:
            return await handler(request)
        except errors.PPSError as error:
            return JSONResponse(said(error), status_code=_status(error), headers=_headers(error))
        except Exception as error:  # noqa: BLE001 - the surface's outermost call
            unforeseen(_log, f"{request.method} {request.url.path} failed", error)
            return JSONResponse(internal(), status_code=500)

    return safe


async def body(request: Request) -> dict[str, JSON]:
    """Return a request's JSON object; an absent body is an empty one.

    Raises:
        InvalidRequest: It is larger than 16 MiB, not JSON, or not an object.
    """
    raw = bytearray()
    async for piece in request.stream():
        raw.extend(piece)
        if len(raw) > MAX_BODY:
            raise errors.InvalidRequest("body", "must have at most 16 MiB")
    try:
        value = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise errors.InvalidRequest("body", "must be a JSON object")
    return cast("dict[str, JSON]", value)


def text(arguments: Mapping[str, JSON], name: str, default: str | None = None) -> str:
    """Return an argument that must be text, without NUL or a lone surrogate; InvalidRequest names it when it is not."""
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise errors.InvalidRequest(name, "must be text")
    check_length(name, value, 0, MAX_BODY)
    return value


def said(error: errors.PPSError) -> dict[str, JSON]:
    """Return an error in the shape that every client reads."""
    return {"error": {"code": error.code, "message": error.message, "retryable": error.retryable}}


def internal() -> dict[str, JSON]:
    """Return what is told of an error that nobody foresaw."""
    message = "something went wrong inside PPS; its log has the details"
    return {"error": {"code": "internal", "message": message, "retryable": False}}


def _status(error: errors.PPSError) -> int:
    if isinstance(error, Refused):
        return 401
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _headers(error: errors.PPSError) -> dict[str, str]:
    if isinstance(error, errors.Overloaded):
        return {"Retry-After": str(math.ceil(error.retry_after_s))}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Refused) else {}
