"""A process that saves facts until it is killed, and says on stdout which are saved.

Run as ``python -m tests.integration.graph_writer PATH GROUP CHECKPOINT_BYTES``. It stands on the pool itself, without
Graphiti, whose import would be most of its life.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pps.core.values import Fact, Node
from pps.graph.graph_store import Rows
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.ladybug_pool import LadybugPool, LadybugTransaction
from pps.graph.store_embedded import EmbeddedStore


class OnPool:
    """The store's executor without a driver around the pool."""

    def __init__(self, pool: LadybugPool) -> None:
        self._pool = pool

    async def execute_query(self, query: str, /, **parameters: Any) -> tuple[Rows, None, None]:
        return await self._pool.execute(query, parameters), None, None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[OnPool.Transaction]:
        async with self._pool.transaction() as transaction:
            yield OnPool.Transaction(transaction)

    class Transaction:
        def __init__(self, inner: LadybugTransaction) -> None:
            self._inner = inner

        async def run(self, query: str, /, **parameters: Any) -> Rows:
            return await self._inner.run(query, parameters)


async def write_for_ever(path: Path, group: str, checkpoint_bytes: int) -> None:
    pool = await LadybugPool.open(path, LadybugOptions(checkpoint_bytes=checkpoint_bytes))
    store = EmbeddedStore(OnPool(pool), group)
    at = datetime.now(UTC)
    while True:
        nodes = [Node(str(uuid.uuid4()), "n" * 200, at) for _ in range(20)]
        facts = [
            Fact(str(uuid.uuid4()), nodes[0].uuid, node.uuid, "KNOWS", "f" * 300, at)
            for node in nodes
        ]
        vectors = {fact.uuid: np.ones(64, dtype=np.float32) for fact in facts}
        await store.save_nodes(nodes, {})
        await store.save_facts(facts, vectors)
        sys.stdout.write("".join(f"{fact.uuid}\n" for fact in facts))
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write_for_ever(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
