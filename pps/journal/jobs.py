"""Jobs: the work that each turn still causes, in the order of the turns."""

from __future__ import annotations

import sqlite3
from typing import TypeAlias, cast

from pps.core.errors import InvalidRequest, NotFound
from pps.journal.turns import TURN_COLUMNS, TurnRow, read_turn
from pps.journal.values import (
    Job,
    JobPayload,
    JobResult,
    JobState,
    dump_payload,
    dump_result,
    load_payload,
    load_result,
)

_JOB_COLUMNS = f"jobs.id, jobs.state, jobs.attempts, jobs.error, jobs.payload, jobs.result, {TURN_COLUMNS}"
_JobRow: TypeAlias = tuple[int, str, int, str, str, str | None]
_MAX_ERROR = 2_000


def add(connection: sqlite3.Connection, turn_uuid: str, payload: str) -> int:
    """Store the job of a new turn and return its id."""
    cursor = connection.execute("INSERT INTO jobs (turn, payload) VALUES (?, ?)", (turn_uuid, payload))
    return cursor.lastrowid or 0


def of_turn(connection: sqlite3.Connection, turn_uuid: str) -> int:
    """Return the id of a turn's job; every turn has one."""
    (number,) = connection.execute("SELECT id FROM jobs WHERE turn = ?", (turn_uuid,)).fetchone()
    return number


def take(connection: sqlite3.Connection) -> Job | None:
    """Mark the oldest job that is neither done nor parked as running, and return it.

    A job left running by a crash comes first again: its ``attempts`` has counted the crash.
    """
    found = connection.execute(
        "SELECT id FROM jobs WHERE state IN ('queued', 'running') ORDER BY id LIMIT 1"
    ).fetchone()
    if found is None:
        return None
    connection.execute("UPDATE jobs SET state = 'running', attempts = attempts + 1 WHERE id = ?", found)
    return get(connection, found[0])


def take_many(connection: sqlite3.Connection, limit: int) -> list[Job]:
    """Mark the oldest jobs that are neither done nor parked as running, and return them in order."""
    found = connection.execute(
        "SELECT id FROM jobs WHERE state IN ('queued', 'running') ORDER BY id LIMIT ?", (limit,)
    ).fetchall()
    connection.executemany("UPDATE jobs SET state = 'running', attempts = attempts + 1 WHERE id = ?", found)
    if not found:
        return []
    return _select(
        connection,
        "WHERE jobs.state = 'running' AND jobs.id BETWEEN ? AND ? ORDER BY jobs.id",
        (found[0][0], found[-1][0]),
    )


def get(connection: sqlite3.Connection, job_id: int) -> Job | None:
    """Return a job, or None when there is none of that id."""
    jobs = _select(connection, "WHERE jobs.id = ?", (job_id,))
    return jobs[0] if jobs else None


def finish(connection: sqlite3.Connection, job_id: int, result: JobResult) -> bool:
    """Mark a job as done; False when its turn was forgotten meanwhile."""
    cursor = connection.execute(
        "UPDATE jobs SET state = 'done', error = '', result = ? WHERE id = ?", (dump_result(result), job_id)
    )
    return cursor.rowcount > 0


def fail(connection: sqlite3.Connection, job_id: int, error: str, *, retryable: bool) -> bool:
    """Put a job back into the queue, or park it; False when its turn was forgotten meanwhile."""
    state: JobState = "queued" if retryable else "failed"
    cursor = connection.execute(
        "UPDATE jobs SET state = ?, error = ? WHERE id = ?", (state, error[:_MAX_ERROR], job_id)
    )
    return cursor.rowcount > 0


def retry(connection: sqlite3.Connection, job_id: int) -> None:
    """Queue a parked job again; NotFound when no job of that id is parked."""
    cursor = connection.execute(
        "UPDATE jobs SET state = 'queued', attempts = 0 WHERE id = ? AND state = 'failed'", (job_id,)
    )
    if not cursor.rowcount:
        raise NotFound("parked job")


def in_state(connection: sqlite3.Connection, state: JobState, after: int, limit: int) -> list[Job]:
    """Return jobs of one state, oldest first, with ids above ``after``."""
    return _select(
        connection,
        "WHERE jobs.state = ? AND jobs.id > ? ORDER BY jobs.id LIMIT ?",
        (state, after, limit),
    )


def unfinished(connection: sqlite3.Connection) -> int:
    """Return how many jobs are queued or running; parked ones do not count."""
    (number,) = connection.execute("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')").fetchone()
    return number


def counts(connection: sqlite3.Connection) -> dict[JobState, int]:
    """Return how many jobs are in each state, zeros included."""
    states: dict[JobState, int] = {"queued": 0, "running": 0, "done": 0, "failed": 0}
    for state, number in connection.execute("SELECT state, count(*) FROM jobs GROUP BY state"):
        states[cast("JobState", state)] = number
    return states


def drop_payload(connection: sqlite3.Connection, turn_uuid: str) -> bool:
    """Overwrite what was given with a turn whose job has ended; the turn itself stays.

    Raises:
        InvalidRequest: The job has not run yet, so the payload is still the only copy.
    """
    found = connection.execute("SELECT id, state FROM jobs WHERE turn = ?", (turn_uuid,)).fetchone()
    if found is None:
        return False
    if found[1] in ("queued", "running"):
        raise InvalidRequest("turn", "its job has not ended yet: try again when it is done")
    empty = dump_payload(JobPayload(extraction="none"))
    connection.execute("UPDATE jobs SET payload = ? WHERE id = ?", (empty, found[0]))
    return True


def _select(connection: sqlite3.Connection, rest: str, parameters: tuple[str | int, ...]) -> list[Job]:
    # `rest` is always a literal of this module; values are bound.
    statement = f"SELECT {_JOB_COLUMNS} FROM jobs JOIN turns ON turns.uuid = jobs.turn {rest}"  # noqa: S608
    return [
        _read(cast("_JobRow", row[:6]), cast("TurnRow", row[6:])) for row in connection.execute(statement, parameters)
    ]


def _read(row: _JobRow, turn: TurnRow) -> Job:
    number, state, attempts, error, payload, result = row
    return Job(
        id=number,
        turn=read_turn(turn),
        payload=load_payload(payload),
        state=cast("JobState", state),
        attempts=attempts,
        error=error,
        result=None if result is None else load_result(result),
    )
