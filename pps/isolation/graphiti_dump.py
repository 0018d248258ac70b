"""Writes a group of stock Graphiti on Neo4j to a JSON file for an import; changes nothing there."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString
from urllib.parse import parse_qs, urlsplit, urlunsplit

from neo4j import READ_ACCESS, AsyncDriver, AsyncGraphDatabase, NotificationMinimumSeverity

from pps.core.errors import InvalidRequest
from pps.core.ids import is_group
from pps.isolation.neo4j import Address, mapping

SCHEMES: Final = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
_PAGE: Final = 1_000
_NODE = (
    "MATCH (n:{label}) WHERE n.group_id = $group_id AND n.uuid > $after "
    "RETURN n.uuid AS uuid, labels(n) AS labels, properties(n) AS properties "
    "ORDER BY uuid LIMIT $limit"
)
_NODES: Final[LiteralString] = _NODE.replace("{label}", "Entity")
_EPISODES: Final[LiteralString] = _NODE.replace("{label}", "Episodic")
_EDGES: Final[LiteralString] = (
    "MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) WHERE e.group_id = $group_id AND e.uuid > $after "
    "AND s.group_id = $group_id AND o.group_id = $group_id "
    "RETURN e.uuid AS uuid, s.uuid AS source_node_uuid, o.uuid AS target_node_uuid, "
    "properties(e) AS properties "
    "ORDER BY uuid LIMIT $limit"
)
_COLUMNS: Final = frozenset(
    (
        *("uuid", "name", "group_id", "summary", "created_at", "name_embedding", "fact_embedding"),
        *("fact", "episodes", "valid_at", "invalid_at", "expired_at", "reference_time", "content"),
        *("source", "source_description", "entity_edges", "labels", "pps"),
    )
)


@dataclass(frozen=True, slots=True)
class GraphitiGroup:
    """Address of a group of stock Graphiti: ``neo4j://HOST:PORT/DATABASE?group=NAME``."""

    uri: str
    database: str
    group: str

    @classmethod
    def parse(cls, url: str) -> GraphitiGroup:
        """Parse an address; the default database is ``neo4j``.

        Raises:
            InvalidRequest: The address is malformed, names a user, or names the group of an entity
                of PPS.
        """
        parts = urlsplit(url)
        groups = parse_qs(parts.query).get("group", [])
        if parts.scheme not in SCHEMES or not parts.hostname or len(groups) != 1:
            raise InvalidRequest(
                "paths", "a group is written neo4j://HOST:PORT/DATABASE?group=NAME"
            )
        if parts.username or parts.password:
            raise InvalidRequest("paths", "names no user: NEO4J_USER and NEO4J_PASSWORD do")
        if is_group(groups[0]):
            raise InvalidRequest("paths", "is the group of an entity; `pps export` writes a memory")
        uri = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        return cls(uri, parts.path.strip("/") or "neo4j", groups[0])


async def dump_group(source: GraphitiGroup, user: str, password: str, file: Path) -> int:
    """Write a group's nodes, facts and episodes to a new file of mode 0600.

    Returns:
        The number of nodes, facts and episodes.

    Raises:
        StoreUnavailable: The server does not answer.
        ConfigError: The user, the password or the database is wrong.
        InvalidRequest: The group is empty.
    """
    address = Address(source.uri, user, source.database)
    with mapping(address):
        # The library's options are untyped.
        driver = AsyncGraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType]
            source.uri,
            auth=(user, password),
            connection_timeout=5.0,
            notifications_min_severity=NotificationMinimumSeverity.OFF,
            telemetry_disabled=True,
            user_agent="pps",
        )
        async with driver:
            graph = {
                "nodes": [_node(row) async for row in _rows(driver, source, _NODES)],
                "edges": [_edge(row) async for row in _rows(driver, source, _EDGES)],
                "episodes": [_episode(row) async for row in _rows(driver, source, _EPISODES)],
            }
    number = sum(map(len, graph.values()))
    if not number:
        raise InvalidRequest("paths", f"the group {source.group!r} has nothing at {source.uri}")
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(graph, stream, ensure_ascii=False, default=_plain)
    return number


async def _rows(
    driver: AsyncDriver, source: GraphitiGroup, statement: LiteralString
) -> AsyncIterator[dict[str, Any]]:
    after = ""
    while True:
        async with driver.session(  # pyright: ignore[reportUnknownMemberType]
            database=source.database, default_access_mode=READ_ACCESS
        ) as session:
            records = await session.run(statement, group_id=source.group, after=after, limit=_PAGE)
            rows = [dict(record) async for record in records]
        for row in rows:
            yield row
        if len(rows) < _PAGE:
            return
        after = rows[-1]["uuid"]


def _node(row: Mapping[str, Any]) -> dict[str, Any]:
    columns = _properties(row, "uuid", "name", "summary", "created_at")
    return {**columns, "labels": row["labels"], "attributes": _attributes(row)}


def _edge(row: Mapping[str, Any]) -> dict[str, Any]:
    times = ("created_at", "valid_at", "invalid_at", "expired_at")
    columns = _properties(row, "uuid", "name", "fact", "episodes", *times)
    ends = {name: row[name] for name in ("source_node_uuid", "target_node_uuid")}
    return {**columns, **ends, "attributes": _attributes(row)}


def _episode(row: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("name", "content", "source", "source_description")
    return _properties(row, "uuid", *texts, "created_at", "valid_at")


def _properties(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = row["properties"]
    return {name: properties[name] for name in names if name in properties}


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = row["properties"]
    return {name: value for name, value in properties.items() if name not in _COLUMNS}


def _plain(value: object) -> str:
    iso_format = getattr(value, "iso_format", None)  # times of Neo4j have it
    return str(iso_format()) if callable(iso_format) else str(value)
