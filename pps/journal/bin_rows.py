"""The recycle bin: each soft forgetting is one row that holds everything it removed.

No other module reads the table, so no query has to leave its content out. ``_TAKEN`` is the only
list of the tables whose rows go into the bin.
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
from typing import TypeAlias, TypeVar, cast

from pps.core.errors import InvalidRequest
from pps.core.ids import is_beginning
from pps.core.sql import LIST, Connection, listed
from pps.core.time import RunningMark, from_micros, micros, precision_of, with_precision
from pps.journal import feature_tables, meta, titled_rows
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
"""Running time, in seconds, for which a row must be over its age before it is erased."""
T = TypeVar("T")
Row: TypeAlias = dict[str, str | int | float | None]
Rows: TypeAlias = dict[str, list[Row]]
"""Table → rows, column by column."""

# In the order in which rows are put back: referenced tables come first.
_TAKEN = {
    "turns": f"uuid IN {LIST}",
    "turn_tags": f"turn IN {LIST}",
    "jobs": f"turn IN {LIST}",
    "attempts": f"job IN (SELECT id FROM jobs WHERE turn IN {LIST})",  # noqa: S608 - literals
    "records": f"turn IN {LIST}",
    "turn_links": f"turn IN {LIST}",
    "versions": f"turn IN {LIST}",
    "endings": f"turn IN {LIST}",
    "fact_ties": f"""fact IN {LIST} OR holder IN {LIST} OR EXISTS (
        SELECT 1 FROM fact_ties AS broken
        WHERE broken.fact = fact_ties.fact AND broken.holder = fact_ties.holder
            AND broken.needs IN {LIST})""",  # noqa: S608 - literals
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
    "uuid",
    "turn",
    "node",
    "record",
    "source",
    "target",
    "kept",
    "gone",
    "job",
    "holder",
    "needs",
    "slug",
)
"""Columns with the ids of the items that a row is about."""
_BEGUN = "restoring"
_PROCESS_CLOCK = secrets.token_hex(8)
_COLUMNS = "id, at, actor, why, kinds, asked, ids, content"


def _process_mark() -> RunningMark:
    return RunningMark(_PROCESS_CLOCK, time.monotonic())


@dataclass(frozen=True, slots=True)
class Binned:
    """One soft forgetting: a row of the bin.

    Attributes:
        kinds: Kinds of records that an actor must be allowed to write, to restore or erase the row.
        asked: The ids that this forgetting was called for. Only this row brings them back; another
            row that needs one of them cannot be restored before it.
        ids: The ids of all items that the row has any data of.
        content: JSON; only ``ingest`` reads it.
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
    turn_list = listed(turns)
    node_list = listed(nodes)
    fact_list = listed(facts)
    values = {
        **dict.fromkeys(_OF_TURNS, (turn_list,)),
        "fact_ties": (fact_list, turn_list, turn_list),
        "record_relations": (node_list, node_list, fact_list),
        "merges": (node_list, node_list),
        "anchor_versions": (listed(anchors),),
    }
    taken: Rows = {}
    for table, where in _TAKEN.items():
        statement = f"SELECT * FROM {table} WHERE {where}"  # noqa: S608 - literals
        cursor = db.execute(statement, values.get(table, (node_list,)))
        names = [description[0] for description in cursor.description]
        taken[table] = [_without_group(dict(zip(names, row, strict=True))) for row in cursor]
    return taken | feature_tables.take(db, [*turns, *nodes, *facts, *of_features])


def _without_group(row: Row) -> Row:
    """Leave out the group, a column of a database of many entities: putting back adds its own."""
    return {name: value for name, value in row.items() if name != "grp"}


def put_back(db: Connection, rows: Rows, changes: Iterable[Change]) -> None:
    """Insert rows as they were, and log the changes for the indexes.

    An existing row stays. Nothing is inserted of a turn that exists again.
    """
    _put_back(db, rows)
    log_changes(db, changes)


def _put_back(db: Connection, rows: Rows) -> None:
    turn_list = listed(str(row["uuid"]) for row in rows.get("turns", ()))
    statement = f"SELECT uuid FROM turns WHERE uuid IN {LIST}"  # noqa: S608 - literals
    existing: set[object] = {uuid for (uuid,) in db.execute(statement, (turn_list,)).fetchall()}
    existing |= {row["id"] for row in rows.get("jobs", ()) if row["turn"] in existing}
    for table in _TAKEN:
        for row in rows.get(table, ()):
            if existing.isdisjoint((row.get("uuid"), row.get("turn"), row.get("job"))):
                values = row | {"state": "queued"} if row.get("state") == "running" else row
                if table == "turns" and "occurred_precision" not in row:  # kept before version 16
                    stored_at = cast("int", row["occurred_at"])
                    occurred_at = with_precision(from_micros(int(stored_at)))
                    values = values | {"occurred_precision": precision_of(occurred_at)}
                names = ", ".join(values)
                marks = ", ".join("?" * len(values))
                inserts = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - literals
                db.execute(f"{inserts} ON CONFLICT DO NOTHING", tuple(values.values()))
    # Rows that an earlier PPS put into the bin have turn and node alone.
    titled_rows.put_again(
        db, [str(row["turn"]) for row in rows.get("records", ()) if not row.get("pack")]
    )
    feature_tables.put_back(db, rows)


def without_rows(rows: Rows, gone: Collection[str]) -> Rows:
    """Return rows of the bin without those that are about an id in ``gone``."""
    ids: set[object] = {*gone, *(row["id"] for row in rows.get("jobs", ()) if row["turn"] in gone)}
    remaining: Rows = feature_tables.taken_without(rows, gone)
    for table in rows.keys() - remaining.keys():
        columns = (*_ABOUT, "id") if table == "record_relations" else _ABOUT
        remaining[table] = [
            dict(row) for row in rows[table] if ids.isdisjoint(row.get(name) for name in columns)
        ]
    return remaining


def drop_given(db: Connection, turn: str) -> bool:
    """Erase the nodes and facts that came with a saved turn from its job; the turn itself stays.

    Returns False when the turn is absent.

    Raises:
        InvalidRequest: The turn is not saved yet, so the job's payload is their only copy.
    """
    row = db.execute("SELECT state, payload, stage FROM jobs WHERE turn = ?", (turn,)).fetchone()
    if row is None:
        return False
    state, payload, stage = row
    if state in ("queued", "running") and STAGES[stage] == "save":
        raise InvalidRequest("turn", "its job has not ended yet: try again when it is done")
    db.execute("UPDATE jobs SET payload = ? WHERE turn = ?", (without_given(payload, state), turn))
    return True


def without_given(payload: str, state: str) -> str:
    """Return a job's stored payload without the nodes and facts in it; ``state`` is the job's."""
    loaded = load_payload(payload)
    may_be_read_yet = state in ("queued", "running")
    return dump_payload(
        JobPayload(
            extraction=loaded.extraction if may_be_read_yet else "none",
            record=loaded.record,
            links=loaded.links,
        )
    )


def _put_back_given(db: Connection, turn: str, payload: str, forgotten: Collection[str]) -> None:
    """Restore the payload of a turn's job: given nodes and facts, or facts that a command read.

    A command may have read facts from several turns together; ``forgotten`` are those that came
    back.
    """
    row = db.execute("SELECT payload, state FROM jobs WHERE turn = ?", (turn,)).fetchone()
    if row is None:
        return
    stored, state = row
    before = load_payload(payload)
    current = load_payload(stored)
    if stored == without_given(payload, state):
        db.execute("UPDATE jobs SET payload = ? WHERE turn = ?", (payload, turn))
    elif current == without_needing(before, forgotten):  # queued to be read again: no longer needed
        db.execute(
            """UPDATE jobs SET payload = ?,
                state = CASE WHEN state = 'queued' AND stage = 1 THEN 'done' ELSE state END
                WHERE turn = ?""",
            (payload, turn),
        )
    elif before.read and current.read:  # read again meanwhile: add the facts that needed the others
        remaining = without_needing(before, forgotten).read
        facts = [fact for fact in before.read.facts if remaining and fact not in remaining.facts]
        read = replace(current.read, facts=(*current.read.facts, *facts))
        db.execute(
            "UPDATE jobs SET payload = ? WHERE turn = ?",
            (dump_payload(replace(current, read=read)), turn),
        )


def rewrite(db: Connection, rows: Iterable[Binned]) -> None:
    """Replace rows of the bin by these; a row without content is only erased."""
    for row in rows:
        db.execute("DELETE FROM bin WHERE id = ?", (row.id,))
        if row.content:
            values = (
                row.id,
                micros(row.at),
                row.actor,
                row.why,
                json.dumps(row.kinds, ensure_ascii=False),
                json.dumps(row.asked, ensure_ascii=False),
                json.dumps(row.ids, ensure_ascii=False),
                row.content,
            )
            marks = ", ".join("?" * len(values))
            db.execute(f"INSERT INTO bin ({_COLUMNS}) VALUES ({marks})", values)  # noqa: S608


class Bin:
    """The recycle bin of one memory; errors and durability as for ``Journal``.

    Attributes:
        keep: How long a row can be restored. The opener of the journal sets it.
        running: Returns the running time, which decides when a row over its age is erased. The
            opener of the journal sets a clock that adds up over restarts.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self.keep = timedelta(days=30)
        self.running: Callable[[], RunningMark] = _process_mark

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction; deleted data is overwritten on disk."""
        return await self._writer.write(work, secure=True)

    async def rewrite(self, rows: Sequence[Binned]) -> None:
        """Replace rows of the bin; see the function ``rewrite``."""
        await self.write(lambda db: rewrite(db, rows))

    async def take(
        self,
        turns: Sequence[str],
        nodes: Sequence[str],
        facts: Sequence[str],
        of_features: Sequence[str] = (),
        anchors: Sequence[str] = (),
    ) -> Rows:
        """Return all rows that are erased when the given items are forgotten.

        ``of_features`` are ids of features' rows, ``anchors`` are slugs.
        """
        return await self._readers.read(
            lambda db: _take(db, turns, nodes, facts, of_features, anchors)
        )

    async def begin(self, id: str) -> None:
        """Note the row that is being put back from now on."""
        await self._writer.write(lambda db: meta.put(db, _BEGUN, id))

    async def begun(self) -> Binned | None:
        """Return the row that is being put back; None when there is none."""
        id_ = await self._readers.read(lambda db: meta.get(db, _BEGUN))
        rows = await self._select("id = ?", id_) if id_ else []
        return rows[0] if rows else None

    async def end(
        self,
        id: str,
        rows: Rows,
        back: Collection[str],
        given: Mapping[str, str],
        others: Sequence[Binned],
        forgotten: Collection[str],
    ) -> None:
        """Finish putting back a row of the bin: restore cites and payloads, and drop the row.

        Args:
            id: The row of the bin.
            rows: The rows that were put back.
            back: Ids that exist again; cites of them are no longer gone.
            given: Turn → its job's payload, restored unless nodes or facts were taken from it
                since.
            others: Rows of the bin that changed too.
            forgotten: The turns that came back.
        """
        records = listed(str(row["node"]) for row in rows.get("records", ()))

        def work(db: Connection) -> None:
            cited = [str(row["id"]) for row in rows.get("record_cites", ())]
            existing = listed([*RecordRows(db).cited(cited), *back])
            db.execute(
                f"""UPDATE record_cites SET gone = CASE WHEN id IN {LIST} THEN 0 ELSE 1 END
                    WHERE id IN {LIST} OR record IN {LIST}""",  # noqa: S608 - literals
                (existing, listed(back), records),
            )
            for turn, payload in given.items():
                _put_back_given(db, turn, payload, forgotten)
            rewrite(db, others)
            db.execute("DELETE FROM bin WHERE id = ?", (id,))
            meta.put(db, _BEGUN, "")

        await self.write(work)

    async def given(self, turns: Iterable[str]) -> dict[str, str]:
        """Return turn → the payload of its job, as it is stored."""
        statement = f"SELECT turn, payload FROM jobs WHERE turn IN {LIST}"  # noqa: S608 - literals
        return await self._readers.read(
            lambda db: dict(db.execute(statement, (listed(turns),)).fetchall())
        )

    async def list(self, at: datetime) -> list[Binned]:
        """Return the rows that can be restored at a time, latest first."""
        return await self._select("at > ? ORDER BY at DESC, id", micros(at - self.keep))

    async def get(self, id: str, at: datetime) -> list[Binned]:
        """Return the rows that can be restored whose id is ``id``, or begins with it."""
        if is_beginning(id):
            return await self._select(
                "at > ? AND id >= ? AND id < ? || 'g'", micros(at - self.keep), id, id
            )
        return await self._select("at > ? AND id = ?", micros(at - self.keep), id)

    async def holding(self, ids: Iterable[str]) -> list[Binned]:
        """Return the rows that have one of the ids, or hold data of an item of that id."""
        id_list = listed(ids)
        return await self._select(
            f"""id IN {LIST}
                OR EXISTS (SELECT 1 FROM json_each(bin.ids) WHERE value IN {LIST})
                ORDER BY at""",  # noqa: S608 - literals
            id_list,
            id_list,
        )

    async def expire(self, at: datetime) -> int:
        """Erase the rows that could not be restored any more for a day of running time.

        Returns the number of rows. A clock that jumps ahead and is corrected within a day of
        running time erases nothing.
        """
        due = micros(at - self.keep)
        mark = self.running()

        def has_work(db: Connection) -> bool:
            row = db.execute(
                "SELECT 1 FROM bin WHERE at <= ? OR seen_clock <> '' LIMIT 1", (due,)
            ).fetchone()
            return row is not None

        def work(db: Connection) -> int:
            db.execute("UPDATE bin SET seen_clock = '', seen_s = 0 WHERE at > ?", (due,))
            db.execute(
                """UPDATE bin SET seen_clock = ?, seen_s = ?
                    WHERE at <= ? AND (seen_clock <> ? OR seen_s > ?)""",
                (mark.clock, mark.seconds, due, mark.clock, mark.seconds),
            )
            return db.execute(
                "DELETE FROM bin WHERE at <= ? AND seen_clock = ? AND seen_s <= ?",
                (due, mark.clock, mark.seconds - ERASE_AFTER_S),
            ).rowcount

        return await self.write(work) if await self._readers.read(has_work) else 0

    async def overdue(self, at: datetime) -> int:
        """Return the number of rows that can no longer be restored and are not erased yet."""
        due = micros(at - self.keep)
        return await self._readers.read(
            lambda db: db.execute("SELECT count(*) FROM bin WHERE at <= ?", (due,)).fetchone()[0]
        )

    async def _select(self, where: str, *values: str | int) -> list[Binned]:
        def work(db: Connection) -> list[Binned]:
            rows = db.execute(f"SELECT {_COLUMNS} FROM bin WHERE {where}", values)  # noqa: S608
            return [_binned(row) for row in rows]

        return await self._readers.read(work)


def _binned(row: tuple[str, int, str, str, str, str, str, str]) -> Binned:
    id_, at, actor, why, kinds, asked, ids, content = row
    return Binned(
        id=id_,
        at=from_micros(at),
        actor=actor,
        why=why,
        kinds=tuple(json.loads(kinds)),
        asked=tuple(json.loads(asked)),
        ids=tuple(json.loads(ids)),
        content=content,
    )


def any_overdue(db: Connection, due: datetime) -> bool:
    """Tell whether the bin holds rows that were forgotten at ``due`` or before."""
    statement = "SELECT 1 FROM bin WHERE at <= ? LIMIT 1"
    return db.execute(statement, (micros(due),)).fetchone() is not None


def has_overdue(path: Path, keep: timedelta, at: datetime) -> bool:
    """Tell whether the bin of a ``memory.db`` that is not open holds rows past their time.

    False for a file that cannot be read: opening it reports the error.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            return any_overdue(db, at - keep)
    except sqlite3.Error:
        return False
