"""The total running time of a data folder's servers, which no jump of the clock changes.

It is counted by the monotonic clock and stored, so it adds up over starts. A kill loses what was
not stored yet.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time

from pps.core.errors import StoreUnavailable
from pps.core.time import RunningMark
from pps.entities.small_file import SmallFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS running (one INTEGER PRIMARY KEY CHECK (one = 1), clock TEXT NOT NULL,
    seconds REAL NOT NULL) STRICT;
"""


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
