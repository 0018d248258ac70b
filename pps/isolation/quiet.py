"""Imports ``graphiti_core`` without its side effects; import this module before it.

- Graphiti sends usage reports by default, and its import loads the ``.env`` of a parent folder into
    the environment. Both are switched off: settings come from ``pps.config`` only.
- It logs answers of language models, with names and text of a memory, as warnings and errors. All
    its messages are logged at DEBUG instead.
- It imports libraries that PPS may never need: OpenAI's (PPS makes its own clients), Neo4j's (not
    needed by an embedded home), and the command line of httpx with rich. They are imported when
    they are first used.
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

# Read whenever a Graphiti object is created, so it stays set.
os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"


_log = logging.getLogger(__name__)


class _AsDebug(logging.Handler):
    """Logs the messages of another library at DEBUG."""

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
    """Return a class that imports the real one when it is called, and makes an instance of it."""

    def make(_: type, *args: object, **kwargs: object) -> object:
        return getattr(import_module(module), name)(*args, **kwargs)

    return type(name, (), {"__new__": make})


class _NoDateTime:
    """Stands for ``neo4j.time.DateTime`` until Neo4j's library is imported; has no instances."""


class _Neo4jTime:
    """Stands for the module ``neo4j.time``, whose ``DateTime`` Graphiti uses in ``isinstance``."""

    @property
    def DateTime(self) -> type:  # noqa: N802 - Neo4j's name
        loaded = sys.modules.get("neo4j.time")
        return _NoDateTime if loaded is None else loaded.DateTime


def _httpx_main() -> None:
    """Import and run the command line of httpx, which imports rich."""
    import_module("httpx._main").main()


def _stub(name: str, **values: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(values)
    return module


def _stubs() -> dict[str, ModuleType]:
    """Return name → the module that Graphiti gets in place of a library that is not imported."""
    stubs: dict[str, ModuleType] = {}
    if "openai" not in sys.modules:
        for module, names in _OF_OPENAI.items():
            stubs[module] = _stub(module, **{name: _made_later(module, name) for name in names})
    if "neo4j" not in sys.modules:
        driver = "graphiti_core.driver.neo4j_driver"
        stubs[driver] = _stub(driver, Neo4jDriver=_made_later(driver, "Neo4jDriver"))
        sync_driver = _made_later("neo4j", "Neo4jDriver")  # imported by Graphiti, but never used
        stubs["neo4j"] = _stub("neo4j", time=_Neo4jTime(), Neo4jDriver=sync_driver)
    if "httpx" not in sys.modules:
        stubs["httpx._main"] = _stub("httpx._main", main=_httpx_main)
    return stubs


@contextmanager
def _libraries_later() -> Generator[None]:
    """Install the stubs while the block imports Graphiti."""
    stubs = _stubs()
    sys.modules.update(stubs)
    try:
        yield
    finally:
        for module in stubs:
            del sys.modules[module]


# Replaced only during the import: a program that uses PPS may call dotenv itself.
_load_dotenv = dotenv.load_dotenv
dotenv.load_dotenv = _load_nothing
try:
    with warnings.catch_warnings(), _libraries_later():
        # Graphiti's models declare their settings in Pydantic's deprecated way.
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core as graphiti_core
finally:
    dotenv.load_dotenv = _load_dotenv
