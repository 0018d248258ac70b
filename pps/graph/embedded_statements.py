"""The statements by which an embedded graph is read. Each binds the group; ids are looked up by primary key.

``UNWIND … {uuid: id}`` is a look-up, ``WHERE x.uuid IN $uuids`` a scan. A pattern with an edge is a look-up
only for ONE id, given as a parameter: a few ids are asked for in one statement of ``AT_ONCE`` such patterns, and many
by a join over the columns that name a fact's ends (9 ms for 100 nodes among 24,000 facts, against 77).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_NODE = (
    "n.uuid AS uuid, n.name AS name, n.labels AS labels, n.created_at AS created_at, n.summary AS summary, "
    "n.attributes AS attributes"
)
_FACT = (
    "e.uuid AS uuid, e.source_node_uuid AS source_node_uuid, e.target_node_uuid AS target_node_uuid, e.name AS name, "
    "e.fact AS fact, e.created_at AS created_at, e.episodes AS episodes, e.valid_at AS valid_at, "
    "e.invalid_at AS invalid_at, e.expired_at AS expired_at, e.attributes AS attributes"
)
_EPISODE = (
    "p.uuid AS uuid, p.name AS name, p.content AS content, p.source AS source, p.valid_at AS valid_at, "
    "p.source_description AS source_description, p.created_at AS created_at, p.entity_edges AS entity_edges"
)
_LINK = "e.uuid AS fact, e.source_node_uuid AS subject, e.target_node_uuid AS object, e.created_at AS created_at"

IDS: Final = "UNWIND string_split($uuids, ',') AS id"
"""Ids come as one text with commas between: handing a list over takes twice as long."""
NODES: Final = f"{IDS} MATCH (n:Entity {{uuid: id}}) WHERE n.group_id = $group_id RETURN {_NODE}"
FACTS: Final = f"{IDS} MATCH (e:RelatesToNode_ {{uuid: id}}) WHERE e.group_id = $group_id RETURN {_FACT}"
EPISODES: Final = f"{IDS} MATCH (p:Episodic {{uuid: id}}) WHERE p.group_id = $group_id RETURN {_EPISODE}"

AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class ByNumber:
    """One question for one, few (``$uuid0`` … up to ``AT_ONCE``) and many ids (``$uuids``)."""

    one: str
    few: str
    many: str


def _by_number(of_one: str, of_many: str) -> ByNumber:
    """Make the three from a statement with ``$uuid`` and one with ``$uuids``."""
    few = " UNION ALL ".join(of_one.replace("$uuid}", f"$uuid{number}}}") for number in range(AT_ONCE))
    return ByNumber(of_one, few, of_many)


LINKS: Final = _by_number(
    f"MATCH (n:Entity {{uuid: $uuid}})-[:RELATES_TO]-(e:RelatesToNode_) WHERE e.group_id = $group_id RETURN {_LINK}",
    " UNION ALL ".join(
        f"UNWIND $uuids AS id MATCH (e:RelatesToNode_) WHERE e.{end} = id AND e.group_id = $group_id RETURN {_LINK}"
        for end in ("source_node_uuid", "target_node_uuid")
    ),
)
MENTIONED: Final = _by_number(
    "MATCH (p:Episodic {uuid: $uuid})-[:MENTIONS]->(n:Entity) "
    "WHERE p.group_id = $group_id AND n.group_id = $group_id RETURN p.uuid AS episode, n.uuid AS node",
    "UNWIND $uuids AS id MATCH (p:Episodic {uuid: id})-[:MENTIONS]->(n:Entity) "
    "WHERE p.group_id = $group_id AND n.group_id = $group_id RETURN p.uuid AS episode, n.uuid AS node",
)
FACTS_OF_EPISODES: Final = (
    "MATCH (e:RelatesToNode_) WHERE e.group_id = $group_id AND list_has_any(e.episodes, $uuids) "
    "RETURN e.uuid AS uuid ORDER BY uuid"
)

MENTION: Final = """
LOAD FROM $rows
MATCH (p:Episodic {uuid: episode})
MATCH (n:Entity {uuid: node})
CREATE (p)-[:MENTIONS {uuid: uuid, group_id: $group_id, created_at: $at}]->(n)"""
UNMENTION: Final = """
UNWIND $rows AS row
MATCH (p:Episodic {uuid: row.episode})-[m:MENTIONS]->(n:Entity {uuid: row.node})
WHERE m.group_id = $group_id DELETE m"""

# Counted before the name is put beside it: grouped by a constant, an empty table gives no row at all.
COUNTS: Final = " UNION ALL ".join(
    [
        *(
            f"MATCH (n:{table}) WHERE n.group_id = $group_id WITH count(*) AS number RETURN '{name}' AS name, number"
            for name, table in (*(("nodes", "Entity"), ("facts", "RelatesToNode_"), ("episodes", "Episodic")),)
        ),
        "MATCH ()-[m:MENTIONS]->() WHERE m.group_id = $group_id "
        "WITH count(*) AS number RETURN 'mentions' AS name, number",
    ]
)
_CROSSING = "(coalesce(a.group_id, '') = $group_id) <> (coalesce(b.group_id, '') = $group_id)"
FOREIGN_EDGES: Final = " UNION ALL ".join(
    f"MATCH (a:{start})-[r:{edge}]->(b:{end}) WHERE {_CROSSING} RETURN count(*) AS number"
    for start, edge, end in (
        ("Entity", "RELATES_TO", "RelatesToNode_"),
        ("RelatesToNode_", "RELATES_TO", "Entity"),
        ("Episodic", "MENTIONS", "Entity"),
        ("Community", "HAS_MEMBER", "Entity"),
        ("Community", "HAS_MEMBER", "Community"),
        ("Saga", "HAS_EPISODE", "Episodic"),
        ("Episodic", "NEXT_EPISODE", "Episodic"),
    )
)


def page(table: str) -> str:
    """Return the statement for one page of uuids of a table, in order."""
    return (
        f"MATCH (n:{table}) WHERE n.group_id = $group_id AND n.uuid > $after "
        "RETURN n.uuid AS uuid ORDER BY uuid LIMIT $limit"
    )


def present(table: str) -> str:
    """Return the statement that tells which rows of a table are there."""
    return f"{IDS} MATCH (n:{table} {{uuid: id}}) WHERE n.group_id = $group_id RETURN n.uuid AS uuid"


def vectors(table: str, column: str) -> str:
    """Return the statement that reads vectors by uuid."""
    return (
        f"{IDS} MATCH (n:{table} {{uuid: id}}) "
        f"WHERE n.group_id = $group_id AND n.{column} IS NOT NULL RETURN n.uuid AS uuid, n.{column} AS vector"
    )


def timeline(conditions: str, *, of_node: bool) -> str:
    """Return the statement for one page of a timeline: uuids by (valid_at, uuid), undated last."""
    # A fact that joins a node to itself is met twice from there.
    start, once = (
        ("(:Entity {uuid: $node})-[:RELATES_TO]-(e:RelatesToNode_)", "DISTINCT ")
        if of_node
        else ("(e:RelatesToNode_)", "")
    )
    return (
        f"MATCH {start} WHERE e.group_id = $group_id{conditions} "
        f"RETURN {once}e.uuid AS uuid, e.valid_at AS valid_at ORDER BY valid_at, uuid LIMIT $limit"
    )
