"""What Graphiti's Kuzu dialect gets wrong, mended below every wrapper: in the statement itself.

Graphiti issues the same mistakes from its models, its operation classes and its search, and none of the three can
be replaced alone, so a statement is looked at once, on its way to the database, and only for these shapes. All
others pass untouched. What each mending is for has a test.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

_LOOKUPS = (
    # A saved fact gets the uuids of its ends, which PPS reads instead of joining.
    (
        r"(MERGE \(source\)-\[:RELATES_TO\]->\(e:RelatesToNode_ \{uuid: \$uuid\}\)-\[:RELATES_TO\]->\(target\)\s+SET)",
        r"\1 e.source_node_uuid = source.uuid, e.target_node_uuid = target.uuid,",
    ),
    # The facts of a node: the dialect looks at those that start there and misses those that end there.
    (
        r"MATCH \(n:Entity \{uuid: \$node_uuid\}\)-\[:RELATES_TO\]->\(e:RelatesToNode_\)-\[:RELATES_TO\]->\(m:Entity\)"
        r"(?=\s+RETURN)",
        "MATCH (x:Entity {uuid: $node_uuid})-[:RELATES_TO]-(e:RelatesToNode_) WITH DISTINCT e "
        "MATCH (n:Entity)-[:RELATES_TO]->(e)-[:RELATES_TO]->(m:Entity)",
    ),
    # Deleting a node: facts that end there would stay, with one end.
    (
        r"(MATCH \(n:Entity[^()]*\)-\[:RELATES_TO\]-)>(\((\w+):RelatesToNode_\)\s+(?:WHERE [^()]*?)?DETACH DELETE \3)",
        r"\1\2",
    ),
)
_MENDINGS = tuple((re.compile(pattern), replacement) for pattern, replacement in _LOOKUPS)
_PARAMETER = re.compile(r"\$(\w+)")


@functools.lru_cache(maxsize=1024)
def mended(statement: str) -> str:
    """Return a statement with the dialect's mistakes put right; any other statement as it is."""
    if "RelatesToNode_" not in statement:
        return statement
    for pattern, replacement in _MENDINGS:
        statement = pattern.sub(replacement, statement)
    return statement


def complete(statement: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with None for those that the statement names and nobody gave.

    LadybugDB refuses a statement whose parameter is missing; several of the dialect's operation classes forget
    columns that their own statements write.
    """
    return {**dict.fromkeys(_names(statement)), **parameters}


@functools.lru_cache(maxsize=1024)
def _names(statement: str) -> tuple[str, ...]:
    return tuple(_PARAMETER.findall(statement))
