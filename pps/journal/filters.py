"""Filters: the ids of a kind that a recall may see.

Each filter is one SQL statement over indexed columns; its answer is cached for a short time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Literal

from cachetools import TTLCache

from pps.core.kinds import NO_KINDS
from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros, in_zone, interval, micros, now, with_precision
from pps.core.values import ItemKind
from pps.journal import time_sql
from pps.journal.store import Readers
from pps.journal.writer import Writer

# CROSS JOIN holds SQLite to this order: from the few turns to their facts, never the reverse.
_FACTS_OF_TAGS = "SELECT s.fact FROM turn_tags AS g CROSS JOIN support AS s ON s.episode = g.turn"
_FACTS_OF_TURNS = "SELECT s.fact FROM turns AS t CROSS JOIN support AS s ON s.episode = t.uuid"
_TURNS_OF_FACTS = "SELECT s.episode FROM fact AS f CROSS JOIN support AS s ON s.fact = f.uuid"
_TURNS_OF_NODES = "SELECT r.turn FROM node AS n CROSS JOIN records AS r ON r.node = n.uuid"
_ENDS_OF_TURNS = """SELECT CASE e.side WHEN 0 THEN f.subject ELSE f.object END FROM turns AS t
    CROSS JOIN support AS s ON s.episode = t.uuid CROSS JOIN fact AS f ON f.uuid = s.fact
    CROSS JOIN (SELECT 0 AS side UNION ALL SELECT 1) AS e"""

KEPT_IDS = 200_000
"""Most ids cached for one memory: about 20 MB."""
_KEPT_FILTERS = 64
KEPT_S = 30.0
"""Longest time, in seconds, that an answer is cached: facts begin and end without any write."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """The items that a recall may see: values of a field are alternatives, fields add up.

    Attributes:
        kinds: Of a node or an episode: its kind. Of a fact: its own kind, or the kind of its
            subject or object.
        tags: The item has any of them. A fact also has the tags of its subject, its object and its
            supporting turns.
        sources, sessions, roles: Of the turn. A fact has those of its supporting turns; a node has
            those of its facts, and its own ``source`` attribute.
        relations: Names of relations. A node passes as the subject or object of such a fact that
            holds, a turn as the support of such a fact.
        layers: Names of layers of the entity's packs; each stands for the kinds of nodes in it.
        statuses: A node's ``status`` attribute; with ``layers``, the same node must match both. A
            fact passes by its subject or object; a turn by the node that it records, or by the
            subjects and objects of its facts.
        since, until: A half-open interval for an episode's event time, a fact's ``valid_at`` (else
            ``created_at``), or a node's ``created_at``. A day, month or year that has not ended by
            ``since`` passes. Times without a zone are read in the entity's zone, here and in
            ``as_of``; a date alone is its first instant there.
        as_of: World time. Facts: ``valid_at <= t < invalid_at`` (unknown ends are open) and not
            expired by then; None is now. Turns: with an event time up to then; None is every turn.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    sessions: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()


class _Where:
    """SQL conditions, joined by AND, with their parameters.

    Every condition is a literal, every value is bound.
    """

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.parameters: list[str | int] = []

    def add(self, condition: str, *parameters: str | int) -> None:
        self.conditions.append(condition)
        self.parameters.extend(parameters)

    def among(self, column: str, values: Sequence[str]) -> None:
        if values:
            self.add(f"{column} IN {LIST}", listed(values))

    def between(
        self, column: str, since: datetime | None, until: datetime | None, precision: str
    ) -> None:
        """Restrict a column to an interval; ``precision`` is the column of its precision.

        For dates see ``ItemFilter``.
        """
        if since is not None:
            self.meet(time_sql.ends_after(column, precision, since))
        if until is not None:
            self.meet(time_sql.begins(column, precision, "<", until))

    def meet(self, condition: time_sql.Condition) -> None:
        self.add(condition[0], *condition[1])

    def sql(self) -> str:
        return " AND ".join(self.conditions)


def allowed_ids(
    connection: Connection, kind: ItemKind, item_filter: ItemFilter, zone: tzinfo = UTC
) -> set[str] | None:
    """Return the ids that pass a filter in the entity's zone, or None when it restricts nothing.

    Anchors have none of the columns: a filter on any column but ``as_of`` lets no anchor through.
    "Holds now" restricts facts only together with another condition, because past facts have an
    index of their own.
    """
    if kind == "fact":
        return _facts(connection, item_filter, zone)
    if kind == "node":
        return _nodes(connection, item_filter, zone)
    if kind == "episode":
        return _episodes(connection, item_filter)
    is_restricted = any(
        getattr(item_filter, field.name) for field in fields(item_filter) if field.name != "as_of"
    )
    return set() if is_restricted else None


def within(
    connection: Connection,
    kind: Literal["fact", "episode"],
    since: datetime,
    until: datetime,
    limit: int,
) -> dict[str, int]:
    """Return id → event time (microseconds since 1970 UTC) in ``[since, until)``, latest first.

    A fact's time is its ``valid_at``, else its ``created_at``; relations are left out. A date is
    read in the zone of ``since``, as its first instant there.
    """
    if kind == "episode":
        table = "turns"
        time_column = "occurred_at"
        precision_column = "occurred_precision"
        facts_only = ""
    else:
        table = "fact"
        time_column = "at"
        precision_column = "valid_precision"
        facts_only = "AND +kind = 'fact'"
    where = _Where()
    where.between(time_column, since, until, precision_column)
    rows = connection.execute(
        f"""SELECT uuid, {time_column}, {precision_column} FROM {table}
            WHERE {where.sql()} {facts_only}
            ORDER BY {time_column} DESC LIMIT ?""",  # noqa: S608 - literals
        (*where.parameters, limit),
    )
    zone = since.tzinfo or UTC
    times: dict[str, int] = {}
    for uuid, at, precision in rows:
        if precision == "instant" or zone is UTC:
            times[uuid] = at
        else:
            first_instant, _ = interval(with_precision(from_micros(at), precision), zone)
            times[uuid] = micros(first_instant)
    return times


def _facts(connection: Connection, item_filter: ItemFilter, zone: tzinfo) -> set[str] | None:
    where = _Where()
    where.among("f.relation", item_filter.relations)
    where.between("f.at", item_filter.since, item_filter.until, "f.valid_precision")
    if item_filter.kinds:
        ends = f"(SELECT uuid FROM node WHERE kind IN {LIST})"  # noqa: S608 - literals
        where.add(
            f"(f.kind IN {LIST} OR f.subject IN {ends} OR f.object IN {ends})",
            *[listed(item_filter.kinds)] * 3,
        )
    node = _of_node(item_filter)
    if node.conditions:
        where.add(_joining(node), *node.parameters * 2)
    if item_filter.tags:
        ends = f"(SELECT node FROM node_tag WHERE tag IN {LIST})"  # noqa: S608 - literals
        from_turns = f"({_FACTS_OF_TAGS} WHERE g.tag IN {LIST})"
        where.add(
            f"(f.subject IN {ends} OR f.object IN {ends} OR f.uuid IN {from_turns})",
            *[_folded(item_filter.tags)] * 3,
        )
    origin = _origin(item_filter)
    if origin.conditions:
        where.add(f"f.uuid IN ({_FACTS_OF_TURNS} WHERE {origin.sql()})", *origin.parameters)
    if where.conditions or item_filter.as_of is not None:
        # The plus signs keep SQLite off an index of ends: nearly every fact would be visited.
        start = "+f.holds_from" if where.conditions else "f.holds_from"
        at = in_zone(item_filter.as_of or now(), zone, "as_of")
        where.meet(time_sql.holds(start, "+f.holds_until", at))
    return _ids(connection, "f.uuid", "fact AS f", where)


def _nodes(connection: Connection, item_filter: ItemFilter, zone: tzinfo) -> set[str] | None:
    where = _of_node(item_filter)
    where.among("n.kind", item_filter.kinds)
    if item_filter.since or item_filter.until:
        _restrict_to_time(where, item_filter)
    if item_filter.relations:
        at = in_zone(item_filter.as_of or now(), zone, "as_of")
        holding, values = time_sql.holds("+f.holds_from", "+f.holds_until", at)
        holds = f"f.relation IN {LIST} AND {holding}"
        where.add(
            f"""(n.uuid IN (SELECT f.subject FROM fact AS f WHERE {holds})
                OR n.uuid IN (SELECT f.object FROM fact AS f WHERE {holds}))""",  # noqa: S608
            *[listed(item_filter.relations), *values] * 2,
        )
    if item_filter.tags:
        where.add(
            f"n.uuid IN (SELECT node FROM node_tag WHERE tag IN {LIST})",  # noqa: S608 - literals
            _folded(item_filter.tags),
        )
    origin = _origin(item_filter)
    if origin.conditions:
        from_turns = f"n.uuid IN ({_ENDS_OF_TURNS} WHERE {origin.sql()})"
        parameters = origin.parameters
        if item_filter.sources and not (item_filter.sessions or item_filter.roles):
            from_turns = f"({from_turns} OR n.source IN {LIST})"
            parameters = [*parameters, listed(item_filter.sources)]
        where.add(from_turns, *parameters)
    return _ids(connection, "n.uuid", "node AS n", where)


def _restrict_to_time(where: _Where, item_filter: ItemFilter) -> None:
    """Restrict nodes to an interval by event times of turns.

    A record passes by the turn of its text, any other node by a turn that mentions it, and a node
    that no turn mentions by its ``created_at``.
    """
    event_time = _Where()
    creation_time = _Where()
    event_time.between(
        "t.occurred_at", item_filter.since, item_filter.until, "t.occurred_precision"
    )
    creation_time.between("n.created_at", item_filter.since, item_filter.until, "'instant'")
    where.add(
        f"""(n.uuid IN (SELECT r.node FROM turns AS t
                CROSS JOIN records AS r ON r.turn = t.uuid WHERE {event_time.sql()})
            OR NOT EXISTS (SELECT 1 FROM records AS r WHERE r.node = n.uuid) AND (
                n.uuid IN (SELECT m.node FROM turns AS t
                    CROSS JOIN mention AS m ON m.episode = t.uuid WHERE {event_time.sql()})
                OR {creation_time.sql()}
                    AND NOT EXISTS (SELECT 1 FROM mention AS m
                WHERE m.node = n.uuid)))""",  # noqa: S608 - literals
        *event_time.parameters * 2,
        *creation_time.parameters,
    )


def _episodes(connection: Connection, item_filter: ItemFilter) -> set[str] | None:
    where = _origin(item_filter)
    where.among("t.kind", item_filter.kinds)
    node = _of_node(item_filter)
    if node.conditions:
        of_facts = f"{_TURNS_OF_FACTS} WHERE {_joining(node)}"
        of_records = f"{_TURNS_OF_NODES} WHERE {node.sql()}"
        where.add(f"(t.uuid IN ({of_facts}) OR t.uuid IN ({of_records}))", *node.parameters * 3)
    where.between("t.occurred_at", item_filter.since, item_filter.until, "t.occurred_precision")
    if item_filter.as_of is not None:
        where.meet(
            time_sql.begins("t.occurred_at", "t.occurred_precision", "<=", item_filter.as_of)
        )
    if item_filter.relations:
        where.add(
            f"t.uuid IN ({_TURNS_OF_FACTS} WHERE f.relation IN {LIST})",
            listed(item_filter.relations),
        )
    if item_filter.tags:
        where.add(
            f"t.uuid IN (SELECT turn FROM turn_tags WHERE tag IN {LIST})",  # noqa: S608 - literals
            _folded(item_filter.tags),
        )
    return _ids(connection, "t.uuid", "turns AS t", where)


def _of_node(item_filter: ItemFilter) -> _Where:
    """Return the conditions on a node ``n``; facts and turns meet them through their nodes."""
    where = _Where()
    where.among(
        "n.kind", item_filter.layers
    )  # ``FilterCache`` has replaced the layers by their kinds
    where.among("n.status", item_filter.statuses)
    return where


def _joining(node: _Where) -> str:
    """Return the condition that a fact's subject or object meets the conditions on a node."""
    ends = f"(SELECT n.uuid FROM node AS n WHERE {node.sql()})"  # noqa: S608 - literals
    return f"(f.subject IN {ends} OR f.object IN {ends})"


def _origin(item_filter: ItemFilter) -> _Where:
    where = _Where()
    where.among("t.source", item_filter.sources)
    where.among("t.session", item_filter.sessions)
    where.among("t.role", item_filter.roles)
    return where


def _folded(tags: Sequence[str]) -> str:
    return listed(fold(tag) for tag in tags)


def _ids(connection: Connection, column: str, table: str, where: _Where) -> set[str] | None:
    if not where.conditions:
        return None
    # SQLite returns one long text several times faster than 100,000 rows.
    statement = f"SELECT group_concat({column}, ' ') FROM {table} WHERE {where.sql()}"  # noqa: S608
    (ids,) = connection.execute(statement, where.parameters).fetchone()
    return set(ids.split(" ")) if ids else set()


@dataclass(frozen=True, slots=True)
class _CachedIds:
    ids: set[str] | None
    commits: int


def _size_of(answer: _CachedIds) -> int:
    """Return the ids that an answer counts for; small ones count for as many as keep 64 of them."""
    return max(len(answer.ids or ()), KEPT_IDS // _KEPT_FILTERS)


class FilterCache:
    """Applies filters, and caches each answer until the memory changes, for 30 s at most.

    Filtering 50,000 facts takes longer than a search among them.

    Attributes:
        kinds: The entity's kinds, with the layers that a filter may name.
        zone: The entity's zone, in which times of filters are read.
    """

    def __init__(
        self, writer: Writer, readers: Readers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._writer = writer
        self._readers = readers
        self.kinds = NO_KINDS
        self.zone: tzinfo = UTC
        self._answers: TTLCache[str, _CachedIds] = TTLCache(
            KEPT_IDS, KEPT_S, clock, getsizeof=_size_of
        )

    async def allowed(self, kind: ItemKind, item_filter: ItemFilter) -> set[str] | None:
        """Return the ids of a kind that pass a filter; None when it restricts nothing.

        The caller must not change the set: it is cached.
        """
        if item_filter.layers:
            kinds = self.kinds.of_layers(item_filter.layers, "filters.layers")
            # A layer without kinds matches no node.
            item_filter = replace(item_filter, layers=kinds or ("",))
        item_filter = replace(item_filter, **self._in_zone(item_filter))
        key = f"{kind} {item_filter!r}"  # a caller's filter may hold lists, which have no hash
        cached = self._answers.get(key)
        if cached and cached.commits == self._writer.commits:
            return cached.ids
        # Read the counter before the ids: a commit after it makes the answer outdated.
        commits = self._writer.commits
        ids = await self._readers.read(
            partial(allowed_ids, kind=kind, item_filter=item_filter, zone=self.zone)
        )
        answer = _CachedIds(ids, commits)
        if _size_of(answer) <= KEPT_IDS:
            self._answers[key] = answer
        return ids

    def _in_zone(self, item_filter: ItemFilter) -> dict[str, datetime]:
        """Return the times of a filter in the entity's zone."""
        times = {name: getattr(item_filter, name) for name in ("since", "until", "as_of")}
        return {name: in_zone(at, self.zone, name) for name, at in times.items() if at is not None}
