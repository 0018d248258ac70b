"""Tasks of one entity for agents elsewhere: a queue with leases, in a file of the entity's folder.

PPS starts no process. Whoever runs agents claims a task, extends its lease while the agent works,
and says how it ended; a lease that runs out gives the task back to the queue.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import uuid4

from pps.core.errors import InvalidRequest, NotFound, Overloaded
from pps.core.time import from_micros, micros, now
from pps.entities.small_file import SmallFile

TaskState: TypeAlias = Literal["queued", "claimed", "done", "failed"]
FINISHED: frozenset[TaskState] = frozenset({"done", "failed"})

MAX_OPEN = 1_000
"""Most tasks of one entity that are not finished; more are refused."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS task (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    prompt TEXT NOT NULL,
    title TEXT NOT NULL,
    agent TEXT NOT NULL,
    node TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'claimed', 'done', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    runner TEXT NOT NULL DEFAULT '',
    lease TEXT NOT NULL DEFAULT '',
    lease_until INTEGER NOT NULL DEFAULT 0,
    note TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS task_open ON task (seq) WHERE state IN ('queued', 'claimed');
"""

# A lease that ran out is seen by everybody at once, without anybody having to write it down.
_NOW_STATE = """CASE WHEN state = 'claimed' AND lease_until <= :now
    THEN CASE WHEN attempts < max_attempts THEN 'queued' ELSE 'failed' END ELSE state END"""
_OF = "id >= :id AND id < :id || 'g'"
"""One task, by its id or the beginning of it: 'g' follows all that an id has."""
_HELD = f"{_OF} AND lease = :lease AND lease <> '' AND state = 'claimed' AND lease_until > :now"


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task as it is asked for; bounds are checked by whoever takes it in.

    Attributes:
        prompt: What the agent is to do.
        title: A line for people.
        agent: Which kind of agent is meant; a runner may claim one kind only. Empty is any.
        node: Uuid of the node that it is about, or empty.
        max_attempts: After so many claims without an end it has failed.
    """

    prompt: str
    title: str = ""
    agent: str = ""
    node: str = ""
    max_attempts: int = 3


@dataclass(frozen=True, slots=True)
class AgentTask:
    """A task and how it stands.

    ``lease`` is known to the runner that holds it alone; elsewhere it is empty.
    """

    id: str
    draft: TaskDraft
    state: TaskState
    attempts: int
    created_at: datetime
    updated_at: datetime
    runner: str = ""
    lease_until: datetime | None = None
    note: str = ""
    result: str = ""
    error: str = ""
    lease: str = field(default="", repr=False)


class Tasks:
    """The tasks of one entity. Every call is a transaction of its own, on disk when it returns.

    ``at`` (now when not given) is the moment that leases are measured against. The file is made
    with the first task. Every method may raise StoreUnavailable or StoreConflict, both safe to
    retry.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "data" / "tasks.db"

    def add(self, draft: TaskDraft, *, at: datetime | None = None) -> AgentTask:
        """Put a task at the end of the queue; Overloaded when too many wait already."""
        task_id = str(uuid4())
        moment = micros(at or now())
        with self._file().writing() as db:
            _bury(db, moment)
            (waiting,) = db.execute(
                "SELECT count(*) FROM task WHERE state IN ('queued', 'claimed')"
            ).fetchone()
            if waiting >= MAX_OPEN:
                raise Overloaded(
                    f"task: {MAX_OPEN:,} of this project wait already; let some finish, then try "
                    "again"
                )
            db.execute(
                "INSERT INTO task (id, prompt, title, agent, node, max_attempts, created_at, "
                "updated_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    task_id,
                    draft.prompt,
                    draft.title,
                    draft.agent,
                    draft.node,
                    draft.max_attempts,
                    moment,
                    moment,
                ),
            )
            return _one(db, task_id, moment)

    def get(self, ids: Sequence[str], *, at: datetime | None = None) -> list[AgentTask]:
        """Return tasks in the order asked; NotFound when any is not this entity's."""
        moment = micros(at or now())
        if not self._path.exists():
            raise NotFound("task")
        with self._file().reading() as db:
            return [_one(db, id_, moment) for id_ in ids]

    def list(self, limit: int = 100, *, at: datetime | None = None) -> list[AgentTask]:
        """Return at most ``limit`` tasks, newest first."""
        if not self._path.exists():
            return []
        with self._file().reading() as db:
            rows = db.execute(
                _select("1 ORDER BY seq DESC LIMIT :limit"),
                {"limit": limit, "now": micros(at or now())},
            )
            return [_task(row) for row in rows]

    def waits_since(self, agent: str = "", *, at: datetime | None = None) -> datetime | None:
        """Return when the task that a runner would get next was made; None when there is none."""
        if not self._path.exists():
            return None
        with self._file().reading() as db:
            row = _next(db, agent, micros(at or now()))
        return from_micros(row["created_at"]) if row else None

    def claim(
        self, runner: str, lease_s: int, agent: str = "", *, at: datetime | None = None
    ) -> AgentTask | None:
        """Give the oldest waiting task to a runner, for ``lease_s`` seconds; None when none waits.

        Only tasks for the runner's kind of ``agent`` and those for any; empty is all.
        """
        if not self._path.exists():
            return None
        moment = micros(at or now())
        with self._file().writing() as db:
            _bury(db, moment)
            row = _next(db, agent, moment)
            if row is None:
                return None
            lease = secrets.token_hex(16)
            db.execute(
                "UPDATE task SET state = 'claimed', attempts = attempts + 1, runner = ?, lease = "
                "?, lease_until = ?, "
                "note = '', updated_at = ? WHERE seq = ?",
                (runner, lease, moment + lease_s * 1_000_000, moment, row["seq"]),
            )
            return _one(db, row["id"], moment, lease=lease)

    def extend(
        self, task_id: str, lease: str, lease_s: int, note: str = "", *, at: datetime | None = None
    ) -> AgentTask:
        """Hold a task for ``lease_s`` seconds from now.

        NotFound when the lease is not its any more: let it go.
        """
        moment = micros(at or now())
        values = {"lease_until": moment + lease_s * 1_000_000, "note": note}
        return self._held(
            task_id, lease, "lease_until = :lease_until, note = :note", values, moment
        )

    def complete(
        self, task_id: str, lease: str, result: str, *, at: datetime | None = None
    ) -> AgentTask:
        """Say that a task is done, with its result; raises as ``extend``."""
        values = {"result": result}
        return self._held(
            task_id,
            lease,
            "state = 'done', lease = '', result = :result",
            values,
            micros(at or now()),
        )

    def fail(
        self, task_id: str, lease: str, error: str, *, again: bool, at: datetime | None = None
    ) -> AgentTask:
        """Say that a task failed; ``again`` gives it back while attempts are left.

        Raises as ``extend``.
        """
        state = "CASE WHEN :again AND attempts < max_attempts THEN 'queued' ELSE 'failed' END"
        values = {"error": error, "again": int(again)}
        return self._held(
            task_id,
            lease,
            f"state = {state}, lease = '', error = :error",
            values,
            micros(at or now()),
        )

    def _held(
        self, task_id: str, lease: str, change: str, values: Mapping[str, str | int], moment: int
    ) -> AgentTask:
        if not self._path.exists():
            raise NotFound("lease")
        parameters = {**values, "id": task_id, "lease": lease, "now": moment}
        # All names in the statement are literals of this module.
        statement = f"UPDATE task SET {change}, updated_at = :now WHERE {_HELD}"  # noqa: S608
        with self._file().writing() as db:
            if not db.execute(statement, parameters).rowcount:
                raise NotFound("lease")
            return _one(db, task_id, moment)

    def _file(self) -> SmallFile:
        return SmallFile(self._path, _SCHEMA)


def _bury(db: sqlite3.Connection, moment: int) -> None:
    """Write down what a look already shows: the last lease of these ran out."""
    db.execute(
        "UPDATE task SET state = 'failed', lease = '', error = 'no runner finished it in ' || "
        "attempts || ' leases', "
        "updated_at = lease_until WHERE state = 'claimed' AND lease_until <= ? AND attempts >= "
        "max_attempts",
        (moment,),
    )


def _select(where: str) -> str:
    # ``where`` is a literal of this module, too.
    return f"SELECT *, {_NOW_STATE} AS now_state FROM task WHERE {where}"  # noqa: S608


def _next(db: sqlite3.Connection, agent: str, moment: int) -> sqlite3.Row | None:
    where = (
        f"state IN ('queued', 'claimed') AND {_NOW_STATE} = 'queued' AND (:agent = '' OR agent IN "
        "('', :agent))"
    )
    row: sqlite3.Row | None = db.execute(
        _select(f"{where} ORDER BY seq LIMIT 1"), {"now": moment, "agent": agent}
    ).fetchone()
    return row


def _one(db: sqlite3.Connection, task_id: str, moment: int, *, lease: str = "") -> AgentTask:
    rows = db.execute(_select(f"{_OF} LIMIT 2"), {"id": task_id, "now": moment}).fetchall()
    if not rows:
        raise NotFound("task")
    if len(rows) > 1:
        raise InvalidRequest("task_id", f"{task_id!r} begins more than one id: give more of it")
    return _task(rows[0], lease)


def _task(row: sqlite3.Row, lease: str = "") -> AgentTask:
    state: TaskState = row["now_state"]
    lost = state == "failed" and row["state"] == "claimed"
    return AgentTask(
        row["id"],
        TaskDraft(row["prompt"], row["title"], row["agent"], row["node"], row["max_attempts"]),
        state,
        row["attempts"],
        from_micros(row["created_at"]),
        from_micros(row["updated_at"]),
        row["runner"],
        from_micros(row["lease_until"]) if state == "claimed" else None,
        row["note"],
        row["result"],
        f"no runner finished it in {row['attempts']} leases" if lost else row["error"],
        lease,
    )
