"""Import this before anything of ``graphiti_core``: it makes that first import silent and free of side effects.

Graphiti reports usage by default, and at import it loads whatever ``.env`` lies in a parent folder
into the environment of the process. Neither may happen: settings come from ``pps.config`` alone. It
also logs what language models answered, names and text of a memory, as warnings and errors; all
that it logs comes out at DEBUG. And it loads libraries that PPS may never need: OpenAI's, whose
clients PPS makes itself where it wants any, Neo4j's, which an embedded home has no use for, and by
httpx the command line of that, with rich. They are loaded when they are used.
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


class _NoDateTime:
    """Stands for ``neo4j.time.DateTime`` while Neo4j's library is not imported: nothing is one."""


class _Neo4jTime:
    """Stands for the module ``neo4j.time`` in Graphiti, which asks of values whether they are its ``DateTime``."""

    @property
    def DateTime(self) -> type:  # noqa: N802 - Neo4j's name
        loaded = sys.modules.get("neo4j.time")
        return _NoDateTime if loaded is None else loaded.DateTime


def _httpx_main() -> None:
    """Run the command line of httpx, which loads rich."""
    import_module("httpx._main").main()


def _stub(name: str, **values: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(values)
    return module


def _stubs() -> dict[str, ModuleType]:
    """Return by name what Graphiti imports in place of libraries that are not imported yet."""
    stubs: dict[str, ModuleType] = {}
    if "openai" not in sys.modules:
        for module, names in _OF_OPENAI.items():
            stubs[module] = _stub(module, **{name: _made_later(module, name) for name in names})
    if "neo4j" not in sys.modules:
        driver = "graphiti_core.driver.neo4j_driver"
        stubs[driver] = _stub(driver, Neo4jDriver=_made_later(driver, "Neo4jDriver"))
        sync_driver = _made_later("neo4j", "Neo4jDriver")  # Graphiti names it and never makes one
        stubs["neo4j"] = _stub("neo4j", time=_Neo4jTime(), Neo4jDriver=sync_driver)
    if "httpx" not in sys.modules:
        stubs["httpx._main"] = _stub("httpx._main", main=_httpx_main)
    return stubs


@contextmanager
def _libraries_later() -> Generator[None]:
    """Let what is imported in the block do without libraries that it does not use."""
    stubs = _stubs()
    sys.modules.update(stubs)
    try:
        yield
    finally:
        for module in stubs:
            del sys.modules[module]


# Only while Graphiti is imported: a program that uses PPS may want dotenv for itself.
_load_dotenv, dotenv.load_dotenv = dotenv.load_dotenv, _load_nothing
try:
    with warnings.catch_warnings(), _libraries_later():
        # Its models still declare their settings in Pydantic's old way; nobody here can change
        # that.
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core as graphiti_core
finally:
    dotenv.load_dotenv = _load_dotenv
