"""The mirror: what filters and name look-ups need of the graph, in SQLite; rebuilt from the graph."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.errors import InvalidRequest, NotFound
from pps.core.ids import is_beginning, is_uuid, short_id
from pps.core.sql import insert, listed
from pps.core.text import fold
from pps.core.time import micros, precision_of
from pps.core.values import Fact, ItemKind, Node
from pps.journal import names, time_sql

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
OPEN = 1 << 62
"""Stands for an end that is not known: before (negative) or after every instant in microseconds."""
_BEGINNING = """
SELECT uuid FROM turns WHERE uuid >= :first AND uuid < :last
UNION SELECT node FROM records WHERE node >= :first AND node < :last AND pack <> ''
UNION SELECT i.uuid FROM mirror_id i WHERE i.uuid >= :first AND i.uuid < :last AND (
    EXISTS (SELECT 1 FROM mirror_node n WHERE n.id = i.id) OR EXISTS (SELECT 1 FROM mirror_fact f WHERE f.id = i.id))
LIMIT 2
"""

_MAX_CANDIDATES = 5

RECORD_SOURCE = "record_source"
"""Attribute of a record's node that says that it is one, where its kind has a field ``source`` of its own."""


def put_nodes(
    connection: sqlite3.Connection, nodes: Iterable[Node], gone: Iterable[str] = ()
) -> None:
    """Mirror nodes; one that is known already is replaced with its names and tags; forget those that are gone."""
    drop(connection, "node", gone)
    batch = list({node.uuid: node for node in nodes}.values())
    numbers, known = _numbers(connection, [node.uuid for node in batch])
    _delete(connection, "mirror_node", [numbers[uuid] for uuid in known])
    insert(
        connection,
        "INSERT INTO mirror_node (id, uuid, kind, source, status, created_at)",
        [
            (
                numbers[node.uuid],
                node.uuid,
                node.kind,
                _said(node, RECORD_SOURCE) or _said(node, "source"),
                _said(node, "status"),
                micros(node.created_at),
            )
            for node in batch
        ],
    )
    insert(
        connection,
        "INSERT OR IGNORE INTO mirror_tag (tag, node)",
        [(fold(tag), numbers[node.uuid]) for node in batch for tag in node.tags],
    )
    insert(
        connection,
        "INSERT INTO mirror_name (node, name, folded, spelling, head, size, is_alias)",
        [(numbers[node.uuid], *row) for node in batch for row in _name_rows(node)],
    )


def put_facts(
    connection: sqlite3.Connection, facts: Iterable[Fact], gone: Iterable[str] = ()
) -> None:
    """Mirror facts; one that is known already is replaced with its supporting episodes; forget those that are gone."""
    drop(connection, "fact", gone)
    batch = list({fact.uuid: fact for fact in facts}.values())
    involved = {
        id_ for fact in batch for id_ in (fact.uuid, fact.subject, fact.object, *fact.episodes)
    }
    numbers, known = _numbers(connection, involved)
    _delete(connection, "mirror_fact", [numbers[fact.uuid] for fact in batch if fact.uuid in known])
    insert(
        connection,
        """INSERT INTO mirror_fact
            (id, uuid, subject, object, relation, kind, at, valid_at, invalid_at, expired_at,
            valid_precision, invalid_precision)""",
        [
            (
                numbers[fact.uuid],
                fact.uuid,
                numbers[fact.subject],
                numbers[fact.object],
                fact.relation,
                fact.kind,
                micros(fact.valid_at or fact.created_at),
                -OPEN if fact.valid_at is None else micros(fact.valid_at),
                OPEN if fact.invalid_at is None else micros(fact.invalid_at),
                OPEN if fact.expired_at is None else micros(fact.expired_at),
                "instant" if fact.valid_at is None else precision_of(fact.valid_at),
                "instant" if fact.invalid_at is None else precision_of(fact.invalid_at),
            )
            for fact in batch
        ],
    )
    insert(
        connection,
        "INSERT OR IGNORE INTO mirror_support (episode, fact)",
        [(numbers[episode], numbers[fact.uuid]) for fact in batch for episode in fact.episodes],
    )


def put_mentions(
    connection: sqlite3.Connection,
    pairs: Iterable[tuple[str, str]],
    parted: Iterable[tuple[str, str]] = (),
    whole: Iterable[str] = (),
) -> None:
    """Mirror that turns mention nodes, as (turn, node); ``parted`` no longer do, and of ``whole`` nodes these are all.

    An episode that is no turn of the journal has no time here, and is passed over.
    """
    _delete(connection, "mirror_mention", numbers_of(connection, whole).values(), "node")
    connection.executemany(
        """DELETE FROM mirror_mention WHERE turn = (SELECT seq FROM turns WHERE uuid = ?)
            AND node = (SELECT id FROM mirror_id WHERE uuid = ?)""",
        list(parted),
    )
    batch = list(pairs)
    numbers, _ = _numbers(connection, {node for _, node in batch})
    connection.executemany(
        "INSERT OR IGNORE INTO mirror_mention (node, turn) SELECT ?, seq FROM turns WHERE uuid = ?",
        [(numbers[node], turn) for turn, node in batch],
    )


def drop(connection: sqlite3.Connection, kind: ItemKind, ids: Iterable[str]) -> None:
    """Forget nodes (with names and tags), facts, or episodes (as supports); other kinds have no mirror.

    The ids keep their numbers: facts may still name them as ends.
    """
    numbers = numbers_of(connection, ids).values()
    if kind == "node":
        _delete(connection, "mirror_node", numbers)
        _delete(connection, "mirror_mention", numbers, "node")
    elif kind == "fact":
        _delete(connection, "mirror_fact", numbers)
    elif kind == "episode":
        _delete(connection, "mirror_support", numbers, "episode")


def clear(connection: sqlite3.Connection) -> None:
    """Empty the mirror before it is rebuilt."""
    for table in ("name", "tag", "node", "mention", "support", "fact", "id"):
        connection.execute(f"DELETE FROM mirror_{table}")  # noqa: S608 - names of this module


def count_facts(connection: sqlite3.Connection) -> int:
    """Return how many facts there are, relations left out."""
    (number,) = connection.execute(
        """SELECT (SELECT count(*) FROM mirror_fact)
            - (SELECT count(*) FROM mirror_fact WHERE kind = 'relation')"""
    ).fetchone()
    return number


def resolve(connection: sqlite3.Connection, given: Sequence[str]) -> dict[str, str]:
    """Return folded name → node uuid for those that are known: names first, then aliases, oldest first."""
    rows = connection.execute(
        """SELECT m.folded, n.uuid FROM mirror_name AS m JOIN mirror_node AS n ON n.id = m.node
            WHERE m.folded IN (SELECT value FROM json_each(?))
            ORDER BY m.is_alias, n.created_at, n.uuid""",
        (listed(fold(name) for name in given),),
    )
    found: dict[str, str] = {}
    for folded, node in rows:
        found.setdefault(folded, node)
    return found


def names_of(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return node → its name, then its aliases; unknown nodes are left out."""
    rows = connection.execute(
        """SELECT i.uuid, m.name FROM mirror_id AS i JOIN mirror_name AS m ON m.node = i.id
            WHERE i.uuid IN (SELECT value FROM json_each(?)) ORDER BY m.is_alias""",
        (listed(nodes),),
    )
    found: dict[str, list[str]] = {}
    for uuid, name in rows:
        found.setdefault(uuid, []).append(name)
    return found


def named_in(connection: sqlite3.Connection, text: str, limit: int) -> list[str]:
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
            FROM mirror_name AS m JOIN mirror_node AS n ON n.id = m.node
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


def with_facts(connection: sqlite3.Connection, nodes: Sequence[str]) -> set[str]:
    """Return those of some nodes that a fact or relation joins, whether it still holds or not.

    The mirror may lag behind the graph: a node that it lacks counts as one that has facts.
    """
    query = "SELECT EXISTS (SELECT 1 FROM mirror_fact WHERE subject = ?1 OR object = ?1)"
    numbers = numbers_of(connection, nodes)
    mirrored = "SELECT EXISTS (SELECT 1 FROM mirror_node WHERE id = ?)"
    there = {
        uuid
        for uuid, number in numbers.items()
        if connection.execute(mirrored, (number,)).fetchone()[0]
    }
    return {
        uuid
        for uuid in nodes
        if uuid not in there or connection.execute(query, (numbers[uuid],)).fetchone()[0]
    }


def kinds_of(connection: sqlite3.Connection, nodes: Sequence[str]) -> dict[str, str]:
    """Return node → its kind; unknown nodes are left out."""
    rows = connection.execute(
        "SELECT uuid, kind FROM mirror_node WHERE uuid IN (SELECT value FROM json_each(?))",
        (listed(nodes),),
    )
    return dict(rows.fetchall())


def of_kinds_in(connection: sqlite3.Connection, text: str, limit: int) -> list[str]:
    """Return uuids of the nodes whose kind a text names ("the search engine"), the kind of most words first.

    A kind of more than ``limit`` nodes is left out: its name tells none of them from the others.
    """
    units = {one for unit in names.units(text) for one in (unit, names.without_s(unit))}
    kinds = [
        kind
        for (kind,) in connection.execute("SELECT DISTINCT kind FROM mirror_node WHERE kind <> ''")
    ]
    parts = {kind: names.units(_HUMPS.sub(" ", kind)) for kind in kinds}
    meant = sorted(
        (kind for kind in kinds if units.issuperset(parts[kind] or ["?"])),
        key=lambda one: -len(parts[one]),
    )
    found: list[str] = []
    for kind in meant:
        query = "SELECT uuid FROM mirror_node WHERE kind = ? ORDER BY created_at DESC LIMIT ?"
        some = [uuid for (uuid,) in connection.execute(query, (kind, limit + 1))]
        found += some if len(some) <= limit else []
    return found[:limit]


def mentioning(
    connection: sqlite3.Connection, nodes: Sequence[str], limit: int
) -> dict[str, list[str]]:
    """Return node → the turns that mention it, newest first; a node of more than ``limit`` turns is left out."""
    found: dict[str, list[str]] = {}
    for uuid, number in numbers_of(connection, nodes).items():
        query = """SELECT t.uuid FROM mirror_mention AS m JOIN turns AS t ON t.seq = m.turn WHERE m.node = ?
            ORDER BY m.turn DESC LIMIT ?"""
        turns = [turn for (turn,) in connection.execute(query, (number, limit + 1))]
        if len(turns) <= limit:
            found[uuid] = turns
    return found


def facts_supported_by(
    connection: sqlite3.Connection, episodes: Sequence[str]
) -> dict[str, list[str]]:
    """Return episode → ids of the facts it supports, oldest first; episodes without facts are left out."""
    rows = connection.execute(
        """SELECT i.uuid, f.uuid FROM mirror_id AS i
            JOIN mirror_support AS s ON s.episode = i.id JOIN mirror_fact AS f ON f.id = s.fact
            WHERE i.uuid IN (SELECT value FROM json_each(?)) ORDER BY f.at, f.uuid""",
        (listed(episodes),),
    )
    found: dict[str, list[str]] = {}
    for episode, fact in rows:
        found.setdefault(episode, []).append(fact)
    return found


def ids(connection: sqlite3.Connection, kind: ItemKind) -> set[str]:
    """Return the ids of all mirrored nodes, or of all mirrored facts that are not relations."""
    table = "mirror_node" if kind == "node" else "mirror_fact WHERE kind = 'fact'"
    return {uuid for (uuid,) in connection.execute(f"SELECT uuid FROM {table}")}  # noqa: S608 - constants


def facts_turning(connection: sqlite3.Connection, after: datetime, until: datetime) -> list[str]:
    """Return ids of facts that ended in ``(after, until]`` by the clock alone: dates on the wall clock of these."""
    later, after_values = time_sql.begins("invalid_at", "invalid_precision", ">", after)
    by_then, until_values = time_sql.begins("invalid_at", "invalid_precision", "<=", until)
    rows = connection.execute(
        f"SELECT uuid FROM mirror_fact WHERE {later} AND {by_then}",  # noqa: S608 - literals
        (*after_values, *until_values),
    )
    return [uuid for (uuid,) in rows]


def fact_times(connection: sqlite3.Connection) -> tuple[list[int], list[int], int]:
    """Return when facts began and when facts ended, in microseconds, and how many have no time; relations left out."""
    kind = "kind = 'fact'"
    began = connection.execute(
        f"SELECT valid_at FROM mirror_fact WHERE {kind} AND valid_at > ?",  # noqa: S608 - literals
        (-OPEN,),
    )
    ended = connection.execute(
        f"SELECT invalid_at FROM mirror_fact WHERE {kind} AND invalid_at < ?",  # noqa: S608 - literals
        (OPEN,),
    )
    (undated,) = connection.execute(
        f"SELECT count(*) FROM mirror_fact WHERE {kind} AND valid_at <= ?",  # noqa: S608 - literals
        (-OPEN,),
    ).fetchone()
    return [at for (at,) in began], [at for (at,) in ended], undated


def facts_joining(
    connection: sqlite3.Connection, wanted: Sequence[tuple[str, str, str]]
) -> list[str]:
    """Return ids of facts between subject and object in any relation; without an object, in that relation."""
    rows = connection.execute(
        """SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN mirror_id AS s ON s.uuid = json_extract(w.value, '$[0]')
            CROSS JOIN mirror_id AS o ON o.uuid = json_extract(w.value, '$[2]')
            CROSS JOIN mirror_fact AS f ON f.subject = s.id AND f.object = o.id
            WHERE f.kind = 'fact'
        UNION SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN mirror_id AS s ON s.uuid = json_extract(w.value, '$[0]')
            CROSS JOIN mirror_fact AS f ON f.subject = s.id AND +f.relation = json_extract(w.value, '$[1]')
            WHERE json_extract(w.value, '$[2]') = '' AND f.kind = 'fact'""",
        (json.dumps(wanted), json.dumps([one for one in wanted if not one[2]])),
    )
    return [uuid for (uuid,) in rows]


_RELATION_KEY = "lower(replace(replace(replace(f.relation, '_', ''), ' ', ''), '-', ''))"
"""``relation_key`` of a relation's name, which has no other separators."""


def facts_in_slots(
    connection: sqlite3.Connection, slots: Sequence[tuple[str, Sequence[str]]]
) -> list[str]:
    """Return ids of the facts of subjects in relations, each slot a subject and the relations' keys."""
    rows = connection.execute(
        f"""SELECT DISTINCT f.uuid FROM json_each(?) AS w
            CROSS JOIN mirror_id AS s ON s.uuid = json_extract(w.value, '$[0]')
            CROSS JOIN mirror_fact AS f ON f.subject = s.id
            WHERE f.kind = 'fact' AND {_RELATION_KEY} IN
                (SELECT value FROM json_each(json_extract(w.value, '$[1]')))""",  # noqa: S608 - literals
        (json.dumps(slots),),
    )
    return [uuid for (uuid,) in rows]


def facts_ended(
    connection: sqlite3.Connection, endings: Sequence[tuple[str, str, Sequence[str]]]
) -> list[str]:
    """Return ids of the facts that endings may be about: a subject or "", an object or "", and relations' keys or none."""
    select = f"""SELECT f.uuid FROM json_each(?) AS w
        CROSS JOIN mirror_id AS e ON e.uuid = json_extract(w.value, '$[0]')
        CROSS JOIN mirror_fact AS f ON f.%s = e.id
        WHERE f.kind = 'fact' AND (json_array_length(w.value, '$[1]') = 0 OR {_RELATION_KEY} IN
            (SELECT value FROM json_each(json_extract(w.value, '$[1]'))))"""  # noqa: S608 - literals
    by_subject = [(subject, keys) for subject, _, keys in endings if subject]
    by_object = [(object_, keys) for subject, object_, keys in endings if not subject]
    rows = connection.execute(
        f"{select % 'subject'} UNION {select % 'object'}",
        (json.dumps(by_subject), json.dumps(by_object)),
    )
    return [uuid for (uuid,) in rows]


def numbers_of(connection: sqlite3.Connection, uuids: Iterable[str]) -> dict[str, int]:
    """Return uuid → the number by which the mirror's tables name it; an unknown uuid is left out."""
    (found,) = connection.execute(
        """SELECT json_group_object(uuid, id) FROM mirror_id
            WHERE uuid IN (SELECT value FROM json_each(?))""",
        (listed(uuids),),
    ).fetchone()
    return json.loads(found)


def _numbers(
    connection: sqlite3.Connection, uuids: Collection[str]
) -> tuple[dict[str, int], set[str]]:
    """Return the number of each uuid, giving one to those that have none, and which had one."""
    numbers = numbers_of(connection, uuids)
    known = set(numbers)
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM mirror_id").fetchone()
    new = {uuid: number for number, uuid in enumerate(sorted(set(uuids) - known), last + 1)}
    insert(connection, "INSERT INTO mirror_id (uuid, id)", list(new.items()))
    return numbers | new, known


def _delete(
    connection: sqlite3.Connection, table: str, numbers: Collection[int], column: str = "id"
) -> None:
    if numbers:
        statement = f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants
        connection.execute(statement, (listed(numbers),))


def _longest_by_head(connection: sqlite3.Connection, units: Sequence[str]) -> dict[str, int]:
    rows = connection.execute(
        """SELECT value, (SELECT max(size) FROM mirror_name WHERE head = value) FROM json_each(?)""",
        (listed(dict.fromkeys(units)),),
    )
    return {unit: size for unit, size in rows if size is not None}


def _name_rows(node: Node) -> list[tuple[str, str, str, str, int, int]]:
    """Return the columns of ``mirror_name`` after ``node``, one row for each different name."""
    rows: list[tuple[str, str, str, str, int, int]] = []
    for number, name in enumerate(dict.fromkeys((node.name, *node.aliases))):
        units = names.units(name)
        head, size = (units[0], min(len(units), names.MAX_UNITS)) if units else ("", 0)
        rows.append((name, fold(name), names.spelling(units), head, size, int(number > 0)))
    return rows


def _said(node: Node, attribute: str) -> str:
    value = node.attributes.get(attribute, "")
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Titled:
    """What a title stands for: a record of a pack's kind, or a node by its name or an alias."""

    id: str
    kind: str
    is_record: bool = False


def titled(connection: sqlite3.Connection, title: str) -> list[list[Titled]]:
    """Return what a title stands for, case and space folded: records, nodes of that name, nodes of that alias.

    Each is in the first of the three lists that it belongs to, oldest first; lists without any are left out.
    """
    folded = fold(title)
    records = connection.execute(
        """SELECT r.node, r.kind FROM records AS r JOIN turns AS t ON t.uuid = r.turn
            WHERE r.pack <> '' AND r.folded = ? ORDER BY t.seq""",
        (folded,),
    ).fetchall()
    nodes = connection.execute(
        """SELECT n.uuid, n.kind, m.is_alias FROM mirror_name AS m JOIN mirror_node AS n ON n.id = m.node
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
    connection: sqlite3.Connection, given: Sequence[str], *, strict: bool, path: str = "ids"
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


def begun(connection: sqlite3.Connection, given: Sequence[str], path: str = "ids") -> list[str]:
    """Return ids with each beginning replaced by the one uuid that begins so; what is none stays as it is."""
    return [one if is_uuid(one) else _begun(connection, one, path) or one for one in given]


def candidates(connection: sqlite3.Connection, given: str, path: str = "ids") -> list[Titled]:
    """Return what an id, its beginning or a title stands for: several only where a title does, as in ``whole``.

    An id stands for itself, whether there is such a thing or not. Raises InvalidRequest as ``whole``.
    """
    id_ = given if is_uuid(given) else _begun(connection, given, path)
    if id_:
        return [Titled(id_, "")]
    tiers = titled(connection, given)
    return tiers[0] if tiers else []


def _whole(connection: sqlite3.Connection, given: str, *, strict: bool, path: str) -> str:
    found = candidates(connection, given, path)
    if len(found) > 1:
        raise ambiguous(path, found)
    if not found and strict:
        raise NotFound()
    return found[0].id if found else given


def _begun(connection: sqlite3.Connection, given: str, path: str) -> str:
    """Return the one id that begins so; empty for none."""
    if not is_beginning(given):
        return ""
    found = [
        uuid for (uuid,) in connection.execute(_BEGINNING, {"first": given, "last": f"{given}~"})
    ]
    if len(found) > 1:
        raise InvalidRequest(path, f"{given!r} begins more than one id: give more of it")
    return found[0] if found else ""
