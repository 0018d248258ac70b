"""What only the embedded store has to do: its file, its memory, its crashes, and the dialect that it mends."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import NodeNotFoundError
from graphiti_core.namespaces.edges import EdgeNamespace
from graphiti_core.nodes import EntityNode, SagaNode
from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

from pps.core.errors import StoreConflict, StoreError, StoreUnavailable
from pps.core.ids import new_group
from pps.core.values import Episode, Fact, GraphCounts, Node
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.store_embedded import EmbeddedStore

T0 = datetime(2025, 3, 1, 9, 30, 0, 123456, UTC)
MIB = 2**20
ENDLESS = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c) AS s"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.lbug"


@pytest.fixture
async def driver(path: Path) -> AsyncIterator[LadybugDriver]:
    opened = await open_ladybug(path)
    yield opened
    await opened.close()


@pytest.fixture
def store(driver: LadybugDriver) -> EmbeddedStore:
    return EmbeddedStore(driver, new_group())


def new_id() -> str:
    return str(uuid.uuid4())


def some_nodes(count: int, *, size: int = 1) -> list[Node]:
    return [Node(new_id(), f"{i}", T0, summary=new_id() * size) for i in range(count)]


async def number(driver: LadybugDriver, table: str = "Entity") -> int:
    rows, _, _ = await driver.execute_query(f"MATCH (n:{table}) RETURN count(*) AS n")
    return int(rows[0]["n"])


async def create(driver: LadybugDriver, name: str) -> None:
    await driver.execute_query("CREATE (:Entity {uuid: $uuid, group_id: $g})", uuid=name, g="g")


# --- the file


async def test_a_file_is_open_once_in_a_process(driver: LadybugDriver, path: Path) -> None:
    with pytest.raises(StoreConflict, match=str(os.getpid())):
        await open_ladybug(path)
    assert await number(driver) == 0


async def test_a_file_is_open_once_on_a_machine(driver: LadybugDriver, path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys; from pps.graph.ladybug import open_ladybug; "
        "asyncio.run(open_ladybug(pathlib.Path(sys.argv[1])))"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"StoreConflict: {path} is open already, in process {os.getpid()}" in done.stderr


async def test_a_closed_file_can_be_opened_again_at_once(path: Path) -> None:
    for turn in range(3):
        driver = await open_ladybug(path)
        assert await number(driver) == turn
        await create(driver, str(turn))
        await driver.close()
        await driver.close()
        with pytest.raises(StoreUnavailable):
            await number(driver)
        with pytest.raises(StoreUnavailable):
            await create(driver, "x")
        with pytest.raises(StoreUnavailable):
            async with driver.transaction():
                pass


FIRST_OPENINGS = """
import asyncio, sys, time
from pathlib import Path
from ladybug import _backend
from pps.graph.ladybug_connection import LadybugOptions
from pps.graph.ladybug_pool import LadybugPool

load = _backend._import_pybind_module

def slowly():
    time.sleep(0.5)
    return load()

async def main():
    _backend._import_pybind_module = slowly
    folder = Path(sys.argv[1])
    for pool in await asyncio.gather(*(LadybugPool.open(folder / f"{n}.lbug", LadybugOptions()) for n in range(4))):
        await pool.close()

asyncio.run(main())
"""


def test_the_first_files_of_a_process_may_be_opened_side_by_side(tmp_path: Path) -> None:
    """LadybugDB's library is being loaded for the first when the others come."""
    ended = subprocess.run([sys.executable, "-c", FIRST_OPENINGS, str(tmp_path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


async def test_what_is_no_database_is_refused_and_left_as_it_is(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"something else" * 1000)  # noqa: ASYNC240 - nothing else runs
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await open_ladybug(path)
        assert not isinstance(caught.value, StoreConflict)
    assert path.read_bytes() == b"something else" * 1000  # noqa: ASYNC240 - nothing else runs
    with pytest.raises(StoreUnavailable):
        await open_ladybug(tmp_path / "absent" / "graph.lbug")


async def test_opening_and_closing_gives_everything_back(tmp_path: Path) -> None:
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))

    async def use(turn: int) -> None:
        driver = await open_ladybug(tmp_path / f"{turn}.lbug")
        await EmbeddedStore(driver, new_group()).save_nodes(some_nodes(50), {})
        await driver.close()

    for turn in range(3):
        await use(turn)
    threads, files = held()
    for turn in range(3, 33):
        await use(turn)
    assert held()[0] <= threads + 2  # Arrow starts some of its own when it likes
    assert held()[1] == files


async def test_forty_files_are_open_at_once(tmp_path: Path) -> None:
    drivers = [await open_ladybug(tmp_path / f"{turn}.lbug") for turn in range(40)]
    await asyncio.gather(*(create(driver, "x") for driver in drivers))
    assert [await number(driver) for driver in drivers] == [1] * 40
    for driver in drivers:
        await driver.close()


# --- crashes


async def killed_writer(path: Path, group: str, checkpoint_bytes: int, after_s: float) -> list[str]:
    """Let a process save facts and kill it; return the facts that it said were saved."""
    arguments = [sys.executable, "-m", "tests.integration.graph_writer", str(path), group, str(checkpoint_bytes)]
    writer = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    assert writer.stdout
    first = (await writer.stdout.readline()).decode()
    await asyncio.sleep(after_s)
    writer.kill()
    rest = (await writer.stdout.read()).decode()
    await writer.wait()
    return (first + rest[: rest.rfind("\n") + 1]).split()


@pytest.mark.parametrize("checkpoint_bytes", [64 * 1024, 16 * MIB])
async def test_what_was_acknowledged_is_there_after_a_kill(path: Path, checkpoint_bytes: int) -> None:
    group = new_group()
    saved: list[str] = []
    for turn in range(6):
        after_s = 0.05 + 0.15 * turn * random.random()  # noqa: S311 - when to kill, not a secret
        saved += await killed_writer(path, group, checkpoint_bytes, after_s)
        driver = await open_ladybug(path)
        store = EmbeddedStore(driver, group)
        found = await store.facts(saved)
        counts = await store.counts()
        await driver.close()
        assert [fact.uuid for fact in found] == saved
        assert counts.facts % 20 == 0, "half of a batch was saved"
        assert counts.nodes - counts.facts in range(20 * (turn + 1) + 1)


NOISES = [random.Random(seed).randbytes(999) for seed in (0, 50, 97, 23, 18)]  # noqa: S311 - not a secret


async def saved_log(path: Path, group: str) -> tuple[list[str], bytes]:
    """Save ten batches of nodes, and leave the file and its log as a kill right after the last one would."""
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    saved: list[str] = []
    for _ in range(10):
        nodes = some_nodes(20, size=10)
        await store.save_nodes(nodes, {})
        saved += [node.uuid for node in nodes]
    base = path.read_bytes()  # noqa: ASYNC240 - nothing else runs
    log = path.with_name("graph.lbug.wal").read_bytes()
    await driver.close()
    path.write_bytes(base)  # noqa: ASYNC240 - nothing else runs
    return saved, log


@pytest.mark.parametrize(
    ("kept", "tail", "lost"),
    [
        pytest.param(None, bytes(1_000), 0, id="zeros"),
        pytest.param(None, None, 0, id="part of an older record"),
        *(pytest.param(None, noise, 0, id=f"noise {number_}") for number_, noise in enumerate(NOISES)),
        pytest.param(-1, b"", 20, id="cut by a byte"),
        pytest.param(-700, b"", 20, id="cut within a record"),
    ],
)
async def test_a_log_that_ends_in_a_torn_write_is_read_up_to_there_and_kept(
    path: Path, kept: int | None, tail: bytes | None, lost: int
) -> None:
    group = new_group()
    saved, log = await saved_log(path, group)
    torn = log[:kept] + (log[-700:-100] if tail is None else tail)
    path.with_name("graph.lbug.wal").write_bytes(torn)
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    expected = saved[: len(saved) - lost]
    assert [node.uuid for node in await store.nodes(saved)] == expected
    await store.save_nodes(some_nodes(5), {})
    await driver.close()
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, group)
    assert [node.uuid for node in await store.nodes(saved)] == expected
    assert (await store.counts()).nodes == len(expected) + 5
    await driver.close()
    assert path.with_name("graph.lbug.wal.damaged").read_bytes() == torn


async def test_nothing_is_written_to_a_disk_that_is_nearly_full(path: Path) -> None:
    driver = await open_ladybug(path, LadybugOptions(free_bytes=2**60))
    store = EmbeddedStore(driver, new_group())
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await store.save_nodes(some_nodes(1), {})
    with pytest.raises(StoreUnavailable, match="nearly full"):
        await create(driver, "x")
    assert await store.counts() == GraphCounts(0, 0, 0, 0, 0)
    await driver.close()


# --- memory


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
    driver = await open_ladybug(path, LadybugOptions(pool_bytes=16 * MIB, pool_limit_bytes=32 * MIB))
    store = EmbeddedStore(driver, new_group())
    await store.save_nodes(some_nodes(10), {})
    with pytest.raises(StoreError, match="smaller batches"):
        await store.save_nodes(some_nodes(20_000, size=60), {})
    assert (await store.counts()).nodes == 10
    await store.save_nodes(some_nodes(10), {})
    assert (await store.counts()).nodes == 20
    await driver.close()


# --- statements and transactions


async def test_times_with_a_zone_are_stored_as_their_instant_wherever_they_stand(driver: LadybugDriver) -> None:
    east = datetime(2025, 1, 1, 5, tzinfo=timezone(timedelta(hours=5)))
    rows, _, _ = await driver.execute_query(
        "UNWIND $rows AS row CREATE (n:Entity {uuid: row.uuid, created_at: row.at}) "
        "RETURN n.created_at AS at, $at AS given",
        rows=[{"uuid": "a", "at": east}],
        at=east,
    )
    assert rows == [{"at": east, "given": east}]
    assert rows[0]["at"].utcoffset() == timedelta(0)


async def test_parameters_may_be_none_missing_nested_or_too_many(driver: LadybugDriver) -> None:
    query = "CREATE (n:Entity {uuid: $uuid, name: $name, created_at: $at}) RETURN n.name AS name, n.created_at AS at"
    rows, _, _ = await driver.execute_query(query, params={"uuid": "a", "name": "x"}, at=None, more=1, routing_="r")
    assert rows == [{"name": "x", "at": None}]
    rows, _, _ = await driver.execute_query(query, uuid="b")
    assert rows == [{"name": None, "at": None}]


async def test_an_error_inside_a_transaction_ends_it_even_when_it_is_caught(driver: LadybugDriver) -> None:
    async def stubborn() -> None:
        async with driver.transaction() as tx:
            await tx.run("CREATE (:Entity {uuid: 'a'})")
            with pytest.raises(StoreError):
                await tx.run("CREATE (:Entity {uuid: 'a'})")
            with pytest.raises(StoreError, match="rolled back"):
                await tx.run("CREATE (:Entity {uuid: 'b'})")

    with pytest.raises(StoreError):
        await stubborn()
    assert await number(driver) == 0


async def test_a_write_outside_the_open_transaction_is_refused_instead_of_waiting_for_ever(
    driver: LadybugDriver,
) -> None:
    async def outside() -> None:
        async with driver.transaction():
            await create(driver, "a")

    with pytest.raises(StoreError, match="for ever"):
        await asyncio.wait_for(outside(), 5)
    assert await number(driver) == 0


async def test_readers_go_on_while_a_transaction_is_open_and_see_what_was_before(driver: LadybugDriver) -> None:
    async with driver.transaction() as tx:
        await tx.run("CREATE (:Entity {uuid: 'a'})")
        assert await asyncio.wait_for(number(driver), 5) == 0
    assert await number(driver) == 1


async def test_writers_wait_for_each_other(driver: LadybugDriver) -> None:
    async def write(turn: int) -> None:
        if turn % 2:
            return await create(driver, str(turn))
        async with driver.transaction() as tx:
            await tx.run("CREATE (:Entity {uuid: $uuid})", uuid=str(turn))
            await asyncio.sleep(0)
            await tx.run("MATCH (n:Entity {uuid: $uuid}) SET n.name = 'x'", uuid=str(turn))
        return None

    await asyncio.gather(*(write(turn) for turn in range(60)))
    assert await number(driver) == 60


async def test_a_cancelled_statement_stops_and_the_store_goes_on(driver: LadybugDriver) -> None:
    async def in_transaction() -> None:
        async with driver.transaction() as tx:
            await tx.run("CREATE (:Entity {uuid: 'lost'})")
            await tx.run(ENDLESS)

    for work in (driver.execute_query(ENDLESS), in_transaction()):
        task = asyncio.ensure_future(work)
        await asyncio.sleep(0.2)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 5
        assert await number(driver) == 0
    await create(driver, "a")
    assert await number(driver) == 1


async def test_closing_waits_for_what_is_being_written(path: Path) -> None:
    driver = await open_ladybug(path)
    store = EmbeddedStore(driver, new_group())
    saving = asyncio.create_task(store.save_nodes(some_nodes(2_000), {}))
    await asyncio.sleep(0.01)
    await driver.close()
    await saving
    driver = await open_ladybug(path)
    assert await number(driver) == 2_000
    await driver.close()


async def test_an_error_names_the_mistake_of_a_statement_but_no_value(driver: LadybugDriver) -> None:
    with pytest.raises(StoreError, match="nothing_like_it"):
        await driver.execute_query("MATCH (n:Entity) RETURN n.nothing_like_it")
    with pytest.raises(StoreError) as caught:
        await driver.execute_query("RETURN CAST($secret AS TIMESTAMP) AS at", secret="a secret")
    assert "secret" not in str(caught.value)
    await create(driver, "a secret")
    with pytest.raises(StoreError) as caught:
        await create(driver, "a secret")
    assert "secret" not in str(caught.value)


# --- the dialect


async def saved_by_graphiti(driver: LadybugDriver, group: str) -> tuple[list[EntityNode], list[EntityEdge]]:
    nodes = [EntityNode(name=name, group_id=group, created_at=T0, name_embedding=[1.0, 0.0]) for name in "abc"]
    for node in nodes:
        await node.save(driver)
    edges = [
        EntityEdge(
            source_node_uuid=nodes[start].uuid,
            target_node_uuid=nodes[end].uuid,
            name="R",
            fact=f"{start} to {end}",
            group_id=group,
            created_at=T0,
            reference_time=T0,
            fact_embedding=[1.0, 0.0],
        )
        for start, end in ((0, 1), (1, 2), (2, 0))
    ]
    return nodes, edges


async def test_facts_saved_by_graphiti_name_their_ends_whichever_way_they_are_saved(
    driver: LadybugDriver, store: EmbeddedStore
) -> None:
    nodes, edges = await saved_by_graphiti(driver, store.group)
    await edges[0].save(driver)
    await EdgeNamespace(driver, None).entity._ops.save(driver, edges[1])  # type: ignore[arg-type]
    await add_nodes_and_edges_bulk(driver, [], [], [], [edges[2]], None)  # type: ignore[arg-type]
    found = {fact.uuid: (fact.subject, fact.object) for fact in await store.scan_facts("", 10)}
    assert found == {edge.uuid: (edge.source_node_uuid, edge.target_node_uuid) for edge in edges}
    assert await store.distances(nodes[0].uuid, 1) == {nodes[0].uuid: 0, nodes[1].uuid: 1, nodes[2].uuid: 1}
    for edge in edges:
        assert (await EntityEdge.get_by_uuid(driver, edge.uuid)).reference_time == T0


async def test_graphiti_finds_the_facts_of_a_node_from_both_sides(driver: LadybugDriver, store: EmbeddedStore) -> None:
    nodes, edges = await saved_by_graphiti(driver, store.group)
    for edge in edges:
        await edge.save(driver)
    for number_, node in enumerate(nodes):
        expected = {edges[number_].uuid, edges[number_ - 1].uuid}
        for found in (
            await EntityEdge.get_by_node_uuid(driver, node.uuid),
            await driver.entity_edge_ops.get_by_node_uuid(driver, node.uuid),
        ):
            assert {edge.uuid for edge in found} == expected
            ends = {edge.uuid: (edge.source_node_uuid, edge.target_node_uuid) for edge in edges}
            assert all((edge.source_node_uuid, edge.target_node_uuid) == ends[edge.uuid] for edge in found)


@pytest.mark.parametrize("way", ["node", "uuids", "group", "operations", "operations uuids", "operations group"])
async def test_a_node_deleted_by_graphiti_leaves_no_half_of_a_fact(
    driver: LadybugDriver, store: EmbeddedStore, way: str
) -> None:
    nodes, edges = await saved_by_graphiti(driver, store.group)
    for edge in edges:
        await edge.save(driver)
    node, operations = nodes[0], driver.entity_node_ops
    await {
        "node": lambda: node.delete(driver),
        "uuids": lambda: EntityNode.delete_by_uuids(driver, [node.uuid]),
        "group": lambda: EntityNode.delete_by_group_id(driver, store.group),
        "operations": lambda: operations.delete(driver, node),
        "operations uuids": lambda: operations.delete_by_uuids(driver, [node.uuid]),
        "operations group": lambda: operations.delete_by_group_id(driver, store.group),
    }[way]()
    left = [] if "group" in way else [edges[1].uuid]
    assert [fact.uuid for fact in await store.scan_facts("", 10)] == left


async def test_sagas_keep_all_their_columns(driver: LadybugDriver) -> None:
    saga = SagaNode(
        name="kitchen",
        group_id="g",
        created_at=T0,
        summary="s",
        first_episode_uuid=new_id(),
        last_episode_uuid=new_id(),
        last_summarized_at=T0,
        last_summarized_episode_valid_at=T0,
    )
    await saga.save(driver)
    assert (await SagaNode.get_by_uuid(driver, saga.uuid)).model_dump() == saga.model_dump()
    other = saga.model_copy(update={"uuid": new_id(), "summary": "other"})
    operations = driver.saga_node_ops
    await operations.save(driver, other)
    assert (await operations.get_by_uuid(driver, other.uuid)).model_dump() == other.model_dump()
    assert [one.uuid for one in await operations.get_by_group_ids(driver, ["g"], 1)] == [max(saga.uuid, other.uuid)]
    with pytest.raises(NodeNotFoundError):
        await operations.get_by_uuid(driver, new_id())


async def test_facts_that_do_not_name_their_ends_are_put_right_when_the_file_is_opened(path: Path) -> None:
    driver = await open_ladybug(path)
    await driver.execute_query(
        "CREATE (a:Entity {uuid: $a, group_id: $g}), (b:Entity {uuid: $b, group_id: $g}), (a)-[:RELATES_TO]->"
        "(:RelatesToNode_ {uuid: $e, group_id: $g, name: 'R', fact: 'f', created_at: $at})-[:RELATES_TO]->(b)",
        **(ids := {"a": new_id(), "b": new_id(), "e": new_id(), "g": new_group()}),
        at=T0,
    )
    await driver.close()
    driver = await open_ladybug(path)
    [fact] = await EmbeddedStore(driver, ids["g"]).facts([ids["e"]])
    assert (fact.subject, fact.object) == (ids["a"], ids["b"])
    await driver.close()


async def test_building_indexes_changes_nothing(driver: LadybugDriver) -> None:
    await driver.build_indices_and_constraints(delete_existing=True)
    await driver.delete_all_indexes()
    await driver.graph_ops.build_indices_and_constraints(driver)
    assert driver.clone("other") is driver


# --- the import of Graphiti


def test_importing_graphiti_reads_no_env_file_and_reports_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("STRAY=1\nGRAPHITI_TELEMETRY_ENABLED=true\n")
    code = (
        "import os, dotenv; own = dotenv.load_dotenv\n"
        "from pps.graph.ladybug import open_ladybug\n"
        "from graphiti_core.telemetry.telemetry import is_telemetry_enabled\n"
        "assert dotenv.load_dotenv is own; print(os.environ.get('STRAY'), is_telemetry_enabled())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # From a script: dotenv looks for the file in the folders above the caller's, and in the working folder.
    script = tmp_path / "program.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["None", "False"]


async def test_ten_thousand_facts_with_vectors_fit_into_one_batch(store: EmbeddedStore) -> None:
    nodes = some_nodes(1_000)
    facts = [
        Fact(new_id(), nodes[i % 1_000].uuid, nodes[i * 7 % 1_000].uuid, "R", f"fact {i}", T0) for i in range(10_000)
    ]
    await store.save_nodes(nodes, {})
    await store.save_facts(facts, {fact.uuid: np.full(384, 0.5, dtype=np.float32) for fact in facts})
    assert await store.counts() == GraphCounts(1_000, 10_000, 0, 0, 0)
    assert (await store.fact_vectors([facts[-1].uuid]))[facts[-1].uuid].shape == (384,)


async def test_long_episodes_come_back_whole(store: EmbeddedStore) -> None:
    episodes = [Episode(new_id(), "t", f"{i} 咖啡 " * 40_000, T0, T0) for i in range(5)]
    await store.save_episodes(episodes)
    assert await store.episodes([episode.uuid for episode in episodes]) == episodes
