"""What facts join, from the mirror: their ends, their supports, and how far apart nodes are.

Answers what a ranking needs without reading the graph; the graph stays the truth.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_WALKED = 2_000
"""Most links that a walk reads; what it has not met by then is out of reach."""

_LIST = "(SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class FactLinks:
    """A fact's ends, and the episodes that support it, oldest id first."""

    subject: str
    object: str
    episodes: tuple[str, ...] = ()


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
    connection: sqlite3.Connection, starts: Sequence[str], targets: Sequence[str], max_hops: int
) -> dict[str, int]:
    """Return target → fewest hops from any of the starts, over facts and relations in both directions.

    Targets beyond ``max_hops``, or not met within ``MOST_WALKED`` links, are left out.
    """
    known = _numbers(connection, [*starts, *targets])
    wanted = {known[one]: one for one in targets if one in known}
    seen = {known[one]: 0 for one in starts if one in known}
    ring, walked = list(seen), 0
    for far in range(1, max_hops + 1):
        if not ring or wanted.keys() <= seen.keys() or walked >= MOST_WALKED:
            break
        met = _next_to(connection, ring, MOST_WALKED - walked)
        walked += len(met)
        ring = list(dict.fromkeys(node for node in met if node not in seen))
        seen.update(dict.fromkeys(ring, far))
    return {uuid: seen[number] for number, uuid in wanted.items() if number in seen}


def _numbers(connection: sqlite3.Connection, uuids: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(
        f"SELECT uuid, id FROM mirror_id WHERE uuid IN {_LIST}",  # noqa: S608 - a literal of this module
        (json.dumps(list(uuids)),),
    )
    return dict(rows.fetchall())


def _next_to(connection: sqlite3.Connection, ring: Sequence[int], most: int) -> list[int]:
    numbers = json.dumps(list(ring))
    rows = connection.execute(
        f"""SELECT object FROM mirror_fact WHERE subject IN {_LIST}
            UNION ALL SELECT subject FROM mirror_fact WHERE object IN {_LIST} LIMIT ?""",  # noqa: S608
        (numbers, numbers, most),
    )
    return [node for (node,) in rows]
