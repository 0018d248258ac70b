"""Graphs of several entities are published in one Neo4j database: each is written, searched and removed alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest
from pps.core.values import FactDraft, NodeDraft
from pps.graph.graph_store import GraphChange
from pps.isolation.graph_digests import Digests, digests_of
from pps.isolation.neo4j import open_neo4j
from pps.isolation.publishing import Publisher
from pps.isolation.recipes import RECIPES
from pps.isolation.store_neo4j import Neo4jStore
from pps.memory import Memory
from tests.postgresql_server import PostgresqlServer
from tests.waiting import PATIENCE_S, settle_until

pytestmark = [pytest.mark.neo4j, pytest.mark.timeout(300)]

MARKS = {"ana": "hazelnut", "bea": "lupin"}
OnServer = Callable[[str], Neo4jStore]


@pytest.fixture
async def app(shared_settings: Settings) -> AsyncIterator[App]:
    """Two entities that publish, with the same names and a word of their own each."""
    settings = shared_settings.model_copy(update={"embedder": EmbedderSettings(name="hash")})
    async with App.open(settings) as opened:
        for name, mark in MARKS.items():
            await opened.create(name)
            async with opened.memory(name) as memory:
                text = f"Kim is allergic to {mark}."
                await memory.remember(
                    text,
                    nodes=[NodeDraft("Kim", kind="Person"), NodeDraft(mark)],
                    facts=[FactDraft("Kim", "ALLERGIC_TO", mark, text=text)],
                )
                assert await memory.settled()
                await publisher_of(memory).catch_up(PATIENCE_S)
        yield opened


@pytest.fixture
async def on_server(shared_settings: Settings) -> AsyncIterator[OnServer]:
    """The store of a group as the server has it."""
    at = shared_settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    yield lambda group: Neo4jStore(pool.driver(), group)
    await pool.close()


def publisher_of(memory: Memory) -> Publisher:
    publisher = memory.parts.indexer.publisher
    assert publisher is not None
    return publisher


async def published(app: App, name: str, on_server: OnServer) -> dict[str, Digests]:
    group = app.registry.get(name).entity.group
    return await digests_of(on_server(group), vectors=True)


async def test_publishing_anew_and_stopping_for_one_leave_the_graph_of_another(
    app: App, on_server: OnServer
) -> None:
    """The registry's ``set_published`` notes it for one group alone."""
    before = await published(app, "bea", on_server)
    own = await published(app, "ana", on_server)
    assert before["facts"]
    await app.publish("ana", anew=True)
    async with app.memory("ana") as memory:
        await publisher_of(memory).catch_up(PATIENCE_S)
    assert await published(app, "ana", on_server) == own
    assert await published(app, "bea", on_server) == before
    state = await app.unpublish("ana")
    assert not state.is_published
    assert not any((await published(app, "ana", on_server)).values())
    assert await published(app, "bea", on_server) == before
    assert await app.unpublished_graphs() == (0, "")
    assert not (await app.publishing("ana")).is_published
    assert (await app.publishing("bea")).is_published
    await app.delete("ana")
    assert await published(app, "bea", on_server) == before


@pytest.mark.postgresql
async def test_of_two_in_one_database_each_is_published_and_removed_alone(
    shared_settings: Settings, postgresql_server: PostgresqlServer, on_server: OnServer
) -> None:
    """The triggers of the tables act in the transactions of a published memory, and of no other."""
    settings = shared_settings.model_copy(
        update={
            "store": "postgresql",
            "postgresql": postgresql_server.settings,
            "embedder": EmbedderSettings(name="hash"),
        }
    )
    async with App.open(settings) as app:

        async def say(name: str, number: int) -> None:
            text = f"Kim is allergic to {MARKS[name]} {number}."
            fact = FactDraft("Kim", "ALLERGIC_TO", f"{MARKS[name]} {number}", text=text)
            async with app.memory(name) as memory:
                await memory.remember(text, source_ref=str(number), facts=[fact])
                assert await memory.settled()
                if (publisher := memory.parts.indexer.publisher) is not None:
                    await publisher.catch_up(PATIENCE_S)

        for name in MARKS:
            await app.create(name)
            await say(name, 1)
        await app.publish("ana")
        for name in MARKS:
            await say(name, 2)
        own = await published(app, "ana", on_server)
        assert own["facts"]
        assert not any((await published(app, "bea", on_server)).values())
        async with app.memory("bea") as memory:
            logged = await memory.parts.journal.log_entries(0, 1_000)
            assert not [entry for entry in logged if entry.change.kind.startswith("graph_")]
        await app.publish("bea")
        await say("bea", 3)
        assert await published(app, "ana", on_server) == own
        hers = await published(app, "bea", on_server)
        await app.unpublish("ana")
        assert await published(app, "bea", on_server) == hers
        for name in MARKS:
            await app.delete(name)


async def test_a_recipe_finds_nothing_of_another_on_the_server_they_share(app: App) -> None:
    """Through the memory, which a search on the published graph is handed to by ``search_published``."""
    for name, mark in MARKS.items():
        (other,) = set(MARKS.values()) - {mark}
        async with app.memory(name) as memory:
            for recipe in RECIPES:
                found = repr(await memory.parts.client.search(f"Kim {other}", recipe=recipe))
                assert other not in found
                assert "Kim" in found, recipe


async def test_an_id_that_another_group_has_is_not_taken_from_it(
    app: App, on_server: OnServer
) -> None:
    """What cannot be published is passed over: it holds up nothing else, and health names it."""
    before = await published(app, "bea", on_server)
    async with app.memory("bea") as memory:
        (kim,) = [
            node for node in await memory.parts.client.scan_nodes("", 10) if node.name == "Kim"
        ]
    async with app.memory("ana") as memory:
        await memory.parts.client.apply(GraphChange(nodes=[kim]))
        await memory.remember("Kim sails.", nodes=[NodeDraft("Boat")])
        publisher = publisher_of(memory)
        await publisher.catch_up(PATIENCE_S)
        assert [*(await publisher.state()).refused] == [kim.uuid]
        assert any(kim.uuid in problem for problem in (await memory.health()).problems)
        store = on_server(memory.entity.group)
        assert "Boat" in {node.name for node in await store.scan_nodes("", 10)}
    assert await published(app, "bea", on_server) == before


async def test_an_edge_that_joins_two_groups_keeps_a_graph_from_being_published(
    app: App, shared_settings: Settings
) -> None:
    at = shared_settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    groups = [app.registry.get(name).entity.group for name in MARKS]
    try:
        await pool.driver().execute_query(
            "MATCH (a:Entity {name: 'Kim', group_id: $one}), (b:Entity {name: 'Kim', group_id: $other}) "
            "CREATE (a)-[:RELATES_TO {uuid: randomUUID(), group_id: $one}]->(b)",
            one=groups[0],
            other=groups[1],
        )
        async with app.memory("ana") as memory:
            publisher = publisher_of(memory)
            await publisher.begin_anew()

            async def refused() -> bool:
                return "join this entity" in (await publisher.state()).waits_for

            await settle_until(refused)
            assert memory.parts.client.counters.by_kind()["audit"]
    finally:
        await pool.driver().execute_query(
            "MATCH (a)-[e:RELATES_TO]->(b) WHERE a.group_id <> b.group_id DELETE e"
        )
        await pool.close()
        await asyncio.sleep(0)


async def test_a_dump_for_an_import_reads_the_group_of_no_entity(
    app: App, shared_settings: Settings, tmp_path: Path
) -> None:
    """``dump_graphiti`` takes groups that Graphiti made alone; what lies beside the one that is asked for stays out."""
    at = shared_settings.neo4j
    for name in MARKS:
        group = app.registry.get(name).entity.group
        with pytest.raises(InvalidRequest, match="is the group of an entity"):
            await app.dump_graphiti(f"{at.uri}/{at.database}?group={group}", tmp_path)
    for address in (f"{at.uri}/{at.database}", f"{at.uri}/{at.database}?group=a&group=b"):
        with pytest.raises(InvalidRequest, match="a group is written"):
            await app.dump_graphiti(address, tmp_path)
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    driver = pool.driver()
    try:
        for group in ("main", "other"):
            await driver.execute_query(
                "CREATE (a:Entity {uuid: randomUUID(), name: $name, group_id: $group, created_at: datetime()})",
                group=group,
                name=f"Node of {group}",
            )
        file = await app.dump_graphiti(f"{at.uri}/{at.database}?group=main", tmp_path)
        text = file.read_text("utf-8")
        assert "Node of main" in text
        for word in ("Node of other", *MARKS.values()):
            assert word not in text
    finally:
        await driver.execute_query(
            "MATCH (n) WHERE n.group_id IN ['main', 'other'] DETACH DELETE n"
        )
        await pool.close()
