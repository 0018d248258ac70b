"""The bin: what was softly forgotten, whole, one row each time. Nothing else reads it, so nothing has to leave it out.

Which rows of the journal it takes along is said once, in ``_TAKEN``.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias, TypeVar

from pps.core.errors import InvalidRequest
from pps.core.ids import is_beginning
from pps.core.sql import LIST, Connection, listed
from pps.core.time import RunningMark, from_micros, micros, precision_of, with_precision
from pps.journal import feature_tables, meta
from pps.journal.change_log import log_changes
from pps.journal.entries import (
    Change,
    JobPayload,
    dump_payload,
    load_payload,
    without_needing,
)
from pps.journal.job_rows import STAGES
from pps.journal.record_rows import RecordRows
from pps.journal.store import Readers
from pps.journal.writer import Writer

ERASE_AFTER_S = 86_400.0
"""Running time between the two checks that must both find a row over its age before it is erased."""
T = TypeVar("T")
Row: TypeAlias = dict[str, str | int | float | None]
Rows: TypeAlias = dict[str, list[Row]]
"""Table → rows, column by column."""

# In the order in which they are put back: what others refer to comes first.
_TAKEN = {
    "turns": f"uuid IN {LIST}",
    "turn_tags": f"turn IN {LIST}",
    "jobs": f"turn IN {LIST}",
    "attempts": f"job IN (SELECT id FROM jobs WHERE turn IN {LIST})",  # noqa: S608 - literals
    "records": f"turn IN {LIST}",
    "turn_links": f"turn IN {LIST}",
    "versions": f"turn IN {LIST}",
    "endings": f"turn IN {LIST}",
    "fact_ties": f"""fact IN {LIST} OR holder IN {LIST} OR EXISTS (SELECT 1 FROM fact_ties AS broken
        WHERE broken.fact = fact_ties.fact AND broken.holder = fact_ties.holder AND broken.needs IN {LIST})""",  # noqa: S608 - literals
    "record_field": f"node IN {LIST}",
    "transitions": f"record IN {LIST}",
    "record_cites": f"record IN {LIST}",
    "record_relations": f"source IN {LIST} OR target IN {LIST} OR id IN {LIST}",
    "merges": f"kept IN {LIST} OR gone IN {LIST}",
    "anchor_versions": f"slug IN {LIST}",
}
_OF_TURNS = (
    "turns",
    "turn_tags",
    "jobs",
    "attempts",
    "records",
    "turn_links",
    "versions",
    "endings",
)
_ABOUT = (
    *("uuid", "turn", "node", "record", "source", "target", "kept", "gone", "job"),
    *("holder", "needs", "slug"),
)
"""Columns that say what a row is about."""
_BEGUN = "restoring"
_PROCESS_CLOCK = secrets.token_hex(8)
_COLUMNS = "id, at, actor, why, kinds, asked, ids, content"


def _process_mark() -> RunningMark:
    return RunningMark(_PROCESS_CLOCK, time.monotonic())


@dataclass(frozen=True, slots=True)
class Binned:
    """What was forgotten at one time.

    Attributes:
        kinds: Of records that an actor must be allowed to write, to restore or to erase it.
        asked: Ids that go by this row alone: what needs one of them waits for it.
        ids: Every id that it holds anything of.
        content: JSON that only ``ingest`` reads.
    """

    id: str
    at: datetime
    actor: str
    why: str
    kinds: tuple[str, ...]
    asked: tuple[str, ...]
    ids: tuple[str, ...]
    content: str


def _take(
    db: Connection,
    turns: Sequence[str],
    nodes: Sequence[str],
    facts: Sequence[str],
    of_features: Sequence[str],
    anchors: Sequence[str],
) -> Rows:
    t, n, f = listed(turns), listed(nodes), listed(facts)
    values = dict.fromkeys(_OF_TURNS, (t,)) | {"record_relations": (n, n, f), "merges": (n, n)}
    values["fact_ties"] = (f, t, t)
    values["anchor_versions"] = (listed(anchors),)
    found: Rows = {}
    for table, where in _TAKEN.items():
        read = db.execute(f"SELECT * FROM {table} WHERE {where}", values.get(table, (n,)))  # noqa: S608 - literals
        names = [column[0] for column in read.description]
        found[table] = [_without_group(dict(zip(names, row, strict=True))) for row in read]
    return found | feature_tables.take(db, [*turns, *nodes, *facts, *of_features])


def _without_group(row: Row) -> Row:
    """Leave the group out, which tables of a database of many entities have: it is that of whoever puts the row back."""
    return {name: value for name, value in row.items() if name != "grp"}


def put_back(db: Connection, rows: Rows, changes: Iterable[Change]) -> None:
    """Put rows back as they were, and note what is to be indexed.

    What is there stays: of a turn that has come back since, nothing is put back.
    """
    _put_back(db, rows)
    log_changes(db, changes)


def _put_back(db: Connection, rows: Rows) -> None:
    given = listed(str(row["uuid"]) for row in rows.get("turns", ()))
    found = db.execute(f"SELECT uuid FROM turns WHERE uuid IN {LIST}", (given,)).fetchall()  # noqa: S608 - literals
    there: set[object] = {uuid for (uuid,) in found}
    there |= {row["id"] for row in rows.get("jobs", ()) if row["turn"] in there}
    for table in _TAKEN:
        for row in rows.get(table, ()):
            if there.isdisjoint((row.get("uuid"), row.get("turn"), row.get("job"))):
                values = row | {"state": "queued"} if row.get("state") == "running" else row
                if table == "turns" and "occurred_precision" not in row:  # kept before version 16
                    said_at = with_precision(from_micros(int(row["occurred_at"])))  # pyright: ignore[reportArgumentType] - a column of integers
                    values = values | {"occurred_precision": precision_of(said_at)}
                names, marks = ", ".join(values), ", ".join("?" * len(values))
                db.execute(
                    f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING",  # noqa: S608
                    tuple(values.values()),
                )
    feature_tables.put_back(db, rows)


def without_rows(rows: Rows, gone: Collection[str]) -> Rows:
    """Return rows without those that are about any of some ids."""
    ids: set[object] = {*gone, *(row["id"] for row in rows.get("jobs", ()) if row["turn"] in gone)}
    kept: Rows = feature_tables.taken_without(rows, gone)
    for table in rows.keys() - kept.keys():
        found = rows[table]
        names = (*_ABOUT, "id") if table == "record_relations" else _ABOUT
        kept[table] = [
            dict(row) for row in found if ids.isdisjoint(row.get(name) for name in names)
        ]
    return kept


def drop_given(db: Connection, turn: str) -> bool:
    """Overwrite the nodes and facts given with a turn that is saved; the turn itself stays. False when it is absent.

    Raises:
        InvalidRequest: It is not saved yet, so the payload is still the only copy.
    """
    found = db.execute("SELECT state, payload, stage FROM jobs WHERE turn = ?", (turn,)).fetchone()
    if found is None:
        return False
    state, payload, stage = found
    if state in ("queued", "running") and STAGES[stage] == "save":
        raise InvalidRequest("turn", "its job has not ended yet: try again when it is done")
    db.execute("UPDATE jobs SET payload = ? WHERE turn = ?", (without_given(payload, state), turn))
    return True


def without_given(payload: str, state: str) -> str:
    """Return a payload, as it is stored with a job in a state, without the nodes and facts in it."""
    kept = load_payload(payload)
    extraction = (
        kept.extraction if state in ("queued", "running") else "none"
    )  # a model may have yet to read it
    return dump_payload(JobPayload(extraction=extraction, record=kept.record, links=kept.links))


def _put_back_given(db: Connection, turn: str, payload: str, forgotten: Collection[str]) -> None:
    """Put back what was given with a turn, or what a command found in it together with turns that were forgotten."""
    found = db.execute("SELECT payload, state FROM jobs WHERE turn = ?", (turn,)).fetchone()
    if found is None:
        return
    stored, state = found
    before, current = load_payload(payload), load_payload(stored)
    if stored == without_given(payload, state):
        db.execute("UPDATE jobs SET payload = ? WHERE turn = ?", (payload, turn))
    elif current == without_needing(before, forgotten):  # it waits to be read again: it need not
        db.execute(
            """UPDATE jobs SET payload = ?, state = CASE WHEN state = 'queued' AND stage = 1 THEN 'done' ELSE state END
                WHERE turn = ?""",
            (payload, turn),
        )
    elif before.read and current.read:  # it was read again meanwhile
        kept = without_needing(before, forgotten).read
        facts = [fact for fact in before.read.facts if kept and fact not in kept.facts]
        read = replace(current.read, facts=(*current.read.facts, *facts))
        db.execute(
            "UPDATE jobs SET payload = ? WHERE turn = ?",
            (dump_payload(replace(current, read=read)), turn),
        )


def rewrite(db: Connection, rows: Iterable[Binned]) -> None:
    """Keep rows of the bin as they are now; those without content are erased."""
    for one in rows:
        db.execute("DELETE FROM bin WHERE id = ?", (one.id,))
        if one.content:
            lists = (
                json.dumps(given, ensure_ascii=False) for given in (one.kinds, one.asked, one.ids)
            )
            values = (one.id, micros(one.at), one.actor, one.why, *lists, one.content)
            db.execute(f"INSERT INTO bin ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608 - literals


class Bin:
    """The bin of one ``memory.db``; errors and durability as for ``Journal``.

    Attributes:
        keep: How long something can be restored; whoever opens the journal sets it.
        running: Returns the running time, by which what is over its age is erased; whoever opens the journal sets one
            that adds up over starts.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self.keep = timedelta(days=30)
        self.running: Callable[[], RunningMark] = _process_mark

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction; what it deletes is overwritten on disk."""
        return await self._writer.write(work, secure=True)

    async def rewrite(self, rows: Sequence[Binned]) -> None:
        """Do what ``rewrite`` says."""
        await self.write(lambda db: rewrite(db, rows))

    async def take(
        self,
        turns: Sequence[str],
        nodes: Sequence[str],
        facts: Sequence[str],
        of_features: Sequence[str] = (),
        anchors: Sequence[str] = (),
    ) -> Rows:
        """Return all rows that go when turns, nodes, facts, rows of features and anchors (slugs) are forgotten."""
        return await self._readers.read(
            lambda db: _take(db, turns, nodes, facts, of_features, anchors)
        )

    async def begin(self, id: str) -> None:
        """Note that a row is put back from now on."""
        await self._writer.write(lambda db: meta.put(db, _BEGUN, id))

    async def begun(self) -> Binned | None:
        """Return the row that is being put back, if there is one."""
        id_ = await self._readers.read(lambda db: meta.get(db, _BEGUN))
        return next(iter(await self._select("id = ?", id_)), None) if id_ else None

    async def end(
        self,
        id: str,
        rows: Rows,
        back: Collection[str],
        given: Mapping[str, str],
        others: Sequence[Binned],
        forgotten: Collection[str],
    ) -> None:
        """Note that a row of the bin is put back, and drop it; ``others`` are rows that changed with it.

        What cites one of the ids that came ``back`` rests on something again. What was ``given`` with turns is put
        back where nothing else was taken from them since; ``forgotten`` are the turns that came back.
        """
        records = listed(str(row["node"]) for row in rows.get("records", ()))

        def work(db: Connection) -> None:
            cited = [str(row["id"]) for row in rows.get("record_cites", ())]
            there = listed([*RecordRows(db).cited(cited), *back])
            db.execute(
                f"UPDATE record_cites SET gone = CASE WHEN id IN {LIST} THEN 0 ELSE 1 END WHERE id IN {LIST} OR record IN {LIST}",  # noqa: S608 - literals
                (there, listed(back), records),
            )
            for turn, payload in given.items():
                _put_back_given(db, turn, payload, forgotten)
            rewrite(db, others)
            db.execute("DELETE FROM bin WHERE id = ?", (id,))
            meta.put(db, _BEGUN, "")

        await self.write(work)

    async def given(self, turns: Iterable[str]) -> dict[str, str]:
        """Return turn → what was given with it, as its job keeps it."""
        statement = f"SELECT turn, payload FROM jobs WHERE turn IN {LIST}"  # noqa: S608 - literals
        return await self._readers.read(
            lambda db: dict(db.execute(statement, (listed(turns),)).fetchall())
        )

    async def list(self, at: datetime) -> list[Binned]:
        """Return what can be restored at a time, latest first."""
        return await self._select("at > ? ORDER BY at DESC, id", micros(at - self.keep))

    async def get(self, id: str, at: datetime) -> list[Binned]:
        """Return what can be restored of an id, or of the first characters of one: one, none, or several."""
        if is_beginning(id):
            return await self._select(
                "at > ? AND id >= ? AND id < ? || 'g'", micros(at - self.keep), id, id
            )
        return await self._select("at > ? AND id = ?", micros(at - self.keep), id)

    async def holding(self, ids: Iterable[str]) -> list[Binned]:
        """Return what holds anything of any of some ids, or has that id."""
        wanted = listed(ids)
        return await self._select(
            f"id IN {LIST} OR EXISTS (SELECT 1 FROM json_each(bin.ids) WHERE value IN {LIST}) ORDER BY at",  # noqa: S608 - literals
            wanted,
            wanted,
        )

    async def expire(self, at: datetime) -> int:
        """Erase for good what can no longer be restored, and was so a day of running time ago already.

        Returns how many rows went. A clock that jumps ahead and is put right again within a day of running erases nothing.
        """
        due = micros(at - self.keep)
        mark = self.running()

        def looks(db: Connection) -> bool:
            row = db.execute(
                "SELECT 1 FROM bin WHERE at <= ? OR seen_clock <> '' LIMIT 1", (due,)
            ).fetchone()
            return row is not None

        def work(db: Connection) -> int:
            db.execute("UPDATE bin SET seen_clock = '', seen_s = 0 WHERE at > ?", (due,))
            db.execute(
                "UPDATE bin SET seen_clock = ?, seen_s = ? WHERE at <= ? AND (seen_clock <> ? OR seen_s > ?)",
                (mark.clock, mark.seconds, due, mark.clock, mark.seconds),
            )
            return db.execute(
                "DELETE FROM bin WHERE at <= ? AND seen_clock = ? AND seen_s <= ?",
                (due, mark.clock, mark.seconds - ERASE_AFTER_S),
            ).rowcount

        return await self.write(work) if await self._readers.read(looks) else 0

    async def overdue(self, at: datetime) -> int:
        """Return how many rows can no longer be restored and are not erased yet."""
        due = micros(at - self.keep)
        return await self._readers.read(
            lambda db: db.execute("SELECT count(*) FROM bin WHERE at <= ?", (due,)).fetchone()[0]
        )

    async def _select(self, where: str, *values: str | int) -> list[Binned]:
        def work(db: Connection) -> list[Binned]:
            rows = db.execute(f"SELECT {_COLUMNS} FROM bin WHERE {where}", values)  # noqa: S608 - literals
            return [_read(row) for row in rows]

        return await self._readers.read(work)


def _read(row: tuple[str, int, str, str, str, str, str, str]) -> Binned:
    id_, at, actor, why, kinds, asked, ids, content = row
    lists = (tuple(json.loads(kinds)), tuple(json.loads(asked)), tuple(json.loads(ids)))
    return Binned(id_, from_micros(at), actor, why, *lists, content)


def any_overdue(db: Connection, due: datetime) -> bool:
    """Tell whether the bin holds rows that were forgotten at ``due`` or before."""
    statement = "SELECT 1 FROM bin WHERE at <= ? LIMIT 1"
    return db.execute(statement, (micros(due),)).fetchone() is not None


def has_overdue(path: Path, keep: timedelta, at: datetime) -> bool:
    """Tell whether a ``memory.db`` that nobody has open holds rows of the bin that can no longer be restored."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            return any_overdue(db, at - keep)
    except sqlite3.Error:  # what is wrong with it, whoever opens it says
        return False
