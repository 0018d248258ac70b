"""The driver that runs Cypher: a transaction is one, and a statement that is refused is the store's error."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pps.core.errors import StoreError
from pps.core.ids import new_group
from tests.graph_backend import Neo4jBackend
from tests.integration.graph_items import new_id
from tests.neo4j_server import Neo4jServer

pytestmark = pytest.mark.neo4j


@pytest.fixture
async def backend(neo4j_server: Neo4jServer) -> AsyncIterator[Neo4jBackend]:
    opened = Neo4jBackend(neo4j_server)
    await opened.open()
    yield opened
    await opened.close()


async def test_a_transaction_that_raises_leaves_nothing(backend: Neo4jBackend) -> None:
    class Enough(Exception):
        pass

    store = backend.store(new_group())

    async def create(*, fail: bool) -> None:
        async with backend.driver.transaction() as tx:
            await tx.run(
                "CREATE (:Entity {uuid: $uuid, group_id: $group_id})",
                uuid=new_id(),
                group_id=store.group,
            )
            if fail:
                raise Enough

    with pytest.raises(Enough):
        await create(fail=True)
    assert (await store.counts()).nodes == 0
    await create(fail=False)
    assert (await store.counts()).nodes == 1


async def test_a_statement_that_is_refused_is_an_error_of_the_store(
    backend: Neo4jBackend,
) -> None:
    with pytest.raises(StoreError):
        await backend.driver.execute_query("MATCH (n RETURN n")
