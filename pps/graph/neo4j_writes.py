"""What can be changed of one group on Neo4j. A batch of any length is one transaction: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import orjson

from pps.core.errors import NotFound
from pps.core.time import now
from pps.core.values import Episode, Fact, Node, Vector
from pps.graph import mapping
from pps.graph import neo4j_cypher as cypher
from pps.graph.graph_store import Transaction
from pps.graph.neo4j_group import Neo4jGroup, batches, readable

_Item = TypeVar("_Item", Node, Fact, Episode)
_Row = dict[str, Any]

_CLEARED_AT_ONCE = 5_000


class Neo4jWrites(Neo4jGroup):
    """The writing half of ``Neo4jStore``; what each method promises stands in ``GraphStore``.

    Each batch first reads what its ids are. One of another group is NotFound; one that another group makes in
    the same moment breaks the uniqueness of ids, and the second try finds it.
    """

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        """Create or update nodes."""

        async def work(transaction: Transaction) -> None:
            for batch in batches(_latest(nodes)):
                there = await self._there(transaction, cypher.NODES_THERE, batch)
                rows = [_node_row(node, there.get(node.uuid)) | _vector(node, vectors) for node in batch]
                await self._run_rows(transaction, cypher.SAVE_NODES, rows)

        await self._write(nodes, work)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        """Create, update or move facts."""

        async def work(transaction: Transaction) -> None:
            for batch in batches(_latest(facts)):
                await self._own(transaction, cypher.OWN_NODES, (end for f in batch for end in (f.subject, f.object)))
                there = await self._there(transaction, cypher.FACTS_THERE, batch)
                old = [fact for fact in batch if fact.uuid in there]
                rows = {fact.uuid: _fact_row(fact, there[fact.uuid]) for fact in old}
                moved = [row for uuid, row in rows.items() if _moved(row, there[uuid])]
                await self._run_rows(transaction, cypher.MOVE_FACTS, moved)
                await self._run_rows(transaction, cypher.UPDATE_FACTS, list(rows.values()))
                await self._run_rows(transaction, cypher.SET_FACT_VECTORS, _vector_rows(old, vectors))
                new = [fact for fact in batch if fact.uuid not in there]
                if new:
                    await self._run(transaction, cypher.CREATE_FACTS, **_fact_columns(new, vectors))

        await self._write(facts, work)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        """Create or update episodes."""

        async def work(transaction: Transaction) -> None:
            for batch in batches(_latest(episodes)):
                await self._there(transaction, cypher.EPISODES_THERE, batch)
                await self._run_rows(transaction, cypher.SAVE_EPISODES, [_episode_row(item) for item in batch])

        await self._write(episodes, work)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Join episodes and nodes."""

        async def work(transaction: Transaction) -> None:
            for batch in batches(list(dict.fromkeys(pairs))):
                await self._own(transaction, cypher.OWN_EPISODES, (episode for episode, _ in batch))
                await self._own(transaction, cypher.OWN_NODES, (node for _, node in batch))
                columns = {
                    "ids": mapping.joined([mapping.mention_id(self.group, *pair) for pair in batch]),
                    "subjects": mapping.joined([episode for episode, _ in batch]),
                    "objects": mapping.joined([node for _, node in batch]),
                }
                await self._run(transaction, cypher.SAVE_MENTIONS, **columns, now=now())

        await self._write(pairs, work)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Part episodes and nodes."""

        async def work(transaction: Transaction) -> None:
            for batch in batches([{"episode": episode, "node": node} for episode, node in dict.fromkeys(pairs)]):
                await self._run(transaction, cypher.DELETE_MENTIONS, rows=batch)

        await self._write(pairs, work)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        """Delete nodes with their facts, mentions and memberships."""
        return await self._delete(cypher.DELETE_NODES, uuids)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        """Delete facts."""
        return await self._delete(cypher.DELETE_FACTS, uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        """Delete episodes with their mentions."""
        return await self._delete(cypher.DELETE_EPISODES, uuids)

    async def clear(self) -> None:
        """Delete everything of the group, in transactions of some thousands; it can be run again."""
        for statement in cypher.CLEAR:
            while await self._clear_some(statement):
                pass

    async def _clear_some(self, statement: str) -> bool:
        async def work(transaction: Transaction) -> int:
            (row,) = await self._run(transaction, statement, limit=_CLEARED_AT_ONCE)
            return int(row["gone"])

        return await self._atomically(work) == _CLEARED_AT_ONCE

    async def _write(self, items: Collection[object], work: Any) -> None:
        if items:
            await self._atomically(work)

    async def _delete(self, statement: str, uuids: Sequence[str]) -> int:
        async def work(transaction: Transaction) -> int:
            gone = 0
            for batch in batches(list(dict.fromkeys(uuids))):
                (row,) = await self._run(transaction, statement, uuids=list(batch))
                gone += int(row["gone"])
            return gone

        return await self._atomically(work) if uuids else 0

    async def _there(self, transaction: Transaction, statement: str, items: Sequence[_Item]) -> dict[str, _Row]:
        """Return what is stored under the items' ids already; NotFound when any of it is another group's."""
        (record,) = await self._run(transaction, statement, uuids=[item.uuid for item in items])
        rows = readable(record["rows"])
        if not all(row["ours"] for row in rows):
            raise NotFound()
        return {str(row["uuid"]): row for row in rows}

    async def _own(self, transaction: Transaction, statement: str, uuids: Iterable[str]) -> None:
        """Return when every id is the group's; NotFound otherwise."""
        wanted = list(dict.fromkeys(uuids))
        for batch in batches(wanted):
            (row,) = await self._run(transaction, statement, uuids=list(batch))
            if row["found"] != len(batch):
                raise NotFound()


def _latest(items: Sequence[_Item]) -> list[_Item]:
    """Return items with each id once: the last one given stands."""
    return list({item.uuid: item for item in items}.values())


def _node_row(node: Node, stored: _Row | None) -> _Row:
    labels = mapping.node_labels(node)
    foreign = mapping.foreign_attributes(stored["attributes"]) if stored else None
    data = {
        "name": node.name,
        "created_at": _text(node.created_at),
        "summary": node.summary,
        mapping.ATTRIBUTE: mapping.node_pps(node, foreign),
    }
    dropped = [label for label in stored["labels"] if label not in labels] if stored else []
    return {"uuid": node.uuid, "labels": labels, "dropped": dropped, "data": data}


def _fact_columns(facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> dict[str, Any]:
    """Return new facts by columns, as ``CREATE_FACTS`` takes them."""
    return {
        "ids": mapping.joined([fact.uuid for fact in facts]),
        "subjects": mapping.joined([fact.subject for fact in facts]),
        "objects": mapping.joined([fact.object for fact in facts]),
        "episodes": mapping.joined([" ".join(fact.episodes) for fact in facts]),
        **{name: mapping.joined([_text(getattr(fact, name)) or "" for fact in facts]) for name in mapping.FACT_TIMES},
        "names": [fact.relation for fact in facts],
        "facts": [fact.text for fact in facts],
        "pps": [mapping.fact_pps(fact, None) for fact in facts],
        "vectors": [_digits(vectors[fact.uuid]) if fact.uuid in vectors else None for fact in facts],
    }


def _fact_row(fact: Fact, stored: _Row) -> _Row:
    foreign = mapping.foreign_attributes(stored["attributes"])
    data = {
        "name": fact.relation,
        "fact": fact.text,
        "created_at": _text(fact.created_at),
        "episodes": list(fact.episodes),
        "valid_at": _text(fact.valid_at),
        "invalid_at": _text(fact.invalid_at),
        "expired_at": _text(fact.expired_at),
        mapping.ATTRIBUTE: mapping.fact_pps(fact, foreign),
    }
    return {**_join(fact.uuid, fact.subject, fact.object), "data": data}


def _episode_row(episode: Episode) -> _Row:
    data = {
        "name": episode.name,
        "content": episode.content,
        "valid_at": _text(episode.valid_at),
        "created_at": _text(episode.created_at),
        "source": episode.source,
        "source_description": episode.description,
        "entity_edges": list(episode.facts),
    }
    return {"uuid": episode.uuid, "data": data}


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _vector_rows(items: Sequence[_Item], vectors: Mapping[str, Vector]) -> list[_Row]:
    return [{"uuid": item.uuid, "vector": _digits(vectors[item.uuid])} for item in items if item.uuid in vectors]


def _vector(item: _Item, vectors: Mapping[str, Vector]) -> _Row:
    """Return the rest of a row that is written with its vector, or with none."""
    return {"vector": _digits(vectors[item.uuid]) if item.uuid in vectors else None}


def _digits(vector: Vector) -> str:
    """Return a vector as text, exact to the bit: the driver takes far longer to send numbers."""
    numbers = np.ascontiguousarray(vector, dtype=np.float32)
    return orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode().strip("[]")


def _join(uuid: str, subject: str, target: str) -> _Row:
    return {"uuid": uuid, "subject": subject, "object": target}


def _moved(row: _Row, stored: _Row) -> bool:
    return (row["subject"], row["object"]) != (stored["subject"], stored["object"])
