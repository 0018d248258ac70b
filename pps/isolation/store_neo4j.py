"""The graph of one entity on a shared Neo4j: a Graphiti graph, with vectors, for stock Graphiti."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack

import numpy as np
import orjson

from pps.core.errors import InvalidRequest, NotFound, StoreConflict
from pps.core.time import now, utc
from pps.core.values import JSON, Episode, Fact, GraphCounts, Node, Vector
from pps.graph import mapping
from pps.graph.graph_store import (
    CypherStore,
    GraphTimelineOptions,
    Rows,
    Transaction,
    as_of_bounds,
    slices,
)
from pps.graph.mapping import FACT_TIMES, episode_of, fact_of, node_of, parse_cursor
from pps.isolation import neo4j_cypher as cypher
from pps.store.graph_rows import StoredFact, StoredNode

_TIMES = frozenset(FACT_TIMES)
_MOST_OF_TIMELINE = 1_000
_HOLDS = (
    "coalesce(e.valid_at <= $as_of, true)",
    # Given up without an end in world time: it never held.
    "coalesce(e.invalid_at > $as_of_first, e.expired_at IS NULL)",
)

_T = TypeVar("_T")
_Item = TypeVar("_Item", Node, Fact, Episode, StoredNode)
_Row = dict[str, Any]

_BATCH = 1_000
_CLEARED_AT_ONCE = 5_000
_TRIES = 6
_FIRST_DELAY_S = 0.02


class Neo4jStore(CypherStore):
    """A ``GraphStore`` on Neo4j.

    Each batch of a write first reads the rows of its ids. An id of another group raises NotFound.
    An id that another group creates at the same moment violates the uniqueness constraint, and the
    second try finds it.
    """

    _statements = cypher.BY_UUID

    async def scan_nodes(self, after: str, limit: int) -> list[Node]:
        return [
            node_of(row) for row in await self._read(cypher.SCAN_NODES, after=after, limit=limit)
        ]

    async def scan_facts(self, after: str, limit: int) -> list[Fact]:
        return await self._facts(cypher.SCAN_FACTS, after=after, limit=limit)

    async def scan_episodes(self, after: str, limit: int) -> list[Episode]:
        return [
            episode_of(row)
            for row in await self._read(cypher.SCAN_EPISODES, after=after, limit=limit)
        ]

    async def facts_of_nodes(self, uuids: Sequence[str], limit: int) -> list[Fact]:
        if not uuids or limit <= 0:
            return []
        return await self._facts(cypher.FACTS_OF_NODES, uuids=_once(uuids), limit=limit)

    async def facts_of_episodes(self, uuids: Sequence[str]) -> list[Fact]:
        # Neo4j has no index into lists, so this looks at every fact of the group (about 2 µs each).
        return await self._facts(cypher.FACTS_OF_EPISODES, uuids=_once(uuids)) if uuids else []

    async def facts_between(self, pairs: Sequence[tuple[str, str]]) -> list[Fact]:
        rows = [{"subject": subject, "object": target} for subject, target in dict.fromkeys(pairs)]
        return await self._facts(cypher.FACTS_BETWEEN, rows=rows) if rows else []

    async def timeline(self, **options: Unpack[GraphTimelineOptions]) -> list[Fact]:
        limit = options.get("limit", 100)
        if not 1 <= limit <= _MOST_OF_TIMELINE:
            raise InvalidRequest("limit", f"must be 1 to {_MOST_OF_TIMELINE}")
        parameters, conditions = _timeline_filters(options)
        cursor = options.get("cursor", "")
        at, last = parse_cursor(cursor) if cursor else (None, "")
        of_node = options.get("node") is not None
        facts = list[Fact]()
        if not cursor or at is not None:
            since = [cypher.after_last()] if at else []
            statement = cypher.timeline(node=of_node, dated=True, conditions=[*conditions, *since])
            facts = await self._facts(statement, **parameters, at=at, last=last, limit=limit)
        bounded = options.get("after") is not None or options.get("before") is not None
        if len(facts) < limit and not bounded:
            last = last if at is None else ""
            statement = cypher.timeline(node=of_node, dated=False, conditions=conditions)
            facts += await self._facts(statement, **parameters, last=last, limit=limit - len(facts))
        return facts

    async def counts(self) -> GraphCounts:
        row = await self._read_one(cypher.COUNTS)
        return GraphCounts(**{name: int(row[name]) for name in GraphCounts.__dataclass_fields__})

    async def foreign_edges(self) -> int:
        return int((await self._read_one(cypher.FOREIGN_EDGES))["edges"])

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

    async def _has(self, node: str) -> bool:
        return (await self._read_one(cypher.OWN_NODES, uuids=[node]))["found"] == 1

    async def _links(self, uuids: Sequence[str]) -> Rows:
        return await self._read(cypher.LINKS, uuids=list(uuids))

    async def _mentions(self, episodes: Sequence[str]) -> Rows:
        return await self._by_uuid(cypher.MENTIONED, episodes)

    async def _by_uuid(self, statement: str, uuids: Sequence[str]) -> Rows:
        return await self._read(statement, uuids=_once(uuids)) if uuids else []

    async def _facts(self, statement: str, **parameters: Any) -> list[Fact]:
        return [fact_of(row) for row in await self._read(statement, **parameters)]

    async def _read(self, statement: str, **parameters: Any) -> Rows:
        """Return the rows of a reading statement as a list, with attributes as mappings."""
        return readable((await self._read_one(statement, **parameters))["rows"])

    async def _read_one(self, statement: str, **parameters: Any) -> dict[str, Any]:
        """Return the one record of a statement that changes nothing."""
        rows, _, _ = await self._executor.execute_query(
            statement, group_id=self.group, routing_="r", **parameters
        )
        (record,) = rows
        return record

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


def readable(rows: Rows) -> Rows:
    """Return rows in the shape that ``mapping`` reads; ``neo4j_cypher`` documents the columns."""
    for place, row in enumerate(rows):
        if row.get("attributes") is not None:
            row = rows[place] = {**row["attributes"], **row}
        for name in _TIMES & row.keys():
            if row[name] is not None:
                row[name] = str(row[name]).partition("[")[0]  # a zone's name may follow the offset
    return rows


def _timeline_filters(options: GraphTimelineOptions) -> tuple[dict[str, Any], list[str]]:
    parameters: dict[str, Any] = {"node": options.get("node"), "relation": options.get("relation")}
    conditions = ["e.name = $relation"] if options.get("relation") is not None else []
    for name, condition in (("after", "e.valid_at >= $after"), ("before", "e.valid_at < $before")):
        moment = options.get(name)
        if moment is not None:
            parameters[name] = utc(moment, name)
            conditions.append(condition)
    bounds = as_of_bounds(options)
    if bounds:
        parameters["as_of_first"], parameters["as_of"] = bounds
        conditions.extend(_HOLDS)
    return parameters, conditions


def _once(uuids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(uuids))


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
