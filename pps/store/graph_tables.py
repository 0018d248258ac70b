"""The graph tables of one entity's ``memory.db``: every session on them is of the file's group.

They lie beside the turns and jobs, behind the same writing thread, so that one transaction can
change both. What a write returned from is on disk; what was deleted is overwritten (see
``pps.journal.db``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pps.core.errors import StoreError
from pps.core.sql import Connection
from pps.journal.db import Work, nothing
from pps.journal.journal import Journal
from pps.models.protocols import Vector
from pps.store.sql_session import SqlSession

if TYPE_CHECKING:  # a server starts without the libraries of indexes
    from pps.index.indexes import EntityIndexes

_T = TypeVar("_T")


class GraphTables:
    """Reads and writes of the graph in an open journal, bound to the journal's group for life.

    Args:
        journal: Where the tables are; whoever opened it closes it.
        remedy: What a reader of an error about a damaged value is told to do, such as "`pps rebuild
            ana` makes it anew".
        indexes: The entity's own, which keep the vectors of names and facts; without them no node
            or fact has one.

    Every method raises StoreConflict, StoreUnavailable or StoreError as those of the journal.
    """

    def __init__(
        self, journal: Journal, remedy: str = "", indexes: EntityIndexes | None = None
    ) -> None:
        self.journal = journal
        self._indexes = indexes
        self.group = journal.group
        self._remedy = remedy

    @property
    def path(self) -> Path:
        """The file that the tables are in."""
        return self.journal.path

    async def read(self, work: Callable[[SqlSession], _T]) -> _T:
        """Run ``work`` in a thread, on one snapshot that has every acknowledged write."""
        with self._naming_the_remedy():
            return await self.journal.read(
                lambda connection: work(SqlSession(connection, self.group))
            )

    async def look_up(self, work: Callable[[SqlSession], _T], rows: int) -> _T:
        """Do what ``read`` does, on this thread where at most ``FEW`` rows are read by key.

        Other tasks get their turn first: somebody who looks again and again would keep them all
        waiting.
        """
        await asyncio.sleep(0)
        with self._naming_the_remedy():
            return await self.journal.look_up(
                lambda connection: work(SqlSession(connection, self.group)), rows
            )

    async def write(
        self,
        work: Callable[[SqlSession], _T],
        *,
        before: Work[object] = nothing,
        after: Work[object] = nothing,
        secure: bool = False,
    ) -> _T:
        """Run ``work`` in one transaction; return its result once on disk. An exception undoes it.

        Args:
            work: Changes rows. It may share its transaction with other writes, each of which is
                undone alone.
            before: What the journal's other tables get in the same transaction, before the work.
            after: The same, after it.
            secure: Empty the log too before returning, and scrub the file soon after: nothing that
                was deleted stays.
        """

        def whole(connection: Connection) -> _T:
            before(connection)
            result = work(SqlSession(connection, self.group))
            after(connection)
            return result

        with self._naming_the_remedy():
            return await self.journal.write(whole, secure=secure)

    async def vectors(self, collections: Sequence[str], owners: Sequence[str]) -> dict[str, Vector]:
        """Return owner → its first vector in one of the collections; others are left out."""
        vectors: dict[str, Vector] = {}
        if self._indexes is not None:
            for collection in collections:
                vectors |= await self._indexes.vectors(collection, owners)
        return vectors

    @contextmanager
    def _naming_the_remedy(self) -> Generator[None]:
        try:
            yield
        except StoreError as error:
            if type(error) is not StoreError or not self._remedy:  # the others pass by themselves
                raise
            raise StoreError(f"{error.message}; {self._remedy}") from error
