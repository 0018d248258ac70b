"""One entity's group on Neo4j as JSON lines: dumped from a server, loaded into another.

A line is a node (``{"id", "labels", "properties"}``) or a relationship (``{"source", "target", "type",
"properties"}`` between ids of nodes). A time is ``{"time": ISO 8601}``; everything else is as in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, LiteralString, cast

from neo4j import AsyncDriver, AsyncGraphDatabase
from neo4j.time import DateTime

from tests.neo4j_server import Neo4jServer

_NODES = """
MATCH (n) WHERE n.group_id = $group
RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties ORDER BY n.uuid
"""
_EDGES = """
MATCH (s)-[r]->(t) WHERE r.group_id = $group OR (s.group_id = $group AND t.group_id = $group)
RETURN elementId(s) AS source, elementId(t) AS target, type(r) AS type, properties(r) AS properties
ORDER BY type(r), r.uuid, s.uuid, t.uuid
"""


async def dump_group(server: Neo4jServer, group: str) -> list[str]:
    """Return the lines of a group's nodes and relationships."""
    async with _driver(server) as driver:
        nodes = await _rows(driver, server, _NODES, group)
        edges = await _rows(driver, server, _EDGES, group)
    numbers = {node["id"]: number for number, node in enumerate(nodes)}
    for node in nodes:
        node["id"] = numbers[node["id"]]
        node["labels"] = sorted(node["labels"])
    for edge in edges:
        edge["source"], edge["target"] = numbers[edge["source"]], numbers[edge["target"]]
    return [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in (*nodes, *edges)]


async def load_group(server: Neo4jServer, lines: Iterable[str]) -> None:
    """Make what a dump holds; the group must not be there yet."""
    rows = [json.loads(line) for line in lines]
    ids: dict[int, str] = {}
    async with _driver(server) as driver:
        for row in rows:
            properties = {name: _decoded(value) for name, value in row["properties"].items()}
            if "labels" in row:
                made = await driver.execute_query(
                    cast(
                        "LiteralString",
                        f"CREATE (n{''.join(f':`{one}`' for one in row['labels'])}) "
                        "SET n = $properties RETURN elementId(n) AS id",
                    ),
                    properties=properties,
                    database_=server.database,
                )
                ids[row["id"]] = made.records[0]["id"]
            else:
                await driver.execute_query(
                    cast(
                        "LiteralString",
                        "MATCH (s), (t) WHERE elementId(s) = $source AND elementId(t) = $target "
                        f"CREATE (s)-[r:`{row['type']}`]->(t) SET r = $properties",
                    ),
                    source=ids[row["source"]],
                    target=ids[row["target"]],
                    properties=properties,
                    database_=server.database,
                )


async def delete_group(server: Neo4jServer, group: str) -> None:
    """Remove a group's nodes with their relationships."""
    async with _driver(server) as driver:
        await driver.execute_query(
            "MATCH (n) WHERE n.group_id = $group DETACH DELETE n",
            group=group,
            database_=server.database,
        )


def _driver(server: Neo4jServer) -> AsyncDriver:
    return AsyncGraphDatabase.driver(server.uri, auth=(server.user, server.password))


async def _rows(
    driver: AsyncDriver, server: Neo4jServer, statement: LiteralString, group: str
) -> list[dict[str, Any]]:
    answer = await driver.execute_query(statement, group=group, database_=server.database)
    rows = [record.data() for record in answer.records]
    for row in rows:
        row["properties"] = {name: _encoded(value) for name, value in row["properties"].items()}
    return rows


def _encoded(value: object) -> object:
    return {"time": value.iso_format()} if isinstance(value, DateTime) else value


def _decoded(value: object) -> object:
    if isinstance(value, Mapping):
        return datetime.fromisoformat(cast("Mapping[str, str]", value)["time"])
    return value
