"""The context packs that sessions got, and the tokens and costs of language models.

Old rows about sessions are dropped. Rows about models are kept by day and model; they hold no text,
so forgetting leaves them as they are.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Literal, TypeAlias

from pps.core.errors import StoreUnavailable
from pps.core.reports import SessionInjected
from pps.core.sql import LIST, Connection, insert, listed
from pps.core.time import from_micros, micros, now, utc
from pps.journal.store import Store, reads, writes

_log = logging.getLogger(__name__)

KEPT_D = 30
"""Days for which rows about sessions are kept."""
KEPT_ROWS = 100_000
"""Most rows of shown ids, and of packs, that are kept for all sessions together."""
LOOKED_AT = 1_000
"""Most shown ids of a session that are counted, the latest: about 25 packs."""

Occasion: TypeAlias = Literal["startup", "turn", "compact"]
"""A pack at the session's start or at a prompt; ``compact``: the session lost its earlier packs."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The ids that a session has in its context, and the number of its prompts that got a pack."""

    ids: frozenset[str] = frozenset()
    prompts: int = 0


@dataclass(frozen=True, slots=True)
class PartUsed:
    """How often a session got a part of a context pack, and the tokens of all of them.

    ``part`` is a layer or ``workload``, or one of ``startup`` and ``recalled`` for whole packs at
    the start and at prompts.
    """

    part: str
    times: int
    tokens: int


def record_shown(connection: Connection, session: str, ids: Iterable[str], at: datetime) -> None:
    """Note that a session was shown these ids; drop rows that are too old or too many."""
    shown_at = utc(at, "at")
    insert(
        connection,
        "INSERT INTO shown (session, id, at)",
        [(session, id_, micros(shown_at)) for id_ in ids],
    )
    connection.execute(
        "DELETE FROM shown WHERE at < ?", (micros(shown_at - timedelta(days=KEPT_D)),)
    )
    connection.execute(
        "DELETE FROM shown WHERE seq <= (SELECT max(seq) FROM shown) - ?", (KEPT_ROWS,)
    )


def _record_given(
    connection: Connection,
    session: str,
    occasion: Occasion,
    tokens: int,
    at: datetime,
    part: str = "",
) -> None:
    """Note a pack that a session got, or one part of its first pack; 0 tokens is an empty pack."""
    given_at = utc(at, "at")
    row = (session, occasion, tokens, micros(given_at), part)
    connection.execute(
        "INSERT INTO injected (session, given, tokens, at, part) VALUES (?, ?, ?, ?, ?)", row
    )
    connection.execute(
        "DELETE FROM injected WHERE at < ?", (micros(given_at - timedelta(days=KEPT_D)),)
    )
    connection.execute(
        "DELETE FROM injected WHERE seq <= (SELECT max(seq) FROM injected) - ?", (KEPT_ROWS,)
    )


def times_shown(connection: Connection, session: str, since: datetime) -> dict[str, int]:
    """Return id → how often a session was shown it since a time, among the latest ``LOOKED_AT``."""
    rows = connection.execute(
        "SELECT id FROM shown WHERE session = ? AND at >= ? ORDER BY at DESC LIMIT ?",
        (session, micros(utc(since, "since")), LOOKED_AT),
    )
    return Counter(id_ for (id_,) in rows)


def record(
    connection: Connection,
    session: str,
    occasion: Occasion,
    tokens: int,
    ids: Iterable[str],
) -> None:
    """Note the pack that a session gets now, its tokens and its ids; kept for 30 days."""
    moment = now()
    _record_given(connection, session, occasion, tokens, moment)
    if session:
        record_shown(connection, session, ids, moment)


def record_parts(
    connection: Connection, session: str, parts: Mapping[str, int], ids: Iterable[str]
) -> None:
    """Note the tokens of each part of a session's first pack, and its ids; kept for 30 days."""
    moment = now()
    for part, tokens in parts.items():
        _record_given(connection, session, "startup", tokens, moment, part)
    record_shown(connection, session, ids, moment)


def seen(connection: Connection, session: str) -> Seen:
    """Return what a session was shown since it began, or since it was last compacted."""
    compacted_at = _last_compacted(connection, session)
    shown_rows = connection.execute(
        "SELECT DISTINCT id FROM shown WHERE session = ? AND at > ?", (session, compacted_at)
    )
    ids = frozenset(chain.from_iterable(shown_rows.fetchall()))
    (prompts,) = connection.execute(
        """SELECT count(*) FROM injected
            WHERE session = ? AND given = 'turn' AND tokens > 0 AND at > ?""",
        (session, compacted_at),
    ).fetchone()
    return Seen(ids, prompts)


def _last_compacted(connection: Connection, session: str) -> int:
    """Return when a session was last compacted, in microseconds; 0 when it never was."""
    (at,) = connection.execute(
        "SELECT coalesce(max(at), 0) FROM injected WHERE session = ? AND given = 'compact'",
        (session,),
    ).fetchone()
    return at


def parts_used(connection: Connection, session: str, since: datetime) -> list[PartUsed]:
    """Return the parts that a session got since a time, and since it was last compacted."""
    rows = connection.execute(
        """SELECT given, part, count(*), sum(tokens) FROM injected
            WHERE session = ? AND at >= ? AND at > ? AND given != 'compact'
            GROUP BY given, part ORDER BY min(seq)""",
        (session, micros(utc(since, "since")), _last_compacted(connection, session)),
    )
    names = {"startup": "startup", "turn": "recalled"}
    return [
        PartUsed(part or names[occasion], times, tokens) for occasion, part, times, tokens in rows
    ]


def injected(connection: Connection, since: datetime) -> list[SessionInjected]:
    """Return the packs and tokens that each session got since a time, the latest session first."""
    rows = connection.execute(
        """SELECT session, count(*) FILTER (WHERE given = 'turn'),
                count(*) FILTER (WHERE given = 'turn' AND tokens = 0), sum(tokens), max(at)
            FROM injected
            WHERE at >= ? AND given != 'compact' GROUP BY session ORDER BY max(at) DESC""",
        (micros(utc(since, "since")),),
    )
    return [
        SessionInjected(name, prompts, empty, tokens, from_micros(at))
        for name, prompts, empty, tokens, at in rows
    ]


def packs_given(
    connection: Connection, session: str, since: datetime, limit: int
) -> list[tuple[datetime, str, int, tuple[str, ...]]]:
    """Return (time, occasion, tokens, ids) of the packs that a session got, the latest first."""
    rows = connection.execute(
        """SELECT i.at, i.given, sum(i.tokens),
                (SELECT json_group_array(DISTINCT s.id) FROM shown AS s
                WHERE s.session = ? AND s.at = i.at)
            FROM injected AS i WHERE i.session = ? AND i.at >= ? AND i.given != 'compact'
            GROUP BY i.at, i.given ORDER BY i.at DESC LIMIT ?""",
        (session, session, micros(utc(since, "since")), limit),
    )
    return [
        (from_micros(at), occasion, tokens, tuple(json.loads(ids)))
        for at, occasion, tokens, ids in rows
    ]


def forget(connection: Connection, ids: Sequence[str]) -> None:
    """Drop the rows of shown ids; the id of an anchor's passage is made of the anchor's title."""
    # Of an anchor, see ``recall.hits.shown_id``; PostgreSQL refuses a negative length.
    passage_of = "CASE WHEN instr(id, '#') > 0 THEN substr(id, 1, instr(id, '#') - 1) END"
    statement = f"DELETE FROM shown WHERE id IN {LIST} OR {passage_of} IN {LIST}"  # noqa: S608
    connection.execute(statement, (listed(ids), listed(ids)))


@contextmanager
def _only_logged() -> Generator[None]:
    """Log StoreUnavailable instead of raising it."""
    try:
        yield
    except StoreUnavailable as error:
        _log.warning("what a session was given could not be noted: %s", error.message)


class Given(Store):
    """The context packs that sessions got.

    Attributes:
        clean: Removes secrets from the name of a session, as in turns. The opener of the journal
            sets it.
    """

    clean: Callable[[str], str] = str
    injected = reads(injected)
    forget = writes(forget)
    _packs = reads(packs_given)
    _parts = reads(parts_used)
    _record = writes(record)
    _record_parts = writes(record_parts)
    _seen = reads(seen)
    _times_shown = reads(times_shown)

    async def parts(self, session: str, since: datetime) -> list[PartUsed]:
        """Call ``parts_used`` with the cleaned name of the session."""
        return await self._parts(self.clean(session), since)

    async def packs(
        self, session: str, since: datetime, limit: int
    ) -> list[tuple[datetime, str, int, tuple[str, ...]]]:
        """Call ``packs_given`` with the cleaned name of the session."""
        return await self._packs(self.clean(session), since, limit)

    async def record(
        self, session: str, occasion: Occasion, tokens: int, ids: Iterable[str]
    ) -> None:
        """Call the function ``record`` with the cleaned name of the session."""
        await self._record(self.clean(session), occasion, tokens, ids)

    async def record_if_room(
        self, session: str, occasion: Occasion, tokens: int, ids: Iterable[str]
    ) -> None:
        """Call ``record`` after a read, which must not fail because the disk is full."""
        with _only_logged():
            await self.record(session, occasion, tokens, ids)

    async def record_parts_if_room(
        self, session: str, parts: Mapping[str, int], ids: Iterable[str]
    ) -> None:
        """Call ``record_parts`` as ``record_if_room`` calls ``record``."""
        with _only_logged():
            await self._record_parts(self.clean(session), parts, ids)

    async def seen(self, session: str) -> Seen:
        """Call the function ``seen`` with the cleaned name of the session."""
        return await self._seen(self.clean(session))

    async def times_shown(self, session: str, since: datetime) -> dict[str, int]:
        """Call the function ``times_shown`` with the cleaned name of the session."""
        return await self._times_shown(self.clean(session), since)


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of one model on one day (UTC).

    Attributes:
        texts: Number of texts that it read.
        requests, unmetered: Number of its answers, and of answers without a count of tokens.
        cost_micros: Millionths of a dollar, for tokens with a known price.
        unpriced: Tokens without a known price.
    """

    day: date
    model: str
    texts: int = 0
    requests: int = 0
    unmetered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    unpriced: int = 0


_COUNTED = (
    "texts",
    "requests",
    "unmetered",
    "tokens_in",
    "tokens_out",
    "cost_micros",
    "unpriced",
)


def add(db: Connection, spent: Sequence[Spent]) -> None:
    """Add usage to that of the same days and models."""
    sums = ", ".join(f"{name} = spending.{name} + excluded.{name}" for name in _COUNTED)
    db.executemany(
        f"""INSERT INTO spending (day, model, {", ".join(_COUNTED)})
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (day, model) DO UPDATE SET {sums}""",  # noqa: S608 - literals
        [(day_usage.day.isoformat(), *astuple(day_usage)[1:]) for day_usage in spent],
    )


def since(db: Connection, first: date) -> list[Spent]:
    """Return the usage from a day on, newest day first, then by model."""
    rows = db.execute(
        """SELECT day, model, texts, requests, unmetered, tokens_in, tokens_out, cost_micros,
            unpriced FROM spending WHERE day >= ? ORDER BY day DESC, model""",
        (first.isoformat(),),
    )
    return [Spent(date.fromisoformat(day), *rest) for day, *rest in rows]


class Spending(Store):
    """The usage of models by one entity."""

    add = writes(add)
    since = reads(since)
