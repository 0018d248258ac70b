"""Context of log lines: the request's id, and unforeseen errors without their text."""

from __future__ import annotations

import logging
import re
import secrets
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

NO_REQUEST = "-"
SCOPE_KEY = "pps.request"
"""Where the scope of an HTTP request holds its id."""
_REQUEST: ContextVar[str] = ContextVar("pps_request", default=NO_REQUEST)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def unforeseen(log: logging.Logger, what: str, error: BaseException) -> None:
    """Log the class and place of an unforeseen error, without its text, which may quote memory."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, where)
    log.debug("%s", what, exc_info=error)


def request_id() -> str:
    """Return the id of the present request, or ``-`` outside any."""
    return _REQUEST.get()


def new_request_id(proposed: str = "") -> str:
    """Return the id that a client proposes for its request, or a new one of 8 hexadecimal digits.

    A client's id has 1 to 64 letters, digits, ``.``, ``_`` and ``-`` of ASCII, so that it cannot
    forge a line of a log.
    """
    if _REQUEST_ID.fullmatch(proposed) and proposed != NO_REQUEST:
        return proposed
    return secrets.token_hex(4)


@contextmanager
def serving(request: str) -> Generator[None]:
    """Let everything in the block, and the tasks it starts, log this request id."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)
