"""Which graphs are published on Neo4j no more and lie there still: removed when Neo4j answers, restarts between or not."""

from __future__ import annotations

import sqlite3

from pps.core.ids import EntityId
from pps.entities.small_file import SmallFile

SCHEMA = """
-- Groups whose published graph is to be removed from Neo4j; their entities may be no more.
CREATE TABLE IF NOT EXISTS unpublishing (grp TEXT PRIMARY KEY) STRICT;
"""


class Unpublishing:
    """The published graphs of one registry that are to be removed. Every step may be done again, by any process."""

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def groups(self) -> list[str]:
        """Return the groups that wait."""
        with self._file.reading() as db:
            return [row["grp"] for row in db.execute("SELECT grp FROM unpublishing ORDER BY grp")]

    def end(self, group: str) -> None:
        """Note that a group is gone from Neo4j, or is published again; nothing of it is left in the file."""
        with self._file.writing() as db:
            db.execute("DELETE FROM unpublishing WHERE grp = ?", (group,))


def begin_unpublishing(db: sqlite3.Connection, entity: EntityId) -> None:
    """Note in an open transaction that an entity's published graph is to be removed."""
    db.execute("INSERT OR IGNORE INTO unpublishing (grp) VALUES (?)", (entity.group,))
