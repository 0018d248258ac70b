"""The graph tables of a file that a test opens alone, and things put into those of a journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pps.core.time import now
from pps.core.values import Fact, ItemKind, Node
from pps.index.indexes import EntityIndexes
from pps.journal.journal import Journal
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import SqlGraphStore


class OpenedTables(GraphTables):
    """Graph tables with the journal that they are in."""

    async def close(self) -> None:
        await self.journal.close()


async def open_graph_file(
    path: Path, group: str, remedy: str = "", indexes: EntityIndexes | None = None
) -> OpenedTables:
    """Open the file of a group's memory, or make it; errors as ``Journal.open``."""
    return OpenedTables(await Journal.open(path, group), remedy, indexes)


async def save_nodes(journal: Journal, nodes: Iterable[Node]) -> None:
    """Write nodes into the graph's tables, as the worker does, without a vector."""
    await SqlGraphStore(GraphTables(journal)).save_nodes(list(nodes), {})


async def save_facts(journal: Journal, facts: Iterable[Fact]) -> None:
    """Write facts; an end that is no node yet becomes a plain one."""
    store, wanted = SqlGraphStore(GraphTables(journal)), list(facts)
    ends = sorted({end for fact in wanted for end in (fact.subject, fact.object)})
    known = {node.uuid for node in await store.nodes(ends)}
    await store.save_nodes([Node(end, end, now()) for end in ends if end not in known], {})
    await store.save_facts(wanted, {})


async def delete_items(journal: Journal, kind: ItemKind, ids: Sequence[str]) -> None:
    """Delete nodes with their facts, facts, or episodes."""
    store = SqlGraphStore(GraphTables(journal))
    delete = {
        "node": store.delete_nodes,
        "fact": store.delete_facts,
        "episode": store.delete_episodes,
    }
    await delete[kind](ids)
