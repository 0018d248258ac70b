"""One group on a shared Neo4j: how its statements run, singly and as one."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from pps.core.errors import InvalidRequest, StoreConflict
from pps.graph import mapping
from pps.graph.graph_store import Executor, Rows, Transaction

_T = TypeVar("_T")

_TIMES = frozenset(mapping.FACT_TIMES)
_BATCH = 1_000
_TRIES = 6
_FIRST_DELAY_S = 0.02


class Neo4jGroup:
    """Base of the store's halves: an executor and the one group that every statement binds."""

    def __init__(self, executor: Executor, group: str) -> None:
        if not group.strip():
            raise InvalidRequest("group", "must not be blank")
        self._executor = executor
        self._group = group

    @property
    def group(self) -> str:
        """The group that every statement binds."""
        return self._group

    async def _read(self, statement: str, **parameters: Any) -> Rows:
        """Return the rows that a statement which changes nothing gives as a list, attributes as mappings."""
        return readable((await self._read_one(statement, **parameters))["rows"])

    async def _read_one(self, statement: str, **parameters: Any) -> dict[str, Any]:
        """Return the one record of a statement that changes nothing."""
        rows, _, _ = await self._executor.execute_query(statement, group_id=self._group, routing_="r", **parameters)
        (record,) = rows
        return record

    async def _run(self, transaction: Transaction, statement: str, **parameters: Any) -> Rows:
        """Run a statement inside a transaction; return its records."""
        return await transaction.run(statement, group_id=self._group, **parameters)

    async def _run_rows(self, transaction: Transaction, statement: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement that unwinds rows; no rows, no statement."""
        if rows:
            await self._run(transaction, statement, rows=list(rows))

    async def _atomically(self, work: Callable[[Transaction], Awaitable[_T]]) -> _T:
        """Run work in one transaction, again from its start when another transaction got in its way.

        The work may run several times, so it computes everything from what it reads.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._executor.transaction() as transaction:
                    return await work(transaction)
            except StoreConflict:
                if attempt == _TRIES:
                    raise
            await asyncio.sleep(_FIRST_DELAY_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - spreads tries
        raise AssertionError("the last try returns or raises")


def batches(items: Sequence[_T]) -> list[Sequence[_T]]:
    """Return items in slices that one statement takes: a transaction may have many."""
    return [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]


def readable(rows: Rows) -> Rows:
    """Return rows in the shape that ``mapping`` reads: see ``neo4j_cypher`` for what the columns hold."""
    for place, row in enumerate(rows):
        if row.get("attributes") is not None:
            row = rows[place] = {**row["attributes"], **row}
        for name in _TIMES & row.keys():
            if row[name] is not None:
                row[name] = str(row[name]).partition("[")[0]  # a zone's name may follow the offset
    return rows
