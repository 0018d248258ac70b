"""Earlier texts of anchors, one for each change. The current text is in the anchor's file only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.sql import LIST, Connection, listed
from pps.core.time import from_micros, micros
from pps.journal.store import Store, reads, writes

_COLUMNS = "slug, number, text, modified_at, replaced_at, actor"


@dataclass(frozen=True, slots=True)
class ReplacedAnchor:
    """A version of an anchor that was replaced at ``replaced_at``.

    Attributes:
        number: Number of the version, from 1.
        text: The whole file, without secrets.
        modified_at: Time at which this version was written.
        actor: The agent that replaced it; empty for the person.
    """

    slug: str
    number: int
    text: str
    modified_at: datetime
    replaced_at: datetime
    actor: str


def replaced(db: Connection, slug: str) -> list[ReplacedAnchor]:
    """Return the replaced versions of an anchor, oldest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM anchor_versions WHERE slug = ? ORDER BY number",  # noqa: S608
        (slug,),
    )
    return [_read(row) for row in rows]


def latest(db: Connection, before: datetime, limit: int) -> list[ReplacedAnchor]:
    """Return up to ``limit`` versions of all anchors replaced before a time, latest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM anchor_versions "  # noqa: S608 - literals
        "WHERE replaced_at < ? ORDER BY replaced_at DESC LIMIT ?",
        (micros(before), limit),
    )
    return [_read(row) for row in rows]


def keep(
    db: Connection, slug: str, text: str, modified_at: datetime, at: datetime, actor: str
) -> None:
    """Save a text before it is replaced, unless it is already saved, as after a crash."""
    known = replaced(db, slug)
    if known and known[-1].text == text:
        return
    number = known[-1].number + 1 if known else 1
    db.execute(
        f"INSERT INTO anchor_versions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608
        (slug, number, text, micros(modified_at), micros(at), actor),
    )


def forget(db: Connection, slugs: Sequence[str]) -> None:
    db.execute(f"DELETE FROM anchor_versions WHERE slug IN {LIST}", (listed(slugs),))  # noqa: S608


def _read(row: tuple[str, int, str, int, int, str]) -> ReplacedAnchor:
    slug, number, text, modified_at, replaced_at, actor = row
    return ReplacedAnchor(
        slug, number, text, from_micros(modified_at), from_micros(replaced_at), actor
    )


class AnchorVersions(Store):
    """The versions of the anchors of one ``memory.db``."""

    of = reads(replaced)
    latest = reads(latest)
    keep = writes(keep)
    forget = writes(forget, secure=True)
