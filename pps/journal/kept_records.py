"""Records whole: with relations, cites, moves and versions, and what another memory finds their references by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from pps.core.ids import is_uuid
from pps.core.record_values import CiteKind, Record, Relation, Transition
from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.values import JSON
from pps.journal import graph_queries, versions
from pps.journal.record_rows import RecordRows
from pps.journal.versions import Version

KNOWN = "export:"
"""Begin of the reference of a turn that had none, and of a record; its uuid follows."""
NO_SOURCE = "import"
"""Where a turn comes from that named no origin, once it was imported."""


@dataclass(frozen=True, slots=True)
class KeptCite:
    """What a record rests on, by what another memory finds it by.

    Attributes:
        of: Of a record, or of the text of one, its id. Of a turn source, session and reference. Of a relation source,
            type and target. Of any other fact the names of its ends about its relation, then when it holds.
    """

    kind: CiteKind
    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportedRecord:
    """A record as an export writes it; ids are those of the memory that it comes from.

    Attributes:
        relations: Those that hold and begin at it, or end at it and begin at no record.
        versions: All, oldest first; the last is what it is now.
        nodes: Id → name of what its relations and fields lead to and is no record.
    """

    record: Record
    relations: tuple[Relation, ...] = ()
    cites: tuple[KeptCite, ...] = ()
    moves: tuple[Transition, ...] = ()
    versions: tuple[Version, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])


KEPT = TypeAdapter(ExportedRecord)


def whole(rows: RecordRows, records: Sequence[Record]) -> list[ExportedRecord]:
    """Return records with all that is kept of them, in the same order."""
    ids = {one.id: number for number, one in enumerate(records)}
    found = [
        ExportedRecord(
            one, versions=tuple(rows.beside(lambda db, of=one.turn: versions.of(db, of)))
        )
        for one in records
    ]
    joins = rows.relations([*ids])
    sources = rows.find(one.source for one in joins)
    for one in joins:
        if (owner := one.source if one.source in sources else one.target) in ids:
            number = ids[owner]
            found[number] = replace(found[number], relations=(*found[number].relations, one))
    for move in rows.moves(ids):
        number = ids[move.record]
        found[number] = replace(found[number], moves=(*found[number].moves, move))
    cited = rows.cites(ids)
    told = _told(
        rows, {cite.id: cite.kind for cites in cited.values() for cite in cites if not cite.gone}
    )
    for record, cites in cited.items():
        kept = tuple(told[one.id] for one in cites if one.id in told)
        found[ids[record]] = replace(found[ids[record]], cites=kept)
    ends = [set(_ends(one)) for one in found]
    wanted = set[str]().union(*ends)
    wanted -= rows.find(wanted).keys()
    names = rows.beside(lambda db: graph_queries.names_of(db, [*wanted]))
    return [
        replace(one, nodes={end: names[end][0] for end in sorted(mine) if end in names})
        for one, mine in zip(found, ends, strict=True)
    ]


def cited_as(rows: RecordRows, cite: KeptCite) -> str:
    """Return the fact of this memory that a fact cited elsewhere is; empty when there is none."""
    subject, relation, object_, since, until = cite.of
    statement = """SELECT f.uuid FROM fact AS f
        JOIN node_name AS a ON a.node = f.subject JOIN node_name AS b ON b.node = f.object
        WHERE a.folded = ? AND b.folded = ? AND f.relation = ?
        ORDER BY f.holds_from <> ?, f.holds_until <> ?, f.at, f.uuid LIMIT 1"""
    values = fold(subject), fold(object_), relation, int(since), int(until)
    found = rows.beside(lambda db: db.execute(statement, values).fetchone())
    return found[0] if found else ""


def things(rows: RecordRows, names: Iterable[str]) -> dict[str, str]:
    """Return folded name → the node of that name, or alias, for those that have one."""
    return rows.beside(lambda db: graph_queries.resolve(db, [*names]))


def sources(rows: RecordRows, nodes: Iterable[str]) -> set[str]:
    """Return those nodes that a text is the source of, of a pack's kind or not."""
    statement = f"SELECT node FROM records WHERE node IN {LIST}"  # noqa: S608 - literals
    return rows.beside(lambda db: {node for (node,) in db.execute(statement, (listed(nodes),))})


def _ends(one: ExportedRecord) -> Iterator[str]:
    """Yield all ids that relations and fields lead to, those of earlier versions too."""
    for relation in one.relations:
        yield relation.source
        yield relation.target
    for value in (one.record.fields, *(version.fields for version in one.versions)):
        yield from _uuids(value)


def _uuids(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        if is_uuid(value):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _uuids(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _uuids(item)


def _told(rows: RecordRows, cited: Mapping[str, CiteKind]) -> dict[str, KeptCite]:
    """Return id → what another memory finds it by."""
    found = {id_: KeptCite("record", (id_,)) for id_, kind in cited.items() if kind == "record"}
    relations = {one.id: one for one in rows.relations_of([*cited])}
    records = rows.find(cited)

    def read(db: Connection) -> None:
        turns = db.execute(
            f"SELECT uuid, source, session, source_ref FROM turns WHERE uuid IN {LIST}",  # noqa: S608 - literals
            (listed(cited),),
        )
        for uuid, source, session, ref in turns:
            origin = (source or NO_SOURCE, session, ref or f"{KNOWN}{uuid}")
            found[uuid] = KeptCite("turn", (records[uuid].id,) if uuid in records else origin)
        facts = db.execute(
            f"""SELECT f.uuid, a.name, f.relation, b.name, f.holds_from, f.holds_until FROM fact AS f
                JOIN node_name AS a ON a.node = f.subject AND a.is_alias = 0
                JOIN node_name AS b ON b.node = f.object AND b.is_alias = 0 WHERE f.uuid IN {LIST}""",  # noqa: S608 - literals
            (listed(cited),),
        )
        for uuid, *of in facts:
            found[uuid] = KeptCite("fact", tuple(map(str, of)))

    rows.beside(read)
    return found | {
        id_: KeptCite("fact", (one.source, one.type, one.target)) for id_, one in relations.items()
    }
