"""What the registry's file keeps of the installation: features switched off, and running time.

The running time of a data folder's servers is counted by the monotonic clock and stored, so that it
adds up over starts and no jump of the clock changes it. A kill loses what was not stored yet.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from pps.core.errors import StoreUnavailable
from pps.core.feature_parts import check_feature_name
from pps.core.time import RunningMark
from pps.entities.small_file import SmallFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS running (one INTEGER PRIMARY KEY CHECK (one = 1), clock TEXT NOT NULL,
    seconds REAL NOT NULL) STRICT;
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
    except sqlite3.Error:
        # It is not there yet, or of an older version; the server reports what is wrong with it.
        return False


class RunningTime:
    """The running time of one data folder.

    Methods block for an fsync; safe to call from any thread.
    """

    def __init__(self, file: SmallFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._counted_at = time.monotonic()
        row = file.row("SELECT clock, seconds FROM running")
        self._clock: str = row["clock"] if row else secrets.token_hex(8)
        self._seconds: float = row["seconds"] if row else 0.0

    def mark(self) -> RunningMark:
        """Return the running time up to now, with the id of the data folder that counts it."""
        with self._lock:
            moment = time.monotonic()
            self._seconds += moment - self._counted_at
            self._counted_at = moment
            return RunningMark(self._clock, self._seconds)

    def save(self) -> None:
        """Store the running time; what a full disk refuses is stored the next time."""
        mark = self.mark()
        with contextlib.suppress(StoreUnavailable), self._file.writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO running (one, clock, seconds) VALUES (1, ?, ?)",
                (mark.clock, mark.seconds),
            )
