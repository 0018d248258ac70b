"""What crosses from a member to the pool and back out: copies with provenance, and all that rested on them."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pps.core.errors import Changed, InvalidRequest, NotFound
from pps.core.kinds import FieldSpec
from pps.core.record_values import Record
from pps.core.trust import Trust, lowest
from pps.core.values import JSON
from pps.journal.pool_rows import (
    Delivery,
    Root,
    Shared,
    SharedState,
    best,
    counted,
    joint,
    put_shared,
    withdraw,
)
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.records.saving import MAX_RECORDS, RecordGiven, RelationGiven, Saved
from pps.squad.agents import agent_id, created
from pps.squad.delivery import deliveries
from pps.squad.desk import Desk, settle
from pps.squad.roots import confidence_of, grounds

PRIVATE = "private"
"""The tag of what never crosses."""
PROPOSAL = "WorkflowImprovement"
"""It goes the long way through the gate, whatever the pool's gate is; until it is approved reviewers alone see it."""
_OPEN = ("proposed", "needs_revision")
GUARDED = frozenset(("Belief", "ProcessInsight", "ProcessPattern", PROPOSAL))
"""What the squad goes by: of tool output and the web it becomes none of these without a reviewer."""
_TRIES = 20
T = TypeVar("T")


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
        now, confidence = desk.now(), joint(roots)
        copies = await pool.records.pool.copies(desk.me.id, [record.id])
        known = any(
            one.state == "shared"
            for one in (await pool.records.pool.shared([*copies.values()])).values()
        )
        copy = await _copy(desk, pool, record, confidence, state)
        contributed = await _cited(pool, copy, "CONTRIBUTED_TO", into=True)
        based = [RelationGiven("BASED_ON", one) for one in await _cited(pool, copy, "BASED_ON")]
        copy = replace(copy, relations=(*copy.relations, *based))
        made: list[Delivery] = []

        def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
            one = saved[0].record
            shared = Shared(one.id, desk.me.id, record.id, now, confidence, trust, state)
            if one.kind == PROPOSAL and one.state not in _OPEN and saved[0].change != "unchanged":
                raise InvalidRequest(
                    "id",
                    f"its copy is {one.state}; only one that is {' or '.join(_OPEN)} may change",
                )
            if state == "shared" and not (known and saved[0].change == "unchanged"):
                made.extend(deliveries(desk.rules, one, desk.me.id, confidence, now))
            rows.beside(lambda db: put_shared(db, shared, roots, made))
            created(desk, rows, one.id, contributed)

        saved = (await pool.records.by(desk.me.id, also).save([copy])).records[0].record
        shared = (await pool.records.pool.shared([saved.id]))[saved.id]
        if not await desk.memory.records.find([record.id]):  # forgotten while it was copied
            await take_out(desk, pool, [saved.id])
            raise NotFound()
    return SharedCopy(
        saved, shared, len(counted(roots)), tuple(dict.fromkeys(one.member for one in made))
    )


async def _grounds(desk: Desk, pool: Memory, record: Record) -> tuple[list[Root], Trust]:
    found = await grounds(desk.memory, record, desk.me.id, desk.squad.key)
    copies = await pool.records.pool.shared(found.pool)
    cited = {id_: one for id_, one in copies.items() if one.state == "shared"}
    through = await pool.records.pool.roots(cited)
    roots = [Root("", digest, confidence_of(record)) for digest in found.digests]
    roots += [
        Root(id_, digest, one)
        for id_, those in through.items()
        for digest, one in best(those).items()
    ]
    if not roots:
        raise InvalidRequest("id", "rests on nothing but what was withdrawn from the pool")
    return roots, lowest([found.trust, *(copy.trust for copy in copies.values())])


def _state(desk: Desk, record: Record, trust: Trust) -> SharedState:
    """Return whether a record may go into the pool at once."""
    rules = desk.rules.pool
    risky = record.kind == PROPOSAL or (rules.gate == "risk" and record.kind in rules.risky)
    guarded = trust == "outside" and record.kind in GUARDED
    return "waiting" if rules.gate == "approve" or risky or guarded else "shared"


async def _copy(
    desk: Desk, pool: Memory, record: Record, confidence: float, state: SharedState
) -> RecordGiven:
    """Return a member's record as it lies in the pool: nothing of its own memory but itself; ids are the pool's."""
    spec = pool.kinds.kind(record.kind)
    refs = {
        name: _ids(record.fields[name])
        for name, one in spec.fields.items()
        if name in record.fields and _leads(one)
    }
    pooled = (await desk.memory.records.pool.cites([record.id])).get(record.id, [])
    own = [one.id for one in (await desk.memory.records.cites([record.id])).get(record.id, ())]
    related = [
        one for one in await desk.memory.records.relations([record.id]) if one.source == record.id
    ]
    named = [id_ for ids in refs.values() for id_ in ids]
    mine = await pool.records.pool.copies(
        desk.me.id, [*named, *own, *(one.target for one in related)]
    )
    there = await pool.records.pool.shared([*named, *(one.id for one in pooled)])
    known = {id_: id_ for id_, one in there.items() if one.state == "shared"} | mine
    fields: dict[str, JSON] = {
        name: value for name, value in record.fields.items() if name != "provenance"
    }
    for name, ids in refs.items():
        found = [known[one] for one in ids if one in known]
        fields[name] = found if isinstance(fields[name], list) else (found or [None])[0]
    if "confidence" in spec.fields:
        fields["confidence"] = confidence
    relations = [
        RelationGiven(one.type, mine[one.target], one.properties)
        for one in related
        if one.target in mine
    ]
    relations += [
        RelationGiven(one.relation, one.id, one.properties)
        for one in pooled
        if one.relation and one.id in known
    ]
    cites = [
        known[one.id] for one in pooled if one.id in known and not one.relation and not one.gone
    ]
    cites += [mine[one] for one in own if one in mine]
    return RecordGiven(
        record.kind,
        record.title,
        record.summary,
        fields=fields,
        status="draft" if state == "waiting" else record.status,
        tags=record.tags,
        relations=tuple(relations),
        cites=tuple(dict.fromkeys(cites)),
        created_at=record.created_at,
        ref=f"{desk.me.id}:{record.id}",
    )


def _leads(spec: FieldSpec) -> bool:
    """Tell whether a field names records."""
    return "ref" in (spec.type, spec.of.type if spec.of else "")


def _ids(value: JSON) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list | tuple) else [value])]


async def _cited(
    pool: Memory, copy: RecordGiven, relation: str, *, into: bool = False
) -> list[str]:
    """Return what a copy cites that the pack joins to its kind by a relation, from it or into it."""
    may = {
        (one.target, one.source) if into else (one.source, one.target)
        for one in pool.kinds.relations()
        if one.name == relation
    }
    cited = await pool.records.get(copy.cites) if copy.cites else []
    return [one.id for one in cited if (copy.kind, one.kind) in may]


async def revoke(desk: Desk, ids: Sequence[str], *, dry_run: bool) -> Withdrawn:
    """Take a member's copies out of the pool, by their ids or those of their originals, with what rests on them alone.

    Raises NotFound when one of them is no copy of this member's; nothing was changed.
    """
    async with desk.pool() as pool:
        named = await pool.records.pool.copies(desk.me.id, ids)
        named |= {
            id_: id_
            for id_, one in (await pool.records.pool.shared(ids)).items()
            if one.member == desk.me.id
        }
        if any(one not in named for one in ids):
            raise NotFound()
        return await take_out(desk, pool, [named[one] for one in ids], dry_run=dry_run)


async def take_out(
    desk: Desk, pool: Memory, records: Sequence[str], *, dry_run: bool = False
) -> Withdrawn:
    """Take records out of the pool, and lower in the same transaction what stays; then ``settle`` finishes.

    Raises Changed when the pool is changed again and again meanwhile.
    """
    rows = pool.records.pool
    for _ in range(_TRIES):
        foreseen = await rows.foreseen(records)
        gone, weaker = foreseen
        if dry_run:
            return Withdrawn(tuple(gone), weaker, dry_run=True)
        graded = [
            RecordGiven(id=id_, fields={"confidence": weaker[id_]})
            for id_, one in (await pool.records.find(weaker)).items()
            if id_ in weaker and "confidence" in pool.kinds.kind(one.kind).fields
        ]

        def work(db: sqlite3.Connection, foreseen: object = foreseen) -> None:
            if withdraw(db, records) != foreseen:
                raise Changed("the pool was changed meanwhile: ask again")

        with contextlib.suppress(Changed):
            if graded:
                by = pool.records.by(desk.me.id, lambda rows, _, work=work: rows.beside(work))
                await by.save(graded[:MAX_RECORDS], wait="journal")
            else:
                await rows.write(work)
            break
    else:
        raise Changed("the pool was changed meanwhile: ask again")
    for start in range(
        MAX_RECORDS, len(graded), MAX_RECORDS
    ):  # what members are shown is lowered already
        await pool.records.by(desk.me.id).save(graded[start : start + MAX_RECORDS], wait="journal")
    await settle(desk, pool)
    return Withdrawn(tuple(gone), weaker, dry_run=False)


async def forgetting(
    desk: Desk,
    ids: Sequence[str],
    act: Callable[[bool], Awaitable[T]],
    *,
    keep: bool,
    dry_run: bool,
) -> tuple[T, tuple[str, ...]]:
    """Let a member forget by ``act``, which takes whether it is a dry run, with its copies in the pool.

    The copies go first, so that a kill leaves none behind; ``keep`` lets them stay. What ``act`` refuses changes
    nothing. Returns its answer, and the copies.
    """
    copies = await _copies_of(desk, ids)
    if copies and not dry_run:
        await act(True)
        async with desk.pool() as pool:
            await (pool.records.pool.detach(copies) if keep else take_out(desk, pool, copies))
    answer = await act(dry_run)
    gone = () if dry_run else await withdraw_orphans(desk)
    return answer, (*copies, *gone)


async def withdraw_orphans(desk: Desk) -> tuple[str, ...]:
    """Withdraw the copies whose originals this member no longer has; return their ids."""
    async with desk.pool() as pool:
        mine = await pool.records.pool.shared(member=desk.me.id)
        kept = await desk.memory.records.find(one.origin for one in mine.values())
        gone = [id_ for id_, one in mine.items() if one.origin and one.origin not in kept]
        return (await take_out(desk, pool, gone)).gone if gone else ()


async def _copies_of(desk: Desk, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the member's copies in the pool whose originals are named, by their ids, their turns' or beginnings."""
    if not ids:
        return ()
    records = {one.id for one in (await desk.memory.records.find(ids)).values()}
    async with desk.pool() as pool:
        return tuple((await pool.records.pool.copies(desk.me.id, records)).values())


async def leave(desk: Desk, *, keep: bool, dry_run: bool) -> Withdrawn:
    """Let a member go: its copies are withdrawn, unless they are kept, and its inbox is emptied.

    A kill between leaves it a member, whose copies are gone.
    """
    async with desk.pool() as pool:
        mine = [] if keep else [*await pool.records.pool.shared(member=desk.me.id)]
        found = await take_out(desk, pool, mine, dry_run=dry_run)
        if not dry_run:
            await pool.records.pool.leave(desk.me.id)
            await pool.records.save(
                [RecordGiven(id=agent_id(desk.squad, desk.me.id), status="archived")]
            )
            await asyncio.to_thread(desk.app.registry.squads.remove, desk.squad.name, desk.me.id)
    return found
