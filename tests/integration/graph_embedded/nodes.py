"""Nodes that tests of the embedded store save, and how many there are."""

from __future__ import annotations

from pps.core.values import Node
from pps.graph.ladybug import LadybugDriver
from tests.integration.graph_items import T0, new_id

MIB = 2**20


def some_nodes(count: int, *, size: int = 1) -> list[Node]:
    return [Node(new_id(), f"{i}", T0, summary=new_id() * size) for i in range(count)]


async def number(driver: LadybugDriver, table: str = "Entity") -> int:
    rows, _, _ = await driver.execute_query(f"MATCH (n:{table}) RETURN count(*) AS n")
    return int(rows[0]["n"])


async def create(driver: LadybugDriver, name: str) -> None:
    await driver.execute_query("CREATE (:Entity {uuid: $uuid, group_id: $g})", uuid=name, g="g")
