"""Versions: what a text was before it was changed. A text that never changed has its turn alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias, cast

from pps.core.errors import NotFound, StoreConflict
from pps.core.text import content_hash
from pps.core.time import from_micros, micros, now
from pps.core.values import Turn
from pps.journal import turns
from pps.journal.entries import Change, JobPayload, clean_tags, load_payload, prepare_payload
from pps.journal.reader import Readers
from pps.journal.writer import Writer

ChangeType: TypeAlias = Literal["created", "modified", "appended"]


@dataclass(frozen=True, slots=True)
class Version:
    """A text as it was from ``at`` on. ``number`` counts from 1; ``title`` is empty when it is no record."""

    number: int
    change: ChangeType
    title: str
    content: str
    tags: tuple[str, ...]
    actor: str
    at: datetime


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


class Versions:
    """The versions of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def revise(self, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
        """Change a turn's text, keep what it was as a version, and queue its job again; all of it or nothing.

        Raises:
            NotFound: This entity has no such turn.
            Revising: Its job is running.
            InvalidRequest: The new text breaks a bound.
        """
        return await self._writer.write(partial(_revise, turn=turn, change=change, actor=actor, rework=rework))

    async def of(self, turn: str) -> list[Version]:
        """Return a turn's versions, oldest first, the present one last; empty when there is no such turn."""
        return await self._readers.read(partial(_of, turn=turn))


def _revise(db: sqlite3.Connection, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
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
    (latest,) = db.execute("SELECT coalesce(max(number), 1) FROM versions WHERE turn = ?", (turn,)).fetchone()
    if after == before:
        return Revised(found[0], before.payload, job_id, latest, changed=False)
    db.execute("INSERT OR IGNORE INTO versions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", _first(found[0], before))
    row = (turn, latest + 1, change, _title(after), after.content, _json(after.tags), actor, micros(now()))
    db.execute("INSERT INTO versions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    _store(db, turn, after)
    payload = prepare_payload(after.payload)
    db.execute(
        """UPDATE jobs SET state = 'queued', stage = 0, failures = 0, next_at = 0, first_failed_at = 0, code = '',
            error = '', result = NULL, payload = ?, queued_at = ? WHERE id = ?""",
        (payload, micros(now()), job_id),
    )
    turns.mark_dirty(db, [Change("episode", turn)])
    changed = replace(found[0], content=after.content, tags=after.tags)
    return Revised(changed, after.payload, job_id, latest + 1, changed=True)


def _checked(text: Text) -> Text:
    return replace(text, content=turns.check_content(text.content), tags=clean_tags(text.tags))


def _store(db: sqlite3.Connection, turn: str, text: Text) -> None:
    title = _title(text)
    said = f"{title}\n{text.content}" if title else text.content
    db.execute(
        "UPDATE turns SET content = ?, tags = ?, hash = ? WHERE uuid = ?",
        (text.content, _json(text.tags), content_hash(said), turn),
    )
    db.execute("DELETE FROM turn_tags WHERE turn = ?", (turn,))
    db.executemany("INSERT INTO turn_tags (tag, turn) VALUES (?, ?)", [(tag, turn) for tag in text.tags])


def _of(db: sqlite3.Connection, turn: str) -> list[Version]:
    rows = db.execute(
        "SELECT number, change, title, content, tags, actor, at FROM versions WHERE turn = ? ORDER BY number", (turn,)
    ).fetchall()
    if rows:
        return [
            Version(number, cast("ChangeType", change), title, content, tuple(json.loads(tags)), actor, from_micros(at))
            for number, change, title, content, tags, actor, at in rows
        ]
    found = turns.get_many(db, [turn])
    if not found:
        return []
    (stored,) = db.execute("SELECT payload FROM jobs WHERE turn = ?", (turn,)).fetchone()
    text = Text(found[0].content, found[0].tags, load_payload(stored))
    one = found[0]
    return [Version(1, "created", _title(text), one.content, one.tags, one.actor, one.recorded_at)]


def _first(turn: Turn, text: Text) -> tuple[str, int, str, str, str, str, str, int]:
    tags, at = _json(text.tags), micros(turn.recorded_at)
    return turn.uuid, 1, "created", _title(text), text.content, tags, turn.actor, at


def _title(text: Text) -> str:
    return text.payload.record.title if text.payload.record else ""


def _json(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)
