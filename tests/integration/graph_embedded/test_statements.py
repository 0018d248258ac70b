"""The embedded store's statements and transactions: values, errors, waiting, cancelling."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pps.core.errors import StoreError
from pps.core.ids import new_group
from pps.graph.ladybug import LadybugDriver, open_ladybug
from pps.graph.store_embedded import EmbeddedStore
from tests.integration.graph_embedded.nodes import create, number, some_nodes

ENDLESS = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c) AS s"


async def test_times_with_a_zone_are_stored_as_their_instant_wherever_they_stand(
    driver: LadybugDriver,
) -> None:
    east = datetime(2025, 1, 1, 5, tzinfo=timezone(timedelta(hours=5)))
    rows, _, _ = await driver.execute_query(
        "UNWIND $rows AS row CREATE (n:Entity {uuid: row.uuid, created_at: row.at}) "
        "RETURN n.created_at AS at, $at AS given",
        rows=[{"uuid": "a", "at": east}],
        at=east,
    )
    assert rows == [{"at": east, "given": east}]
    assert rows[0]["at"].utcoffset() == timedelta(0)


async def test_parameters_may_be_none_nested_or_too_many(driver: LadybugDriver) -> None:
    query = "CREATE (n:Entity {uuid: $uuid, name: $name, created_at: $at}) RETURN n.name AS name, n.created_at AS at"
    rows, _, _ = await driver.execute_query(
        query, params={"uuid": "a", "name": "x"}, at=None, more=1, routing_="r"
    )
    assert rows == [{"name": "x", "at": None}]


async def test_an_error_inside_a_transaction_ends_it_even_when_it_is_caught(
    driver: LadybugDriver,
) -> None:
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


async def test_readers_go_on_while_a_transaction_is_open_and_see_what_was_before(
    driver: LadybugDriver,
) -> None:
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


async def test_an_error_names_the_mistake_of_a_statement_but_no_value(
    driver: LadybugDriver,
) -> None:
    with pytest.raises(StoreError, match="nothing_like_it"):
        await driver.execute_query("MATCH (n:Entity) RETURN n.nothing_like_it")
    with pytest.raises(StoreError) as caught:
        await driver.execute_query("RETURN CAST($secret AS TIMESTAMP) AS at", secret="a secret")
    assert "secret" not in str(caught.value)
    await create(driver, "a secret")
    with pytest.raises(StoreError) as caught:
        await create(driver, "a secret")
    assert "secret" not in str(caught.value)
