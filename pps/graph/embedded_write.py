"""How rows get into an embedded graph fast, inside a transaction that the caller holds.

Rows travel as Arrow tables, whose columns have types: a list of dictionaries is read by LadybugDB as whatever its first
rows look like, and a vector in it costs 7 ms. New rows are created and known ones updated by separate
statements (50,000 and 130,000 a second, against 7,000 by ``MERGE``); edges are created between rows found by
primary key, in chained ``MATCH`` clauses (30,000 a second; in one clause it would be a cross product).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import numpy as np
import pyarrow

from pps.core.errors import InvalidRequest, NotFound
from pps.core.values import Vector
from pps.graph.embedded_reads import IDS, own
from pps.graph.graph_store import Rows, Transaction, slices
from pps.graph.ladybug_schema import NODE_TABLES
from pps.graph.mapping import joined

_T = TypeVar("_T")
_ROWS_AT_ONCE = 2_000
_QUICK = 100  # rows that are turned into columns faster than a thread takes them over
_NAMES: Final = {"Entity": "node", "RelatesToNode_": "fact", "Episodic": "episode"}

_arrow = cast(Any, pyarrow)  # it has no type stubs
_TYPES = {
    "STRING PRIMARY KEY": _arrow.string(),
    "STRING": _arrow.string(),
    "STRING[]": _arrow.list_(_arrow.string()),
    "TIMESTAMP": _arrow.timestamp("us"),
}

_LINK = """
LOAD FROM $rows
MATCH (s:Entity {uuid: subject})
MATCH (e:RelatesToNode_ {uuid: fact})
MATCH (o:Entity {uuid: object})
WHERE e.group_id = $group_id
CREATE (s)-[:RELATES_TO]->(e), (e)-[:RELATES_TO]->(o)"""
_UNLINK = (
    "UNWIND $uuids AS id MATCH (e:RelatesToNode_ {uuid: id})-[r:RELATES_TO]->(n:Entity) "
    "WHERE e.group_id = $group_id DELETE r",
    "UNWIND $uuids AS id MATCH (n:Entity)-[r:RELATES_TO]->(e:RelatesToNode_ {uuid: id}) "
    "WHERE e.group_id = $group_id DELETE r",
)


class EmbeddedWriter:
    """Writes rows of one group in one open transaction. Tables are those of ``NODE_TABLES``."""

    def __init__(self, tx: Transaction, group: str) -> None:
        self._tx = tx
        self._group = group

    async def run(self, statement: str, **parameters: Any) -> Rows:
        """Run one statement with the group bound."""
        return await self._tx.run(statement, group_id=self._group, **parameters)

    async def stored(self, table: str, uuids: Sequence[str], columns: str = "") -> dict[str, Any]:
        """Return what is stored by uuid: a row each, with the ``columns`` asked (``, n.name AS name …``).

        Raises:
            NotFound: One of them belongs to another group.
        """
        statement = f"{IDS} MATCH (n:{table} {{uuid: id}}) RETURN n.uuid AS uuid, n.group_id = $group_id AS ours{columns}"
        found: dict[str, Any] = {}
        for part in parts(uuids):
            for row in await self.run(statement, uuids=joined(part)):
                if not row["ours"]:
                    raise NotFound(_NAMES[table])
                found[row["uuid"]] = row
        return found

    async def require(self, table: str, uuids: Collection[str]) -> None:
        """Raise NotFound unless all of the rows exist in the group."""
        if len(await self.stored(table, sorted(uuids))) < len(uuids):
            raise NotFound(_NAMES[table])

    async def upsert(
        self, table: str, rows: Mapping[str, Mapping[str, Any]], stored: Collection[str]
    ) -> None:
        """Create or update rows.

        Args:
            table: Where.
            rows: The columns to write by uuid, the same ones in each, without uuid and group.
            stored: The uuids that are there already.
        """
        for part in parts([uuid for uuid in rows if uuid not in stored]):
            await self.run(_create(table, rows[part[0]]), rows=await _columns(table, part, rows))
        for part in parts([uuid for uuid in rows if uuid in stored]):
            await self.run(_update(table, rows[part[0]]), rows=await _columns(table, part, rows))

    async def set_vectors(self, table: str, column: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors of rows that exist; other columns stay."""
        await self.upsert(
            table, {uuid: {column: vector} for uuid, vector in vectors.items()}, vectors.keys()
        )

    async def link(self, ends: Sequence[Mapping[str, str]]) -> None:
        """Join facts to their ends: each item has ``fact``, ``subject`` and ``object``; all three exist."""
        for part in parts(ends):
            await self.run(_LINK, rows=texts_table(part))

    async def unlink(self, facts: Sequence[str]) -> None:
        """Take facts off their ends."""
        for part in parts(facts):
            for statement in _UNLINK:
                await self.run(statement, uuids=list(part))

    async def owned(self, table: str, uuids: Sequence[str]) -> list[str]:
        """Return those of the uuids that exist in the group, once each."""
        found: list[str] = []
        for part in parts(list(dict.fromkeys(uuids))):
            found += [row["uuid"] for row in await self.run(own(table), uuids=joined(part))]
        return found

    async def delete(self, table: str, uuids: Sequence[str]) -> int:
        """Delete rows that exist, with their edges; return how many."""
        statement = f"UNWIND $uuids AS id MATCH (n:{table} {{uuid: id}}) WHERE n.group_id = $group_id DETACH DELETE n"
        for part in parts(uuids):
            await self.run(statement, uuids=list(part))
        return len(uuids)


def parts(items: Sequence[_T]) -> list[Sequence[_T]]:
    """Return slices that one statement takes."""
    return slices(items, _ROWS_AT_ONCE)


def texts_table(rows: Sequence[Mapping[str, str]]) -> Any:
    """Return one or more rows of texts, the same columns in each, as an Arrow table."""
    return _arrow.table(
        {name: _arrow.array([row[name] for row in rows], type=_TYPES["STRING"]) for name in rows[0]}
    )


def _create(table: str, row: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{name}: {name}" for name in ("uuid", *row))
    return f"LOAD FROM $rows CREATE (:{table} {{{columns}, group_id: $group_id}})"


def _update(table: str, row: Mapping[str, Any]) -> str:
    columns = ", ".join(f"n.{name} = {name}" for name in row)
    return f"LOAD FROM $rows MATCH (n:{table} {{uuid: uuid}}) WHERE n.group_id = $group_id SET {columns}"


async def _columns(table: str, uuids: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the rows as an Arrow table; InvalidRequest when a text is none (half of a surrogate pair)."""
    try:
        if len(uuids) <= _QUICK:
            return _table(table, uuids, rows)
        return await asyncio.to_thread(_table, table, uuids, rows)
    except (ValueError, TypeError, OverflowError):
        raise InvalidRequest(
            _NAMES[table], "has a text that is not Unicode, or a value of a wrong type"
        ) from None


def _table(table: str, uuids: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> Any:
    kinds = NODE_TABLES[table]
    columns = {"uuid": _arrow.array(list(uuids), type=_TYPES["STRING"])}
    for name in rows[uuids[0]]:
        values = [rows[uuid][name] for uuid in uuids]
        columns[name] = (
            _lists(values)
            if kinds[name] == "FLOAT[]"
            else _arrow.array(values, type=_TYPES[kinds[name]])
        )
    return _arrow.table(columns)


def _lists(vectors: Sequence[Vector]) -> Any:
    # Ten times faster than a list of arrays. Their lengths may differ: two models may have met in one graph.
    ends = np.cumsum([0, *(len(vector) for vector in vectors)], dtype=np.int32)
    return _arrow.ListArray.from_arrays(ends, np.concatenate(vectors, dtype=np.float32))
