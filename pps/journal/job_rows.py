"""Reading jobs: their rows, the attempts at them, and the state of the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

from pps.core.reports import AttemptReport
from pps.core.sql import Connection, listed
from pps.core.time import from_micros, micros, now
from pps.core.values import Skipped
from pps.journal.entries import (
    MICROS,
    Charge,
    Job,
    JobResult,
    JobState,
    QueueState,
    Readings,
    Stage,
    load_payload,
    load_result,
)
from pps.journal.turns import TURN_COLUMNS, TurnRow, read_turn

_JOB_COLUMNS = """jobs.id, jobs.state, jobs.stage, jobs.attempts, jobs.failures, jobs.code,
    jobs.error, jobs.queued_at, jobs.next_at, jobs.first_failed_at, jobs.payload, jobs.result"""
_WIDTH = 12
_JobRow: TypeAlias = tuple[int, str, int, int, int, str, str, int, int, int, str, str | None]
OPEN = "state IN ('queued', 'running')"
STAGES: tuple[Stage, ...] = ("save", "read")
"""The stages by the numbers in the column ``stage``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a turn's job.

    Attributes:
        error: Of the last attempt; empty for none.
        record: The node of the record that the turn is the source of; empty for none.
        skipped: The given items that the job left out.
    """

    job: int
    state: JobState
    error: str
    record: str
    skipped: tuple[Skipped, ...]


def due_at(connection: Connection, stage: Stage) -> datetime | None:
    """Return when a stage's first unfinished job is due, past or future; None without a job."""
    row = connection.execute(
        f"SELECT next_at FROM jobs WHERE stage = ? AND {OPEN} ORDER BY id LIMIT 1",  # noqa: S608
        (STAGES.index(stage),),
    ).fetchone()
    return None if row is None else from_micros(row[0])


def get(connection: Connection, job_id: int) -> Job | None:
    """Return a job, or None when it is absent."""
    jobs = select(connection, "WHERE jobs.id = ?", (job_id,))
    return jobs[0] if jobs else None


def get_of_turn(connection: Connection, turn_uuid: str) -> Job | None:
    """Return the job of a turn, or None when there is no such turn."""
    jobs = select(connection, "WHERE jobs.turn = ?", (turn_uuid,))
    return jobs[0] if jobs else None


def outcomes(connection: Connection, turns: Sequence[str]) -> dict[str, Outcome]:
    """Return turn → the state of its job; absent turns are left out."""
    rows = connection.execute(
        """SELECT turn, id, state, error, result FROM jobs
            WHERE turn IN (SELECT value FROM json_each(?))""",
        (listed(turns),),
    )
    outcomes: dict[str, Outcome] = {}
    for turn, job, state, error, stored in rows:
        result = load_result(stored) if stored else JobResult()
        outcomes[turn] = Outcome(job, state, error, result.record, result.skipped)
    return outcomes


def in_state(connection: Connection, state: JobState | None, after: int, limit: int) -> list[Job]:
    """Return jobs in a state with ids above ``after``, oldest first; None: open or parked."""
    if state is None:
        return select(
            connection,
            """WHERE jobs.state IN ('queued', 'running', 'failed') AND jobs.id > ?
                ORDER BY jobs.id LIMIT ?""",
            (after, limit),
        )
    return select(
        connection,
        "WHERE jobs.state = ? AND jobs.id > ? ORDER BY jobs.id LIMIT ?",
        (state, after, limit),
    )


def attempts(connection: Connection, job_id: int) -> list[AttemptReport]:
    """Return the ended attempts at a job, oldest first."""
    rows = connection.execute(
        """SELECT stage, outcome, began_at, ended_at, code, error, tokens_in, tokens_out,
            cost_micros
            FROM attempts WHERE job = ? ORDER BY seq""",
        (job_id,),
    )
    return [
        AttemptReport(
            STAGES[int(stage)],
            end,
            from_micros(began),
            from_micros(ended),
            code,
            error,
            used,
            made,
            cost / MICROS,
        )
        for stage, end, began, ended, code, error, used, made, cost in rows
    ]


def state(connection: Connection, since: datetime) -> QueueState:
    """Return the state of the queue, with attempts and charges that ended since a time."""
    counts: dict[JobState, int] = {"queued": 0, "running": 0, "done": 0, "failed": 0, "dropped": 0}
    for name, number in connection.execute("SELECT state, count(*) FROM jobs GROUP BY state"):
        counts[cast("JobState", name)] = number
    (oldest,) = connection.execute(
        # A job that waits without a failure was put off on purpose, with its whole stage: until a
        # new day's budget.
        f"""SELECT min(queued_at) FROM jobs WHERE {OPEN} AND stage NOT IN (
            SELECT stage FROM jobs WHERE {OPEN} AND failures = 0 AND next_at > ?)""",  # noqa: S608
        (micros(now()),),
    ).fetchone()
    (moved,) = connection.execute(
        "SELECT max(ended_at) FROM attempts WHERE outcome != 'again'"
    ).fetchone()
    row = connection.execute(
        """SELECT count(*), count(*) FILTER (WHERE outcome != 'done'), coalesce(sum(tokens_in), 0),
            coalesce(sum(tokens_out), 0), coalesce(sum(cost_micros), 0)
            FROM attempts WHERE ended_at >= ?""",
        (micros(since),),
    ).fetchone()
    (tried, failing) = connection.execute(
        # Each job's last outcome.
        """WITH latest AS (
                SELECT seq, job, outcome FROM attempts WHERE ended_at >= ?
                ORDER BY ended_at DESC LIMIT 2000)
            SELECT count(*), count(*) FILTER (WHERE outcome != 'done') FROM latest
            WHERE seq IN (SELECT max(seq) FROM latest GROUP BY job)""",
        (micros(since),),
    ).fetchone()
    return QueueState(
        tried=tried,
        failing=failing,
        counts=counts,
        oldest_at=None if oldest is None else from_micros(oldest),
        moved_at=None if moved is None else from_micros(moved),
        attempts=row[0],
        failed=row[1],
        charge=Charge(*row[2:]),
    )


# Unread turns: the job is done, but no agent gave facts with the turn and no command read it.
_UNREAD = """FROM jobs JOIN turns ON turns.uuid = jobs.turn
    WHERE jobs.state = 'done' AND turns.role != 'tool'
    AND turns.occurred_at >= ? AND json_extract(jobs.payload, '$.extraction') != 'none'
    AND json_type(jobs.payload, '$.read') IS NULL
    AND json_array_length(jobs.payload, '$.facts') = 0"""


def unread(connection: Connection, since: datetime | None = None) -> tuple[int, int]:
    """Return the number of unread turns since an event time, and their characters."""
    statement = f"SELECT count(*), coalesce(sum(length(turns.content)), 0) {_UNREAD}"
    (turns, characters) = connection.execute(statement, (micros(since) if since else 0,)).fetchone()
    return turns, characters


def unread_ids(connection: Connection, since: datetime | None, limit: int) -> list[int]:
    """Return the jobs of the first unread turns from ``since`` on, in the order of receipt."""
    statement = f"SELECT jobs.id {_UNREAD} ORDER BY jobs.id LIMIT ?"
    rows = connection.execute(statement, (micros(since) if since else 0, limit))
    return [job_id for (job_id,) in rows]


def readings(connection: Connection, first: int = 0, last: int = 1 << 62) -> Readings:
    """Return the counts of what a command read in jobs ``first`` to ``last``, or in all jobs."""
    row = connection.execute(
        f"""SELECT count(*), coalesce(sum(json_array_length(payload, '$.read.facts')), 0),
            coalesce(sum(json_array_length(payload, '$.read.dropped')), 0),
            count(*) FILTER (WHERE {OPEN}) FROM jobs
            WHERE id BETWEEN ? AND ? AND json_type(payload, '$.read') IS NOT NULL""",  # noqa: S608
        (first, last),
    ).fetchone()
    (waiting,) = connection.execute(
        f"SELECT count(*) FROM jobs WHERE id BETWEEN ? AND ? AND {OPEN}",  # noqa: S608 - a constant
        (first, last),
    ).fetchone()
    return Readings(row[0] - row[3], row[1], row[2], waiting)


"""Return (item, reason) of what a command left out, in jobs ``first`` to ``last``."""


def left_out(connection: Connection, first: int, last: int, limit: int) -> list[tuple[str, str]]:
    """Return (item, reason) for the items that a command left out, in jobs of an id range."""
    rows = connection.execute(
        """SELECT json_extract(item.value, '$.what'), json_extract(item.value, '$.why')
            FROM jobs, json_each(jobs.payload, '$.read.dropped') AS item
            WHERE jobs.id BETWEEN ? AND ? AND item.type = 'object'
            ORDER BY jobs.id, item.key LIMIT ?""",
        (first, last, limit),
    )
    return rows.fetchall()


def unfinished(connection: Connection) -> int:
    """Return the number of queued and running jobs; parked jobs do not count."""
    statement = f"SELECT count(*) FROM jobs WHERE {OPEN}"  # noqa: S608 - a constant
    (number,) = connection.execute(statement).fetchone()
    return number


def turns_in(connection: Connection, state: JobState) -> set[str]:
    """Return the turns whose jobs are in a state."""
    return {
        turn for (turn,) in connection.execute("SELECT turn FROM jobs WHERE state = ?", (state,))
    }


def select(connection: Connection, rest: str, parameters: tuple[str | int, ...]) -> list[Job]:
    """Return the jobs that the end of a statement (``WHERE …``) selects, in its order."""
    return list(selected(connection, rest, parameters))


def selected(connection: Connection, rest: str, parameters: tuple[str | int, ...]) -> Iterator[Job]:
    """Yield the jobs that the end of a statement selects, in its order."""
    # `rest` is always a literal of this package; values are bound.
    statement = f"""SELECT {_JOB_COLUMNS}, {TURN_COLUMNS}
        FROM jobs JOIN turns ON turns.uuid = jobs.turn {rest}"""  # noqa: S608
    for row in connection.execute(statement, parameters):
        yield _read(cast("_JobRow", row[:_WIDTH]), cast("TurnRow", row[_WIDTH:]))


def _read(row: _JobRow, turn: TurnRow) -> Job:
    (
        number,
        state,
        stage,
        attempts,
        failures,
        code,
        error,
        queued_at,
        next_at,
        first_failed_at,
        payload,
        result,
    ) = row
    return Job(
        id=number,
        turn=read_turn(turn),
        payload=load_payload(payload),
        state=cast("JobState", state),
        stage=STAGES[stage],
        attempts=attempts,
        failures=failures,
        code=code,
        error=error,
        queued_at=from_micros(queued_at),
        next_at=from_micros(next_at) if next_at else None,
        first_failed_at=from_micros(first_failed_at) if first_failed_at else None,
        result=None if result is None else load_result(result),
    )
