"""What a ranking needs of facts and nodes, from the mirror: outlines, and how far apart nodes are.

It answers without reading the graph; the graph stays the truth.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pps.core.sql import LIST, listed
from pps.core.text import fold
from pps.core.time import from_micros, has_begun, with_precision
from pps.core.values import Fact, Node
from pps.journal import time_sql
from pps.journal.projection import OPEN, numbers_of

MOST_WALKED = 2_000
"""Most links that a walk reads; what it has not met by then is out of reach."""

_ENDS = ("+valid_at", "+invalid_at")
"""The plus signs keep SQLite on the index of ends: a node has few facts, a moment nearly all."""

MOST_PAIRS = 2_000
"""Pairs of nodes up to which a walk's last step looks for the facts between them, and not at all facts of its ring:
a well-known person has thousands."""


@dataclass(frozen=True, slots=True)
class FactOutline:
    """A fact without its words and without what supports it.

    Attributes:
        subject, object: Uuids of its ends.
        valid_at, invalid_at, expired_at: As in ``Fact``.
    """

    subject: str
    object: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    expired_at: datetime | None = None

    @classmethod
    def of(cls, fact: Fact) -> FactOutline:
        """Return the outline of a fact that the graph gave."""
        return cls(fact.subject, fact.object, fact.valid_at, fact.invalid_at, fact.expired_at)


def holds(fact: Fact | FactOutline, at: datetime) -> bool:
    """Tell whether a fact has not ended at a time of the world (a date: on its wall clock) and is still believed."""
    return (
        fact.expired_at is None if fact.invalid_at is None else not has_begun(fact.invalid_at, at)
    )


@dataclass(frozen=True, slots=True)
class Support:
    """What a fact stands on.

    Attributes:
        episodes: Uuids of the episodes that support it, in no order.
        said_at: Event time of the latest of them; None when there is none, or one that is not in the journal.
    """

    episodes: tuple[str, ...] = ()
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeOutline:
    """A node without its words; ``tags`` are folded."""

    uuid: str
    created_at: datetime
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Node) -> NodeOutline:
        """Return the outline of a node that the graph gave."""
        return cls(node.uuid, node.created_at, tuple(map(fold, node.tags)))


@dataclass(frozen=True, slots=True)
class Reached:
    """How a walk from a start comes to a node: after how many hops, from which node, by which fact."""

    hops: int
    before: str
    fact: str
    relation: str


class Joint(NamedTuple):
    """A fact or relation as a line between two nodes; ``uuid`` is its own, the others are those of its ends."""

    uuid: str
    subject: str
    object: str
    relation: str


def joints(connection: sqlite3.Connection, nodes: Sequence[str], limit: int) -> list[Joint]:
    """Return what joins any of the nodes to others: the newest by world time first, at most ``limit``."""
    rows = connection.execute(
        f"""WITH near AS (SELECT id FROM mirror_id WHERE uuid IN {LIST}),
            joining AS (SELECT f.id, f.at, f.uuid FROM near JOIN mirror_fact AS f ON f.subject = near.id
                UNION SELECT f.id, f.at, f.uuid FROM near JOIN mirror_fact AS f ON f.object = near.id
                ORDER BY 2 DESC, 3 LIMIT ?)
            SELECT f.uuid, s.uuid, o.uuid, f.relation FROM joining AS j JOIN mirror_fact AS f ON f.id = j.id
            JOIN mirror_id AS s ON s.id = f.subject JOIN mirror_id AS o ON o.id = f.object
            ORDER BY j.at DESC, j.uuid""",  # noqa: S608 - literals
        (listed(nodes), limit),
    )
    return [Joint(*row) for row in rows]


def fact_outlines(connection: sqlite3.Connection, facts: Sequence[str]) -> dict[str, FactOutline]:
    """Return fact → its outline, in the order given; unknown facts are left out."""
    rows = connection.execute(
        f"""SELECT f.uuid, s.uuid, o.uuid, f.valid_at, f.valid_precision, f.invalid_at, f.invalid_precision,
                f.expired_at
            FROM mirror_id AS i JOIN mirror_fact AS f ON f.id = i.id
            JOIN mirror_id AS s ON s.id = f.subject JOIN mirror_id AS o ON o.id = f.object
            WHERE i.uuid IN {LIST}""",  # noqa: S608 - literals
        (listed(facts),),
    )
    found = {
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
    return {fact: found[fact] for fact in dict.fromkeys(facts) if fact in found}


def supports(connection: sqlite3.Connection, facts: Sequence[str]) -> dict[str, Support]:
    """Return fact → what it stands on; facts that are unknown, or that nothing supports, are left out."""
    episodes: dict[str, list[str]] = {}
    told: dict[str, list[int | None]] = {}
    for fact, episode, at in connection.execute(
        f"""SELECT i.uuid, e.uuid, t.occurred_at FROM mirror_id AS i JOIN mirror_support AS s ON s.fact = i.id
            JOIN mirror_id AS e ON e.id = s.episode LEFT JOIN turns AS t ON t.uuid = e.uuid
            WHERE i.uuid IN {LIST}""",  # noqa: S608 - literals
        (listed(facts),),
    ):
        episodes.setdefault(fact, []).append(episode)
        told.setdefault(fact, []).append(at)
    return {
        fact: Support(tuple(some), _moment(_latest(told[fact]))) for fact, some in episodes.items()
    }


def _latest(times: Sequence[int | None]) -> int | None:
    known = [at for at in times if at is not None]
    return max(known) if known and len(known) == len(times) else None


def node_outlines(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, NodeOutline]:
    """Return node → its outline, in the order given; unknown nodes are left out."""
    wanted = listed(nodes)
    tags: dict[int, list[str]] = {}
    for number, tag in connection.execute(
        f"""SELECT t.node, t.tag FROM mirror_id AS i JOIN mirror_tag AS t ON t.node = i.id
            WHERE i.uuid IN {LIST}""",  # noqa: S608 - literals
        (wanted,),
    ):
        tags.setdefault(number, []).append(tag)
    rows = connection.execute(
        f"""SELECT n.id, n.uuid, n.created_at FROM mirror_id AS i JOIN mirror_node AS n ON n.id = i.id
            WHERE i.uuid IN {LIST}""",  # noqa: S608 - literals
        (wanted,),
    )
    found = {
        uuid: NodeOutline(uuid, from_micros(at), tuple(tags.get(number, ())))
        for number, uuid, at in rows
    }
    return {node: found[node] for node in dict.fromkeys(nodes) if node in found}


def node_times(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, datetime]:
    """Return node → when what it tells of happened: a record's text, else the latest turn that speaks of the node.

    Nodes that no turn speaks of are left out.
    """
    rows = connection.execute(
        f"""SELECT i.uuid, coalesce(
                (SELECT t.occurred_at FROM records AS r JOIN turns AS t ON t.uuid = r.turn WHERE r.node = i.uuid),
                (SELECT max(t.occurred_at) FROM mirror_mention AS m JOIN turns AS t ON t.seq = m.turn
                    WHERE m.node = i.id)) AS at
            FROM mirror_id AS i WHERE i.uuid IN {LIST} AND at IS NOT NULL""",  # noqa: S608 - literals
        (listed(nodes),),
    )
    return {uuid: from_micros(at) for uuid, at in rows}


def hops(
    connection: sqlite3.Connection,
    starts: Sequence[str],
    targets: Sequence[str],
    max_hops: int,
    at: datetime,
) -> dict[str, int]:
    """Return target → fewest hops from any of the starts, over facts and relations that hold at ``at``, both ways.

    Targets beyond ``max_hops``, or not met within ``MOST_WALKED`` links, are left out.
    """
    known = numbers_of(connection, [*starts, *targets])
    wanted = {known[one]: one for one in targets if one in known}
    seen = {known[one]: 0 for one in starts if one in known}
    ring, walked = list(seen), 0
    for far in range(1, max_hops + 1):
        left = wanted.keys() - seen.keys()
        if not ring or not left or walked >= MOST_WALKED:
            break
        if far == max_hops and len(ring) * len(left) <= MOST_PAIRS:
            seen.update(dict.fromkeys(_joined_to(connection, ring, left, at), far))
            break
        joints = _next_to(connection, ring, MOST_WALKED - walked, at)
        walked += len(joints)
        ring = list(dict.fromkeys(node for _, _, node in joints if node not in seen))
        seen.update(dict.fromkeys(ring, far))
    return {uuid: seen[number] for number, uuid in wanted.items() if number in seen}


def asks_of_pairs(starts: int, targets: int, max_hops: int) -> bool:
    """Tell whether ``hops`` only looks up whether pairs of nodes are joined (under a millisecond), not walking."""
    return max_hops <= 1 and starts * targets <= MOST_PAIRS


def reach(
    connection: sqlite3.Connection, start: str, max_hops: int, at: datetime
) -> dict[str, Reached]:
    """Return node → how a shortest way from the start comes to it, nearest first; the start is not among them.

    Over facts and relations that hold at ``at``, in both directions; at most ``MOST_WALKED`` links are read.
    """
    seen = dict.fromkeys(numbers_of(connection, [start]).values(), _START)
    ring, walked = list(seen), 0
    for far in range(1, max_hops + 1):
        joints = (
            _next_to(connection, ring, MOST_WALKED - walked, at)
            if ring and walked < MOST_WALKED
            else []
        )
        walked += len(joints)
        new: dict[int, _Step] = {}
        for fact, before, node in joints:
            if node not in seen:
                new.setdefault(node, _Step(far, before, fact))
        seen.update(new)
        ring = list(new)
    return _named(connection, {number: step for number, step in seen.items() if step.hops})


class _Step(NamedTuple):
    """How a walk came to a node, by numbers."""

    hops: int
    before: int
    fact: int


_START = _Step(0, 0, 0)


def _named(connection: sqlite3.Connection, steps: Mapping[int, _Step]) -> dict[str, Reached]:
    numbers = {number for node, step in steps.items() for number in (node, step.before)}
    uuids = dict(
        connection.execute(
            f"SELECT id, uuid FROM mirror_id WHERE id IN {LIST}",  # noqa: S608 - literals
            (listed(sorted(numbers)),),
        ).fetchall()
    )
    facts = {
        number: (uuid, relation)
        for number, uuid, relation in connection.execute(
            f"SELECT id, uuid, relation FROM mirror_fact WHERE id IN {LIST}",  # noqa: S608 - literals
            (listed(sorted(step.fact for step in steps.values())),),
        )
    }
    return {
        uuids[node]: Reached(step.hops, uuids[step.before], *facts[step.fact])
        for node, step in steps.items()
    }


def _next_to(
    connection: sqlite3.Connection, ring: Sequence[int], most: int, at: datetime
) -> list[tuple[int, int, int]]:
    """Return (fact, node of the ring, node at its other end) of the facts that hold and touch the ring."""
    numbers = listed(ring)
    holding, values = time_sql.holds(*_ENDS, at)
    rows = connection.execute(
        f"""SELECT id, subject, object FROM mirror_fact WHERE subject IN {LIST} AND {holding}
            UNION ALL SELECT id, object, subject FROM mirror_fact WHERE object IN {LIST} AND {holding}
            LIMIT ?""",  # noqa: S608 - literals
        (numbers, *values, numbers, *values, most),
    )
    return rows.fetchall()


def _joined_to(
    connection: sqlite3.Connection, ring: Sequence[int], others: Iterable[int], at: datetime
) -> list[int]:
    """Return those of the others that a fact which holds joins to a node of the ring."""
    ours, theirs = listed(ring), listed(others)
    holding, values = time_sql.holds(*_ENDS, at)
    rows = connection.execute(
        f"""SELECT object FROM mirror_fact WHERE subject IN {LIST} AND object IN {LIST} AND {holding}
            UNION SELECT subject FROM mirror_fact WHERE subject IN {LIST} AND object IN {LIST} AND {holding}""",  # noqa: S608 - literals
        (ours, theirs, *values, theirs, ours, *values),
    )
    return [number for (number,) in rows]


def _moment(at: int | None, precision: str = "instant") -> datetime | None:
    """Return the time of a column in which an end that is not known is the least or the greatest number."""
    return None if at is None or abs(at) == OPEN else with_precision(from_micros(at), precision)
