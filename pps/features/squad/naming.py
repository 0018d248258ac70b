"""Resolution of names of records: ids, first characters of ids, and titles.

Only records that the member may read are matched. The title of a record that waits in the pool, of
another member's task or memory matches nothing, exactly as if the record did not exist.
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
    """Return the ids of named records; the first place with a match counts.

    Args:
        desk: The member's.
        names: Ids, the first 8 or more characters of ids, or titles. Whole ids are not looked up.
        places: The member's own memory, the pool, or both in order of preference.
        path: The argument with the names, for errors.

    Raises:
        NotFound: A name matches nothing that the member may read.
        InvalidRequest: A title matches several records; the error lists them with their ids.
    """
    if all(map(is_uuid, names)):
        return list(names)
    ids = list(names)
    for place in places:
        if place == "own":
            ids = [await _own_id(desk, name, path) for name in ids]
        elif not all(map(is_uuid, ids)):
            async with desk.pool() as pool:
                readable = await _readable(desk, pool)
            ids = [name if is_uuid(name) else _single_match(name, readable, path) for name in ids]
    if not all(map(is_uuid, ids)):
        raise NotFound()
    return ids


async def identify_task(desk: Desk, name: str) -> str:
    """Return the id of a task that the member gave or received.

    Args:
        desk: The member's.
        name: Its id, the first characters of its id, or its title.

    Raises:
        NotFound: No such task matches.
        InvalidRequest: Several tasks have that title.
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
    id_ = _single_match(name, tasks, "id")
    if id_ == name:
        raise NotFound()
    return id_


async def _own_id(desk: Desk, name: str, path: str) -> str:
    """Return the id of the named record in the member's memory, or the name if none matches."""
    if is_uuid(name):
        return name
    records = desk.memory.records
    if is_beginning(name):
        [id_] = await records.identified([name], path)
        if is_uuid(id_):
            return id_
    return _single_match(name, await records.titled(name), path)


async def _readable(desk: Desk, pool: Memory) -> list[Record]:
    """Return the pool's records that a member may read.

    These are shared records and the member's own; a reviewer also reads what is not shared.
    """
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


def _single_match(name: str, records: Iterable[Record], path: str) -> str:
    """Return the id of the record that a name matches, or the name if none matches."""
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
