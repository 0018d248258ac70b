"""The desk of a squad's member: access to its own memory and to the squad's pool for one call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime

from pps.app import App
from pps.config.squad_files import MemberRules, SquadRules, squad_rules
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import EntityId
from pps.entities.memberships import Member, Squad
from pps.journal.pool_rows import drop
from pps.memory import Memory
from pps.records.saving import MAX_RECORDS


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
