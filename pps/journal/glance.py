"""A look at a memory's file from outside: how much it holds, without opening the memory."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pps.core.errors import IsolationError
from pps.journal.db import mapping_errors, open_reader


@dataclass(frozen=True, slots=True)
class Tally:
    """How many nodes, edges (facts and relations, those that ended too) and different tags of nodes there are."""

    nodes: int = 0
    edges: int = 0
    tags: int = 0


def tally(path: Path, group: str, own: str) -> Tally:
    """Return how much the memory of a group holds, as its filter columns have it, open or not. Blocks (1 ms).

    Args:
        path: Its ``memory.db``; one that is not there, or not begun, holds nothing.
        group: Whose it must be.
        own: Uuid of the entity's own node, which says nothing and is not counted.

    Raises:
        IsolationError: The file belongs to another group; nothing is told of it.
        StoreConflict, StoreUnavailable, StoreError: It is locked, cannot be opened, or is damaged.
    """
    if not path.exists():
        return Tally()
    with mapping_errors(path), closing(open_reader(path)) as connection:
        if not _begun(connection):
            return Tally()
        owner = connection.execute("SELECT value FROM meta WHERE key = 'group'").fetchone()
        if owner is None or owner[0] != group:
            raise IsolationError(f"{path.name} belongs to another entity: nothing was read")
        (nodes,) = connection.execute("SELECT count(*) FROM mirror_node WHERE uuid <> ?", (own,)).fetchone()
        (edges,) = connection.execute("SELECT count(*) FROM mirror_fact").fetchone()
        (tags,) = connection.execute("SELECT count(DISTINCT tag) FROM mirror_tag").fetchone()
    return Tally(nodes, edges, tags)


def _begun(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None
