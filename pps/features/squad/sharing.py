"""Sharing and withdrawing: copies of members' records in the pool, with their provenance.

Withdrawing a copy also withdraws the records that rest on it alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pps.core.errors import InvalidRequest, NotFound
from pps.core.record_values import Record, Transition
from pps.core.trust import Trust, lowest
from pps.core.values import JSON
from pps.features.squad.desk import Desk, settle
from pps.features.squad.gate import CLOSED, Action, advance, deliveries
from pps.features.squad.roots import PRIVATE, confidence_of, grounds, rests_on_private
from pps.features.squad.squad_members import agent_id, created
from pps.journal.pool_rows import (
    OPPOSING,
    SUPPORTING,
    Delivery,
    PoolRecord,
    Root,
    SharedState,
    Stance,
    count_roots,
    put_due,
    put_shared,
    shared_state,
    withdraw,
)
from pps.journal.record_rows import RecordRows
from pps.memory import Memory
from pps.records.saving import RecordGiven, RelationGiven, Saved

PROPOSAL = "WorkflowImprovement"
"""Kind that always waits for a reviewer, whatever the pool's gate is.

Until it is approved, only reviewers and its author read it.
"""
_REVISABLE = ("proposed", "needs_revision")
GUARDED = frozenset(("Belief", "ProcessInsight", "ProcessPattern", PROPOSAL))
"""Kinds that guide the squad: if they come from tool output or the web, they need a reviewer."""


@dataclass(frozen=True, slots=True)
class SharedCopy:
    """A copy in the pool; ``told`` has the members that are notified."""

    record: Record
    shared: PoolRecord
    roots: int
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WithdrawnRecord:
    """A record that is withdrawn from the pool."""

    id: str
    title: str
    kind: str
    owner: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The records that a withdrawal removes from the pool, and its effect on others.

    Attributes:
        weaker: Id of a record that stays → its new confidence.
        marked: Records of other members that stay although they cite a removed one; the citation
            is marked.
    """

    records: tuple[WithdrawnRecord, ...]
    weaker: Mapping[str, float]
    dry_run: bool
    marked: tuple[WithdrawnRecord, ...] = ()

    @property
    def gone(self) -> tuple[str, ...]:
        return tuple(record.id for record in self.records)


async def share(desk: Desk, id_: str) -> SharedCopy:
    """Copy one of a member's records into the pool, or update the copy there.

    Raises:
        NotFound: The member has no such record.
        InvalidRequest: The record is private or cites a private one, all its sources were
            withdrawn, or a reviewer rejected or withdrew its copy.
    """
    [record] = await desk.memory.records.get([id_])
    if PRIVATE in record.tags:
        raise InvalidRequest("id", "is private; it is never shared")
    if await rests_on_private(desk.memory, record):
        raise InvalidRequest("id", "rests on a private record; it is never shared")
    async with desk.pool() as pool:
        roots, trust = await _roots_and_trust(desk, pool, record)
        wanted = _first_state(desk, record, trust)
        now = desk.now()
        own_confidence = confidence_of(record)
        copies = await pool.records.pool.copies(desk.me.id, [record.id])
        known = (await pool.records.pool.shared([*copies.values()])).get(copies.get(record.id, ""))
        copy = await _copy(desk, pool, record, "shared" if known else wanted)
        contributed = await _cited_by_relation(pool, copy, "CONTRIBUTED_TO", into=True)
        based = [
            RelationGiven("BASED_ON", id_)
            for id_ in await _cited_by_relation(pool, copy, "BASED_ON")
        ]
        copy = replace(copy, relations=(*copy.relations, *based))
        targets = await pool.records.pool.shared([relation.target for relation in copy.relations])
        queued: list[Delivery] = []

        def also(rows: RecordRows, saved: Sequence[Saved]) -> None:
            current = saved[0].record
            change = saved[0].change
            if (
                current.kind == PROPOSAL
                and current.state not in _REVISABLE
                and change != "unchanged"
            ):
                raise InvalidRequest(
                    "id",
                    f"its copy is {current.state}; only one that is {' or '.join(_REVISABLE)} may "
                    "change",
                )
            before: SharedState | None = rows.beside(lambda db: shared_state(db, current.id))
            if before in CLOSED:
                raise InvalidRequest(
                    "id",
                    f"its copy was {before} by a reviewer; store it anew to propose it again",
                )
            state: SharedState = wanted
            if before is not None and before != "needs_revision" and change == "unchanged":
                state = before
            shared = PoolRecord(
                current.id,
                desk.me.id,
                record.id,
                now,
                own_confidence,
                trust,
                state,
                own_confidence,
            )
            stances = [
                Stance(current.id, relation.target, relation.type)
                for relation in copy.relations
                if relation.type in SUPPORTING | OPPOSING and relation.target in targets
            ]
            if state == "shared" and not (before == "shared" and change == "unchanged"):
                queued.extend(deliveries(desk.rules, current, desk.me.id, own_confidence, now))
                queued.extend(
                    Delivery(targets[stance.target].member, current.id, "opposes yours", now)
                    for stance in stances
                    if stance.opposes and targets[stance.target].member != desk.me.id
                )
            rows.beside(lambda db: put_shared(db, shared, roots, queued, stances))
            if before == "needs_revision" and state == "waiting" and current.kind != PROPOSAL:
                rows.note_move(
                    Transition(current.id, before, "revised", desk.me.id, now, "changed")
                )
            created(desk, rows, current.id, contributed)

        saved = (await pool.records.by(desk.me.id, also).save([copy])).records[0].record
        shared = (await pool.records.pool.shared([saved.id]))[saved.id]
        if not await desk.memory.records.find([record.id]):  # forgotten while it was copied
            await take_out(desk, pool, [saved.id])
            raise NotFound()
    return SharedCopy(
        saved,
        shared,
        count_roots(root.digest for root in roots),
        tuple(dict.fromkeys(delivery.member for delivery in queued)),
    )


async def _roots_and_trust(desk: Desk, pool: Memory, record: Record) -> tuple[list[Root], Trust]:
    ground = await grounds(desk.memory, record, desk.me.id, desk.squad.key)
    copies = await pool.records.pool.shared(ground.pool)
    cited = {id_: copy for id_, copy in copies.items() if copy.state == "shared"}
    through = await pool.records.pool.roots(cited)
    roots = [Root("", digest) for digest in ground.digests]
    for id_, below in through.items():
        digests = dict.fromkeys(root.digest for root in below)
        roots += [Root(id_, digest) for digest in digests]
    if not roots:
        raise InvalidRequest("id", "rests on nothing but what was withdrawn from the pool")
    return roots, lowest([ground.trust, *(copy.trust for copy in copies.values())])


def _first_state(desk: Desk, record: Record, trust: Trust) -> SharedState:
    """Return the state of a new copy: ``waiting`` if it needs a reviewer, else ``shared``."""
    rules = desk.rules.pool
    risky = record.kind == PROPOSAL or (rules.gate == "risk" and record.kind in rules.risky)
    guarded = trust == "outside" and record.kind in GUARDED
    return "waiting" if rules.gate == "approve" or risky or guarded else "shared"


async def _copy(desk: Desk, pool: Memory, record: Record, state: SharedState) -> RecordGiven:
    """Return a member's record in the form that the pool stores.

    The copy reveals nothing of the member's memory except the record itself: citations, relations
    and fields refer only to ids of the pool.
    """
    spec = pool.kinds.kind(record.kind)
    refs: dict[str, list[str]] = {}
    for name, field_spec in spec.fields.items():
        item_type = field_spec.of.type if field_spec.of else ""
        if name in record.fields and "ref" in (field_spec.type, item_type):
            value = record.fields[name]
            refs[name] = [
                str(id_) for id_ in (value if isinstance(value, list | tuple) else [value])
            ]
    pooled = (await desk.memory.records.pool.cites([record.id])).get(record.id, [])
    own_cites = (await desk.memory.records.cites([record.id])).get(record.id, ())
    own = [cite.id for cite in own_cites]
    related = [
        relation
        for relation in await desk.memory.records.relations([record.id])
        if relation.source == record.id
    ]
    named = [id_ for ids in refs.values() for id_ in ids]
    mine = await pool.records.pool.copies(
        desk.me.id, [*named, *own, *(relation.target for relation in related)]
    )
    rows = await pool.records.pool.shared([*named, *(cite.id for cite in pooled)])
    known = {id_: id_ for id_, shared in rows.items() if shared.state == "shared"} | mine
    fields: dict[str, JSON] = {
        name: value for name, value in record.fields.items() if name != "provenance"
    }
    for name, ids in refs.items():
        readable = [known[id_] for id_ in ids if id_ in known]
        fields[name] = readable if isinstance(fields[name], list) else (readable or [None])[0]
    relations = [
        RelationGiven(relation.type, mine[relation.target], relation.properties)
        for relation in related
        if relation.target in mine
    ]
    relations += [
        RelationGiven(cite.relation, cite.id, cite.properties)
        for cite in pooled
        if cite.relation and cite.id in known
    ]
    cites = [
        known[cite.id]
        for cite in pooled
        if cite.id in known and not cite.relation and not cite.gone
    ]
    cites += [mine[id_] for id_ in own if id_ in mine]
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


async def _cited_by_relation(
    pool: Memory, copy: RecordGiven, relation: str, *, into: bool = False
) -> list[str]:
    """Return the cited records whose kind the pack allows in a relation with the copy's kind.

    Args:
        pool: The squad's.
        copy: The copy that cites them.
        relation: Type of the relation.
        into: The relation leads from the cited record to the copy, not the other way.
    """
    allowed: set[tuple[str, str]] = set()
    for rule in pool.kinds.relations():
        if rule.name == relation:
            allowed.add((rule.target, rule.source) if into else (rule.source, rule.target))
    cited = await pool.records.get(copy.cites) if copy.cites else []
    return [record.id for record in cited if (copy.kind, record.kind) in allowed]


async def revoke(
    desk: Desk, ids: Sequence[str], *, dry_run: bool, reason: str = "", undo: bool = False
) -> Withdrawn:
    """Withdraw copies from the pool, by their ids or the ids of their originals.

    A member's own copies are erased, with the records that rest on them alone. A reviewer hides the
    records of others, with a reason; ``undo`` shows them again.

    Raises:
        NotFound: One of the ids is not in the pool, or another's and this member is no reviewer;
            nothing was changed.
        InvalidRequest: A reviewer gives no reason, or passes own and others' records together.
        StoreConflict: A record is not in the state that withdrawing or undoing starts from.
    """
    async with desk.pool() as pool:
        own = await pool.records.pool.copies(desk.me.id, ids)
        rows = await pool.records.pool.shared(ids)
        own |= {id_: id_ for id_, row in rows.items() if row.member == desk.me.id}
        others = [id_ for id_ in ids if id_ not in own]
        if not others and not undo:
            return await take_out(desk, pool, [own[id_] for id_ in ids], dry_run=dry_run)
        if not desk.is_reviewer or any(id_ not in rows for id_ in others):
            raise NotFound()
        if own and others:
            raise InvalidRequest("ids", "are your own and others': take them back in two calls")
        if not reason.strip():
            raise InvalidRequest(
                "reason", "must say why a record of another is withdrawn or shown again"
            )
        if dry_run:
            records = await pool.records.find(ids)
            listed = tuple(_withdrawn_record(id_, records, rows) for id_ in ids)
            return Withdrawn(listed, {}, dry_run=True)
    return await withdraw_by_reviewer(desk, ids, reason, undo=undo)


async def take_out(
    desk: Desk,
    pool: Memory,
    records: Sequence[str],
    *,
    dry_run: bool = False,
    cascade: bool = True,
) -> Withdrawn:
    """Erase records of the pool and, with ``cascade``, those that rest on them alone."""
    rows = pool.records.pool
    titles = await pool.records.find(records)
    owners = await rows.shared(records)
    citing = await _citing_records(pool, records) if not cascade else ()
    if dry_run:
        gone, weaker = await rows.foreseen(records, cascade=cascade)
    else:
        gone, weaker = await rows.write(lambda db: withdraw(db, records, cascade=cascade))
    further = [id_ for id_ in gone if id_ not in titles]
    if further:
        titles |= await pool.records.find(further)
        owners |= await rows.shared(further)
    if not dry_run:
        await settle(desk, pool)
    return Withdrawn(
        tuple(_withdrawn_record(id_, titles, owners) for id_ in gone),
        weaker,
        dry_run,
        tuple(record for record in citing if record.id not in gone),
    )


def _withdrawn_record(
    id_: str, records: Mapping[str, Record], shared: Mapping[str, PoolRecord]
) -> WithdrawnRecord:
    record = records.get(id_)
    owner = shared.get(id_)
    return WithdrawnRecord(
        id_,
        record.title if record else "",
        record.kind if record else "",
        owner.member if owner else "",
    )


async def _citing_records(pool: Memory, records: Sequence[str]) -> tuple[WithdrawnRecord, ...]:
    """Return the other records of the pool that cite one of these."""
    shared = await pool.records.pool.shared()
    cites = await pool.records.cites([*shared])
    leaving = set(records)
    citing: list[str] = []
    for id_, cited in cites.items():
        if id_ not in leaving and any(cite.id in leaving for cite in cited):
            citing.append(id_)
    titles = await pool.records.find(citing)
    return tuple(_withdrawn_record(id_, titles, shared) for id_ in citing)


async def withdraw_by_reviewer(
    desk: Desk, ids: Sequence[str], reason: str, *, undo: bool = False
) -> Withdrawn:
    """Let a reviewer hide other members' records from the squad, or with ``undo`` show them again.

    Their authors get the reason. Records that rest on them stay; their confidence follows the
    support that is left.

    Raises:
        InvalidRequest: This member is no reviewer.
        NotFound: One of the records is not in the pool.
        StoreConflict: One of the records is not shared (for ``undo``: not withdrawn by a
            reviewer); nothing was changed.
    """
    desk.check_reviewer()
    action: Action = "reinstated" if undo else "withdrawn"
    async with desk.pool() as pool:
        shared = await pool.records.pool.shared(ids)
        if any(id_ not in shared for id_ in ids):
            raise NotFound()
        records = await pool.records.find(ids)
        confidences = {
            id_: row.confidence for id_, row in (await pool.records.pool.shared()).items()
        }
        now = desk.now()

        def work(rows: RecordRows) -> None:
            for id_, row in shared.items():
                advance(rows, id_, action, desk.me.id, now, reason)
                if row.member != desk.me.id:
                    notice = Delivery(row.member, id_, action, now)
                    rows.beside(lambda db, notice=notice: put_due(db, [notice]))

        await pool.records.transact(work)
        after = await pool.records.pool.shared()
    changed = {
        id_: row.confidence
        for id_, row in after.items()
        if id_ not in shared and row.confidence != confidences.get(id_)
    }
    return Withdrawn(
        tuple(_withdrawn_record(id_, records, shared) for id_ in shared), changed, dry_run=False
    )


async def withdraw_orphans(desk: Desk) -> tuple[str, ...]:
    """Withdraw the copies whose originals the member has forgotten or made private.

    Returns:
        The ids of all records that were withdrawn.
    """
    async with desk.pool() as pool:
        mine = await pool.records.pool.shared(member=desk.me.id)
        originals = await desk.memory.records.find(copy.origin for copy in mine.values())
        shareable = {id_ for id_, record in originals.items() if PRIVATE not in record.tags}
        gone = [id_ for id_, copy in mine.items() if copy.origin and copy.origin not in shareable]
        return (await take_out(desk, pool, gone)).gone if gone else ()


async def leave(desk: Desk, *, keep: bool, dry_run: bool) -> Withdrawn:
    """Remove a member from the squad: withdraw its copies unless ``keep``, and empty its inbox.

    Records of other members stay even if they rest on the copies; their citations are marked. After
    a crash between the two steps the member is still in the squad, without its copies.
    """
    async with desk.pool() as pool:
        mine = [] if keep else [*await pool.records.pool.shared(member=desk.me.id)]
        withdrawn = await take_out(desk, pool, mine, dry_run=dry_run, cascade=False)
        if not dry_run:
            await pool.records.pool.leave(desk.me.id)
            await pool.records.by("", is_system=True).save(
                [RecordGiven(id=agent_id(desk.squad, desk.me.id), status="archived")]
            )
            await asyncio.to_thread(desk.app.registry.squads.remove, desk.squad.name, desk.me.id)
    return withdrawn
