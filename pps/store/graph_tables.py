"""Access to the graph tables of one entity; every session is bound to the entity's group.

The tables are in the same database as the turns and jobs and use the same writing thread, so one
transaction can change both. A write that returned is on disk, and deleted rows are overwritten (see
``pps.journal.db``).

The indexes need entries of the change log for changed texts only. The published graph needs one for
every changed row, also for mentions and for what Graphiti's pipeline saves: triggers log them all,
in the same transaction. In SQLite they are temporary triggers of the writing connection, created
only if the memory publishes its graph. In PostgreSQL they belong to the tables
(``journal/postgresql.sql``) and act only in transactions of memories that publish their graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pps.core.errors import StoreError
from pps.core.sql import Connection
from pps.journal.db import Work, nothing
from pps.journal.entries import GraphKind
from pps.journal.journal import Journal
from pps.journal.postgresql import PostgresConnection
from pps.models.protocols import Vector
from pps.store.sql_session import SqlSession

if TYPE_CHECKING:  # a server starts without the libraries of indexes
    from pps.index.indexes import EntityIndexes


_T = TypeVar("_T")
_LOGGED: Final[tuple[tuple[str, str, GraphKind], ...]] = (
    ("node", "uuid", "graph_node"),
    ("fact", "uuid", "graph_fact"),
    ("episode", "uuid", "graph_episode"),
    ("mention", "episode", "graph_episode"),
)
"""Table, its column with the id to log, and the kind of the log's entry."""
_ROW_OF: Final = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


class GraphTables:
    """Reads and writes the graph in an open journal, bound permanently to the journal's group.

    Every method raises StoreConflict, StoreUnavailable or StoreError like the journal's methods.

    Args:
        journal: The journal with the tables; its opener closes it.
        remedy: Advice that is added to errors about damaged values, such as "`pps rebuild ana`
            makes it anew".
        indexes: The entity's indexes, which store the vectors of nodes and facts; without them
            ``vectors`` returns none.
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
        """The file with the tables."""
        return self.journal.path

    async def read(self, work: Callable[[SqlSession], _T]) -> _T:
        """Run ``work`` in a thread, on a snapshot with every acknowledged write."""
        with self._naming_the_remedy():
            return await self.journal.read(
                lambda connection: work(SqlSession(connection, self.group))
            )

    async def look_up(self, work: Callable[[SqlSession], _T], rows: int) -> _T:
        """Do what ``read`` does, on the calling thread if at most ``FEW`` rows are read by key.

        Yields to other tasks first: a loop of look-ups would otherwise block the event loop.
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
            work: Changes rows. The transaction may contain other writes, each of which is undone
                alone.
            before: Writes other tables of the journal in the same transaction, before ``work``.
            after: The same, after ``work``.
            secure: Also remove deleted rows from the log before returning, and from the file soon
                after.
        """

        def whole(connection: Connection) -> _T:
            before(connection)
            result = work(SqlSession(connection, self.group))
            after(connection)
            return result

        with self._naming_the_remedy():
            return await self.journal.write(whole, secure=secure)

    async def vectors(self, collections: Sequence[str], owners: Sequence[str]) -> dict[str, Vector]:
        """Return owner → its vector in one of the collections; owners without are left out."""
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
            if type(error) is not StoreError or not self._remedy:  # subclasses: locks, full disks
                raise
            raise StoreError(f"{error.message}; {self._remedy}") from error


def log_graph_rows(connection: Connection) -> None:
    """Log each graph row that this connection inserts, updates or deletes from now on."""
    if isinstance(connection, PostgresConnection):
        return
    for table, column, kind in _LOGGED:
        for event, row in _ROW_OF.items():
            name = f"log_{table}_{event.lower()}"
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS {name} AFTER {event} ON main.{table} BEGIN "
                f"DELETE FROM change_log WHERE kind = '{kind}' AND id = {row}.{column}; "
                f"INSERT INTO change_log (kind, id) VALUES ('{kind}', {row}.{column}); END"
            )
