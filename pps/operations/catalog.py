"""The table: every operation, in the order in which it is listed.

To import all of it takes longer than to answer. ``catalog.json``, which ``scripts/docs`` writes,
says in which module each operation is, so that a call imports that one module.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from pps.app.features import load_feature
from pps.config.feature_points import shipped_feature_points
from pps.core.footprint import load
from pps.operations.table import AnyOperation, Audience, defined_in

INDEX = Path(__file__).with_name("catalog.json")
"""JSON: audience → toolset → operation → module."""

_MODULES = (
    "recall_tools",
    "memory_tools",
    "anchor_tools",
    "forgetting",
    "titled_texts",
    "typed_records",
    "record_asks",
    "inventory",
    "record_search",
    "graph_looks",
    "perspective_tools",
    "session_start",
    "upkeep",
    "journal_tools",
    "administration",
    "exchange",
    "maintenance",
    "pack_files",
)

OPERATIONS: tuple[AnyOperation, ...]
"""Every operation; what first reads it imports them all."""


def __getattr__(name: str) -> object:
    if name == "OPERATIONS":
        return all_operations()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def all_operations() -> tuple[AnyOperation, ...]:
    """Return those of the core, then those of shipped features, on or off, in list order."""
    core = defined_in(*(import_module(f"pps.operations.{name}") for name in _MODULES))
    features = (load_feature(point) for point in shipped_feature_points())
    return (*core, *(operation for feature in features for operation in feature.operations()))


def operations_for(
    *audiences: Audience,
    toolsets: Collection[str] | None = None,
    table: Iterable[AnyOperation] | None = None,
) -> dict[str, AnyOperation]:
    """Return by name the operations of some audiences, and of some toolsets (None: of all).

    Of a name that two audiences share, it is the first one's. To anybody else they do not exist.
    """
    table = all_operations() if table is None else tuple(table)
    operations: dict[str, AnyOperation] = {}
    for audience in audiences:
        for operation in table:
            if operation.audience == audience and (
                toolsets is None or operation.toolset in toolsets
            ):
                operations.setdefault(operation.name, operation)
    return operations


@dataclass(frozen=True, slots=True)
class Located:
    """An operation that need not be imported yet.

    Attributes:
        module: Where it is defined, such as ``pps.operations.recall_tools``.
    """

    name: str
    audience: Audience
    toolset: str
    module: str

    def load(self) -> AnyOperation:
        """Return the operation; its module is imported where it is not yet."""
        for operation in defined_in(load(self.module)):
            if operation.name == self.name and operation.audience == self.audience:
                return operation
        raise LookupError(f"{self.module} does not define {self.name}; run scripts/docs")


@cache
def located() -> dict[tuple[Audience, str], Located]:
    """Return where each operation is, by audience and name, without importing any."""
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    return {
        (audience, name): Located(name, audience, toolset, module)
        for audience, toolsets in cast("dict[Audience, dict[str, dict[str, str]]]", index).items()
        for toolset, names in toolsets.items()
        for name, module in names.items()
    }


def locate(
    name: str, audiences: Iterable[Audience], toolsets: Collection[str] | None = None
) -> Located | None:
    """Return where ``operations_for(*audiences, toolsets=toolsets)[name]`` is defined.

    None where there is none.
    """
    index = located()
    for audience in audiences:
        place = index.get((audience, name))
        if place is not None and (toolsets is None or place.toolset in toolsets):
            return place
    return None


def index_text() -> str:
    """Return ``catalog.json`` as it should be."""
    index: dict[str, dict[str, dict[str, str]]] = {}
    for operation in all_operations():
        toolsets = index.setdefault(operation.audience, {})
        toolsets.setdefault(operation.toolset, {})[operation.name] = operation.act.__module__
    return json.dumps(index, indent=1) + "\n"
