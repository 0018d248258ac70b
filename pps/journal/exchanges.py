"""What was said before a turn in its session."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from pps.core.sql import listed

_ENDING = 16


def said_before(connection: sqlite3.Connection, turns: Sequence[str]) -> dict[str, str]:
    """Return turn → the last sixteen characters of the turn before it in its session; first turns are left out."""
    rows = connection.execute(
        """SELECT t.uuid, (
            SELECT substr(p.content, -?) FROM turns AS p
            WHERE p.session = t.session AND (p.occurred_at, p.seq) < (t.occurred_at, t.seq)
            ORDER BY p.occurred_at DESC, p.seq DESC LIMIT 1)
            FROM turns AS t WHERE t.uuid IN (SELECT value FROM json_each(?))""",
        (_ENDING, listed(turns)),
    )
    return {uuid: ending for uuid, ending in rows if ending is not None}
