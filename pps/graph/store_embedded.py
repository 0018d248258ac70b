"""The graph of one entity on an embedded database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pps.core.errors import StoreConflict
from pps.core.time import now
from pps.core.values import Episode, Fact, Node, Vector
from pps.graph import mapping
from pps.graph.embedded_reads import LINKS, MENTIONED, EmbeddedReads, rows_of
from pps.graph.embedded_write import EmbeddedWriter, parts, texts_table

_T = TypeVar("_T")
_Row = Mapping[str, Any]
_TRIES = 5
_TABLES = ("RelatesToNode_", "Entity", "Episodic", "Community", "Saga")
_STORED_NODE = ", n.attributes AS attributes"
_STORED_FACT = (
    ", n.attributes AS attributes, n.source_node_uuid AS subject, n.target_node_uuid AS object"
)

MENTION = """
LOAD FROM $rows
MATCH (p:Episodic {uuid: episode})
MATCH (n:Entity {uuid: node})
CREATE (p)-[:MENTIONS {uuid: uuid, group_id: $group_id, created_at: $at}]->(n)"""
UNMENTION = """
UNWIND $rows AS row
MATCH (p:Episodic {uuid: row.episode})-[m:MENTIONS]->(n:Entity {uuid: row.node})
WHERE m.group_id = $group_id DELETE m"""


class EmbeddedStore(EmbeddedReads):
    """A ``GraphStore`` on LadybugDB.

    Raises:
        StoreConflict: From a write that lost its transaction five times; safe to call again.
    """

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        latest = {node.uuid: node for node in nodes}
        labels = {uuid: mapping.node_labels(node) for uuid, node in latest.items()}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("Entity", list(latest), _STORED_NODE)
            rows = {
                uuid: mapping.node_columns(node)
                | {
                    "labels": labels[uuid],
                    "attributes": _attributes(stored.get(uuid), node, mapping.node_pps),
                }
                for uuid, node in latest.items()
            }
            await writer.upsert("Entity", rows, stored.keys())
            await writer.set_vectors("Entity", "name_embedding", _of(vectors, latest))

        if latest:
            await self._atomically(work)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        latest = {fact.uuid: fact for fact in facts}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("RelatesToNode_", list(latest), _STORED_FACT)
            await writer.require(
                "Entity", {end for fact in latest.values() for end in (fact.subject, fact.object)}
            )
            rows = {
                uuid: {"source_node_uuid": fact.subject, "target_node_uuid": fact.object}
                | mapping.fact_columns(fact)
                | {"attributes": _attributes(stored.get(uuid), fact, mapping.fact_pps)}
                for uuid, fact in latest.items()
            }
            await writer.upsert("RelatesToNode_", rows, stored.keys())
            moved = [uuid for uuid, row in stored.items() if _moved(latest[uuid], row)]
            await writer.unlink(moved)
            joined = [latest[uuid] for uuid in latest if uuid not in stored] + [
                latest[uuid] for uuid in moved
            ]
            await writer.link(
                [{"fact": one.uuid, "subject": one.subject, "object": one.object} for one in joined]
            )
            await writer.set_vectors("RelatesToNode_", "fact_embedding", _of(vectors, latest))

        if latest:
            await self._atomically(work)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        rows = {episode.uuid: mapping.episode_columns(episode) for episode in episodes}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("Episodic", list(rows))
            await writer.upsert("Episodic", rows, stored.keys())

        if rows:
            await self._atomically(work)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        wanted = dict.fromkeys(pairs)
        episodes = list(dict.fromkeys(episode for episode, _ in wanted))

        async def work(writer: EmbeddedWriter) -> None:
            await writer.require("Episodic", episodes)
            await writer.require("Entity", {node for _, node in wanted})
            rows = await rows_of(writer.run, MENTIONED, episodes)
            joined = {(row["episode"], row["node"]) for row in rows}
            fresh = [
                {
                    "episode": episode,
                    "node": node,
                    "uuid": mapping.mention_id(self.group, episode, node),
                }
                for episode, node in wanted
                if (episode, node) not in joined
            ]
            for part in parts(fresh):
                await writer.run(MENTION, rows=texts_table(part), at=now())

        if wanted:
            await self._atomically(work)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        rows = [{"episode": episode, "node": node} for episode, node in dict.fromkeys(pairs)]

        async def work(writer: EmbeddedWriter) -> None:
            for part in parts(rows):
                await writer.run(UNMENTION, rows=list(part))

        if rows:
            await self._atomically(work)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        async def work(writer: EmbeddedWriter) -> int:
            present = await writer.owned("Entity", uuids)
            links = await rows_of(writer.run, LINKS, present)
            await writer.delete("RelatesToNode_", sorted({row["fact"] for row in links}))
            return await writer.delete("Entity", present)

        return await self._atomically(work)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        return await self._delete("RelatesToNode_", uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        return await self._delete("Episodic", uuids)

    async def clear(self) -> None:
        async def work(writer: EmbeddedWriter) -> None:
            for table in _TABLES:
                await writer.run(f"MATCH (n:{table}) WHERE n.group_id = $group_id DETACH DELETE n")

        await self._atomically(work)

    async def _delete(self, table: str, uuids: Sequence[str]) -> int:
        async def work(writer: EmbeddedWriter) -> int:
            return await writer.delete(table, await writer.owned(table, uuids))

        return await self._atomically(work)

    async def _atomically(self, work: Callable[[EmbeddedWriter], Awaitable[_T]]) -> _T:
        """Run work in one transaction; again when it lost it (the buffer pool was too small and has grown)."""
        for attempt in range(1, _TRIES + 1):
            try:
                async with self._executor.transaction() as tx:
                    return await work(EmbeddedWriter(tx, self.group))
            except StoreConflict:
                if attempt == _TRIES:
                    raise
        raise AssertionError("the last try returns or raises")


def _attributes(
    stored: _Row | None, item: Any, pps_of: Callable[[Any, Mapping[str, Any]], str]
) -> str:
    """Return the column ``attributes``: ours beside what Graphiti's pipeline keeps there."""
    kept = mapping.foreign_attributes(stored["attributes"]) if stored else {}
    return mapping.attributes_text(pps_of(item, kept), kept)


def _moved(fact: Fact, stored: _Row) -> bool:
    return (stored["subject"], stored["object"]) != (fact.subject, fact.object)


def _of(vectors: Mapping[str, Vector], uuids: Mapping[str, object]) -> dict[str, Vector]:
    return {uuid: vectors[uuid] for uuid in uuids if uuid in vectors}
