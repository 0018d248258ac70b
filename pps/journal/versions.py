"""Versions: what a text was before it was changed. A text that never changed has its turn alone."""

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
from pps.journal import turns
from pps.journal.change_log import log_changes
from pps.journal.entries import Change, JobPayload, clean_tags, load_payload, prepare_payload
from pps.journal.record_queries import OF_A_PACK
from pps.journal.store import Store, reads, writes

ChangeType: TypeAlias = Literal["created", "modified", "appended"]


@dataclass(frozen=True, slots=True)
class Version:
    """A text as it was from ``at`` on. ``number`` counts from 1; ``title`` and ``kind`` are empty when it is no record.

    ``status`` and ``state`` are those of a record of a pack's kind. Versions of before 2026-12 have no kind and fields.
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
    """A change that made version ``number`` of a turn's text; ``content`` is what it says since."""

    turn: str
    number: int
    change: ChangeType
    content: str
    actor: str
    at: datetime
    is_latest: bool


@dataclass(frozen=True, slots=True)
class Text:
    """What may change of a turn: its words, its tags, and the work that they cause."""

    content: str
    tags: tuple[str, ...]
    payload: JobPayload


Rework: TypeAlias = Callable[[Text], Text]
"""Returns what a text becomes; pure, for it runs inside the transaction. What it raises undoes everything."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A change that is on disk. ``changed`` is False when the text was like that already."""

    turn: Turn
    payload: JobPayload
    job_id: int
    version: int
    changed: bool


class Revising(StoreConflict):
    """The text's job is being worked on at this moment; safe to try again once it has ended."""

    def __init__(self, job_id: int) -> None:
        super().__init__("the text is being taken in at this moment: try again")
        self.job_id = job_id


def revise(db: Connection, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
    """Change a turn's text, keep what it was as a version, and queue its job again; all of it or nothing.

    Raises:
        NotFound: This entity has no such turn.
        Revising: Its job is running.
        InvalidRequest: The new text breaks a bound.
    """
    found = turns.get_many(db, [turn])
    if not found:
        raise NotFound()
    job_id, state, stage, stored = db.execute(
        "SELECT id, state, stage, payload FROM jobs WHERE turn = ?", (turn,)
    ).fetchone()
    before = Text(found[0].content, found[0].tags, load_payload(stored))
    # A command that reads writes nothing by itself: its answer is thrown away when the words are others by then.
    if state == "running" and not (stage and before.payload.extraction != "model"):
        raise Revising(job_id)
    after = _checked(rework(before))
    (latest,) = db.execute(
        "SELECT coalesce(max(number), 1) FROM versions WHERE turn = ?", (turn,)
    ).fetchone()
    if after == before:
        return Revised(found[0], before.payload, job_id, latest, changed=False)
    if latest == 1:
        put_first(db, found[0], before.payload)
    put(
        db,
        turn,
        Version(
            latest + 1,
            change,
            _title(after),
            after.content,
            after.tags,
            actor,
            now(),
            *_kept(after),
        ),
    )
    _store(db, turn, after)
    payload = prepare_payload(after.payload)
    db.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, code = '',
            error = '', result = NULL, payload = ?, queued_at = ? WHERE id = ?""",
        (payload, micros(now()), job_id),
    )
    log_changes(db, [Change("episode", turn)])
    changed = replace(found[0], content=after.content, tags=after.tags)
    return Revised(changed, after.payload, job_id, latest + 1, changed=True)


def put_first(db: Connection, turn: Turn, payload: JobPayload) -> None:
    """Keep what a text is before its first change, unless that is kept."""
    put(db, turn.uuid, _first(turn, Text(turn.content, turn.tags, payload)))


def put(db: Connection, turn: str, one: Version) -> None:
    """Keep a version, unless the turn has one of that number."""
    db.execute(
        """INSERT INTO versions (turn, number, change, title, content, tags, actor, at, kind, fields, status,
            state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
        (
            turn,
            one.number,
            one.change,
            one.title,
            one.content,
            _json(one.tags),
            one.actor,
            micros(one.at),
            one.kind,
            json.dumps(one.fields, ensure_ascii=False),
            one.status,
            one.state,
        ),
    )


def _kept(text: Text) -> tuple[str, Mapping[str, JSON], str, str]:
    """Return kind, fields, status and state of the record that a text is, all empty when it is none."""
    record = text.payload.record or RecordDraft(kind="")
    return record.kind, record.attributes, record.status, record.state


def _checked(text: Text) -> Text:
    return replace(text, content=turns.check_content(text.content), tags=clean_tags(text.tags))


def _store(db: Connection, turn: str, text: Text) -> None:
    title = _title(text)
    said = f"{title}\n{text.content}" if title else text.content
    db.execute(
        "UPDATE turns SET content = ?, tags = ?, hash = ? WHERE uuid = ?",
        (text.content, _json(text.tags), content_hash(said), turn),
    )
    db.execute("DELETE FROM topic_phrases WHERE turn = ?", (turn,))  # places in the text before
    db.execute("DELETE FROM turn_tags WHERE turn = ?", (turn,))
    db.executemany(
        "INSERT INTO turn_tags (tag, turn) VALUES (?, ?)", [(tag, turn) for tag in text.tags]
    )


def of(db: Connection, turn: str) -> list[Version]:
    """Return a turn's versions, oldest first, the present one last; empty when there is no such turn."""
    rows = db.execute(
        """SELECT number, change, title, content, tags, actor, at, kind, fields, status, state FROM versions
            WHERE turn = ? ORDER BY number""",
        (turn,),
    ).fetchall()
    if rows:
        return [_read(row) for row in rows]
    found = turns.get_many(db, [turn])
    if not found:
        return []
    (stored,) = db.execute("SELECT payload FROM jobs WHERE turn = ?", (turn,)).fetchone()
    return [_first(found[0], Text(found[0].content, found[0].tags, load_payload(stored)))]


def latest(db: Connection, before: datetime, limit: int) -> list[TextChange]:
    """Return the changes of texts before a moment, the latest first; records of packs' kinds are left out."""
    rows = db.execute(
        f"""SELECT turn, number, change, content, actor, at,
                number = (SELECT max(number) FROM versions AS all_of_it WHERE all_of_it.turn = versions.turn)
            FROM versions WHERE number > 1 AND at < ?
            AND NOT EXISTS (SELECT 1 FROM records AS r WHERE r.turn = versions.turn AND {OF_A_PACK})
            ORDER BY at DESC LIMIT ?""",  # noqa: S608 - literals
        (micros(before), limit),
    )
    return [
        TextChange(turn, number, change, content, actor, from_micros(at), is_latest=bool(is_latest))
        for turn, number, change, content, actor, at, is_latest in rows
    ]


def _read(row: tuple[int, str, str, str, str, str, int, str, str, str, str]) -> Version:
    number, change, title, content, tags, actor, at, kind, fields, status, state = row
    shown = title, content, tuple(json.loads(tags)), actor, from_micros(at)
    return Version(
        number, cast("ChangeType", change), *shown, kind, json.loads(fields), status, state
    )


def _first(turn: Turn, text: Text) -> Version:
    shown = _title(text), text.content, text.tags, turn.actor, turn.recorded_at
    return Version(1, "created", *shown, *_kept(text))


def _title(text: Text) -> str:
    return text.payload.record.title if text.payload.record else ""


def _json(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)


class Versions(Store):
    """The versions of one ``memory.db``."""

    latest = reads(latest)
    of = reads(of)
    revise = writes(revise)
