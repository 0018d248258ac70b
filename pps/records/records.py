"""Records of one entity: saving, moving, relating and listing records of the packs' kinds.

Titled texts of any kind are records too.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from pps.core.bounds import check_length, check_range
from pps.core.errors import Changed, InvalidRequest, NotFound, PPSError, StoreConflict
from pps.core.kinds import Kinds, KindSpec
from pps.core.record_values import (
    Cite,
    Record,
    RecordGraph,
    RecordPage,
    RecordQuery,
    Relation,
    Transition,
)
from pps.core.reports import Forgotten
from pps.core.time import now
from pps.ingest import recorder
from pps.ingest.duplicates import Merging
from pps.ingest.forget import Forgetter
from pps.ingest.linking import draft_of
from pps.ingest.revising import RecordParts, Wait
from pps.journal.graph_queries import ambiguous
from pps.journal.kept_records import ExportedRecord
from pps.journal.pool_rows import PoolRows
from pps.journal.record_rows import RecordRows
from pps.journal.versions import Text, Version
from pps.records.kind_models import KindModels
from pps.records.listing import field_values, wanted_of
from pps.records.restoring import Restoring, cleaned
from pps.records.saving import (
    GAP,
    MAX_RECORDS,
    RecordGiven,
    RelationGiven,
    Saved,
    Saving,
    Writing,
    all_redacted,
    end_of,
    relation_of,
    told,
)

T = TypeVar("T")
Also: TypeAlias = Callable[[RecordRows, Sequence[Saved]], object]
"""What a squad keeps beside what is saved."""


def moved(
    rows: RecordRows, by: Writing, id_: str, to: str, expected: str | None, why: str
) -> Saved:
    """Let a record go on to another state; raises as ``Records.move``."""
    [whole] = rows.whole([id_], "id")
    before = rows.typed(whole)
    if before is None:
        raise NotFound()
    kind = by.kinds.kind(before.kind)
    by.kinds.check_write(by.actor, kind.name)
    to = by.kinds.state_name(to)
    if expected is not None:
        expected = by.kinds.state_name(expected)
    if expected not in (None, before.state):
        is_now = before.state or "without a state"
        raise Changed(f"the record is {is_now}, not {expected}: read it again", path="expected")
    _check(kind, before, to, by.actor)
    at = now()
    record = replace(before, state=to, actor=by.actor, updated_at=at)

    def rework(text: Text) -> Text:
        return replace(text, payload=replace(text.payload, record=draft_of(record)))

    after, job = rows.change(record, "modified", rework)
    rows.note_move(Transition(before.id, before.state, to, by.actor, at, why))
    return Saved(after, "changed", job=job)


def _check(kind: KindSpec, record: Record, to: str, actor: str) -> None:
    """Raise InvalidRequest unless a record may move so; the states that may follow are named."""
    cycle = kind.lifecycle
    if cycle is None:
        raise InvalidRequest(
            "id", f"{kind.name} has no life cycle; record_save changes its status and fields"
        )
    # A state that a changed pack no longer has, or none, goes back to the start.
    after = cycle.moves.get(record.state, ()) if record.state in cycle.states else (cycle.start,)
    if to not in after:
        may = f"{', '.join(after)} may follow" if after else "nothing follows"
        raise InvalidRequest("to", f"{kind.name} is {record.state}: {may}, not {to[:100]!r}")
    if (record.state, to) in cycle.others and actor == record.author:
        alone = (
            ""
            if actor
            else ": what the person made is reviewed under the name of an actor, which a token has"
        )
        raise InvalidRequest(
            "to", f"only another than the one who made the {kind.name} moves it to {to}{alone}"
        )


@dataclass(frozen=True, slots=True)
class SavedRecords:
    """What a save did, a record each in the order given.

    Attributes:
        done: Graph and indexes have all of it; otherwise it is safe on disk, and they follow.
        redacted: Secrets that were taken out.
    """

    records: tuple[Saved, ...]
    done: bool
    redacted: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """A relation to make or to end: ``source`` by id or title."""

    source: str
    relation: RelationGiven


@dataclass(frozen=True, slots=True)
class JoinedRecords:
    """Ids of relations that were saved.

    Attributes:
        created: Number of relations that did not exist before.
        warnings: Relations that were stored in the opposite direction, with the reason.
    """

    ids: tuple[str, ...]
    created: int = 0
    warnings: tuple[str, ...] = ()


class _Undone(Exception):
    """Ends a trial: what it wrote is taken back."""

    def __init__(self, saved: list[Saved], error: PPSError | None) -> None:
        super().__init__()
        self.saved = saved
        self.error = error


class Records(recorder.RecordWriter):
    """The records of one entity. No method takes a group or a name of an entity.

    ``save``, ``move``, ``join``, ``part`` and ``delete`` go by the packs; what is none of a pack's
    kinds is kept by ``add_event`` and its like.
    """

    def __init__(self, parts: RecordParts, merging: Merging, forgetter: Forgetter) -> None:
        super().__init__(parts, merging)
        self._forgetter = forgetter
        self._models = KindModels(parts.kinds, parts.journal.zone)
        self._also: tuple[Also, ...] = ()
        self._is_system = False

    def by(self, actor: str, *also: Also, is_system: bool = False) -> Records:
        """Return the same records, written by an actor.

        It comes from the connection, never from an argument.

        ``is_system`` is for what the server itself writes: reserved kinds and relations. Each
        ``also`` runs with what is saved or moved, in the same transaction: what it raises undoes
        all of it.
        """
        own: Records = copy.copy(self)
        own._actor = actor
        own.merging = self.merging.checked(own.check_write)
        own._also = also
        own._is_system = is_system
        return own

    async def save(
        self, records: Sequence[RecordGiven], *, wait: Wait = "done", timeout_s: float | None = None
    ) -> SavedRecords:
        """Make or change 1 to 200 records, with relations and cites, in one transaction.

        Args:
            records: See RecordGiven. They may name each other by title.
            wait: ``journal`` answers when it is on disk, ``done`` when graph and indexes have it.
            timeout_s: Past it a ``done`` wait answers all the same; the work goes on.

        Raises:
            InvalidRequest: A bound is broken; the record, its kind, the field and the bound are
                named.
            NotFound: An id is not this entity's.
            StoreConflict: ``expected_version`` is not the version that there is.
            Overloaded: Too much waits to be taken in.
        """
        check_range("records", len(records), 1, MAX_RECORDS)
        redactor = self._parts.redactor()
        work = _with(Saving(self._writing(), all_redacted(records, redactor)), self._also)
        saved = await self._written(
            len(records), work, lambda done: [saved_record.job for saved_record in done]
        )
        done = await self._taken_in(saved, wait, timeout_s)
        return SavedRecords(tuple(saved), done, redactor.count)

    def saving(self, *records: RecordGiven) -> Also:
        """Return a save as a part of another's transaction, for ``by``; raises as ``save``."""
        return lambda rows, _: Saving(
            self._writing(), all_redacted(records, self._parts.redactor())
        )(rows)

    def moving(self, id: str, to: str, *, expected: str | None = None, why: str = "") -> Also:
        """Return a move as a part of another's transaction, for ``by``; raises as ``move``."""
        clean = self._parts.redactor().text(why)
        return lambda rows, _: moved(rows, self._writing(), id, to, expected, clean)

    async def transact(self, work: Callable[[RecordRows], T]) -> T:
        """Run ``work`` in one write transaction; an exception undoes all of it."""
        return await self._parts.journal.records.write(work)

    async def tried(
        self, saves: Sequence[Sequence[RecordGiven]]
    ) -> tuple[list[Saved], PPSError | None]:
        """Return what a series of saves would do, and the error that stops the next one, if any.

        It runs in one transaction that is rolled back. The saves may have any number of records.
        """
        redactor = self._parts.redactor()

        def work(rows: RecordRows) -> None:
            done: list[Saved] = []
            try:
                for save in saves:
                    done += Saving(self._writing(), all_redacted(save, redactor))(rows)
            except (InvalidRequest, NotFound, StoreConflict) as error:
                raise _Undone(done, error) from None
            raise _Undone(done, None)

        try:
            await self._when_idle(lambda: self._parts.journal.records.write(work))
        except _Undone as undone:
            return undone.saved, undone.error
        raise AssertionError("a trial was not undone")

    async def restoring(self, given: Sequence[ExportedRecord]) -> Restoring:
        """Return an export's records as ``restore`` would save them, and undo the trial.

        Raises:
            InvalidRequest: An actor asks for it: the past is written by the person alone.
        """
        if self._actor:
            raise InvalidRequest(
                "format", "what others wrote is restored by the person alone, without an actor"
            )
        await self._parts.worker.saved(
            60.0
        )  # what texts of the same file have brought is known by then
        redactor = self._parts.redactor()
        restoring = Restoring(
            replace(self._writing(), is_system=True),
            [cleaned(exported_record, redactor) for exported_record in given],
        )

        def trial(rows: RecordRows) -> None:
            raise _Undone(restoring.tried(rows), None)

        with contextlib.suppress(_Undone):
            await self._parts.journal.records.write(trial)
        return restoring

    async def restore(self, restoring: Restoring, numbers: Sequence[int]) -> list[Saved]:
        """Keep 1 to 200 records of an export in one transaction, as they were there.

        What is here already stays.

        Raises:
            Overloaded: Too much waits to be taken in.
        """
        work = partial(restoring.kept, numbers=numbers)
        saved = await self._written(
            len(numbers), work, lambda done: [restored.job for restored in done]
        )
        async with self._parts.worker.held():  # relations to what was taken in before
            await self._parts.pipeline.project_relations()
        return saved

    async def move(
        self,
        id: str,
        to: str,
        *,
        expected: str | None = None,
        why: str = "",
        wait: Wait = "done",
        timeout_s: float | None = None,
    ) -> SavedRecords:
        """Let a record go on to another state of its kind's life cycle; who, when and why is kept.

        Args:
            id: Of the record.
            to: The state that it gets.
            expected: The state that it must be in; another one is a StoreConflict.
            why: At most 2,000 characters.
            wait: As ``save``.
            timeout_s: As ``save``.

        Raises:
            InvalidRequest: Its kind has no life cycle, or it may not move so, or not by this actor.
            NotFound, StoreConflict: As ``save``.
        """
        check_length("why", why, 0, 2_000)
        redactor = self._parts.redactor()
        moving = partial(
            moved, by=self._writing(), id_=id, to=to, expected=expected, why=redactor.text(why)
        )
        work = _with(lambda rows: [moving(rows)], self._also)
        saved = await self._written(1, work, lambda done: [moved.job for moved in done])
        done = await self._taken_in(saved, wait, timeout_s)
        return SavedRecords(tuple(saved), done, redactor.count)

    async def join(self, relations: Sequence[Join]) -> tuple[list[str], int]:
        """Do what ``join_with_warnings`` does; return the relations' ids, and how many are new."""
        made = await self.join_with_warnings(relations)
        return [*made.ids], made.created

    async def join_with_warnings(self, relations: Sequence[Join]) -> JoinedRecords:
        """Make 1 to 500 relations that the packs have; made again, their properties change.

        One that the packs have between two such kinds the other way alone is made that way, with a
        warning.

        Raises:
            InvalidRequest: An end is nothing of this memory, the pair or a property is wrong;
                nothing was changed.
        """
        check_range("relations", len(relations), 1, 500)
        redactor = self._parts.redactor()
        clean = [
            (
                relation.source,
                replace(
                    relation.relation, properties=redactor.attributes(relation.relation.properties)
                ),
            )
            for relation in relations
        ]
        by = self._writing()

        def work(rows: RecordRows) -> JoinedRecords:
            made: list[str] = []
            warnings: list[str] = []
            new = 0
            for number, (source, draft) in enumerate(clean):
                with told(f"relations[{number}]"):
                    start = end_of(rows, source, "source")
                    by.kinds.check_write(by.actor, start[1])
                    relation, turned = relation_of(
                        by, start, draft, end_of(rows, draft.target, "target"), now()
                    )
                new += rows.relate(relation)
                made.append(relation.id)
                if turned:
                    warnings.append(f"relations[{number}]: {turned}, from the target to the source")
            return JoinedRecords(tuple(made), new, tuple(warnings))

        async with self._parts.worker.held():  # an end may be forgotten or merged away until then
            joined = await self._parts.journal.records.write(work)
            await self._parts.pipeline.project_relations()
        return joined

    async def part(self, ids: Sequence[str]) -> list[str]:
        """End 1 to 500 relations by their ids; what they were stays in the graph's past.

        Return their ids.

        Raises:
            NotFound: One of them is no relation of this entity that holds; nothing was changed.
        """
        check_range("ids", len(ids), 1, 500)
        by = self._writing()

        def work(rows: RecordRows) -> list[str]:
            wanted = rows.whole(ids, "ids")
            relations = rows.relations_of(wanted)
            if {relation.id for relation in relations} != set(wanted):
                raise NotFound("relation")
            for kind in rows.kinds_of([relation.source for relation in relations]).values():
                by.kinds.check_write(by.actor, kind)
            rows.end(wanted, now())
            return wanted

        async with self._parts.worker.held():
            ended = await self._parts.journal.records.write(work)
            await self._parts.pipeline.project_relations()
        return ended

    async def delete(self, ids: Sequence[str], *, dry_run: bool = True) -> Forgotten:
        """Forget records with their versions, relations and moves, and what only they support.

        As ``Memory.forget``.
        """
        turns = await self._forgetter.whole([record.turn for record in await self.get(ids)])
        return await self._forgetter.forget(turns, dry_run=dry_run, check=self.check_write)

    async def check_write(self, ids: Sequence[str], kinds: Sequence[str] = ()) -> None:
        """Raise InvalidRequest if the actor may not write a kind, or the kinds of some ids."""
        for kind in (
            *kinds,
            *await self._parts.journal.records.read(lambda rows: rows.kinds_written(ids)),
        ):
            self._parts.kinds.check_write(self._actor, kind)

    async def index_fields(self) -> None:
        """Rebuild the indexed fields of all records, by the present packs."""

        def work(rows: RecordRows, kinds: Kinds = self._parts.kinds) -> None:
            for record in rows.every():
                rows.put_fields(
                    record.id,
                    field_values(kinds.kind(record.kind), record.fields)
                    if record.kind in kinds
                    else {},
                )

        await self._parts.journal.records.write(work)

    @property
    def pool(self) -> PoolRows:
        """Data beside the records of a squad's pool, and members' records that rest on them."""
        return self._parts.journal.pool

    async def get(self, ids: Sequence[str], *, titled: bool = False) -> list[Record]:
        """Return records by id, by 8 or more first characters of it, or by title, in order.

        Args:
            ids: Of typed records.
            titled: Of titled texts too.

        Raises:
            NotFound: One is no such record of this entity.
            InvalidRequest: Several have a title; they are listed with their ids.
        """

        def work(rows: RecordRows) -> list[Record]:
            wanted = rows.whole(ids, "ids")
            records = rows.find(wanted, titled=titled)
            if not records.keys() >= set(wanted):
                raise NotFound()
            return [records[id_] for id_ in wanted]

        return await self._parts.journal.records.read(work)

    async def find(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return id → existing record, by ids of records or turns, or by 8 first characters."""
        return await self._parts.journal.records.read(lambda rows: rows.find(rows.whole([*ids])))

    async def identified(self, names: Sequence[str], path: str = "ids") -> list[str]:
        """Return the ids that ids, their beginnings or titles stand for; unknown ones as they are.

        Raises:
            InvalidRequest: Several have a title; they are listed with their ids.
        """
        return await self._parts.journal.whole(names, strict=False, path=path)

    async def titled(self, title: str) -> list[Record]:
        """Return the records of a title, case and space folded, oldest first."""
        return await self._parts.journal.records.read(lambda rows: rows.titled(title))

    async def node_of(self, name: str, path: str) -> str:
        """Return the id of the node that an id, its beginning or a title stands for.

        Raises InvalidRequest when it stands for several, NotFound when for none.
        """

        def work(rows: RecordRows) -> str:
            candidates = rows.candidates(name, path)
            if len(candidates) > 1:
                raise ambiguous(path, candidates)
            if not candidates:
                raise NotFound(path)
            return candidates[0].id

        return await self._parts.journal.records.read(work)

    async def list(self, query: RecordQuery) -> RecordPage:
        """Return a page of records; see RecordQuery.

        InvalidRequest for an unknown kind, field or operator.
        """
        page = await self._parts.journal.records.page(
            wanted_of(self._parts.kinds, query, self._parts.journal.zone), query.limit, query.cursor
        )
        return RecordPage(page.records, sum(page.by_kind.values()), page.cursor, page.by_kind)

    async def graph(self) -> RecordGraph:
        """Return every record and the relations among them.

        The same object until something is written.
        """
        return await self._parts.journal.records.graph()

    async def misfits(self) -> dict[str, str]:
        """Return record → why it no longer fits the present packs. Such records stay readable."""
        graph = await self.graph()

        def look() -> dict[str, str]:
            reasons = {id_: self._models.misfit(record) for id_, record in graph.records.items()}
            return {id_: reason for id_, reason in reasons.items() if reason}

        return await asyncio.to_thread(look)

    async def cites(self, ids: Sequence[str]) -> dict[str, tuple[Cite, ...]]:
        """Return record → what it cites; those that cite nothing are left out."""
        return await self._parts.journal.records.read(lambda rows: rows.cites(ids))

    async def relations(self, ids: Sequence[str]) -> Sequence[Relation]:
        """Return the relations that begin or end at some records, oldest first."""
        return await self._parts.journal.records.read(lambda rows: rows.relations(ids))

    async def transitions(self, record: str) -> Sequence[Transition]:
        """Return a record's moves, oldest first."""
        return await self._parts.journal.records.read(lambda rows: rows.moves([record]))

    async def moves(self, records: Iterable[str]) -> dict[str, list[Transition]]:
        """Return record → its moves, oldest first; those that never moved are left out."""
        by_record = await self._parts.journal.records.read(lambda rows: rows.moves(records))
        moves: dict[str, list[Transition]] = {}
        for move in by_record:
            moves.setdefault(move.record, []).append(move)
        return moves

    async def versions(self, record: str) -> Sequence[Record]:
        """Return a record at each of its versions, the oldest first and the present one last."""
        [latest] = await self.get([record])
        return [
            _as_it_was(latest, version)
            for version in await self._parts.journal.versions.of(latest.turn)
        ]

    def _writing(self) -> Writing:
        parts = self._parts
        return Writing(
            parts.journal.group,
            parts.kinds,
            self._models,
            parts.automatic,
            self._actor,
            self._is_system,
        )

    async def _written(
        self, most: int, work: Callable[[RecordRows], T], jobs: Callable[[T], Sequence[int]]
    ) -> T:
        """Write records and queue their jobs, after a running job of one of them has ended."""

        async def queued() -> T:
            write = partial(self._parts.journal.records.write, work)
            return await self._parts.intake.queued(
                most, write, lambda done: sum(map(bool, jobs(done)))
            )

        return await self._when_idle(queued)

    async def _taken_in(self, saved: Sequence[Saved], wait: Wait, timeout_s: float | None) -> bool:
        """Wait until graph and indexes have what was saved; return whether they do."""
        jobs = [saved.job for saved in saved]
        if any(
            saved.relations and not saved.job for saved in saved
        ):  # no job takes these relations along
            async with self._parts.worker.held():
                await self._parts.pipeline.project_relations()
        if wait == "journal":
            return not any(jobs)
        waited = await self._ended_within([job for job in jobs if job], timeout_s)
        return all(job == 0 or (job in waited and waited[job].state == "done") for job in jobs)


def _with(
    work: Callable[[RecordRows], list[Saved]], others: Sequence[Also]
) -> Callable[[RecordRows], list[Saved]]:
    def both(rows: RecordRows) -> list[Saved]:
        saved = work(rows)
        for also in others:
            also(rows, saved)
        return saved

    return both


def _as_it_was(latest: Record, version: Version) -> Record:
    """Return a record as it was at one of its versions."""
    description = version.fields.get("description")
    return replace(
        latest,
        kind=version.kind,
        title=version.title,
        summary=version.content.removesuffix(f"{GAP}{description}")
        if description
        else version.content,
        updated_at=version.at,
        fields=version.fields,
        status=version.status,
        state=version.state,
        tags=version.tags,
        version=version.number,
        actor=version.actor,
    )
