"""The journal of one entity: what was said, what is still to do, and what filters need to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from pps.core.errors import InvalidRequest, StoreError
from pps.core.feature_parts import StoredFeature
from pps.core.ids import check_group, is_uuid
from pps.core.sql import Connection
from pps.core.time import from_micros
from pps.core.values import ItemKind, Turn
from pps.journal import (
    change_log,
    filters,
    graph_queries,
    job_queue,
    job_rows,
    links,
    meta,
    old_graph,
)
from pps.journal import turns as turn_rows
from pps.journal.anchor_rows import AnchorVersions
from pps.journal.bin_rows import Bin
from pps.journal.closing_rows import Closings
from pps.journal.db import LogIndex, damage, prepare_file
from pps.journal.embedding_rows import VectorStates
from pps.journal.entries import Appended, JobPayload, TurnDraft, prepare_payload
from pps.journal.feature_tables import FeatureBook, FeatureTables
from pps.journal.filters import FilterCache, ItemFilter
from pps.journal.job_queue import JobQueue
from pps.journal.merge_rows import Merges
from pps.journal.perspective_rows import PerspectiveRows
from pps.journal.pool_rows import PoolRows
from pps.journal.postgresql import Database, PostgresReaders, PostgresWriter
from pps.journal.record_rows import RecordStore
from pps.journal.store import Readers, SqliteReaders, Store, looks_up, reads, writes
from pps.journal.tie_rows import FactTies
from pps.journal.topic_rows import TopicRows
from pps.journal.turns import TurnListeners
from pps.journal.usage import Given, Spending
from pps.journal.versions import Versions
from pps.journal.writer import SqliteWriter, Writer

T = TypeVar("T")

_CHARS_A_WORD = 4
"""Characters of a text for each name that is looked up in it, roughly."""
_LATEST_ENTRY = """SELECT max(at) FROM (
    SELECT * FROM (SELECT recorded_at AS at FROM turns ORDER BY seq DESC LIMIT 1) AS latest
    UNION ALL SELECT max(at) FROM bin) AS entries"""


class Journal(Store):
    """One entity's ``memory.db``.

    Attributes:
        zone: The entity's time zone: whose days relative words are, where a turn has no offset of
            its own.
        erase_other_copy: Erases what another store holds of the memory since it was moved; None
            where none does. Whoever opens the journal sets it.
    """

    around_many = reads(turn_rows.around_many)
    count_turns = reads(turn_rows.count)
    forget_turns = writes(turn_rows.forget, secure=True)
    near = reads(turn_rows.near)
    of_session = reads(turn_rows.of_session)
    page = reads(turn_rows.page)
    renumber = writes(turn_rows.renumber)
    scan = reads(turn_rows.scan)
    session_order = reads(turn_rows.session_order)
    sessions = reads(turn_rows.sessions)
    span = reads(turn_rows.span)
    turns = looks_up(turn_rows.get_many)

    unfinished = reads(job_rows.unfinished)

    count_entries = reads(change_log.count_entries)
    drop_entries = writes(change_log.drop_entries)
    log_changes = writes(change_log.log_changes)
    log_entries = reads(change_log.log_entries)
    log_span = reads(change_log.log_span)

    count_facts = reads(graph_queries.count_facts)
    count_facts_of = reads(graph_queries.count_facts_of)
    count_kinds = reads(graph_queries.count_kinds)
    facts_ended = reads(graph_queries.facts_ended)
    facts_in_slots = reads(graph_queries.facts_in_slots)
    facts_supported_by = looks_up(graph_queries.facts_supported_by)
    facts_turning = reads(graph_queries.facts_turning)
    fact_times = reads(graph_queries.fact_times)
    latest_stated = reads(graph_queries.latest_stated)
    mentioning = reads(graph_queries.mentioning)
    with_facts = looks_up(graph_queries.with_facts)
    names_of = looks_up(graph_queries.names_of)
    nodes_by_name = reads(graph_queries.nodes_by_name)
    kinds_of = reads(graph_queries.kinds_of)
    resolve = reads(graph_queries.resolve)

    fact_outlines = looks_up(links.fact_outlines)
    fact_supports = looks_up(links.supports)
    node_outlines = looks_up(links.node_outlines)
    reach = reads(links.reach)
    joints = reads(links.joints)

    set_meta = writes(meta.put)
    within = reads(filters.within)

    def __init__(
        self, path: Path, group: str, index: LogIndex = "file", database: Database | None = None
    ) -> None:
        """Start the threads of a file that ``prepare_file`` checked, or of a database."""
        self.path = path
        self.group = group
        self.database = database
        writer: Writer
        readers: Readers
        if database is None:
            writer = SqliteWriter(path, index)
            readers = SqliteReaders(path, index, writer)
        else:
            writer = PostgresWriter(database, group)
            readers = PostgresReaders(database, group, writer)
        super().__init__(writer, readers)
        stores = writer, readers
        self.listeners = TurnListeners()
        self.allowing = FilterCache(*stores)
        self.queue = JobQueue(*stores)
        self.records = RecordStore(*stores, self.listeners)
        self.pool = PoolRows(*stores)
        self.bin = Bin(*stores)
        self.closings = Closings(*stores)
        self.merges = Merges(*stores)
        self.vector_states = VectorStates(*stores)
        self.spending = Spending(*stores)
        self.versions = Versions(*stores)
        self.anchor_versions = AnchorVersions(*stores)
        self.given = Given(*stores)
        self.topics = TopicRows(*stores)
        self.perspective_data = PerspectiveRows(*stores)
        self.ties = FactTies(*stores)
        self.features = FeatureBook(*stores)
        self.erase_other_copy: Callable[[], Awaitable[object]] | None = None
        self._secrets: dict[str, bytes] = {}

    @property
    def zone(self) -> tzinfo:
        return self.allowing.zone

    @zone.setter
    def zone(self, zone: tzinfo) -> None:
        self.allowing.zone = zone

    @property
    def has_copy(self) -> bool:
        """Tell whether a copy of the memory from before an upgrade lies beside it."""
        return bool(old_graph.copies(self.path.parent))

    async def erase_copies(self) -> None:
        """Erase the copies that an upgrade or a move left. StoreError when one stays."""
        await asyncio.to_thread(old_graph.drop_all_of_old, self.path.parent)
        if self.erase_other_copy is not None:
            await self.erase_other_copy()
            self.erase_other_copy = None

    async def expire_bin(self, at: datetime) -> None:
        """Erase expired rows of the bin, and the other copy that holds them; see ``Bin.expire``."""
        if await self.bin.expire(at):
            await self.erase_copies()

    def now(self) -> datetime:
        """Return the time in the entity's zone: the reference time of facts and of "yesterday"."""
        return datetime.now(self.zone)

    @classmethod
    async def open(cls, path: Path, group: str) -> Journal:
        """Open a group's memory, or make its file; IsolationError when it is another group's."""

        def start() -> Journal:
            return cls(path, group, prepare_file(path, group))

        journal = await asyncio.to_thread(start)
        try:
            await journal.records.complete()
        except BaseException:
            await journal.close()
            raise
        return journal

    @classmethod
    async def open_in(
        cls, database: Database, path: Path, group: str, *, made: bool = False
    ) -> Journal:
        """Open the memory of a group in a PostgreSQL database.

        Args:
            database: Where it is, with the memories of others.
            path: Where an embedded memory would be: indexes and anchors lie beside it.
            group: Whose.
            made: It was made once, so that it must be there.

        Raises:
            StoreError: It was made and is not there: another database, or an older backup of it.
            StoreUnavailable, StoreConflict: The server cannot be used.
        """

        def start() -> Journal:
            return cls(path, check_group(group), database=database)

        journal = await asyncio.to_thread(start)
        try:
            if made and await journal.read(partial(meta.get, key="group")) is None:
                raise StoreError(
                    f"{database.name} holds no memory of this entity, so nothing was opened: "
                    "set postgresql.url to the database that holds it, "
                    "or restore that from a backup"
                )
            await journal.write(partial(meta.put_owner, group=group))
            await journal.records.complete()
        except BaseException:
            await journal.close()
            raise
        return journal

    async def close(self) -> None:
        """Finish writes that are under way, then give threads and file descriptors back."""

        def stop() -> None:
            self._readers.close()
            self._writer.close()  # last, so that it leaves one file without a log

        await asyncio.to_thread(stop)

    async def __aenter__(self) -> Journal:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def append(self, draft: TurnDraft, payload: JobPayload | None = None) -> Appended:
        """Store a turn with its job and note its episode as changed; on disk when this returns.

        Raises:
            InvalidRequest: A bound is broken; the field is named and nothing was changed.
        """
        entry = self._prepare(draft, payload or JobPayload())
        appended = await self.write(lambda db: self._append(db, *entry))
        await self._after_append()
        return appended

    async def append_many(self, entries: Sequence[tuple[TurnDraft, JobPayload]]) -> list[Appended]:
        """Store turns in the order given, all of them or none."""
        prepared = await asyncio.to_thread(self._prepare_all, entries)
        appended = await self.write(lambda db: [self._append(db, *entry) for entry in prepared])
        await self._after_append()
        return appended

    def feature_tables(
        self, feature: StoredFeature, clean: Callable[[], Callable[[str], str]]
    ) -> FeatureTables:
        """Return the tables of a feature; ``clean`` returns what takes secrets out of a text."""
        return FeatureTables(self._writer, self._readers, self.group, feature, clean)

    async def turn(self, uuid: str) -> Turn | None:
        """Return a turn, or None when this entity has none of that id."""
        stored_turns = await self.turns([uuid])
        return stored_turns[0] if stored_turns else None

    async def recent(self, limit: int, *, session: str | None = None) -> list[Turn]:
        """Return the latest turns by event time, newest first."""
        return await self.look_up(partial(turn_rows.recent, limit=limit, session=session), limit)

    async def latest_entry_at(self) -> datetime | None:
        """Return when the latest turn was recorded or put into the bin; None without any."""
        row = await self.read(lambda db: db.execute(_LATEST_ENTRY).fetchone())
        return None if row[0] is None else from_micros(row[0])

    async def latest_ids(self, session: str, limit: int) -> list[str]:
        """Return the ids of a session's latest turns by event time, newest first."""
        return await self.read(partial(turn_rows.latest_ids, session=session, limit=limit))

    async def of_kind(self, kind: str, limit: int) -> list[Turn]:
        """Return the latest turns of a kind, such as ``summary``, newest first."""
        return await self.look_up(partial(turn_rows.of_kind, kind=kind, limit=limit), limit)

    async def count_known(self, origins: Sequence[tuple[str, str, str]]) -> int:
        """Return how many of the (source, session, reference) exist; none of the three is empty."""
        uuids = [turn_rows.turn_id(self.group, *origin) for origin in origins]
        return await self.read(partial(turn_rows.count_known, uuids=uuids))

    async def whole(
        self, ids: Sequence[str], *, strict: bool = True, path: str = "ids"
    ) -> list[str]:
        """Return the uuids that ids, their first characters and titles stand for.

        A title is that of a record, else the name of a node, else an alias.

        Args:
            ids: Of turns, nodes and facts, or titles.
            strict: An unknown one is refused; else it stays as it is: it may be another name.
            path: The argument that they are of, for errors.

        Raises:
            NotFound: One is nothing of this entity.
            InvalidRequest: One is the beginning or the title of several; the error lists those of a
                title.
        """
        if all(map(is_uuid, ids)):
            return list(ids)
        return await self.read(
            partial(graph_queries.whole, references=ids, strict=strict, path=path)
        )

    async def begun(self, ids: Sequence[str]) -> list[str]:
        """Replace first characters by the only id that begins so; leave titles and unknown texts.

        Raises:
            InvalidRequest: One begins several ids.
        """
        if all(map(is_uuid, ids)):
            return list(ids)
        return await self.read(partial(graph_queries.begun, references=ids))

    async def titled(self, title: str) -> list[graph_queries.Titled]:
        """Return the records and nodes of a title, name or alias; see ``graph_queries.titled``."""
        tiers = await self.read(partial(graph_queries.titled, title=title))
        return [item for tier in tiers for item in tier]

    async def get_meta(self, key: str) -> str | None:
        """Return a value, or None if the key does not exist."""
        return await self.look_up(partial(meta.get, key=key), 1)

    async def hops(
        self, starts: Sequence[str], targets: Sequence[str], max_hops: int, at: datetime
    ) -> dict[str, int]:
        """Return target → fewest hops from any start over facts that hold; others are left out."""
        walk = partial(links.hops, starts=starts, targets=targets, max_hops=max_hops, at=at)
        if links.asks_of_pairs(len(starts), len(targets), max_hops):
            return await self.look_up(walk, len(starts) + len(targets))
        return await self.read(walk)

    async def facts_joining(self, wanted: Sequence[tuple[str, str, str]]) -> list[str]:
        """Return ids of the facts that triples are about; see ``graph_queries.facts_joining``."""
        return (
            await self.read(partial(graph_queries.facts_joining, triples=list(wanted)))
            if wanted
            else []
        )

    async def allowed(self, kind: ItemKind, wanted: ItemFilter) -> set[str] | None:
        """Return the ids of a kind that pass a filter; None means that nothing is restricted."""
        return await self.allowing.allowed(kind, wanted)

    async def named_in(self, text: str, limit: int) -> list[str]:
        """Do what ``graph_queries.named_in`` says."""
        work = partial(graph_queries.named_in, text=text, limit=limit)
        return await self.look_up(work, len(text) // _CHARS_A_WORD)

    async def of_kinds_in(self, text: str, limit: int) -> list[str]:
        """Do what ``graph_queries.of_kinds_in`` says."""
        work = partial(graph_queries.of_kinds_in, text=text, limit=limit)
        return await self.look_up(work, len(text) // _CHARS_A_WORD)

    async def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file's pages, a few lines; empty on a server."""
        return [] if self.database else await self.read(damage)

    async def mark(self) -> int:
        """Return a number that is another one whenever anything was written since."""
        return await self._readers.mark()

    async def secret(self, name: str) -> bytes:
        """Return this entity's own key, 32 random bytes; the first call makes and saves it."""
        if name not in self._secrets:
            stored = await self.read(partial(meta.stored_secret, name=name))
            self._secrets[name] = stored or await self.write(partial(meta.secret, name=name))
        return self._secrets[name]

    def _append(self, db: Connection, turn: turn_rows.Prepared, payload: str) -> Appended:
        appended = job_queue.append(db, turn, payload)
        if not appended.duplicate:
            self.listeners.tell(db, appended.turn)
        return appended

    async def _after_append(self) -> None:
        """Wake followers, and overwrite on disk what a listener erased in the transaction."""
        self.listeners.wake()
        if self.listeners.erased:
            self.listeners.erased = False
            await self.write(lambda _: None, secure=True)

    def _prepare(self, draft: TurnDraft, payload: JobPayload) -> tuple[turn_rows.Prepared, str]:
        return turn_rows.prepare(self.group, draft), prepare_payload(payload)

    def _prepare_all(
        self, entries: Sequence[tuple[TurnDraft, JobPayload]]
    ) -> list[tuple[turn_rows.Prepared, str]]:
        prepared: list[tuple[turn_rows.Prepared, str]] = []
        for number, (draft, payload) in enumerate(entries):
            try:
                prepared.append(self._prepare(draft, payload))
            except InvalidRequest as error:
                raise InvalidRequest(f"entries[{number}]", error.message) from error
        return prepared
