"""The id of the request that is being served, for the log. Set by a surface, read by whoever logs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_REQUEST: ContextVar[str] = ContextVar("pps_request", default="-")


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
