"""Whole ids from their beginnings, as packs show them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_beginning
from pps.journal.reader import Readers

_QUERY = """
SELECT uuid FROM turns WHERE uuid >= :first AND uuid < :last
UNION SELECT i.uuid FROM mirror_id i WHERE i.uuid >= :first AND i.uuid < :last AND (
    EXISTS (SELECT 1 FROM mirror_node n WHERE n.id = i.id) OR EXISTS (SELECT 1 FROM mirror_fact f WHERE f.id = i.id))
LIMIT 2
"""


class Beginnings:
    """Looks up ids of one entity by how they begin."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def whole(self, ids: Sequence[str], *, strict: bool = True) -> list[str]:
        """Return ids with each beginning replaced by the uuid of the one turn, node or fact that begins so.

        Raises:
            NotFound: Nothing of this entity does, and ``strict``; else it stays as it is: it may be another name.
            InvalidRequest: More than one does.
        """
        if not any(map(is_beginning, ids)):
            return list(ids)

        def look_up(db: sqlite3.Connection) -> list[str]:
            return [_whole(db, one, strict=strict) if is_beginning(one) else one for one in ids]

        return await self._readers.read(look_up)


def _whole(connection: sqlite3.Connection, given: str, *, strict: bool) -> str:
    found = [uuid for (uuid,) in connection.execute(_QUERY, {"first": given, "last": f"{given}~"})]
    if len(found) > 1:
        raise InvalidRequest("ids", f"{given!r} begins more than one id: give more of it")
    if not found and strict:
        raise NotFound()
    return found[0] if found else given
