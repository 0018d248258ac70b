"""What the log may say of an error that nobody foresaw: never its text."""

from __future__ import annotations

import logging
import traceback


def unforeseen(log: logging.Logger, what: str, error: BaseException) -> None:
    """Log an error that nobody foresaw: its class and where, but not its text, which may quote memory."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s\n%s", what, type(error).__name__, where)
    log.debug("%s", what, exc_info=error)
