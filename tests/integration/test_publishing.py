"""A memory whose graph is published on Neo4j: the tables are true, and the server has what they have, soon after."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from graphiti_core import Graphiti
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search import search_config_recipes as stock
from graphiti_core.search.search_filters import SearchFilters

from pps.app import App
from pps.config import EmbedderSettings, Neo4jSettings, Settings
from pps.core.sql import Connection
from pps.core.values import FactDraft, Node, NodeDraft
from pps.isolation.graph_digests import digests_of
from pps.isolation.graphiti_models import GraphitiEmbedder, GraphitiReranker, make_llm
from pps.isolation.neo4j import open_neo4j
from pps.isolation.publishing import Publisher
from pps.isolation.recipes import RECIPES
from pps.isolation.store_neo4j import Neo4jStore
from pps.journal.meta import PUBLISHED_AT
from pps.memory import Memory
from pps.operations.calls import Caller, Calls
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import SqlGraphStore
from tests.neo4j_server import Neo4jServer
from tests.postgresql_server import PostgresqlServer
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.neo4j

IMPORTED = "imported"
TEXTS = (
    ("Ana", "LIVES_IN", "Lisbon", "Ana lives in Lisbon by the river."),
    ("Ana", "DRINKS", "Coffee", "Ana drinks strong coffee."),
    ("Ben", "LIVES_IN", "Porto", "Ben lives in Porto near the bridge."),
    ("Ben", "KNOWS", "Ana", "Ben knows Ana from the choir."),
)


@pytest.fixture
def settings(neo4j_server: Neo4jServer, tmp_path: Path) -> Settings:
    server = neo4j_server
    return Settings(
        home=tmp_path / "home",
        embedder=EmbedderSettings(name="hash"),
        neo4j=Neo4jSettings(
            uri=server.uri, user=server.user, password=server.password, database=server.database
        ),
    )


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    async with App.open(settings) as opened:
        yield opened


@pytest.fixture
async def server_store(settings: Settings) -> AsyncIterator[OnServer]:
    """Returns stores of groups as the server has them, below every guard."""
    at = settings.neo4j
    pool = await open_neo4j(at.uri, at.user, at.password.get_secret_value(), at.database)
    yield lambda group: Neo4jStore(pool.driver(), group)
    await pool.close()


OnServer = Callable[[str], Neo4jStore]


def publisher_of(memory: Memory) -> Publisher:
    publisher = memory.parts.indexer.publisher
    assert publisher is not None
    return publisher


async def told(memory: Memory) -> None:
    for number, (subject, relation, target, text) in enumerate(TEXTS):
        await memory.remember(
            text,
            source_ref=f"t{number}",
            nodes=[NodeDraft(subject, kind="Person"), NodeDraft(target)],
            facts=[FactDraft(subject, relation, target, text=text)],
        )
    assert await memory.settled()


async def same_on_both(memory: Memory, server_store: OnServer) -> None:
    await publisher_of(memory).catch_up(PATIENCE_S)
    tables = SqlGraphStore(GraphTables(memory.parts.journal, indexes=memory.parts.indexes))
    expected = await digests_of(tables, vectors=True)
    assert await digests_of(server_store(memory.entity.group), vectors=True) == expected
    assert all(expected.values())


async def test_what_is_remembered_forgotten_and_merged_is_published(
    app: App, server_store: OnServer
) -> None:
    await app.create("ana", store="neo4j")
    async with app.memory("ana") as memory:
        await told(memory)
        await same_on_both(memory, server_store)
        (turn,) = [one for one in await memory.parts.journal.recent(10) if "choir" in one.content]
        await memory.forget([turn.uuid], dry_run=False)
        await same_on_both(memory, server_store)
        store = server_store(memory.entity.group)
        assert "choir" not in repr(
            [await store.scan_facts("", 100), await store.scan_episodes("", 100)]
        )
        nodes = {node.name: node for node in await store.scan_nodes("", 100)}
        assert nodes["Ben"].kind == "Person"
        assert (await memory.ledger()).problems == ()


@pytest.mark.postgresql
async def test_a_memory_on_postgresql_is_published_and_stays_so_when_it_moves(
    settings: Settings,
    postgresql_server: PostgresqlServer,
    server_store: OnServer,
) -> None:
    settings = settings.model_copy(update={"postgresql": postgresql_server.settings})
    async with App.open(settings) as app:
        await app.create("ana", store="postgresql")
        async with app.memory("ana") as memory:
            await told(memory)
        state = await app.publish("ana")
        assert state.is_published
        assert app.registry.get("ana").store == "postgresql"
        async with app.memory("ana") as memory:
            await same_on_both(memory, server_store)
            (turn,) = [
                one for one in await memory.parts.journal.recent(10) if "choir" in one.content
            ]
            await memory.forget([turn.uuid], dry_run=False)
            await same_on_both(memory, server_store)
            store = server_store(memory.entity.group)
            found = await store.scan_episodes("", 100)
            assert "choir" not in repr(found)
            # A row that no index has anything of: triggers alone tell of it.
            await memory.parts.journal.write(_mention_everyone)
            await memory.remember("The indexes follow.", source_ref="follow")
            assert await memory.settled()
            await same_on_both(memory, server_store)
            recalled = await memory.recall("where does Ana live?", profile="NODE_HYBRID_SEARCH_RRF")
            assert any(channel.hits for channel in recalled.channels.values())
    async with App.open(settings) as app:
        for target, stored in (("embedded", "neo4j"), ("postgresql", "postgresql")):
            await app.move("ana", target)
            entry = app.registry.get("ana")
            assert (entry.store, entry.is_published) == (stored, True)
            async with app.memory("ana") as memory:
                await memory.remember(f"Ana has moved to {target}.", source_ref=target)
                assert await memory.settled()
                await same_on_both(memory, server_store)
            await app.drop_moved_source("ana")
        assert not (await app.unpublish("ana")).is_published
        async with app.memory("ana") as memory:
            group = memory.entity.group
            assert await server_store(group).scan_nodes("", 10) == []
            assert await memory.parts.journal.get_meta(PUBLISHED_AT) is None
            await memory.remember("Nobody publishes this.", source_ref="later")
            assert await memory.settled()
        await app.publish("ana")
        async with app.memory("ana") as memory:
            await same_on_both(memory, server_store)
        deleted = await Calls(app).answer(Caller(("operator",)), "entity_delete", {"name": "ana"})
        assert "Neo4j" in str(deleted.data["left"])
        assert await server_store(group).scan_nodes("", 10) == []
        assert await postgresql_server.rows_with(group) == []


def _mention_everyone(db: Connection) -> None:
    db.execute(
        "INSERT INTO mention (episode, node, uuid, created_at) "
        "SELECT e.uuid, n.uuid, e.uuid || n.uuid, 0 FROM episode AS e CROSS JOIN node AS n "
        "WHERE NOT EXISTS (SELECT 1 FROM mention AS m WHERE m.episode = e.uuid AND m.node = n.uuid)"
    )


async def test_the_same_answers_come_with_and_without_neo4j(app: App) -> None:
    answers = list[str]()
    for name, store in (("first", "neo4j"), ("second", "embedded")):
        await app.create(name, store=store)
        async with app.memory(name) as memory:
            await told(memory)
            found = await memory.recall("where does Ana live?")
            answers.append(repr([[hit.text for hit in found[one]] for one in found.channels]))
    assert answers[0] == answers[1]


async def test_recipes_run_on_neo4j_and_wait_for_it(app: App) -> None:
    await app.create("ana", store="neo4j")
    async with app.memory("ana") as memory:
        await told(memory)
        # Its indexes are made there first; what comes after is what a recall waits for.
        await publisher_of(memory).catch_up(PATIENCE_S)
        await memory.remember(
            "Ana owns a boat.", source_ref="boat", facts=[FactDraft("Ana", "OWNS", "boat")]
        )
        for recipe in RECIPES:
            found = await memory.recall("where does Ana live?", profile=recipe)
            texts = [hit.text for channel in found.channels.values() for hit in channel.hits]
            assert any("Ana" in text for text in texts), recipe


async def test_stock_graphiti_finds_on_a_published_group_what_a_recall_finds(
    app: App, settings: Settings
) -> None:
    await app.create("ana", store="neo4j")
    async with app.memory("ana") as memory:
        await told(memory)
        await publisher_of(memory).catch_up(PATIENCE_S)
        query = "where does Ben live?"
        at = settings.neo4j
        graphiti = Graphiti(
            at.uri,
            at.user,
            at.password.get_secret_value(),
            llm_client=make_llm(None),
            embedder=GraphitiEmbedder(memory.parts.engine.sources.embedder),
            cross_encoder=GraphitiReranker(None, 1.0),
        )
        try:
            for recipe in (
                "EDGE_HYBRID_SEARCH_RRF",
                "NODE_HYBRID_SEARCH_RRF",
                "EDGE_HYBRID_SEARCH_MMR",
            ):
                config = getattr(stock, recipe).model_copy(deep=True)
                config.limit = 20
                stocks = await graphiti.search_(
                    query,
                    config=config,
                    group_ids=[memory.entity.group],
                    search_filter=SearchFilters(),
                )
                ours = await memory.parts.client.search(query, recipe=recipe, limit=20)
                assert [node.uuid for node in stocks.nodes] == [node.uuid for node, _ in ours.nodes]
                assert [edge.uuid for edge in stocks.edges] == [fact.uuid for fact, _ in ours.facts]
                assert ours.nodes or ours.facts
        finally:
            await graphiti.close()


async def test_a_group_of_stock_graphiti_is_imported(app: App, settings: Settings) -> None:
    """Its nodes, facts with their times, and episodes; a second time adds nothing."""
    at = settings.neo4j
    graphiti = Graphiti(
        at.uri,
        at.user,
        at.password.get_secret_value(),
        llm_client=make_llm(None),
        embedder=GraphitiEmbedder(None),
        cross_encoder=GraphitiReranker(None, 1.0),
    )
    moment = datetime(2025, 3, 1, 12, tzinfo=UTC)
    try:
        ana, lisbon = [
            EntityNode(
                name=name, group_id=IMPORTED, labels=["Entity", kind], name_embedding=[0.1, 0.2]
            )
            for name, kind in (("Ana", "Person"), ("Lisbon", "City"))
        ]
        episode = EpisodicNode(
            name="one",
            group_id=IMPORTED,
            source=EpisodeType.message,
            source_description="chat",
            content="Ana: I live in Lisbon.",
            valid_at=moment,
        )
        fact = EntityEdge(
            group_id=IMPORTED,
            source_node_uuid=ana.uuid,
            target_node_uuid=lisbon.uuid,
            name="LIVES_IN",
            fact="Ana lives in Lisbon.",
            fact_embedding=[0.1, 0.2],
            episodes=[episode.uuid],
            created_at=moment,
            valid_at=moment,
        )
        for item in (ana, lisbon, episode, fact):
            await item.save(graphiti.driver)
        await app.create("ben")
        calls = Calls(app)
        told_twice = []
        for _ in range(2):
            address = f"{at.uri}/{at.database}?group={IMPORTED}"
            answer = await calls.answer(
                Caller(("owner",)),
                "import",
                {"entity": "ben", "paths": [address], "format": "graphiti"},
                lambda *_: None,
            )
            told_twice.append(answer.data)
        assert [one["stored"] for one in told_twice] == [1, 0]
        async with app.memory("ben") as memory:
            (found,) = await memory.parts.client.scan_facts("", 10)
            assert (found.text, found.valid_at) == ("Ana lives in Lisbon.", moment)
            kinds = {node.name: node.kind for node in await memory.parts.client.scan_nodes("", 10)}
            assert (kinds["Ana"], kinds["Lisbon"]) == ("Person", "City")
    finally:
        await graphiti.driver.execute_query(
            "MATCH (n {group_id: $group}) DETACH DELETE n", group=IMPORTED
        )
        await graphiti.close()


async def test_what_others_change_on_neo4j_is_named_and_written_over(
    app: App, server_store: OnServer
) -> None:
    """A text that was changed, a fact that was deleted, a node that was added: not read back, and said by doctor."""
    await app.create("ana", store="neo4j")
    async with app.memory("ana") as memory:
        await told(memory)
        await publisher_of(memory).catch_up(PATIENCE_S)
        assert (await memory.ledger()).problems == ()
        store = server_store(memory.entity.group)
        facts = await store.scan_facts("", 100)
        choir = next(fact for fact in facts if "choir" in fact.text)
        coffee = next(fact for fact in facts if "coffee" in fact.text)
        added = Node(str(uuid.uuid4()), "Stranger", datetime.now(UTC))
        await store.save_facts([replace(choir, text="Ben knows nobody.")], {})
        await store.delete_facts([coffee.uuid])
        await store.save_nodes([added], {})
        told_by_doctor = "\n".join((await memory.ledger()).problems)
        assert "facts and published graph differ: " in told_by_doctor
        assert "nodes and published graph differ: " in told_by_doctor
        assert "pps publish ana neo4j --anew" in told_by_doctor
        assert next(hit.text for hit in (await memory.recall("choir"))["facts"]) == choir.text
    await app.publish("ana", anew=True)
    async with app.memory("ana") as memory:
        await same_on_both(memory, server_store)
        assert (await memory.ledger()).problems == ()
