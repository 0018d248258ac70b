"""The queue of one entity's jobs: taken in order, tried, put back, parked, given another chance.

A job is the work that a turn still causes; every attempt at it is written down.
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
    """Store a turn with its job and note its episode as changed, unless it is a duplicate."""
    stored, duplicate = turns.insert(connection, turn)
    if duplicate:
        (job,) = connection.execute("SELECT id FROM jobs WHERE turn = ?", (stored.uuid,)).fetchone()
        return Appended(stored, job, duplicate=True)
    log_changes(connection, [Change("episode", stored.uuid)])
    return Appended(stored, add(connection, stored.uuid, payload), duplicate=False)


def _claim(
    connection: Connection, stage: Stage, limit: int, at: datetime
) -> tuple[int, int] | None:
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
        f"""UPDATE jobs SET state = 'running', attempts = attempts + 1, began_at = ?
            WHERE id IN {NUMBERS}""",  # noqa: S608 - literals
        (began, listed(one for (one,) in found)),
    )
    return found[0][0], found[-1][0]


def _claimed(connection: Connection, stage: Stage, first: int, last: int) -> list[Job]:
    """Return the jobs that ``claim`` has just marked, in order."""
    return select(
        connection,
        "WHERE jobs.state = 'running' AND jobs.stage = ? AND jobs.id BETWEEN ? AND ? ORDER BY jobs.id",
        (STAGES.index(stage), first, last),
    )


def after(connection: Connection, stage: Stage, job_id: int, limit: int, facts: int) -> list[Job]:
    """Return up to ``limit`` of a stage's unfinished jobs that come after ``job_id``; they stay as they are.

    The job whose given facts make the number ``facts`` full is the last.
    """
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


def _cut_short(connection: Connection, stage: int) -> int:
    """Return how often the first unfinished job of a stage was started without coming to an end."""
    (state, attempts, failures) = connection.execute(
        f"SELECT state, attempts, failures FROM jobs WHERE stage = ? AND {OPEN} ORDER BY id LIMIT 1",  # noqa: S608
        (stage,),
    ).fetchone()
    return max(0, attempts - failures) if state == "running" else 0


def charge(connection: Connection, job_id: int, taken: Charge) -> None:
    """Add to what the attempt in hand has cost, while it runs."""
    connection.execute(
        "UPDATE jobs SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ?, cost_micros = cost_micros + ? "
        "WHERE id = ?",
        (taken.tokens_in, taken.tokens_out, taken.cost_micros, job_id),
    )


def _saved(connection: Connection, results: Sequence[tuple[int, JobResult]]) -> None:
    """Move jobs on to the second stage, with what the first one made."""
    _note(connection, [number for number, _ in results], "done")
    _ended_well(connection, "state = 'queued', stage = 1", results)


def end(
    connection: Connection,
    saved: Sequence[tuple[int, JobResult]],
    done: Sequence[tuple[int, JobResult]],
) -> None:
    """Move jobs on to be read by a model, and mark others as done."""
    _saved(connection, saved)
    finish(connection, done)


def finish(connection: Connection, results: Sequence[tuple[int, JobResult]]) -> int:
    """Mark jobs as done; those whose turn was forgotten meanwhile are passed over. Return how many were."""
    _note(connection, [number for number, _ in results], "done")
    return _ended_well(connection, "state = 'done'", results)


def give(connection: Connection, found: Sequence[tuple[int, JobPayload]]) -> bool:
    """Give jobs what a command has read in their turns, and let them be saved once more.

    False, and nothing is changed, when one of them is not in the reading's hands any more, or a turn whose words were
    shown is not there any more: it was forgotten or changed meanwhile, and what was read may hold its words.
    """
    ids = [number for number, _ in found]
    (still,) = connection.execute(
        f"SELECT count(*) FROM jobs WHERE id IN {NUMBERS} AND state = 'running' AND stage = 1",  # noqa: S608 - literals
        (listed(ids),),
    ).fetchone()
    facts = [fact for _, payload in found if payload.read for fact in payload.read.facts]
    used = {turn for fact in facts for turn in (*fact.cites, *fact.uses)}
    (present,) = connection.execute(
        f"SELECT count(*) FROM turns WHERE uuid IN {LIST}",  # noqa: S608 - literals
        (listed(used),),
    ).fetchone()
    if still < len(ids) or present < len(used):
        return False
    _note(connection, ids, "done")
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, code = '', error = '', next_at = 0,
            first_failed_at = 0, payload = ? WHERE id = ?""",
        [(dump_payload(payload), number) for number, payload in found],
    )
    return True


def read_by_rules(connection: Connection, results: Sequence[tuple[int, JobResult]]) -> None:
    """Note what jobs that wait for a command have made so far: rules read their turns meanwhile."""
    connection.execute(
        """UPDATE jobs SET result = json_extract(given.value, '$[1]'),
            payload = json_set(payload, '$.rules_meanwhile', json('true'))
            FROM json_each(?) AS given
            WHERE jobs.id = CAST(json_extract(given.value, '$[0]') AS BIGINT) AND state = 'queued' AND stage = 1""",
        (_listed_results(results),),
    )


def read_again(connection: Connection, turns: Sequence[str], lost: Sequence[str]) -> None:
    """Take the facts that need ``lost`` turns out of what a command read in some turns, and have it read them again.

    Raises:
        InvalidRequest: One of them is not saved yet; nothing was changed.
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
            """UPDATE jobs SET state = 'queued', stage = 1, failures = 0, next_at = 0, first_failed_at = 0,
                queued_at = ?, payload = ? WHERE id = ?""",
            (micros(now()), dump_payload(without_needing(payload, lost)), number),
        )


def put_back(connection: Connection, job_ids: Sequence[int], until: datetime | None = None) -> None:
    """Queue jobs again that were taken and came to nothing through no fault of theirs; not before ``until``.

    With a moment to wait for, earlier failures count no more: what is put off on purpose has none.
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
    """Let jobs that were put off without having failed be tried at once: what they waited for may be there."""
    connection.execute(
        "UPDATE jobs SET next_at = 0 WHERE state = 'queued' AND failures = 0 AND next_at > 0"
    )


def fail(
    connection: Connection, job_id: int, code: str, error: str, next_at: datetime | None
) -> bool:
    """Note a failed attempt; try again at ``next_at``, or park the job when that is None.

    Returns False when its turn was forgotten while it ran.
    """
    state: JobState = "queued" if next_at else "failed"
    _note(connection, [job_id], "again" if next_at else "failed", code, error[:_MAX_ERROR])
    moment = micros(now())
    cursor = connection.execute(
        """UPDATE jobs SET state = ?, failures = failures + 1, code = ?, error = ?, next_at = ?,
            first_failed_at = CASE first_failed_at WHEN 0 THEN ? ELSE first_failed_at END WHERE id = ?""",
        (state, code, error[:_MAX_ERROR], micros(next_at) if next_at else 0, moment, job_id),
    )
    return cursor.rowcount > 0


def retry(connection: Connection, job_ids: Sequence[int] | None = None) -> list[int]:
    """Queue ended jobs again, from the beginning; None takes every parked one. Return which.

    Raises:
        NotFound: One of them is not there, or in the queue already; nothing was changed.
    """
    wanted = _ended(connection, job_ids, ("failed", "dropped", "done"))
    connection.executemany(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE id = ?""",
        [(micros(now()), one) for one in wanted],
    )
    return wanted


def read_later(connection: Connection, since: datetime | None, limit: int) -> list[int]:
    """Queue the first turns that nothing has read, said since a moment, to be read by a command; return their jobs."""
    wanted = unread_ids(connection, since, limit)
    connection.execute(
        f"""UPDATE jobs SET state = 'queued', stage = 1, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE id IN {NUMBERS}""",  # noqa: S608 - literals
        (micros(now()), listed(wanted)),
    )
    return wanted


def _replay(connection: Connection) -> None:
    """Queue all jobs again that were saved once, from their first stage; no relation is in the graph any more."""
    connection.execute("UPDATE record_relations SET pending = pending + 1")
    connection.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, queued_at = ?
            WHERE state = 'done' OR stage = 1""",
        (micros(now()),),
    )


def drop(connection: Connection, job_ids: Sequence[int] | None = None) -> list[int]:
    """Give parked or waiting jobs up; None takes every parked one. Their turns stay in the journal. Return which.

    Raises:
        NotFound: One of them is not there, or is being worked on or done; nothing was changed.
    """
    wanted = _ended(connection, job_ids, ("failed", "queued"))
    connection.executemany(
        "UPDATE jobs SET state = 'dropped' WHERE id = ?", [(one,) for one in wanted]
    )
    return wanted


def _ended_well(
    connection: Connection, change: str, results: Sequence[tuple[int, JobResult]]
) -> int:
    """Change jobs and note their results; return how many there were."""
    return connection.execute(
        f"""UPDATE jobs SET {change}, failures = 0, code = '', error = '', next_at = 0, first_failed_at = 0,
            result = json_extract(given.value, '$[1]')
            FROM json_each(?) AS given WHERE jobs.id = CAST(json_extract(given.value, '$[0]') AS BIGINT)""",  # noqa: S608 - a constant
        (_listed_results(results),),
    ).rowcount


def _listed_results(results: Sequence[tuple[int, JobResult]]) -> str:
    return json.dumps([(number, dump_result(result)) for number, result in results])


def _note(
    connection: Connection,
    job_ids: Sequence[int],
    outcome: str,
    code: str = "",
    error: str = "",
) -> None:
    """Write the end of the attempts in hand; what they cost moves from the jobs to them."""
    connection.execute(
        f"""INSERT INTO attempts (job, stage, outcome, began_at, ended_at, code, error, tokens_in, tokens_out,
            cost_micros) SELECT id, stage, ?, began_at, ?, ?, ?, tokens_in, tokens_out, cost_micros
            FROM jobs WHERE id IN {NUMBERS} ORDER BY id""",  # noqa: S608 - literals
        (outcome, micros(now()), code, error, listed(job_ids)),
    )
    connection.execute(
        f"""UPDATE jobs SET tokens_in = 0, tokens_out = 0, cost_micros = 0
            WHERE id IN {NUMBERS} AND tokens_in + cost_micros > 0""",  # noqa: S608 - literals
        (listed(job_ids),),
    )


def _ended(
    connection: Connection, job_ids: Sequence[int] | None, states: Sequence[JobState]
) -> list[int]:
    if job_ids is None:
        return [
            one
            for (one,) in connection.execute(
                "SELECT id FROM jobs WHERE state = 'failed' ORDER BY id"
            )
        ]
    wanted = sorted(set(job_ids))
    found = connection.execute(
        f"""SELECT id FROM jobs WHERE id IN {NUMBERS}
            AND state IN (SELECT value FROM json_each(?)) ORDER BY id""",  # noqa: S608 - literals
        (listed(wanted), listed(states)),
    ).fetchall()
    if len(found) != len(wanted):
        numbers = ", ".join(str(one) for one in sorted(set(wanted) - {one for (one,) in found})[:5])
        raise NotFound(f"job {numbers} in state {' or '.join(states)}")
    return wanted


class JobQueue(Store):
    """The jobs of one ``memory.db``."""

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
        """Return up to ``limit`` of a stage's first unfinished jobs, marked as running.

        Nothing when the first of them is not due at ``at``: later jobs never overtake it.
        """
        # An idle worker asks often: the writer, and with it acknowledgements, is left alone where nothing is due.
        due = await self.look_up(partial(due_at, stage=stage), 1)
        if due is None or due > at:
            return []
        span = await self.write(partial(_claim, stage=stage, limit=limit, at=at))
        if span is None:
            return []
        # Read beside the writer: acknowledgements would wait while thousands of facts are parsed.
        return await self.read(partial(_claimed, stage=stage, first=span[0], last=span[1]))

    async def replay(self) -> None:
        """Queue every job again whose turn was saved; drop the merges, which only a lost graph knew."""
        await self.write(lambda db: (_replay(db), db.execute("DELETE FROM merges")))

    async def list(
        self, state: JobState | None = None, *, after: int = 0, limit: int = 100
    ) -> list[Job]:
        """Return jobs of a state (None: unfinished and parked ones) with ids above ``after``, oldest first."""
        check_range("limit", limit, 1, MAX_JOBS)
        return await self.read(partial(job_rows.in_state, state=state, after=after, limit=limit))
