"""The desk of a squad's member: its own memory and the squad's pool for one call.

Names of records, which are ids, first characters of ids, and titles, are resolved among those that
the member may read. The title of a record that waits in the pool, of another member's task or
memory matches nothing, exactly as if the record did not exist.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pps.app import App
from pps.config.squad_files import MemberRules, SquadRules, squad_rules
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId, is_beginning, is_uuid
from pps.core.record_values import Record
from pps.core.text import fold
from pps.entities.memberships import Member, Squad
from pps.journal.graph_queries import Titled, ambiguous
from pps.journal.pool_rows import drop
from pps.memory import Memory
from pps.records.saving import MAX_RECORDS

Place: TypeAlias = Literal["own", "pool"]


@dataclass(frozen=True, slots=True)
class Desk:
    """The memories that one call of a member works on.

    A desk is made for each call, after membership was checked.

    Attributes:
        me: The member.
        memory: The member's own memory, which no other member reads.
    """

    app: App
    squad: Squad
    me: Member
    memory: Memory

    @property
    def rules(self) -> SquadRules:
        return rules_of(self.squad)

    @property
    def my_rules(self) -> MemberRules:
        return self.rules.members[self.me.id]

    @property
    def reviewers(self) -> frozenset[str]:
        """The members of the squad, as it is now, who may review."""
        named = (self.rules.aliases[name] for name in self.rules.pool.reviewers)
        return frozenset(member for member in named if member in self.squad.members)

    @property
    def is_reviewer(self) -> bool:
        return self.me.id in self.reviewers

    @contextlib.asynccontextmanager
    async def pool(self) -> AsyncGenerator[Memory]:
        """Open the pool's memory, after finishing revocations that a crash interrupted."""
        async with self.app.memory(self.squad.pool, pool=True) as pool:
            await settle(self, pool)
            yield pool

    def now(self) -> datetime:
        return self.app.clock()

    def check_reviewer(self) -> None:
        """Raise InvalidRequest unless this member may approve."""
        if not self.is_reviewer:
            raise InvalidRequest(
                "id", f"only {', '.join(self.rules.pool.reviewers) or 'nobody'} may review here"
            )


async def settle(desk: Desk, pool: Memory) -> None:
    """Finish revocations in the pool.

    Citations in the members' memories are marked first; then the copies are forgotten in the pool,
    and last their rows are dropped, so that an interrupted run is repeated.
    """
    gone = await pool.records.pool.revoked()
    if not gone:
        return
    for member in desk.squad.members.values():
        async with desk.app.memory(member.entity) as memory:
            await memory.records.pool.mark_gone(gone)
    for start in range(0, len(gone), MAX_RECORDS):
        existing = await pool.records.find(gone[start : start + MAX_RECORDS])
        if existing:
            # Another call may have forgotten some of them; the next call deletes the rest.
            with contextlib.suppress(NotFound):
                await pool.records.by("").delete([*existing], dry_run=False)
    left = await pool.records.find(gone)
    await pool.records.pool.write(lambda db: drop(db, [copy for copy in gone if copy not in left]))


@contextlib.asynccontextmanager
async def desk_of(app: App, owner: EntityId | str) -> AsyncGenerator[Desk]:
    """Open the desk of an entity that is a member of a squad.

    Membership is checked here, at each call.

    Raises:
        InvalidRequest: The entity is not, or no longer, a member of a squad.
    """
    name = owner if isinstance(owner, str) else owner.name
    membership = await asyncio.to_thread(app.registry.squads.of_member, name)
    if membership is None or membership[1].id not in rules_of(membership[0]).members:
        raise InvalidRequest("operation", "is for members of a squad; `pps squad add` makes one")
    squad, member = membership
    async with app.memory(owner) as memory:
        yield Desk(app, squad, member, memory)


def rules_of(squad: Squad) -> SquadRules:
    return squad_rules(squad.rules)


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
