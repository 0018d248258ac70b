"""Look-ups in the graph's tables: by name, by the beginning of an id, by time, and which facts a statement is about."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_beginning, is_uuid, short_id
from pps.core.sql import Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros
from pps.journal import names, time_sql
from pps.journal.record_queries import OF_A_PACK

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_BEGINNING = """
SELECT uuid FROM turns WHERE uuid >= :first AND uuid < :last
UNION SELECT node FROM records WHERE node >= :first AND node < :last
UNION SELECT uuid FROM node WHERE uuid >= :first AND uuid < :last
UNION SELECT uuid FROM fact WHERE uuid >= :first AND uuid < :last
LIMIT 2
"""

_MAX_CANDIDATES = 5


def count_facts(connection: Connection) -> int:
    """Return how many facts there are, relations left out."""
    (number,) = connection.execute(
        """SELECT (SELECT count(*) FROM fact) - (SELECT count(*) FROM fact WHERE kind = 'relation')"""
    ).fetchone()
    return number


def resolve(connection: Connection, given: Sequence[str]) -> dict[str, str]:
    """Return folded name → node uuid for those that are known: names first, then aliases, oldest first."""
    rows = connection.execute(
        """SELECT m.folded, n.uuid FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            WHERE m.folded IN (SELECT value FROM json_each(?))
            ORDER BY m.is_alias, n.created_at, n.uuid""",
        (listed(fold(name) for name in given),),
    )
    found: dict[str, str] = {}
    for folded, node in rows:
        found.setdefault(folded, node)
    return found


def names_of(connection: Connection, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return node → its name, then its aliases; unknown nodes are left out."""
    rows = connection.execute(
        "SELECT node, name FROM node_name WHERE node IN (SELECT value FROM json_each(?)) ORDER BY place",
        (listed(nodes),),
    )
    found: dict[str, list[str]] = {}
    for uuid, name in rows:
        found.setdefault(uuid, []).append(name)
    return found


def named_in(connection: Connection, text: str, limit: int) -> list[str]:
    """Return uuids of the nodes that a text names, longest name first, then first named.

    Two look-ups, both by index: which units begin a name at all, then the runs of units that do. A run whose
    last word ends in an s that the name lacks ("Annas Hut", "the Rossis") is the name too, unless it is one itself.
    """
    units = names.units(text)
    heads = _longest_by_head(
        connection, [one for unit in units for one in (unit, names.without_s(unit))]
    )
    places: dict[str, int] = {}
    bare: dict[str, str] = {}
    for start, unit in enumerate(units):
        longest = min(
            max(heads.get(unit, 0), heads.get(names.without_s(unit), 0)), len(units) - start
        )
        for size in range(1, longest + 1):
            run = units[start : start + size]
            places.setdefault(names.spelling(run), start)
            bare.pop(names.spelling(run), None)
            stripped = names.spelling([*run[:-1], names.without_s(run[-1])])
            if stripped not in places:
                places[stripped] = start
                bare[stripped] = names.spelling(run)
    rows = connection.execute(
        """SELECT m.name, m.spelling, m.is_alias, n.created_at, n.uuid
            FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            WHERE m.spelling IN (SELECT value FROM json_each(?))""",
        (listed(places),),
    ).fetchall()
    exact = {spelling for _, spelling, _, _, _ in rows}
    hits = [
        (-len(name), places[spelling], is_alias, created, uuid)
        for name, spelling, is_alias, created, uuid in rows
        if bare.get(spelling) not in exact
        and (not names.is_plain(spelling.split(" ")) or names.is_meant(name, text))
    ]
    return list(dict.fromkeys(hit[-1] for hit in sorted(hits)))[:limit]


def with_facts(connection: Connection, nodes: Sequence[str]) -> set[str]:
    """Return those of some nodes that a fact or relation joins, whether it still holds or not.

    A node that is not there counts as one that has facts: it may be on its way.
    """
    rows = connection.execute(
        """SELECT w.value FROM json_each(?) AS w
            WHERE EXISTS (SELECT 1 FROM fact WHERE subject = w.value)
                OR EXISTS (SELECT 1 FROM fact WHERE object = w.value)
                OR NOT EXISTS (SELECT 1 FROM node WHERE uuid = w.value)""",
        (listed(nodes),),
    )
    return {uuid for (uuid,) in rows}


def kinds_of(connection: Connection, nodes: Sequence[str]) -> dict[str, str]:
    """Return node → its kind; unknown nodes are left out."""
    rows = connection.execute(
        "SELECT uuid, kind FROM node WHERE uuid IN (SELECT value FROM json_each(?))",
        (listed(nodes),),
    )
    return dict(rows.fetchall())


_KINDS = """
    WITH RECURSIVE kinds (kind) AS (
        SELECT min(kind) FROM node WHERE kind <> ''
        UNION ALL
        SELECT (SELECT min(kind) FROM node WHERE kind > kinds.kind) FROM kinds
        WHERE kinds.kind IS NOT NULL)
    SELECT kind FROM kinds WHERE kind IS NOT NULL"""
"""The distinct kinds, one step of the index for each: DISTINCT reads an entry of every node."""


def of_kinds_in(connection: Connection, text: str, limit: int) -> list[str]:
    """Return uuids of the nodes whose kind a text names ("the search engine"), the kind of most words first.

    A kind of more than ``limit`` nodes is left out: its name tells none of them from the others.
    """
    units = {one for unit in names.units(text) for one in (unit, names.without_s(unit))}
    kinds = [kind for (kind,) in connection.execute(_KINDS)]
    parts = {kind: names.units(_HUMPS.sub(" ", kind)) for kind in kinds}
    meant = sorted(
        (kind for kind in kinds if units.issuperset(parts[kind] or ["?"])),
        key=lambda one: -len(parts[one]),
    )
    found: list[str] = []
    for kind in meant:
        query = "SELECT uuid FROM node WHERE kind = ? ORDER BY created_at DESC LIMIT ?"
        some = [uuid for (uuid,) in connection.execute(query, (kind, limit + 1))]
        found += some if len(some) <= limit else []
    return found[:limit]


def count_kinds(connection: Connection) -> dict[str, int]:
    """Return kind → how many nodes are of it, by name."""
    rows = connection.execute("SELECT kind, count(*) FROM node GROUP BY kind ORDER BY kind")
    return dict(rows.fetchall())


def nodes_by_name(
    connection: Connection, *, kind: str, part: str, after: str, limit: int
) -> list[str]:
    """Return uuids of nodes in the order of their folded names.

    Args:
        connection: To the entity's journal.
        kind: Only of this kind, in any case; empty for all.
        part: Only those whose name or an alias has this folded text in it; empty for all.
        after: Uuid of the node that the page before ended with; empty for the first page.
        limit: Most nodes.

    Raises:
        InvalidRequest: ``after`` is no node that is here.
    """
    position: tuple[str, str] | None = ("", "")
    if after:
        position = connection.execute(
            "SELECT folded, node FROM node_name WHERE node = ? AND is_alias = 0", (after,)
        ).fetchone()
    if position is None:
        raise InvalidRequest(
            "cursor", "the page before ended with a node that is gone; call again without it"
        )
    rows = connection.execute(
        """SELECT n.uuid FROM node AS n
            JOIN node_name AS m ON m.node = n.uuid AND m.is_alias = 0
            WHERE (?1 = '' OR lower(n.kind) = lower(?1)) AND (m.folded, n.uuid) > (?3, ?4)
                AND (?2 = '' OR EXISTS (SELECT 1 FROM node_name AS a
                    WHERE a.node = n.uuid AND instr(a.folded, ?2) > 0))
            ORDER BY m.folded, n.uuid LIMIT ?5""",
        (kind, part, *position, limit),
    )
    return [uuid for (uuid,) in rows]


def count_facts_of(connection: Connection, nodes: Sequence[str]) -> dict[str, int]:
    """Return node → how many facts join it, whether they still hold or not; unknown nodes are left out."""
    rows = connection.execute(
        """SELECT n.uuid, (SELECT count(*) FROM fact WHERE kind = 'fact' AND subject = n.uuid)
                + (SELECT count(*) FROM fact WHERE kind = 'fact' AND object = n.uuid AND subject <> n.uuid)
            FROM node AS n WHERE n.uuid IN (SELECT value FROM json_each(?))""",
        (listed(nodes),),
    )
    return dict(rows.fetchall())


def mentioning(connection: Connection, nodes: Sequence[str], limit: int) -> dict[str, list[str]]:
    """Return node → the turns that mention it, newest first; a node of more than ``limit`` turns is left out."""
    query = """SELECT t.uuid FROM mention AS m CROSS JOIN turns AS t ON t.uuid = m.episode WHERE m.node = ?
        ORDER BY t.seq DESC LIMIT ?"""
    found: dict[str, list[str]] = {}
    for node in dict.fromkeys(nodes):
        turns = [turn for (turn,) in connection.execute(query, (node, limit + 1))]
        if turns and len(turns) <= limit:
            found[node] = turns
    return found


def facts_supported_by(connection: Connection, episodes: Sequence[str]) -> dict[str, list[str]]:
    """Return episode → ids of the facts it supports, oldest first; episodes without facts are left out."""
    rows = connection.execute(
        """SELECT s.episode, f.uuid FROM support AS s JOIN fact AS f ON f.uuid = s.fact
            WHERE s.episode IN (SELECT value FROM json_each(?)) ORDER BY f.at, f.uuid""",
        (listed(episodes),),
    )
    found: dict[str, list[str]] = {}
    for episode, fact in rows:
        found.setdefault(episode, []).append(fact)
    return found


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact with the latest turn that states it, and when that was said."""

    fact: str
    turn: str
    said_at: datetime


def latest_stated(connection: Connection, limit: int) -> list[StatedFact]:
    """Return at most ``limit`` facts that turns state, relations left out; the one said last comes first."""
    # CROSS JOIN: SQLite walks the turns by time and stops at the limit.
    rows = connection.execute(
        """SELECT s.fact, t.uuid, t.occurred_at FROM turns AS t
            CROSS JOIN support AS s CROSS JOIN fact AS f
            WHERE s.episode = t.uuid AND f.uuid = s.fact AND f.kind = 'fact'
            ORDER BY t.occurred_at DESC, t.seq DESC LIMIT ?""",
        (limit,),
    )
    stated: dict[str, StatedFact] = {}
    for fact, turn, at in rows:
        stated.setdefault(fact, StatedFact(fact, turn, from_micros(at)))
    return list(stated.values())


def facts_turning(connection: Connection, after: datetime, until: datetime) -> list[str]:
    """Return ids of facts that ended in ``(after, until]`` by the clock alone: dates on the wall clock of these."""
    later, after_values = time_sql.begins("invalid_at", "invalid_precision", ">", after)
    by_then, until_values = time_sql.begins("invalid_at", "invalid_precision", "<=", until)
    rows = connection.execute(
        f"SELECT uuid FROM fact WHERE {later} AND {by_then}",  # noqa: S608 - literals
        (*after_values, *until_values),
    )
    return [uuid for (uuid,) in rows]


def fact_times(connection: Connection) -> tuple[list[int], list[int], int]:
    """Return when facts began and when facts ended, in microseconds, and how many have no time; relations left out."""

    def times(column: str) -> list[int]:
        rows = connection.execute(
            f"SELECT {column} FROM fact WHERE {column} IS NOT NULL AND kind = 'fact'"  # noqa: S608 - literals
        )
        return [at for (at,) in rows]

    (undated,) = connection.execute(
        "SELECT count(*) FROM fact WHERE valid_at IS NULL AND kind = 'fact'"
    ).fetchone()
    return times("valid_at"), times("invalid_at"), undated


def facts_joining(connection: Connection, wanted: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return ids of facts between subject and object in any relation; without an object, in that relation."""
    rows = connection.execute(
        """SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
                AND f.object = json_extract(w.value, '$[2]')
            WHERE f.kind = 'fact'
        UNION SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
                AND +f.relation = json_extract(w.value, '$[1]')
            WHERE json_extract(w.value, '$[2]') = '' AND f.kind = 'fact'""",
        (json.dumps(wanted), json.dumps([one for one in wanted if not one[2]])),
    )
    return [uuid for (uuid,) in rows]


_RELATION_KEY = "lower(replace(replace(replace(f.relation, '_', ''), ' ', ''), '-', ''))"
"""``relation_key`` of a relation's name, which has no other separators."""


def facts_in_slots(connection: Connection, slots: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return ids of the facts of subjects in relations, each slot a subject and the relations' keys."""
    rows = connection.execute(
        f"""SELECT DISTINCT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
            WHERE f.kind = 'fact' AND {_RELATION_KEY} IN
                (SELECT value FROM json_each(json_extract(w.value, '$[1]')))""",  # noqa: S608 - literals
        (json.dumps(slots),),
    )
    return [uuid for (uuid,) in rows]


def facts_ended(
    connection: Connection, endings: Sequence[tuple[str, str, Sequence[str]]]
) -> list[str]:
    """Return ids of the facts that endings may be about: a subject or "", an object or "", and relations' keys or none."""
    select = f"""SELECT f.uuid FROM json_each(?) AS w
        CROSS JOIN fact AS f ON f.%s = json_extract(w.value, '$[0]')
        WHERE f.kind = 'fact' AND (json_array_length(w.value, '$[1]') = 0 OR {_RELATION_KEY} IN
            (SELECT value FROM json_each(json_extract(w.value, '$[1]'))))"""  # noqa: S608 - literals
    by_subject = [(subject, keys) for subject, _, keys in endings if subject]
    by_object = [(object_, keys) for subject, object_, keys in endings if not subject]
    rows = connection.execute(
        f"{select % 'subject'} UNION {select % 'object'}",
        (json.dumps(by_subject), json.dumps(by_object)),
    )
    return [uuid for (uuid,) in rows]


def _longest_by_head(connection: Connection, units: Sequence[str]) -> dict[str, int]:
    rows = connection.execute(
        """SELECT value, (SELECT max(size) FROM node_name WHERE head = value) FROM json_each(?) AS heads""",
        (listed(dict.fromkeys(units)),),
    )
    return {unit: size for unit, size in rows if size is not None}


@dataclass(frozen=True, slots=True)
class Titled:
    """What a title stands for: a record of a pack's kind, or a node by its name or an alias."""

    id: str
    kind: str
    is_record: bool = False


def titled(connection: Connection, title: str) -> list[list[Titled]]:
    """Return what a title stands for, case and space folded: records, nodes of that name, nodes of that alias.

    Each is in the first of the three lists that it belongs to, oldest first; lists without any are left out.
    """
    folded = fold(title)
    records = connection.execute(
        f"""SELECT r.node, r.kind FROM records AS r JOIN turns AS t ON t.uuid = r.turn
            WHERE {OF_A_PACK} AND r.folded = ? ORDER BY t.seq""",  # noqa: S608 - literals
        (folded,),
    ).fetchall()
    nodes = connection.execute(
        """SELECT n.uuid, n.kind, m.is_alias FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            WHERE m.folded = ? ORDER BY m.is_alias, n.created_at, n.uuid""",
        (folded,),
    ).fetchall()
    found: dict[str, tuple[int, Titled]] = {
        id_: (0, Titled(id_, kind, is_record=True)) for id_, kind in records
    }
    for id_, kind, is_alias in nodes:
        found.setdefault(id_, (1 + is_alias, Titled(id_, kind)))
    tiers = [[one for tier, one in found.values() if tier == number] for number in range(3)]
    return [tier for tier in tiers if tier]


def ambiguous(path: str, candidates: Sequence[Titled]) -> InvalidRequest:
    """Return the refusal of a title that stands for several.

    It lists them by kind and id: no text of the memory is in an error.
    """
    what = "records" if all(one.is_record for one in candidates) else "nodes"
    ids = ", ".join(f"{one.kind} [{short_id(one.id)}]" for one in candidates[:_MAX_CANDIDATES])
    more = ", …" if len(candidates) > _MAX_CANDIDATES else ""
    return InvalidRequest(
        path, f"{len(candidates)} {what} are called so: {ids}{more}; give the id of one"
    )


def whole(
    connection: Connection, given: Sequence[str], *, strict: bool, path: str = "ids"
) -> list[str]:
    """Return the uuids that ids, their beginnings (as packs show them) and titles stand for.

    A title stands for the records of that title, else for the nodes of that name, else for those of that alias.

    Raises:
        NotFound: One stands for nothing, and ``strict``; else it stays as it is.
        InvalidRequest: One is the beginning of several ids, or the title of several; these are listed.
    """
    return [
        one if is_uuid(one) else _whole(connection, one, strict=strict, path=path) for one in given
    ]


def begun(connection: Connection, given: Sequence[str], path: str = "ids") -> list[str]:
    """Return ids with each beginning replaced by the one uuid that begins so; what is none stays as it is."""
    return [one if is_uuid(one) else _begun(connection, one, path) or one for one in given]


def candidates(connection: Connection, given: str, path: str = "ids") -> list[Titled]:
    """Return what an id, its beginning or a title stands for: several only where a title does, as in ``whole``.

    An id stands for itself, whether there is such a thing or not. Raises InvalidRequest as ``whole``.
    """
    id_ = given if is_uuid(given) else _begun(connection, given, path)
    if id_:
        return [Titled(id_, "")]
    tiers = titled(connection, given)
    return tiers[0] if tiers else []


def _whole(connection: Connection, given: str, *, strict: bool, path: str) -> str:
    found = candidates(connection, given, path)
    if len(found) > 1:
        raise ambiguous(path, found)
    if not found and strict:
        raise NotFound()
    return found[0].id if found else given


def _begun(connection: Connection, given: str, path: str) -> str:
    """Return the one id that begins so; empty for none."""
    if not is_beginning(given):
        return ""
    found = [
        uuid for (uuid,) in connection.execute(_BEGINNING, {"first": given, "last": f"{given}~"})
    ]
    if len(found) > 1:
        raise InvalidRequest(path, f"{given!r} begins more than one id: give more of it")
    return found[0] if found else ""
