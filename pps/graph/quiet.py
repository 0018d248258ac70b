"""Import this before anything of ``graphiti_core``: it makes that first import silent and free of side effects.

Graphiti reports usage by default, and at import it loads whatever ``.env`` lies in a parent folder into the
environment of the process. Neither may happen: settings come from ``pps.config`` alone. It also logs what language
models answered, names and text of a memory, as warnings and errors; all that it logs comes out at DEBUG. And it loads
OpenAI's library, a fifth of the start of a server, for clients that PPS makes itself, where it wants any.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import dotenv

os.environ["GRAPHITI_TELEMETRY_ENABLED"] = (
    "false"  # read when a Graphiti is made, so it has to stay
)


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


_OF_OPENAI = {
    "graphiti_core.cross_encoder.openai_reranker_client": ("OpenAIRerankerClient",),
    "graphiti_core.embedder.openai": ("OpenAIEmbedder", "OpenAIEmbedderConfig"),
    "graphiti_core.llm_client.openai_client": ("OpenAIClient",),
}


def _made_later(module: str, name: str) -> type:
    """Return a class whose instances are those of the real one, which is imported when the first is made."""

    def make(_: type, *args: object, **kwargs: object) -> object:
        return getattr(import_module(module), name)(*args, **kwargs)

    return type(name, (), {"__new__": make})


@contextmanager
def _openai_later() -> Generator[None]:
    """Let what is imported in the block have OpenAI's clients without their library, unless that is there already."""
    absent = {} if "openai" in sys.modules else _OF_OPENAI
    for module, names in absent.items():
        sys.modules[module] = ModuleType(module)
        vars(sys.modules[module]).update({name: _made_later(module, name) for name in names})
    try:
        yield
    finally:
        for module in absent:
            del sys.modules[module]


# Only while Graphiti is imported: a program that uses PPS may want dotenv for itself.
_load_dotenv, dotenv.load_dotenv = dotenv.load_dotenv, _load_nothing
try:
    with warnings.catch_warnings(), _openai_later():
        # Its models still declare their settings in Pydantic's old way; nobody here can change that.
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core as graphiti_core
finally:
    dotenv.load_dotenv = _load_dotenv
