"""Resources that all memories of a process share: models, threads and connections to servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pps.config import Settings
from pps.core.errors import PPSError
from pps.core.feature_parts import StoredFeature
from pps.core.footprint import cores
from pps.core.ids import EntityId
from pps.entities.installation_rows import RunningTime
from pps.entities.moves import Moves
from pps.models.factory import (
    embedder_of,
    make_colbert,
    make_embedder,
    make_extractor,
    make_reranker,
)
from pps.models.protocols import Embedder, ExtractorModel, Fingerprint, Reranker
from pps.models.token_encoder import ColbertEncoder

if TYPE_CHECKING:
    from pps.context.lines import Line
    from pps.ingest.work_rules import SharedWork
    from pps.isolation.counters import IsolationCounters
    from pps.isolation.neo4j import Neo4jPool
    from pps.journal.postgresql import Database
    from pps.recall.profiles import Profiles

SharedLinesOf: TypeAlias = "Callable[[EntityId, str, int], Awaitable[Sequence[tuple[str, Line]]]]"
"""Entity, text and most lines → what others share with the entity about the text."""


def _nothing_provided(point: str) -> None:
    del point


@dataclass(slots=True)
class Shared:
    """Models, threads and connections to servers, shared by all memories of a process.

    Modules that only an open memory needs are imported when the first one opens, so that a server
    answers earlier.
    """

    settings: Settings
    embedder: Embedder | None
    reranker: Reranker | None
    colbert: ColbertEncoder | None
    extractor: ExtractorModel | None
    threads: ThreadPoolExecutor
    running: RunningTime | None = None
    moves: Moves | None = None
    lines_of: SharedLinesOf | None = None
    features: Callable[[], Sequence[StoredFeature]] = tuple
    provided: Callable[[str], Any] = _nothing_provided
    _others: dict[str, Embedder] = field(default_factory=dict[str, Embedder])
    _profiles: Profiles | None = None
    _work: SharedWork | None = None
    _counters: IsolationCounters | None = None
    _server: Neo4jPool | None = None
    _database: Database | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def load_embedder(self) -> None:
        """Load the embedding model if it runs on this machine.

        It blocks. Errors are left to the first use of the model.
        """
        if self.embedder is not None and self.settings.embedder.name not in ("openai", "hash"):
            with contextlib.suppress(PPSError):
                self.embedder.embed_query("ready")

    @property
    def profiles(self) -> Profiles:
        """The recall profiles: shipped ones, and the user's files.

        They are read when the first memory opens.
        """
        if self._profiles is None:
            from pps.recall.profiles import Profiles

            self._profiles = Profiles.load(self.settings)
        return self._profiles

    @property
    def work(self) -> SharedWork:
        """State that the workers of all memories share."""
        if self._work is None:
            from pps.ingest.work_rules import SharedWork

            self._work = SharedWork.of(self.settings.jobs)
        return self._work

    @property
    def counters(self) -> IsolationCounters:
        """Counters of requests that the boundary of each memory refused."""
        if self._counters is None:
            from pps.isolation.counters import IsolationCounters

            self._counters = IsolationCounters()
        return self._counters

    async def shared_lines(
        self, entity: EntityId, text: str, limit: int
    ) -> Sequence[tuple[str, Line]]:
        """Return context-pack lines that others share with an entity about a text.

        Return none if no feature provides them.
        """
        return await self.lines_of(entity, text, limit) if self.lines_of else ()

    async def server(self) -> Neo4jPool:
        """Return the one connection pool to Neo4j, opened when the first graph is published."""
        async with self._connecting:
            if self._server is None:
                from pps.isolation.neo4j import open_neo4j

                server = self.settings.neo4j
                password = server.password.get_secret_value()
                self._server = await open_neo4j(server.uri, server.user, password, server.database)
            return self._server

    async def database(self) -> Database:
        """Return the one PostgreSQL database, opened when the first entity needs it.

        Raises as ``Database.open``.
        """
        async with self._lock:
            if self._database is None:
                from pps.journal.postgresql import database_of

                self._database = await asyncio.to_thread(database_of, self.settings.postgresql)
            return self._database

    async def embedder_of(self, pinned: str) -> Embedder | None:
        """Return the embedder that an entity's vectors were made with, if it is not the configured.

        Return None if that embedder needs settings of its own.

        Raises:
            ConfigError: It is not on this machine.
        """
        async with self._lock:
            if pinned not in self._others:
                embedder = await asyncio.to_thread(embedder_of, json.loads(pinned)["model"])
                if embedder is None or fingerprint_text(embedder.fingerprint) != pinned:
                    return None
                self._others[pinned] = embedder
            return self._others[pinned]

    async def close(self) -> None:
        for model in (self.embedder, self.reranker, self.colbert, *self._others.values()):
            if model is not None:
                await asyncio.to_thread(model.close)
        if self._server:
            await self._server.close()
        if self._database:
            await asyncio.to_thread(self._database.close)
        await asyncio.to_thread(self.threads.shutdown)


@contextlib.asynccontextmanager
async def open_shared(
    settings: Settings, embedder: Embedder | None = None
) -> AsyncGenerator[Shared]:
    """Create the shared resources; models are loaded when they are first needed."""
    shared = Shared(
        settings,
        embedder or make_embedder(settings.embedder),
        make_reranker(settings.reranker),
        make_colbert(settings.colbert, settings.embedder),
        make_extractor(settings.extractor),
        ThreadPoolExecutor(max_workers=cores() + 2, thread_name_prefix="pps-index"),
    )
    try:
        yield shared
    finally:
        await shared.close()


def fingerprint_text(fingerprint: Fingerprint) -> str:
    """Return a fingerprint in the form that a journal stores."""
    return json.dumps(asdict(fingerprint), sort_keys=True)
