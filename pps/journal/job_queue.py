"""The queue of one entity's jobs: taken in order, tried, put back, parked, given another chance.

A job is the work that a turn still causes; every attempt at it is written down.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest, NotFound
from pps.core.sql import listed
from pps.core.time import micros, now
from pps.journal import job_rows, projection
from pps.journal.entries import (
    Attempt,
    Charge,
    Job,
    JobPayload,
    JobResult,
    JobState,
    QueueState,
    Readings,
    Stage,
    dump_payload,
    dump_result,
    load_payload,
)
from pps.journal.job_rows import OPEN, STAGES, due_at, select, selected, unread_ids
from pps.journal.reader import Readers
from pps.journal.writer import Writer

MAX_JOBS = 10_000
"""Most jobs that one call returns."""
_MAX_ERROR = 2_000
_MOST_HALVINGS = 4


class JobQueue:
    """The jobs of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def take(self, stage: Stage, limit: int, at: datetime) -> list[Job]:
        """Return up to ``limit`` of a stage's first unfinished jobs, marked as running.

        Nothing when the first of them is not due at ``at``: later jobs never overtake it.
        """
        check_range("limit", limit, 1, MAX_JOBS)
        span = await self._writer.write(partial(_claim, stage=stage, limit=limit, at=at))
        if span is None:
            return []
        # Read beside the writer: acknowledgements would wait while thousands of facts are parsed.
        return await self._readers.read(partial(_claimed, stage=stage, first=span[0], last=span[1]))

    async def after(self, stage: Stage, job_id: int, limit: int, facts: int) -> list[Job]:
        """Return up to ``limit`` of a stage's unfinished jobs that come after ``job_id``; they stay as they are.

        The job whose given facts make the number ``facts`` full is the last.
        """
        check_range("limit", limit, 1, MAX_JOBS)
        return await self._readers.read(partial(_after, stage=stage, job_id=job_id, limit=limit, facts=facts))

    async def due_at(self, stage: Stage) -> datetime | None:
        """Return when a stage's first unfinished job may be tried, which may be past; None when there is none."""
        return await self._readers.read(partial(job_rows.due_at, stage=stage))

    async def charge(self, job_id: int, taken: Charge) -> None:
        """Add to what the attempt in hand has cost, while it runs."""
        await self._writer.write(partial(_charge, job_id=job_id, taken=taken))

    async def end(self, saved: Sequence[tuple[int, JobResult]], done: Sequence[tuple[int, JobResult]]) -> None:
        """Move jobs on to be read by a model, and mark others as done, in one transaction."""
        await self._writer.write(lambda db: (_saved(db, saved), _finish(db, done)))

    async def finish(self, results: Sequence[tuple[int, JobResult]]) -> int:
        """Mark jobs as done; those whose turn was forgotten meanwhile are passed over. Return how many were."""
        return await self._writer.write(partial(_finish, results=results))

    async def give(self, found: Sequence[tuple[int, JobPayload]]) -> bool:
        """Give jobs what a command has read in their turns; False when one of them changed or went meanwhile."""
        return await self._writer.write(partial(_give, found=found))

    async def put_back(self, job_ids: Sequence[int], until: datetime | None = None) -> None:
        """Queue jobs again that were taken and not tried; they are not tried before ``until``."""
        await self._writer.write(partial(_put_back, job_ids=job_ids, until=until))

    async def due(self) -> None:
        """Let jobs that were put off without having failed be tried at once: what they waited for may be there."""
        await self._writer.write(_due)

    async def fail(self, job_id: int, code: str, error: str, next_at: datetime | None) -> bool:
        """Note a failed attempt; try again at ``next_at``, or park the job when that is None.

        Returns False when its turn was forgotten while it ran.
        """
        return await self._writer.write(partial(_fail, job_id=job_id, code=code, error=error, next_at=next_at))

    async def retry(self, job_ids: Sequence[int] | None = None) -> list[int]:
        """Queue ended jobs again, from the beginning; None takes every parked one. Return which.

        Raises:
            NotFound: One of them is not there, or in the queue already; nothing was changed.
        """
        return await self._writer.write(partial(_retry, job_ids=job_ids))

    async def unread(self, since: datetime | None = None) -> tuple[int, int]:
        """Return how many turns said since a moment nothing has read for facts, and their characters."""
        return await self._readers.read(partial(job_rows.unread, since=since))

    async def read_later(self, since: datetime | None, limit: int) -> list[int]:
        """Queue the first of those turns to be read by a command; return their jobs."""
        return await self._writer.write(partial(_read_later, since=since, limit=limit))

    async def readings(self, first: int = 0, last: int = 1 << 62) -> Readings:
        """Return what a command has made of the turns of some jobs; of all, when no bounds are given."""
        return await self._readers.read(partial(job_rows.readings, first=first, last=last))

    async def replay(self) -> None:
        """Queue every job again whose turn was saved; drop what only a lost graph knew: projection, merges."""
        await self._writer.write(lambda db: (_replay(db), projection.clear(db), db.execute("DELETE FROM merges")))

    async def drop(self, job_ids: Sequence[int] | None = None) -> list[int]:
        """Give parked or waiting jobs up; None takes every parked one. Their turns stay in the journal. Return which.

        Raises:
            NotFound: One of them is not there, or is being worked on or done; nothing was changed.
        """
        return await self._writer.write(partial(_drop, job_ids=job_ids))

    async def job(self, job_id: int) -> Job | None:
        """Return a job, or None when this entity has none of that id."""
        return await self._readers.read(partial(job_rows.get, job_id=job_id))

    async def of_turn(self, turn_uuid: str) -> Job | None:
        """Return the job of a turn, or None when this entity has no such turn."""
        return await self._readers.read(partial(job_rows.get_of_turn, turn_uuid=turn_uuid))

    async def list(self, state: JobState | None = None, *, after: int = 0, limit: int = 100) -> list[Job]:
        """Return jobs of a state (None: unfinished and parked ones) with ids above ``after``, oldest first."""
        check_range("limit", limit, 1, MAX_JOBS)
        return await self._readers.read(partial(job_rows.in_state, state=state, after=after, limit=limit))

    async def attempts(self, job_id: int) -> list[Attempt]:
        """Return the attempts at a job that came to an end, oldest first."""
        return await self._readers.read(partial(job_rows.attempts, job_id=job_id))

    async def state(self, since: datetime) -> QueueState:
        """Return how the queue stands, with what was attempted since a moment."""
        return await self._readers.read(partial(job_rows.state, since=since))

    async def turns_in(self, state: JobState) -> set[str]:
        """Return the turns whose jobs are in a state."""
        return set(await self._readers.read(partial(job_rows.turns_in, wanted=state)))


def add(connection: sqlite3.Connection, turn_uuid: str, payload: str) -> int:
    """Store the job of a new turn and return its id."""
    cursor = connection.execute(
        "INSERT INTO jobs (turn, payload, queued_at) VALUES (?, ?, ?)", (turn_uuid, payload, micros(now()))
    )
    return cursor.lastrowid or 0


def of_turn(connection: sqlite3.Connection, turn_uuid: str) -> int:
    """Return the id of a turn's job; every turn has one."""
    (number,) = connection.execute("SELECT id FROM jobs WHERE turn = ?", (turn_uuid,)).fetchone()
    return number


def _claim(connection: sqlite3.Connection, stage: Stage, limit: int, at: datetime) -> tuple[int, int] | None:
    """Mark the first unfinished jobs of a stage as running; return the ids of the first and the last of them, if any.

    The order is the contract: while the first one waits for its next attempt, none is taken. A job left
    running by a crash comes first again, with half as many others each time, so that a process that is
    killed again and again still gets somewhere.
    """
    due = due_at(connection, stage)
    if due is None or due > at:
        return None
    number = STAGES.index(stage)
    limit = max(1, limit >> min(_cut_short(connection, number), _MOST_HALVINGS))
    found = connection.execute(
        f"SELECT id FROM jobs WHERE stage = ? AND {OPEN} ORDER BY id LIMIT ?",  # noqa: S608 - constants
        (number, limit),
    ).fetchall()
    began = micros(now())
    connection.execute(
        """UPDATE jobs SET state = 'running', attempts = attempts + 1, began_at = ?
            WHERE id IN (SELECT value FROM json_each(?))""",
        (began, listed(one for (one,) in found)),
    )
    return found[0][0], found[-1][0]


def _claimed(connection: sqlite3.Connection, stage: Stage, first: int, last: int) -> list[Job]:
    """Return the jobs that ``claim`` has just marked, in order."""
    return select(
        connection,
        "WHERE jobs.state = 'running' AND jobs.stage = ? AND jobs.id BETWEEN ? AND ? ORDER BY jobs.id",
        (STAGES.index(stage), first, last),
    )


def _after(connection: sqlite3.Connection, stage: Stage, job_id: int, limit: int, facts: int) -> list[Job]:
    found: list[Job] = []
    for job in selected(
        connection,
        f"WHERE jobs.stage = ? AND jobs.id > ? AND jobs.{OPEN} ORDER BY jobs.id LIMIT ?",
        (STAGES.index(stage), job_id, limit),
    ):
        found.append(job)
        facts -= len(job.payload.facts)
        if facts <= 0:
            break
    return found


def _cut_short(connection: sqlite3.Connection, stage: int) -> int:
    """Return how often the first unfinished job of a stage was started without coming to an end."""
    (state, attempts, failures) = connection.execute(
        f"SELECT state, attempts, failures FROM jobs WHERE stage = ? AND {OPEN} ORDER BY id LIMIT 1",  # noqa: S608
        (stage,),
    ).fetchone()
    return max(0, attempts - failures) if state == "running" else 0


def _charge(connection: sqlite3.Connection, job_id: int, taken: Charge) -> None:
    connection.execute(
        "UPDATE jobs SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ?, cost_micros = cost_micros + ? "
        "WHERE id = ?",
        (taken.tokens_in, taken.tokens_out, taken.cost_micros, job_id),
    )


def _saved(connection: sqlite3.Connection, results: Sequence[tuple[int, JobResult]]) -> None:
    """Move jobs on to the second stage, with what the first one made."""
    _note(connection, [number for number, _ in results], "done")
    _ended_well(connection, "state = 'queued', stage = 1", results)


def _finish(connection: sqlite3.Connection, results: Sequence[tuple[int, JobResult]]) -> int:
    _note(connection, [number for number, _ in results], "done")
    return _ended_well(connection, "state = 'done'", results)


def _give(connection: sqlite3.Connection, found: Sequence[tuple[int, JobPayload]]) -> bool:
    """Give jobs what a command has read in their turns, and let them be saved once more.

    False, and nothing is changed, when one of them is not in the reading's hands any more: its turn was forgotten or
    changed meanwhile, and what was read may hold its words.
    """
    ids = [number for number, _ in found]
    (still,) = connection.execute(
        "SELECT count(*) FROM jobs WHERE id IN (SELECT value FROM json_each(?)) AND state = 'running' AND stage = 1",
        (listed(ids),),
    ).fetchone()
    if still < len(ids):
        return False
    _note(connection, ids, "done")
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, code = '', error = '', next_at = 0,
            first_failed_at = 0, payload = ? WHERE id = ?""",
        [(dump_payload(payload), number) for number, payload in found],
    )
    return True


def _put_back(connection: sqlite3.Connection, job_ids: Sequence[int], until: datetime | None = None) -> None:
    """Queue jobs again whose attempt together came to nothing through no fault of theirs; not before ``until``.

    With a moment to wait for, earlier failures count no more: what is put off on purpose has none.
    """
    connection.execute(
        """UPDATE jobs SET state = 'queued', next_at = ?1, failures = iif(?1, 0, failures),
            first_failed_at = iif(?1, 0, first_failed_at)
            WHERE id IN (SELECT value FROM json_each(?2)) AND state = 'running'""",
        (micros(until) if until else 0, listed(job_ids)),
    )


def _due(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE jobs SET next_at = 0 WHERE state = 'queued' AND failures = 0 AND next_at > 0")


def _fail(connection: sqlite3.Connection, job_id: int, code: str, error: str, next_at: datetime | None) -> bool:
    """Queue a job for its next attempt, or park it when there is to be none; False when it is gone."""
    state: JobState = "queued" if next_at else "failed"
    _note(connection, [job_id], "again" if next_at else "failed", code, error[:_MAX_ERROR])
    moment = micros(now())
    cursor = connection.execute(
        """UPDATE jobs SET state = ?, failures = failures + 1, code = ?, error = ?, next_at = ?,
            first_failed_at = CASE first_failed_at WHEN 0 THEN ? ELSE first_failed_at END WHERE id = ?""",
        (state, code, error[:_MAX_ERROR], micros(next_at) if next_at else 0, moment, job_id),
    )
    return cursor.rowcount > 0


def _retry(connection: sqlite3.Connection, job_ids: Sequence[int] | None) -> list[int]:
    wanted = _ended(connection, job_ids, ("failed", "dropped", "done"))
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE id = ?""",
        [(micros(now()), one) for one in wanted],
    )
    return wanted


def _read_later(connection: sqlite3.Connection, since: datetime | None, limit: int) -> list[int]:
    """Queue the first turns that nothing has read, said since a moment, to be read by a command; return their jobs."""
    wanted = unread_ids(connection, since, limit)
    connection.execute(
        """UPDATE jobs SET state = 'queued', stage = 1, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE id IN (SELECT value FROM json_each(?))""",
        (micros(now()), listed(wanted)),
    )
    return wanted


def _replay(connection: sqlite3.Connection) -> None:
    """Queue all jobs again that were saved once, from their first stage; no relation is in the graph any more."""
    connection.execute("UPDATE record_relations SET pending = pending + 1")
    connection.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE state = 'done' OR stage = 1""",
        (micros(now()),),
    )


def _drop(connection: sqlite3.Connection, job_ids: Sequence[int] | None) -> list[int]:
    wanted = _ended(connection, job_ids, ("failed", "queued"))
    connection.executemany("UPDATE jobs SET state = 'dropped' WHERE id = ?", [(one,) for one in wanted])
    return wanted


def drop_payload(connection: sqlite3.Connection, turn_uuid: str) -> bool:
    """Overwrite what was given with a turn that is saved; the turn itself stays.

    Raises:
        InvalidRequest: It is not saved yet, so the payload is still the only copy.
    """
    found = connection.execute("SELECT id, state, payload, stage FROM jobs WHERE turn = ?", (turn_uuid,)).fetchone()
    if found is None:
        return False
    _, state, payload, stage = found
    if state in ("queued", "running") and STAGES[stage] == "save":
        raise InvalidRequest("turn", "its job has not ended yet: try again when it is done")
    kept = load_payload(payload)
    extraction = kept.extraction if state in ("queued", "running") else "none"  # a model may have yet to read it
    empty = dump_payload(JobPayload(extraction=extraction, record=kept.record, links=kept.links))
    connection.execute("UPDATE jobs SET payload = ? WHERE id = ?", (empty, found[0]))
    return True


def _ended_well(connection: sqlite3.Connection, change: str, results: Sequence[tuple[int, JobResult]]) -> int:
    """Change jobs and note their results; return how many there were."""
    return connection.execute(
        f"""UPDATE jobs SET {change}, failures = 0, code = '', error = '', next_at = 0, first_failed_at = 0,
            result = json_extract(given.value, '$[1]')
            FROM json_each(?) AS given WHERE jobs.id = json_extract(given.value, '$[0]')""",  # noqa: S608 - a constant
        (json.dumps([(number, dump_result(result)) for number, result in results]),),
    ).rowcount


def _note(
    connection: sqlite3.Connection, job_ids: Sequence[int], outcome: str, code: str = "", error: str = ""
) -> None:
    """Write the end of the attempts in hand; what they cost moves from the jobs to them."""
    connection.execute(
        """INSERT INTO attempts (job, stage, outcome, began_at, ended_at, code, error, tokens_in, tokens_out,
            cost_micros) SELECT id, stage, ?, began_at, ?, ?, ?, tokens_in, tokens_out, cost_micros
            FROM jobs WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id""",
        (outcome, micros(now()), code, error, listed(job_ids)),
    )
    connection.execute(
        """UPDATE jobs SET tokens_in = 0, tokens_out = 0, cost_micros = 0
            WHERE id IN (SELECT value FROM json_each(?)) AND tokens_in + cost_micros > 0""",
        (listed(job_ids),),
    )


def _ended(connection: sqlite3.Connection, job_ids: Sequence[int] | None, states: Sequence[JobState]) -> list[int]:
    if job_ids is None:
        return [one for (one,) in connection.execute("SELECT id FROM jobs WHERE state = 'failed' ORDER BY id")]
    wanted = sorted(set(job_ids))
    found = connection.execute(
        """SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?))
            AND state IN (SELECT value FROM json_each(?)) ORDER BY id""",
        (listed(wanted), listed(states)),
    ).fetchall()
    if len(found) != len(wanted):
        numbers = ", ".join(str(one) for one in sorted(set(wanted) - {one for (one,) in found})[:5])
        raise NotFound(f"job {numbers} in state {' or '.join(states)}")
    return wanted
