"""Views of a memory without a query: around a node, between two, changes, turns, facts in time."""

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
from pps.core.reports import Changes, Histogram, TimeBin, TimelinePage
from pps.core.text import fold
from pps.core.time import (
    CoarseTime,
    from_micros,
    has_begun,
    in_zone,
    micros,
    wall,
    wall_day,
)
from pps.core.values import Fact, Node, Path, Subgraph, Turn
from pps.graph.graph_store import MAX_HOPS, GraphLink, distances, shortest_path
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.job_rows import Outcome
from pps.journal.journal import Journal
from pps.journal.links import holds
from pps.journal.turns import SessionTurns
from pps.recall.request import TimelineOptions
from pps.recall.superseding import Superseding

MAX_NODES = 1_000
"""Most nodes of one view."""
MAX_FACTS_OF_TURN = 20
"""Facts that are read of each turn of a page."""
_MAX_FACTS_OF_NODES = 100_000
_MAX_SESSIONS = 200
_MAX_WORDS = 20
_MAX_OFFSET = 100_000
_MAX_CHANGES = 50_000
_FACTS_A_PAGE = 1_000
_CURSOR = re.compile(r"-?\d{1,18}\.\d{1,18}")
_CHANGE_CURSOR = re.compile(r"-?\d{1,18}\.[0-9a-f-]{36,37}")
_BAD_CURSOR = "give the 'next_cursor' of a page before, as it is"
_DAY_MICROS = 86_400_000_000
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn with its outcome: of ``total`` facts that it supports the oldest 20."""

    turn: Turn
    outcome: Outcome | None
    facts: tuple[Fact, ...]
    total: int

    @property
    def cursor(self) -> str:
        """Return the cursor that continues a list of turns after this one."""
        return f"{micros(self.turn.occurred_at)}.{self.turn.seq}"


@dataclass(frozen=True, slots=True)
class TurnPage:
    """A page of turns.

    Attributes:
        sessions: The latest 200, on the first page only.
        next_cursor: Empty on the last page.
        successors: Id → successor, of the turns and facts that are superseded.
    """

    turns: tuple[SaidTurn, ...]
    sessions: tuple[SessionTurns, ...]
    next_cursor: str
    successors: Mapping[str, Successor] = field(default_factory=dict[str, Successor])


@dataclass(frozen=True, slots=True)
class NodePage:
    """A page of nodes by name.

    Attributes:
        facts: Uuid of a node → number of facts with it.
        kinds: Kind → number of all its nodes; on the first page only.
        next_cursor: Empty on the last page.
    """

    nodes: tuple[Node, ...]
    facts: Mapping[str, int]
    kinds: Mapping[str, int]
    next_cursor: str


class Walks:
    """Walks over one entity's facts and relations that have not ended, in both directions.

    Methods raise InvalidRequest for an id that is no canonical UUID or a bound that is broken,
    NotFound for a node that is not this entity's, and StoreUnavailable.
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
        """Return the uuid of the entity's own node, which exists from the beginning."""
        return self._self_node

    async def find(self, name: str, field: str = "id") -> str:
        """Return the uuid for an id, its first characters, a title, a name or an alias.

        Raises:
            InvalidRequest: Several have that name; it lists them.
            NotFound: None has.
        """
        [uuid] = await self._journal.whole([name], path=field)
        return uuid

    async def around(
        self,
        node: str,
        *,
        max_hops: int = 1,
        limit: int = 200,
        as_of: datetime | None = None,
        offset: int = 0,
    ) -> Subgraph:
        """Return a node, the nearest ``limit`` nodes around it, and the facts among them.

        Args:
            node: Its id or name.
            max_hops: 1 to 8.
            limit: 1 to 1,000.
            as_of: An aware instant of world time: use the facts that held then instead of the facts
                that have not ended.
            offset: How many of the nearest nodes are skipped, 0 to 100,000. With an offset the
                result has the nodes that come next, without the node itself, and the facts that
                join them to each other or to nearer nodes.
        """
        check_range("max_hops", max_hops, 1, MAX_HOPS)
        check_range("limit", limit, 1, MAX_NODES)
        check_range("offset", offset, 0, _MAX_OFFSET)
        [node] = await self._existing(node)
        moment = None
        if as_of is not None:
            moment = in_zone(as_of, self._journal.zone, "as_of")
        facts = _FactsOfNodes(self._client, self._journal, moment)
        hops = await distances(facts.links_of, node, max_hops, offset + limit)
        page = list(hops)[offset + 1 if offset else 0 :]
        await facts.links_of([id_ for id_ in page if id_ not in facts.asked])
        nodes = await self._client.nodes(page)
        existing = {each.uuid for each in nodes}
        known = existing.union(hops) if offset else existing
        among = [
            fact
            for fact in facts.by_id.values()
            if {fact.subject, fact.object} <= known
            and not existing.isdisjoint((fact.subject, fact.object))
        ]
        hops_of = {uuid: hop for uuid, hop in hops.items() if uuid in existing}
        return Subgraph(tuple(nodes), tuple(among), hops_of)

    async def between(self, start: str, end: str, *, max_hops: int = 2) -> Path | None:
        """Return a shortest walk from one node to another, or None within ``max_hops`` (1 to 8)."""
        check_range("max_hops", max_hops, 1, MAX_HOPS)
        start, end = await self._existing(start, end)
        facts = _FactsOfNodes(self._client, self._journal)
        walk = await shortest_path(facts.links_of, start, end, max_hops)
        if walk is None:
            return None
        node_ids, fact_ids = walk
        nodes = await self._client.nodes(node_ids)
        return Path(tuple(nodes), tuple(facts.by_id[id_] for id_ in fact_ids))

    async def changes(
        self,
        since: datetime,
        until: datetime,
        *,
        id: str = "",
        limit: int = 200,
        cursor: str = "",
    ) -> Changes:
        """Return a page of the facts that began, ended or were replaced in ``[since, until)``.

        The newest come first. A fact and its successor are paired before the page is cut: a
        replacement is one change.

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
            raise InvalidRequest("cursor", _BAD_CURSOR)
        since = in_zone(since, self._journal.zone, "since")
        until = in_zone(until, self._journal.zone, "until")
        if until <= since:
            raise InvalidRequest("until", "must be after 'since'")
        node = await _node_named(self._client, self._journal, id) if id else None
        began = await self._began(since, until, node)
        # The journal reads (since, until], in whole microseconds.
        ended_ids = await self._journal.facts_turning(since - _TICK, until - _TICK)
        if max(len(began), len(ended_ids)) > _MAX_CHANGES:
            raise InvalidRequest(
                "until", f"over {_MAX_CHANGES:,} facts changed in that time: choose a shorter one"
            )
        ended = [
            fact
            for fact in await self._client.facts(ended_ids)
            if node in (None, fact.subject, fact.object)
        ]
        changes = _changes_of(began, ended)
        rest = [change for change in changes if not cursor or change.key > _change_key(cursor)]
        page = rest[:limit]
        has_more = len(rest) > limit
        facts = [fact for change in page for fact in (change.old, change.new) if fact]
        ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
        nodes = await self._client.nodes(ends)
        return Changes(
            tuple(change.new for change in page if change.new and not change.old),
            tuple(change.old for change in page if change.old and not change.new),
            tuple((change.old, change.new) for change in page if change.old and change.new),
            {node.uuid: node.name for node in nodes},
            has_more,
            f"{-page[-1].key[0]}.{page[-1].key[1]}" if has_more else "",
            len(changes),
        )

    async def _began(self, since: datetime, until: datetime, node: str | None) -> list[Fact]:
        wanted = TimeBounds(after=since, before=until)
        began: list[Fact] = []
        cursor = ""
        while len(began) <= _MAX_CHANGES:
            page, cursor = await _page_of_facts(
                self._client, wanted, node=node, cursor=cursor, limit=_FACTS_A_PAGE
            )
            began += page
            if not cursor:
                break
        return began

    async def histogram(self, bins: int = 60) -> Histogram:
        """Return how many facts began and ended in each of 1 to 500 bins of time.

        Relations are not counted.
        """
        check_range("bins", bins, 1, 500)
        began, ended, undated = await self._journal.fact_times()
        if not began:
            return Histogram((), 0, undated)
        times = sorted((*began, *ended))
        first = times[0]
        last = times[-1]
        first_decile = times[len(times) // 10]
        # A few facts long before all others would squeeze these into the last bins.
        start = first_decile if first_decile - first > 2 * (last - first_decile) else first
        start -= start % _DAY_MICROS
        end = max(start + 2 * _DAY_MICROS, last - last % _DAY_MICROS + _DAY_MICROS)
        width = -(-(end - start) // bins)
        begun_counts = _counts_by_bin(began, start, end, width, bins)
        ended_counts = _counts_by_bin(ended, start, end, width, bins)
        return Histogram(
            tuple(
                TimeBin(
                    from_micros(start + number * width), begun_counts[number], ended_counts[number]
                )
                for number in range(bins)
            ),
            len(began),
            undated,
            from_micros(start),
            from_micros(end),
        )

    async def nodes(
        self, kind: str = "", *, query: str = "", cursor: str = "", limit: int = 50
    ) -> NodePage:
        """Return nodes in the order of their names, a page at a time.

        Args:
            kind: Only of this kind, in any case; empty for all.
            query: Only those whose name or an alias contains this, in any case; empty for all.
            cursor: ``next_cursor`` of the page before.
            limit: 1 to 1,000 nodes.

        Raises:
            InvalidRequest: A bound is broken, or the node that the cursor stands for is gone.
        """
        check_range("limit", limit, 1, MAX_NODES)
        if cursor and not is_uuid(cursor):
            raise InvalidRequest("cursor", _BAD_CURSOR)
        ids = await self._journal.nodes_by_name(
            kind=kind, part=fold(query), after=cursor, limit=limit + 1
        )
        page = ids[:limit]
        nodes = {node.uuid: node for node in await self._client.nodes(page)}
        return NodePage(
            tuple(nodes[uuid] for uuid in page if uuid in nodes),
            await self._journal.count_facts_of(page),
            {} if cursor else await self._journal.count_kinds(),
            page[-1] if len(ids) > limit else "",
        )

    async def said(
        self,
        session: str | None = None,
        *,
        query: str = "",
        near: str = "",
        about: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str = "",
        limit: int = 50,
    ) -> TurnPage:
        """Return a page of turns, newest first by event time, each with its outcome.

        Args:
            session: None for all; the sessions come with the first page.
            query: Only turns that contain each of these words, in any case and order; at most 20
                words.
            near: Id of a turn: return it and its neighbours in the session, up to ``limit`` in all,
                in stored order. It excludes all other conditions.
            about: Id or name of a node: only turns that mention it.
            since: Aware; nothing before.
            until: Aware; nothing at or after.
            cursor: ``next_cursor`` of the page before.
            limit: 1 to 1,000 turns.

        Raises:
            InvalidRequest: A bound is broken.
            NotFound: ``near`` is no turn, or ``about`` no node, of this entity.
        """
        check_range("limit", limit, 1, 1_000)
        if near:
            if session is not None or query or cursor or about or since or until:
                raise InvalidRequest("near", "give it without any other condition")
            return await self._with_outcomes(await self._turns_near(near, limit), (), "")
        if cursor and not _CURSOR.fullmatch(cursor):
            raise InvalidRequest("cursor", _BAD_CURSOR)
        before = None
        if cursor:
            at, _, seq = cursor.partition(".")
            before = (int(at), int(seq))
        words = list(dict.fromkeys(fold(query).split()))
        if len(words) > _MAX_WORDS:
            raise InvalidRequest("query", f"must be at most {_MAX_WORDS} words, got {len(words)}")
        zone = self._journal.zone
        turns = await self._journal.page(
            session,
            before,
            limit,
            words,
            about=await _node_named(self._client, self._journal, about) if about else "",
            since=in_zone(since, zone, "since") if since else None,
            until=in_zone(until, zone, "until") if until else None,
        )
        sessions = () if cursor else tuple(await self._journal.sessions(_MAX_SESSIONS))
        last = turns[-1] if len(turns) == limit else None
        next_cursor = f"{micros(last.occurred_at)}.{last.seq}" if last else ""
        return await self._with_outcomes(turns, sessions, next_cursor)

    async def _turns_near(self, near: str, limit: int) -> list[Turn]:
        """Return a turn with its neighbours, the newest first."""
        [uuid] = await self._journal.whole([near], path="near")
        neighbours = await self._journal.around_many([uuid], (limit - 1) // 2)
        if uuid not in neighbours:
            raise NotFound()
        return neighbours[uuid][::-1]

    async def _with_outcomes(
        self, turns: Sequence[Turn], sessions: tuple[SessionTurns, ...], next_cursor: str
    ) -> TurnPage:
        ids = [turn.uuid for turn in turns]
        outcomes = await self._journal.queue.outcomes(ids)
        supported = await self._journal.facts_supported_by(ids)
        shown_ids = {turn: facts[:MAX_FACTS_OF_TURN] for turn, facts in supported.items()}
        wanted = dict.fromkeys(fact for facts in shown_ids.values() for fact in facts)
        facts = await self._client.facts(list(wanted))
        fact_by_id = {fact.uuid: fact for fact in facts}
        turns_with_outcomes: list[SaidTurn] = []
        for turn in turns:
            ids_of_turn = shown_ids.get(turn.uuid, ())
            oldest = tuple(fact_by_id[id_] for id_ in ids_of_turn if id_ in fact_by_id)
            total = len(supported.get(turn.uuid, ()))
            turns_with_outcomes.append(SaidTurn(turn, outcomes.get(turn.uuid), oldest, total))
        return TurnPage(
            tuple(turns_with_outcomes),
            sessions,
            next_cursor,
            await self._superseding.in_listing(turns, facts),
        )

    async def _existing(self, *nodes: str) -> list[str]:
        """Return the whole ids of nodes; NotFound if one does not exist."""
        ids = await self._journal.whole(nodes, path="id")
        if len(await self._client.nodes(list(dict.fromkeys(ids)))) != len(set(ids)):
            raise NotFound()
        return ids


def _counts_by_bin(times: Iterable[int], start: int, end: int, width: int, bins: int) -> list[int]:
    counts = [0] * bins
    for at in times:
        if start <= at < end:
            counts[(at - start) // width] += 1
    return counts


class _FactsOfNodes:
    """Reads the facts of nodes ring by ring, and keeps them.

    Attributes:
        asked: Nodes whose facts were read.
        by_id: The facts that hold.
    """

    def __init__(
        self, client: IsolatedGraphitiClient, journal: Journal, as_of: datetime | None = None
    ) -> None:
        self._client = client
        self._journal = journal
        self._as_of = as_of
        self.asked: set[str] = set()
        self.by_id: dict[str, Fact] = {}

    async def links_of(self, nodes: Sequence[str]) -> Iterable[GraphLink]:
        self.asked.update(nodes)
        if not nodes:
            return []
        facts = await self._client.facts_of_nodes(nodes, _MAX_FACTS_OF_NODES)
        held = [fact for fact in facts if self._holds(fact)]
        self.by_id.update((fact.uuid, fact) for fact in held)
        return [GraphLink(fact.uuid, fact.subject, fact.object) for fact in held]

    def _holds(self, fact: Fact) -> bool:
        if self._as_of is None:
            return holds(fact, self._journal.now())
        has_not_begun = fact.valid_at is not None and not has_begun(fact.valid_at, self._as_of)
        return holds(fact, self._as_of) and not has_not_begun


# ---- Changes ----


@dataclass(frozen=True, slots=True)
class _TimelineChange:
    """A fact that began (``new``), one that ended (``old``), or a replacement (both)."""

    key: tuple[int, str]
    old: Fact | None
    new: Fact | None


def _changes_of(began: Sequence[Fact], ended: Sequence[Fact]) -> list[_TimelineChange]:
    """Return the changes, each fact in one, newest first, then by uuid."""
    pairs = _replacements(began, ended)
    paired = {fact.uuid for pair in pairs for fact in pair}
    changes = [_TimelineChange(_sort_key(old.invalid_at, old.uuid), old, new) for old, new in pairs]
    changes += [
        _TimelineChange(_sort_key(fact.valid_at, fact.uuid), None, fact)
        for fact in began
        if fact.uuid not in paired
    ]
    # A fact that began and ended in that time is two changes: the hyphen keeps their keys apart.
    changes += [
        _TimelineChange(_sort_key(fact.invalid_at, f"{fact.uuid}-"), fact, None)
        for fact in ended
        if fact.uuid not in paired
    ]
    return sorted(changes, key=lambda change: change.key)


def _sort_key(at: datetime | None, uuid: str) -> tuple[int, str]:
    return -micros(at or datetime.min.replace(tzinfo=UTC)), uuid


def _change_key(cursor: str) -> tuple[int, str]:
    at, _, uuid = cursor.partition(".")
    return -int(at), uuid


def _replacements(began: Sequence[Fact], ended: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """Return each ended fact with its successor.

    A successor has the same subject and began as the fact ended; one of the same relation is
    preferred.
    """
    begun_at: defaultdict[tuple[str, datetime | None], list[Fact]] = defaultdict(list)
    for fact in began:
        begun_at[fact.subject, fact.valid_at].append(fact)
    pairs: list[tuple[Fact, Fact]] = []
    for old in ended:
        candidates = [
            fact for fact in begun_at[old.subject, old.invalid_at] if fact.uuid != old.uuid
        ]
        if candidates:
            new = min(candidates, key=lambda fact: (fact.relation != old.relation, fact.uuid))
            pairs.append((old, new))
    return pairs


# ---- Facts in order of time ----


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """When facts are to begin or to hold, on the clock of a zone.

    The graph compares instants. So it is asked for a little more than is wanted, by the offset of
    the zone, and what dates say on the wall clock is decided here.

    Attributes:
        after, before: Aware, in the person's zone. Only facts with ``after <= valid_at < before``;
            of dates, those from the day of ``after`` on.
        as_of: The same. Only facts that hold then.
    """

    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None

    def options(self) -> dict[str, datetime]:
        """Return the options of the graph's timeline that let through all of them."""
        options: dict[str, datetime] = {}
        if self.after is not None:
            options["after"] = min(self.after, wall_day(self.after))
        if self.before is not None:
            options["before"] = max(self.before, wall(self.before))
        if self.as_of is not None:
            options["as_of"] = self.as_of
            options["as_of_dates"] = wall(self.as_of)
        return options

    def allow(self, fact: Fact) -> bool:
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


async def _page_of_facts(
    client: IsolatedGraphitiClient,
    bounds: TimeBounds,
    *,
    node: str | None = None,
    relation: str | None = None,
    cursor: str = "",
    limit: int,
) -> tuple[list[Fact], str]:
    """Return at most ``limit`` facts in order of time, and the cursor of the next page.

    Empty when it is the last.
    """
    facts: list[Fact] = []
    while True:
        page = await client.timeline(
            node=node, relation=relation, cursor=cursor, limit=limit, **bounds.options()
        )
        for fact in page:
            if bounds.allow(fact):
                facts.append(fact)
                if len(facts) == limit:
                    return facts, client.timeline_cursor(fact)
        if len(page) < limit:
            return facts, ""
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
    zone = journal.zone
    times = {field: options.get(field) for field in ("after", "before", "as_of")}
    bounds = TimeBounds(
        **{field: in_zone(at, zone, field) for field, at in times.items() if at is not None}
    )
    facts, cursor = await _page_of_facts(
        client,
        bounds,
        node=await _node_named(client, journal, name) if name else None,
        relation=options.get("relation"),
        cursor=options.get("cursor", ""),
        limit=limit,
    )
    ends = list(dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object)))
    names = {node.uuid: node.name for node in await client.nodes(ends)}
    successors = await superseding.in_listing((), facts, at=bounds.as_of)
    return TimelinePage(tuple(facts), names, cursor, successors)


async def _node_named(client: IsolatedGraphitiClient, journal: Journal, name: str) -> str:
    [uuid] = await journal.whole([name], strict=False, path="id")
    nodes = await client.nodes([uuid]) if is_uuid(uuid) else []
    if not nodes:
        raise NotFound("node")
    return nodes[0].uuid
