"""The table: every operation, in the order in which it is listed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pps.app.features import load_feature
from pps.config.feature_points import shipped_feature_points
from pps.operations import (
    administration,
    exchange,
    feature_tools,
    forgetting,
    graph_looks,
    inventory,
    journal_tools,
    knowledge,
    maintenance,
    pack_files,
    perspective_tools,
    record_asks,
    record_search,
    session_start,
    titled_texts,
    typed_records,
    upkeep,
)
from pps.operations.table import AnyOperation, Audience, defined_in

_CORE: tuple[AnyOperation, ...] = defined_in(
    knowledge,
    forgetting,
    titled_texts,
    typed_records,
    record_asks,
    inventory,
    record_search,
    graph_looks,
    perspective_tools,
    session_start,
    upkeep,
    journal_tools,
    administration,
    exchange,
    maintenance,
    feature_tools,
    pack_files,
)


def _of_shipped_features() -> tuple[AnyOperation, ...]:
    features = (load_feature(point) for point in shipped_feature_points())
    return tuple(operation for feature in features for operation in feature.operations())


OPERATIONS: tuple[AnyOperation, ...] = (*_CORE, *_of_shipped_features())
"""Those of the core, then those of the features that PPS ships, on or off."""


def operations_for(
    *audiences: Audience,
    toolsets: Collection[str] | None = None,
    table: Iterable[AnyOperation] = OPERATIONS,
) -> dict[str, AnyOperation]:
    """Return by name the operations of some audiences, and of some toolsets (None: of all).

    Of a name that two audiences share, it is the first one's. To anybody else they do not exist.
    """
    found: dict[str, AnyOperation] = {}
    for audience in audiences:
        for one in table:
            if one.audience == audience and (toolsets is None or one.toolset in toolsets):
                found.setdefault(one.name, one)
    return found
