"""The state of a memory's file, read beside its opener, to look at many memories at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pps.core.sql import Connection
from pps.core.time import from_micros

_TURNS = "SELECT count(*), max(occurred_at) FROM turns"
_JOBS = """SELECT count(*) FILTER (WHERE state IN ('queued', 'running')),
        count(*) FILTER (WHERE state = 'failed')
    FROM jobs WHERE state IN ('queued', 'running', 'failed')"""


@dataclass(frozen=True, slots=True)
class Outline:
    """Number of turns, time of the latest, and number of jobs that wait or failed."""

    turns: int
    last_turn_at: datetime | None
    waiting: int
    failed: int


def outline_of(path: Path) -> Outline | None:
    """Return the outline of a ``memory.db``; None if it cannot be read. Blocks."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            return read_outline(db)
    except sqlite3.Error:
        return None


def read_outline(db: Connection) -> Outline:
    """Return how a memory stands."""
    turns, last_at = db.execute(_TURNS).fetchone()
    waiting, failed = db.execute(_JOBS).fetchone()
    return Outline(turns, None if last_at is None else from_micros(last_at), waiting, failed)
