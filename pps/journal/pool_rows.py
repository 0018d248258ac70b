"""Rows of a squad's pool beside its records: authors, sources, stances, uses and deliveries.

``shared``, ``shared_root``, ``shared_stance``, ``shared_use`` and ``inbox`` are tables of a pool;
``shared_cites`` is a table of a member: its own records that rest on records of the pool.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pps.core.errors import Changed
from pps.core.sql import LIST, NUMBERS, Connection, listed
from pps.core.time import from_micros, micros
from pps.core.trust import Trust
from pps.core.values import JSON
from pps.journal.store import Store

SharedState: TypeAlias = Literal[
    "waiting", "needs_revision", "rejected", "shared", "withdrawn", "revoked"
]
SUPPORTING = frozenset(("SUPPORTS", "VALIDATED"))
OPPOSING = frozenset(("CHALLENGED", "CONTRADICTS"))
MAX_CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A record of the pool: a copy of a member's record ``origin``.

    Attributes:
        confidence: The author's confidence, raised by independent support, lowered by opposition.
        state: ``waiting`` for a reviewer; ``needs_revision`` and ``rejected`` by a reviewer;
            ``shared``: every member reads it; ``withdrawn`` by a reviewer, who can undo it;
            ``revoked`` while it is being removed.
        own_confidence: The author's confidence, 0 to 1.
    """

    record: str
    member: str
    origin: str
    at: datetime
    confidence: float
    trust: Trust
    state: SharedState = "shared"
    own_confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class Root:
    """A source that a record of the pool rests on, directly or through another record.

    Attributes:
        via: The record of the pool through which it rests on the source; empty for directly.
        digest: Keyed digest of the source; ``source:member`` where only a member's word says that
            the source exists.
    """

    via: str
    digest: str


@dataclass(frozen=True, slots=True)
class Stance:
    """A record of the pool that supports or opposes another."""

    record: str
    target: str
    relation: str

    @property
    def opposes(self) -> bool:
        return self.relation in OPPOSING


@dataclass(frozen=True, slots=True)
class Vote:
    """A stance that counts: the voter's own confidence, and the ends of the voter's sources."""

    confidence: float
    ends: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record that a member should look at from ``due_at`` on; ``seq`` acknowledges it."""

    member: str
    record: str
    why: str
    due_at: datetime
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Uses:
    """The members who saw a record, and those who applied it."""

    accessed: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolCite:
    """A pool record that a member's own record rests on or relates to; ``gone`` once withdrawn."""

    id: str
    relation: str = ""
    properties: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    gone: bool = False


def ends_of(digests: Iterable[str]) -> frozenset[str]:
    """Return the sources and the members' words in digests.

    Two records with a common end depend on each other.
    """
    return frozenset(end for digest in digests for end in digest.split(":"))


def independent(votes: Iterable[Vote], taken: Collection[str] = ()) -> list[Vote]:
    """Return the votes that count, the most confident first.

    A vote counts when none of its ends is ``taken`` or an end of a vote that counts already: each
    source counts once, and so does each member's word.
    """
    used = set(taken)
    counting: list[Vote] = []
    for vote in sorted(votes, key=lambda vote: (-vote.confidence, sorted(vote.ends))):
        if used.isdisjoint(vote.ends):
            used |= vote.ends
            counting.append(vote)
    return counting


def count_roots(digests: Iterable[str]) -> int:
    """Return the number of independent sources in digests; each source and each word counts once.

    Digests whose ends are rare are counted first. So a member's word for several sources does not
    hide a source that another member has too.
    """
    ends = [ends_of([digest]) for digest in set(digests)]
    uses = Counter(end for pair in ends for end in pair)
    used: set[str] = set()
    count = 0
    for pair in sorted(ends, key=lambda pair: (sum(uses[end] for end in pair), sorted(pair))):
        if used.isdisjoint(pair):
            used |= pair
            count += 1
    return count


def weighed(
    own: float, ends: Collection[str], support: Iterable[Vote], opposition: Iterable[Vote]
) -> float:
    """Return a record's confidence: the author's, raised by support, lowered by opposition.

    Support multiplies the doubt: ``min(.99, 1 - (1 - own) * prod(1 - c))`` over the independent
    supporters, none of which may share a source or an author with the record (``ends``).
    Opposition takes away at most half: ``* (1 - o / 2)`` with ``o = 1 - prod(1 - c)`` over the
    independent opponents, so that one voice alone never silences a record.
    """
    doubt = math.prod(1 - vote.confidence for vote in independent(support, ends))
    raised = own if doubt == 1 else max(own, min(MAX_CONFIDENCE, 1 - (1 - own) * doubt))
    opposed = 1 - math.prod(1 - vote.confidence for vote in independent(opposition))
    return round(raised * (1 - opposed / 2), 4)


def put_shared(
    db: Connection,
    shared: PoolRecord,
    roots: Sequence[Root],
    due: Iterable[Delivery],
    stances: Sequence[Stance] = (),
) -> None:
    """Save a pool record with its sources, its stances and its deliveries.

    Raises:
        Changed: A record that it rests on was withdrawn meanwhile.
    """
    through = {root.via for root in roots if root.via}
    statement = (
        "SELECT count(*) FROM shared "  # noqa: S608 - literals
        f"WHERE state = 'shared' AND record IN {LIST}"
    )
    if db.execute(statement, (listed(through),)).fetchone() != (len(through),):
        raise Changed("what it rests on was withdrawn meanwhile: ask again")
    db.execute(
        """INSERT INTO shared (record, member, origin, at, confidence, trust, state, own_confidence)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (record) DO UPDATE SET origin = excluded.origin, at = excluded.at,
            trust = excluded.trust, state = excluded.state,
            own_confidence = excluded.own_confidence""",
        (
            shared.record,
            shared.member,
            shared.origin,
            micros(shared.at),
            shared.own_confidence,
            shared.trust,
            shared.state,
            shared.own_confidence,
        ),
    )
    db.execute("DELETE FROM shared_root WHERE record = ?", (shared.record,))
    db.executemany(
        "INSERT INTO shared_root (record, via, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(shared.record, root.via, root.digest) for root in roots],
    )
    affected = {shared.record, *_targets(db, [shared.record])}
    db.execute("DELETE FROM shared_stance WHERE record = ?", (shared.record,))
    db.executemany(
        """INSERT INTO shared_stance (record, target, relation) VALUES (?, ?, ?)
            ON CONFLICT DO NOTHING""",
        [(stance.record, stance.target, stance.relation) for stance in stances],
    )
    affected.update(stance.target for stance in stances)
    reweigh(db, affected)
    put_due(db, due)


def set_state(db: Connection, record: str, expected: SharedState, state: SharedState) -> bool:
    """Change a pool record's state if it is ``expected``; return whether it was."""
    statement = "UPDATE shared SET state = ? WHERE record = ? AND state = ?"
    if not db.execute(statement, (state, record, expected)).rowcount:
        return False
    reweigh(db, {record, *_targets(db, [record])})
    return True


def shared_state(db: Connection, record: str) -> SharedState | None:
    """Return the state of a pool record; None when it was never shared."""
    row = db.execute("SELECT state FROM shared WHERE record = ?", (record,)).fetchone()
    return cast("SharedState", row[0]) if row else None


def reweigh(db: Connection, records: Iterable[str]) -> dict[str, float]:
    """Compute the confidence of pool records again; return record → confidence of changed ones."""
    changed: dict[str, float] = {}
    for record in records:
        row = db.execute(
            "SELECT confidence, own_confidence FROM shared WHERE record = ?", (record,)
        ).fetchone()
        if row is None:
            continue
        before, own = row
        support: list[Vote] = []
        opposition: list[Vote] = []
        statement = """SELECT DISTINCT s.record, s.relation, of.own_confidence
            FROM shared_stance AS s JOIN shared AS of ON of.record = s.record
            WHERE s.target = ? AND of.state = 'shared' ORDER BY s.record"""
        for voter, relation, confidence in db.execute(statement, (record,)).fetchall():
            votes = opposition if relation in OPPOSING else support
            votes.append(Vote(confidence, _ends(db, voter)))
        after = weighed(own, _ends(db, record), support, opposition)
        if after != before:
            db.execute("UPDATE shared SET confidence = ? WHERE record = ?", (after, record))
            changed[record] = after
    return changed


def _ends(db: Connection, record: str) -> frozenset[str]:
    """Return the ends of a pool record's sources and its author: the author's word counts once."""
    (member,) = db.execute("SELECT member FROM shared WHERE record = ?", (record,)).fetchone()
    return ends_of(root.digest for root in _roots(db, record)) | {f"member {member}"}


def _targets(db: Connection, records: Iterable[str]) -> list[str]:
    statement = f"SELECT DISTINCT target FROM shared_stance WHERE record IN {LIST}"  # noqa: S608
    return [target for (target,) in db.execute(statement, (listed(records),))]


def put_due(db: Connection, due: Iterable[Delivery]) -> None:
    """Add deliveries to members' inboxes; one that is not acknowledged yet is not doubled.

    A delivery that comes again after it was acknowledged is a new one, with its own number.
    """
    rows = [
        (delivery.member, delivery.record, delivery.why, micros(delivery.due_at))
        for delivery in due
    ]
    delete_acked = "DELETE FROM inbox WHERE member = ? AND record = ? AND why = ? AND acked = 1"
    db.executemany(delete_acked, [row[:3] for row in rows])
    db.executemany(
        """INSERT INTO inbox (member, record, why, due_at, acked) VALUES (?, ?, ?, ?, 0)
            ON CONFLICT (member, record, why) DO UPDATE SET due_at = CASE
            WHEN excluded.due_at < inbox.due_at THEN excluded.due_at ELSE inbox.due_at END""",
        rows,
    )


def withdraw(
    db: Connection, records: Sequence[str], *, cascade: bool = True
) -> tuple[list[str], dict[str, float]]:
    """Mark records as revoked; return them, and the changed confidence of records that stay.

    Args:
        db: Inside a write transaction.
        records: Ids of pool records.
        cascade: Also revoke records that rest on them alone; else those stay, with marked
            citations.

    A revoked record is not delivered from then on.
    """
    gone: dict[str, None] = {}
    queue = list(records)
    while queue:
        record = queue.pop()
        if record in gone:
            continue
        gone[record] = None
        if not cascade:
            continue
        for dependent in _dependents(db, record):
            db.execute("DELETE FROM shared_root WHERE record = ? AND via = ?", (dependent, record))
            if not _roots(db, dependent):
                queue.append(dependent)
            else:
                _narrow_dependents(db, dependent)
    affected = set(_targets(db, gone)) - gone.keys()
    revoke = f"UPDATE shared SET state = 'revoked' WHERE record IN {LIST}"  # noqa: S608 - literals
    db.execute(revoke, (listed(gone),))
    db.execute(f"DELETE FROM inbox WHERE record IN {LIST}", (listed(gone),))  # noqa: S608
    return list(gone), reweigh(db, sorted(affected))


def _dependents(db: Connection, record: str) -> list[str]:
    statement = "SELECT DISTINCT record FROM shared_root WHERE via = ? ORDER BY record"
    return [dependent for (dependent,) in db.execute(statement, (record,))]


def _narrow_dependents(db: Connection, record: str) -> None:
    """Remove the sources that a record lost from the records that rest on it, transitively."""
    pending = [record]
    seen: set[str] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        digests = {root.digest for root in _roots(db, current)}
        for dependent in _dependents(db, current):
            lost = [
                root.digest
                for root in _roots(db, dependent)
                if root.via == current and root.digest not in digests
            ]
            if lost:
                db.execute(
                    "DELETE FROM shared_root "  # noqa: S608 - literals
                    f"WHERE record = ? AND via = ? AND digest IN {LIST}",
                    (dependent, current, listed(lost)),
                )
                pending.append(dependent)


def drop(db: Connection, records: Sequence[str]) -> None:
    """Erase every row about records of the pool."""
    for table in ("shared", "shared_root", "shared_stance", "shared_use", "inbox"):
        db.execute(f"DELETE FROM {table} WHERE record IN {LIST}", (listed(records),))  # noqa: S608
    stances_on_them = f"DELETE FROM shared_stance WHERE target IN {LIST}"  # noqa: S608 - literals
    db.execute(stances_on_them, (listed(records),))


def put_cites(db: Connection, record: str, cites: Iterable[PoolCite]) -> None:
    """Add pool records that a member's record rests on or relates to."""
    rows = [
        (record, cite.id, cite.relation, json.dumps(cite.properties, ensure_ascii=False))
        for cite in cites
    ]
    db.executemany(
        """INSERT INTO shared_cites (record, id, relation, properties, gone) VALUES (?, ?, ?, ?, 0)
            ON CONFLICT (record, id, relation)
            DO UPDATE SET properties = excluded.properties, gone = 0""",
        rows,
    )


class _Foreseen(Exception):
    """Undoes the transaction of ``PoolRows.foreseen``, and carries its result."""

    def __init__(self, gone: list[str], weaker: dict[str, float]) -> None:
        super().__init__()
        self.gone = gone
        self.weaker = weaker


class PoolRows(Store):
    """The pool's rows in one memory."""

    async def foreseen(
        self, records: Sequence[str], *, cascade: bool = True
    ) -> tuple[list[str], dict[str, float]]:
        """Return the result of ``withdraw``, but change nothing."""

        def work(db: Connection) -> None:
            raise _Foreseen(*withdraw(db, records, cascade=cascade))

        try:
            await self.write(work)
        except _Foreseen as foreseen:
            return foreseen.gone, foreseen.weaker
        raise AssertionError("nothing was foreseen")

    async def shared(
        self, records: Sequence[str] | None = None, *, member: str = ""
    ) -> dict[str, PoolRecord]:
        """Return id → pool record: of these records or all, of one member or (empty) of every."""
        where = "TRUE" if records is None else f"record IN {LIST}"
        values = () if records is None else (listed(records),)
        statement = f"""SELECT record, member, origin, at, confidence, trust, state, own_confidence
            FROM shared
            WHERE {where} AND (? = '' OR member = ?) ORDER BY at, record"""  # noqa: S608 - literals
        rows = await self.select(statement, *values, member, member)
        return {
            record: PoolRecord(record, author, origin, from_micros(at), *rest)
            for record, author, origin, at, *rest in rows
        }

    async def copies(self, member: str, origins: Iterable[str]) -> dict[str, str]:
        """Return a member's record → its copy in the pool; records without a copy are left out."""
        statement = f"""SELECT origin, record FROM shared
            WHERE member = ? AND origin <> '' AND origin IN {LIST}"""  # noqa: S608 - literals
        return dict(await self.select(statement, member, listed(origins)))

    async def revoked(self) -> list[str]:
        """Return the records that are being removed."""
        statement = "SELECT record FROM shared WHERE state = 'revoked' ORDER BY record"
        return [record for (record,) in await self.select(statement)]

    async def detach(self, records: Sequence[str]) -> None:
        """Separate records from their originals, so that they stay when those are forgotten."""
        statement = f"UPDATE shared SET origin = '' WHERE record IN {LIST}"  # noqa: S608 - literals
        await self.write(lambda db: db.execute(statement, (listed(records),)))

    async def roots(self, records: Iterable[str]) -> dict[str, list[Root]]:
        """Return record → its sources."""
        return await self.read(lambda db: {record: _roots(db, record) for record in records})

    async def stances(self, records: Sequence[str]) -> dict[str, list[Stance]]:
        """Return record → the shared records that support or oppose it."""
        statement = f"""SELECT s.record, s.target, s.relation FROM shared_stance AS s
            JOIN shared AS of ON of.record = s.record
            WHERE s.target IN {LIST} AND of.state = 'shared'
        ORDER BY s.target, s.record"""  # noqa: S608 - literals
        stances: dict[str, list[Stance]] = {}
        for row in await self.select(statement, listed(records)):
            stance = Stance(*row)
            stances.setdefault(stance.target, []).append(stance)
        return stances

    async def uses(self, records: Sequence[str]) -> dict[str, Uses]:
        """Return record → the members who saw it and applied it; unseen records are left out."""
        statement = f"""SELECT record, member, applied FROM shared_use WHERE record IN {LIST}
            ORDER BY at, member"""  # noqa: S608 - literals
        accessed: dict[str, list[str]] = {}
        applied_by: dict[str, list[str]] = {}
        for record, member, applied in await self.select(statement, listed(records)):
            accessed.setdefault(record, []).append(member)
            if applied:
                applied_by.setdefault(record, []).append(member)
        return {
            record: Uses(tuple(members), tuple(applied_by.get(record, ())))
            for record, members in accessed.items()
        }

    async def note_use(
        self, records: Iterable[str], member: str, at: datetime, *, applied: bool = False
    ) -> None:
        """Note that a member saw or applied records; the member's own records are left out."""
        statement = """INSERT INTO shared_use (record, member, at, applied)
            SELECT record, ?2, ?3, ?4 FROM shared WHERE record = ?1 AND member <> ?2
            ON CONFLICT (record, member) DO UPDATE SET applied = 1 WHERE excluded.applied = 1"""
        rows = [(record, member, micros(at), int(applied)) for record in records]
        if rows:
            await self.write(lambda db: db.executemany(statement, rows))

    async def due(self, member: str, at: datetime, limit: int) -> list[Delivery]:
        """Return a member's due deliveries that are not acknowledged, the oldest first."""
        statement = """SELECT member, record, why, due_at, seq FROM inbox
            WHERE member = ? AND acked = 0 AND due_at <= ? ORDER BY due_at, seq LIMIT ?"""
        rows = await self.select(statement, member, micros(at), limit)
        return [
            Delivery(recipient, record, why, from_micros(due_at), seq)
            for recipient, record, why, due_at, seq in rows
        ]

    async def acknowledge(self, member: str, seqs: Sequence[int]) -> list[str]:
        """Acknowledge a member's deliveries; return the record of each."""
        statement = f"""UPDATE inbox SET acked = 1
            WHERE member = ? AND acked = 0 AND seq IN {NUMBERS} RETURNING record"""  # noqa: S608
        numbers = listed(seqs)
        return await self.write(
            lambda db: [record for (record,) in db.execute(statement, (member, numbers))]
        )

    async def leave(self, member: str) -> None:
        """Delete a member's inbox."""
        await self.write(lambda db: db.execute("DELETE FROM inbox WHERE member = ?", (member,)))

    async def cites(self, records: Sequence[str] | None = None) -> dict[str, list[PoolCite]]:
        """Return the member's record → its cites of pool records; None is every record."""
        where = "TRUE" if records is None else f"record IN {LIST}"
        values = () if records is None else (listed(records),)
        statement = f"""SELECT record, id, relation, properties, gone FROM shared_cites
            WHERE {where} ORDER BY record, id"""  # noqa: S608 - literals
        cites: dict[str, list[PoolCite]] = {}
        for record, id_, relation, stored, gone in await self.select(statement, *values):
            properties = cast("Mapping[str, JSON]", json.loads(stored))
            cites.setdefault(record, []).append(PoolCite(id_, relation, properties, bool(gone)))
        return cites

    async def mark_gone(self, ids: Sequence[str]) -> None:
        """Mark the cites of records that were withdrawn from the pool."""
        statement = f"UPDATE shared_cites SET gone = 1 WHERE id IN {LIST}"  # noqa: S608 - literals
        await self.write(lambda db: db.execute(statement, (listed(ids),)))


def _roots(db: Connection, record: str) -> list[Root]:
    statement = "SELECT via, digest FROM shared_root WHERE record = ? ORDER BY via, digest"
    return [Root(*row) for row in db.execute(statement, (record,))]
