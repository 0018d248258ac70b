"""Records: their rows, relations, moves and cites.

The text of a record is a turn's text. A typed record is made and changed together with its turn,
its job and its version, in one transaction. A titled text gets its row once the turn's job has made
its node, see ``titled_rows``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from pps.core.errors import InvalidRequest
from pps.core.record_values import (
    TITLED_PACK,
    Cite,
    CiteKind,
    Record,
    RecordGraph,
    Relation,
    Transition,
)
from pps.core.sql import LIST, Connection, listed
from pps.core.text import fold
from pps.core.time import from_micros, micros, now
from pps.core.values import Turn
from pps.journal import graph_queries, job_queue, titled_rows, turns, versions
from pps.journal.change_log import log_changes
from pps.journal.entries import Change, JobPayload, prepare_payload
from pps.journal.graph_queries import Titled
from pps.journal.links import node_times
from pps.journal.record_queries import (
    TYPED,
    RecordRowPage,
    RecordSelection,
    select_page,
    select_records,
    select_titled,
)
from pps.journal.store import Readers
from pps.journal.turns import TurnListeners
from pps.journal.versions import ChangeType, Rework
from pps.journal.writer import Writer

T = TypeVar("T")

_COMPLETED_AT_ONCE = 500
_RELATION = "id, source, type, target, at, properties, actor"
FieldValue: TypeAlias = tuple[float | None, str | None, int | None]
"""The indexed value of a field: a number, a text, or a time in microseconds."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A relation that the graph does not have yet as its row says.

    Attributes:
        ended_at: When it stopped holding; None while it holds.
        changes: How often the row changed since the graph last had it.
    """

    relation: Relation
    ended_at: datetime | None
    changes: int


class RecordRows:
    """The records of one memory inside one transaction; an exception undoes all of it."""

    def __init__(self, db: Connection, listeners: TurnListeners | None = None) -> None:
        self._db = db
        self._listeners = listeners

    def beside(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on other tables in the same transaction."""
        return work(self._db)

    def find(self, ids: Iterable[str], *, titled: bool = False) -> dict[str, Record]:
        """Return id → record, by ids of nodes or turns; each record stands under both of its ids.

        Ids that are no record's are left out, and without ``titled`` those of titled texts:
        authority, life cycles, cites and merging of records are for typed ones.
        """
        id_list = listed(ids)
        by_id: dict[str, Record] = {}
        records = self._select(f"(r.node IN {LIST} OR r.turn IN {LIST})", id_list, id_list)
        if titled:
            records += select_titled(self._db, id_list)
        for record in records:
            by_id[record.id] = record
            by_id[record.turn] = record
        return by_id

    def typed(self, id_: str) -> Record | None:
        """Return the typed record of an id; None if nothing of this memory has it.

        Raises:
            InvalidRequest: It is a titled text, which other operations change.
        """
        record = self.find([id_], titled=True).get(id_)
        if record and record.pack == TITLED_PACK:
            raise InvalidRequest(
                "id", f"is a titled text of kind {record.kind}: update and append change it"
            )
        return record

    def titled(self, title: str, kind: str = "") -> list[Record]:
        """Return the typed records of a title, case and space folded, oldest first.

        Without a kind those of any kind.
        """
        if kind:
            return self._select("r.kind = ? AND r.folded = ?", kind, fold(title))
        return self._select("r.folded = ?", fold(title))

    def kinds_of(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return node → its kind: a record's own, and that in the graph for every other node."""
        id_list = listed(nodes)
        statement = f"SELECT uuid, kind FROM node WHERE uuid IN {LIST}"  # noqa: S608 - literals
        kinds = dict(self._db.execute(statement, (id_list,)).fetchall())
        for record in self._select(f"r.node IN {LIST}", id_list):
            kinds[record.id] = record.kind
        return kinds

    def candidates(self, end: str, path: str = "id") -> list[Titled]:
        """Return the nodes that an id, its beginning or a title stands for, with their kinds.

        Only a title can stand for several. Empty for an id or title that this memory does not have.
        """
        items = graph_queries.candidates(self._db, end, path)
        if len(items) != 1 or items[0].kind:
            return items
        id_ = items[0].id
        kinds = self.kinds_of([id_])
        if id_ in kinds:
            return [Titled(id_, kinds[id_])]
        record = self.find([id_]).get(id_)  # by the id of its turn
        return [Titled(record.id, record.kind, is_record=True)] if record else []

    def whole(self, ids: Sequence[str], path: str = "id") -> list[str]:
        """Return the id that each id, beginning or title stands for; unknown texts stay.

        Raises:
            InvalidRequest: A title stands for several items; the error lists them with their ids.
        """
        return graph_queries.whole(self._db, ids, strict=False, path=path)

    def cited(self, ids: Iterable[str]) -> dict[str, CiteKind]:
        """Return id → its kind of cite, for the ids of this memory's records, turns and facts."""
        id_list = listed(ids)
        rows = self._db.execute(
            f"""SELECT uuid, 'fact' FROM fact WHERE uuid IN {LIST}
                UNION ALL SELECT uuid, 'turn' FROM turns WHERE uuid IN {LIST}
                UNION ALL SELECT node, 'record' FROM records WHERE node IN {LIST}""",  # noqa: S608 - literals
            (id_list,) * 3,
        ).fetchall()
        return {id_: cast("CiteKind", kind) for id_, kind in rows}

    def add(
        self,
        turn: turns.Prepared,
        payload: JobPayload,
        record: Record,
        earlier_versions: Sequence[versions.Version] = (),
    ) -> int:
        """Insert a new record with its turn, its job and its first version; return the job's id.

        ``earlier_versions`` are those that an imported record had in another memory.
        """
        stored, _ = turns.insert(self._db, turn, anew=True)
        for version in earlier_versions:
            versions.put(self._db, stored.uuid, version)
        versions.put_first(self._db, stored, payload)
        if self._listeners is not None:
            self._listeners.tell(self._db, stored)
        log_changes(self._db, [Change("episode", stored.uuid)])
        job = job_queue.add(self._db, stored.uuid, prepare_payload(payload))
        self._put(record)
        return job

    def change(self, record: Record, change: ChangeType, rework: Rework) -> tuple[Record, int]:
        """Save a changed record; return it with its version, and the id of its job.

        The job's id is 0 when nothing changed. Raises Revising while its job is running.
        """
        revised = versions.revise(self._db, record.turn, change, record.actor, rework)
        if not revised.changed:
            return replace(record, version=revised.version), 0
        record = replace(record, version=revised.version, updated_at=now())
        self._put(record)
        return record, revised.job_id

    def bump(self, record: Record) -> Record:
        """Save another version of a record whose text stays: only its cites changed."""
        last = versions.of(self._db, record.turn)[-1]
        versions.put(self._db, record.turn, last)
        at = now()
        next_version = replace(
            last, number=last.number + 1, change="modified", actor=record.actor, at=at
        )
        versions.put(self._db, record.turn, next_version)
        record = replace(record, version=next_version.number, updated_at=at)
        self._put(record)
        return record

    def put_fields(self, node: str, fields: Mapping[str, FieldValue]) -> None:
        """Replace the indexed values of a record's fields."""
        self._db.execute("DELETE FROM record_field WHERE node = ?", (node,))
        rows = [(node, name, *value) for name, value in fields.items()]
        self._db.executemany(
            "INSERT INTO record_field (node, field, number, text, at) VALUES (?, ?, ?, ?, ?)", rows
        )

    def relate(self, relation: Relation) -> bool:
        """Insert or update a relation; return True when it did not hold before."""
        known = self._db.execute(
            "SELECT ended_at, properties, actor FROM record_relations WHERE id = ?", (relation.id,)
        ).fetchone()
        properties = json.dumps(relation.properties, ensure_ascii=False, sort_keys=True)
        if known and known[:2] == (0, properties):
            return False
        self._db.execute(
            """INSERT INTO record_relations (
                    id, source, type, target, properties, actor, at, pending
                ) VALUES (?, ?, ?, ?, ?, ?, ?, 1)
                ON CONFLICT (id) DO UPDATE SET properties = excluded.properties,
                actor = CASE WHEN record_relations.ended_at > 0
                    THEN excluded.actor ELSE record_relations.actor END,
                at = CASE WHEN record_relations.ended_at > 0
                    THEN excluded.at ELSE record_relations.at END,
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
        """End relations, by their ids."""
        self._db.execute(
            f"""UPDATE record_relations SET ended_at = ?, pending = pending + 1
                WHERE ended_at = 0 AND id IN {LIST}""",  # noqa: S608 - literals
            (micros(at), listed(relations)),
        )

    def relations(self, nodes: Sequence[str]) -> list[Relation]:
        """Return the relations that begin or end at these nodes and hold, oldest first."""
        id_list = listed(nodes)
        statement = f"""SELECT {_RELATION} FROM record_relations WHERE ended_at = 0
            AND (source IN {LIST} OR target IN {LIST}) ORDER BY at, id"""  # noqa: S608 - literals
        return [_relation(row) for row in self._db.execute(statement, (id_list, id_list))]

    def relations_of(self, ids: Sequence[str]) -> list[Relation]:
        """Return the relations of these ids that hold."""
        statement = f"SELECT {_RELATION} FROM record_relations WHERE ended_at = 0 AND id IN {LIST}"  # noqa: S608 - literals
        return [_relation(row) for row in self._db.execute(statement, (listed(ids),))]

    def kinds_written(self, ids: Iterable[str]) -> list[str]:
        """Return the kinds that a change of these ids writes, sorted.

        These are the kinds of the records among the ids, and the kinds of the sources of the
        relations among them. A relation that ends at one of the records is erased with it, so its
        source does not count.
        """
        id_list = list(ids)
        records = self.find(id_list)
        statement = f"SELECT source, target FROM record_relations WHERE id IN {LIST}"  # noqa: S608 - literals
        ends = self._db.execute(statement, (listed(id_list),)).fetchall()
        sources = self.kinds_of([source for source, target in ends if target not in records])
        return sorted({*(record.kind for record in records.values()), *sources.values()})

    def put_cites(self, record: str, cites: Iterable[Cite]) -> bool:
        """Replace a record's cites; return True when the set of cited ids changed."""
        after = {cite.id: cite for cite in cites}
        before = {cite.id for cite in self.cites([record]).get(record, ())}
        if before == after.keys():
            return False
        self._db.execute("DELETE FROM record_cites WHERE record = ?", (record,))
        rows = [(record, cite.id, cite.kind, cite.gone) for cite in after.values()]
        self._db.executemany(
            "INSERT INTO record_cites (record, id, kind, gone) VALUES (?, ?, ?, ?)", rows
        )
        return True

    def cites(self, records: Iterable[str]) -> dict[str, tuple[Cite, ...]]:
        """Return record → its cites; records without any are left out."""
        cites_of: dict[str, list[Cite]] = {}
        statement = f"""SELECT record, kind, id, gone FROM record_cites WHERE record IN {LIST}
            ORDER BY kind, id"""  # noqa: S608 - literals
        for record, kind, id_, gone in self._db.execute(statement, (listed(records),)):
            cites_of.setdefault(record, []).append(Cite(kind, id_, bool(gone)))
        return {record: tuple(cites) for record, cites in cites_of.items()}

    def note_move(self, move: Transition) -> None:
        """Insert a move of a record's life cycle."""
        self._db.execute(
            """INSERT INTO transitions (record, before, after, actor, at, why)
                VALUES (?, ?, ?, ?, ?, ?)""",
            (move.record, move.before, move.after, move.actor, micros(move.at), move.why),
        )

    def moves(self, records: Iterable[str]) -> list[Transition]:
        """Return the moves of these records, oldest first."""
        statement = f"""SELECT record, before, after, actor, at, why FROM transitions
            WHERE record IN {LIST} ORDER BY seq"""  # noqa: S608 - literals
        rows = self._db.execute(statement, (listed(records),))
        return [
            Transition(record, before, after, actor, from_micros(at), why)
            for record, before, after, actor, at, why in rows
        ]

    def every(self) -> list[Record]:
        """Return all typed records, oldest first."""
        return self._select("TRUE")

    def _select(self, where: str, *values: str) -> list[Record]:
        return select_records(self._db, where, *values)

    def _put(self, record: Record) -> None:
        self._db.execute(
            """INSERT INTO records (
                    turn, node, kind, title, folded, summary, fields, status, state, version, pack,
                    pack_version, updated_at, actor, author
                ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (turn) DO UPDATE SET kind = excluded.kind, title = excluded.title,
                folded = excluded.folded, summary = excluded.summary, fields = excluded.fields,
                status = excluded.status, state = excluded.state, version = excluded.version,
                pack = excluded.pack, pack_version = excluded.pack_version,
                updated_at = excluded.updated_at, actor = excluded.actor""",
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
    """The records of one memory: typed ones and titled texts.

    ``graph`` has typed records alone, for ranks, workloads and sessions are about them; ``page``
    has what its selection says, and the other methods see every record. Errors and durability as
    for ``Journal``.
    """

    def __init__(self, writer: Writer, readers: Readers, listeners: TurnListeners) -> None:
        self._writer = writer
        self._readers = readers
        self._listeners = listeners
        self._stamp = 0
        self._graph: RecordGraph | None = None

    async def write(self, work: Use[T]) -> T:
        """Run ``work`` in one transaction; an exception undoes everything."""
        try:
            return await self._writer.write(lambda db: work(RecordRows(db, self._listeners)))
        finally:
            self.touch()
            self._listeners.wake()

    async def read(self, work: Use[T]) -> T:
        """Run ``work``, which writes nothing, on one snapshot."""
        return await self._readers.read(lambda db: work(RecordRows(db)))

    def touch(self) -> None:
        """Note that records changed, so that ``graph`` is read again."""
        self._stamp += 1

    async def graph(self) -> RecordGraph:
        """Return every typed record and the relations that hold among them.

        The same object until records change.
        """
        stamp = self._stamp
        if self._graph is None or self._graph.stamp != stamp:
            self._graph = await self._readers.read(lambda db: _graph(db, stamp))
        return self._graph

    async def page(self, wanted: RecordSelection, limit: int, cursor: str) -> RecordRowPage:
        """Return the records after a cursor, in order; InvalidRequest for an invalid cursor."""
        return await self._readers.read(
            partial(select_page, wanted=wanted, limit=limit, cursor=cursor)
        )

    async def pending(self, limit: int) -> list[Pending]:
        """Return relations that the graph lacks or has otherwise, and whose nodes it has."""

        def work(db: Connection) -> list[Pending]:
            rows = db.execute(
                f"""SELECT {_RELATION}, ended_at, pending FROM record_relations AS l
                    WHERE pending > 0
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
        """Note that the graph has these relations; one that changed meanwhile stays pending."""
        rows = [(pending.relation.id, pending.changes) for pending in done]
        await self._writer.write(
            lambda db: db.executemany(
                "UPDATE record_relations SET pending = 0 WHERE id = ? AND pending = ?", rows
            )
        )

    async def of_turns(self, turns: Sequence[str]) -> dict[str, str]:
        """Return turn → the node of its record; turns without a record are left out."""
        query = f"SELECT turn, node FROM records WHERE turn IN {LIST}"  # noqa: S608 - literals
        return dict(await self._rows(query, listed(turns)))

    async def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return node → the turn that is its source; nodes that are no record are left out."""
        return await self._readers.look_up(partial(_turns_of, nodes=nodes), len(nodes))

    async def texts(self, nodes: Sequence[str]) -> dict[str, Turn]:
        """Return node → the turn whose text it is; nodes that are no record are left out."""

        def work(db: Connection) -> dict[str, Turn]:
            turn_ids = _turns_of(db, nodes)
            by_id = {turn.uuid: turn for turn in turns.get_many(db, list(turn_ids.values()))}
            return {node: by_id[turn] for node, turn in turn_ids.items() if turn in by_id}

        return await self._readers.look_up(work, len(nodes))

    async def times(self, nodes: Sequence[str]) -> dict[str, datetime]:
        """Return node → its event time; see ``node_times``."""
        return await self._readers.read(partial(node_times, nodes=nodes))

    async def nodes(self) -> set[str]:
        """Return every node that is a record."""
        return {node for (node,) in await self._rows("SELECT node FROM records")}

    async def complete(self) -> None:
        """Complete the rows of titled texts that an earlier PPS wrote; all others stay as they are.

        It can be interrupted and run again. Called before anything reads the memory.
        """
        after = ""
        while turn_ids := await self._readers.read(
            partial(titled_rows.incomplete, after=after, limit=_COMPLETED_AT_ONCE)
        ):
            await self._writer.write(partial(titled_rows.put_again, turns=turn_ids))
            after = turn_ids[-1]

    async def turns_of_typed(self) -> set[str]:
        """Return the turns of typed records: the records have vectors, the turns none."""
        query = f"SELECT r.turn FROM records AS r WHERE {TYPED}"  # noqa: S608 - literals
        return {turn for (turn,) in await self._rows(query)}

    async def plain_nodes_named(self, titles: Iterable[str]) -> dict[str, str]:
        """Return folded title → the node of that name that is a plain ``Thing`` and no record."""

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
        """Return (folded title, turn) for the turns that link to these titles, oldest first."""
        query = f"""SELECT l.folded, l.turn FROM turn_links AS l JOIN turns AS t ON t.uuid = l.turn
            WHERE l.folded IN {LIST} ORDER BY t.seq"""  # noqa: S608 - literals
        return await self._rows(query, listed(folded))

    async def _rows(self, statement: str, *values: str) -> list[Any]:
        return await self._readers.read(lambda db: db.execute(statement, values).fetchall())


def put_records(
    db: Connection, nodes: Mapping[str, str], links: Mapping[str, Sequence[str]]
) -> None:
    """Save the rows of titled texts, and replace the titles that each turn links to.

    Args:
        db: The connection of the transaction.
        nodes: Turn → the node that it is the source of; the row of a typed record is there already.
        links: Turn → titles it links to; a title need not exist yet.

    A turn that was forgotten meanwhile is skipped.
    """
    pairs = [(node, turn) for turn, node in nodes.items()]
    db.executemany("DELETE FROM records WHERE node = ? AND turn <> ?", pairs)
    titled_rows.put(db, nodes)
    db.execute(f"DELETE FROM turn_links WHERE turn IN {LIST}", (listed(links),))  # noqa: S608 - literals
    db.executemany(
        """INSERT INTO turn_links (folded, turn) SELECT ?, uuid FROM turns WHERE uuid = ?
            ON CONFLICT DO NOTHING""",
        [(fold(title), turn) for turn, titles in links.items() for title in titles],
    )


def move_record(db: Connection, old: str, new: str) -> None:
    """Give a record another node; its title stays that of its text, whatever the node's name is."""
    db.execute("UPDATE records SET node = ? WHERE node = ?", (new, old))


def repoint(db: Connection, from_: Sequence[str], to: Sequence[str], node: str) -> None:
    """Move relations to another node, after a merge or its undoing.

    The relations ``from_`` begin at the node afterwards, the relations ``to`` end at it.
    """
    for column, ids in (("source", from_), ("target", to)):
        db.execute(
            f"UPDATE record_relations SET {column} = ? WHERE id IN {LIST}",  # noqa: S608
            (node, listed(ids)),
        )


def forget(
    db: Connection, turns: Sequence[str], facts: Sequence[str], nodes: Sequence[str]
) -> None:
    """Drop fields, moves, cites and relations of forgotten items; mark cites of them as gone."""
    gone_list = listed([*turns, *facts, *nodes])
    node_list = listed(nodes)
    fact_list = listed(facts)
    db.execute(f"UPDATE record_cites SET gone = 1 WHERE id IN {LIST}", (gone_list,))  # noqa: S608 - literals
    for table, column in (
        ("record_field", "node"),
        ("transitions", "record"),
        ("record_cites", "record"),
    ):
        db.execute(f"DELETE FROM {table} WHERE {column} IN {LIST}", (node_list,))  # noqa: S608 - literals
    db.execute(
        f"DELETE FROM record_relations WHERE source IN {LIST} OR target IN {LIST} OR id IN {LIST}",  # noqa: S608 - literals
        (node_list, node_list, fact_list),
    )


def _relation(row: tuple[str, str, str, str, int, str, str]) -> Relation:
    id_, source, type_, target, at, properties, actor = row[:7]
    return Relation(id_, source, type_, target, from_micros(at), json.loads(properties), actor)


def _turns_of(db: Connection, nodes: Sequence[str]) -> dict[str, str]:
    query = f"SELECT node, turn FROM records WHERE node IN {LIST}"  # noqa: S608 - literals
    return dict(db.execute(query, (listed(nodes),)).fetchall())


def _graph(db: Connection, stamp: int) -> RecordGraph:
    records = {record.id: record for record in RecordRows(db).every()}
    rows = db.execute(
        f"SELECT {_RELATION} FROM record_relations WHERE ended_at = 0 ORDER BY at, id"  # noqa: S608
    )
    relations = tuple(
        relation
        for relation in map(_relation, rows)
        if relation.source in records and relation.target in records
    )
    return RecordGraph(records, relations, stamp)
