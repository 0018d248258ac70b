"""The entities of one data folder: creating, opening, lending, closing and deleting memories."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pps.app.erasing import Erasing
from pps.app.features import Features, InstalledFeature
from pps.app.moving import MoveReport, Moving, notes_and_problems
from pps.app.shared import Shared, SharedLinesOf, open_shared
from pps.app.upgrading import (
    UpgradeReport,
    erase_copies,
    erase_overdue_copies,
    plan,
    report_of,
    upgrade,
)
from pps.config import Settings
from pps.config.packs import load_packs, packs_together
from pps.config.zones import checked_zone, zone_of
from pps.core import time
from pps.core.errors import (
    InvalidRequest,
    PPSError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
    UnknownEntity,
)
from pps.core.footprint import load
from pps.core.gates import Gates
from pps.core.ids import EntityId
from pps.core.kinds import Kinds
from pps.entities import folder
from pps.entities.deletions import Deletion
from pps.entities.folder import Entry
from pps.entities.installation_rows import RunningTime
from pps.entities.moves import Place, place_of
from pps.entities.own import own_settings, set_extractor, set_packs, unusable
from pps.entities.registry import Created, Registry
from pps.index.text_damage import TextDamage
from pps.ingest.redact import Redactor
from pps.server import spool

if TYPE_CHECKING:
    from pps.app.opening import Anew
    from pps.index.indexes import Index
    from pps.ingest.indexer import Progress
    from pps.journal.postgresql import Database
    from pps.memory import Memory
    from pps.models.protocols import Embedder

_log = logging.getLogger(__name__)
_PATIENCE_S = 30.0
_SAVE_RUNNING_S = 60.0


@dataclass(slots=True)
class _Open:
    """An open memory.

    Attributes:
        card: Stamp of the ``entity.toml`` that it was opened with.
        users: Number of callers that use it now.
    """

    memory: Memory
    card: tuple[int, int, int] | None
    users: int = 0


@dataclass(frozen=True, slots=True)
class PublishedState:
    """Whether an entity's graph is published on Neo4j.

    Attributes:
        behind: Number of changes that the published graph lacks; None while the whole graph is
            written anew, or if it is not published.
        waits_for: Why nothing is written or removed at present; empty while work goes on.
    """

    name: str
    is_published: bool
    behind: int | None = None
    waits_for: str = ""


class App:
    """The entities of one data folder, at most ``server.open_entities`` of them open at once.

    ``async with App.open(settings) as app, app.memory("ana") as memory: ...``
    """

    def __init__(
        self, settings: Settings, registry: Registry, shared: Shared, features: Features
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.features = features
        self._shared = shared
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._gate = Gates().hold  # one opening or closing of an entity at a time
        self._erasing = Erasing(registry, shared, self._gate)
        self._moving = Moving(registry, shared)
        self._failed: dict[str, str] = {}
        self._damage = TextDamage()
        self.makes_namespaces = False  # a server makes Chroma namespaces ahead of use
        self._actor = ""
        self._leaving_listeners: list[Callable[[str], Awaitable[None]]] = []
        self.clock: Callable[[], datetime] = lambda: (
            time.now()
        )  # for deliveries and leases of squads

    def by(self, actor: str) -> App:
        """Return a view of this app whose memories are written by an actor; empty is the person."""
        bound: App = copy.copy(self)  # its state stays shared
        bound._actor = actor
        return bound

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, embedder: Embedder | None = None
    ) -> AsyncGenerator[App]:
        """Open the registry and the shared resources, and finish interrupted deletions.

        All memories are closed at the end.

        Args:
            settings: Of the installation.
            embedder: Replaces the embedder of the settings; it is closed at the end.

        Raises:
            ConfigError: A setting cannot be used.
            StoreUnavailable: The data folder or the configured server cannot be reached.
        """
        registry = await asyncio.to_thread(
            Registry, settings.home, Redactor(on=settings.redaction == "on").label
        )
        async with open_shared(settings, embedder) as shared:
            shared.running = registry.running
            shared.moves = registry.moves
            features = await asyncio.to_thread(Features.load, registry.features)
            shared.features = features.enabled
            shared.provided = features.provided
            app = cls(settings, registry, shared, features)
            keeping = [asyncio.create_task(_keep_running_time(registry.running))]
            for name, why in (await app.finish_deletions()).items():
                _log.warning("%s: %s", name, why)
            keeping.append(asyncio.create_task(app._erasing.keep_unpublishing()))
            try:
                yield app
            finally:
                for task in keeping:
                    task.cancel()
                await asyncio.wait(keeping)
                await app.close_all()
                await asyncio.to_thread(registry.running.save)

    async def warm_up(self) -> None:
        """Import a memory's packages and load the embedding model before the first memory opens."""
        await asyncio.gather(
            asyncio.to_thread(load, "pps.app.opening"),
            asyncio.to_thread(self._shared.load_embedder),
        )

    async def create(
        self,
        name: str,
        *,
        store: str | None = None,
        packs: Sequence[str] = (),
        token: bool = True,
        time_zone: str = "",
    ) -> Created:
        """Register an entity and create its folder, indexes, own node and token.

        If an earlier call was interrupted or failed, the next one completes it; the token comes
        with the first call that succeeds. An existing entity keeps its packs and time zone.

        Args:
            name: The entity's name.
            store: ``embedded``, ``postgresql`` or ``neo4j``; the settings' store if None.
            packs: Names of the packs of kinds that it gets.
            token: Make a token; squads' pools get none.
            time_zone: IANA name of its zone; the settings' zone if empty.

        Raises:
            InvalidRequest: The name is bad or taken, the packs clash, or there is no such time
                zone.
            StoreConflict: The entity was deleted meanwhile, or the deletion of an earlier entity of
                that name is not finished.
            StoreError, StoreUnavailable: A file or server cannot be used.
        """
        names = await asyncio.to_thread(packs_together, self.settings.home, packs)
        zone = await asyncio.to_thread(self._new_zone, time_zone)
        async with self._gate(name):
            await self._erasing.finished(name)
            entry = await asyncio.to_thread(
                self.registry.register,
                name,
                store=store or self.settings.store,
                time_zone=zone,
            )
            if names and not entry.made:
                mounted = await asyncio.to_thread(self.registry.mount, name)
                await asyncio.to_thread(set_packs, mounted.folder, names)
        try:
            async with self.memory(name, pool=True) as memory:
                token_text = None
                if token:
                    token_text = await asyncio.to_thread(self.registry.first_token, memory.entity)
        except UnknownEntity:
            raise StoreConflict(f"{name} was deleted while it was made; run this again") from None
        return Created(memory.entity, entry.folder, token_text, token_text is not None)

    def _new_zone(self, wanted: str) -> str:
        """Return the checked zone for a new entity's file: the wanted one, else ``new_zone``."""
        if not wanted:
            return self.new_zone
        try:
            return checked_zone(wanted)
        except ValueError as error:
            raise InvalidRequest("time_zone", str(error)) from None

    @property
    def new_zone(self) -> str:
        """The time zone that is written into the files of new entities.

        It is empty if the settings name none, so that these entities follow a later setting.
        """
        is_set = "time_zone" in self.settings.model_fields_set
        return self.settings.time_zone if is_set else ""

    async def delete(self, name: str) -> Deletion:
        """Erase an entity: close its memory, remove its registration, then remove its files.

        A published graph is removed from Neo4j too, later if Neo4j does not answer now. The name
        stays taken until everything is removed. An interrupted deletion is finished by the next
        start, or by the next deletion or creation of that name.

        Raises:
            UnknownEntity: No such entity.
            StoreConflict: It is in use and stays so for 30 s, or another process has it open;
                nothing was changed.
            StoreError: Something of it could not be removed; the next start tries again.
        """
        await self._announce_leaving(name)
        async with self._gate(name):
            finished = await self._erasing.finished(name)
            if finished:
                return finished
            entry = self.registry.get(name)
            if await asyncio.to_thread(self._has_rows_in_database, entry):
                await asyncio.to_thread((await self._shared.database()).check)
            await self._wait_until_unused(name)
            await self._close(name)
            exists = (entry.folder / "data").is_dir()
            async with folder.held(entry) if exists else contextlib.nullcontext():
                is_theirs = partial(self.registry.is_told, entry.entity)
                # The registry still knows the entity's routes, which the spool's files name.
                await asyncio.to_thread(spool.erase, self.settings.home, is_theirs)
                deletion = await asyncio.to_thread(self.registry.deletions.begin, entry.entity)
                await self._erasing.carry_out(deletion)
        return deletion

    def _has_rows_in_database(self, entry: Entry) -> bool:
        other = self.registry.moves.other_copy(entry.entity.group)
        return entry.store == "postgresql" or (other is not None and other.place == "postgresql")

    async def database(self) -> Database:
        """Return the PostgreSQL database of the settings; raises as ``Database.open``."""
        return await self._shared.database()

    async def finish_deletions(self) -> dict[str, str]:
        """Finish interrupted deletions; return entity → reason for those that are not possible."""
        return await self._erasing.finish_all()

    async def publish(self, name: str, *, anew: bool = False) -> PublishedState:
        """Publish an entity's graph on Neo4j from now on.

        A graph that is published already stays as it is, unless ``anew`` asks to write it again.

        Raises:
            ConfigError: Neo4j cannot be used with these settings; nothing was changed.
            StoreUnavailable: Neo4j does not answer; nothing was changed.
            StoreConflict: The memory is in use and stays so for 30 s.
        """
        await asyncio.to_thread(self.registry.mount, name)
        await (await self._shared.server()).check()
        async with self._gate(name):
            entry = await asyncio.to_thread(self.registry.mount, name)
            await self._wait_until_unused(name)
            held = await self._intact(entry) or await self._opened(entry)
            publisher = held.memory.parts.indexer.publisher
            if publisher is not None and anew:
                await publisher.begin_anew()
            elif publisher is None:
                await self._begin_publishing(entry, held.memory)
        return await self.publishing(name)

    async def _begin_publishing(self, entry: Entry, memory: Memory) -> None:
        from pps.isolation.publishing import ANEW
        from pps.journal.meta import PUBLISHED_AT

        await memory.parts.journal.set_meta(PUBLISHED_AT, ANEW)
        await self._close(entry.entity.name)
        async with self._erasing.unpublishing:  # nobody removes what is published from now on
            await asyncio.to_thread(self.registry.set_published, entry.entity, True)

    async def publishing(self, name: str) -> PublishedState:
        """Return whether an entity's graph is published, and how many changes it lacks."""
        async with self.memory(name, pool=True) as memory:
            publisher = memory.parts.indexer.publisher
            if publisher is None:
                return PublishedState(name, is_published=False)
            state = await publisher.state()
            return PublishedState(name, True, state.behind, state.waits_for)

    async def unpublish(self, name: str) -> PublishedState:
        """Stop publishing an entity's graph, and remove it from Neo4j.

        If Neo4j is away, the graph is removed once it answers.

        Raises:
            StoreConflict: The memory is in use and stays so for 30 s.
            StoreUnavailable: An earlier PPS kept the graph on Neo4j alone, which does not answer;
                nothing was changed.
        """
        async with self._gate(name):
            entry = await asyncio.to_thread(self.registry.mount, name)
            await self._wait_until_unused(name)
            if entry.is_published:
                # Opening copies a graph that an earlier PPS kept on Neo4j alone into the tables.
                held = await self._intact(entry) or await self._opened(entry)
                if entry.store == "postgresql":
                    await self._end_logging_graph(held.memory)
                await self._close(name)
                await asyncio.to_thread(self.registry.set_published, entry.entity, False)
        return PublishedState(name, is_published=False, waits_for=await self._erasing.unpublish())

    async def _end_logging_graph(self, memory: Memory) -> None:
        """Stop logging changes of the graph in PostgreSQL; see ``meta.PUBLISHED_AT``."""
        from pps.journal import meta

        publisher = memory.parts.indexer.publisher
        if publisher is not None:
            await publisher.stop()  # stopping writes its position
        await memory.parts.journal.write(partial(meta.drop, key=meta.PUBLISHED_AT))

    async def unpublished_graphs(self) -> tuple[int, str]:
        """Return how many graphs are yet to be removed from Neo4j, and why the last try failed."""
        groups = await asyncio.to_thread(self.registry.unpublishing.groups)
        return len(groups), self._erasing.stays

    async def dump_graphiti(self, address: str, folder: Path) -> Path:
        """Export a group of stock Graphiti from Neo4j to a file, for an import; return the file.

        Args:
            address: ``neo4j://HOST:PORT/DATABASE?group=NAME``. User and password come from the
                settings.
            folder: An empty folder for the file.

        Raises:
            InvalidRequest: The address is malformed, or the group is empty or belongs to an entity.
            StoreUnavailable, ConfigError: Neo4j cannot be used at that address.
        """
        from pps.isolation.graphiti_dump import GraphitiGroup, dump_group

        source = GraphitiGroup.parse(address)
        file = folder / "graphiti.json"
        at = self.settings.neo4j
        await dump_group(source, at.user, at.password.get_secret_value(), file)
        return file

    async def archive(self, name: str, *, undo: bool = False) -> None:
        self.registry.get(name)
        await self._announce_leaving(name)
        async with self._gate(name):
            await self._wait_until_unused(name)
            await self._close(name)
            await asyncio.to_thread(self.registry.archive, name, undo=undo)

    def hear_of_leaving(self, listener: Callable[[str], Awaitable[None]]) -> Callable[[], None]:
        """Call a listener with the name of each entity that is about to be archived or deleted.

        Callers that use a memory for long, such as a streaming response, release it then, because
        the deletion waits for them.

        Returns:
            A function that removes the listener.
        """
        self._leaving_listeners.append(listener)
        return lambda: self._leaving_listeners.remove(listener)

    async def _announce_leaving(self, name: str) -> None:
        for listener in tuple(self._leaving_listeners):
            await listener(name)

    async def extract_by(self, name: str, command: str) -> None:
        """Let a command extract facts from an entity's turns from now on; an empty text ends that.

        Raises:
            ConfigError: There is no such command, or it lacks a setting; nothing was changed.
            StoreConflict: The memory is in use and stays so for 30 s.
        """
        entry = await asyncio.to_thread(self.registry.mount, name)
        if command:
            from pps.models.program import make_command

            make_command(self.settings.extractor.model_copy(update={"command": command}))
        async with self._gate(name):
            await self._wait_until_unused(name)
            await asyncio.to_thread(set_extractor, entry.folder, command)
            await self._close(name)

    async def enable_pack(self, name: str, pack: str) -> tuple[str, ...]:
        """Give an entity a pack of kinds from now on; return the names of all it has.

        Raises as ``packs_together``.

        StoreConflict: The memory is in use and stays so for 30 s.
        """
        entry = await asyncio.to_thread(self.registry.mount, name)
        async with self._gate(name):
            own = await asyncio.to_thread(own_settings, entry.folder)
            names = await asyncio.to_thread(packs_together, self.settings.home, (*own.packs, pack))
            await self._wait_until_unused(name)
            await asyncio.to_thread(set_packs, entry.folder, names)
            await self._close(name)
        return names

    async def switch_feature(self, name: str, *, on: bool) -> InstalledFeature:
        """Switch a feature on or off for all entities, including open ones.

        Raises:
            NotFound: No feature of that name is installed.
        """
        feature = await self.features.switch(name, on=on)
        for entity in self.open_names():
            with contextlib.suppress(UnknownEntity):  # closed and deleted meanwhile
                async with self.memory(entity, pool=True) as memory:
                    await memory.parts.features.refresh()
        return feature

    async def kinds_of(self, owner: str | EntityId) -> Kinds:
        """Return the kinds of an entity's packs, without opening its memory.

        Raises as ``load_packs`` and ``Registry.mount``.
        """
        entry = await self._owned(owner)
        held = self._current(entry)
        if held is not None:
            return held.memory.kinds
        own = await asyncio.to_thread(own_settings, entry.folder)
        return Kinds(await asyncio.to_thread(load_packs, self.settings.home, own.packs))

    async def zone_of(self, owner: str | EntityId | None) -> tzinfo:
        """Return an entity's time zone without opening its memory; the settings' zone for None.

        Raises as ``kinds_of``.
        """
        if owner is None:
            return zone_of(self.settings.time_zone)
        entry = await self._owned(owner)
        held = self._current(entry)
        if held is not None:
            return held.memory.zone
        own = await asyncio.to_thread(own_settings, entry.folder)
        return zone_of(own.time_zone or self.settings.time_zone)

    @contextlib.asynccontextmanager
    async def memory(self, owner: str | EntityId, *, pool: bool = False) -> AsyncGenerator[Memory]:
        """Lend an entity's memory, and open it if it is closed.

        Args:
            owner: The entity, or its name.
            pool: Allow a squad's pool; without it only entities are lent.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: The entity is a squad's pool and ``pool`` is False, or it was deleted
                and created again.
            StoreConflict: Another process holds the files; the message names it. Or another process
                deleted and re-created the entity while this one has the old files open.
            StoreError: A file is missing, even if it was removed while the memory is open.
        """
        entry = await self._owned(owner)
        name = entry.entity.name
        if not pool:
            squad = await asyncio.to_thread(self.registry.squads.pool_of, name)
            if squad:
                raise InvalidRequest(
                    "entity", f"is the pool of the squad {squad!r}: only its members reach it"
                )
        async with self._gate(name):
            if self.registry.seen(name) != entry:
                entry = await self._owned(owner)  # it may have moved while this waited
            held = await self._intact(entry) or await self._opened(entry)
            held.users += 1
            self._open.move_to_end(name)
        try:
            await self._trim()
            yield held.memory.by(self._actor)
        finally:
            held.users -= 1
            await self._trim()

    def provide_shared_lines(self, lines: SharedLinesOf) -> None:
        """Set the source of the context packs' section with records shared in a squad's pool."""
        self._shared.lines_of = lines

    async def reembed(self, name: str, progress: Progress | None = None) -> dict[str, int]:
        """Drop an entity's vectors and embed everything with the configured model.

        Raises:
            StoreConflict: The memory is in use and stays so for 30 s.
        """
        async with self._exclusively(name, "vectors") as memory:
            return await memory.reembed(progress)

    async def reindex(
        self, name: str, progress: Progress | None = None, which: Index = "all"
    ) -> dict[str, int]:
        """Rebuild an entity's indexes from journal, graph and anchors.

        With ``all`` it works even if the indexes cannot be opened. Raises StoreConflict as
        ``reembed``.
        """
        async with (
            self._exclusively(name, "all") if which == "all" else self.memory(name) as memory
        ):
            return await memory.reindex(progress, which)

    async def rebuild(self, name: str, progress: Progress | None = None) -> dict[str, int]:
        """Rebuild an entity's graph from its journal: turns, records, facts of callers and rules.

        Returns:
            Documents by kind, as ``reindex``, and as ``to_read`` the number of turns that a model
            or command extracts from again.

        Raises:
            StoreConflict: The memory is in use and stays so for 30 s.
            StoreError: Its journal is gone too.
        """
        async with self._exclusively(name, "graph") as memory:
            indexed = await memory.rebuild(progress)
            jobs = await memory.jobs.stats()
        self._failed.pop(name, None)
        return {**indexed, "to_read": jobs.queued + jobs.running}

    async def upgrade(
        self, name: str, progress: Progress | None = None, *, dry_run: bool = False
    ) -> UpgradeReport:
        """Move a graph that an earlier PPS left in its own file into an entity's ``memory.db``.

        Opening the memory does the same; this does it ahead, also for an archived one and for a
        pool.

        Raises:
            UnknownEntity: No such entity.
            ConfigError: The extra ``migrate``, which reads the file, is not installed.
            IsolationError: The graph file is another entity's.
            StoreConflict: Another process holds the files.
            StoreError, StoreUnavailable: A file cannot be used, or the disk has too little room.
                Nothing was changed, as with the others.
        """
        async with self._gate(name):
            entry = await asyncio.to_thread(self.registry.get, name)
            if name in self._open:  # it would not be open otherwise
                return report_of(entry, None, dry_run=dry_run)
            async with folder.held(entry):
                await asyncio.to_thread(folder.check_files, entry)
                work = plan if dry_run else upgrade
                done = await work(entry, progress)
        if not dry_run:
            self._failed.pop(name, None)
        return report_of(entry, done, dry_run=dry_run)

    async def move(self, name: str, target: Place, progress: Progress | None = None) -> MoveReport:
        """Move an entity's memory into another store: copy it, compare the copy, then use it.

        The store that it was in keeps it as it was, until ``drop_moved_source`` or what erases it.
        Killed at any moment, exactly one store is the memory; the same call again finishes it. Its
        indexes and anchors stay where they are.

        Args:
            name: Of the entity; a pool's too, and one that is archived, which stays archived.
            target: ``embedded`` or ``postgresql``; where it is already, nothing happens.
            progress: Is told which table is copied, and how many of its rows are.

        Raises:
            UnknownEntity: No such entity.
            InvalidRequest: What the last move left is still kept, or a text holds what PostgreSQL
                cannot store.
            ConfigError, StoreUnavailable: The server is not set, or does not answer.
            StoreConflict: The memory is in use and stays so for 30 s, or another process has it
                open.
            StoreError: The memory cannot be opened, or the copy is not the same. Nothing was
                changed, as with the others.
        """
        started = asyncio.get_running_loop().time()
        mount = partial(self.registry.mount, name, include_archived=True)
        entry = await asyncio.to_thread(mount)
        if not await self._moving.check(entry, target):
            old_copy = await self._moving.kept(entry)
            return MoveReport(name, "nothing_to_do", target, kept=old_copy)
        if not entry.archived:
            async with self.memory(name, pool=True):
                pass  # repairs leftovers of a crash or an earlier PPS first, or raises the reason
        async with self._gate(name):
            await self._wait_until_unused(name)
            await self._close(name)
            async with folder.held(entry):
                # Again, now that nobody else can move it: another call may have been first.
                entry = await asyncio.to_thread(mount)
                await asyncio.to_thread(folder.check_files, entry)
                is_due = await self._moving.check(entry, target)
                if is_due:
                    opening = await asyncio.to_thread(load, "pps.app.opening")
                    await opening.bring_up_to_date(entry, self._shared)
                rows = await self._moving.carry_out(entry, target, progress) if is_due else {}
        entry = await asyncio.to_thread(self.registry.get, name)
        old_copy = await self._moving.kept(entry)
        seconds = round(asyncio.get_running_loop().time() - started, 2)
        outcome = "moved" if is_due else "nothing_to_do"
        return MoveReport(name, outcome, target, rows, old_copy, seconds)

    async def drop_moved_source(self, name: str) -> MoveReport:
        """Erase another store's copy of an entity, left by a move or by one that was cut short.

        Raises:
            UnknownEntity: No such entity.
            StoreConflict: Another process has the memory open.
            StoreError, StoreUnavailable: It cannot be erased; it stays noted.
        """
        mount = partial(self.registry.mount, name, include_archived=True)
        entry = await asyncio.to_thread(mount)
        async with self._gate(name):
            held = self._open.get(name)
            async with contextlib.nullcontext() if held else folder.held(entry):
                entry = await asyncio.to_thread(mount)
                is_dropped = await self._moving.erase_other_copy(entry)
            if held is not None:
                held.memory.parts.journal.erase_other_copy = None
        return MoveReport(name, "dropped" if is_dropped else "nothing_to_do", place_of(entry.store))

    async def moved_copy(self, name: str) -> tuple[list[str], list[str]]:
        """Return notes and problems about a copy of an entity in another store, left by a move."""
        entry = await asyncio.to_thread(self.registry.get, name)
        other = await asyncio.to_thread(self.registry.moves.other_copy, entry.entity.group)
        return notes_and_problems(entry, other)

    async def erase_upgrade_copy(self, name: str) -> bool:
        """Erase the copy of an entity from before its upgrade; return whether there was one.

        Raises:
            UnknownEntity: No such entity.
            StoreConflict: Another process holds the files.
            StoreError: A part of the copy could not be erased.
        """
        entry = await asyncio.to_thread(self.registry.get, name)
        async with self._gate(name):
            is_open = name in self._open
            async with contextlib.nullcontext() if is_open else folder.held(entry):
                return await asyncio.to_thread(erase_copies, entry)

    async def unopenable(self) -> dict[str, str]:
        """Return entity → reason for the entities that are known not to open."""
        entries = await asyncio.to_thread(self.registry.list)
        problems = {
            entry.entity.name: await asyncio.to_thread(unusable, entry)
            or self._failed.get(entry.entity.name, "")
            or await self._text_damage(entry)
            for entry in entries
        }
        return {name: why for name, why in problems.items() if why}

    async def _text_damage(self, entry: Entry) -> str:
        name = entry.entity.name
        wrong = await asyncio.to_thread(self._damage.of, entry.folder / "data" / "text")
        if not wrong:
            return ""
        return f"{name}: its text index is damaged ({wrong}); run `pps reindex {name}`"

    @contextlib.asynccontextmanager
    async def _exclusively(self, name: str, anew: Anew) -> AsyncGenerator[Memory]:
        """Open an entity for this caller alone, with the parts named by ``anew`` empty."""
        async with self._gate(name):
            entry = await asyncio.to_thread(self.registry.mount, name)
            self._held(entry)
            await self._wait_until_unused(name)
            await self._close(name)
            memory = await self._open_memory(entry, anew)
            try:
                yield memory
            finally:
                await memory.close()

    async def _open_memory(self, entry: Entry, anew: Anew = "no") -> Memory:
        """Open a memory; the first one also imports the packages that memories need."""
        opening = await asyncio.to_thread(load, "pps.app.opening")
        return await opening.open_memory(entry, self._shared, anew=anew)

    async def _wait_until_unused(self, name: str) -> None:
        """Wait until nobody uses a memory. The caller holds its gate, so no new user can come.

        Raises:
            StoreConflict: It is still in use after 30 s.
        """
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            held = self._open.get(name)
            if held is None or not held.users:
                return
            if asyncio.get_running_loop().time() > until:
                raise StoreConflict(f"{name} is in use; run this again when its clients are quiet")
            await asyncio.sleep(0.05)

    def open_names(self) -> list[str]:
        return list(self._open)

    async def resume_pending(self, patience_s: float = 3600.0) -> dict[str, str]:
        """Finish deletions, then the jobs of closed entities, each within ``patience_s`` seconds.

        Returns:
            Entity → reason for those whose work could not be finished.
        """
        problems = await self.finish_deletions()
        for name in await self.closed_pending():
            try:
                async with self.memory(name, pool=True) as memory:
                    await memory.settled(patience_s)
            except UnknownEntity:
                continue  # deleted or archived meanwhile
            except PPSError as error:
                problems[name] = f"unfinished jobs wait: {error.message}"
        return problems

    async def erase_overdue(self) -> None:
        """Erase forgotten items that can no longer be restored, in open and closed entities.

        Copies from before upgrades are erased when their time is over, also those of archived
        entities. See ``Forgetting.tend``.
        """
        keep = timedelta(days=self.settings.forgetting.restorable_d)
        for entry in await asyncio.to_thread(self.registry.list):
            name = entry.entity.name
            try:
                if name in self._open:
                    async with self.memory(name, pool=True) as memory:
                        await memory.forgetting.tend()
                elif await self._has_overdue(entry, keep):
                    async with self.memory(name, pool=True):
                        pass  # opening the memory erases it
            except PPSError as error:
                _log.warning("%s: what is over its time is not erased: %s", name, error.message)
        for entry in await asyncio.to_thread(self.registry.list, include_archived=True):
            name = entry.entity.name
            try:
                async with self._gate(name):
                    await asyncio.to_thread(erase_overdue_copies, entry)
            except PPSError as error:
                _log.warning("%s: the copy from before its upgrade stays: %s", name, error.message)

    async def _has_overdue(self, entry: Entry, keep: timedelta) -> bool:
        """Return whether a closed memory's bin has an item that can no longer be restored."""
        from pps.journal import bin_rows

        if entry.store == "postgresql":
            database = await self._shared.database()
            look = partial(bin_rows.any_overdue, due=time.now() - keep)
            return await asyncio.to_thread(database.read, entry.entity.group, look)
        file = entry.folder / "data" / folder.JOURNAL
        return await asyncio.to_thread(bin_rows.has_overdue, file, keep, time.now())

    async def closed_pending(self) -> dict[str, datetime]:
        """Return closed entity → time since when it may have unfinished jobs."""
        since = await asyncio.to_thread(self.registry.pending_since)
        open_now = set(self.open_names())
        return {name: moment for name, moment in since.items() if name not in open_now}

    async def close_all(self) -> None:
        # The stack closes all memories even if one of them fails.
        async with contextlib.AsyncExitStack() as closing:
            for name in self._open:
                closing.push_async_callback(self._closed, name)

    async def _closed(self, name: str) -> None:
        async with self._gate(name):
            await self._close(name)

    async def _owned(self, owner: str | EntityId) -> Entry:
        name = owner if isinstance(owner, str) else owner.name
        entry = self.registry.seen(name)
        if not entry or entry.archived or name not in self._open:
            entry = await asyncio.to_thread(self.registry.mount, name)
        if isinstance(owner, EntityId) and entry.entity != owner:
            raise InvalidRequest("entity", "was deleted and made anew; use its new token")
        return entry

    def _held(self, entry: Entry) -> _Open | None:
        """Return an entity's memory if it is open.

        Raises:
            StoreConflict: A deleted entity of the same name is still open here. It is not closed,
                because its files and the new entity's have the same paths, and Chroma and SQLite
                would find the wrong ones.
        """
        held = self._open.get(entry.entity.name)
        if held and held.memory.entity != entry.entity:
            raise StoreConflict(
                f"{entry.entity.name} was deleted and made anew by another process while this one "
                "has the deleted one's files open; restart this one (`pps serve --stop`; the next "
                "command starts it)"
            )
        return held

    def _current(self, entry: Entry) -> _Open | None:
        """Return an entity's memory if it is open and its ``entity.toml`` is unchanged since."""
        held = self._open.get(entry.entity.name)
        is_current = (
            held is not None
            and held.memory.entity == entry.entity
            and held.card == folder.card_stamp(entry.folder)
        )
        return held if is_current else None

    async def _renewed(self, entry: Entry, held: _Open) -> _Open | None:
        """Close an open memory whose ``entity.toml`` was changed, and return None.

        A memory in use is returned unchanged instead; it is closed when nobody uses it.

        Raises:
            ConfigError, StoreError: The file has a mistake; the memory stays open with the earlier
                settings.
            IsolationError: The file says that the folder is another entity's.
        """
        await asyncio.to_thread(folder.check_card, entry.folder, entry.entity)
        await asyncio.to_thread(own_settings, entry.folder)
        if held.users:
            return held
        _log.info("%s: entity.toml was changed; the memory is opened anew", entry.entity.name)
        await self._close(entry.entity.name)
        return None

    def waits_for_its_card(self, entry: Entry) -> bool:
        """Return whether an entity is open with an ``entity.toml`` that was changed since."""
        return entry.entity.name in self._open and self._current(entry) is None

    async def _intact(self, entry: Entry) -> _Open | None:
        """Return an entity's memory if it is open, with all its files and settings up to date.

        Raises:
            StoreError: A file is missing. Anything written without it would be lost.
        """
        held = self._held(entry)
        problem = folder.gone(entry) if held else ""
        if held and problem:
            if not held.users:
                await self._close(entry.entity.name)
            raise StoreError(problem)
        if held is not None and self._current(entry) is None:
            return await self._renewed(entry, held)
        return held

    async def _opened(self, entry: Entry) -> _Open:
        # The mark is set before the first turn can come in. If this process is killed, it stays
        # set, and the next process looks for unfinished jobs.
        with contextlib.suppress(StoreUnavailable):  # on a full disk the memory can still be read
            await asyncio.to_thread(self.registry.set_pending, entry.entity, True)
        card = folder.card_stamp(entry.folder)
        try:
            memory = await self._open_memory(entry)
        except PPSError as error:
            # Retryable errors and conflicts may be over at any moment.
            if not (error.retryable or isinstance(error, StoreConflict)):
                self._failed[entry.entity.name] = error.message
            raise
        self._failed.pop(entry.entity.name, None)
        if not entry.made:
            try:
                await asyncio.to_thread(self.registry.set_made, entry.entity)
            except BaseException:
                await memory.close()
                raise
        held = _Open(memory, card)
        self._open[entry.entity.name] = held
        if self.makes_namespaces:
            await asyncio.to_thread(memory.parts.indexes.keep_namespace)
        return held

    async def _trim(self) -> None:
        for name in list(self._open):
            if len(self._open) <= self.settings.server.open_entities:
                return
            async with self._gate(name):
                held = self._open.get(name)
                if (
                    held
                    and held.users == 0
                    and len(self._open) > self.settings.server.open_entities
                ):
                    await self._close(name)

    async def _close(self, name: str) -> None:
        held = self._open.pop(name, None)
        if held is None:
            return
        entity = held.memory.entity
        pending = True
        try:
            pending = await held.memory.pending()
        except PPSError as error:
            _log.warning(
                "%s: whether it has jobs left cannot be read; its next start looks: %s", name, error
            )
        await held.memory.close()
        # Another process may have deleted the entity; on other errors the mark stays set.
        with contextlib.suppress(UnknownEntity, StoreUnavailable):
            await asyncio.to_thread(self.registry.set_pending, entity, pending)


async def _keep_running_time(running: RunningTime) -> None:
    while True:
        await asyncio.sleep(_SAVE_RUNNING_S)
        await asyncio.to_thread(running.save)
