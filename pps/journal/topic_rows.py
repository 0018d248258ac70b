"""Snapshots of topics: the turns of each topic at a time, and where its name occurs in turns.

The tables hold no text, so forgetting a turn needs no change here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pps.core.sql import Connection
from pps.core.time import from_micros, micros
from pps.journal import meta
from pps.journal.store import Store, reads, writes

KEPT_H = 168
"""Hours for which the latest snapshot of each hour is kept."""
_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class TopicMember:
    """A turn of a topic.

    Attributes:
        agreement: Mean agreement of the perspectives on it and the topic's other turns.
        since: Time of the first snapshot with the turn in the topic.
    """

    topic: str
    turn: str
    agreement: float
    since: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a phrase: characters ``start`` to ``stop`` (exclusive) of a turn's text."""

    turn: str
    start: int
    stop: int


PhraseRole: TypeAlias = Literal["name", "term", "named"]
Phrases: TypeAlias = Mapping[tuple[str, PhraseRole], Sequence[Place]]
"""Topic and role → the places of its phrases, in the order of the name."""


@dataclass(frozen=True, slots=True)
class Use:
    """A turn, its event time, how often sessions were shown it recently, and its importance."""

    turn: str
    at: datetime
    shown: int
    importance: float


def keep(db: Connection, at: datetime, members: Sequence[TopicMember], phrases: Phrases) -> None:
    """Save a snapshot, replacing those of the same hour, and replace the phrases of all topics.

    Turns that were forgotten meanwhile are left out.
    """
    moment = micros(at)
    db.execute("DELETE FROM topic_members WHERE at / ? = ?", (_HOUR, moment // _HOUR))
    db.execute("DELETE FROM topic_members WHERE at < ?", (micros(at - timedelta(hours=KEPT_H)),))
    db.executemany(
        "INSERT INTO topic_members (at, topic, turn, agreement, since)"
        " SELECT ?, ?, uuid, ?, ? FROM turns WHERE uuid = ?",
        [
            (moment, member.topic, member.agreement, micros(member.since), member.turn)
            for member in members
        ],
    )
    db.execute("DELETE FROM topic_phrases")
    db.executemany(
        "INSERT INTO topic_phrases (topic, role, place, turn, start, stop)"
        " SELECT ?, ?, ?, uuid, ?, ? FROM turns WHERE uuid = ?",
        [
            (topic, role, number, place.start, place.stop, place.turn)
            for (topic, role), places in phrases.items()
            for number, place in enumerate(places)
        ],
    )
    db.execute(meta.PUT, ("topics at", str(moment)))


def phrases(db: Connection) -> dict[tuple[str, PhraseRole], list[Place]]:
    """Return the stored phrases; those in forgotten or changed turns were deleted."""
    places: dict[tuple[str, PhraseRole], list[Place]] = {}
    rows = db.execute(
        "SELECT topic, role, turn, start, stop FROM topic_phrases ORDER BY topic, role, place"
    )
    for topic, role, turn, start, stop in rows:
        places.setdefault((topic, role), []).append(Place(turn, start, stop))
    return places


def latest(db: Connection) -> datetime | None:
    """Return the time of the latest snapshot, or None."""
    row = db.execute("SELECT value FROM meta WHERE key = 'topics at'").fetchone()
    return from_micros(int(row[0])) if row else None


def snapshot(db: Connection, at: datetime) -> list[TopicMember]:
    """Return the members of a snapshot, by topic."""
    rows = db.execute(
        "SELECT topic, turn, agreement, since FROM topic_members WHERE at = ? "
        "ORDER BY topic, agreement DESC, turn",
        (micros(at),),
    )
    return [
        TopicMember(topic, turn, agreement, from_micros(since))
        for topic, turn, agreement, since in rows
    ]


def moments(db: Connection, since: datetime) -> list[datetime]:
    """Return the times of the snapshots since a time, oldest first."""
    rows = db.execute(
        "SELECT DISTINCT at FROM topic_members WHERE at >= ? ORDER BY at", (micros(since),)
    )
    return [from_micros(at) for (at,) in rows]


def uses(db: Connection) -> list[Use]:
    """Return every turn with its use, newest first."""
    rows = db.execute(
        "SELECT uuid, occurred_at, coalesce(times, 0), importance FROM turns LEFT JOIN"
        " (SELECT id, count(*) AS times FROM shown GROUP BY id) AS given ON id = uuid"
        " ORDER BY occurred_at DESC, seq DESC"
    )
    return [Use(uuid, from_micros(at), times, importance) for uuid, at, times, importance in rows]


def importances(db: Connection, turns: Sequence[str]) -> dict[str, float]:
    """Return turn → its stored importance, 0 to 1; unknown turns are left out."""
    rows = db.execute(
        "SELECT uuid, importance FROM turns WHERE uuid IN (SELECT value FROM json_each(?))",
        (json.dumps(list(turns)),),
    )
    return dict(rows.fetchall())


class TopicRows(Store):
    """The topics of one entity."""

    importances = reads(importances)
    keep = writes(keep)
    latest = reads(latest)
    phrases = reads(phrases)
    moments = reads(moments)
    snapshot = reads(snapshot)
    uses = reads(uses)
