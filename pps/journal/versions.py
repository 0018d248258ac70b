"""Versions of texts. A text that never changed has no rows here: its turn is its only version."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias, cast

from pps.core.errors import NotFound, StoreConflict
from pps.core.sql import Connection
from pps.core.text import content_hash
from pps.core.time import from_micros, micros, now
from pps.core.values import JSON, RecordDraft, Turn
from pps.journal import titled_rows, turns
from pps.journal.change_log import log_changes
from pps.journal.entries import Change, JobPayload, clean_tags, load_payload, prepare_payload
from pps.journal.record_queries import TYPED
from pps.journal.store import Store, reads, writes

ChangeType: TypeAlias = Literal["created", "modified", "appended"]


@dataclass(frozen=True, slots=True)
class Version:
    """A text as it was from ``at`` on.

    Attributes:
        number: Counts from 1.
        title, kind: Of the record; empty for a text that is no record.
        status, state: Of a typed record; empty for others.

    Versions written before these columns existed have no kind and no fields.
    """

    number: int
    change: ChangeType
    title: str
    content: str
    tags: tuple[str, ...]
    actor: str
    at: datetime
    kind: str = ""
    fields: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    status: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class TextChange:
    """A change that made version ``number`` of a turn's text; ``content`` is the new text."""

    turn: str
    number: int
    change: ChangeType
    content: str
    actor: str
    at: datetime
    is_latest: bool


@dataclass(frozen=True, slots=True)
class Text:
    """The parts of a turn that may change: its text, its tags, and the payload of its job."""

    content: str
    tags: tuple[str, ...]
    payload: JobPayload


Rework: TypeAlias = Callable[[Text], Text]
"""Returns the new text. It runs inside the transaction, so it is pure; an exception undoes all."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A change that is on disk; ``changed`` is False when the text was the same already."""

    turn: Turn
    payload: JobPayload
    job_id: int
    version: int
    changed: bool


class Revising(StoreConflict):
    """The text's job is running; safe to try again once it has ended."""

    def __init__(self, job_id: int) -> None:
        super().__init__("the text is being taken in at this moment: try again")
        self.job_id = job_id


def revise(db: Connection, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
    """Change a turn's text, save the version, and queue the turn's job again; all or nothing.

    Raises:
        NotFound: This entity has no such turn.
        Revising: Its job is running.
        InvalidRequest: The new text breaks a bound.
    """
    stored_turns = turns.get_many(db, [turn])
    if not stored_turns:
        raise NotFound()
    [before_turn] = stored_turns
    job_id, state, stage, stored = db.execute(
        "SELECT id, state, stage, payload FROM jobs WHERE turn = ?", (turn,)
    ).fetchone()
    before = Text(before_turn.content, before_turn.tags, load_payload(stored))
    # Stage 1 of an extractor's command only reads: its answer is discarded if the text has changed.
    is_read_by_command = stage and before.payload.extraction != "model"
    if state == "running" and not is_read_by_command:
        raise Revising(job_id)
    reworked = rework(before)
    after = replace(
        reworked,
        content=turns.check_content(reworked.content),
        tags=clean_tags(reworked.tags),
    )
    (latest,) = db.execute(
        "SELECT coalesce(max(number), 1) FROM versions WHERE turn = ?", (turn,)
    ).fetchone()
    if after == before:
        return Revised(before_turn, before.payload, job_id, latest, changed=False)
    if latest == 1:
        put_first(db, before_turn, before.payload)
    put(db, turn, _version(after, latest + 1, change, actor, now()))
    _store(db, turn, after)
    payload = prepare_payload(after.payload)
    db.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0,
            first_failed_at = 0, code = '', error = '', result = NULL, payload = ?, queued_at = ?
            WHERE id = ?""",
        (payload, micros(now()), job_id),
    )
    titled_rows.put_again(db, [turn])
    log_changes(db, [Change("episode", turn)])
    changed = replace(before_turn, content=after.content, tags=after.tags)
    return Revised(changed, after.payload, job_id, latest + 1, changed=True)


def put_first(db: Connection, turn: Turn, payload: JobPayload) -> None:
    """Save the first version of a text, before its first change, unless it is saved already."""
    put(db, turn.uuid, _first_version(turn, payload))


def put(db: Connection, turn: str, version: Version) -> None:
    """Save a version, unless the turn has a version of that number."""
    db.execute(
        """INSERT INTO versions (
                turn, number, change, title, content, tags, actor, at, kind, fields, status, state
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
        (
            turn,
            version.number,
            version.change,
            version.title,
            version.content,
            _json(version.tags),
            version.actor,
            micros(version.at),
            version.kind,
            json.dumps(version.fields, ensure_ascii=False),
            version.status,
            version.state,
        ),
    )


def _version(text: Text, number: int, change: ChangeType, actor: str, at: datetime) -> Version:
    record = text.payload.record or RecordDraft(kind="")
    return Version(
        number=number,
        change=change,
        title=_title(text),
        content=text.content,
        tags=text.tags,
        actor=actor,
        at=at,
        kind=record.kind,
        fields=record.attributes,
        status=record.status,
        state=record.state,
    )


def _store(db: Connection, turn: str, text: Text) -> None:
    title = _title(text)
    titled_text = f"{title}\n{text.content}" if title else text.content
    db.execute(
        "UPDATE turns SET content = ?, tags = ?, hash = ? WHERE uuid = ?",
        (text.content, _json(text.tags), content_hash(titled_text), turn),
    )
    db.execute("DELETE FROM topic_phrases WHERE turn = ?", (turn,))  # places in the text before
    db.execute("DELETE FROM turn_tags WHERE turn = ?", (turn,))
    db.executemany(
        "INSERT INTO turn_tags (tag, turn) VALUES (?, ?)", [(tag, turn) for tag in text.tags]
    )


def of(db: Connection, turn: str) -> list[Version]:
    """Return a turn's versions, oldest first, the current one last; empty for an absent turn."""
    rows = db.execute(
        """SELECT number, change, title, content, tags, actor, at, kind, fields, status, state
            FROM versions WHERE turn = ? ORDER BY number""",
        (turn,),
    ).fetchall()
    if rows:
        return [_read(row) for row in rows]
    stored_turns = turns.get_many(db, [turn])
    if not stored_turns:
        return []
    (stored,) = db.execute("SELECT payload FROM jobs WHERE turn = ?", (turn,)).fetchone()
    return [_first_version(stored_turns[0], load_payload(stored))]


def latest(db: Connection, before: datetime, limit: int) -> list[TextChange]:
    """Return changes of texts before a time, the latest first; no typed records."""
    rows = db.execute(
        f"""SELECT turn, number, change, content, actor, at,
                number = (SELECT max(number) FROM versions AS all_of_it
                    WHERE all_of_it.turn = versions.turn)
            FROM versions WHERE number > 1 AND at < ?
            AND NOT EXISTS (SELECT 1 FROM records AS r
                WHERE r.turn = versions.turn AND {TYPED})
            ORDER BY at DESC, seq DESC LIMIT ?""",  # noqa: S608 - literals
        (micros(before), limit),
    )
    return [
        TextChange(turn, number, change, content, actor, from_micros(at), is_latest=bool(is_latest))
        for turn, number, change, content, actor, at, is_latest in rows
    ]


def _read(row: tuple[int, str, str, str, str, str, int, str, str, str, str]) -> Version:
    number, change, title, content, tags, actor, at, kind, fields, status, state = row
    return Version(
        number=number,
        change=cast("ChangeType", change),
        title=title,
        content=content,
        tags=tuple(json.loads(tags)),
        actor=actor,
        at=from_micros(at),
        kind=kind,
        fields=json.loads(fields),
        status=status,
        state=state,
    )


def _first_version(turn: Turn, payload: JobPayload) -> Version:
    text = Text(turn.content, turn.tags, payload)
    return _version(text, 1, "created", turn.actor, turn.recorded_at)


def _title(text: Text) -> str:
    return text.payload.record.title if text.payload.record else ""


def _json(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)


class Versions(Store):
    """The versions of one memory's texts."""

    latest = reads(latest)
    of = reads(of)
    revise = writes(revise)
