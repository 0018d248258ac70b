"""What facts join, from the mirror: their ends, their supports, and how far apart nodes are.

Answers what a ranking needs without reading the graph; the graph stays the truth.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pps.core.time import micros

MOST_WALKED = 2_000
"""Most links that a walk reads; what it has not met by then is out of reach."""

_LIST = "(SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class FactLinks:
    """A fact's ends, and the episodes that support it, oldest id first."""

    subject: str
    object: str
    episodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """How a walk from a start comes to a node: after how many hops, from which node, by which fact."""

    hops: int
    before: str
    fact: str
    relation: str


def fact_links(connection: sqlite3.Connection, facts: Sequence[str]) -> dict[str, FactLinks]:
    """Return fact → its links, in the order given; unknown facts are left out."""
    wanted = json.dumps(list(facts))
    ends = connection.execute(
        f"""SELECT f.uuid, s.uuid, o.uuid FROM mirror_id AS i JOIN mirror_fact AS f ON f.id = i.id
            JOIN mirror_id AS s ON s.id = f.subject JOIN mirror_id AS o ON o.id = f.object
            WHERE i.uuid IN {_LIST}""",  # noqa: S608 - a literal of this module
        (wanted,),
    ).fetchall()
    supports: dict[str, list[str]] = {}
    for fact, episode in connection.execute(
        f"""SELECT i.uuid, e.uuid FROM mirror_id AS i JOIN mirror_support AS s ON s.fact = i.id
            JOIN mirror_id AS e ON e.id = s.episode WHERE i.uuid IN {_LIST} ORDER BY s.episode""",  # noqa: S608
        (wanted,),
    ):
        supports.setdefault(fact, []).append(episode)
    found = {fact: FactLinks(subject, object_, tuple(supports.get(fact, ()))) for fact, subject, object_ in ends}
    return {fact: found[fact] for fact in dict.fromkeys(facts) if fact in found}


def hops(
    connection: sqlite3.Connection, starts: Sequence[str], targets: Sequence[str], max_hops: int, at: datetime
) -> dict[str, int]:
    """Return target → fewest hops from any of the starts, over facts and relations that hold at ``at``, both ways.

    Targets beyond ``max_hops``, or not met within ``MOST_WALKED`` links, are left out.
    """
    known = _numbers(connection, [*starts, *targets])
    wanted = {known[one]: one for one in targets if one in known}
    seen = {known[one]: 0 for one in starts if one in known}
    ring, walked = list(seen), 0
    for far in range(1, max_hops + 1):
        if not ring or wanted.keys() <= seen.keys() or walked >= MOST_WALKED:
            break
        joints = _next_to(connection, ring, MOST_WALKED - walked, at)
        walked += len(joints)
        ring = list(dict.fromkeys(node for _, _, node in joints if node not in seen))
        seen.update(dict.fromkeys(ring, far))
    return {uuid: seen[number] for number, uuid in wanted.items() if number in seen}


def reach(connection: sqlite3.Connection, start: str, max_hops: int, at: datetime) -> dict[str, Reached]:
    """Return node → how a shortest way from the start comes to it, nearest first; the start is not among them.

    Over facts and relations that hold at ``at``, in both directions; at most ``MOST_WALKED`` links are read.
    """
    seen = dict.fromkeys(_numbers(connection, [start]).values(), _START)
    ring, walked = list(seen), 0
    for far in range(1, max_hops + 1):
        joints = _next_to(connection, ring, MOST_WALKED - walked, at) if ring and walked < MOST_WALKED else []
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
            f"SELECT id, uuid FROM mirror_id WHERE id IN {_LIST}",  # noqa: S608 - a literal of this module
            (json.dumps(sorted(numbers)),),
        ).fetchall()
    )
    facts = {
        number: (uuid, relation)
        for number, uuid, relation in connection.execute(
            f"SELECT id, uuid, relation FROM mirror_fact WHERE id IN {_LIST}",  # noqa: S608 - as above
            (json.dumps(sorted(step.fact for step in steps.values())),),
        )
    }
    return {uuids[node]: Reached(step.hops, uuids[step.before], *facts[step.fact]) for node, step in steps.items()}


def _numbers(connection: sqlite3.Connection, uuids: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(
        f"SELECT uuid, id FROM mirror_id WHERE uuid IN {_LIST}",  # noqa: S608 - a literal of this module
        (json.dumps(list(uuids)),),
    )
    return dict(rows.fetchall())


def _next_to(
    connection: sqlite3.Connection, ring: Sequence[int], most: int, at: datetime
) -> list[tuple[int, int, int]]:
    """Return (fact, node of the ring, node at its other end) of the facts that hold and touch the ring."""
    numbers, moment = json.dumps(list(ring)), micros(at)
    # The plus signs keep SQLite on the index of ends: a node has few facts, a moment nearly all.
    holds = "+valid_at <= ? AND +invalid_at > ? AND +expired_at > ?"
    rows = connection.execute(
        f"""SELECT id, subject, object FROM mirror_fact WHERE subject IN {_LIST} AND {holds}
            UNION ALL SELECT id, object, subject FROM mirror_fact WHERE object IN {_LIST} AND {holds}
            LIMIT ?""",  # noqa: S608 - literals of this module
        (numbers, moment, moment, moment, numbers, moment, moment, moment, most),
    )
    return rows.fetchall()
