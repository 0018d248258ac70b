"""The queue of one entity's jobs: they are claimed in order, ended, parked and retried.

A job is the work that a turn still needs. The table ``attempts`` records every attempt at a job.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest, NotFound
from pps.core.sql import LIST, NUMBERS, Connection, listed
from pps.core.time import micros, now
from pps.journal import job_rows, turns
from pps.journal.change_log import log_changes
from pps.journal.entries import (
    Appended,
    Change,
    Charge,
    Job,
    JobPayload,
    JobResult,
    JobState,
    Stage,
    dump_payload,
    dump_result,
    load_payload,
    without_needing,
)
from pps.journal.job_rows import OPEN, STAGES, due_at, select, selected, unread_ids
from pps.journal.store import Store, looks_up, reads, writes

MAX_JOBS = 10_000
"""Most jobs that one call returns."""
_MAX_ERROR = 2_000
_MOST_HALVINGS = 4


def add(connection: Connection, turn_uuid: str, payload: str) -> int:
    """Store the job of a new turn and return its id."""
    [(number,)] = connection.execute(
        "INSERT INTO jobs (turn, payload, queued_at) VALUES (?, ?, ?) RETURNING id",
        (turn_uuid, payload, micros(now())),
    )
    return number


def append(connection: Connection, turn: turns.Prepared, payload: str) -> Appended:
    """Store a turn with its job and log its episode as changed, unless the turn is a duplicate."""
    stored, duplicate = turns.insert(connection, turn)
    if duplicate:
        (job,) = connection.execute("SELECT id FROM jobs WHERE turn = ?", (stored.uuid,)).fetchone()
        return Appended(stored, job, duplicate=True)
    log_changes(connection, [Change("episode", stored.uuid)])
    return Appended(stored, add(connection, stored.uuid, payload), duplicate=False)


def _claim(
    connection: Connection, stage: Stage, limit: int, at: datetime
) -> tuple[int, int] | None:
    """Mark a stage's first unfinished jobs as running; return the first and last id, or None.

    The order is the contract: while the first job waits for its next attempt, none is claimed. A
    job that a crash left running comes first again, each time in a batch of half the size, so that
    a process that is killed again and again still makes progress.
    """
    due = due_at(connection, stage)
    if due is None or due > at:
        return None
    number = STAGES.index(stage)
    limit = max(1, limit >> min(_cut_short(connection, number), _MOST_HALVINGS))
    rows = connection.execute(
        f"SELECT id FROM jobs WHERE stage = ? AND {OPEN} ORDER BY id LIMIT ?",  # noqa: S608
        (number, limit),
    ).fetchall()
    job_ids = [job_id for (job_id,) in rows]
    connection.execute(
        f"""UPDATE jobs SET state = 'running', attempts = attempts + 1, began_at = ?
            WHERE id IN {NUMBERS}""",  # noqa: S608 - literals
        (micros(now()), listed(job_ids)),
    )
    return job_ids[0], job_ids[-1]


def _claimed(connection: Connection, stage: Stage, first: int, last: int) -> list[Job]:
    """Return the jobs that ``_claim`` has just marked, in order."""
    return select(
        connection,
        """WHERE jobs.state = 'running' AND jobs.stage = ? AND jobs.id BETWEEN ? AND ?
            ORDER BY jobs.id""",
        (STAGES.index(stage), first, last),
    )


def after(connection: Connection, stage: Stage, job_id: int, limit: int, facts: int) -> list[Job]:
    """Return up to ``limit`` unfinished jobs of a stage behind ``job_id``, without claiming them.

    The list ends with the job whose given facts bring the total of given facts to ``facts``.
    """
    jobs: list[Job] = []
    for job in selected(
        connection,
        f"WHERE jobs.stage = ? AND jobs.id > ? AND jobs.{OPEN} ORDER BY jobs.id LIMIT ?",
        (STAGES.index(stage), job_id, limit),
    ):
        jobs.append(job)
        facts -= len(job.payload.facts)
        if facts <= 0:
            break
    return jobs


def _cut_short(connection: Connection, stage: int) -> int:
    """Return how often the first unfinished job of a stage was started and then cut short."""
    (state, attempts, failures) = connection.execute(
        "SELECT state, attempts, failures FROM jobs "  # noqa: S608 - constants
        f"WHERE stage = ? AND {OPEN} ORDER BY id LIMIT 1",
        (stage,),
    ).fetchone()
    return max(0, attempts - failures) if state == "running" else 0


def charge(connection: Connection, job_id: int, taken: Charge) -> None:
    """Add tokens and costs to a job's running attempt."""
    connection.execute(
        """UPDATE jobs SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ?,
            cost_micros = cost_micros + ? WHERE id = ?""",
        (taken.tokens_in, taken.tokens_out, taken.cost_micros, job_id),
    )


def end(
    connection: Connection,
    saved: Sequence[tuple[int, JobResult]],
    done: Sequence[tuple[int, JobResult]],
) -> None:
    """Move ``saved`` jobs on to the stage ``read``, and mark ``done`` jobs as done."""
    _end_attempts(connection, [job_id for job_id, _ in saved], "done")
    _set_results(connection, "state = 'queued', stage = 1", saved)
    finish(connection, done)


def finish(connection: Connection, results: Sequence[tuple[int, JobResult]]) -> int:
    """Mark jobs as done and return their number; jobs of forgotten turns are skipped."""
    _end_attempts(connection, [job_id for job_id, _ in results], "done")
    return _set_results(connection, "state = 'done'", results)


def give(connection: Connection, payloads: Sequence[tuple[int, JobPayload]]) -> bool:
    """Store what a command has read in the turns of jobs, and queue the jobs to be saved again.

    Returns False, and changes nothing, when a job is no longer running in the stage ``read``, or
    when a turn that the command was shown is absent. Such a turn was forgotten or changed
    meanwhile, and the facts may repeat its text.
    """
    job_ids = [job_id for job_id, _ in payloads]
    (running,) = connection.execute(
        f"SELECT count(*) FROM jobs WHERE id IN {NUMBERS} "  # noqa: S608 - literals
        "AND state = 'running' AND stage = 1",
        (listed(job_ids),),
    ).fetchone()
    turns_used: set[str] = set()
    for _, payload in payloads:
        for fact in payload.read.facts if payload.read else ():
            turns_used.update(fact.cites, fact.uses)
    (present,) = connection.execute(
        f"SELECT count(*) FROM turns WHERE uuid IN {LIST}",  # noqa: S608 - literals
        (listed(turns_used),),
    ).fetchone()
    if running < len(job_ids) or present < len(turns_used):
        return False
    _end_attempts(connection, job_ids, "done")
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, code = '', error = '',
            next_at = 0, first_failed_at = 0, payload = ? WHERE id = ?""",
        [(dump_payload(payload), job_id) for job_id, payload in payloads],
    )
    return True


def read_by_rules(connection: Connection, results: Sequence[tuple[int, JobResult]]) -> None:
    """Save the results of rules that read turns while the turns' jobs wait for a command."""
    connection.execute(
        """UPDATE jobs SET result = json_extract(given.value, '$[1]'),
            payload = json_set(payload, '$.rules_meanwhile', json('true'))
            FROM json_each(?) AS given
            WHERE jobs.id = CAST(json_extract(given.value, '$[0]') AS BIGINT)
                AND state = 'queued' AND stage = 1""",
        (_listed_results(results),),
    )


def read_again(connection: Connection, turns: Sequence[str], lost: Sequence[str]) -> None:
    """Drop facts that a command read and that need ``lost`` turns; queue ``turns`` for it again.

    Raises:
        InvalidRequest: A turn is not saved yet; nothing was changed.
    """
    rows = connection.execute(
        f"SELECT id, state, stage, payload FROM jobs WHERE turn IN {LIST}",  # noqa: S608 - literals
        (listed(turns),),
    ).fetchall()
    for number, state, stage, stored in rows:
        payload = load_payload(stored)
        if payload.read is None:
            continue
        if state in ("queued", "running") and STAGES[stage] == "save":
            raise InvalidRequest("turn", "its job has not ended yet: try again when it is done")
        connection.execute(
            """UPDATE jobs SET state = 'queued', stage = 1, failures = 0, next_at = 0,
                first_failed_at = 0, queued_at = ?, payload = ? WHERE id = ?""",
            (micros(now()), dump_payload(without_needing(payload, lost)), number),
        )


def put_back(connection: Connection, job_ids: Sequence[int], until: datetime | None = None) -> None:
    """Queue running jobs again without noting a failure; they are due at ``until``, or at once.

    ``until`` also resets their earlier failures: a job that is put off on purpose counts as having
    none.
    """
    next_at = micros(until) if until else 0
    connection.execute(
        f"""UPDATE jobs SET state = 'queued', next_at = CAST(? AS BIGINT),
            failures = CASE WHEN CAST(? AS BIGINT) > 0 THEN 0 ELSE failures END,
            first_failed_at = CASE WHEN CAST(? AS BIGINT) > 0 THEN 0 ELSE first_failed_at END
            WHERE id IN {NUMBERS} AND state = 'running'""",  # noqa: S608 - literals
        (next_at, next_at, next_at, listed(job_ids)),
    )


def due(connection: Connection) -> None:
    """Make jobs that were put off without a failure due now: their reason to wait may be gone."""
    connection.execute(
        "UPDATE jobs SET next_at = 0 WHERE state = 'queued' AND failures = 0 AND next_at > 0"
    )


def fail(
    connection: Connection, job_id: int, code: str, error: str, next_at: datetime | None
) -> bool:
    """Record a failed attempt; the job is due again at ``next_at``, or parked when that is None.

    Returns False when the job's turn was forgotten while it ran.
    """
    state: JobState = "queued" if next_at else "failed"
    outcome = "again" if next_at else "failed"
    error = error[:_MAX_ERROR]
    _end_attempts(connection, [job_id], outcome, code, error)
    failed_at = micros(now())
    cursor = connection.execute(
        """UPDATE jobs SET state = ?, failures = failures + 1, code = ?, error = ?, next_at = ?,
            first_failed_at = CASE first_failed_at WHEN 0 THEN ? ELSE first_failed_at END
            WHERE id = ?""",
        (state, code, error, micros(next_at) if next_at else 0, failed_at, job_id),
    )
    return cursor.rowcount > 0


def retry(connection: Connection, job_ids: Sequence[int] | None = None) -> list[int]:
    """Queue ended jobs again from their first stage; return their ids. None: every parked job.

    Raises:
        NotFound: A job is absent, or in the queue already; nothing was changed.
    """
    chosen = _choose(connection, job_ids, ("failed", "dropped", "done"))
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0,
            first_failed_at = 0, queued_at = ? WHERE id = ?""",
        [(micros(now()), job_id) for job_id in chosen],
    )
    return chosen


def read_later(connection: Connection, since: datetime | None, limit: int) -> list[int]:
    """Queue the first unread turns since an event time for a command; return their jobs."""
    job_ids = unread_ids(connection, since, limit)
    connection.execute(
        f"""UPDATE jobs SET state = 'queued', stage = 1, failures = 0, next_at = 0,
            first_failed_at = 0, queued_at = ? WHERE id IN {NUMBERS}""",  # noqa: S608 - literals
        (micros(now()), listed(job_ids)),
    )
    return job_ids


def _replay(connection: Connection) -> None:
    """Queue all jobs that were saved once, from their first stage, and all relations of records."""
    connection.execute("UPDATE record_relations SET pending = pending + 1")
    connection.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0,
            first_failed_at = 0, queued_at = ? WHERE state = 'done' OR stage = 1""",
        (micros(now()),),
    )


def drop(connection: Connection, job_ids: Sequence[int] | None = None) -> list[int]:
    """Drop parked or queued jobs and return their ids; None is every parked job. Their turns stay.

    Raises:
        NotFound: A job is absent, running or done; nothing was changed.
    """
    chosen = _choose(connection, job_ids, ("failed", "queued"))
    connection.executemany(
        "UPDATE jobs SET state = 'dropped' WHERE id = ?", [(job_id,) for job_id in chosen]
    )
    return chosen


def _set_results(
    connection: Connection, assignments: str, results: Sequence[tuple[int, JobResult]]
) -> int:
    """Save results of jobs that ended well, and set other columns; return the number of jobs."""
    return connection.execute(
        f"""UPDATE jobs SET {assignments}, failures = 0, code = '', error = '', next_at = 0,
            first_failed_at = 0, result = json_extract(given.value, '$[1]')
            FROM json_each(?) AS given
            WHERE jobs.id = CAST(json_extract(given.value, '$[0]') AS BIGINT)""",  # noqa: S608
        (_listed_results(results),),
    ).rowcount


def _listed_results(results: Sequence[tuple[int, JobResult]]) -> str:
    return json.dumps([(job_id, dump_result(result)) for job_id, result in results])


def _end_attempts(
    connection: Connection,
    job_ids: Sequence[int],
    outcome: str,
    code: str = "",
    error: str = "",
) -> None:
    """Record the end of running attempts; move tokens and costs from the jobs to them."""
    connection.execute(
        f"""INSERT INTO attempts (
                job, stage, outcome, began_at, ended_at, code, error, tokens_in, tokens_out,
                cost_micros
            ) SELECT id, stage, ?, began_at, ?, ?, ?, tokens_in, tokens_out, cost_micros
            FROM jobs WHERE id IN {NUMBERS} ORDER BY id""",  # noqa: S608 - literals
        (outcome, micros(now()), code, error, listed(job_ids)),
    )
    connection.execute(
        f"""UPDATE jobs SET tokens_in = 0, tokens_out = 0, cost_micros = 0
            WHERE id IN {NUMBERS} AND tokens_in + cost_micros > 0""",  # noqa: S608 - literals
        (listed(job_ids),),
    )


def _choose(
    connection: Connection, job_ids: Sequence[int] | None, states: Sequence[JobState]
) -> list[int]:
    """Return the ids, sorted, or those of every parked job for None.

    Raises:
        NotFound: A job is absent, or in none of the states.
    """
    if job_ids is None:
        rows = connection.execute("SELECT id FROM jobs WHERE state = 'failed' ORDER BY id")
        return [job_id for (job_id,) in rows]
    chosen = sorted(set(job_ids))
    rows = connection.execute(
        f"""SELECT id FROM jobs WHERE id IN {NUMBERS}
            AND state IN (SELECT value FROM json_each(?)) ORDER BY id""",  # noqa: S608 - literals
        (listed(chosen), listed(states)),
    )
    missing = sorted(set(chosen) - {job_id for (job_id,) in rows})
    if missing:
        numbers = ", ".join(str(job_id) for job_id in missing[:5])
        raise NotFound(f"job {numbers} in state {' or '.join(states)}")
    return chosen


class JobQueue(Store):
    """The jobs of one memory."""

    after = reads(after)
    attempts = reads(job_rows.attempts)
    charge = writes(charge)
    drop = writes(drop)
    due = writes(due)
    due_at = reads(due_at)
    fail = writes(fail)
    finish = writes(finish)
    give = writes(give)
    job = reads(job_rows.get)
    of_turn = reads(job_rows.get_of_turn)
    left_out = reads(job_rows.left_out)
    outcomes = looks_up(job_rows.outcomes)
    put_back = writes(put_back)
    read_again = writes(read_again, secure=True)
    read_by_rules = writes(read_by_rules)
    read_later = writes(read_later)
    readings = reads(job_rows.readings)
    retry = writes(retry)
    state = reads(job_rows.state)
    turns_in = reads(job_rows.turns_in)
    unread = reads(job_rows.unread)

    async def take(self, stage: Stage, limit: int, at: datetime) -> list[Job]:
        """Claim up to ``limit`` of a stage's first unfinished jobs and return them.

        Empty when the first of them is not due at ``at``: later jobs never overtake it.
        """
        # An idle worker asks often. Where nothing is due, leave the writer to acknowledgements.
        due = await self.look_up(partial(due_at, stage=stage), 1)
        if due is None or due > at:
            return []
        span = await self.write(partial(_claim, stage=stage, limit=limit, at=at))
        if span is None:
            return []
        # Read outside the writer: acknowledgements would wait while thousands of facts are parsed.
        return await self.read(partial(_claimed, stage=stage, first=span[0], last=span[1]))

    async def replay(self) -> None:
        """Queue every job whose turn was saved; drop the merges, which only the lost graph knew."""
        await self.write(lambda db: (_replay(db), db.execute("DELETE FROM merges")))

    async def list(
        self, state: JobState | None = None, *, after: int = 0, limit: int = 100
    ) -> list[Job]:
        """Return jobs in a state with ids above ``after``, oldest first; None: open or parked."""
        check_range("limit", limit, 1, MAX_JOBS)
        return await self.read(partial(job_rows.in_state, state=state, after=after, limit=limit))
