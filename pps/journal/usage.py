"""What sessions were given, and what language models took; the oldest rows of the first are forgotten.

What models took is kept by day and model and holds no text, so forgetting leaves it as it is.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from pps.core.errors import StoreUnavailable
from pps.core.reports import SessionInjected
from pps.core.sql import LIST, Connection, insert, listed
from pps.core.time import from_micros, micros, now, utc
from pps.journal.store import Store, reads, writes

_log = logging.getLogger(__name__)

KEPT_D = 30
"""Days for which it is kept what a session was shown."""
KEPT_ROWS = 100_000
"""Most rows kept of what was shown, all sessions together."""
LOOKED_AT = 1_000
"""Most rows that are counted of what a session was shown, the latest: some 25 packs."""

Occasion: TypeAlias = Literal["startup", "turn", "compact"]
"""A pack at a beginning or at a prompt; ``compact``: the session has forgotten what it was given before."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a session has before it: ids that it was shown, and how many prompts of it were answered."""

    ids: frozenset[str] = frozenset()
    prompts: int = 0


@dataclass(frozen=True, slots=True)
class PartUsed:
    """How often a session was given a part, and how many tokens that was in all.

    ``part`` is a layer or ``workload``; ``startup`` and ``recalled`` are the packs at its start and at its prompts.
    """

    part: str
    times: int
    tokens: int


def record_shown(connection: Connection, session: str, ids: Iterable[str], at: datetime) -> None:
    """Note that a session was shown these ids, and drop what is too old or too much."""
    moment = utc(at, "at")
    insert(
        connection,
        "INSERT INTO shown (session, id, at)",
        [(session, id_, micros(moment)) for id_ in ids],
    )
    connection.execute("DELETE FROM shown WHERE at < ?", (micros(moment - timedelta(days=KEPT_D)),))
    connection.execute(
        "DELETE FROM shown WHERE seq <= (SELECT max(seq) FROM shown) - ?", (KEPT_ROWS,)
    )


def _record_given(
    connection: Connection,
    session: str,
    given: Occasion,
    tokens: int,
    at: datetime,
    part: str = "",
) -> None:
    """Note that a session was given a pack, or one part of what it began with, of so many tokens; 0 is an empty one."""
    moment = utc(at, "at")
    row = (session, given, tokens, micros(moment), part)
    connection.execute(
        "INSERT INTO injected (session, given, tokens, at, part) VALUES (?, ?, ?, ?, ?)", row
    )
    connection.execute(
        "DELETE FROM injected WHERE at < ?", (micros(moment - timedelta(days=KEPT_D)),)
    )
    connection.execute(
        "DELETE FROM injected WHERE seq <= (SELECT max(seq) FROM injected) - ?", (KEPT_ROWS,)
    )


def times_shown(connection: Connection, session: str, since: datetime) -> dict[str, int]:
    """Return how often a session was shown each id at ``since`` or later, among its latest ``LOOKED_AT``."""
    rows = connection.execute(
        "SELECT id FROM shown WHERE session = ? AND at >= ? ORDER BY at DESC LIMIT ?",
        (session, micros(utc(since, "since")), LOOKED_AT),
    )
    return Counter(one for (one,) in rows)


def record(
    connection: Connection,
    session: str,
    occasion: Occasion,
    tokens: int,
    ids: Iterable[str],
) -> None:
    """Note what a session was given just now, and how many tokens that were; kept for 30 days."""
    moment = now()
    _record_given(connection, session, occasion, tokens, moment)
    if session:
        record_shown(connection, session, ids, moment)


def record_parts(
    connection: Connection, session: str, parts: Mapping[str, int], ids: Iterable[str]
) -> None:
    """Note the tokens of each part that a session began with, and what it was shown; kept for 30 days."""
    moment = now()
    for part, tokens in parts.items():
        _record_given(connection, session, "startup", tokens, moment, part)
    record_shown(connection, session, ids, moment)


def seen(connection: Connection, session: str) -> Seen:
    """Return what a session was shown since it began, or since it was last compacted."""
    last = "SELECT coalesce(max(at), 0) FROM injected WHERE session = ? AND given = 'compact'"
    since = connection.execute(last, (session,)).fetchone()[0]
    asked = "SELECT count(*) FROM injected WHERE session = ? AND given = 'turn' AND tokens > 0 AND at > ?"
    ids = "SELECT DISTINCT id FROM shown WHERE session = ? AND at > ?"
    return Seen(
        frozenset(one for (one,) in connection.execute(ids, (session, since))),
        connection.execute(asked, (session, since)).fetchone()[0],
    )


def parts_used(connection: Connection, session: str, since: datetime) -> list[PartUsed]:
    """Return what a session was given at ``since`` or later, and since it was last compacted, by part."""
    last = "SELECT coalesce(max(at), 0) FROM injected WHERE session = ? AND given = 'compact'"
    compacted = connection.execute(last, (session,)).fetchone()[0]
    rows = connection.execute(
        "SELECT given, part, count(*), sum(tokens) FROM injected"
        " WHERE session = ? AND at >= ? AND at > ? AND given != 'compact' GROUP BY given, part ORDER BY min(seq)",
        (session, micros(utc(since, "since")), compacted),
    )
    names = {"startup": "startup", "turn": "recalled"}
    return [PartUsed(part or names[given], times, tokens) for given, part, times, tokens in rows]


def injected(connection: Connection, since: datetime) -> list[SessionInjected]:
    """Return what sessions were given at ``since`` or later, the latest session first."""
    rows = connection.execute(
        "SELECT session, count(*) FILTER (WHERE given = 'turn'), count(*) FILTER (WHERE given = 'turn' AND tokens = 0),"
        " sum(tokens), max(at) FROM injected"
        " WHERE at >= ? AND given != 'compact' GROUP BY session ORDER BY max(at) DESC",
        (micros(utc(since, "since")),),
    )
    return [
        SessionInjected(name, prompts, empty, tokens, from_micros(at))
        for name, prompts, empty, tokens, at in rows
    ]


def packs_given(
    connection: Connection, session: str, since: datetime, limit: int
) -> list[tuple[datetime, str, int, tuple[str, ...]]]:
    """Return (when, occasion, tokens, ids) of the packs that a session was given, the latest first."""
    rows = connection.execute(
        """SELECT i.at, i.given, sum(i.tokens), (SELECT json_group_array(DISTINCT s.id) FROM shown AS s
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
    """Drop that anybody was shown some ids: that of an anchor is made of its title."""
    passage_of = "substr(id, 1, instr(id, '#') - 1)"  # of an anchor, see ``recall.hits.shown_id``
    statement = f"DELETE FROM shown WHERE id IN {LIST} OR {passage_of} IN {LIST}"  # noqa: S608 - literals
    connection.execute(statement, (listed(ids), listed(ids)))


def _as_it_is(session: str) -> str:
    return session


@contextmanager
def _only_logged() -> Generator[None]:
    """Log that the journal cannot be written, instead of raising it."""
    try:
        yield
    except StoreUnavailable as error:
        _log.warning("what a session was given could not be noted: %s", error.message)


class Given(Store):
    """What sessions were given.

    Attributes:
        clean: Takes secrets out of the name of a session, as turns have it; whoever opens the journal sets it.
    """

    clean: Callable[[str], str] = staticmethod(_as_it_is)
    injected = reads(injected)
    forget = writes(forget)
    _packs = reads(packs_given)
    _parts = reads(parts_used)
    _record = writes(record)
    _record_parts = writes(record_parts)
    _seen = reads(seen)
    _times_shown = reads(times_shown)

    async def parts(self, session: str, since: datetime) -> list[PartUsed]:
        """Do what ``parts_used`` says."""
        return await self._parts(self.clean(session), since)

    async def packs(
        self, session: str, since: datetime, limit: int
    ) -> list[tuple[datetime, str, int, tuple[str, ...]]]:
        """Do what ``packs_given`` says."""
        return await self._packs(self.clean(session), since, limit)

    async def record(
        self, session: str, occasion: Occasion, tokens: int, ids: Iterable[str]
    ) -> None:
        """Do what ``record`` says."""
        await self._record(self.clean(session), occasion, tokens, ids)

    async def record_if_room(
        self, session: str, occasion: Occasion, tokens: int, ids: Iterable[str]
    ) -> None:
        """Do what ``record`` says, for an answer that was only read: a full disk must not refuse it."""
        with _only_logged():
            await self.record(session, occasion, tokens, ids)

    async def record_parts_if_room(
        self, session: str, parts: Mapping[str, int], ids: Iterable[str]
    ) -> None:
        """Do what ``record_parts`` says, as ``record_if_room``."""
        with _only_logged():
            await self._record_parts(self.clean(session), parts, ids)

    async def seen(self, session: str) -> Seen:
        """Do what ``seen`` says."""
        return await self._seen(self.clean(session))

    async def times_shown(self, session: str, since: datetime) -> dict[str, int]:
        """Do what ``times_shown`` says."""
        return await self._times_shown(self.clean(session), since)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model took on one day (UTC).

    Attributes:
        texts: Texts that were read.
        requests, unmetered: Answers, and those that did not say what they took.
        cost_micros: Millionths of a dollar, for the tokens whose price was known.
        unpriced: Tokens whose price was not known.
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
    *("texts", "requests", "unmetered", "tokens_in", "tokens_out", "cost_micros", "unpriced"),
)


def add(db: Connection, spent: Sequence[Spent]) -> None:
    """Add to what was spent."""
    db.executemany(
        f"""INSERT INTO spending (day, model, {", ".join(_COUNTED)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (day, model) DO UPDATE SET
            {", ".join(f"{name} = spending.{name} + excluded.{name}" for name in _COUNTED)}""",  # noqa: S608 - literals
        [(one.day.isoformat(), *astuple(one)[1:]) for one in spent],
    )


def since(db: Connection, first: date) -> list[Spent]:
    """Return what was spent from a day on, newest day first, then by model."""
    rows = db.execute(
        """SELECT day, model, texts, requests, unmetered, tokens_in, tokens_out, cost_micros, unpriced FROM spending
            WHERE day >= ? ORDER BY day DESC, model""",
        (first.isoformat(),),
    )
    return [Spent(date.fromisoformat(day), *rest) for day, *rest in rows]


class Spending(Store):
    """What was spent by one entity."""

    add = writes(add)
    since = reads(since)
