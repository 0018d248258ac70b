"""Wrong data mounts and graphs that something else wrote: nothing opens on what is another entity's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from graphiti_core.edges import EntityEdge, HasEpisodeEdge

from pps.config import Settings
from pps.core.errors import ConfigError, IsolationError, PPSError
from pps.core.ids import EntityId, new_group
from pps.index.indexes import EntityIndexes
from pps.isolation.client import EntityDriver, IsolatedGraphitiClient
from pps.isolation.neo4j import open_neo4j
from pps.journal.journal import Journal
from pps.models.hash import HashEmbedder
from pps.proof.arena import DIMENSION, Arena, ArenaStore, Being
from pps.store.graph_tables import GraphTables


async def reopen(being: Being, entity: EntityId | None = None) -> IsolatedGraphitiClient:
    """Open a client on a being's driver, as the being or as somebody else."""
    return await IsolatedGraphitiClient.open(
        entity or being.entity, being.driver, being.indexes, counters=being.client.counters
    )


async def embedded_arena(tmp_path: Path):
    async def driver(entity: EntityId, journal: Journal, indexes: EntityIndexes):
        return EntityDriver(GraphTables(journal, indexes=indexes), "embedded", journal.close)

    return Arena.open(tmp_path / "arena", ArenaStore(driver), count=2)


async def test_a_graph_file_of_another_entity_does_not_open(tmp_path: Path) -> None:
    async with await embedded_arena(tmp_path) as arena:
        being = arena.beings[0]
        with pytest.raises(IsolationError, match="another entity's data"):
            await reopen(being, EntityId(being.name, new_group()))
        assert arena.counters.by_kind() == {"audit": 1}
        await reopen(being)


@pytest.mark.parametrize("index", ["vectors.db", "text"])
async def test_an_index_of_another_entity_does_not_open(tmp_path: Path, index: str) -> None:
    fingerprint = HashEmbedder(DIMENSION).fingerprint
    async with await embedded_arena(tmp_path) as arena:
        names = [being.name for being in arena.beings]
        groups = [being.entity.group for being in arena.beings]
    homes = [tmp_path / "arena" / name for name in names]
    if (homes[0] / index).is_dir():
        shutil.rmtree(homes[1] / index)
        shutil.copytree(homes[0] / index, homes[1] / index)
    else:
        shutil.copy(homes[0] / index, homes[1] / index)
    with pytest.raises(IsolationError):
        await EntityIndexes.open(homes[1], group=groups[1], fingerprint=fingerprint)
    indexes = await EntityIndexes.open(homes[0], group=groups[0], fingerprint=fingerprint)
    await indexes.close()


async def test_a_journal_of_another_entity_does_not_open(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "memory.db", new_group())
    await journal.close()
    with pytest.raises(PPSError):
        await Journal.open(tmp_path / "memory.db", new_group())


async def test_no_collection_table_or_file_of_an_entity_lies_in_the_folder_of_another(
    tmp_path: Path,
) -> None:
    async with await embedded_arena(tmp_path) as arena:
        first, second = arena.beings
        marks = {being.name: being.mark for being in arena.beings}
        groups = {being.name: being.entity.group for being in arena.beings}
    for being in (first, second):
        other = second if being is first else first
        for path in (tmp_path / "arena" / being.name).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert marks[other.name].encode() not in content, path
                assert groups[other.name].encode() not in content, path


async def test_a_driver_of_another_store_is_refused(tmp_path: Path) -> None:
    async with await embedded_arena(tmp_path) as arena:
        being = arena.beings[0]
        being.driver = type(being.driver)(being.driver.driver, "neo4j", being.driver.close)
        with pytest.raises(ConfigError):
            await reopen(being)


@pytest.mark.neo4j
async def test_an_old_edge_that_joins_two_groups_keeps_both_entities_shut(
    shared_arena: Arena,
) -> None:
    being, other, third = shared_arena.beings
    edge = EntityEdge(
        uuid=being.mint("edge"),
        group_id=being.entity.group,
        source_node_uuid=next(iter(being.nodes)),
        target_node_uuid=next(iter(other.nodes)),
        created_at=next(iter(being.facts.values())).created_at,
        name="KNOWS",
        fact="written by something else",
        fact_embedding=[0.1] * DIMENSION,
    )
    await edge.save(being.driver.driver)  # below the guard
    for victim in (being, other):
        with pytest.raises(IsolationError, match="join this entity to another"):
            await reopen(victim)
    await reopen(third)


@pytest.mark.neo4j
async def test_a_saga_that_was_given_a_foreign_episode_keeps_its_entity_shut(
    shared_arena: Arena,
) -> None:
    being, other, _ = shared_arena.beings
    edge = HasEpisodeEdge(
        uuid=being.mint("edge"),
        group_id=being.entity.group,
        source_node_uuid=being.saga,
        target_node_uuid=next(iter(other.episodes)),
        created_at=next(iter(being.facts.values())).created_at,
    )
    await edge.save(being.driver.driver)  # below the guard
    with pytest.raises(IsolationError):
        await reopen(being)


@pytest.mark.neo4j
async def test_every_label_and_edge_has_an_index_on_the_group(shared_settings: Settings) -> None:
    at = shared_settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    try:
        assert await pool.missing() == ()
        rows, _, _ = await pool.driver().execute_query(
            "SHOW INDEXES YIELD labelsOrTypes, properties, type"
        )
    finally:
        await pool.close()
    indexed = {
        row["labelsOrTypes"][0]
        for row in rows
        if row["type"] == "RANGE" and row["properties"] == ["group_id"]
    }
    nodes = {"Entity", "Episodic", "Community", "Saga"}
    assert indexed >= nodes | {
        "RELATES_TO",
        "MENTIONS",
        "HAS_MEMBER",
        "HAS_EPISODE",
        "NEXT_EPISODE",
    }
