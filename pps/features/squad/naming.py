"""Records as a member names them: by id, by its first characters or by title, of what that member may read alone.

A title of a record that waits in the pool, of another's task or of another's own memory stands for nothing here, as if
it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from pps.core.errors import NotFound
from pps.core.ids import is_beginning, is_uuid
from pps.core.record_values import Record
from pps.core.text import fold
from pps.features.squad.desk import Desk
from pps.journal.graph_queries import Titled, ambiguous
from pps.memory import Memory

Place: TypeAlias = Literal["own", "pool"]


async def identify(
    desk: Desk, names: Sequence[str], *places: Place, path: str = "ids"
) -> list[str]:
    """Return the ids of records that names stand for, looked for in the first of some places that has them.

    Args:
        desk: The member's.
        names: Ids, 8 or more first characters of ids, or titles. An id stays as it is.
        places: The member's own memory, the pool, or both in the order of preference.
        path: The argument that the names are of, for errors.

    Raises:
        NotFound: A name stands for nothing that the member may read.
        InvalidRequest: A title stands for several; they are listed with their ids.
    """
    if all(map(is_uuid, names)):
        return list(names)
    ids = list(names)
    for place in places:
        if place == "own":
            ids = [await _own(desk, name, path) for name in ids]
        elif not all(map(is_uuid, ids)):
            async with desk.pool() as pool:
                readable = await _readable(desk, pool)
            ids = [name if is_uuid(name) else _only(name, readable, path) for name in ids]
    if not all(map(is_uuid, ids)):
        raise NotFound()
    return ids


async def identify_task(desk: Desk, name: str) -> str:
    """Return the id of a task that was given to the member or by it, by id, its first characters or title.

    Raises:
        NotFound: There is none; InvalidRequest: Several have that title.
    """
    if is_uuid(name):
        return name
    async with desk.pool() as pool:
        graph = await pool.records.graph()
    me = desk.me.id
    tasks = [
        record
        for record in graph.records.values()
        if record.kind == "Task"
        and me in (record.fields.get("assigned_to"), record.fields.get("requested_by"))
    ]
    id_ = _only(name, tasks, "id")
    if id_ == name:
        raise NotFound()
    return id_


async def _own(desk: Desk, name: str, path: str) -> str:
    """Return the id of what a name stands for in the member's memory.

    The name itself where there is nothing.
    """
    if is_uuid(name):
        return name
    records = desk.memory.records
    if is_beginning(name):
        [id_] = await records.identified([name], path)
        if is_uuid(id_):
            return id_
    return _only(name, await records.titled(name), path)


async def _readable(desk: Desk, pool: Memory) -> list[Record]:
    """Return what of the pool a member may read: what is shared, its own, and as a reviewer what waits too."""
    graph = await pool.records.graph()
    shared = await pool.records.pool.shared()
    readable: list[Record] = []
    for id_, record in graph.records.items():
        row = shared.get(id_)
        if row is None:
            if record.kind == "Agent":
                readable.append(record)
        elif row.state == "shared" or (
            row.state != "revoked" and (desk.is_reviewer or row.member == desk.me.id)
        ):
            readable.append(record)
    return readable


def _only(name: str, records: Iterable[Record], path: str) -> str:
    """Return the id of the one record that a name stands for.

    The name itself where it stands for none.
    """
    folded = fold(name)
    matches = [
        record
        for record in records
        if fold(record.title) == folded or (is_beginning(name) and record.id.startswith(name))
    ]
    if len(matches) > 1:
        alike = [Titled(record.id, record.kind, is_record=True) for record in matches]
        raise ambiguous(path, alike)
    return matches[0].id if matches else name
