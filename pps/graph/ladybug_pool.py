"""The asynchronous side of an embedded database: readers, one writer at a time, transactions, checkpoints.

LadybugDB lets one transaction write and refuses a second one at once, so writers queue here. Readers go on
beside a writer and see what was committed before they began.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from pps.core.errors import StoreConflict, StoreError, StoreUnavailable
from pps.graph.graph_store import Rows
from pps.graph.ladybug_connection import LadybugConnection, LadybugFile, LadybugOptions, PoolFull
from pps.graph.ladybug_schema import schema

_ENDLESS = "MATCH (e:RelatesToNode_) WHERE e.source_node_uuid IS NULL RETURN count(*) AS number"
_NAME_ENDS = (
    "MATCH (s:Entity)-[:RELATES_TO]->(e:RelatesToNode_)-[:RELATES_TO]->(o:Entity) WHERE e.source_node_uuid IS NULL "
    "SET e.source_node_uuid = s.uuid, e.target_node_uuid = o.uuid"
)

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_READERS = 2
# Only decides who waits for whom. A statement that writes has one of these words, wherever it stands.
_WRITES = re.compile(
    r"\b(CREATE|MERGE|SET|DELETE|REMOVE|COPY|DROP|ALTER|CALL|CHECKPOINT|INSTALL|LOAD|IMPORT|EXPORT)\b",
    re.IGNORECASE,
)


class LadybugPool:
    """All that one process holds of one database file; made by ``open``, given back by ``close``."""

    def __init__(self, file: LadybugFile, threads: ThreadPoolExecutor) -> None:
        self._file = file
        self._threads = threads
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(_READERS)
        self._idle: list[LadybugConnection] = []
        self._inside: ContextVar[bool] = ContextVar("pps_ladybug_transaction", default=False)
        self._closed = False

    @classmethod
    async def open(cls, path: Path, options: LadybugOptions) -> LadybugPool:
        """Open a file, or create it; make the tables that are missing; let facts name their ends where they do not.

        Errors as in ``LadybugFile``.
        """
        threads = ThreadPoolExecutor(_READERS + 1, thread_name_prefix="ladybug")
        try:
            file = await asyncio.get_running_loop().run_in_executor(
                threads, LadybugFile, path, options
            )
            pool = cls(file, threads)
            await pool._once(schema(), {})  # not a write that a full disk should refuse
            if (await pool.execute(_ENDLESS, {}))[0]["number"]:
                await pool.execute(_NAME_ENDS, {})
        except BaseException:
            threads.shutdown(wait=False)
            raise
        return pool

    async def execute(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        """Run one statement in a transaction of its own and return its rows.

        Raises:
            StoreError: It was refused, or it writes while the same task holds a transaction open.
            StoreUnavailable: The store is closed, or the file cannot be read or written.
        """
        if not _WRITES.search(statement):
            with contextlib.suppress(PoolFull):
                async with self._reading:
                    return await self._once(statement, parameters)
        return await self._alone_if_needed(statement, parameters)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[LadybugTransaction]:
        """Open a transaction; other writers wait until its block has ended.

        Raises:
            StoreConflict: It did not fit into the buffer pool, which is larger now: run the whole block again.
        """
        self._refuse_if_inside()
        async with self._writing:
            connection = await self._connection()
            transaction = LadybugTransaction(self, connection)
            token = self._inside.set(True)
            try:
                self._file.require_room()
                await self.in_thread(connection, connection.run, "BEGIN TRANSACTION", {})
                yield transaction
                await transaction.finish()
            finally:
                self._inside.reset(token)
                # Closing rolls back what is still open.
                await self._give_back(connection, close=not transaction.committed)
                if transaction.suspect:
                    await self._settle(self._enlarge())
            await self._checkpoint_if_due()

    async def close(self) -> None:
        """Wait for what is running, close the file and give back its threads and its lock."""
        if self._closed:
            return
        async with self._writing, self._no_readers():
            self._closed = True
            await self._settle(self.in_thread(None, self._close))
        self._threads.shutdown()  # all idle: at once

    async def in_thread(
        self, connection: LadybugConnection | None, work: Callable[..., _T], *args: Any
    ) -> _T:
        """Run blocking work in a thread and wait for its end, even when cancelled (a statement is interrupted)."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                if connection is not None:
                    connection.interrupt()  # again and again: while it compiles it does not hear
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait((future,), timeout=0.05)
            if not future.cancelled():
                future.exception()  # seen: the caller is gone
            raise

    async def _once(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        connection = await self._connection()
        try:
            return await self.in_thread(connection, connection.run, statement, parameters)
        finally:
            await self._give_back(connection, close=False)

    async def _give_back(self, connection: LadybugConnection, *, close: bool) -> None:
        if close or connection.tired or len(self._idle) >= _READERS:
            await self._settle(self.in_thread(None, connection.close))
        else:
            self._idle.append(connection)

    async def _connection(self) -> LadybugConnection:
        if self._closed:
            raise StoreUnavailable("the embedded store is closed")
        return self._idle.pop() if self._idle else await self.in_thread(None, self._file.connect)

    async def _alone_if_needed(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        self._refuse_if_inside()
        async with self._writing:
            if _WRITES.search(statement):
                self._file.require_room()
            while True:
                try:
                    rows = await self._once(statement, parameters)
                    break
                except PoolFull:
                    await self._settle(self._enlarge())
            await self._checkpoint_if_due()
            return rows

    async def _checkpoint_if_due(self) -> None:
        """Fold the log into the file. What was committed stays committed, whatever happens here."""
        if not await self.in_thread(None, self._file.checkpoint_is_due):
            return
        async with self._no_readers():
            try:
                await self._settle(self._once("CHECKPOINT", {}))
            except (PoolFull, StoreError) as error:
                _log.warning(
                    "a checkpoint failed (%s): opening the graph again", type(error).__name__
                )
                await self._settle(self.in_thread(None, self._reopen))

    async def _enlarge(self) -> None:
        async with self._no_readers():
            if not await self.in_thread(None, self._reopen):
                raise StoreError(
                    "the work does not fit into the buffer pool: use smaller batches or raise its limit"
                )

    def _reopen(self) -> bool:
        self._close_idle()
        return self._file.reopen()

    def _close(self) -> None:
        self._close_idle()
        self._file.close()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @asynccontextmanager
    async def _no_readers(self) -> AsyncGenerator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(_READERS):
                await stack.enter_async_context(self._reading)
            yield

    def _refuse_if_inside(self) -> None:
        if self._inside.get():
            raise StoreError("a statement outside the open transaction would wait for it for ever")

    @staticmethod
    async def _settle(work: Any) -> Any:
        """Await something to its end before a cancellation goes on."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait((task,))
            task.exception()  # seen: the caller is gone
            raise


class LadybugTransaction:
    """An open transaction on a connection of its own.

    Attributes:
        committed: True when all of it is on disk.
        suspect: True when the buffer pool was too small or a commit failed: the database is opened again.
    """

    def __init__(self, pool: LadybugPool, connection: LadybugConnection) -> None:
        self._pool = pool
        self._connection = connection
        self._over = False
        self.committed = False
        self.suspect = False

    async def run(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        """Run one statement and return its rows. An error ends the transaction: LadybugDB rolls back at once."""
        if self._over:
            raise StoreError("the transaction was rolled back by an earlier error")
        self._over = True
        rows = await self._attempt(statement, parameters)
        self._over = False
        return rows

    async def finish(self) -> None:
        """Commit; on disk when it returns."""
        try:
            await self.run("COMMIT", {})
        except StoreError:
            self.suspect = True
            raise
        self._over = self.committed = True

    async def _attempt(self, statement: str, parameters: Mapping[str, Any]) -> Rows:
        try:
            return await self._pool.in_thread(
                self._connection, self._connection.run, statement, parameters
            )
        except PoolFull as error:
            self.suspect = True
            raise StoreConflict(
                "the transaction did not fit into memory and was rolled back: run it again"
            ) from error
