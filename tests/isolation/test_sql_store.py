"""The graph on SQL tables: no text, no id, no object and no file leads from one entity to another."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from graphiti_core.edges import (
    CommunityEdge,
    EntityEdge,
    EpisodicEdge,
    HasEpisodeEdge,
    NextEpisodeEdge,
)
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode, SagaNode
from graphiti_core.search.search_filters import SearchFilters
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk
from graphiti_core.utils.maintenance.edge_operations import filter_existing_duplicate_of_edges

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import InvalidRequest, IsolationError, NotFound, PPSError, StoreError
from pps.core.ids import EntityId, new_group
from pps.core.time import now
from pps.core.values import Episode, Fact, Node
from pps.isolation.client import EntityDriver, IsolatedGraphitiClient
from pps.proof.arena import Arena, Being, dice
from pps.proof.by_id import Ids
from pps.proof.by_statement import HOOKED, STOCK, WAYS, Strike, raw_statements
from pps.proof.honest import Honest
from pps.proof.verify import throw_away, verify
from pps.store.graph_tables import GraphTables
from pps.store.graphiti_reads import FactFilter, GraphitiReads
from pps.store.sql_graph import GRAPH_TABLES, SqlGraphStore
from pps.store.sql_session import SqlSession
from tests.graph_file import open_graph_file
from tests.isolation.standing import renewed
from tests.sampling import sized

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

SQL_TEXTS = (
    "x' OR '1'='1",
    "'; DROP TABLE node; --",
    '" OR ""="',
    ":grp",
    "IN EACH(:uuids)",
    "%",
    "{group}",
    "1) OR (grp <> ''",
)


@pytest.fixture(scope="module")
def statements() -> Iterator[list[str]]:
    """Every statement that runs on SQL tables while the tests of this file run."""
    run, seen = vars(SqlSession)["_execute"], list[str]()

    def recorded(session: SqlSession, statement: str, values: Any) -> Any:
        seen.append(statement)
        return run(session, statement, values)

    setattr(SqlSession, "_execute", recorded)  # noqa: B010 - it is private
    yield seen
    setattr(SqlSession, "_execute", run)  # noqa: B010


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_arena(
    tmp_path_factory: pytest.TempPathFactory, statements: list[str]
) -> AsyncIterator[Arena]:
    settings = Settings(home=tmp_path_factory.mktemp("sql") / "home", store="embedded")
    async with (
        throw_away(settings) as (folder, open_driver),
        Arena.open(folder, open_driver) as opened,
    ):
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def arena(standing_arena: Arena) -> AsyncIterator[Arena]:
    async with renewed(standing_arena) as lent:
        yield lent


def strike_of(arena: Arena, chance: random.Random) -> Strike:
    being = chance.choice(arena.beings)
    other = arena.random_of(being, chance)
    return Strike(being, other.entity.group, Ids.of(other, chance))


async def all_whole(arena: Arena) -> None:
    for being in arena.beings:
        assert await Honest(arena).differences(being) == []


async def test_no_attack_gets_through(tmp_path: Path) -> None:
    wanted = sized(900, 3_000)
    report = await verify(
        Settings(home=tmp_path / "home", store="embedded"), operations=wanted, seed=20
    )
    assert (report.leaks, report.told_apart, report.broken) == ((), (), ())
    assert (report.total, report.store) == (wanted, "embedded")


async def test_every_call_of_graphiti_that_reaches_out_is_refused_or_finds_nothing(
    arena: Arena,
) -> None:
    chance = dice(11)
    for attack in (*STOCK, *HOOKED):
        for _ in arena.beings:
            strike = strike_of(arena, chance)
            if attack.refused:
                with pytest.raises(IsolationError):
                    await attack.call(strike)
                continue
            seen: object
            try:
                seen = await attack.call(strike)
            except Exception as error:  # noqa: BLE001 - Graphiti's own "not found" among them
                seen = error
            assert arena.watch.leaks(strike.being.name, seen, strike.ids.all()) == [], attack.name
            await strike.being.client.delete_nodes([strike.ids.node])
            await strike.being.client.delete_episodes([strike.ids.episode])
    await all_whole(arena)


@pytest.mark.parametrize("way", [name for name, _ in WAYS])
async def test_no_text_is_run_by_any_way(arena: Arena, way: str) -> None:
    run, chance = dict(WAYS)[way], dice(12)
    for index in range(len(raw_statements(strike_of(arena, chance)))):
        strike = strike_of(arena, chance)
        _, text, parameters, _ = raw_statements(strike)[index]
        with pytest.raises(IsolationError, match="run no Cypher"):
            await run(strike, text, **parameters)
        with pytest.raises(IsolationError, match="run no Cypher"):
            await run(strike, "SELECT * FROM node", **parameters)
    await all_whole(arena)


async def test_a_call_of_graphiti_without_a_hook_raises_a_clear_error(arena: Arena) -> None:
    being = arena.beings[0]
    nodes = [EntityNode(name=name, group_id=being.entity.group) for name in ("a", "b")]
    with pytest.raises(IsolationError, match="has no hook"):
        await filter_existing_duplicate_of_edges(being.bare, [(nodes[0], nodes[1])])
    await all_whole(arena)


def forged(being: Being, group: str) -> list[Any]:
    """Return one object of each of Graphiti's kinds that joins the entity's own things and says another group."""
    node, other_node = list(being.nodes)[:2]
    episode, other_episode = list(being.episodes)[:2]
    ends = {
        EntityEdge: (node, other_node),
        EpisodicEdge: (episode, node),
        CommunityEdge: (being.community, node),
        HasEpisodeEdge: (being.saga, episode),
        NextEpisodeEdge: (episode, other_episode),
    }
    edges = [
        kind(
            uuid=being.mint("forged"),
            group_id=group,
            source_node_uuid=source,
            target_node_uuid=target,
            created_at=now(),
            **({"name": "X", "fact": "x", "fact_embedding": [0.1]} if kind is EntityEdge else {}),
        )
        for kind, (source, target) in ends.items()
    ]
    named = {"uuid": being.mint("forged"), "name": "x", "group_id": group}
    return [
        EntityNode(**named, name_embedding=[0.1]),
        EpisodicNode(**named, source="text", source_description="", content="x", valid_at=now()),  # type: ignore[arg-type]
        CommunityNode(**named, name_embedding=[0.1]),
        SagaNode(**named),
        *edges,
    ]


async def test_an_object_of_graphitis_with_a_forged_group_is_neither_saved_nor_deleted(
    arena: Arena,
) -> None:
    being, other, _ = arena.beings
    for group in (other.entity.group, new_group(), "", being.entity.group.upper()):
        for forgery in forged(being, group):
            with pytest.raises(IsolationError):
                await forgery.save(being.bare)
            with pytest.raises(IsolationError):
                await forgery.delete(being.bare)
    assert being.bare.graph_operations_interface is not None
    assert being.client.counters.total == 0, "they were counted where they were refused"
    await all_whole(arena)


async def test_one_forged_object_among_good_ones_undoes_the_whole_bulk(arena: Arena) -> None:
    being, other, _ = arena.beings
    own, group = being.entity.group, other.entity.group
    good = EntityNode(name="good", group_id=own, name_embedding=[0.1])
    for items in (
        ([], [], [good, EntityNode(name="x", group_id=group, name_embedding=[0.1])], []),
        ([], [one for one in forged(being, group) if isinstance(one, EpisodicEdge)], [good], []),
        ([], [], [good], [one for one in forged(being, group) if isinstance(one, EntityEdge)]),
        ([one for one in forged(being, group) if isinstance(one, EpisodicNode)], [], [good], []),
    ):
        with pytest.raises(IsolationError):
            await add_nodes_and_edges_bulk(being.bare, *items, embedder=None)  # type: ignore[arg-type]
    await all_whole(arena)


async def test_a_group_that_only_says_it_is_ours_is_refused(arena: Arena) -> None:
    being, other, _ = arena.beings

    class Chameleon(str):
        __slots__ = ()

        def __eq__(self, _: object) -> bool:
            return True

        def __ne__(self, _: object) -> bool:
            return False

        __hash__ = str.__hash__

    operations = being.bare.graph_operations_interface
    assert operations is not None
    for groups in (
        [Chameleon(other.entity.group)],
        [being.entity.group, Chameleon("")],
        [None],
        [],
        None,
    ):
        with pytest.raises(IsolationError):
            await operations.clear_data(being.bare, groups)  # type: ignore[arg-type]
        with pytest.raises(IsolationError):
            await operations.retrieve_episodes(being.bare, now(), 5, groups)  # type: ignore[arg-type]
    await all_whole(arena)


async def test_a_fact_to_a_node_of_another_is_not_found_and_undoes_its_bulk(arena: Arena) -> None:
    being, other, _ = arena.beings
    good = EntityNode(name="good", group_id=being.entity.group, name_embedding=[0.1])
    for end in (next(iter(other.nodes)), Ids.of_nobody(dice(3)).node):
        edge = EntityEdge(
            group_id=being.entity.group,
            source_node_uuid=good.uuid,
            target_node_uuid=end,
            created_at=now(),
            name="X",
            fact="across",
            fact_embedding=[0.1],
        )
        with pytest.raises(NotFound):
            await add_nodes_and_edges_bulk(being.bare, [], [], [good], [edge], None)  # type: ignore[arg-type]
    await all_whole(arena)


async def test_a_triplet_of_another_group_is_refused(arena: Arena) -> None:
    being, other, _ = arena.beings
    group = other.entity.group
    edge = EntityEdge(
        group_id=group,
        source_node_uuid="",
        target_node_uuid="",
        created_at=now(),
        name="X",
        fact="x",
        fact_embedding=[0.1] * 32,
    )
    ends = [EntityNode(name=name, group_id=group, name_embedding=[0.1] * 32) for name in "ab"]
    with pytest.raises(IsolationError):
        await being.client.inside.graphiti.add_triplet(ends[0], edge, ends[1])
    await all_whole(arena)


async def test_ids_of_another_reach_nothing_by_the_store_itself(arena: Arena) -> None:
    """Below both locks: the file alone."""
    being, other, _ = arena.beings
    assert isinstance(being.driver.driver, GraphTables)
    store, reads = SqlGraphStore(being.driver.driver), GraphitiReads(being.driver.driver)
    ids = Ids.of(other, dice(9))
    absent: list[Callable[[], Awaitable[object]]] = [
        lambda: store.nodes([ids.node]),
        lambda: store.facts([ids.fact]),
        lambda: store.episodes([ids.episode]),
        lambda: store.node_vectors([ids.node]),
        lambda: store.fact_vectors([ids.fact]),
        lambda: store.mentioned_nodes([ids.episode]),
        lambda: store.distances(ids.node, 3),
        lambda: store.facts_of_nodes([ids.node], 10),
        lambda: store.facts_of_episodes([ids.episode]),
        lambda: store.facts_between([(ids.node, ids.node)]),
        lambda: store.timeline(node=ids.node),
        lambda: store.delete_nodes([ids.node]),
        lambda: store.delete_facts([ids.fact]),
        lambda: store.delete_episodes([ids.episode]),
        lambda: reads.facts_touching(ids.node),
        lambda: reads.facts_matching(FactFilter(uuids=[ids.fact])),
        lambda: reads.nodes_mentioned([ids.episode]),
        lambda: reads.episodes_mentioning(ids.node),
        lambda: reads.mentions_of(ids.episode),
    ]
    for read in absent:
        assert not await read()
    for save in (
        store.save_mentions([(ids.episode, next(iter(being.nodes)))]),
        store.save_facts([Fact(being.mint("x"), ids.node, ids.node, "X", "x", now())], {}),
    ):
        with pytest.raises(NotFound):
            await save
    await all_whole(arena)


@pytest.mark.parametrize("text", SQL_TEXTS)
async def test_sql_in_ids_names_and_filters_is_text(arena: Arena, text: str) -> None:
    being = arena.beings[0]
    for call in (
        lambda: being.client.nodes([text]),
        lambda: being.client.facts_of_nodes([text], 5),
        lambda: being.client.delete_nodes([text]),
        lambda: being.client.scan_nodes(text, 5),
        lambda: being.client.timeline(cursor=text),
    ):
        with pytest.raises(InvalidRequest):
            await call()
    assert isinstance(being.driver.driver, GraphTables)
    store, reads = SqlGraphStore(being.driver.driver), GraphitiReads(being.driver.driver)
    assert await store.nodes([text]) == []
    assert await store.facts_of_nodes([text], 5) == []
    assert await store.delete_nodes([text]) == 0
    assert await store.timeline(relation=text) == []
    assert await reads.nodes_named([text]) == []
    assert await reads.nodes_labelled([text]) == set()
    assert await reads.facts_matching(FactFilter(relations=[text], labels=[text])) == set()
    assert await reads.latest_episodes(now(), 5, source=text, saga=text) == []
    search = being.client.inside.guard.search_interface
    assert search is not None
    for filters in (SearchFilters(edge_types=[text]), SearchFilters(edge_uuids=[text])):
        own = [being.entity.group]
        assert await search.edge_fulltext_search(being.bare, text, filters, own) == []
        assert await search.community_fulltext_search(being.bare, text, own) == []
    await all_whole(arena)
    node = Node(being.mint("node"), text, now(), summary=text, tags=(text,), attributes={"a": text})
    fact = Fact(being.mint("fact"), node.uuid, node.uuid, text, text, now())
    episode = Episode(being.mint("episode"), text, text, now(), now(), description=text)
    await being.client.save_nodes([node], {})
    await being.client.save_facts([fact], {})
    await being.client.save_episodes([episode])
    assert await being.client.nodes([node.uuid]) == [node]
    assert await being.client.facts([fact.uuid]) == [fact]
    assert await being.client.episodes([episode.uuid]) == [episode]
    assert [one.node.uuid for one in await reads.nodes_named([text])] == [node.uuid]


async def test_nobody_binds_a_statement_to_another_group(arena: Arena) -> None:
    being, other, _ = arena.beings
    assert isinstance(being.driver.driver, GraphTables)
    rows = await being.driver.driver.read(
        lambda session: session.rows("SELECT :grp", grp=other.entity.group)
    )
    assert rows == [(being.entity.group,)]


async def test_every_statement_that_ran_binds_the_group(statements: list[str]) -> None:
    """Last but for the files: all that the tests before it made Graphiti and the stores run."""
    assert len(set(statements)) > 40
    free = {text for text in statements if ":grp" not in text}
    audit = {text for text in free if text.startswith("SELECT count(*) FROM ") and "JOIN" in text}
    counts = {text for text in free if "COUNT_OF(" in text}  # of a file that the audit found whole
    assert free - audit - counts == set(), "only the audit looks for what is not of the group"


async def made(path: Path, name: str = "Ana") -> str:
    """Make a file with a node and a fact, and return its group."""
    group = new_group()
    file = await open_graph_file(path, group)
    node = Node("11111111-1111-4111-8111-111111111111", name, now())
    fact = Fact("22222222-2222-4222-8222-222222222222", node.uuid, node.uuid, "X", "x", now())
    await SqlGraphStore(file).save_nodes([node], {})
    await SqlGraphStore(file).save_facts([fact], {})
    await file.close()
    return group


async def test_a_file_of_another_group_does_not_open(tmp_path: Path) -> None:
    group = await made(tmp_path / "graph.db")
    before = (tmp_path / "graph.db").read_bytes()
    with pytest.raises(IsolationError, match="belongs to another entity"):
        await open_graph_file(tmp_path / "graph.db", new_group())
    assert (tmp_path / "graph.db").read_bytes() == before
    for nonsense in ("", "'", "ent_' OR 1 --", group.upper()):
        with pytest.raises(InvalidRequest):
            await open_graph_file(tmp_path / "graph.db", nonsense)
    await (await open_graph_file(tmp_path / "graph.db", group)).close()


async def test_an_open_file_is_of_no_use_to_another_entity(arena: Arena) -> None:
    being, other, _ = arena.beings
    with pytest.raises(IsolationError, match="another entity's data"):
        await IsolatedGraphitiClient.open(
            EntityId(being.name, new_group()),
            being.driver,
            being.indexes,
            counters=being.client.counters,
        )
    stolen = EntityDriver(other.driver.driver, "embedded", other.driver.close)
    with pytest.raises(IsolationError, match="another entity's data"):
        await IsolatedGraphitiClient.open(being.entity, stolen, being.indexes)


async def test_a_file_that_only_says_it_is_ours_does_not_open(tmp_path: Path, arena: Arena) -> None:
    """Somebody wrote our group over the owner's: its rows still say whose they are."""
    path = tmp_path / "graph.db"
    await made(path)
    being = arena.beings[0]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'group'", (being.entity.group,))
    file = await open_graph_file(path, being.entity.group)
    try:
        assert await SqlGraphStore(file).scan_nodes("", 10) == [], "rows of another are not read"
        opened = EntityDriver(file, "embedded", file.close)
        with pytest.raises(IsolationError, match="another entity's data"):
            await IsolatedGraphitiClient.open(being.entity, opened, being.indexes)
    finally:
        await file.close()


async def test_the_tables_take_no_row_of_another_group_and_no_edge_to_one(tmp_path: Path) -> None:
    path, theirs = tmp_path / "graph.db", new_group()
    group = await made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        for statement in ("UPDATE node SET grp = ?", "UPDATE fact SET grp = ?"):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                db.execute(statement, (theirs,))
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            db.execute("UPDATE fact SET object = '33333333-3333-4333-8333-333333333333'")
        tables = dict(
            db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        )
    assert {name for name, text in tables.items() if "grp TEXT" in text} == {*GRAPH_TABLES}
    for name in GRAPH_TABLES:
        text = tables[name]
        assert f"CHECK (grp = '{group}')" in text, name
        for reference in text.split("REFERENCES")[1:]:
            assert "(uuid, grp)" in reference.partition("ON DELETE")[0], name


async def test_what_is_no_memory_does_not_open(tmp_path: Path) -> None:
    group = new_group()
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    with pytest.raises(StoreError):
        await open_graph_file(tmp_path / "other.db", group)
    (tmp_path / "garbage.db").write_bytes(b"garbage" * 3_000)
    with pytest.raises(StoreError):
        await open_graph_file(tmp_path / "garbage.db", group)


async def test_graph_files_that_change_places_keep_both_entities_shut(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path / "home", store="embedded", embedder=EmbedderSettings(name="none")
    )
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            await app.create(name)
            async with app.memory(name) as memory:
                await memory.remember(f"{name} sings.")
        files = [app.registry.get(name).folder / "data" / "memory.db" for name in ("ana", "ben")]
    shutil.move(files[0], tmp_path / "between")
    shutil.move(files[1], files[0])
    shutil.move(tmp_path / "between", files[1])
    async with App.open(settings) as app:
        for name in ("ana", "ben"):
            with pytest.raises(IsolationError):
                async with app.memory(name):
                    pass
    shutil.copy(files[0], files[1])  # ben's own, home again
    async with App.open(settings) as app:
        async with app.memory("ben") as memory:
            assert (await memory.stats()).entity == "ben"
        with pytest.raises(PPSError):
            async with app.memory("ana"):
                pass
