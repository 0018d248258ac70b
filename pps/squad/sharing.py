"""What crosses from a member to the pool and back out: copies with provenance, and all that rested on them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pps.core import time
from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import Record
from pps.core.values import JSON
from pps.journal.pool_rows import (
    Delivery,
    PoolCite,
    Root,
    Shared,
    SharedState,
    Trust,
    best,
    drop,
    joint,
    put_shared,
    withdraw,
)
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.records.saving import RecordGiven, RelationGiven, Saved
from pps.squad.delivery import deliveries
from pps.squad.desk import Desk
from pps.squad.roots import confidence_of, grounds, lowest

PRIVATE = "private"
"""The tag of what never crosses."""
GUARDED = frozenset(("Belief", "ProcessInsight", "ProcessPattern", "WorkflowImprovement"))
"""What the squad goes by: of tool output and the web it becomes none of these without a reviewer."""
_KEPT = ("title", "summary", "status", "tags")


@dataclass(frozen=True, slots=True)
class SharedCopy:
    """A copy in the pool, and who hears of it."""

    record: Record
    shared: Shared
    roots: int
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What is taken out of the pool, and what stays with less confidence, by id."""

    gone: tuple[str, ...]
    weaker: Mapping[str, float]
    dry_run: bool


async def share(desk: Desk, id_: str) -> SharedCopy:
    """Copy one of a member's records into the pool, or bring its copy there up to it.

    Raises:
        NotFound: It is none of the member's records.
        InvalidRequest: It is private, or rests on nothing but what was withdrawn.
    """
    [record] = await desk.memory.records.get([id_])
    if PRIVATE in record.tags:
        raise InvalidRequest("id", "is private; it is never shared")
    async with desk.pool() as pool:
        roots, trust = await _grounds(desk, pool, record)
        state = _state(desk, record, trust)
        now, confidence = time.now(), joint(roots)
        copy = await _copy(desk, pool, record, confidence, state)
        made: list[Delivery] = []

        def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
            one = saved[0].record
            shared = Shared(one.id, desk.me.id, record.id, now, confidence, trust, state)
            if state == "shared":
                made.extend(deliveries(desk.rules, one, desk.me.id, confidence, now))
            rows.beside(lambda db: put_shared(db, shared, roots, made))

        saved = (await pool.records.by(desk.me.id, also).save([copy])).records[0].record
        shared = (await pool.records.pool.shared([saved.id]))[saved.id]
    return SharedCopy(saved, shared, len(best(roots)), tuple(dict.fromkeys(one.member for one in made)))


async def _grounds(desk: Desk, pool: Memory, record: Record) -> tuple[list[Root], Trust]:
    found = await grounds(desk.memory, record, desk.me.id, desk.squad.key)
    cited = {id_: one for id_, one in (await pool.records.pool.shared(found.pool)).items() if one.state == "shared"}
    through = await pool.records.pool.roots(cited)
    roots = [Root("", digest, confidence_of(record)) for digest in found.digests]
    roots += [Root(id_, digest, one) for id_, those in through.items() for digest, one in best(those).items()]
    if not roots:
        raise InvalidRequest("id", "rests on nothing but what was withdrawn from the pool")
    return roots, lowest([*found.digests.values(), *(one.trust for one in cited.values())])


def _state(desk: Desk, record: Record, trust: Trust) -> SharedState:
    """Return whether a record may go into the pool at once."""
    rules = desk.rules.pool
    risky = rules.gate == "risk" and record.kind in rules.risky
    guarded = trust == "outside" and record.kind in GUARDED
    return "waiting" if rules.gate == "approve" or risky or guarded else "shared"


async def _copy(desk: Desk, pool: Memory, record: Record, confidence: float, state: SharedState) -> RecordGiven:
    """Return a member's record as it lies in the pool: nothing of its own memory but itself; ids are the pool's."""
    spec = pool.kinds.kind(record.kind)
    mine = {one.origin: one.record for one in (await pool.records.pool.shared(member=desk.me.id)).values()}
    there = await pool.records.pool.shared()
    fields: dict[str, JSON] = {name: value for name, value in record.fields.items() if name != "provenance"}
    for name, field in spec.fields.items():
        if field.type == "ref" and name in fields:
            target = str(fields[name])
            fields[name] = mine.get(target) or (target if target in there else None)
        elif field.type == "list" and field.of and field.of.type == "ref" and name in fields:
            wanted = [str(one) for one in cast("Sequence[JSON]", fields[name])]
            fields[name] = [mine.get(one, one) for one in wanted if one in mine or one in there]
    if "confidence" in spec.fields:
        fields["confidence"] = confidence
    pooled = (await desk.memory.records.pool.cites([record.id])).get(record.id, [])
    own = (await desk.memory.records.cites([record.id])).get(record.id, ())
    cites = [one.id for one in pooled if one.id in there and not one.relation and not one.gone]
    cites += [mine[one.id] for one in own if one.id in mine]
    return RecordGiven(
        record.kind,
        record.title,
        record.summary,
        fields=fields,
        status="draft" if state == "waiting" else record.status,
        tags=record.tags,
        relations=tuple(await _relations(desk, record, pooled, mine, set(there))),
        cites=tuple(dict.fromkeys(cites)),
        created_at=record.created_at,
        ref=f"{desk.me.id}:{record.id}",
    )


async def _relations(
    desk: Desk, record: Record, pooled: Sequence[PoolCite], mine: Mapping[str, str], there: set[str]
) -> list[RelationGiven]:
    """Return a record's relations to what is in the pool, in the pool's ids."""
    graph = await desk.memory.records.graph()
    own = [one for one in graph.relations if one.source == record.id and one.target in mine]
    found = [RelationGiven(one.type, mine[one.target], one.properties) for one in own]
    return found + [
        RelationGiven(one.relation, one.id, one.properties) for one in pooled if one.relation and one.id in there
    ]


async def revoke(desk: Desk, ids: Sequence[str], *, dry_run: bool) -> Withdrawn:
    """Take a member's copies out of the pool, by their ids or those of their originals, with what rests on them alone.

    Raises NotFound when one of them is no copy of this member's; nothing was changed.
    """
    async with desk.pool() as pool:
        mine = await pool.records.pool.shared(member=desk.me.id)
        named = {one.origin: id_ for id_, one in mine.items()} | {id_: id_ for id_ in mine}
        if any(one not in named for one in ids):
            raise NotFound()
        return await take_out(desk, pool, [named[one] for one in ids], dry_run=dry_run)


async def take_out(desk: Desk, pool: Memory, records: Sequence[str], *, dry_run: bool = False) -> Withdrawn:
    """Take records out of the pool; what a kill leaves half done the next ``settle`` finishes."""
    rows = pool.records.pool
    if dry_run:
        gone, weaker = await rows.foreseen(records)
        return Withdrawn(tuple(gone), weaker, dry_run=True)
    gone, weaker = await rows.write(lambda db: withdraw(db, records))
    await settle(desk, pool)
    left = await pool.records.get([*weaker]) if weaker else []
    graded = [
        RecordGiven(id=one.id, fields={"confidence": weaker[one.id]})
        for one in left
        if "confidence" in pool.kinds.kind(one.kind).fields
    ]
    if graded:
        await pool.records.by(desk.me.id).save(graded)
    return Withdrawn(tuple(gone), weaker, dry_run=False)


async def settle(desk: Desk, pool: Memory) -> None:
    """Finish what was revoked: marked for those whose records cite it, forgotten in the pool, then unknown."""
    gone = [id_ for id_, one in (await pool.records.pool.shared()).items() if one.state == "revoked"]
    if not gone:
        return
    for member in desk.squad.members.values():
        async with desk.app.memory(member.entity) as memory:
            await memory.records.pool.mark_gone(gone)
    for id_ in gone:
        with contextlib.suppress(NotFound):  # forgotten before a kill
            await pool.records.by("").delete([id_], dry_run=False)
    await pool.records.pool.write(lambda db: drop(db, gone))


async def forgotten(desk: Desk) -> tuple[str, ...]:
    """Withdraw the copies whose originals this member has forgotten; return their ids."""
    async with desk.pool() as pool:
        await settle(desk, pool)
        mine = await pool.records.pool.shared(member=desk.me.id)
        kept = set((await desk.memory.records.graph()).records)
        gone = [id_ for id_, one in mine.items() if one.origin and one.origin not in kept]
        return (await take_out(desk, pool, gone)).gone if gone else ()


async def copies_of(desk: Desk, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the member's copies in the pool whose originals are named, by their ids, their turns' or beginnings."""
    async with desk.pool() as pool:
        mine = await pool.records.pool.shared(member=desk.me.id)
    records = (await desk.memory.records.graph()).records
    names = {id_: (one.origin, records[one.origin].turn) for id_, one in mine.items() if one.origin in records}
    return tuple(id_ for id_, own in names.items() if any(name.startswith(one) for name in own for one in ids if one))


async def leave(desk: Desk, *, keep: bool, dry_run: bool) -> Withdrawn:
    """Let a member go: its copies are withdrawn, unless they are kept, and its inbox is emptied.

    A kill between leaves it a member, whose copies are gone.
    """
    async with desk.pool() as pool:
        mine = [] if keep else [*await pool.records.pool.shared(member=desk.me.id)]
        found = await take_out(desk, pool, mine, dry_run=dry_run)
        if not dry_run:
            await pool.records.pool.write(
                lambda db: db.execute("DELETE FROM inbox WHERE member = ?", (desk.me.id,)) and None
            )
            await asyncio.to_thread(desk.app.registry.squads.remove, desk.squad.name, desk.me.id)
    return found
