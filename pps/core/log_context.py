"""What the log is told: the id of the request, and of an error that nobody foresaw all but its text."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_REQUEST: ContextVar[str] = ContextVar("pps_request", default="-")


def unforeseen(log: logging.Logger, what: str, error: BaseException) -> None:
    """Log an error that nobody foresaw: its class and where, but not its text, which may quote memory."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, where)
    log.debug("%s", what, exc_info=error)


def request_id() -> str:
    """Return the id of the present request, or ``-`` outside any."""
    return _REQUEST.get()


@contextmanager
def serving(request: str) -> Generator[None]:
    """Let everything in the block, and the tasks it starts, log this request id."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)
