"""The journal of one entity: what was said, what is still to do, and what filters need to know."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Literal, TypeVar

from pps.core.errors import InvalidRequest
from pps.core.ids import is_beginning
from pps.core.values import Chunk, Fact, ItemKind, Node, Turn
from pps.journal import filters, job_queue, job_rows, links, meta, projection, turns, usage
from pps.journal.db import damage, prepare_file
from pps.journal.embedding_rows import VectorStates
from pps.journal.entries import Appended, Change, DirtyChange, JobPayload, TurnDraft, prepare_payload
from pps.journal.filters import FilterCache, ItemFilter
from pps.journal.job_queue import JobQueue
from pps.journal.links import FactOutline, NodeOutline, Reached, Support
from pps.journal.pool_rows import PoolRows
from pps.journal.reader import Readers
from pps.journal.record_book import Merges, RecordBook
from pps.journal.record_rows import TypedRecords
from pps.journal.usage import Given, Spending
from pps.journal.versions import Versions
from pps.journal.writer import Writer

T = TypeVar("T")

_MIRRORED_AT_ONCE = 1_000
MAX_LIMIT = 10_000
"""Most rows that one call returns."""


class Journal:
    """One entity's ``memory.db``. Whatever a method has returned from is on disk.

    Every method raises StoreConflict when another process keeps the file locked, StoreUnavailable
    when it is closed or the disk is full, and StoreError when the file is damaged; writes that raise
    have changed nothing. Reads see every write that was acknowledged before they began.
    """

    def __init__(self, path: Path, group: str) -> None:
        """Start the threads of a file that ``prepare_file`` has checked; callers use ``open``."""
        self.path = path
        self.group = group
        self._readers = Readers(path)
        self._writer = Writer(path)
        self.allowing = FilterCache(self._writer, self._readers)
        self.queue = JobQueue(self._writer, self._readers)
        self.records = RecordBook(self._writer, self._readers)
        self.typed = TypedRecords(self._writer, self._readers)
        self.pool = PoolRows(self._writer, self._readers)
        self.merges = Merges(self._writer, self._readers)
        self.vector_states = VectorStates(self._writer, self._readers)
        self.spending = Spending(self._writer, self._readers)
        self.versions = Versions(self._writer, self._readers)
        self.given = Given(self._writer, self._readers)
        self._secrets: dict[str, bytes] = {}

    @classmethod
    async def open(cls, path: Path, group: str) -> Journal:
        """Open the memory of a group, making the file when it is absent; IsolationError when it is another group's."""

        def start() -> Journal:
            prepare_file(path, group)
            return cls(path, group)

        return await asyncio.to_thread(start)

    async def close(self) -> None:
        """Finish writes that are under way, then give threads and file descriptors back."""

        def stop() -> None:
            self._readers.close()
            self._writer.close()  # last, so that it leaves one file without a log

        await asyncio.to_thread(stop)

    async def __aenter__(self) -> Journal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # turns

    async def append(self, draft: TurnDraft, payload: JobPayload | None = None) -> Appended:
        """Store a turn with its job and note its episode as changed; on disk when this returns.

        Raises:
            InvalidRequest: A bound is broken; the field is named and nothing was changed.
        """
        entry = self._prepare(draft, payload or JobPayload())
        return await self._writer.write(partial(_append, entry=entry))

    async def append_many(self, entries: Sequence[tuple[TurnDraft, JobPayload]]) -> list[Appended]:
        """Store turns in the order given, all of them or none."""
        prepared = await asyncio.to_thread(self._prepare_all, entries)
        return await self._writer.write(lambda db: [_append(db, entry) for entry in prepared])

    async def turn(self, uuid: str) -> Turn | None:
        """Return a turn, or None when this entity has none of that id."""
        found = await self.turns([uuid])
        return found[0] if found else None

    async def turns(self, uuids: Sequence[str]) -> list[Turn]:
        """Return turns in the order asked; absent ones are left out."""
        return await self._readers.look_up(partial(turns.get_many, uuids=uuids), len(uuids))

    async def recent(self, limit: int, *, session: str | None = None, before: datetime | None = None) -> list[Turn]:
        """Return the latest turns by event time, newest first; ``before`` is an exclusive event time."""
        _check_limit(limit)
        return await self._readers.look_up(partial(turns.recent, limit=limit, session=session, before=before), limit)

    async def around(self, uuid: str, n: int) -> list[Turn]:
        """Return up to ``n`` turns before, the turn, and up to ``n`` after, within its session."""
        _check_around(n)
        return await self._readers.read(partial(turns.around, uuid=uuid, n=n))

    async def near(self, uuids: Sequence[str], n: int) -> list[str]:
        """Return uuids of the turns at most ``n`` places from any of some turns in its session, in order."""
        _check_around(n)
        return await self._readers.read(partial(turns.near, uuids=uuids, n=n))

    async def around_many(self, uuids: Sequence[str], n: int) -> dict[str, list[Turn]]:
        """Return uuid → what ``around`` returns of it, in one read; absent uuids are left out."""
        _check_around(n)
        return await self._readers.read(partial(turns.around_many, uuids=uuids, n=n))

    async def scan(self, after_seq: int, limit: int) -> list[Turn]:
        """Return turns with a ``seq`` above ``after_seq`` in the order in which they were stored."""
        _check_limit(limit)
        return await self._readers.read(partial(turns.scan, after_seq=after_seq, limit=limit))

    async def forget_turns(self, uuids: Sequence[str]) -> int:
        """Delete turns with their jobs, overwrite their bytes, note their episodes as changed.

        Returns how many there were. Their facts in the graph are the caller's to judge. Stale copies
        that SQLite may have left elsewhere go with the next ``scrub``, which is due from here on.
        """

        def forget(db: Connection) -> int:
            gone = turns.delete(db, uuids)
            turns.mark_dirty(db, [Change("episode", uuid) for uuid in gone])
            return len(gone)

        return await self._writer.write(forget, secure=True)

    async def scrub(self) -> None:
        """Write the file anew now, so that nothing deleted is left in it: about 2 s for 100 MB.

        It happens by itself a second after the last write that followed a deletion, or at close.
        """
        await self._writer.scrub()

    async def count_turns(self) -> int:
        """Return how many turns there are."""
        return await self._readers.read(turns.count)

    async def of_kind(self, kind: str, limit: int) -> list[Turn]:
        """Return the latest turns of a kind, such as ``summary``, newest first."""
        _check_limit(limit)
        return await self._readers.look_up(partial(turns.of_kind, kind=kind, limit=limit), limit)

    async def of_session(self, session: str) -> list[Turn]:
        """Return every turn of a session in the order in which they were stored."""
        return await self._readers.read(partial(turns.of_session, session=session))

    async def count_known(self, origins: Sequence[tuple[str, str, str]]) -> int:
        """Return how many of the given (source, session, reference) are there, none of the three empty."""
        uuids = [turns.turn_id(self.group, *origin) for origin in origins]
        return await self._readers.read(partial(turns.count_known, uuids=uuids))

    async def renumber(self, parts: Sequence[tuple[str, Chunk]]) -> None:
        """Note where turns stand in their document now; nothing else of them changes."""
        await self._writer.write(partial(turns.renumber, parts=parts))

    async def span(self) -> tuple[datetime | None, datetime | None]:
        """Return the event times of the first and the last turn; (None, None) when there is none."""
        return await self._readers.read(turns.span)

    async def unfinished(self) -> int:
        """Return how many jobs are queued or running; parked ones do not count."""
        return await self._readers.read(job_rows.unfinished)

    async def mark(self) -> int:
        """Return SQLite's ``data_version``: another number whenever anything was written since (20 µs)."""
        return await self._readers.look_up(lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]), 1)

    async def drop_payload(self, turn_uuid: str) -> bool:
        """Overwrite the nodes and facts given with a turn whose job has ended; False when absent."""
        return await self._writer.write(partial(job_queue.drop_payload, turn_uuid=turn_uuid), secure=True)

    async def mark_dirty(self, changes: Iterable[Change]) -> range:
        """Note ids whose index entries must be made anew; return the numbers of their rows."""
        batch = list(changes)
        return await self._writer.write(partial(turns.mark_dirty, changes=batch))

    async def dirty(self, limit: int, after: int = 0) -> list[DirtyChange]:
        """Return waiting changes whose number is above ``after``, oldest first."""
        _check_limit(limit)
        return await self._readers.read(partial(turns.dirty, limit=limit, after=after))

    async def clear_dirty(self, seqs: Iterable[int]) -> None:
        """Drop changes whose index entries are on disk; one noted again meanwhile stays."""
        batch = list(seqs)
        await self._writer.write(partial(turns.clear_dirty, seqs=batch))

    async def dirty_count(self) -> int:
        """Return how many changes wait."""
        return await self._readers.read(turns.count_dirty)

    async def mirror_nodes(self, nodes: Iterable[Node], gone: Iterable[str] = ()) -> None:
        """Mirror nodes with their names, aliases and tags; known ones are replaced, and ``gone`` ones dropped."""
        batch, absent = list(nodes), list(gone)
        for part in _parts(batch):
            await self._writer.write(partial(projection.put_nodes, nodes=part, gone=absent))
            absent = []

    async def mirror_facts(self, facts: Iterable[Fact], gone: Iterable[str] = ()) -> None:
        """Mirror facts with their times and supporting episodes; known ones are replaced, and ``gone`` ones dropped."""
        batch, absent = list(facts), list(gone)
        for part in _parts(batch):
            await self._writer.write(partial(projection.put_facts, facts=part, gone=absent))
            absent = []

    async def mirror_mentions(
        self, pairs: Iterable[tuple[str, str]], parted: Iterable[tuple[str, str]] = (), whole: Iterable[str] = ()
    ) -> None:
        """Mirror that turns mention nodes, as (turn, node); ``whole`` nodes have no others, ``parted`` pairs end."""
        changes = {"pairs": list(pairs), "parted": list(parted), "whole": list(whole)}
        if any(changes.values()):
            await self._writer.write(partial(projection.put_mentions, **changes))

    async def mirror_drop(self, kind: ItemKind, ids: Iterable[str]) -> None:
        """Forget nodes, facts, or episodes (as supports) and overwrite their names."""
        batch = list(ids)
        await self._writer.write(partial(projection.drop, kind=kind, ids=batch), secure=kind == "node")

    async def mirror_clear(self) -> None:
        """Empty the mirror before it is rebuilt from the graph."""
        await self._writer.write(projection.clear)

    async def mirrored(self, kind: ItemKind) -> set[str]:
        """Return the ids of all mirrored nodes, or of all mirrored facts that are not relations."""
        return await self._readers.read(partial(projection.ids, kind=kind))

    async def count_facts(self) -> int:
        """Return how many facts are mirrored, past ones too, relations left out."""
        return await self._readers.read(projection.count_facts)

    async def resolve(self, names: Sequence[str]) -> dict[str, str]:
        """Return folded name → node uuid for known names; a name wins over an alias, then the oldest."""
        return await self._readers.read(partial(projection.resolve, given=names))

    async def whole(self, ids: Sequence[str], *, strict: bool = True) -> list[str]:
        """Return ids with each beginning replaced by the uuid of the one turn, node or fact that begins so.

        Raises:
            NotFound: Nothing of this entity does, and ``strict``; else it stays as it is: it may be another name.
            InvalidRequest: More than one does.
        """
        if not any(map(is_beginning, ids)):
            return list(ids)
        return await self._readers.read(partial(projection.whole, given=ids, strict=strict))

    async def names_of(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node → its name, then its aliases; nodes that are not mirrored are left out."""
        return await self._readers.look_up(partial(projection.names_of, nodes=nodes), len(nodes))

    async def named_in(self, text: str, limit: int) -> list[str]:
        """Return uuids of nodes whose name or alias occurs in a text, longest name first.

        Whole words in scripts with spaces, substrings in those without; accents and case are folded.
        """
        _check_limit(limit)
        return await self._readers.read(partial(projection.named_in, text=text, limit=limit))

    async def facts_supported_by(self, episodes: Sequence[str]) -> dict[str, list[str]]:
        """Return episode → ids of the facts it supports, oldest first; past facts too."""
        return await self._readers.look_up(partial(projection.facts_supported_by, episodes=episodes), len(episodes))

    async def fact_outlines(self, facts: Sequence[str]) -> dict[str, FactOutline]:
        """Return fact → its ends, times and supporting episodes, in the order given; unknown facts are left out."""
        return await self._readers.look_up(partial(links.fact_outlines, facts=facts), len(facts))

    async def fact_supports(self, facts: Sequence[str]) -> dict[str, Support]:
        """Return fact → what it stands on; facts that are unknown, or that nothing supports, are left out."""
        return await self._readers.look_up(partial(links.supports, facts=facts), len(facts))

    async def node_outlines(self, nodes: Sequence[str]) -> dict[str, NodeOutline]:
        """Return node → its age and tags, in the order given; unknown nodes are left out."""
        return await self._readers.look_up(partial(links.node_outlines, nodes=nodes), len(nodes))

    async def hops(self, starts: Sequence[str], targets: Sequence[str], max_hops: int, at: datetime) -> dict[str, int]:
        """Return target → fewest hops from any start over what holds at ``at``; those out of reach are left out."""
        walk = partial(links.hops, starts=starts, targets=targets, max_hops=max_hops, at=at)
        if links.asks_of_pairs(len(starts), len(targets), max_hops):
            return await self._readers.look_up(walk, len(starts) + len(targets))
        return await self._readers.read(walk)

    async def reach(self, start: str, max_hops: int, at: datetime) -> dict[str, Reached]:
        """Return every node within reach of one, nearest first, and how a shortest way comes to it."""
        return await self._readers.read(partial(links.reach, start=start, max_hops=max_hops, at=at))

    async def facts_joining(self, wanted: Sequence[tuple[str, str, str]]) -> list[str]:
        """Return ids of facts between subject and object in any relation; without an object, in that relation."""
        return await self._readers.read(partial(projection.facts_joining, wanted=list(wanted))) if wanted else []

    async def facts_turning(self, after: datetime, until: datetime) -> list[str]:
        """Return ids of facts that the clock alone made end in ``(after, until]``."""
        return await self._readers.read(partial(projection.facts_turning, after=after, until=until))

    async def allowed(self, kind: ItemKind, wanted: ItemFilter) -> set[str] | None:
        """Return the ids of a kind that pass a filter; None means that nothing is restricted."""
        return await self.allowing.allowed(kind, wanted)

    async def within(
        self, kind: Literal["fact", "episode"], since: datetime, until: datetime, limit: int
    ) -> dict[str, int]:
        """Return id → event time in microseconds of facts or turns in ``[since, until)``, latest first."""
        return await self._readers.read(partial(filters.within, kind=kind, since=since, until=until, limit=limit))

    async def record_shown(self, session: str, ids: Iterable[str], at: datetime) -> None:
        """Note that a session was shown these ids; kept for 30 days."""
        batch = list(ids)
        await self._writer.write(partial(usage.record_shown, session=session, ids=batch, at=at))

    async def shown(self, session: str, since: datetime) -> dict[str, int]:
        """Return how often a session was shown each id at ``since`` or later."""
        return await self._readers.read(partial(usage.times_shown, session=session, since=since))

    async def get_meta(self, key: str) -> str | None:
        """Return a setting kept with the memory, or None."""
        return await self._readers.read(partial(meta.get, key=key))

    async def set_meta(self, key: str, value: str) -> None:
        """Keep a setting with the memory."""
        await self._writer.write(partial(meta.put, key=key, value=value))

    async def secret(self, name: str) -> bytes:
        """Return a key of this entity alone, 32 random bytes; made when it is first asked for, and on disk then."""
        if name not in self._secrets:
            self._secrets[name] = await self._writer.write(partial(meta.secret, name=name))
        return self._secrets[name]

    async def damage(self) -> list[str]:
        """Return what SQLite finds wrong with any page of the file, a few lines; 100 MB take about a second."""
        return await self._readers.read(partial(damage, check="integrity_check"))

    def _prepare(self, draft: TurnDraft, payload: JobPayload) -> _Entry:
        return _Entry(turns.prepare(self.group, draft), prepare_payload(payload))

    def _prepare_all(self, entries: Sequence[tuple[TurnDraft, JobPayload]]) -> list[_Entry]:
        prepared: list[_Entry] = []
        for number, (draft, payload) in enumerate(entries):
            try:
                prepared.append(self._prepare(draft, payload))
            except InvalidRequest as error:
                raise InvalidRequest(f"entries[{number}]", error.message) from error
        return prepared


def _check_around(n: int) -> None:
    if not 0 <= n <= MAX_LIMIT:
        raise InvalidRequest("n", f"must be 0 to {MAX_LIMIT:,}")


@dataclass(frozen=True, slots=True)
class _Entry:
    turn: turns.Prepared
    payload: str


def _append(db: Connection, entry: _Entry) -> Appended:
    stored, duplicate = turns.insert(db, entry.turn)
    if duplicate:
        return Appended(stored, job_queue.of_turn(db, stored.uuid), duplicate=True)
    turns.mark_dirty(db, [Change("episode", stored.uuid)])
    return Appended(stored, job_queue.add(db, stored.uuid, entry.payload), duplicate=False)


def _parts(items: list[T]) -> list[list[T]]:
    """Return items in parts that one transaction takes, one at least: acknowledgements wait behind each."""
    return [items[at : at + _MIRRORED_AT_ONCE] for at in range(0, max(1, len(items)), _MIRRORED_AT_ONCE)]


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest("limit", f"must be 1 to {MAX_LIMIT:,}")
