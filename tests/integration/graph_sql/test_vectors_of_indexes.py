"""Graphiti gets the vectors of nodes and facts from the entity's own indexes: the graph's tables keep none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft
from pps.memory import Memory
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import SqlGraphStore


def store_of(memory: Memory) -> SqlGraphStore:
    return SqlGraphStore(GraphTables(memory.parts.journal, indexes=memory.parts.indexes))


async def test_vectors_are_those_of_the_own_indexes_and_of_nobody_elses(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash"))
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            await ana.remember(
                "I moved.",
                facts=[FactDraft("Ana", "LIVES_IN", "Rome"), FactDraft("Ana", "LIVES_IN", "Oslo")],
            )
            assert await ana.settled()
            nodes = {node.uuid: node.name for node in await ana.parts.client.scan_nodes("", 10)}
            facts = {fact.uuid: fact.text for fact in await ana.parts.client.scan_facts("", 10)}
            (embedder,) = [ana.parts.indexer.drift.records.embedder]
            assert embedder is not None
            for texts, found in (
                (nodes, await store_of(ana).node_vectors(list(nodes))),
                (facts, await store_of(ana).fact_vectors(list(facts))),
            ):
                assert found.keys() == texts.keys()
                wanted = embedder.embed_passages([texts[uuid] for uuid in found])
                np.testing.assert_allclose(np.stack(list(found.values())), wanted, atol=1e-6)
            assert await store_of(ben).node_vectors(list(nodes)) == {}
            assert await store_of(ben).fact_vectors(list(facts)) == {}
    with closing(sqlite3.connect(tmp_path / "entities" / "ana" / "data" / "memory.db")) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert not {name for name in tables if name.endswith("_vector")}
