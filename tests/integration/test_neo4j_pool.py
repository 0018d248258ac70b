"""The pool of connections to Neo4j: what it makes, what it checks, and what it says when something is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from dataclasses import replace
from typing import Any, LiteralString

import pytest
from neo4j import AsyncGraphDatabase

from pps.core.errors import ConfigError, StoreConflict, StoreError, StoreUnavailable
from pps.core.ids import new_group
from pps.isolation import neo4j_schema
from pps.isolation.neo4j import Neo4jPool, open_neo4j
from tests.neo4j_server import Neo4jServer

pytestmark = pytest.mark.neo4j

LABELS = ("Entity", "Episodic", "Community", "Saga")
TYPES = ("RELATES_TO", "MENTIONS", "HAS_MEMBER", "HAS_EPISODE", "NEXT_EPISODE")


async def open_on(server: Neo4jServer) -> Neo4jPool:
    return await open_neo4j(server.uri, server.user, server.password, server.database)


async def plainly(server: Neo4jServer, *statements: LiteralString, **parameters: Any) -> list[Any]:
    """Run statements as another program would, and return the rows of the last."""
    async with AsyncGraphDatabase.driver(server.uri, auth=(server.user, server.password)) as client:
        for statement in statements:
            answer = await client.execute_query(statement, parameters, database_=server.database)
    return answer.records


def test_every_label_has_an_index_on_its_group_and_a_unique_uuid() -> None:
    shapes = {(index.kind, index.label, index.properties) for index in neo4j_schema.wanted()}
    for label in (*LABELS, *TYPES):
        assert ("range", label, ("group_id",)) in shapes
        assert ("unique", label, ("uuid",)) in shapes
    assert {label for kind, label, _ in shapes if kind == "fulltext"} == {*LABELS[:3], "RELATES_TO"}
    assert {label for kind, label, _ in shapes if kind == "vector"} == {"Entity", "RELATES_TO"}


async def test_an_open_pool_has_every_index_in_use(
    neo4j_pool: Neo4jPool, neo4j_server: Neo4jServer
) -> None:
    assert await neo4j_pool.missing() == ()
    rows = await plainly(
        neo4j_server, "SHOW INDEXES YIELD state, labelsOrTypes, properties, owningConstraint"
    )
    assert {row["state"] for row in rows} == {"ONLINE"}
    unique = {row["labelsOrTypes"][0] for row in rows if row["owningConstraint"]}
    assert unique == {*LABELS, *TYPES}
    assert neo4j_pool.version.startswith("5.26.")


async def test_a_missing_index_is_named_and_made_at_the_next_start(
    neo4j_pool: Neo4jPool, neo4j_server: Neo4jServer
) -> None:
    await plainly(neo4j_server, "DROP INDEX has_member_group_id", "DROP CONSTRAINT saga_uuid")
    assert set(await neo4j_pool.missing()) == {
        "range index on HAS_MEMBER(group_id)",
        "unique index on Saga(uuid)",
    }
    again = await open_on(neo4j_server)
    assert await again.missing() == ()
    await again.close()


async def test_the_plain_index_of_stock_graphiti_becomes_a_constraint(
    neo4j_server: Neo4jServer,
) -> None:
    await (await open_on(neo4j_server)).close()
    stock = "CREATE INDEX saga_uuid IF NOT EXISTS FOR (n:Saga) ON (n.uuid)"
    await plainly(neo4j_server, "DROP CONSTRAINT saga_uuid", stock)
    pool = await open_on(neo4j_server)
    assert await pool.missing() == ()
    await plainly(neo4j_server, stock)  # and stock Graphiti, asking again, is content
    assert await pool.missing() == ()
    await pool.close()


async def test_a_database_where_an_id_exists_twice_is_refused(neo4j_server: Neo4jServer) -> None:
    await (await open_on(neo4j_server)).close()
    mark = secrets.token_hex(8)
    stock = "CREATE INDEX saga_uuid IF NOT EXISTS FOR (n:Saga) ON (n.uuid)"
    twice = "UNWIND [1, 2] AS i CREATE (:Saga {uuid: $mark, secret: 'of somebody'})"
    await plainly(neo4j_server, "DROP CONSTRAINT saga_uuid", stock, twice, mark=mark)
    try:
        with pytest.raises(ConfigError, match=r"unique index on Saga\(uuid\)") as refused:
            await open_on(neo4j_server)
        assert "somebody" not in str(refused.value)
        assert mark not in str(refused.value)
        left = await plainly(neo4j_server, "SHOW INDEXES YIELD name WHERE name = 'saga_uuid'")
        assert len(left) == 1, "the index that was there must be there again"
    finally:
        await plainly(neo4j_server, "MATCH (n:Saga {uuid: $mark}) DETACH DELETE n", mark=mark)
    await (await open_on(neo4j_server)).close()


async def test_processes_that_start_at_once_do_not_collide(neo4j_server: Neo4jServer) -> None:
    await (await open_on(neo4j_server)).close()
    await plainly(
        neo4j_server,
        "DROP CONSTRAINT saga_uuid",
        "DROP INDEX saga_group_id",
        "DROP INDEX saga_name",
    )
    pools = await asyncio.gather(*(open_on(neo4j_server) for _ in range(5)))
    assert await pools[0].missing() == ()
    await asyncio.gather(*(pool.close() for pool in pools))


async def test_a_wrong_password_is_a_setting_to_mend(neo4j_server: Neo4jServer) -> None:
    wrong = secrets.token_urlsafe(12)
    with pytest.raises(ConfigError, match="NEO4J_PASSWORD") as refused:
        await open_on(replace(neo4j_server, password=wrong))
    assert wrong not in str(refused.value)
    assert not refused.value.retryable


async def test_an_absent_database_is_a_setting_to_mend(neo4j_server: Neo4jServer) -> None:
    with pytest.raises(ConfigError, match="no database 'elsewhere': check NEO4J_DATABASE"):
        await open_on(replace(neo4j_server, database="elsewhere"))


@pytest.mark.parametrize(
    "uri", ["http://127.0.0.1:7474", "127.0.0.1:7687", "", "file:///etc/passwd"]
)
async def test_an_address_of_another_kind_is_a_setting_to_mend(uri: str) -> None:
    with pytest.raises(ConfigError, match="bolt://HOST:PORT"):
        await open_neo4j(uri, "neo4j", "password", "neo4j")


@pytest.mark.parametrize("uri", ["bolt://127.0.0.1:1", "bolt://no-such-host.invalid:7687"])
async def test_a_server_that_is_away_is_unavailable_at_once(uri: str) -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(StoreUnavailable, match="scripts/neo4j start") as away:
        await open_neo4j(uri, "neo4j", "password", "neo4j")
    assert away.value.retryable
    assert asyncio.get_running_loop().time() - began < 10


async def test_statements_make_no_noise(
    neo4j_server: Neo4jServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        pool = await open_on(neo4j_server)
        driver = pool.driver()
        await driver.execute_query(
            "MATCH (n:NeverSeen {odd: 1}) RETURN n.property, id(n)"
        )  # three notifications
        await driver.build_indices_and_constraints()
        with pytest.raises(StoreError):
            await driver.execute_query("THIS IS NOT CYPHER")
        await pool.close()
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


async def test_a_refusal_quotes_nothing_of_what_was_sent(neo4j_pool: Neo4jPool) -> None:
    with pytest.raises(StoreError) as refused:
        await neo4j_pool.driver().execute_query("RETURN date($text)", text="my secret diary")
    assert "diary" not in str(refused.value)
    with pytest.raises(StoreError, match="cannot keep a value"):
        await neo4j_pool.driver().execute_query("RETURN $value", value=object())


async def test_the_schema_and_other_databases_are_out_of_a_drivers_reach(
    neo4j_pool: Neo4jPool,
) -> None:
    driver = neo4j_pool.driver()
    with pytest.raises(StoreError):
        driver.delete_all_indexes()
    with pytest.raises(StoreError):
        await driver.build_indices_and_constraints(delete_existing=True)
    with pytest.raises(StoreError):
        driver.session(database="system")
    with pytest.raises(StoreError):
        await driver.execute_query("SHOW USERS", database_="system")


async def test_an_error_of_the_callers_own_passes_and_rolls_back(neo4j_pool: Neo4jPool) -> None:
    group, driver = new_group(), neo4j_pool.driver()

    async def work() -> None:
        async with driver.transaction() as transaction:
            await transaction.run(
                "CREATE (:Saga {uuid: $group_id, group_id: $group_id})", group_id=group
            )
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await work()
    rows, _, _ = await driver.execute_query(
        "MATCH (n:Saga {group_id: $group_id}) RETURN n.uuid", group_id=group
    )
    assert rows == []


async def test_a_transaction_that_is_cancelled_leaves_nothing_and_the_pool_goes_on(
    neo4j_pool: Neo4jPool,
) -> None:
    group, driver = new_group(), neo4j_pool.driver()
    inside = asyncio.Event()

    async def work() -> None:
        async with driver.transaction() as transaction:
            await transaction.run(
                "CREATE (:Saga {uuid: $group_id, group_id: $group_id})", group_id=group
            )
            inside.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    rows, _, _ = await driver.execute_query(
        "MATCH (n:Saga {group_id: $group_id}) RETURN n.uuid", group_id=group
    )
    assert rows == []


async def test_statements_that_lose_a_deadlock_are_tried_again(neo4j_pool: Neo4jPool) -> None:
    """Two statements that lock the same nodes in opposite orders, many times over."""
    group, driver = new_group(), neo4j_pool.driver()
    ids = [f"{group}{i}" for i in range(20)]
    await driver.execute_query(
        "UNWIND $ids AS id CREATE (:Saga {uuid: id, group_id: $group})", ids=ids, group=group
    )
    bump = "UNWIND $ids AS id MATCH (n:Saga {uuid: id}) SET n.count = coalesce(n.count, 0) + 1"

    async def insist(order: list[str]) -> None:
        for _ in range(
            20
        ):  # it gives up after about a second of losing, which says that it may be run again
            with contextlib.suppress(StoreConflict):
                await driver.execute_query(bump, ids=order)
                return
        pytest.fail("lost every time")

    await asyncio.gather(*(insist(ids if i % 2 else ids[::-1]) for i in range(16)))
    rows, _, _ = await driver.execute_query(
        "MATCH (n:Saga {group_id: $group}) RETURN DISTINCT n.count", group=group
    )
    assert rows == [{"n.count": 16}]
    await driver.execute_query("MATCH (n:Saga {group_id: $group}) DELETE n", group=group)
