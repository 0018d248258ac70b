"""Import this before anything of ``graphiti_core``: it makes that first import silent and free of side effects.

Graphiti reports usage by default, and at import it loads whatever ``.env`` lies in a parent folder into the
environment of the process. Neither may happen: settings come from ``pps.config`` alone. It also logs what language
models answered, names and text of a memory, as warnings and errors; all that it logs comes out at DEBUG.
"""

from __future__ import annotations

import logging
import os
import warnings

import dotenv

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"  # read when a Graphiti is made, so it has to stay


_log = logging.getLogger(__name__)


class _AsDebug(logging.Handler):
    """Says at DEBUG what another library says louder."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record's message under this module's name."""
        _log.debug("%s: %s", record.name, record.getMessage())


def _hush(logger: logging.Logger) -> None:
    if not any(isinstance(handler, _AsDebug) for handler in logger.handlers):
        logger.addHandler(_AsDebug())
    logger.propagate = False


_hush(logging.getLogger("graphiti_core"))


def _load_nothing(*_: object, **__: object) -> bool:
    return False


# Only while Graphiti is imported: a program that uses PPS may want dotenv for itself.
_load_dotenv, dotenv.load_dotenv = dotenv.load_dotenv, _load_nothing
try:
    with warnings.catch_warnings():
        # Its models still declare their settings in Pydantic's old way; nobody here can change that.
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core as graphiti_core
finally:
    dotenv.load_dotenv = _load_dotenv
