"""Filters: which ids of a kind a recall may see, as one SQL statement over indexed columns, its answer kept a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Literal

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
"""Most ids kept for one memory: about 20 MB."""
_KEPT_FILTERS = 64
KEPT_S = 30.0
"""Longest that an answer is kept: facts begin and end by the clock alone."""


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items a recall may see. Values of one field are alternatives; fields add up.

    Attributes:
        kinds: A node's kind, an episode's kind; a fact's own kind or that of one of its ends.
        tags: Any of them on the item; a fact has those of its ends and of its supporting turns.
        sources, sessions, roles: Of the turn; a fact has those of its supporting turns, a node those
            of its facts (and its own ``source`` attribute).
        relations: Names of edges; a node is at an end of such a fact that holds, a turn supports one.
        layers: Names of the layers of the entity's packs, each for the kinds of nodes in it.
        statuses: A node's ``status`` attribute. Where layers are given too, one node must have both. A fact has them
            of one of its ends, a turn of the node that it records or of its facts' ends.
        since, until: Half-open; an episode's event time, a fact's ``valid_at`` (else ``created_at``),
            a node's ``created_at``. A day, month or year is let through that is not over by ``since``. As with
            ``as_of``, one without a zone is of the entity's, and a date alone is its first instant there.
        as_of: World time. Facts: ``valid_at <= t < invalid_at`` (unknown ends are open) and not expired by
            then; None means now. Turns: said by then; None means all.
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
    """Conditions with their parameters; every condition is a literal, every value is bound."""

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
        """Let through what lies in a time; see ``ItemFilter`` for dates. ``precision`` is a column of them."""
        if since is not None:
            self.meet(time_sql.ends_after(column, precision, since))
        if until is not None:
            self.meet(time_sql.begins(column, precision, "<", until))

    def meet(self, condition: time_sql.Condition) -> None:
        self.add(condition[0], *condition[1])

    def sql(self) -> str:
        return " AND ".join(self.conditions)


def allowed_ids(
    connection: Connection, kind: ItemKind, wanted: ItemFilter, zone: tzinfo = UTC
) -> set[str] | None:
    """Return the ids that pass a filter, or None when it restricts nothing; ``zone`` is the person's.

    Anchors have none of the columns: a filter on one of them lets none through.
    Facts that must hold now are a restriction only beside another one, since past facts have an
    index of their own.
    """
    if kind == "fact":
        return _facts(connection, wanted, zone)
    if kind == "node":
        return _nodes(connection, wanted, zone)
    if kind == "episode":
        return _episodes(connection, wanted)
    return (
        set()
        if any(getattr(wanted, one.name) for one in fields(wanted) if one.name != "as_of")
        else None
    )


def within(
    connection: Connection,
    kind: Literal["fact", "episode"],
    since: datetime,
    until: datetime,
    limit: int,
) -> dict[str, int]:
    """Return id → event time (microseconds since 1970 UTC) of those in ``[since, until)``, latest first.

    A fact's time is its ``valid_at``, else ``created_at``; relations are left out. A date is of the zone of ``since``:
    its time is the first instant of it there.
    """
    table, column, precision = (
        ("turns", "occurred_at", "occurred_precision")
        if kind == "episode"
        else ("fact", "at", "valid_precision")
    )
    where = _Where()
    where.between(column, since, until, precision)
    facts_only = "" if kind == "episode" else "AND +kind = 'fact'"
    rows = connection.execute(
        f"""SELECT uuid, {column}, {precision} FROM {table} WHERE {where.sql()} {facts_only}
            ORDER BY {column} DESC LIMIT ?""",  # noqa: S608 - literals
        (*where.parameters, limit),
    )
    zone = since.tzinfo or UTC
    return {
        uuid: at
        if precision == "instant" or zone is UTC
        else micros(interval(with_precision(from_micros(at), precision), zone)[0])
        for uuid, at, precision in rows
    }


def _facts(connection: Connection, wanted: ItemFilter, zone: tzinfo) -> set[str] | None:
    where = _Where()
    where.among("f.relation", wanted.relations)
    where.between("f.at", wanted.since, wanted.until, "f.valid_precision")
    if wanted.kinds:
        ends = f"(SELECT uuid FROM node WHERE kind IN {LIST})"  # noqa: S608 - literals
        where.add(
            f"(f.kind IN {LIST} OR f.subject IN {ends} OR f.object IN {ends})",
            *[listed(wanted.kinds)] * 3,
        )
    if (node := _of_node(wanted)).conditions:
        where.add(_joining(node), *node.parameters * 2)
    if wanted.tags:
        ends = f"(SELECT node FROM node_tag WHERE tag IN {LIST})"  # noqa: S608 - literals
        said = f"({_FACTS_OF_TAGS} WHERE g.tag IN {LIST})"
        where.add(
            f"(f.subject IN {ends} OR f.object IN {ends} OR f.uuid IN {said})",
            *[_folded(wanted.tags)] * 3,
        )
    origin = _origin(wanted)
    if origin.conditions:
        where.add(f"f.uuid IN ({_FACTS_OF_TURNS} WHERE {origin.sql()})", *origin.parameters)
    if where.conditions or wanted.as_of is not None:
        # The plus signs keep SQLite off an index of ends, by which nearly every fact would be visited.
        start = "+f.holds_from" if where.conditions else "f.holds_from"
        at = in_zone(wanted.as_of or now(), zone, "as_of")
        where.meet(time_sql.holds(start, "+f.holds_until", at))
    return _ids(connection, "f.uuid", "fact AS f", where)


def _nodes(connection: Connection, wanted: ItemFilter, zone: tzinfo) -> set[str] | None:
    where = _of_node(wanted)
    where.among("n.kind", wanted.kinds)
    if wanted.since or wanted.until:
        _told_between(where, wanted)
    if wanted.relations:
        at = in_zone(wanted.as_of or now(), zone, "as_of")
        holding, values = time_sql.holds("+f.holds_from", "+f.holds_until", at)
        holds = f"f.relation IN {LIST} AND {holding}"
        where.add(
            f"""(n.uuid IN (SELECT f.subject FROM fact AS f WHERE {holds})
                OR n.uuid IN (SELECT f.object FROM fact AS f WHERE {holds}))""",  # noqa: S608 - literals
            *[listed(wanted.relations), *values] * 2,
        )
    if wanted.tags:
        where.add(
            f"n.uuid IN (SELECT node FROM node_tag WHERE tag IN {LIST})",  # noqa: S608 - literals
            _folded(wanted.tags),
        )
    origin = _origin(wanted)
    if origin.conditions:
        said = f"n.uuid IN ({_ENDS_OF_TURNS} WHERE {origin.sql()})"
        parameters = origin.parameters
        if wanted.sources and not (wanted.sessions or wanted.roles):
            said = f"({said} OR n.source IN {LIST})"
            parameters = [*parameters, listed(wanted.sources)]
        where.add(said, *parameters)
    return _ids(connection, "n.uuid", "node AS n", where)


def _told_between(where: _Where, wanted: ItemFilter) -> None:
    """Let through what a text tells of that time: a record by its own, any other node by one that speaks of it.

    Only of a node that no turn speaks of is the time when it was taken in all there is.
    """
    told, made = _Where(), _Where()
    told.between("t.occurred_at", wanted.since, wanted.until, "t.occurred_precision")
    made.between("n.created_at", wanted.since, wanted.until, "'instant'")
    where.add(
        f"""(n.uuid IN (SELECT r.node FROM turns AS t CROSS JOIN records AS r ON r.turn = t.uuid WHERE {told.sql()})
            OR NOT EXISTS (SELECT 1 FROM records AS r WHERE r.node = n.uuid) AND (
                n.uuid IN (SELECT m.node FROM turns AS t CROSS JOIN mention AS m ON m.episode = t.uuid
                    WHERE {told.sql()})
                OR {made.sql()} AND NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.node = n.uuid)))""",  # noqa: S608 - literals
        *told.parameters * 2,
        *made.parameters,
    )


def _episodes(connection: Connection, wanted: ItemFilter) -> set[str] | None:
    where = _origin(wanted)
    where.among("t.kind", wanted.kinds)
    if (node := _of_node(wanted)).conditions:
        said, recorded = (
            f"{_TURNS_OF_FACTS} WHERE {_joining(node)}",
            f"{_TURNS_OF_NODES} WHERE {node.sql()}",
        )
        where.add(f"(t.uuid IN ({said}) OR t.uuid IN ({recorded}))", *node.parameters * 3)
    where.between("t.occurred_at", wanted.since, wanted.until, "t.occurred_precision")
    if wanted.as_of is not None:
        where.meet(time_sql.begins("t.occurred_at", "t.occurred_precision", "<=", wanted.as_of))
    if wanted.relations:
        where.add(
            f"t.uuid IN ({_TURNS_OF_FACTS} WHERE f.relation IN {LIST})",
            listed(wanted.relations),
        )
    if wanted.tags:
        where.add(
            f"t.uuid IN (SELECT turn FROM turn_tags WHERE tag IN {LIST})",  # noqa: S608 - literals
            _folded(wanted.tags),
        )
    return _ids(connection, "t.uuid", "turns AS t", where)


def _of_node(wanted: ItemFilter) -> _Where:
    """Return what a node must be, whatever the kind of item that has to do with it."""
    where = _Where()
    where.among("n.kind", wanted.layers)  # ``FilterCache`` put the kinds in their place
    where.among("n.status", wanted.statuses)
    return where


def _joining(node: _Where) -> str:
    """Return the condition of a fact one of whose ends is such a node."""
    ends = f"(SELECT n.uuid FROM node AS n WHERE {node.sql()})"  # noqa: S608 - literals
    return f"(f.subject IN {ends} OR f.object IN {ends})"


def _origin(wanted: ItemFilter) -> _Where:
    where = _Where()
    where.among("t.source", wanted.sources)
    where.among("t.session", wanted.sessions)
    where.among("t.role", wanted.roles)
    return where


def _folded(tags: Sequence[str]) -> str:
    return listed(fold(tag) for tag in tags)


def _ids(connection: Connection, column: str, table: str, where: _Where) -> set[str] | None:
    if not where.conditions:
        return None
    # One long text is read several times faster than a row for each of 100,000 ids.
    statement = f"SELECT group_concat({column}, ' ') FROM {table} WHERE {where.sql()}"  # noqa: S608 - literals
    (ids,) = connection.execute(statement, where.parameters).fetchone()
    return set(ids.split(" ")) if ids else set()


@dataclass(frozen=True, slots=True)
class _Kept:
    ids: set[str] | None
    commits: int
    until: float


class FilterCache:
    """Answers filters; an answer serves again until the memory changes, for half a minute at most.

    Working out which of 50,000 facts a filter lets through takes longer than a search among them.

    Attributes:
        kinds: Whose layers a filter may name.
        zone: The entity's, that the times of filters are read in.
    """

    def __init__(
        self, writer: Writer, readers: Readers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self.kinds = NO_KINDS
        self.zone: tzinfo = UTC
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def allowed(self, kind: ItemKind, wanted: ItemFilter) -> set[str] | None:
        """Return the ids of a kind that pass a filter, not to be changed; None means that nothing is restricted."""
        if wanted.layers:
            kinds = self.kinds.of_layers(wanted.layers, "filters.layers")
            wanted = replace(
                wanted, layers=kinds or ("",)
            )  # what is in a layer without kinds is nothing
        wanted = replace(wanted, **self._in_zone(wanted))
        key = f"{kind} {wanted!r}"  # a caller's filter may hold lists, which have no hash
        found = self._kept.get(key)
        if found and found.commits == self._writer.commits and self._clock() < found.until:
            self._kept.move_to_end(key)
            return found.ids
        commits = (
            self._writer.commits
        )  # before the read: what is committed after it makes the answer old
        ids = await self._readers.read(
            partial(allowed_ids, kind=kind, wanted=wanted, zone=self.zone)
        )
        self._keep(key, _Kept(ids, commits, self._clock() + KEPT_S))
        return ids

    def _in_zone(self, wanted: ItemFilter) -> dict[str, datetime]:
        """Return the times of a filter on the person's clock."""
        times = {name: getattr(wanted, name) for name in ("since", "until", "as_of")}
        return {name: in_zone(at, self.zone, name) for name, at in times.items() if at is not None}

    def _keep(self, key: str, one: _Kept) -> None:
        self._kept.pop(key, None)
        self._kept[key] = one
        while (
            sum(len(kept.ids or ()) for kept in self._kept.values()) > KEPT_IDS
            or len(self._kept) > _KEPT_FILTERS
        ):
            self._kept.popitem(last=False)
