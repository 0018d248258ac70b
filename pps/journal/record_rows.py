"""Records: which node a turn is the source of, and for packs' kinds fields, relations, moves, cites.

A record's words are a turn's. A record of a pack's kind is made and changed together with the turn,
its job and its version, all or nothing. A titled text has its row once the turn's job made its node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from pps.core.record_values import Cite, CiteKind, Record, RecordGraph, Relation, Transition
from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros, micros, now
from pps.core.values import Turn
from pps.journal import graph_queries, job_queue, turns, versions
from pps.journal.change_log import log_changes
from pps.journal.entries import Change, JobPayload, prepare_payload
from pps.journal.graph_queries import Titled
from pps.journal.links import node_times
from pps.journal.record_queries import (
    OF_A_PACK,
    RecordRowPage,
    RecordSelection,
    select_page,
    select_records,
)
from pps.journal.store import Readers
from pps.journal.turn_listeners import TurnListeners
from pps.journal.versions import ChangeType, Rework
from pps.journal.writer import Writer

T = TypeVar("T")

_RELATION = "id, source, type, target, at, properties, actor"
FieldValue: TypeAlias = tuple[float | None, str | None, int | None]
"""What a field is found by: a number, a text, or a time in microseconds."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A relation whose row the graph does not have as it is; ``ended_at`` tells that it no longer holds."""

    relation: Relation
    ended_at: datetime | None
    changes: int


class RecordRows:
    """The records of one ``memory.db`` as one transaction sees them; what it raises undoes all of it."""

    def __init__(self, db: Connection, listeners: TurnListeners | None = None) -> None:
        self._db = db
        self._listeners = listeners

    def beside(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on other tables, in the same transaction."""
        return work(self._db)

    def find(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return id → record, by the ids of nodes or of turns; those that are none are left out."""
        wanted = listed(ids)
        found = self._select(f"(r.node IN {LIST} OR r.turn IN {LIST})", wanted, wanted)
        return {id_: one for one in found for id_ in (one.id, one.turn)}

    def titled(self, title: str, kind: str = "") -> list[Record]:
        """Return the records of a title, case and space folded, oldest first; of one kind where it is given."""
        if kind:
            return self._select("r.kind = ? AND r.folded = ?", kind, fold(title))
        return self._select("r.folded = ?", fold(title))

    def kinds_of(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return node → its kind: of records as they are, of other nodes as the graph has them."""
        wanted = listed(nodes)
        found = dict(
            self._db.execute(
                f"SELECT uuid, kind FROM node WHERE uuid IN {LIST}",  # noqa: S608 - literals
                (wanted,),
            ).fetchall()
        )
        return found | {one.id: one.kind for one in self._select(f"r.node IN {LIST}", wanted)}

    def candidates(self, end: str, path: str = "id") -> list[Titled]:
        """Return the nodes that an id, the beginning of one, or a title stands for, with their kinds; records first.

        Several only where several have that title; none where the id or title is nothing of this memory.
        """
        found = graph_queries.candidates(self._db, end, path)
        if len(found) != 1 or found[0].kind:
            return found
        [given] = found
        kinds = self.kinds_of([given.id])
        if given.id in kinds:
            return [Titled(given.id, kinds[given.id])]
        return [Titled(one.id, one.kind, is_record=True) for one in self.find([given.id]).values()][
            :1
        ]

    def whole(self, ids: Sequence[str], path: str = "id") -> list[str]:
        """Return the ids that ids, their beginnings or titles stand for; unknown ones as they are.

        Raises:
            InvalidRequest: Several have that title; they are listed with their ids.
        """
        return graph_queries.whole(self._db, ids, strict=False, path=path)

    def cited(self, ids: Iterable[str]) -> dict[str, CiteKind]:
        """Return id → what it is, for ids of this memory's records, turns and facts."""
        wanted = listed(ids)
        rows = self._db.execute(
            f"""SELECT uuid, 'fact' FROM fact WHERE uuid IN {LIST}
                UNION ALL SELECT uuid, 'turn' FROM turns WHERE uuid IN {LIST}
                UNION ALL SELECT node, 'record' FROM records WHERE node IN {LIST}""",  # noqa: S608 - literals
            (wanted,) * 3,
        ).fetchall()
        return {id_: cast("CiteKind", kind) for id_, kind in rows}

    def add(
        self,
        turn: turns.Prepared,
        payload: JobPayload,
        record: Record,
        was: Sequence[versions.Version] = (),
    ) -> int:
        """Keep a new record with its turn, its job and its first version, or those it had elsewhere; return the job."""
        stored, _ = turns.insert(self._db, turn, anew=True)
        for one in was:
            versions.put(self._db, stored.uuid, one)
        versions.put_first(self._db, stored, payload)
        if self._listeners is not None:
            self._listeners.tell(self._db, stored)
        log_changes(self._db, [Change("episode", stored.uuid)])
        job = job_queue.add(self._db, stored.uuid, prepare_payload(payload))
        self._put(record)
        return job

    def change(self, record: Record, change: ChangeType, rework: Rework) -> tuple[Record, int]:
        """Keep a record as it is now; return it with its version, and the id of its job, 0 when nothing changed.

        Raises Revising while its job is running.
        """
        revised = versions.revise(self._db, record.turn, change, record.actor, rework)
        if not revised.changed:
            return replace(record, version=revised.version), 0
        record = replace(record, version=revised.version, updated_at=now())
        self._put(record)
        return record, revised.job_id

    def bump(self, record: Record) -> Record:
        """Keep another version of a record whose words stay: what it rests on changed."""
        last = versions.of(self._db, record.turn)[-1]
        versions.put(self._db, record.turn, last)
        at, number = now(), last.number + 1
        versions.put(
            self._db,
            record.turn,
            replace(last, number=number, change="modified", actor=record.actor, at=at),
        )
        self._put(record := replace(record, version=number, updated_at=at))
        return record

    def put_fields(self, node: str, fields: Mapping[str, FieldValue]) -> None:
        """Replace what a record is found by."""
        self._db.execute("DELETE FROM record_field WHERE node = ?", (node,))
        rows = [(node, name, *value) for name, value in fields.items()]
        self._db.executemany(
            "INSERT INTO record_field (node, field, number, text, at) VALUES (?, ?, ?, ?, ?)", rows
        )

    def relate(self, relation: Relation) -> bool:
        """Keep a relation, or what it is from now on; return whether it did not hold before."""
        known = self._db.execute(
            "SELECT ended_at, properties, actor FROM record_relations WHERE id = ?", (relation.id,)
        ).fetchone()
        properties = json.dumps(relation.properties, ensure_ascii=False, sort_keys=True)
        if known and known[:2] == (0, properties):
            return False
        self._db.execute(
            """INSERT INTO record_relations (id, source, type, target, properties, actor, at, pending)
                VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET properties = excluded.properties,
                actor = CASE WHEN record_relations.ended_at > 0 THEN excluded.actor ELSE record_relations.actor END,
                at = CASE WHEN record_relations.ended_at > 0 THEN excluded.at ELSE record_relations.at END,
                ended_at = 0, pending = record_relations.pending + 1""",
            (
                relation.id,
                relation.source,
                relation.type,
                relation.target,
                properties,
                relation.actor,
                micros(relation.created_at),
            ),
        )
        return known is None or known[0] != 0

    def holds(self, fact: str) -> bool:
        """Tell whether the graph has a fact that holds, whoever made it."""
        statement = "SELECT 1 FROM fact WHERE uuid = ? AND expired_at IS NULL"
        return self._db.execute(statement, (fact,)).fetchone() is not None

    def end(self, relations: Sequence[str], at: datetime) -> None:
        """Let relations no longer hold."""
        self._db.execute(
            f"UPDATE record_relations SET ended_at = ?, pending = pending + 1 WHERE ended_at = 0 AND id IN {LIST}",  # noqa: S608 - literals
            (micros(at), listed(relations)),
        )

    def relations(self, nodes: Sequence[str]) -> list[Relation]:
        """Return what joins any of some nodes and holds, oldest first."""
        wanted = listed(nodes)
        return [
            _relation(row)
            for row in self._db.execute(
                f"""SELECT {_RELATION} FROM record_relations WHERE ended_at = 0
                    AND (source IN {LIST} OR target IN {LIST}) ORDER BY at, id""",  # noqa: S608 - literals
                (wanted, wanted),
            )
        ]

    def relations_of(self, ids: Sequence[str]) -> list[Relation]:
        """Return relations by their ids, those that hold."""
        statement = f"SELECT {_RELATION} FROM record_relations WHERE ended_at = 0 AND id IN {LIST}"  # noqa: S608 - literals
        return [_relation(row) for row in self._db.execute(statement, (listed(ids),))]

    def kinds_written(self, ids: Iterable[str]) -> list[str]:
        """Return the kinds of the records that some ids are, and of those that relations of these ids begin at.

        A relation that ends at one of these records goes with it, and is no one else's.
        """
        records = self.find(wanted := list(ids))
        statement = f"SELECT source, target FROM record_relations WHERE id IN {LIST}"  # noqa: S608 - literals
        ends = self._db.execute(statement, (listed(wanted),)).fetchall()
        sources = self.kinds_of([source for source, target in ends if target not in records])
        return sorted({*(one.kind for one in records.values()), *sources.values()})

    def put_cites(self, record: str, cites: Iterable[Cite]) -> bool:
        """Let a record rest on these alone; return whether that is another set than before."""
        after = {one.id: one for one in cites}
        before = {one.id for one in self.cites([record]).get(record, ())}
        if before == after.keys():
            return False
        self._db.execute("DELETE FROM record_cites WHERE record = ?", (record,))
        rows = [(record, one.id, one.kind, one.gone) for one in after.values()]
        self._db.executemany(
            "INSERT INTO record_cites (record, id, kind, gone) VALUES (?, ?, ?, ?)", rows
        )
        return True

    def cites(self, records: Iterable[str]) -> dict[str, tuple[Cite, ...]]:
        """Return record → what it cites."""
        found: dict[str, list[Cite]] = {}
        statement = f"SELECT record, kind, id, gone FROM record_cites WHERE record IN {LIST} ORDER BY kind, id"  # noqa: S608 - literals
        for record, kind, id_, gone in self._db.execute(statement, (listed(records),)):
            found.setdefault(record, []).append(Cite(kind, id_, bool(gone)))
        return {record: tuple(cites) for record, cites in found.items()}

    def note_move(self, move: Transition) -> None:
        """Keep a move of a record's life cycle."""
        self._db.execute(
            "INSERT INTO transitions (record, before, after, actor, at, why) VALUES (?, ?, ?, ?, ?, ?)",
            (move.record, move.before, move.after, move.actor, micros(move.at), move.why),
        )

    def moves(self, records: Iterable[str]) -> list[Transition]:
        """Return the moves of some records, oldest first."""
        statement = f"""SELECT record, before, after, actor, at, why FROM transitions WHERE record IN {LIST}
            ORDER BY seq"""  # noqa: S608 - literals
        rows = self._db.execute(statement, (listed(records),))
        return [
            Transition(node, before, to, who, from_micros(at), why)
            for node, before, to, who, at, why in rows
        ]

    def every(self) -> list[Record]:
        """Return all records, oldest first."""
        return self._select("TRUE")

    def _select(self, where: str, *values: str) -> list[Record]:
        return select_records(self._db, where, *values)

    def _put(self, record: Record) -> None:
        self._db.execute(
            """INSERT INTO records (turn, node, kind, title, folded, summary, fields, status, state, version, pack,
                pack_version, updated_at, actor, author) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (turn) DO UPDATE SET kind = excluded.kind, title = excluded.title,
                folded = excluded.folded, summary = excluded.summary, fields = excluded.fields,
                status = excluded.status, state = excluded.state, version = excluded.version, pack = excluded.pack,
                pack_version = excluded.pack_version, updated_at = excluded.updated_at, actor = excluded.actor""",
            (
                record.turn,
                record.id,
                record.kind,
                record.title,
                fold(record.title),
                record.summary,
                json.dumps(record.fields, ensure_ascii=False),
                record.status,
                record.state,
                record.version,
                record.pack,
                record.pack_version,
                micros(record.updated_at),
                record.actor,
                record.author,
            ),
        )


Use: TypeAlias = Callable[[RecordRows], T]


class RecordStore:
    """The records of one ``memory.db``, of titled texts and of packs' kinds.

    ``write``, ``read``, ``graph`` and ``page`` know records of packs' kinds alone. The other methods
    answer for every record. Errors and durability as for ``Journal``.
    """

    def __init__(self, writer: Writer, readers: Readers, listeners: TurnListeners) -> None:
        self._writer = writer
        self._readers = readers
        self._listeners = listeners
        self._stamp = 0
        self._graph: RecordGraph | None = None

    async def write(self, work: Use[T]) -> T:
        """Run ``work`` in one transaction; what it raises undoes everything."""
        try:
            return await self._writer.write(lambda db: work(RecordRows(db, self._listeners)))
        finally:
            self.touch()
            self._listeners.wake()

    async def read(self, work: Use[T]) -> T:
        """Run ``work``, which writes nothing, on one snapshot."""
        return await self._readers.read(lambda db: work(RecordRows(db)))

    def touch(self) -> None:
        """Note that records changed: what was read of all of them is read again."""
        self._stamp += 1

    async def graph(self) -> RecordGraph:
        """Return every record and the relations that hold among them; the same object until something is written."""
        stamp = self._stamp
        if self._graph is None or self._graph.stamp != stamp:
            self._graph = await self._readers.read(lambda db: _graph(db, stamp))
        return self._graph

    async def page(self, wanted: RecordSelection, limit: int, cursor: str) -> RecordRowPage:
        """Return the records after a cursor, in order. InvalidRequest for a cursor that is none."""
        return await self._readers.read(
            partial(select_page, wanted=wanted, limit=limit, cursor=cursor)
        )

    async def pending(self, limit: int) -> list[Pending]:
        """Return relations that the graph does not have as they are, and whose ends it has."""

        def work(db: Connection) -> list[Pending]:
            rows = db.execute(
                f"""SELECT {_RELATION}, ended_at, pending FROM record_relations AS l WHERE pending > 0
                    AND EXISTS (SELECT 1 FROM node WHERE uuid = l.source)
                    AND EXISTS (SELECT 1 FROM node WHERE uuid = l.target)
                    LIMIT ?""",  # noqa: S608 - literals
                (limit,),
            )
            return [
                Pending(_relation(row), from_micros(row[7]) if row[7] else None, row[8])
                for row in rows
            ]

        return await self._readers.read(work)

    async def projected(self, done: Sequence[Pending]) -> None:
        """Note that the graph has relations as they were read; one that changed meanwhile waits on."""
        rows = [(one.relation.id, one.changes) for one in done]
        await self._writer.write(
            lambda db: db.executemany(
                "UPDATE record_relations SET pending = 0 WHERE id = ? AND pending = ?", rows
            )
        )

    async def of_turns(self, turns: Sequence[str]) -> dict[str, str]:
        """Return turn → its record, for those that have one."""
        query = f"SELECT turn, node FROM records WHERE turn IN {LIST}"  # noqa: S608 - literals
        return dict(await self._rows(query, listed(turns)))

    async def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return record → the turn that it comes from, for those nodes that are records."""
        return await self._readers.look_up(partial(_turns_of, nodes=nodes), len(nodes))

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return record → the turn whose text it is, for those nodes that are records."""

        def work(db: Connection) -> dict[str, Turn]:
            turn_ids = _turns_of(db, nodes)
            found = {turn.uuid: turn for turn in turns.get_many(db, list(turn_ids.values()))}
            return {node: found[turn] for node, turn in turn_ids.items() if turn in found}

        return await self._readers.look_up(work, len(nodes))

    async def times(self, nodes: Sequence[str]) -> dict[str, datetime]:
        """Return node → when what it tells of happened; see ``node_times``."""
        return await self._readers.read(partial(node_times, nodes=nodes))

    async def nodes(self) -> set[str]:
        """Return every node that is a record."""
        return {node for (node,) in await self._rows("SELECT node FROM records")}

    async def turns_of_packs(self) -> set[str]:
        """Return the turns of records of packs' kinds: they have no vectors, their records do."""
        query = f"SELECT r.turn FROM records AS r WHERE {OF_A_PACK}"  # noqa: S608 - literals
        return {turn for (turn,) in await self._rows(query)}

    async def plain_nodes_named(self, titles: Iterable[str]) -> dict[str, str]:
        """Return folded title → the plain node (a ``Thing``, no record) that has it as a name."""

        def look(db: Connection) -> dict[str, str]:
            named = graph_queries.resolve(db, [*titles])
            query = (
                f"SELECT uuid FROM node WHERE uuid IN {LIST} AND kind = 'Thing'"  # noqa: S608 - literals
                " AND uuid NOT IN (SELECT node FROM records WHERE node IS NOT NULL)"
            )
            plain = {uuid for (uuid,) in db.execute(query, (listed(named.values()),))}
            return {title: node for title, node in named.items() if node in plain}

        return await self._readers.read(look)

    async def linking(self, folded: Sequence[str]) -> list[tuple[str, str]]:
        """Return (folded title, turn) for the turns that link to any of these, oldest first."""
        query = f"""SELECT l.folded, l.turn FROM turn_links AS l JOIN turns AS t ON t.uuid = l.turn
            WHERE l.folded IN {LIST} ORDER BY t.seq"""  # noqa: S608 - literals
        return await self._rows(query, listed(folded))

    async def _rows(self, statement: str, *values: str) -> list[Any]:
        return await self._readers.read(lambda db: db.execute(statement, values).fetchall())


def put_records(
    db: Connection, nodes: Mapping[str, str], links: Mapping[str, Sequence[str]]
) -> None:
    """Note turn → record, and turn → the titles that it links to, in place of its earlier ones.

    A turn that was forgotten meanwhile is passed over; a title need not exist yet.
    """
    pairs = [(node, turn) for turn, node in nodes.items()]
    db.executemany("DELETE FROM records WHERE node = ? AND turn <> ?", pairs)
    db.executemany(
        """INSERT INTO records (turn, node) SELECT uuid, ? FROM turns WHERE uuid = ?
            ON CONFLICT (turn) DO UPDATE SET node = excluded.node""",
        pairs,
    )
    db.execute(f"DELETE FROM turn_links WHERE turn IN {LIST}", (listed(links),))  # noqa: S608 - literals
    db.executemany(
        """INSERT INTO turn_links (folded, turn) SELECT ?, uuid FROM turns WHERE uuid = ?
            ON CONFLICT DO NOTHING""",
        [(fold(title), turn) for turn, titles in links.items() for title in titles],
    )


def move_record(db: Connection, old: str, new: str) -> None:
    """Let a record be another node."""
    db.execute("UPDATE records SET node = ? WHERE node = ?", (new, old))


def repoint(db: Connection, from_: Sequence[str], to: Sequence[str], node: str) -> None:
    """Let relations begin, and others end, at another node: two became one, or two again."""
    for column, ids in (("source", from_), ("target", to)):
        db.execute(
            f"UPDATE record_relations SET {column} = ? WHERE id IN {LIST}",  # noqa: S608
            (node, listed(ids)),
        )


def forget(
    db: Connection, turns: Sequence[str], facts: Sequence[str], nodes: Sequence[str]
) -> None:
    """Drop what records say of things that are forgotten, and mark the records that cite them."""
    gone, ends, edges = listed([*turns, *facts, *nodes]), listed(nodes), listed(facts)
    db.execute(f"UPDATE record_cites SET gone = 1 WHERE id IN {LIST}", (gone,))  # noqa: S608 - literals
    for table, column in (
        ("record_field", "node"),
        ("transitions", "record"),
        ("record_cites", "record"),
    ):
        db.execute(f"DELETE FROM {table} WHERE {column} IN {LIST}", (ends,))  # noqa: S608 - literals
    db.execute(
        f"DELETE FROM record_relations WHERE source IN {LIST} OR target IN {LIST} OR id IN {LIST}",  # noqa: S608 - literals
        (ends, ends, edges),
    )


def _relation(row: tuple[str, str, str, str, int, str, str]) -> Relation:
    id_, source, type_, target, at, properties, actor = row[:7]
    return Relation(id_, source, type_, target, from_micros(at), json.loads(properties), actor)


def _turns_of(db: Connection, nodes: Sequence[str]) -> dict[str, str]:
    query = f"SELECT node, turn FROM records WHERE node IN {LIST}"  # noqa: S608 - literals
    return dict(db.execute(query, (listed(nodes),)).fetchall())


def _graph(db: Connection, stamp: int) -> RecordGraph:
    records = {one.id: one for one in RecordRows(db).every()}
    rows = db.execute(
        f"SELECT {_RELATION} FROM record_relations WHERE ended_at = 0 ORDER BY at, id"  # noqa: S608
    )
    relations = tuple(
        one for one in map(_relation, rows) if one.source in records and one.target in records
    )
    return RecordGraph(records, relations, stamp)
