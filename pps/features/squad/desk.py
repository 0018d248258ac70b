"""A member at its desk: its own memory, and the pool of its squad, which it reaches by the operations of squads."""

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
    """What one call of a member works on; made anew for each, after its membership was looked up.

    Attributes:
        me: Which member it is.
        memory: Its own memory, which is never shown to another member.
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
        """The members who may review, of those that are in the squad now."""
        named = (self.rules.aliases[name] for name in self.rules.pool.reviewers)
        return frozenset(member for member in named if member in self.squad.members)

    @property
    def is_reviewer(self) -> bool:
        return self.me.id in self.reviewers

    @contextlib.asynccontextmanager
    async def pool(self) -> AsyncGenerator[Memory]:
        """Lend the pool's memory; what was revoked is out of it, also when a kill came between."""
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
    """Finish what was revoked: marked for those whose records cite it, forgotten in the pool, then unknown."""
    gone = await pool.records.pool.revoked()
    if not gone:
        return
    for member in desk.squad.members.values():
        async with desk.app.memory(member.entity) as memory:
            await memory.records.pool.mark_gone(gone)
    for at in range(0, len(gone), MAX_RECORDS):
        if existing := await pool.records.find(gone[at : at + MAX_RECORDS]):
            with contextlib.suppress(
                NotFound
            ):  # another call forgot some of them; the rest is for the next
                await pool.records.by("").delete([*existing], dry_run=False)
    left = await pool.records.find(gone)
    await pool.records.pool.write(lambda db: drop(db, [copy for copy in gone if copy not in left]))


@contextlib.asynccontextmanager
async def desk_of(app: App, owner: EntityId | str) -> AsyncGenerator[Desk]:
    """Lend the desk of the member that an entity is.

    Its membership is looked up here, at each call.

    Raises:
        InvalidRequest: It is no member (any more).
    """
    name = owner if isinstance(owner, str) else owner.name
    membership = await asyncio.to_thread(app.registry.squads.of_member, name)
    if membership is None or membership[1].id not in rules_of(membership[0]).members:
        raise InvalidRequest("operation", "is for members of a squad; `pps squad add` makes one")
    async with app.memory(owner) as memory:
        yield Desk(app, membership[0], membership[1], memory)


def rules_of(squad: Squad) -> SquadRules:
    return squad_rules(squad.rules)
