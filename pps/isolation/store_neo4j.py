"""The graph of one entity on a shared Neo4j: a Graphiti graph, with vectors, for stock Graphiti."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import orjson

from pps.core.errors import NotFound, StoreConflict
from pps.core.time import now
from pps.core.values import JSON, Episode, Fact, Node, Vector
from pps.graph import mapping
from pps.graph.graph_store import Rows, Transaction, slices
from pps.isolation import neo4j_cypher as cypher
from pps.isolation.neo4j_reads import Neo4jReads, readable
from pps.store.graph_rows import StoredFact, StoredNode

_T = TypeVar("_T")
_Item = TypeVar("_Item", Node, Fact, Episode, StoredNode)
_Row = dict[str, Any]

_BATCH = 1_000
_CLEARED_AT_ONCE = 5_000
_TRIES = 6
_FIRST_DELAY_S = 0.02


class Neo4jStore(Neo4jReads):
    """A ``GraphStore`` on Neo4j.

    Each batch of a write first reads the rows of its ids. An id of another group raises NotFound.
    An id that another group creates at the same moment violates the uniqueness constraint, and the
    second try finds it.
    """

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        async def work(transaction: Transaction) -> None:
            for batch in slices(_latest(nodes), _BATCH):
                existing = await self._existing(transaction, cypher.EXISTING_NODES, batch)
                rows = [
                    _node_row(node, existing.get(node.uuid))
                    | {"vector": _digits(vectors.get(node.uuid))}
                    for node in batch
                ]
                await self._run_rows(transaction, cypher.SAVE_NODES, rows)

        await self._write(nodes, work)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        async def work(transaction: Transaction) -> None:
            for batch in slices(_latest(facts), _BATCH):
                nodes = [*(fact.subject for fact in batch), *(fact.object for fact in batch)]
                await self._own(transaction, cypher.OWN_NODES, nodes)
                existing = await self._existing(transaction, cypher.EXISTING_FACTS, batch)
                old = [
                    _fact_row(fact, existing[fact.uuid]) for fact in batch if fact.uuid in existing
                ]
                moved = [row for row in old if _moved(row, existing[row["uuid"]])]
                await self._run_rows(transaction, cypher.MOVE_FACTS, moved)
                await self._run_rows(transaction, cypher.UPDATE_FACTS, old)
                vector_rows = [
                    {"uuid": row["uuid"], "vector": _digits(vectors.get(row["uuid"]))}
                    for row in old
                ]
                await self._run_rows(
                    transaction,
                    cypher.SET_FACT_VECTORS,
                    [row for row in vector_rows if row["vector"]],
                )
                new = [fact for fact in batch if fact.uuid not in existing]
                if new:
                    await self._run(transaction, cypher.CREATE_FACTS, **_fact_columns(new, vectors))

        await self._write(facts, work)

    async def save_stored_nodes(
        self, nodes: Sequence[StoredNode], vectors: Mapping[str, Vector]
    ) -> None:
        """Create or update nodes with Graphiti's labels and attributes; as ``save_nodes``."""

        async def work(transaction: Transaction) -> None:
            for batch in slices(_latest(nodes), _BATCH):
                existing = await self._existing(transaction, cypher.EXISTING_NODES, batch)
                rows = [
                    _stored_node_row(node, existing.get(node.uuid))
                    | {"vector": _digits(vectors.get(node.uuid))}
                    for node in batch
                ]
                await self._run_rows(transaction, cypher.SAVE_NODES, rows)

        await self._write(nodes, work)

    async def save_stored_facts(
        self, facts: Sequence[StoredFact], vectors: Mapping[str, Vector]
    ) -> None:
        """Create or update facts with Graphiti's attributes and reference times."""
        await self.save_facts([stored.fact for stored in facts], vectors)
        special = [stored for stored in facts if stored.graphiti or stored.reference_time]

        async def work(transaction: Transaction) -> None:
            for batch in slices(special, _BATCH):
                rows = [_stored_fact_row(stored) for stored in batch]
                await self._run_rows(transaction, cypher.UPDATE_FACTS, rows)

        await self._write(special, work)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        async def work(transaction: Transaction) -> None:
            for batch in slices(_latest(episodes), _BATCH):
                await self._existing(transaction, cypher.EXISTING_EPISODES, batch)
                rows = [
                    {"uuid": episode.uuid, "data": _as_text(mapping.episode_columns(episode))}
                    for episode in batch
                ]
                await self._run_rows(transaction, cypher.SAVE_EPISODES, rows)

        await self._write(episodes, work)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        async def work(transaction: Transaction) -> None:
            for batch in slices(list(dict.fromkeys(pairs)), _BATCH):
                await self._own(transaction, cypher.OWN_EPISODES, (episode for episode, _ in batch))
                await self._own(transaction, cypher.OWN_NODES, (node for _, node in batch))
                columns = {
                    "ids": mapping.joined(
                        [mapping.mention_id(self.group, *pair) for pair in batch]
                    ),
                    "subjects": mapping.joined([episode for episode, _ in batch]),
                    "objects": mapping.joined([node for _, node in batch]),
                }
                await self._run(transaction, cypher.SAVE_MENTIONS, **columns, now=now())

        await self._write(pairs, work)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        rows = [{"episode": episode, "node": node} for episode, node in dict.fromkeys(pairs)]

        async def work(transaction: Transaction) -> None:
            for batch in slices(rows, _BATCH):
                await self._run_rows(transaction, cypher.DELETE_MENTIONS, batch)

        await self._write(pairs, work)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        return await self._delete(cypher.DELETE_NODES, uuids)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        return await self._delete(cypher.DELETE_FACTS, uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        return await self._delete(cypher.DELETE_EPISODES, uuids)

    async def clear(self) -> None:
        """Delete everything of the group, some thousand items per transaction; can be repeated."""
        for statement in cypher.CLEAR:
            while await self._clear_some(statement):
                pass

    async def _clear_some(self, statement: str) -> bool:
        async def work(transaction: Transaction) -> int:
            (row,) = await self._run(transaction, statement, limit=_CLEARED_AT_ONCE)
            return int(row["gone"])

        return await self._atomically(work) == _CLEARED_AT_ONCE

    async def _write(
        self, items: Collection[object], work: Callable[[Transaction], Awaitable[None]]
    ) -> None:
        if items:
            await self._atomically(work)

    async def _delete(self, statement: str, uuids: Sequence[str]) -> int:
        async def work(transaction: Transaction) -> int:
            gone = 0
            for batch in slices(list(dict.fromkeys(uuids)), _BATCH):
                (row,) = await self._run(transaction, statement, uuids=list(batch))
                gone += int(row["gone"])
            return gone

        return await self._atomically(work) if uuids else 0

    async def _atomically(self, work: Callable[[Transaction], Awaitable[_T]]) -> _T:
        """Run work in one transaction; run it again when it conflicts with another transaction.

        The work may run several times, so it must compute everything from what it reads.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._executor.transaction() as transaction:
                    return await work(transaction)
            except StoreConflict:
                if attempt == _TRIES:
                    raise
            jitter = random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(_FIRST_DELAY_S * 2**attempt * jitter)
        raise AssertionError("the last try returns or raises")

    async def _run(self, transaction: Transaction, statement: str, **parameters: Any) -> Rows:
        return await transaction.run(statement, group_id=self.group, **parameters)

    async def _run_rows(
        self, transaction: Transaction, statement: str, rows: Sequence[_Row]
    ) -> None:
        """Run a statement that unwinds rows; without rows, do nothing."""
        if rows:
            await self._run(transaction, statement, rows=list(rows))

    async def _existing(
        self, transaction: Transaction, statement: str, items: Sequence[_Item]
    ) -> dict[str, _Row]:
        """Return uuid → the stored row of the items; NotFound if an id belongs to another group."""
        (record,) = await self._run(transaction, statement, uuids=[item.uuid for item in items])
        rows = readable(record["rows"])
        if not all(row["ours"] for row in rows):
            raise NotFound()
        return {str(row["uuid"]): row for row in rows}

    async def _own(self, transaction: Transaction, statement: str, uuids: Iterable[str]) -> None:
        """Raise NotFound unless every id belongs to the group."""
        for batch in slices(list(dict.fromkeys(uuids)), _BATCH):
            (row,) = await self._run(transaction, statement, uuids=list(batch))
            if row["found"] != len(batch):
                raise NotFound()


def _latest(items: Sequence[_Item]) -> list[_Item]:
    """Return items with each id once: of several with the same id, the last."""
    return list({item.uuid: item for item in items}.values())


def _node_row(node: Node, stored: _Row | None) -> _Row:
    labels = mapping.node_labels(node)
    foreign = mapping.foreign_attributes(stored["attributes"]) if stored else None
    data = {
        **_as_text(mapping.node_columns(node)),
        mapping.ATTRIBUTE: mapping.node_pps(node, foreign),
    }
    dropped = [label for label in stored["labels"] if label not in labels] if stored else []
    return {"uuid": node.uuid, "labels": labels, "dropped": dropped, "data": data}


def _fact_row(fact: Fact, stored: _Row) -> _Row:
    pps = mapping.fact_pps(fact, mapping.foreign_attributes(stored["attributes"]))
    data = {**_as_text(mapping.fact_columns(fact)), mapping.ATTRIBUTE: pps}
    return {"uuid": fact.uuid, "subject": fact.subject, "object": fact.object, "data": data}


def _stored_node_row(stored: StoredNode, existing: _Row | None) -> _Row:
    node = stored.node
    properties = _as_properties(stored.graphiti)
    labels = sorted({*mapping.node_labels(node), *stored.labels})
    data = {
        **properties,
        **_as_text(mapping.node_columns(node)),
        mapping.ATTRIBUTE: mapping.node_pps(node, properties),
    }
    dropped = [label for label in existing["labels"] if label not in labels] if existing else []
    return {"uuid": node.uuid, "labels": labels, "dropped": dropped, "data": data}


def _stored_fact_row(stored: StoredFact) -> _Row:
    fact = stored.fact
    properties = _as_properties(stored.graphiti)
    data = {
        **properties,
        **_as_text(mapping.fact_columns(fact)),
        mapping.ATTRIBUTE: mapping.fact_pps(fact, properties),
    }
    if stored.reference_time is not None:
        data["reference_time"] = stored.reference_time
    return {"uuid": fact.uuid, "subject": fact.subject, "object": fact.object, "data": data}


def _as_properties(attributes: Mapping[str, JSON]) -> _Row:
    """Return the attributes that can be properties: texts, numbers, booleans and lists of texts."""
    return {
        name: value
        for name, value in attributes.items()
        if isinstance(value, (str, int, float, bool))
        or (isinstance(value, list) and value and all(isinstance(text, str) for text in value))
    }


def _fact_columns(facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> dict[str, Any]:
    """Return new facts as the columns that ``CREATE_FACTS`` takes."""
    times = [mapping.fact_times(fact) for fact in facts]
    time_columns: dict[str, str] = {}
    for name in mapping.FACT_TIMES:
        time_columns[name] = mapping.joined([_text(of_fact[name]) for of_fact in times])
    return {
        "ids": mapping.joined([fact.uuid for fact in facts]),
        "subjects": mapping.joined([fact.subject for fact in facts]),
        "objects": mapping.joined([fact.object for fact in facts]),
        "episodes": mapping.joined([" ".join(fact.episodes) for fact in facts]),
        **time_columns,
        "names": [fact.relation for fact in facts],
        "facts": [fact.text for fact in facts],
        "pps": [mapping.fact_pps(fact, None) for fact in facts],
        "vectors": [_digits(vectors.get(fact.uuid)) for fact in facts],
    }


def _as_text(columns: Mapping[str, Any]) -> _Row:
    """Return columns with times as ISO text, which the driver sends ten times faster."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in columns.items()
    }


def _text(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def _digits(vector: Vector | None) -> str | None:
    """Return a vector as text, exact to the bit: the driver sends numbers far more slowly."""
    if vector is None:
        return None
    numbers = np.ascontiguousarray(vector, dtype=np.float32)
    return orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode().strip("[]")


def _moved(row: _Row, stored: _Row) -> bool:
    return (row["subject"], row["object"]) != (stored["subject"], stored["object"])
