"""Logs go to stderr, or to a file that is rotated, with the id of the request.

Stdout belongs to the protocol.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from pps.core.log_context import request_id

if TYPE_CHECKING:
    from pps.config.settings import LogSettings

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
_QUOTING = ("anthropic", "openai")
"""Libraries that log at debug whatever they send, so also what is off the record."""
_TEXT = "%(asctime)s %(levelname)s [%(request)s] %(name)s: %(message)s"


def set_up(level: str, logs: LogSettings | None = None, *, file: Path | None = None) -> None:
    """Send this process's logs to stderr, or to a file.

    Libraries are heard from ``warning`` up unless at debug; those that log what they send, always.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        logs: Their format, and how large a file grows; None is text.
        file: Where they go instead of stderr. What this process writes to stdout and stderr
            otherwise goes there too, also after the file was rotated: it must be the process's own
            log.
    """
    handler: logging.Handler
    if file is not None and logs is not None:
        handler = _RotatedLog(file, logs.max_bytes, logs.files)
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_add_request)
    is_json = logs is not None and logs.format == "json"
    handler.setFormatter(_JSONLines() if is_json else logging.Formatter(_TEXT))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    quiet = _QUOTING if level == "debug" else (*_CHATTY, *_QUOTING)
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)


def _add_request(record: logging.LogRecord) -> bool:
    record.request = request_id()
    return True


class _JSONLines(logging.Formatter):
    """One JSON object a line: time, level, logger, request, message, and the message's fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, "fields", {})
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "request": getattr(record, "request", "-"),
            "message": record.getMessage(),
            **fields,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _RotatedLog(RotatingFileHandler):
    """A log of this user alone, moved to ``NAME.1`` when it is full.

    Stdout and stderr follow it to the new file.
    """

    def __init__(self, file: Path, max_bytes: int, files: int) -> None:
        super().__init__(file, maxBytes=max_bytes, backupCount=files, encoding="utf-8")
        file.chmod(0o600)

    def doRollover(self) -> None:  # noqa: N802 - logging's name
        super().doRollover()
        Path(self.baseFilename).chmod(0o600)
        if self.stream is not None:
            for descriptor in (1, 2):
                os.dup2(self.stream.fileno(), descriptor)
