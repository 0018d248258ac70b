"""Logs go to stderr, with the id of the request; stdout belongs to the protocol and to answers."""

from __future__ import annotations

import logging
import sys

from pps.core.log_context import request_id

_CHATTY = (
    "mcp",
    "uvicorn",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "chromadb",
    "neo4j",
    "asyncio",
    "graphiti_core",
)


class _Request(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.request = request_id()
        return True


def set_up(level: str) -> None:
    """Send this process's logs to stderr; libraries are heard from ``warning`` up unless the level is debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Request())
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s [%(request)s] %(name)s: %(message)s")
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
