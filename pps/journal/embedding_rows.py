"""The state of records' vectors: the hash of their text, those due, and those that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.sql import LIST, insert, listed
from pps.core.time import from_micros, micros
from pps.journal.store import Store

_COLUMNS = "node, hash, due, failures, error"


@dataclass(frozen=True, slots=True)
class VectorState:
    """How the vectors of one record are.

    Attributes:
        hash: Of the text that they are of; empty while there are none.
        due: When they are to be made anew; None when nothing is to be done, or nothing more is
            tried.
        failures: How often that failed in a row, and ``error`` how the last time.
    """

    node: str
    hash: str = ""
    due: datetime | None = None
    failures: int = 0
    error: str = ""


class VectorStates(Store):
    """The states of one ``memory.db``."""

    async def of(self, nodes: Iterable[str]) -> dict[str, VectorState]:
        """Return record → its state, for those that have one."""
        return {state.node: state for state in await self._states(f"node IN {LIST}", listed(nodes))}

    async def due(self, until: datetime, limit: int) -> list[VectorState]:
        """Return those that are to be embedded by then, longest due first."""
        return await self._states("due <= ? ORDER BY due, node LIMIT ?", micros(until), limit)

    async def failed(self) -> list[VectorState]:
        """Return those that are tried no more."""
        return await self._states("failures > 0 AND due IS NULL ORDER BY node")

    async def next_due(self) -> datetime | None:
        [(due,)] = await self.select("SELECT min(due) FROM record_vectors WHERE due IS NOT NULL")
        return None if due is None else from_micros(due)

    async def waiting(self) -> int:
        """Return how many are to be embedded."""
        [(number,)] = await self.select("SELECT count(*) FROM record_vectors WHERE due IS NOT NULL")
        return number

    async def fields(self) -> int:
        """Return how many values of fields are indexed."""
        [(number,)] = await self.select("SELECT count(*) FROM record_field")
        return number

    async def without(self) -> set[str]:
        """Return the records that have no vectors: none yet, or never."""
        return {
            node for (node,) in await self.select("SELECT node FROM record_vectors WHERE hash = ''")
        }

    async def put(self, states: Sequence[VectorState]) -> None:
        """Note states in place of those before."""
        rows = [
            (
                state.node,
                state.hash,
                micros(state.due) if state.due else None,
                state.failures,
                state.error,
            )
            for state in states
        ]
        then = """ON CONFLICT (node) DO UPDATE SET hash = excluded.hash, due = excluded.due,
            failures = excluded.failures, error = excluded.error"""
        await self.write(
            lambda db: insert(db, f"INSERT INTO record_vectors ({_COLUMNS})", rows, then)
        )

    async def drop(self, nodes: Iterable[str]) -> None:
        """Forget records that are gone."""
        gone = listed(nodes)
        query = f"DELETE FROM record_vectors WHERE node IN {LIST}"  # noqa: S608 - literals
        await self.write(lambda db: db.execute(query, (gone,)))

    async def clear(self) -> None:
        """Forget all: every vector is to be made anew."""
        await self.write(lambda db: db.execute("DELETE FROM record_vectors"))

    async def _states(self, where: str, *values: str | int) -> list[VectorState]:
        return [
            VectorState(node, of, from_micros(due) if due is not None else None, failures, error)
            for node, of, due, failures, error in await self.select(
                f"SELECT {_COLUMNS} FROM record_vectors WHERE {where}",  # noqa: S608 - literals
                *values,
            )
        ]
