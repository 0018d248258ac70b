"""Which features an installation has switched off."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from pps.core.feature_parts import check_feature_name
from pps.entities.small_file import SmallFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS feature_off (name TEXT PRIMARY KEY) STRICT;
"""


class FeatureSwitches:
    """The switches of one data folder; every feature is on until it is switched off.

    Methods block, as the registry's.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file

    def off(self) -> frozenset[str]:
        """Return the names of the features that are off, of those too that are not installed."""
        with self._file.reading() as db:
            return frozenset(str(row["name"]) for row in db.execute("SELECT name FROM feature_off"))

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a feature on or off; on disk when this returns."""
        check_feature_name(name)
        statement = (
            "DELETE FROM feature_off WHERE name = ?"
            if on
            else "INSERT OR IGNORE INTO feature_off (name) VALUES (?)"
        )
        with self._file.writing() as db:
            db.execute(statement, (name,))


def any_switched_off(home: Path) -> bool:
    """Tell whether a data folder has any feature switched off, without asking the server."""
    try:
        with closing(sqlite3.connect(f"{(home / 'registry.db').as_uri()}?mode=ro", uri=True)) as db:
            return db.execute("SELECT 1 FROM feature_off LIMIT 1").fetchone() is not None
    except (
        sqlite3.Error
    ):  # it is not there yet, or of an older version; what is wrong with it the server says
        return False
