"""The graph of one entity on an embedded database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pps.core.errors import StoreConflict
from pps.core.time import now
from pps.core.values import Episode, Fact, Node, Vector
from pps.graph import embedded_statements as statements
from pps.graph.embedded_reads import EmbeddedReads, rows_of
from pps.graph.embedded_write import EmbeddedWriter, parts, texts_table
from pps.graph.mapping import (
    attributes_text,
    fact_pps,
    foreign_attributes,
    mention_id,
    node_labels,
    node_pps,
)

_T = TypeVar("_T")
_Row = Mapping[str, Any]
_TRIES = 5
_TABLES = ("RelatesToNode_", "Entity", "Episodic", "Community", "Saga")
_STORED_NODE = ", n.attributes AS attributes"
_STORED_FACT = ", n.attributes AS attributes, n.source_node_uuid AS subject, n.target_node_uuid AS object"


class EmbeddedStore(EmbeddedReads):
    """``GraphStore`` on LadybugDB; every method is documented there.

    Args:
        executor: The driver, or the guard around it.
        group: The one group of this store, for life.

    Raises:
        StoreConflict: From a write that lost its transaction five times; safe to call again.
    """

    async def save_nodes(self, nodes: Sequence[Node], vectors: Mapping[str, Vector]) -> None:
        """Create or update nodes."""
        latest = {node.uuid: node for node in nodes}
        labels = {uuid: node_labels(node) for uuid, node in latest.items()}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("Entity", list(latest), _STORED_NODE)
            rows = {uuid: _node_row(node, labels[uuid], stored.get(uuid)) for uuid, node in latest.items()}
            await writer.upsert("Entity", rows, stored.keys())
            await writer.set_vectors("Entity", "name_embedding", _of(vectors, latest))

        if latest:
            await self._atomically(work)

    async def save_facts(self, facts: Sequence[Fact], vectors: Mapping[str, Vector]) -> None:
        """Create or update facts."""
        latest = {fact.uuid: fact for fact in facts}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("RelatesToNode_", list(latest), _STORED_FACT)
            await writer.require("Entity", {end for fact in latest.values() for end in (fact.subject, fact.object)})
            rows = {uuid: _fact_row(fact, stored.get(uuid)) for uuid, fact in latest.items()}
            await writer.upsert("RelatesToNode_", rows, stored.keys())
            moved = [uuid for uuid, row in stored.items() if _moved(latest[uuid], row)]
            await writer.unlink(moved)
            joined = [latest[uuid] for uuid in latest if uuid not in stored] + [latest[uuid] for uuid in moved]
            await writer.link([{"fact": one.uuid, "subject": one.subject, "object": one.object} for one in joined])
            await writer.set_vectors("RelatesToNode_", "fact_embedding", _of(vectors, latest))

        if latest:
            await self._atomically(work)

    async def save_episodes(self, episodes: Sequence[Episode]) -> None:
        """Create or update episodes."""
        rows = {episode.uuid: _episode_row(episode) for episode in episodes}

        async def work(writer: EmbeddedWriter) -> None:
            stored = await writer.stored("Episodic", list(rows))
            await writer.upsert("Episodic", rows, stored.keys())

        if rows:
            await self._atomically(work)

    async def save_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Join (episode, node) pairs."""
        wanted = dict.fromkeys(pairs)
        episodes = list(dict.fromkeys(episode for episode, _ in wanted))

        async def work(writer: EmbeddedWriter) -> None:
            await writer.require("Episodic", episodes)
            await writer.require("Entity", {node for _, node in wanted})
            rows = await rows_of(writer.run, statements.MENTIONED, episodes)
            joined = {(row["episode"], row["node"]) for row in rows}
            fresh = [
                {"episode": episode, "node": node, "uuid": mention_id(self._group, episode, node)}
                for episode, node in wanted
                if (episode, node) not in joined
            ]
            for part in parts(fresh):
                await writer.run(statements.MENTION, rows=texts_table(part), at=now())

        if wanted:
            await self._atomically(work)

    async def delete_mentions(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Part (episode, node) pairs."""
        rows = [{"episode": episode, "node": node} for episode, node in dict.fromkeys(pairs)]

        async def work(writer: EmbeddedWriter) -> None:
            for part in parts(rows):
                await writer.run(statements.UNMENTION, rows=list(part))

        if rows:
            await self._atomically(work)

    async def delete_nodes(self, uuids: Sequence[str]) -> int:
        """Delete nodes with their facts, mentions and memberships."""

        async def work(writer: EmbeddedWriter) -> int:
            present = await writer.owned("Entity", uuids)
            links = await rows_of(writer.run, statements.LINKS, present)
            await writer.delete("RelatesToNode_", sorted({row["fact"] for row in links}))
            return await writer.delete("Entity", present)

        return await self._atomically(work)

    async def delete_facts(self, uuids: Sequence[str]) -> int:
        """Delete facts."""
        return await self._delete("RelatesToNode_", uuids)

    async def delete_episodes(self, uuids: Sequence[str]) -> int:
        """Delete episodes with their mentions."""
        return await self._delete("Episodic", uuids)

    async def clear(self) -> None:
        """Delete everything of the group."""

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
                    return await work(EmbeddedWriter(tx, self._group))
            except StoreConflict:
                if attempt == _TRIES:
                    raise
        raise AssertionError("the last try returns or raises")


def _node_row(node: Node, labels: list[str], stored: _Row | None) -> dict[str, Any]:
    kept = foreign_attributes(stored["attributes"]) if stored else {}
    return {
        "name": node.name,
        "labels": labels,
        "created_at": node.created_at,
        "summary": node.summary,
        "attributes": attributes_text(node_pps(node, kept), kept),
    }


def _fact_row(fact: Fact, stored: _Row | None) -> dict[str, Any]:
    kept = foreign_attributes(stored["attributes"]) if stored else {}
    return {
        "source_node_uuid": fact.subject,
        "target_node_uuid": fact.object,
        "name": fact.relation,
        "fact": fact.text,
        "episodes": list(fact.episodes),
        "created_at": fact.created_at,
        "expired_at": fact.expired_at,
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        "attributes": attributes_text(fact_pps(fact, kept), kept),
    }


def _episode_row(episode: Episode) -> dict[str, Any]:
    return {
        "name": episode.name,
        "created_at": episode.created_at,
        "source": episode.source,
        "source_description": episode.description,
        "content": episode.content,
        "valid_at": episode.valid_at,
        "entity_edges": list(episode.facts),
    }


def _moved(fact: Fact, stored: _Row) -> bool:
    return (stored["subject"], stored["object"]) != (fact.subject, fact.object)


def _of(vectors: Mapping[str, Vector], uuids: Mapping[str, object]) -> dict[str, Vector]:
    return {uuid: vectors[uuid] for uuid in uuids if uuid in vectors}
