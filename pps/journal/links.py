"""Outlines of facts and nodes without their texts, for ranking, and distances between nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros, has_begun, with_precision
from pps.core.values import Fact, Node
from pps.journal import time_sql

MOST_WALKED = 2_000
"""Maximum facts that a walk reads; nodes it has not met by then count as out of reach."""

_ENDS = ("+holds_from", "+holds_until")
"""Plus signs keep SQLite on the indexes of subjects and objects: a node has few facts, while nearly
all facts hold at a given time."""

MOST_PAIRS = 2_000
"""Up to this many pairs of nodes, the last step of a walk looks up the facts between the pairs.

Beyond, it reads all facts of the nodes in its ring, which may be thousands for one person.
"""


@dataclass(frozen=True, slots=True)
class FactOutline:
    """A fact without its text and its episodes.

    Attributes:
        subject, object: Uuids of its two nodes.
        valid_at, invalid_at, expired_at: As in ``Fact``.
    """

    subject: str
    object: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    expired_at: datetime | None = None

    @classmethod
    def of(cls, fact: Fact) -> FactOutline:
        """Return the outline of a fact that was read from the graph."""
        return cls(fact.subject, fact.object, fact.valid_at, fact.invalid_at, fact.expired_at)


def holds(fact: Fact | FactOutline, at: datetime) -> bool:
    """Return whether a fact is still believed and has not ended at ``at``, a time of the world.

    An end that is a date is compared with the wall clock of ``at``.
    """
    return (
        fact.expired_at is None if fact.invalid_at is None else not has_begun(fact.invalid_at, at)
    )


@dataclass(frozen=True, slots=True)
class Support:
    """The episodes that state a fact.

    Attributes:
        episodes: Their uuids, in no order.
        said_at: Event time of the latest one; None if there is none, or if the turn of any of them
            is not in the journal.
        verbatim: Those whose turn's content is exactly the fact's text.
    """

    episodes: tuple[str, ...] = ()
    said_at: datetime | None = None
    verbatim: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeOutline:
    """A node without its texts; ``tags`` are folded (``core.text.fold``)."""

    uuid: str
    created_at: datetime
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Node) -> NodeOutline:
        """Return the outline of a node that was read from the graph."""
        return cls(node.uuid, node.created_at, tuple(map(fold, node.tags)))


@dataclass(frozen=True, slots=True)
class Reached:
    """The last step of a shortest walk to a node.

    Attributes:
        hops: Length of the walk.
        before: Uuid of the previous node.
        fact: Uuid of the fact between that node and this one.
        relation: The fact's relation.
    """

    hops: int
    before: str
    fact: str
    relation: str


class Joint(NamedTuple):
    """A fact or a relation of records as an edge: its uuid, and the uuids of its two nodes."""

    uuid: str
    subject: str
    object: str
    relation: str


def joints(connection: Connection, nodes: Sequence[str], limit: int) -> list[Joint]:
    """Return up to ``limit`` facts and relations that touch the nodes, newest world time first."""
    rows = connection.execute(
        f"""SELECT uuid, subject, object, relation, at FROM fact WHERE subject IN {LIST}
            UNION SELECT uuid, subject, object, relation, at FROM fact WHERE object IN {LIST}
            ORDER BY at DESC, uuid LIMIT ?""",  # noqa: S608 - literals
        (listed(nodes), listed(nodes), limit),
    )
    return [Joint(*row[:4]) for row in rows]


def fact_outlines(connection: Connection, facts: Sequence[str]) -> dict[str, FactOutline]:
    """Return fact → its outline, in the order of ``facts``; unknown facts are left out."""
    rows = connection.execute(
        f"""SELECT uuid, subject, object, valid_at, valid_precision,
                invalid_at, invalid_precision, expired_at
            FROM fact WHERE uuid IN {LIST}""",  # noqa: S608 - literals
        (listed(facts),),
    )
    outlines = {
        fact: FactOutline(
            subject,
            target,
            _moment(valid_at, valid_precision),
            _moment(invalid_at, invalid_precision),
            _moment(expired_at),
        )
        for (
            fact,
            subject,
            target,
            valid_at,
            valid_precision,
            invalid_at,
            invalid_precision,
            expired_at,
        ) in rows
    }
    return {fact: outlines[fact] for fact in dict.fromkeys(facts) if fact in outlines}


def supports(connection: Connection, facts: Sequence[str]) -> dict[str, Support]:
    """Return fact → its support; unknown and unsupported facts are left out."""
    episodes: dict[str, list[str]] = {}
    verbatim: dict[str, list[str]] = {}
    times_by_fact: dict[str, list[int | None]] = {}
    for fact, episode, at, is_verbatim in connection.execute(
        f"""SELECT s.fact, s.episode, t.occurred_at, t.content = f.text FROM support AS s
            JOIN fact AS f ON f.uuid = s.fact LEFT JOIN turns AS t ON t.uuid = s.episode
            WHERE s.fact IN {LIST}""",  # noqa: S608 - literals
        (listed(facts),),
    ):
        episodes.setdefault(fact, []).append(episode)
        times_by_fact.setdefault(fact, []).append(at)
        if is_verbatim:
            verbatim.setdefault(fact, []).append(episode)
    # The facts of a recall come from few turns, so each distinct time is converted once.
    latest = {fact: _latest(times) for fact, times in times_by_fact.items()}
    moments = {at: _moment(at) for at in set(latest.values())}
    return {
        fact: Support(tuple(fact_episodes), moments[latest[fact]], tuple(verbatim.get(fact, ())))
        for fact, fact_episodes in episodes.items()
    }


def _latest(times: Sequence[int | None]) -> int | None:
    """Return the latest time; None if any is unknown."""
    known = [at for at in times if at is not None]
    return max(known) if known and len(known) == len(times) else None


def node_outlines(connection: Connection, nodes: Sequence[str]) -> dict[str, NodeOutline]:
    """Return node → its outline, in the order of ``nodes``; unknown nodes are left out."""
    wanted = listed(nodes)
    tags: dict[str, list[str]] = {}
    for node, tag in connection.execute(
        f"SELECT node, tag FROM node_tag WHERE node IN {LIST}",  # noqa: S608 - literals
        (wanted,),
    ):
        tags.setdefault(node, []).append(tag)
    rows = connection.execute(
        f"SELECT uuid, created_at FROM node WHERE uuid IN {LIST}",  # noqa: S608 - literals
        (wanted,),
    )
    outlines = {
        uuid: NodeOutline(uuid, from_micros(at), tuple(tags.get(uuid, ()))) for uuid, at in rows
    }
    return {node: outlines[node] for node in dict.fromkeys(nodes) if node in outlines}


def node_times(connection: Connection, nodes: Sequence[str]) -> dict[str, datetime]:
    """Return node → its event time; nodes that no turn mentions are left out.

    The event time is that of the record's text, for other nodes that of the latest turn that
    mentions them.
    """
    rows = connection.execute(
        f"""SELECT uuid, at FROM (SELECT n.uuid, coalesce(
                (SELECT t.occurred_at FROM records AS r JOIN turns AS t ON t.uuid = r.turn
                    WHERE r.node = n.uuid),
                (SELECT max(t.occurred_at) FROM mention AS m JOIN turns AS t ON t.uuid = m.episode
                    WHERE m.node = n.uuid)) AS at
            FROM node AS n WHERE n.uuid IN {LIST}) AS timed WHERE at IS NOT NULL""",  # noqa: S608
        (listed(nodes),),
    )
    return {uuid: from_micros(at) for uuid, at in rows}


def hops(
    connection: Connection,
    starts: Sequence[str],
    targets: Sequence[str],
    max_hops: int,
    at: datetime,
) -> dict[str, int]:
    """Return target → fewest hops from any start, over facts that hold at ``at``, both ways.

    Targets farther than ``max_hops``, or not met within ``MOST_WALKED`` facts, are left out.
    """
    wanted = set(targets)
    seen = dict.fromkeys(starts, 0)
    ring = list(seen)
    walked = 0
    for far in range(1, max_hops + 1):
        left = wanted - seen.keys()
        if not ring or not left or walked >= MOST_WALKED:
            break
        if far == max_hops and len(ring) * len(left) <= MOST_PAIRS:
            seen.update(dict.fromkeys(_joined_to(connection, ring, left, at), far))
            break
        joints = _next_to(connection, ring, MOST_WALKED - walked, at)
        walked += len(joints)
        ring = list(dict.fromkeys(node for _, _, node in joints if node not in seen))
        seen.update(dict.fromkeys(ring, far))
    return {node: seen[node] for node in dict.fromkeys(targets) if node in seen}


def asks_of_pairs(starts: int, targets: int, max_hops: int) -> bool:
    """Return whether ``hops`` with these counts only looks up pairs of nodes (under 1 ms)."""
    return max_hops <= 1 and starts * targets <= MOST_PAIRS


def reach(connection: Connection, start: str, max_hops: int, at: datetime) -> dict[str, Reached]:
    """Return node → the last step of a shortest walk to it, nearest first, without the start.

    Walks over facts and relations that hold at ``at``, in both directions, and reads at most
    ``MOST_WALKED`` of them.
    """
    seen = {start: _START}
    ring = list(seen)
    walked = 0
    for far in range(1, max_hops + 1):
        joints = (
            _next_to(connection, ring, MOST_WALKED - walked, at)
            if ring and walked < MOST_WALKED
            else []
        )
        walked += len(joints)
        new: dict[str, _Step] = {}
        for fact, before, node in joints:
            if node not in seen:
                new.setdefault(node, _Step(far, before, fact))
        seen.update(new)
        ring = list(new)
    return _reached(connection, {node: step for node, step in seen.items() if step.hops})


class _Step(NamedTuple):
    """A ``Reached`` without the relation, which is read for all nodes at the end."""

    hops: int
    before: str
    fact: str


_START = _Step(0, "", "")


def _reached(connection: Connection, steps: Mapping[str, _Step]) -> dict[str, Reached]:
    relations = dict(
        connection.execute(
            f"SELECT uuid, relation FROM fact WHERE uuid IN {LIST}",  # noqa: S608 - literals
            (listed({step.fact for step in steps.values()}),),
        ).fetchall()
    )
    return {
        node: Reached(step.hops, step.before, step.fact, relations[step.fact])
        for node, step in steps.items()
    }


def _next_to(
    connection: Connection, ring: Sequence[str], most: int, at: datetime
) -> list[tuple[str, str, str]]:
    """Return (fact, node of the ring, node at its other end) for facts of the ring that hold."""
    nodes = listed(ring)
    holding, values = time_sql.holds(*_ENDS, at)
    rows = connection.execute(
        f"""SELECT uuid, subject, object FROM fact WHERE subject IN {LIST} AND {holding}
            UNION ALL SELECT uuid, object, subject FROM fact WHERE object IN {LIST} AND {holding}
            LIMIT ?""",  # noqa: S608 - literals
        (nodes, *values, nodes, *values, most),
    )
    return rows.fetchall()


def _joined_to(
    connection: Connection, ring: Sequence[str], others: Iterable[str], at: datetime
) -> list[str]:
    """Return those of ``others`` that share a fact with a node of the ring that holds at ``at``."""
    ring_list = listed(ring)
    other_list = listed(others)
    holding, values = time_sql.holds(*_ENDS, at)
    rows = connection.execute(
        f"""SELECT object FROM fact WHERE subject IN {LIST} AND object IN {LIST} AND {holding}
            UNION SELECT subject FROM fact
                WHERE subject IN {LIST} AND object IN {LIST} AND {holding}""",  # noqa: S608
        (ring_list, other_list, *values, other_list, ring_list, *values),
    )
    return [node for (node,) in rows]


def _moment(at: int | None, precision: str = "instant") -> datetime | None:
    if at is None:
        return None
    moment = from_micros(at)
    return moment if precision == "instant" else with_precision(moment, precision)
