"""The only reader of environment and TOML, and of the files that are shipped with the package.

Names load on first use, so that the command line can find the home folder without paying for
Pydantic (0.15 s).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pps.config.border import Problem, problems
    from pps.config.home import INSIDE, home_folder
    from pps.config.loading import Price, load, load_prices
    from pps.config.packaged import shipped
    from pps.config.settings import (
        ColbertSettings,
        EmbedderSettings,
        ExtractorSettings,
        JobsSettings,
        Neo4jSettings,
        PostgresqlSettings,
        RecallSettings,
        RerankerSettings,
        ServerSettings,
        Settings,
        TextSettings,
        VectorSettings,
    )

_NAMES = {
    "border": "Problem problems",
    "home": "INSIDE home_folder",
    "loading": "Price load load_prices",
    "packaged": "shipped",
    "settings": "ColbertSettings EmbedderSettings ExtractorSettings JobsSettings Neo4jSettings "
    "PostgresqlSettings RecallSettings RerankerSettings ServerSettings Settings TextSettings "
    "VectorSettings",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "INSIDE",
    "ColbertSettings",
    "EmbedderSettings",
    "ExtractorSettings",
    "JobsSettings",
    "Neo4jSettings",
    "PostgresqlSettings",
    "Price",
    "Problem",
    "RecallSettings",
    "RerankerSettings",
    "ServerSettings",
    "Settings",
    "TextSettings",
    "VectorSettings",
    "home_folder",
    "load",
    "load_prices",
    "problems",
    "shipped",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
