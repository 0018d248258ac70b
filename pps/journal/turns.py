"""Turns: checking, deduplicating, storing, reading and forgetting what was said.

Listeners of features run in the transaction that saves a turn.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TypeAlias

from pps.core.bounds import MAX_CONTENT, MAX_PATH, ROLES, check_choice, check_kind, is_text
from pps.core.errors import InvalidRequest
from pps.core.ids import stable_id
from pps.core.sql import NUMBERS, Connection, listed
from pps.core.text import content_hash, fold, normalise
from pps.core.time import (
    Precision,
    from_micros,
    micros,
    now,
    offset_of,
    precision_of,
    utc,
    with_precision,
)
from pps.core.values import Chunk, Turn
from pps.journal import time_sql
from pps.journal.change_log import log_changes
from pps.journal.entries import Change, TurnDraft, clean_tags

DEDUPE_WINDOW_S = 30
"""Two equal messages without an id of their own are one when their event times lie this close."""

_BOUNDS = {"actor": (0, 200), "session": (1, 200), "source": (1, 200), "source_ref": (0, 500)}

TURN_COLUMNS = """turns.uuid, turns.seq, turns.role, turns.content, turns.session,
    turns.occurred_at, turns.recorded_at, turns.actor, turns.source, turns.source_ref, turns.kind,
    turns.tags, turns.chunk, turns.occurred_precision, turns.utc_offset_s"""
TurnRow: TypeAlias = tuple[
    str, int, str, str, str, int, int, str, str, str, str, str, str, str, int | None
]
TellListener: TypeAlias = Callable[[Connection, Turn], bool]
"""Called with the transaction and its new turn; returns whether it erased text.

An exception undoes the transaction.
"""


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """A session: how many turns it has, and when the latest was said."""

    session: str
    turns: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that keeps every bound, with its id and hash: what the transaction needs."""

    uuid: str
    draft: TurnDraft
    occurred_at: int
    precision: Precision
    hash: str


def prepare(group: str, draft: TurnDraft) -> Prepared:
    """Check and normalise a draft; nothing is read or written.

    Raises:
        InvalidRequest: A bound is broken; the field and the bound are named.
    """
    _check_short_fields(draft)
    content = check_content(draft.content)
    occurred = now() if draft.occurred_at is None else utc(draft.occurred_at, "occurred_at")
    offset = draft.utc_offset_s
    if offset is None and draft.occurred_at is not None:
        offset = offset_of(draft.occurred_at)
    # Without an id of its own a turn gets a random one: equal words later are another turn.
    reference = draft.source_ref or "minted:" + secrets.token_hex(16)
    clean = replace(
        draft,
        content=content,
        occurred_at=occurred,
        tags=clean_tags(draft.tags),
        utc_offset_s=offset,
    )
    uuid = turn_id(group, draft.source, draft.session, reference)
    titled_text = f"{draft.title}\n{content}" if draft.title else content
    return Prepared(
        uuid, clean, micros(occurred), precision_of(occurred), content_hash(titled_text)
    )


def turn_id(group: str, source: str, session: str, reference: str) -> str:
    """Return the uuid of the turn that has a reference at its origin."""
    return stable_id(group, "turn", source, session, reference)


def insert(connection: Connection, turn: Prepared, *, anew: bool = False) -> tuple[Turn, bool]:
    """Store a turn unless it is a duplicate; return the stored one and whether it was there before.

    One that is ``anew`` is known to be no duplicate, whatever it says.
    """
    first = None if anew else _duplicate_of(connection, turn)
    if first is not None:
        return first, True
    draft = turn.draft
    [row] = connection.execute(
        f"""INSERT INTO turns (uuid, role, actor, session, source, source_ref, kind, content,
            tags, hash, occurred_at, recorded_at, chunk, importance, occurred_precision,
            utc_offset_s)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            RETURNING {TURN_COLUMNS}""",  # noqa: S608 - literals
        (
            turn.uuid,
            draft.role,
            draft.actor,
            draft.session,
            draft.source,
            draft.source_ref,
            draft.kind,
            draft.content,
            json.dumps(draft.tags, ensure_ascii=False),
            turn.hash,
            turn.occurred_at,
            micros(now()),
            dump_chunk(draft.chunk),
            draft.importance,
            turn.precision,
            draft.utc_offset_s,
        ),
    )
    connection.executemany(
        "INSERT INTO turn_tags (tag, turn) VALUES (?, ?)", [(tag, turn.uuid) for tag in draft.tags]
    )
    return read_turn(row), False


def read_turn(row: TurnRow) -> Turn:
    """Return the turn of a row of ``TURN_COLUMNS``."""
    (
        uuid,
        seq,
        role,
        content,
        session,
        occurred,
        recorded,
        actor,
        source,
        reference,
        kind,
        tags,
        chunk,
        precision,
        utc_offset_s,
    ) = row
    return Turn(
        uuid=uuid,
        seq=seq,
        role=role,
        content=content,
        session=session,
        occurred_at=with_precision(from_micros(occurred), precision),
        recorded_at=from_micros(recorded),
        actor=actor,
        source=source,
        source_ref=reference,
        kind=kind,
        tags=tuple(json.loads(tags)) if tags != "[]" else (),
        chunk=Chunk(*json.loads(chunk)) if chunk else None,
        utc_offset_s=utc_offset_s,
    )


def count_known(connection: Connection, uuids: Sequence[str]) -> int:
    """Return how many of the ids are those of turns, each counted as often as it is given."""
    (number,) = connection.execute(
        "SELECT count(*) FROM json_each(?) AS asked JOIN turns ON turns.uuid = asked.value",
        (listed(uuids),),
    ).fetchone()
    return number


def dump_chunk(chunk: Chunk | None) -> str:
    """Return a chunk as the JSON of its column; an empty text for None."""
    return json.dumps([chunk.path, chunk.part, chunk.parts], ensure_ascii=False) if chunk else ""


def of_session(connection: Connection, session: str) -> list[Turn]:
    """Return the turns of a session in the order in which they were stored."""
    return _select(connection, "WHERE session = ? ORDER BY seq", (session,))


def renumber(connection: Connection, parts: Sequence[tuple[str, Chunk]]) -> None:
    """Note where turns stand in their document now."""
    connection.executemany(
        "UPDATE turns SET chunk = ? WHERE uuid = ?",
        [(dump_chunk(chunk), uuid) for uuid, chunk in parts],
    )


def get_many(connection: Connection, uuids: Sequence[str]) -> list[Turn]:
    """Return turns in the order asked; absent ones are left out."""
    return _select(
        connection,
        "JOIN json_each(?) AS asked ON turns.uuid = asked.value ORDER BY asked.key",
        (listed(uuids),),
    )


def recent(connection: Connection, limit: int, session: str | None) -> list[Turn]:
    """Return the latest turns by event time, newest first."""
    where, values = ("", ()) if session is None else ("WHERE session = ?", (session,))
    return _select(
        connection, f"{where} ORDER BY occurred_at DESC, seq DESC LIMIT ?", (*values, limit)
    )


def latest_ids(connection: Connection, session: str, limit: int) -> list[str]:
    """Return the ids of a session's latest turns by event time, newest first."""
    latest = "SELECT uuid FROM turns WHERE session = ? ORDER BY occurred_at DESC, seq DESC LIMIT ?"
    return [uuid for (uuid,) in connection.execute(latest, (session, limit))]


def page(
    connection: Connection,
    session: str | None,
    before: tuple[int, int] | None,
    limit: int,
    words: Sequence[str] = (),
    *,
    about: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Turn]:
    """Return turns of a session (None: of all) before a (microsecond, seq), newest first.

    With folded ``words`` only the turns whose folded text has each of them; the texts are read
    until there are enough. With ``about``, a node's uuid, only those that mention it. ``since`` and
    ``until`` are half-open, in the person's zone: dates are compared with its wall clock.
    """
    values: list[str | int] = [*(before or (1 << 62, 0))]
    where = "WHERE (occurred_at, seq) < (?, ?)"
    if session is not None:
        where += " AND session = ?"
        values.append(session)
    if about:
        where += " AND uuid IN (SELECT episode FROM mention WHERE node = ?)"
        values.append(about)
    bounds: tuple[tuple[time_sql.Comparison, datetime | None], ...] = (
        (">=", since),
        ("<", until),
    )
    for comparison, moment in bounds:
        if moment is not None:
            condition, moments = time_sql.begins(
                "occurred_at", "occurred_precision", comparison, moment
            )
            where = f"{where} AND {condition}"
            values += moments
    order = f"{where} ORDER BY occurred_at DESC, seq DESC"
    if not words:
        return _select(connection, f"{order} LIMIT ?", (*values, limit))
    texts = connection.execute(f"SELECT uuid, content FROM turns {order}", values)  # noqa: S608
    matches = (uuid for uuid, content in texts if _has_all(fold(content), words))
    return get_many(connection, list(islice(matches, limit)))


def _has_all(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def sessions(connection: Connection, limit: int) -> list[SessionTurns]:
    """Return the latest sessions with their numbers of turns; reads an index, no texts."""
    rows = connection.execute(
        "SELECT session, count(*), max(occurred_at) FROM turns GROUP BY session "
        "ORDER BY 3 DESC, session LIMIT ?",
        (limit,),
    )
    return [SessionTurns(name, turns, from_micros(at)) for name, turns, at in rows]


def session_order(connection: Connection) -> list[str]:
    """Return the names of all sessions, the one that began first first."""
    rows = connection.execute(
        "SELECT session FROM turns GROUP BY session ORDER BY min(occurred_at), min(seq)"
    )
    return [name for (name,) in rows]


def around_many(connection: Connection, uuids: Sequence[str], n: int) -> dict[str, list[Turn]]:
    """Return uuid → the turn with up to ``n`` turns before and after it in its session.

    Each turn is read once; absent uuids are left out.
    """
    middles = connection.execute(
        "SELECT uuid, session, seq FROM turns WHERE uuid IN (SELECT value FROM json_each(?))",
        (listed(uuids),),
    ).fetchall()
    places = {uuid: _places(connection, session, seq, n) for uuid, session, seq in middles}
    wanted = listed(sorted(set[int]().union(*places.values())))
    turns = {turn.seq: turn for turn in _select(connection, f"WHERE seq IN {NUMBERS}", (wanted,))}
    around: dict[str, list[Turn]] = {}
    for uuid in uuids:
        if uuid in places:
            around[uuid] = [turns[seq] for seq in places[uuid]]
    return around


def near(connection: Connection, uuids: Sequence[str], n: int) -> list[str]:
    """Return uuids of the turns at most ``n`` places from any of some turns in its session.

    Absent uuids are left out.
    """
    middles = connection.execute(
        "SELECT session, seq FROM turns WHERE uuid IN (SELECT value FROM json_each(?))",
        (listed(uuids),),
    ).fetchall()
    wanted = sorted(
        {place for session, seq in middles for place in _places(connection, session, seq, n)}
    )
    rows = connection.execute(
        f"SELECT uuid FROM turns WHERE seq IN {NUMBERS} ORDER BY seq",  # noqa: S608 - literals
        (listed(wanted),),
    )
    return [uuid for (uuid,) in rows]


def _places(connection: Connection, session: str, seq: int, n: int) -> list[int]:
    """Return the numbers of a turn and its neighbours, in order; reads an index, no texts."""
    earlier = connection.execute(
        "SELECT seq FROM turns WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (session, seq, n),
    ).fetchall()
    later = connection.execute(
        "SELECT seq FROM turns WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?",
        (session, seq, n),
    ).fetchall()
    return [*(number for (number,) in reversed(earlier)), seq, *(number for (number,) in later)]


def scan(connection: Connection, after_seq: int, limit: int) -> list[Turn]:
    """Return turns in the order in which they were stored."""
    return _select(connection, "WHERE seq > ? ORDER BY seq LIMIT ?", (after_seq, limit))


def forget(connection: Connection, uuids: Sequence[str]) -> int:
    """Delete turns with tags and jobs, log their episodes as changed; return their number.

    Their facts in the graph are the caller's to judge.
    """
    existing = [turn.uuid for turn in get_many(connection, uuids)]
    connection.executemany("DELETE FROM turns WHERE uuid = ?", [(uuid,) for uuid in existing])
    log_changes(connection, [Change("episode", uuid) for uuid in existing])
    return len(existing)


def of_kind(connection: Connection, kind: str, limit: int) -> list[Turn]:
    """Return the latest turns of a kind by event time, newest first."""
    return _select(
        connection, "WHERE kind = ? ORDER BY occurred_at DESC, seq DESC LIMIT ?", (kind, limit)
    )


def span(connection: Connection) -> tuple[datetime | None, datetime | None]:
    """Return the event times of the first and the last turn."""
    first, last = connection.execute(
        "SELECT min(occurred_at), max(occurred_at) FROM turns"
    ).fetchone()
    return (None, None) if first is None else (from_micros(first), from_micros(last))


def count(connection: Connection) -> int:
    """Return how many turns there are."""
    (number,) = connection.execute("SELECT count(*) FROM turns").fetchone()
    return number


def _select(connection: Connection, rest: str, parameters: Sequence[str | int]) -> list[Turn]:
    # `rest` is always a literal of this module; values are bound.
    rows = connection.execute(f"SELECT {TURN_COLUMNS} FROM turns {rest}", parameters)  # noqa: S608
    return [read_turn(row) for row in rows]


def _duplicate_of(connection: Connection, turn: Prepared) -> Turn | None:
    if turn.draft.source_ref:
        stored = get_many(connection, [turn.uuid])
    else:
        window = DEDUPE_WINDOW_S * 1_000_000
        stored = _select(
            connection,
            # The plus signs keep the planner on turns_by_hash, where at most a few rows are met.
            """WHERE hash = ? AND occurred_at BETWEEN ? AND ?
                AND +source = ? AND +session = ? AND +role = ? ORDER BY seq LIMIT 1""",
            (
                turn.hash,
                turn.occurred_at - window,
                turn.occurred_at + window,
                turn.draft.source,
                turn.draft.session,
                turn.draft.role,
            ),
        )
    return stored[0] if stored else None


def check_content(content: str) -> str:
    """Return a text in the form in which it is stored; InvalidRequest when it breaks a bound."""
    if not is_text(content):
        raise InvalidRequest("content", "must be valid Unicode, without lone surrogates")
    clean = normalise(content)
    if not 1 <= len(clean) <= MAX_CONTENT:
        raise InvalidRequest(
            "content", f"must be 1 to {MAX_CONTENT:,} characters, got {len(clean):,}"
        )
    if not clean.strip():
        raise InvalidRequest("content", "must hold more than white space")
    return clean


def _check_short_fields(draft: TurnDraft) -> None:
    if draft.chunk and not (1 <= len(draft.chunk.path) <= MAX_PATH and is_text(draft.chunk.path)):
        raise InvalidRequest("chunk.path", f"must be 1 to {MAX_PATH:,} characters of valid Unicode")
    check_choice("role", draft.role, ROLES)
    check_kind("kind", draft.kind)
    values = {
        "actor": draft.actor,
        "session": draft.session,
        "source": draft.source,
        "source_ref": draft.source_ref,
    }
    for name, value in values.items():
        least, most = _BOUNDS[name]
        if not least <= len(value) <= most or not is_text(value):
            raise InvalidRequest(name, f"must be {least} to {most} characters of valid Unicode")


class TurnListeners:
    """The listeners of one memory; set by the code that opens it.

    Attributes:
        tellers: Listeners, called in order in the writer's thread.
        wake: Called after turns were stored, to wake followers; they read what is new from their
            positions.
        erased: Whether a listener erased text that must be overwritten on disk.
    """

    def __init__(self) -> None:
        self.tellers: tuple[TellListener, ...] = ()
        self.wake: Callable[[], None] = lambda: None
        self.erased = False

    def tell(self, db: Connection, turn: Turn) -> None:
        """Call every listener with a turn that this transaction stores."""
        for teller in self.tellers:
            self.erased = teller(db, turn) or self.erased
