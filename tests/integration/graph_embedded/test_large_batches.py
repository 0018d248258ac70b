"""The embedded store's batches: as large as its buffer pool takes, and no larger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pps.core.errors import StoreError
from pps.core.ids import new_group
from pps.core.values import Episode, Fact, GraphCounts, Node
from pps.graph.ladybug import open_ladybug
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.store_embedded import EmbeddedStore
from tests.integration.graph_embedded.nodes import MIB, some_nodes
from tests.integration.graph_items import T0, new_id


async def test_a_buffer_pool_that_is_too_small_grows_and_loses_nothing(path: Path) -> None:
    options = LadybugOptions(pool_bytes=16 * MIB, checkpoint_bytes=1 * MIB)
    driver = await open_ladybug(path, options)
    store = EmbeddedStore(driver, new_group())
    saved: list[Node] = []
    for _ in range(24):
        nodes = some_nodes(500, size=20)
        await store.save_nodes(nodes, {})
        saved += nodes
        assert (await store.counts()).nodes == len(saved)
    big = some_nodes(6_000, size=40)
    await store.save_nodes(big, {node.uuid: np.ones(256, dtype=np.float32) for node in big})
    saved += big
    await driver.close()
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, store.group)
    assert (await store.counts()).nodes == len(saved)
    # All of them by key: closing with a second checkpoint after one that failed left a broken key index.
    assert await store.nodes([node.uuid for node in saved]) == saved
    await driver.close()


async def test_work_beyond_the_limit_of_the_pool_is_refused_whole(path: Path) -> None:
    driver = await open_ladybug(
        path, LadybugOptions(pool_bytes=16 * MIB, pool_limit_bytes=32 * MIB)
    )
    store = EmbeddedStore(driver, new_group())
    await store.save_nodes(some_nodes(10), {})
    with pytest.raises(StoreError, match="smaller batches"):
        await store.save_nodes(some_nodes(20_000, size=60), {})
    assert (await store.counts()).nodes == 10
    await store.save_nodes(some_nodes(10), {})
    assert (await store.counts()).nodes == 20
    await driver.close()


async def test_ten_thousand_facts_with_vectors_fit_into_one_batch(store: EmbeddedStore) -> None:
    nodes = some_nodes(1_000)
    facts = [
        Fact(new_id(), nodes[i % 1_000].uuid, nodes[i * 7 % 1_000].uuid, "R", f"fact {i}", T0)
        for i in range(10_000)
    ]
    await store.save_nodes(nodes, {})
    await store.save_facts(
        facts, {fact.uuid: np.full(384, 0.5, dtype=np.float32) for fact in facts}
    )
    assert await store.counts() == GraphCounts(1_000, 10_000, 0, 0)
    assert (await store.fact_vectors([facts[-1].uuid]))[facts[-1].uuid].shape == (384,)


async def test_long_episodes_come_back_whole(store: EmbeddedStore) -> None:
    episodes = [Episode(new_id(), "t", f"{i} 咖啡 " * 40_000, T0, T0) for i in range(5)]
    await store.save_episodes(episodes)
    assert await store.episodes([episode.uuid for episode in episodes]) == episodes
