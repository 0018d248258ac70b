"""The drivers that run Cypher: a transaction is one, and a statement that is refused is the store's error."""

from __future__ import annotations

import pytest

from pps.core.errors import StoreError
from pps.core.ids import new_group
from tests.graph_backend import CypherBackend
from tests.integration.graph_items import new_id


async def test_a_transaction_that_raises_leaves_nothing(cypher_backend: CypherBackend) -> None:
    class Enough(Exception):
        pass

    store = cypher_backend.store(new_group())

    async def create(*, fail: bool) -> None:
        async with cypher_backend.driver.transaction() as tx:
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
    cypher_backend: CypherBackend,
) -> None:
    with pytest.raises(StoreError):
        await cypher_backend.driver.execute_query("MATCH (n RETURN n")
