"""Look-ups in the graph's tables.

By name, by the beginning of an id, by time, and by the subject, object and relation of a statement.
"""

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
from pps.journal.record_queries import TYPED

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
    """Return the number of facts, without relations."""
    (number,) = connection.execute(
        """SELECT (SELECT count(*) FROM fact)
            - (SELECT count(*) FROM fact WHERE kind = 'relation')"""
    ).fetchone()
    return number


def resolve(connection: Connection, wanted_names: Sequence[str]) -> dict[str, str]:
    """Return folded name → node uuid; unknown names are left out.

    Where several nodes share a name, a name goes before an alias, and the oldest node goes first.
    """
    rows = connection.execute(
        """SELECT m.folded, n.uuid FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            WHERE m.folded IN (SELECT value FROM json_each(?))
            ORDER BY m.is_alias, n.created_at, n.uuid""",
        (listed(fold(name) for name in wanted_names),),
    )
    node_of_name: dict[str, str] = {}
    for folded, node in rows:
        node_of_name.setdefault(folded, node)
    return node_of_name


def names_of(connection: Connection, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return node uuid → its name, then its aliases; unknown nodes are left out."""
    rows = connection.execute(
        """SELECT node, name FROM node_name WHERE node IN (SELECT value FROM json_each(?))
            ORDER BY place""",
        (listed(nodes),),
    )
    names_by_node: dict[str, list[str]] = {}
    for uuid, name in rows:
        names_by_node.setdefault(uuid, []).append(name)
    return names_by_node


def named_in(connection: Connection, text: str, limit: int) -> list[str]:
    """Return uuids of the nodes that a text names: the longest name first, then by place.

    Two look-ups, both by index: the units that begin any name, then the runs of units that are a
    name. A run whose last word ends in an s that the name lacks ("Annas Hut", "the Rossis") counts
    as that name, unless the run itself is a name.
    """
    units = names.units(text)
    heads: list[str] = []
    for unit in units:
        heads += (unit, names.without_s(unit))
    longest_by_head = _longest_by_head(connection, heads)
    places: dict[str, int] = {}  # spelling of a run → the place in the text where it begins
    with_s: dict[str, str] = {}  # spelling without the last s → as the text has it
    for start, unit in enumerate(units):
        longest = max(longest_by_head.get(unit, 0), longest_by_head.get(names.without_s(unit), 0))
        for size in range(1, min(longest, len(units) - start) + 1):
            run = units[start : start + size]
            spelling = names.spelling(run)
            places.setdefault(spelling, start)
            with_s.pop(spelling, None)
            stripped = names.spelling([*run[:-1], names.without_s(run[-1])])
            if stripped not in places:
                places[stripped] = start
                with_s[stripped] = spelling
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
        if with_s.get(spelling) not in exact
        and (not names.is_plain(spelling.split(" ")) or names.is_meant(name, text))
    ]
    return list(dict.fromkeys(hit[-1] for hit in sorted(hits)))[:limit]


def with_facts(connection: Connection, nodes: Sequence[str]) -> set[str]:
    """Return the nodes that any fact or relation joins, ended ones included.

    An absent node counts as a node with facts: a job may be about to save it.
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
"""The distinct kinds, one step of the index each; DISTINCT would read an entry of every node."""


def of_kinds_in(connection: Connection, text: str, limit: int) -> list[str]:
    """Return uuids of the nodes whose kind a text names ("the search engine").

    A kind of more words goes first. A kind of more than ``limit`` nodes is left out: its name does
    not tell them apart.
    """
    units: set[str] = set()
    for unit in names.units(text):
        units |= {unit, names.without_s(unit)}
    words_of_kind = {
        kind: names.units(_HUMPS.sub(" ", kind)) for (kind,) in connection.execute(_KINDS)
    }
    named_kinds = [
        kind for kind, words in words_of_kind.items() if words and units.issuperset(words)
    ]
    named_kinds.sort(key=lambda kind: len(words_of_kind[kind]), reverse=True)
    uuids: list[str] = []
    for kind in named_kinds:
        query = "SELECT uuid FROM node WHERE kind = ? ORDER BY created_at DESC LIMIT ?"
        of_kind = [uuid for (uuid,) in connection.execute(query, (kind, limit + 1))]
        if len(of_kind) <= limit:
            uuids += of_kind
    return uuids[:limit]


def count_kinds(connection: Connection) -> dict[str, int]:
    """Return kind → number of its nodes, in the order of the kinds' names."""
    rows = connection.execute("SELECT kind, count(*) FROM node GROUP BY kind ORDER BY kind")
    return dict(rows.fetchall())


def nodes_by_name(
    connection: Connection, *, kind: str, part: str, after: str, limit: int
) -> list[str]:
    """Return uuids of nodes in the order of their folded names.

    Args:
        connection: To the entity's journal.
        kind: Only nodes of this kind, in any case; empty for all kinds.
        part: Only nodes whose name or an alias contains this folded text; empty for all.
        after: Uuid of the last node of the page before; empty for the first page.
        limit: Most nodes.

    Raises:
        InvalidRequest: There is no node ``after``.
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
    """Return node → number of its facts, ended ones included; unknown nodes are left out."""
    rows = connection.execute(
        """SELECT n.uuid, (SELECT count(*) FROM fact WHERE kind = 'fact' AND subject = n.uuid)
                + (SELECT count(*) FROM fact
                    WHERE kind = 'fact' AND object = n.uuid AND subject <> n.uuid)
            FROM node AS n WHERE n.uuid IN (SELECT value FROM json_each(?))""",
        (listed(nodes),),
    )
    return dict(rows.fetchall())


def mentioning(connection: Connection, nodes: Sequence[str], limit: int) -> dict[str, list[str]]:
    """Return node → the turns that mention it, newest first.

    A node without turns, or with more than ``limit``, is left out.
    """
    query = """SELECT t.uuid FROM mention AS m CROSS JOIN turns AS t ON t.uuid = m.episode
        WHERE m.node = ? ORDER BY t.seq DESC LIMIT ?"""
    turns_by_node: dict[str, list[str]] = {}
    for node in dict.fromkeys(nodes):
        turns = [turn for (turn,) in connection.execute(query, (node, limit + 1))]
        if turns and len(turns) <= limit:
            turns_by_node[node] = turns
    return turns_by_node


def facts_supported_by(connection: Connection, episodes: Sequence[str]) -> dict[str, list[str]]:
    """Return episode → ids of the facts it supports, oldest first.

    Episodes without facts are left out.
    """
    rows = connection.execute(
        """SELECT s.episode, f.uuid FROM support AS s JOIN fact AS f ON f.uuid = s.fact
            WHERE s.episode IN (SELECT value FROM json_each(?)) ORDER BY f.at, f.uuid""",
        (listed(episodes),),
    )
    facts_by_episode: dict[str, list[str]] = {}
    for episode, fact in rows:
        facts_by_episode.setdefault(episode, []).append(fact)
    return facts_by_episode


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact, the latest turn that states it, and the event time of that turn."""

    fact: str
    turn: str
    said_at: datetime


def latest_stated(connection: Connection, limit: int) -> list[StatedFact]:
    """Return facts that turns state, the latest stated first, at most ``limit``; no relations."""
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
    """Return ids of facts whose end lies in ``(after, until]``.

    A date without a time of day is read on the wall clock of the bounds.
    """
    later, after_values = time_sql.begins("invalid_at", "invalid_precision", ">", after)
    by_then, until_values = time_sql.begins("invalid_at", "invalid_precision", "<=", until)
    rows = connection.execute(
        f"SELECT uuid FROM fact WHERE {later} AND {by_then}",  # noqa: S608 - literals
        (*after_values, *until_values),
    )
    return [uuid for (uuid,) in rows]


def fact_times(connection: Connection) -> tuple[list[int], list[int], int]:
    """Return the begins and the ends of facts in microseconds, and how many facts have no begin.

    Relations are left out.
    """

    def times(column: str) -> list[int]:
        rows = connection.execute(
            f"SELECT {column} FROM fact WHERE {column} IS NOT NULL AND kind = 'fact'"  # noqa: S608
        )
        return [at for (at,) in rows]

    (undated,) = connection.execute(
        "SELECT count(*) FROM fact WHERE valid_at IS NULL AND kind = 'fact'"
    ).fetchone()
    return times("valid_at"), times("invalid_at"), undated


def facts_joining(connection: Connection, triples: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return ids of the facts that (subject, relation, object) triples are about.

    With an object: the facts between subject and object in any relation. With an empty object: the
    facts of the subject in that relation.
    """
    without_object = [triple for triple in triples if not triple[2]]
    rows = connection.execute(
        """SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
                AND f.object = json_extract(w.value, '$[2]')
            WHERE f.kind = 'fact'
        UNION SELECT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
                AND +f.relation = json_extract(w.value, '$[1]')
            WHERE json_extract(w.value, '$[2]') = '' AND f.kind = 'fact'""",
        (json.dumps(triples), json.dumps(without_object)),
    )
    return [uuid for (uuid,) in rows]


_RELATION_KEY = "lower(replace(replace(replace(f.relation, '_', ''), ' ', ''), '-', ''))"
"""SQL for ``relation_key`` of a relation's name; such a name has no other separators."""


def facts_in_slots(connection: Connection, slots: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return ids of the facts in slots; a slot is a subject and the keys of its relations."""
    rows = connection.execute(
        f"""SELECT DISTINCT f.uuid FROM json_each(?) AS w
            CROSS JOIN fact AS f ON f.subject = json_extract(w.value, '$[0]')
            WHERE f.kind = 'fact' AND {_RELATION_KEY} IN
                (SELECT value FROM json_each(json_extract(w.value, '$[1]')))""",  # noqa: S608
        (json.dumps(slots),),
    )
    return [uuid for (uuid,) in rows]


def facts_ended(
    connection: Connection, endings: Sequence[tuple[str, str, Sequence[str]]]
) -> list[str]:
    """Return ids of the facts that endings may be about.

    An ending is a subject, an object (either may be empty, not both) and the keys of relations. The
    subject decides where there is one; no keys mean every relation.
    """
    select = f"""SELECT f.uuid FROM json_each(?) AS w
        CROSS JOIN fact AS f ON f.%s = json_extract(w.value, '$[0]')
        WHERE f.kind = 'fact' AND (json_array_length(w.value, '$[1]') = 0 OR {_RELATION_KEY} IN
            (SELECT value FROM json_each(json_extract(w.value, '$[1]'))))"""  # noqa: S608
    by_subject = [(subject, keys) for subject, _, keys in endings if subject]
    by_object = [(object_, keys) for subject, object_, keys in endings if not subject]
    rows = connection.execute(
        f"{select % 'subject'} UNION {select % 'object'}",
        (json.dumps(by_subject), json.dumps(by_object)),
    )
    return [uuid for (uuid,) in rows]


def _longest_by_head(connection: Connection, units: Sequence[str]) -> dict[str, int]:
    rows = connection.execute(
        """SELECT value, (SELECT max(size) FROM node_name WHERE head = value)
            FROM json_each(?) AS heads""",
        (listed(dict.fromkeys(units)),),
    )
    return {unit: size for unit, size in rows if size is not None}


@dataclass(frozen=True, slots=True)
class Titled:
    """An item that a title stands for: a typed record by title, or a node by name or alias.

    A titled text is such a node: it is found by the name that its node has, also after a merge.
    """

    id: str
    kind: str
    is_record: bool = False


def titled(connection: Connection, title: str) -> list[list[Titled]]:
    """Return the items that a title stands for, in up to three lists; case and space are folded.

    The lists are records of that title, nodes of that name, nodes of that alias. Each item is in
    the first list it belongs to, oldest first; empty lists are left out.
    """
    folded = fold(title)
    records = connection.execute(
        f"""SELECT r.node, r.kind FROM records AS r JOIN turns AS t ON t.uuid = r.turn
            WHERE {TYPED} AND r.folded = ? ORDER BY t.seq""",  # noqa: S608 - literals
        (folded,),
    ).fetchall()
    nodes = connection.execute(
        """SELECT n.uuid, n.kind, m.is_alias FROM node_name AS m JOIN node AS n ON n.uuid = m.node
            WHERE m.folded = ? ORDER BY m.is_alias, n.created_at, n.uuid""",
        (folded,),
    ).fetchall()
    of_records = [Titled(id_, kind, is_record=True) for id_, kind in records]
    seen = {item.id for item in of_records}
    of_names: list[Titled] = []
    of_aliases: list[Titled] = []
    for id_, kind, is_alias in nodes:
        if id_ not in seen:
            seen.add(id_)
            tier = of_aliases if is_alias else of_names
            tier.append(Titled(id_, kind))
    return [tier for tier in (of_records, of_names, of_aliases) if tier]


def ambiguous(path: str, candidates: Sequence[Titled]) -> InvalidRequest:
    """Return the error for a title that stands for several items.

    It lists them by kind and id: an error never holds a text of the memory.
    """
    plural = "records" if all(candidate.is_record for candidate in candidates) else "nodes"
    ids = ", ".join(
        f"{candidate.kind} [{short_id(candidate.id)}]" for candidate in candidates[:_MAX_CANDIDATES]
    )
    more = ", …" if len(candidates) > _MAX_CANDIDATES else ""
    return InvalidRequest(
        path, f"{len(candidates)} {plural} are called so: {ids}{more}; give the id of one"
    )


def whole(
    connection: Connection, references: Sequence[str], *, strict: bool, path: str = "ids"
) -> list[str]:
    """Return the uuid of each reference: an id, its beginning (as in context packs), or a title.

    A title stands for the records of that title, else for the nodes of that name, else for the
    nodes of that alias.

    Raises:
        NotFound: A reference stands for nothing, and ``strict``; else it stays as it is.
        InvalidRequest: A reference begins several ids, or is the title of several items; the error
            lists those of a title.
    """
    uuids: list[str] = []
    for reference in references:
        if is_uuid(reference):
            uuids.append(reference)
            continue
        items = candidates(connection, reference, path)
        if len(items) > 1:
            raise ambiguous(path, items)
        if not items and strict:
            raise NotFound()
        uuids.append(items[0].id if items else reference)
    return uuids


def begun(connection: Connection, references: Sequence[str], path: str = "ids") -> list[str]:
    """Replace each beginning of an id by the only uuid that begins so; leave all else as it is."""
    return [
        reference if is_uuid(reference) else _uuid_begun(connection, reference, path) or reference
        for reference in references
    ]


def candidates(connection: Connection, reference: str, path: str = "ids") -> list[Titled]:
    """Return the items that an id, its beginning or a title stands for, as in ``whole``.

    Only a title can stand for several. An id stands for itself, whether it exists or not.
    Raises InvalidRequest for the beginning of several ids.
    """
    id_ = reference if is_uuid(reference) else _uuid_begun(connection, reference, path)
    if id_:
        return [Titled(id_, "")]
    tiers = titled(connection, reference)
    return tiers[0] if tiers else []


def _uuid_begun(connection: Connection, beginning: str, path: str) -> str:
    """Return the only uuid that begins so; empty when there is none, or for another text."""
    if not is_beginning(beginning):
        return ""
    rows = connection.execute(_BEGINNING, {"first": beginning, "last": f"{beginning}~"}).fetchall()
    if len(rows) > 1:
        raise InvalidRequest(path, f"{beginning!r} begins more than one id: give more of it")
    return rows[0][0] if rows else ""
