"""Whole records for exports: with relations, cites, moves and versions.

Their cites are described so that another memory can find the same items.
"""

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
"""Prefix of the reference of a record, or of a turn without one; the uuid follows."""
NO_SOURCE = "import"
"""The source of an imported turn that named none."""


@dataclass(frozen=True, slots=True)
class KeptCite:
    """An item that a record cites, described so that another memory can find it.

    Attributes:
        of: The description. Of a record, or of its text: the record's id. Of a turn: source,
            session and reference. Of a relation: source, type and target. Of any other fact: the
            subject's name, the relation, the object's name, and the bounds of the time in which it
            holds.
    """

    kind: CiteKind
    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExportedRecord:
    """A record as an export writes it; ids are those of the exporting memory.

    Attributes:
        relations: The relations that hold and begin at the record, or that end at it and begin at a
            node that is no record.
        versions: All versions, oldest first; the last is the current one.
        nodes: Id → name of the nodes, no records, that its relations and fields refer to.
    """

    record: Record
    relations: tuple[Relation, ...] = ()
    cites: tuple[KeptCite, ...] = ()
    moves: tuple[Transition, ...] = ()
    versions: tuple[Version, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])


KEPT = TypeAdapter(ExportedRecord)


def whole(rows: RecordRows, records: Sequence[Record]) -> list[ExportedRecord]:
    """Return records as an export writes them, in the same order."""
    ids = [record.id for record in records]
    relations_of: dict[str, list[Relation]] = {id_: [] for id_ in ids}
    relations = rows.relations(ids)
    sources = rows.find(relation.source for relation in relations)
    for relation in relations:
        owner = relation.source if relation.source in sources else relation.target
        if owner in relations_of:
            relations_of[owner].append(relation)
    moves_of: dict[str, list[Transition]] = {id_: [] for id_ in ids}
    for move in rows.moves(ids):
        moves_of[move.record].append(move)
    cites_of = rows.cites(ids)
    kinds_of_cited: dict[str, CiteKind] = {}
    for cites in cites_of.values():
        kinds_of_cited.update({cite.id: cite.kind for cite in cites if not cite.gone})
    kept_cites = _describe_cited(rows, kinds_of_cited)
    exported = [
        ExportedRecord(
            record,
            relations=tuple(relations_of[record.id]),
            cites=tuple(
                kept_cites[cite.id] for cite in cites_of.get(record.id, ()) if cite.id in kept_cites
            ),
            moves=tuple(moves_of[record.id]),
            versions=tuple(rows.beside(lambda db, turn=record.turn: versions.of(db, turn))),
        )
        for record in records
    ]
    referred = [set(_referred_ids(record)) for record in exported]
    all_referred = set[str]().union(*referred)
    no_records = all_referred - rows.find(all_referred).keys()
    names = rows.beside(lambda db: graph_queries.names_of(db, [*no_records]))
    return [
        replace(record, nodes={id_: names[id_][0] for id_ in sorted(ids_of_it) if id_ in names})
        for record, ids_of_it in zip(exported, referred, strict=True)
    ]


def cited_as(rows: RecordRows, cite: KeptCite) -> str:
    """Return the id of this memory's fact that a fact's description matches; empty for none."""
    subject, relation, object_, since, until = cite.of
    statement = """SELECT f.uuid FROM fact AS f
        JOIN node_name AS a ON a.node = f.subject JOIN node_name AS b ON b.node = f.object
        WHERE a.folded = ? AND b.folded = ? AND f.relation = ?
        ORDER BY f.holds_from <> ?, f.holds_until <> ?, f.at, f.uuid LIMIT 1"""
    values = fold(subject), fold(object_), relation, int(since), int(until)
    row = rows.beside(lambda db: db.execute(statement, values).fetchone())
    return row[0] if row else ""


def things(rows: RecordRows, names: Iterable[str]) -> dict[str, str]:
    """Return folded name → the node of that name or alias; unknown names are left out."""
    return rows.beside(lambda db: graph_queries.resolve(db, [*names]))


def sources(rows: RecordRows, nodes: Iterable[str]) -> set[str]:
    """Return the nodes that are records, typed or titled texts."""
    statement = f"SELECT node FROM records WHERE node IN {LIST}"  # noqa: S608 - literals
    return rows.beside(lambda db: {node for (node,) in db.execute(statement, (listed(nodes),))})


def _referred_ids(exported: ExportedRecord) -> Iterator[str]:
    """Yield all ids that relations and fields refer to, also the fields of earlier versions."""
    for relation in exported.relations:
        yield relation.source
        yield relation.target
    yield from _uuids(exported.record.fields)
    for version in exported.versions:
        yield from _uuids(version.fields)


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


def _describe_cited(rows: RecordRows, kinds: Mapping[str, CiteKind]) -> dict[str, KeptCite]:
    """Return id → description of each cited item; absent items are left out."""
    described = {id_: KeptCite("record", (id_,)) for id_, kind in kinds.items() if kind == "record"}
    id_list = listed(kinds)
    records = rows.find(kinds)

    def read(db: Connection) -> None:
        turns = db.execute(
            f"SELECT uuid, source, session, source_ref FROM turns WHERE uuid IN {LIST}",  # noqa: S608 - literals
            (id_list,),
        )
        for uuid, source, session, ref in turns:
            origin = (source or NO_SOURCE, session, ref or f"{KNOWN}{uuid}")
            described[uuid] = KeptCite("turn", (records[uuid].id,) if uuid in records else origin)
        facts = db.execute(
            f"""SELECT f.uuid, a.name, f.relation, b.name, f.holds_from, f.holds_until
                FROM fact AS f
                JOIN node_name AS a ON a.node = f.subject AND a.is_alias = 0
                JOIN node_name AS b ON b.node = f.object AND b.is_alias = 0
                WHERE f.uuid IN {LIST}""",  # noqa: S608 - literals
            (id_list,),
        )
        for uuid, *description in facts:
            described[uuid] = KeptCite("fact", tuple(map(str, description)))

    rows.beside(read)
    for relation in rows.relations_of([*kinds]):  # a relation is a fact too: described by its ids
        described[relation.id] = KeptCite("fact", (relation.source, relation.type, relation.target))
    return described
