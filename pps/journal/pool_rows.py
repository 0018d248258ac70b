"""What members of a squad share, beside the records themselves: by whom, what it rests on, who saw it, what is due.

``shared``, ``shared_root``, ``shared_use`` and ``inbox`` are a pool's; ``shared_cites`` is a member's: what of its own
rests on a record of the pool.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pps.core.errors import Changed
from pps.core.sql import LIST, listed
from pps.core.time import from_micros, micros
from pps.core.trust import Trust
from pps.core.values import JSON
from pps.journal.store import Store

SharedState: TypeAlias = Literal["waiting", "shared", "revoked"]


@dataclass(frozen=True, slots=True)
class Shared:
    """A record of the pool: whose copy it is, and of what.

    Attributes:
        confidence: Of all its roots together.
        state: ``waiting`` for a reviewer; ``revoked`` while it is taken out.
    """

    record: str
    member: str
    origin: str
    at: datetime
    confidence: float
    trust: Trust
    state: SharedState = "shared"


@dataclass(frozen=True, slots=True)
class Root:
    """What a record rests on: a digest, and through which record of the pool (empty: of itself).

    Attributes:
        digest: Of a source; ``source:member`` where only a member's own word says that there is one.
    """

    via: str
    digest: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something for a member to look at from ``due_at`` on; ``seq`` acknowledges it."""

    member: str
    record: str
    why: str
    due_at: datetime
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Uses:
    """Who saw a record, and who applied it."""

    accessed: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolCite:
    """A record of the pool that one of a member's own rests on, or is related to; ``gone`` when it was withdrawn."""

    id: str
    relation: str = ""
    properties: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    gone: bool = False


def joint(roots: Iterable[Root]) -> float:
    """Return the confidence of roots together: min(.99, 1 − Π(1 − best confidence of a root))."""
    return round(min(0.99, 1 - math.prod(1 - confidence for confidence in counted(roots))), 4)


def counted(roots: Iterable[Root]) -> list[float]:
    """Return the confidences of the roots that count, the best first: each source once, and each member's word once.

    So a member who stores many texts of its own adds one root, and many who store the same text add one.
    """
    found, taken = list[float](), set[str]()
    for digest, confidence in sorted(best(roots).items(), key=lambda one: (-one[1], one[0])):
        source, _, member = digest.partition(":")
        if taken.isdisjoint(ends := {source, member or source}):
            taken |= ends
            found.append(confidence)
    return found


def best(roots: Iterable[Root]) -> dict[str, float]:
    """Return digest → the best confidence that it is given."""
    found: dict[str, float] = {}
    for one in roots:
        found[one.digest] = max(one.confidence, found.get(one.digest, 0.0))
    return found


def put_shared(
    db: sqlite3.Connection, one: Shared, roots: Sequence[Root], due: Iterable[Delivery]
) -> None:
    """Keep what a record of the pool is a copy of, what it rests on, and who hears of it.

    Raises Changed when what it rests on was withdrawn meanwhile.
    """
    through = {root.via for root in roots if root.via}
    held = f"SELECT count(*) FROM shared WHERE state = 'shared' AND record IN {LIST}"  # noqa: S608 - literals
    if db.execute(held, (listed(through),)).fetchone() != (len(through),):
        raise Changed("what it rests on was withdrawn meanwhile: ask again")
    db.execute(
        """INSERT INTO shared (record, member, origin, at, confidence, trust, state) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (record) DO UPDATE SET origin = excluded.origin, at = excluded.at,
            confidence = excluded.confidence, trust = excluded.trust, state = excluded.state""",
        (one.record, one.member, one.origin, micros(one.at), one.confidence, one.trust, one.state),
    )
    db.execute("DELETE FROM shared_root WHERE record = ?", (one.record,))
    rows = [(one.record, root.via, root.digest, root.confidence) for root in roots]
    db.executemany(
        "INSERT OR REPLACE INTO shared_root (record, via, digest, confidence) VALUES (?, ?, ?, ?)",
        rows,
    )
    put_due(db, due)


def put_due(db: sqlite3.Connection, due: Iterable[Delivery]) -> None:
    """Keep what members are to hear of; what they have not acknowledged yet is not doubled.

    What comes anew after it was acknowledged is another delivery, with a number of its own.
    """
    rows = [(one.member, one.record, one.why, micros(one.due_at)) for one in due]
    acked = "DELETE FROM inbox WHERE member = ? AND record = ? AND why = ? AND acked = 1"
    db.executemany(acked, [row[:3] for row in rows])
    db.executemany(
        """INSERT INTO inbox (member, record, why, due_at, acked) VALUES (?, ?, ?, ?, 0)
            ON CONFLICT (member, record, why) DO UPDATE SET due_at = min(due_at, excluded.due_at)""",
        rows,
    )


def withdraw(db: sqlite3.Connection, records: Sequence[str]) -> tuple[list[str], dict[str, float]]:
    """Mark records as revoked, with all that rests on them alone; return them, and the confidence of what stays.

    Nothing of them is delivered from then on.
    """
    gone: dict[str, None] = {}
    weaker: dict[str, float] = {}
    queue = list(records)
    while queue:
        one = queue.pop()
        roots = [] if one in gone or one in records else _roots(db, one)
        if not roots:
            gone[one] = None
            weaker.pop(one, None)
        for (dependent,) in db.execute(
            "SELECT DISTINCT record FROM shared_root WHERE via = ?", (one,)
        ).fetchall():
            before = best(_roots(db, dependent))
            db.execute("DELETE FROM shared_root WHERE record = ? AND via = ?", (dependent, one))
            rows = [
                (dependent, one, digest, confidence) for digest, confidence in best(roots).items()
            ]
            db.executemany(
                "INSERT INTO shared_root (record, via, digest, confidence) VALUES (?, ?, ?, ?)",
                rows,
            )
            left = _roots(db, dependent)
            if best(left) != before and dependent not in gone:
                weaker[dependent] = joint(left)
                queue.append(dependent)
    weaker = {record: confidence for record, confidence in weaker.items() if record not in gone}
    db.execute(f"UPDATE shared SET state = 'revoked' WHERE record IN {LIST}", (listed(gone),))  # noqa: S608 - literals
    db.execute(f"DELETE FROM inbox WHERE record IN {LIST}", (listed(gone),))  # noqa: S608 - literals
    db.executemany(
        "UPDATE shared SET confidence = ? WHERE record = ?",
        [(one, id_) for id_, one in weaker.items()],
    )
    return list(gone), weaker


def drop(db: sqlite3.Connection, records: Sequence[str]) -> None:
    """Forget that records were ever shared."""
    for table in ("shared", "shared_root", "shared_use", "inbox"):
        db.execute(f"DELETE FROM {table} WHERE record IN {LIST}", (listed(records),))  # noqa: S608 - literals


class _Foreseen(Exception):
    """Undoes a transaction that only shows."""

    def __init__(self, gone: list[str], weaker: dict[str, float]) -> None:
        super().__init__()
        self.gone = gone
        self.weaker = weaker


class PoolRows(Store):
    """The rows of one ``memory.db``."""

    async def foreseen(self, records: Sequence[str]) -> tuple[list[str], dict[str, float]]:
        """Return what ``withdraw`` would, and change nothing."""

        def work(db: sqlite3.Connection) -> None:
            raise _Foreseen(*withdraw(db, records))

        try:
            await self.write(work)
        except _Foreseen as found:
            return found.gone, found.weaker
        raise AssertionError("nothing was foreseen")

    async def shared(
        self, records: Sequence[str] | None = None, *, member: str = ""
    ) -> dict[str, Shared]:
        """Return record → whose copy it is: of some records, or of all; of one member where it is named."""
        where = "TRUE" if records is None else f"record IN {LIST}"
        values = () if records is None else (listed(records),)
        statement = f"""SELECT record, member, origin, at, confidence, trust, state FROM shared
            WHERE {where} AND (? = '' OR member = ?) ORDER BY at, record"""  # noqa: S608 - literals
        rows = await self.select(statement, *values, member, member)
        return {
            one: Shared(one, who, of, from_micros(when), *rest)
            for one, who, of, when, *rest in rows
        }

    async def copies(self, member: str, origins: Iterable[str]) -> dict[str, str]:
        """Return a member's record → its copy here, of those that have one."""
        statement = f"SELECT origin, record FROM shared WHERE member = ? AND origin <> '' AND origin IN {LIST}"  # noqa: S608 - literals
        return dict(await self.select(statement, member, listed(origins)))

    async def revoked(self) -> list[str]:
        """Return the records that are being taken out."""
        statement = "SELECT record FROM shared WHERE state = 'revoked' ORDER BY record"
        return [record for (record,) in await self.select(statement)]

    async def detach(self, records: Sequence[str]) -> None:
        """Let records stay when what they were copied from is forgotten."""
        statement = f"UPDATE shared SET origin = '' WHERE record IN {LIST}"  # noqa: S608 - literals
        await self.write(lambda db: db.execute(statement, (listed(records),)))

    async def roots(self, records: Iterable[str]) -> dict[str, list[Root]]:
        """Return record → what it rests on."""
        return await self.read(lambda db: {one: _roots(db, one) for one in records})

    async def uses(self, records: Sequence[str]) -> dict[str, Uses]:
        """Return record → who saw and who applied it."""
        statement = f"SELECT record, member, applied FROM shared_use WHERE record IN {LIST} ORDER BY at, member"  # noqa: S608 - literals
        found: dict[str, tuple[list[str], list[str]]] = {}
        for record, member, applied in await self.select(statement, listed(records)):
            accessed, used = found.setdefault(record, ([], []))
            accessed.append(member)
            used.extend([member] if applied else [])
        return {record: Uses(tuple(one), tuple(two)) for record, (one, two) in found.items()}

    async def note_use(
        self, records: Iterable[str], member: str, at: datetime, *, applied: bool = False
    ) -> None:
        """Keep that a member saw records, or applied them; their own are left out."""
        statement = """INSERT INTO shared_use (record, member, at, applied)
            SELECT record, ?2, ?3, ?4 FROM shared WHERE record = ?1 AND member <> ?2
            ON CONFLICT (record, member) DO UPDATE SET applied = max(applied, excluded.applied)"""
        if rows := [(one, member, micros(at), int(applied)) for one in records]:
            await self.write(lambda db: db.executemany(statement, rows))

    async def due(self, member: str, at: datetime, limit: int) -> list[Delivery]:
        """Return what a member is to look at and has not acknowledged, the oldest first."""
        statement = """SELECT member, record, why, due_at, seq FROM inbox
            WHERE member = ? AND acked = 0 AND due_at <= ? ORDER BY due_at, seq LIMIT ?"""
        rows = await self.select(statement, member, micros(at), limit)
        return [
            Delivery(who, record, why, from_micros(when), seq)
            for who, record, why, when, seq in rows
        ]

    async def acknowledge(self, member: str, seqs: Sequence[int]) -> list[str]:
        """Let a member not hear of deliveries again; return of which record each was."""
        statement = f"UPDATE inbox SET acked = 1 WHERE member = ? AND acked = 0 AND seq IN {LIST} RETURNING record"  # noqa: S608 - literals
        wanted = json.dumps(list(seqs))
        return await self.write(
            lambda db: [record for (record,) in db.execute(statement, (member, wanted))]
        )

    async def leave(self, member: str) -> None:
        """Empty a member's inbox for good."""
        await self.write(lambda db: db.execute("DELETE FROM inbox WHERE member = ?", (member,)))

    async def put_cites(self, record: str, cites: Iterable[PoolCite]) -> None:
        """Keep what of the pool a record of one's own rests on, beside what is kept already."""
        rows = [
            (record, one.id, one.relation, json.dumps(one.properties, ensure_ascii=False))
            for one in cites
        ]
        statement = "INSERT OR REPLACE INTO shared_cites (record, id, relation, properties) VALUES (?, ?, ?, ?)"
        if rows:
            await self.write(lambda db: db.executemany(statement, rows))

    async def cites(self, records: Sequence[str] | None = None) -> dict[str, list[PoolCite]]:
        """Return record of one's own → what of the pool it rests on; of all records when none are named."""
        where = "TRUE" if records is None else f"record IN {LIST}"
        values = () if records is None else (listed(records),)
        found: dict[str, list[PoolCite]] = {}
        statement = f"SELECT record, id, relation, properties, gone FROM shared_cites WHERE {where} ORDER BY record, id"  # noqa: S608 - literals
        for record, id_, relation, properties, gone in await self.select(statement, *values):
            given = cast("Mapping[str, JSON]", json.loads(properties))
            found.setdefault(record, []).append(PoolCite(id_, relation, given, bool(gone)))
        return found

    async def mark_gone(self, ids: Sequence[str]) -> None:
        """Mark what rests on records that were withdrawn from the pool."""
        statement = f"UPDATE shared_cites SET gone = 1 WHERE id IN {LIST}"  # noqa: S608 - literals
        await self.write(lambda db: db.execute(statement, (listed(ids),)))


def _roots(db: sqlite3.Connection, record: str) -> list[Root]:
    statement = (
        "SELECT via, digest, confidence FROM shared_root WHERE record = ? ORDER BY via, digest"
    )
    return [Root(*row) for row in db.execute(statement, (record,))]
