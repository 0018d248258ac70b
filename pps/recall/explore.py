"""Looking without a question: around a node, between two, facts in order of world time, what changed, what was said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pps.core.bounds import check_range
from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_uuid
from pps.core.recalled import Successor
from pps.core.reports import Bin, Changes, Histogram, TimelinePage
from pps.core.time import (
    CoarseTime,
    from_micros,
    has_begun,
    in_zone,
    micros,
    wall,
    wall_day,
)
from pps.core.values import Fact, Path, Subgraph, Turn
from pps.graph import traverse
from pps.graph.traverse import MAX_HOPS, Link
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.job_rows import Outcome
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.journal.turns import SessionTurns
from pps.recall.request import TimelineOptions
from pps.recall.superseding import Superseding

MAX_NODES = 1_000
"""Most nodes of one look."""
MOST_MADE = 20
"""Facts that are read of each turn of a page."""
_MOST_JOINTS, _MOST_SESSIONS = 100_000, 200
_CURSOR = re.compile(r"-?\d{1,18}\.\d{1,18}")
_CHANGE_CURSOR = re.compile(r"-?\d{1,18}\.[0-9a-f-]{36,37}")
_MOST_CHANGES = 50_000
_DAY_MICROS = 86_400_000_000
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn with what became of it: of ``total`` facts that it supports the oldest ``MOST_MADE``."""

    turn: Turn
    outcome: Outcome | None
    facts: tuple[Fact, ...]
    total: int

    @property
    def cursor(self) -> str:
        """Return the cursor that continues a list of turns after this one."""
        return f"{micros(self.turn.occurred_at)}.{self.turn.seq}"


@dataclass(frozen=True, slots=True)
class Said:
    """A page of turns; ``sessions`` are the latest 200, on the first page; ``next_cursor`` is empty on the last.

    ``successors`` are what took the place of those of its turns and facts that are superseded, by uuid.
    """

    turns: tuple[SaidTurn, ...]
    sessions: tuple[SessionTurns, ...]
    next_cursor: str
    successors: Mapping[str, Successor] = field(default_factory=dict[str, Successor])


class Walks:
    """Walks over one entity's facts and relations that have not ended, in both directions.

    Methods raise InvalidRequest for an id that is no canonical UUID or a bound that is broken, NotFound for a node
    that is not this entity's, and StoreUnavailable.
    """

    def __init__(
        self,
        client: IsolatedGraphitiClient,
        journal: Journal,
        superseding: Superseding,
        self_node: str,
    ) -> None:
        self._client = client
        self._superseding = superseding
        self._journal = journal
        self._self_node = self_node

    @property
    def own(self) -> str:
        """Return the uuid of the entity's own node, which is there from the beginning."""
        return self._self_node

    async def find(self, name: str, field: str = "id") -> str:
        """Return the uuid that an id, its first characters, a title, a name or an alias stands for.

        Raises:
            InvalidRequest: Several are called so; it lists them.
            NotFound: None is.
        """
        [uuid] = await self._journal.whole([name], path=field)
        return uuid

    async def around(
        self, node: str, *, max_hops: int = 1, limit: int = 200, as_of: datetime | None = None
    ) -> Subgraph:
        """Return a node, the nearest ``limit`` (1 to 1,000) within ``max_hops`` (1 to 8), and the joints among them.

        With ``as_of``, an aware instant of world time, by what held then in place of what has not ended.
        """
        check_range("max_hops", max_hops, 1, MAX_HOPS)
        check_range("limit", limit, 1, MAX_NODES)
        [node] = await self._there(node)
        zone = self._journal.zone
        then = None if as_of is None else in_zone(as_of, zone, "as_of")
        joints = _Joints(self._client, self._journal, then)
        hops = await traverse.distances(joints.of, node, max_hops, limit)
        await joints.of([one for one in hops if one not in joints.asked])
        nodes = await self._client.nodes(list(hops))
        there = {one.uuid for one in nodes}
        facts = [one for one in joints.facts.values() if {one.subject, one.object} <= there]
        return Subgraph(
            tuple(nodes), tuple(facts), {uuid: hop for uuid, hop in hops.items() if uuid in there}
        )

    async def between(self, start: str, end: str, *, max_hops: int = 2) -> Path | None:
        """Return a shortest walk from one node to another, or None within ``max_hops`` (1 to 8)."""
        check_range("max_hops", max_hops, 1, MAX_HOPS)
        start, end = await self._there(start, end)
        joints = _Joints(self._client, self._journal)
        walk = await traverse.shortest_path(joints.of, start, end, max_hops)
        if walk is None:
            return None
        return Path(
            tuple(await self._client.nodes(walk[0])), tuple(joints.facts[one] for one in walk[1])
        )

    async def changes(
        self,
        since: datetime,
        until: datetime,
        *,
        id: str = "",
        limit: int = 200,
        cursor: str = "",
    ) -> Changes:
        """Return the facts that began, ended or were replaced in ``[since, until)``, newest first, a page at a time.

        A fact and its successor are paired before the page is cut: a replacement is one change.

        Args:
            since: Aware, in world time.
            until: After ``since``.
            id: Id or name of a node that the facts join; empty for all.
            limit: Most changes of the page, 1 to 1,000.
            cursor: ``next_cursor`` of the page before.

        Raises:
            InvalidRequest: A bound is broken, or over 50,000 facts changed in that time.
            NotFound: ``id`` names nothing here.
        """
        check_range("limit", limit, 1, 1_000)
        if cursor and not _CHANGE_CURSOR.fullmatch(cursor):
            raise InvalidRequest("cursor", "give the 'next_cursor' of a page before, as it is")
        since = in_zone(since, self._journal.zone, "since")
        until = in_zone(until, self._journal.zone, "until")
        if until <= since:
            raise InvalidRequest("until", "must be after 'since'")
        node = await _named(self._client, self._journal, id) if id else None
        began = await self._began(since, until, node)
        # The journal tells (since, until], in whole microseconds.
        ended_ids = await self._journal.facts_turning(since - _TICK, until - _TICK)
        if max(len(began), len(ended_ids)) > _MOST_CHANGES:
            raise InvalidRequest(
                "until", f"over {_MOST_CHANGES:,} facts changed in that time: choose a shorter one"
            )
        ended = [
            fact
            for fact in await self._client.facts(ended_ids)
            if node in (None, fact.subject, fact.object)
        ]
        changes = _changes_of(began, ended)
        page = [change for change in changes if not cursor or change.key > _change_key(cursor)]
        more = len(page) > limit
        page = page[:limit]
        facts = [fact for change in page for fact in (change.old, change.new) if fact]
        ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
        nodes = await self._client.nodes(ends)
        return Changes(
            tuple(change.new for change in page if change.new and not change.old),
            tuple(change.old for change in page if change.old and not change.new),
            tuple((change.old, change.new) for change in page if change.old and change.new),
            {node.uuid: node.name for node in nodes},
            more,
            f"{-page[-1].key[0]}.{page[-1].key[1]}" if more else "",
            len(changes),
        )

    async def _began(self, since: datetime, until: datetime, node: str | None) -> list[Fact]:
        wanted = Wanted(after=since, before=until)
        began: list[Fact] = []
        cursor = ""
        while len(began) <= _MOST_CHANGES:
            page, cursor = await _facts_of_page(
                self._client, wanted, node=node, cursor=cursor, limit=1_000
            )
            began += page
            if not cursor:
                break
        return began

    async def histogram(self, bins: int = 60) -> Histogram:
        """Return in how many bins (1 to 500) of time how many facts began and ended; relations are not counted."""
        check_range("bins", bins, 1, 500)
        began, ended, undated = await self._journal.fact_times()
        if not began:
            return Histogram((), 0, undated)
        times = sorted((*began, *ended))
        first, early, last = times[0], times[len(times) // 10], times[-1]
        start = early if early - first > 2 * (last - early) else first
        start -= start % _DAY_MICROS
        end = max(start + 2 * _DAY_MICROS, last - last % _DAY_MICROS + _DAY_MICROS)
        width = -(-(end - start) // bins)
        counts = [[0, 0] for _ in range(bins)]
        for which, moments in enumerate((began, ended)):
            for moment in moments:
                if start <= moment < end:
                    counts[(moment - start) // width][which] += 1
        return Histogram(
            tuple(
                Bin(from_micros(start + number * width), *pair)
                for number, pair in enumerate(counts)
            ),
            len(began),
            undated,
            from_micros(start),
            from_micros(end),
        )

    async def said(self, session: str | None = None, *, cursor: str = "", limit: int = 50) -> Said:
        """Return turns of a session, or of all, newest first by event time, each with what was made of it.

        Args:
            session: None for all; the sessions that there are come with the first page.
            cursor: ``next_cursor`` of the page before.
            limit: 1 to 1,000 turns.

        Raises:
            InvalidRequest: A bound is broken.
        """
        check_range("limit", limit, 1, 1_000)
        if cursor and not _CURSOR.fullmatch(cursor):
            raise InvalidRequest("cursor", "give the 'next_cursor' of a page before, as it is")
        before = (int(cursor.split(".")[0]), int(cursor.split(".")[1])) if cursor else None
        turns = await self._journal.page(session, before, limit)
        ids = [one.uuid for one in turns]
        outcomes = await self._journal.queue.outcomes(ids)
        supported = await self._journal.facts_supported_by(ids)
        shown = {turn: of[:MOST_MADE] for turn, of in supported.items()}
        read = await self._client.facts(
            list(dict.fromkeys(fact for of in shown.values() for fact in of))
        )
        facts = {one.uuid: one for one in read}
        said = tuple(
            SaidTurn(
                turn,
                outcomes.get(turn.uuid),
                tuple(facts[fact] for fact in shown.get(turn.uuid, ()) if fact in facts),
                len(supported.get(turn.uuid, ())),
            )
            for turn in turns
        )
        return Said(
            said,
            () if cursor else tuple(await self._journal.sessions(_MOST_SESSIONS)),
            said[-1].cursor if len(said) == limit else "",
            await self._superseding.in_listing(turns, read),
        )

    async def _there(self, *nodes: str) -> list[str]:
        wanted = await self._journal.whole(nodes, path="id")
        if len(await self._client.nodes(list(dict.fromkeys(wanted)))) != len(set(wanted)):
            raise NotFound()
        return wanted


@dataclass(frozen=True, slots=True)
class _Change:
    """A fact that began (``new``), one that ended (``old``), or one that took another's place (both)."""

    key: tuple[int, str]
    old: Fact | None
    new: Fact | None


def _changes_of(began: Sequence[Fact], ended: Sequence[Fact]) -> list[_Change]:
    """Return the changes, each fact in one, newest first, then by uuid."""
    pairs = _replaced(began, ended)
    paired = {fact.uuid for pair in pairs for fact in pair}
    changes = [_Change(_sort_key(old.invalid_at, old.uuid), old, new) for old, new in pairs]
    changes += [
        _Change(_sort_key(fact.valid_at, fact.uuid), None, fact)
        for fact in began
        if fact.uuid not in paired
    ]
    # A fact that began and ended in that time is two changes: the mark keeps their keys apart.
    changes += [
        _Change(_sort_key(fact.invalid_at, f"{fact.uuid}-"), fact, None)
        for fact in ended
        if fact.uuid not in paired
    ]
    return sorted(changes, key=lambda change: change.key)


def _sort_key(at: datetime | None, uuid: str) -> tuple[int, str]:
    return -micros(at or datetime.min.replace(tzinfo=UTC)), uuid


def _change_key(cursor: str) -> tuple[int, str]:
    at, _, uuid = cursor.partition(".")
    return -int(at), uuid


def _replaced(began: Sequence[Fact], ended: Sequence[Fact]) -> tuple[tuple[Fact, Fact], ...]:
    """Return each ended fact with its successor: of the same subject, begun as it ended, best in the same relation."""
    at: defaultdict[tuple[str, datetime | None], list[Fact]] = defaultdict(list)
    for one in began:
        at[one.subject, one.valid_at].append(one)
    pairs = [
        (old, min(found, key=lambda one: (one.relation != old.relation, one.uuid)))
        for old in ended
        if (found := [one for one in at[old.subject, old.invalid_at] if one.uuid != old.uuid])
    ]
    return tuple(pairs)


class _Joints:
    """The joints of nodes, asked for ring by ring and kept."""

    def __init__(
        self, client: IsolatedGraphitiClient, journal: Journal, as_of: datetime | None = None
    ) -> None:
        self._client = client
        self._journal = journal
        self._as_of = as_of
        self.asked: set[str] = set()
        self.facts: dict[str, Fact] = {}

    async def of(self, nodes: Sequence[str]) -> Iterable[Link]:
        self.asked.update(nodes)
        then = self._as_of
        found = await self._client.facts_of_nodes(nodes, _MOST_JOINTS) if nodes else []
        held = [
            one
            for one in found
            if holds(one, then or self._journal.now())
            and not (then and one.valid_at and not has_begun(one.valid_at, then))
        ]
        self.facts.update((one.uuid, one) for one in held)
        return [Link(one.uuid, one.subject, one.object) for one in held]


@dataclass(frozen=True, slots=True)
class Wanted:
    """When facts are to begin or to hold, on the clock of a zone.

    The graph compares instants. So it is asked for a little more than is wanted, by the offset of the zone, and what
    dates say on the wall clock is decided here.

    Attributes:
        after, before: Aware, in the person's zone. Only facts with ``after <= valid_at < before``; of dates, those
            from the day of ``after`` on.
        as_of: The same. Only facts that hold then.
    """

    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None

    def bounds(self) -> dict[str, datetime]:
        """Return the options of the graph's timeline that let through all of them."""
        bounds: dict[str, datetime] = {}
        if self.after is not None:
            bounds["after"] = min(self.after, wall_day(self.after))
        if self.before is not None:
            bounds["before"] = max(self.before, wall(self.before))
        if self.as_of is not None:
            bounds["as_of"] = self.as_of
            bounds["as_of_dates"] = wall(self.as_of)
        return bounds

    def lets_through(self, fact: Fact) -> bool:
        if self.as_of is not None and not holds(fact, self.as_of):
            return False
        since = fact.valid_at
        if since is None:
            return True
        is_date = isinstance(since, CoarseTime)
        if self.after is not None and since < (wall_day(self.after) if is_date else self.after):
            return False
        if self.before is not None and since >= (wall(self.before) if is_date else self.before):
            return False
        return self.as_of is None or has_begun(since, self.as_of)


async def _facts_of_page(
    client: IsolatedGraphitiClient,
    wanted: Wanted,
    *,
    node: str | None = None,
    relation: str | None = None,
    cursor: str = "",
    limit: int,
) -> tuple[list[Fact], str]:
    """Return at most ``limit`` facts in order of time, and the cursor of the next page; empty when it is the last."""
    found: list[Fact] = []
    while True:
        page = await client.timeline(
            node=node, relation=relation, cursor=cursor, limit=limit, **wanted.bounds()
        )
        for fact in page:
            if wanted.lets_through(fact):
                found.append(fact)
                if len(found) == limit:
                    return found, client.timeline_cursor(fact)
        if len(page) < limit:
            return found, ""
        cursor = client.timeline_cursor(page[-1])


async def timeline_page(
    client: IsolatedGraphitiClient,
    journal: Journal,
    superseding: Superseding,
    options: TimelineOptions,
) -> TimelinePage:
    """Return a page of the facts that the options let through; undated ones come last.

    Raises:
        InvalidRequest: A bound is broken.
        NotFound: ``id`` names nothing here.
    """
    limit = options.get("limit", 100)
    check_range("limit", limit, 1, 1000)
    name = options.get("id")
    times = {name: options.get(name) for name in ("after", "before", "as_of")}
    zone = journal.zone
    wanted = Wanted(
        **{name: in_zone(at, zone, name) for name, at in times.items() if at is not None}
    )
    facts, cursor = await _facts_of_page(
        client,
        wanted,
        node=await _named(client, journal, name) if name else None,
        relation=options.get("relation"),
        cursor=options.get("cursor", ""),
        limit=limit,
    )
    ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
    names = {node.uuid: node.name for node in await client.nodes(ends)}
    successors = await superseding.in_listing((), facts, at=wanted.as_of)
    return TimelinePage(tuple(facts), names, cursor, successors)


async def _named(client: IsolatedGraphitiClient, journal: Journal, name: str) -> str:
    [uuid] = await journal.whole([name], strict=False, path="id")
    nodes = await client.nodes([uuid]) if is_uuid(uuid) else []
    if not nodes:
        raise NotFound("node")
    return nodes[0].uuid
