"""What became of the vectors of records: of which text they are, which are to be made, which could not be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.sql import LIST, insert, listed
from pps.core.time import from_micros, micros
from pps.journal.reader import Readers
from pps.journal.writer import Writer

_COLUMNS = "node, hash, due, failures, error"


@dataclass(frozen=True, slots=True)
class VectorState:
    """How the vectors of one record are.

    Attributes:
        hash: Of the text that they are of; empty while there are none.
        due: When they are to be made anew; None when nothing is to be done, or nothing more is tried.
        failures: How often that failed in a row, and ``error`` how the last time.
    """

    node: str
    hash: str = ""
    due: datetime | None = None
    failures: int = 0
    error: str = ""


class VectorStates:
    """The states of one ``memory.db``; errors and durability as for ``Journal``."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def of(self, nodes: Iterable[str]) -> dict[str, VectorState]:
        """Return record → its state, for those that have one."""
        return {one.node: one for one in await self._select(f"node IN {LIST}", listed(nodes))}

    async def due(self, until: datetime, limit: int) -> list[VectorState]:
        """Return those that are to be embedded by then, longest due first."""
        return await self._select("due <= ? ORDER BY due, node LIMIT ?", micros(until), limit)

    async def failed(self) -> list[VectorState]:
        """Return those that are tried no more."""
        return await self._select("failures > 0 AND due IS NULL ORDER BY node")

    async def next_due(self) -> datetime | None:
        query = "SELECT min(due) FROM record_vectors WHERE due IS NOT NULL"
        found = await self._readers.read(lambda db: db.execute(query).fetchone()[0])
        return None if found is None else from_micros(found)

    async def waiting(self) -> int:
        """Return how many are to be embedded."""
        query = "SELECT count(*) FROM record_vectors WHERE due IS NOT NULL"
        return await self._readers.read(lambda db: db.execute(query).fetchone()[0])

    async def sources(self) -> set[str]:
        """Return the turns that records of packs' kinds come from: they have no vectors, their records do."""
        query = "SELECT turn FROM records WHERE pack <> ''"
        return await self._readers.read(lambda db: {row[0] for row in db.execute(query)})

    async def fields(self) -> int:
        """Return how many values of fields are indexed."""
        return await self._readers.read(lambda db: db.execute("SELECT count(*) FROM record_field").fetchone()[0])

    async def without(self) -> set[str]:
        """Return the records that have no vectors: none yet, or never."""
        query = "SELECT node FROM record_vectors WHERE hash = ''"
        return await self._readers.read(lambda db: {row[0] for row in db.execute(query)})

    async def put(self, states: Sequence[VectorState]) -> None:
        """Note states in place of those before."""
        rows = [(one.node, one.hash, micros(one.due) if one.due else None, one.failures, one.error) for one in states]
        then = """ON CONFLICT (node) DO UPDATE SET hash = excluded.hash, due = excluded.due,
            failures = excluded.failures, error = excluded.error"""
        await self._writer.write(lambda db: insert(db, f"INSERT INTO record_vectors ({_COLUMNS})", rows, then))

    async def drop(self, nodes: Iterable[str]) -> None:
        """Forget records that are gone."""
        gone = listed(nodes)
        query = f"DELETE FROM record_vectors WHERE node IN {LIST}"  # noqa: S608 - literals
        await self._writer.write(lambda db: db.execute(query, (gone,)))

    async def clear(self) -> None:
        """Forget all: every vector is to be made anew."""
        await self._writer.write(lambda db: db.execute("DELETE FROM record_vectors"))

    async def _select(self, where: str, *values: str | int) -> list[VectorState]:
        def work(db: sqlite3.Connection) -> list[VectorState]:
            rows = db.execute(f"SELECT {_COLUMNS} FROM record_vectors WHERE {where}", values)  # noqa: S608 - literals
            return [
                VectorState(node, of, from_micros(due) if due is not None else None, failures, error)
                for node, of, due, failures, error in rows
            ]

        return await self._readers.read(work)
