"""What sessions were shown lately; the oldest rows are forgotten."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from pps.core.sql import insert
from pps.core.time import micros, utc

KEPT_D = 30
"""Days for which it is kept what a session was shown."""
KEPT_ROWS = 100_000
"""Most rows kept of what was shown, all sessions together."""
LOOKED_AT = 1_000
"""Most rows that are counted of what a session was shown, the latest: some 25 packs."""


def record(connection: sqlite3.Connection, session: str, ids: Iterable[str], at: datetime) -> None:
    """Note that a session was shown these ids, and drop what is too old or too much."""
    moment = utc(at, "at")
    insert(connection, "INSERT INTO shown (session, id, at)", [(session, id_, micros(moment)) for id_ in ids])
    connection.execute("DELETE FROM shown WHERE at < ?", (micros(moment - timedelta(days=KEPT_D)),))
    connection.execute("DELETE FROM shown WHERE seq <= (SELECT max(seq) FROM shown) - ?", (KEPT_ROWS,))


def times_shown(connection: sqlite3.Connection, session: str, since: datetime) -> dict[str, int]:
    """Return how often a session was shown each id at ``since`` or later, among its latest ``LOOKED_AT``."""
    rows = connection.execute(
        "SELECT id FROM shown WHERE session = ? AND at >= ? ORDER BY at DESC LIMIT ?",
        (session, micros(utc(since, "since")), LOOKED_AT),
    )
    return Counter(one for (one,) in rows)
