"""PPS's own Cypher statements for one entity. Each binds ``group_id`` and matches on it.

- An id is looked up in the unique index on ``uuid``; then the group is compared, on the node or on
    the edge and both its nodes.
- The hints name the index and force a seek: the statistics of a new database mislead the planner,
    and a cached plan outlives them.
- Pages are ordered by ``group_id`` first, although it is constant; otherwise the planner does not
    use the order of the index.
- Vectors are not read with a row: with 384 numbers they are most of its size.
- Statements with many results return them as one list, ``rows``: the driver waits for the network
    twice per record.
"""

from __future__ import annotations

from pps.graph import mapping
from pps.graph.graph_store import ByUuid

_NODE_TIMES = ("created_at",)
_EPISODE_TIMES = ("valid_at", "created_at")


def _times(variable: str, *names: str) -> str:
    """Return map entries of times as ISO text, which is much faster to read than Neo4j's times."""
    return ", ".join(f"{name}: toString({variable}.{name})" for name in names)


def _all(variable: str, left_out: tuple[str, ...], times: tuple[str, ...]) -> str:
    """Return a map of all properties: null for those left out, times as ISO text.

    A map projection is ten times as fast as a list over ``keys()``, which looks up each property by
    name.
    """
    entries = [f"{name}: null" for name in left_out]
    if times:
        entries.append(_times(variable, *times))
    return f"{variable}{{.*, {', '.join(entries)}}}"


def _rows(columns: str) -> str:
    """Return the RETURN clause for one list of rows with these columns, in their order."""
    return f"RETURN collect({{{columns}}}) AS rows"


_NODE = _rows(
    f"uuid: n.uuid, labels: labels(n), attributes: {_all('n', ('name_embedding',), _NODE_TIMES)}"
)
_FACT = _rows(
    "uuid: e.uuid, source_node_uuid: s.uuid, target_node_uuid: o.uuid, "
    f"attributes: {_all('e', ('fact_embedding', 'reference_time'), mapping.FACT_TIMES)}"
)
_NODE_OTHERS = _all("n", ("name_embedding", *_NODE_TIMES), ())
_FACT_OTHERS = _all("e", ("fact_embedding", "reference_time", *mapping.FACT_TIMES), ())
_EPISODE = _rows(
    f"uuid: n.uuid, name: n.name, content: n.content, {_times('n', *_EPISODE_TIMES)}, "
    "source: n.source, source_description: n.source_description, entity_edges: n.entity_edges"
)
_OURS = "e.group_id = $group_id AND s.group_id = $group_id AND o.group_id = $group_id"


def _by_uuid(label: str) -> str:
    return (
        f"UNWIND $uuids AS uuid MATCH (n:{label}) USING INDEX SEEK n:{label}(uuid) "
        "WHERE n.uuid = uuid AND n.group_id = $group_id "
    )


def _page(label: str) -> str:
    return (
        f"MATCH (n:{label}) USING INDEX SEEK n:{label}(group_id, uuid) "
        "WHERE n.group_id = $group_id AND n.uuid > $after "
        "WITH n ORDER BY n.group_id, n.uuid LIMIT $limit "
    )


_FACT_BY_UUID = (
    "UNWIND $uuids AS uuid MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) "
    f"USING INDEX SEEK e:RELATES_TO(uuid) WHERE e.uuid = uuid AND {_OURS} "
)

# --- Reading

BY_UUID = ByUuid(
    nodes=f"{_by_uuid('Entity')} {_NODE}",
    facts=f"{_FACT_BY_UUID} {_FACT}",
    episodes=f"{_by_uuid('Episodic')} {_EPISODE}",
    node_vectors=f"{_by_uuid('Entity')} AND n.name_embedding IS NOT NULL "
    + _rows("uuid: uuid, vector: n.name_embedding"),
    fact_vectors=f"{_FACT_BY_UUID} AND e.fact_embedding IS NOT NULL "
    + _rows("uuid: uuid, vector: e.fact_embedding"),
)
SCAN_NODES = f"{_page('Entity')} {_NODE}"
SCAN_EPISODES = f"{_page('Episodic')} {_EPISODE}"
SCAN_FACTS = (
    "MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) USING INDEX SEEK e:RELATES_TO(group_id, uuid) "
    f"WHERE {_OURS} AND e.uuid > $after "
    f"WITH s, e, o ORDER BY e.group_id, e.uuid LIMIT $limit {_FACT}"
)

_TOUCHING = (
    f"{_by_uuid('Entity')} MATCH (n)-[e:RELATES_TO]-(other:Entity) "
    "WHERE e.group_id = $group_id AND other.group_id = $group_id "
)
LINKS = f"{_TOUCHING} WITH DISTINCT e " + _rows(
    "fact: e.uuid, subject: startNode(e).uuid, object: endNode(e).uuid"
)
FACTS_OF_NODES = (
    f"{_TOUCHING} WITH DISTINCT e ORDER BY e.created_at DESC, e.uuid LIMIT $limit "
    f"WITH e, startNode(e) AS s, endNode(e) AS o {_FACT}"
)
FACTS_OF_EPISODES = (
    "MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) USING INDEX SEEK e:RELATES_TO(group_id) "
    f"WHERE {_OURS} AND any(episode IN e.episodes WHERE episode IN $uuids) "
    f"WITH s, e, o ORDER BY e.uuid {_FACT}"
)
_PAIR_OF_ROW = (
    "MATCH (s:{first}) USING INDEX SEEK s:{first}(uuid) "
    "WHERE s.uuid = row.subject AND s.group_id = $group_id "
    "MATCH (o:Entity) USING INDEX SEEK o:Entity(uuid) "
    "WHERE o.uuid = row.object AND o.group_id = $group_id "
)
_PAIR = f"UNWIND $rows AS row {_PAIR_OF_ROW}"
FACTS_BETWEEN = (
    f"{_PAIR.format(first='Entity')} MATCH (s)-[e:RELATES_TO]->(o) WHERE e.group_id = $group_id "
    f"WITH DISTINCT s, e, o ORDER BY e.uuid {_FACT}"
)
MENTIONED = (
    f"{_by_uuid('Episodic')} MATCH (n)-[e:MENTIONS]->(m:Entity) "
    "WHERE e.group_id = $group_id AND m.group_id = $group_id "
    "WITH DISTINCT uuid AS episode, m.uuid AS node ORDER BY episode, node "
    + _rows("episode: episode, node: node")
)


def after_last() -> str:
    """Return the condition of a timeline's next page: after time ``$at`` and uuid ``$last``.

    With an OR instead of the CASE, the planner may run two seeks and sort all later facts.
    """
    return "e.valid_at >= $at AND CASE WHEN e.valid_at = $at THEN e.uuid > $last ELSE true END"


def timeline(*, node: bool, dated: bool, conditions: list[str]) -> str:
    """Return the statement for one page of a timeline.

    Args:
        node: Whether to return only facts that touch ``$node``.
        dated: True for the facts with a ``valid_at``, ordered by it; False for those without,
            ordered by uuid, after ``$last``.
        conditions: Further conditions, which are constants of this package, never text of callers.
    """
    if node:
        match = (
            "MATCH (n:Entity) USING INDEX SEEK n:Entity(uuid) "
            "WHERE n.uuid = $node AND n.group_id = $group_id "
            "MATCH (n)-[e:RELATES_TO]-(other:Entity) "
            "WITH DISTINCT e, startNode(e) AS s, endNode(e) AS o "
        )
    elif dated:
        match = (
            "MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) "
            "USING INDEX SEEK e:RELATES_TO(group_id, valid_at, uuid) "
        )
    else:
        match = (
            "MATCH (s:Entity)-[e:RELATES_TO]->(o:Entity) "
            "USING INDEX SEEK e:RELATES_TO(group_id, uuid) "
        )
    if dated:
        dates = "e.valid_at IS NOT NULL AND e.uuid IS NOT NULL"
    else:
        dates = "e.valid_at IS NULL AND e.uuid > $last"
    where = " AND ".join((_OURS, dates, *conditions))
    order = "e.group_id, e.valid_at, e.uuid" if dated else "e.group_id, e.uuid"
    return f"{match} WHERE {where} WITH s, e, o ORDER BY {order} LIMIT $limit {_FACT}"


COUNTS = (
    "RETURN COUNT { MATCH (n:Entity) WHERE n.group_id = $group_id } AS nodes, "
    "COUNT { MATCH ()-[e:RELATES_TO]->() WHERE e.group_id = $group_id } AS facts, "
    "COUNT { MATCH (n:Episodic) WHERE n.group_id = $group_id } AS episodes, "
    "COUNT { MATCH ()-[e:MENTIONS]->() WHERE e.group_id = $group_id } AS mentions"
)

_LABELS = ("Entity", "Episodic", "Community", "Saga")
_TYPES = ("RELATES_TO", "MENTIONS", "HAS_MEMBER", "HAS_EPISODE", "NEXT_EPISODE")
_CROSSING = " UNION ".join(
    (
        *(
            f"MATCH (n:{label})-[e]-(m) "
            "WHERE n.group_id = $group_id AND coalesce(m.group_id, '') <> $group_id RETURN e"
            for label in _LABELS
        ),
        *(
            f"MATCH (n)-[e:{kind}]->(m) WHERE e.group_id = $group_id AND "
            "(coalesce(n.group_id, '') <> $group_id OR coalesce(m.group_id, '') <> $group_id) "
            "RETURN e"
            for kind in _TYPES
        ),
    )
)
FOREIGN_EDGES = f"CALL () {{ {_CROSSING} }} RETURN count(DISTINCT e) AS edges"

# --- Writing. The EXISTING_ statements run before a write. Their rows tell whether an id is used by
# the entity (``ours``) or by another group (the write is refused); new ids have no row.


def _existing(label: str) -> str:
    return (
        f"UNWIND $uuids AS uuid MATCH (n:{label}) USING INDEX SEEK n:{label}(uuid) "
        "WHERE n.uuid = uuid "
        "WITH n, uuid, coalesce(n.group_id, '') = $group_id AS ours "
    )


def _if_ours(value: str) -> str:
    """Return an expression that is null for another group, so that nothing of it is read."""
    return f"CASE WHEN ours THEN {value} END"


EXISTING_NODES = _existing("Entity") + _rows(
    f"uuid: uuid, ours: ours, labels: {_if_ours('labels(n)')}, attributes: {_if_ours(_NODE_OTHERS)}"
)
EXISTING_EPISODES = _existing("Episodic") + _rows("uuid: uuid, ours: ours")
EXISTING_FACTS = (
    "UNWIND $uuids AS uuid MATCH (s)-[e:RELATES_TO]->(o) USING INDEX SEEK e:RELATES_TO(uuid) "
    "WHERE e.uuid = uuid "
    "WITH s, e, o, uuid, coalesce(e.group_id, '') = $group_id AS ours "
    + _rows(
        f"uuid: uuid, ours: ours, subject: {_if_ours('s.uuid')}, object: {_if_ours('o.uuid')}, "
        f"attributes: {_if_ours(_FACT_OTHERS)}"
    )
)
OWN_NODES = f"{_by_uuid('Entity')} RETURN count(*) AS found"
OWN_EPISODES = f"{_by_uuid('Episodic')} RETURN count(*) AS found"


def _data(times: tuple[str, ...]) -> str:
    """Return the map ``data``, a row's properties, with its ISO texts of times as times.

    The driver sends texts ten times faster than times.
    """
    entries = ", ".join(f"{name}: datetime(data.{name})" for name in times)
    return f"data{{.*, {entries}}}"


def _save(label: str, times: tuple[str, ...]) -> str:
    return (
        "UNWIND $rows AS row WITH row, row.data AS data "
        f"MERGE (n:{label} {{uuid: row.uuid, group_id: $group_id}}) SET n += {_data(times)} "
    )


_VECTOR = "toFloatList(split(row.vector, ','))"
SAVE_NODES = (
    f"{_save('Entity', _NODE_TIMES)} REMOVE n:$(row.dropped) SET n:$(row.labels) "
    "WITH n, row WHERE row.vector IS NOT NULL "
    f"CALL db.create.setNodeVectorProperty(n, 'name_embedding', {_VECTOR})"
)
SAVE_EPISODES = _save("Episodic", _EPISODE_TIMES)

_OWN_FACT = (
    "MATCH ()-[e:RELATES_TO]->() USING INDEX SEEK e:RELATES_TO(uuid) "
    "WHERE e.uuid = row.uuid AND e.group_id = $group_id "
)


def _columns(joined: str, row: str) -> str:
    """Return the beginning of a statement that builds ``row`` from columns, for each index ``i``.

    Each parameter named in ``joined`` is a column as one text, separated by commas. The driver
    spends 1 µs on each value and key: 30 µs for a fact as a row, 4 µs this way.
    """
    lists = ", ".join(f"split(${name}, ',') AS {name}" for name in joined.split())
    return f"WITH {lists} UNWIND range(0, size(ids) - 1) AS i WITH {{{row}}} AS row "


_NEW_FACTS = _columns(
    f"ids subjects objects episodes {' '.join(mapping.FACT_TIMES)}",
    "uuid: ids[i], subject: subjects[i], object: objects[i], vector: $vectors[i], "
    "data: {name: $names[i], fact: $facts[i], pps: $pps[i], "
    "episodes: [one IN split(episodes[i], ' ') WHERE one <> ''], "
    + ", ".join(f"{name}: nullIf({name}[i], '')" for name in mapping.FACT_TIMES)
    + "}",
)
CREATE_FACTS = (
    f"{_NEW_FACTS} {_PAIR_OF_ROW.format(first='Entity')} "
    "CREATE (s)-[e:RELATES_TO {uuid: row.uuid, group_id: $group_id}]->(o) "
    f"WITH e, row, row.data AS data SET e += {_data(mapping.FACT_TIMES)} "
    "WITH e, row WHERE row.vector IS NOT NULL "
    f"CALL db.create.setRelationshipVectorProperty(e, 'fact_embedding', {_VECTOR})"
)
MOVE_FACTS = (
    f"{_PAIR.format(first='Entity')} {_OWN_FACT} WITH s, o, e, properties(e) AS kept DELETE e "
    "CREATE (s)-[moved:RELATES_TO]->(o) SET moved = kept "
    "REMOVE moved.source_node_uuid, moved.target_node_uuid, moved.source_uuid, moved.target_uuid"
)
UPDATE_FACTS = (
    f"UNWIND $rows AS row {_OWN_FACT} WITH e, row.data AS data SET e += {_data(mapping.FACT_TIMES)}"
)
SET_FACT_VECTORS = (
    f"UNWIND $rows AS row {_OWN_FACT} "
    f"CALL db.create.setRelationshipVectorProperty(e, 'fact_embedding', {_VECTOR})"
)

SAVE_MENTIONS = (
    _columns("ids subjects objects", "uuid: ids[i], subject: subjects[i], object: objects[i]")
    + f"{_PAIR_OF_ROW.format(first='Episodic')} AND NOT EXISTS {{ (s)-[:MENTIONS]->(o) }} "
    "CREATE (s)-[:MENTIONS {uuid: row.uuid, group_id: $group_id, created_at: $now}]->(o)"
)
DELETE_MENTIONS = (
    "UNWIND $rows AS row MATCH (n:Episodic) USING INDEX SEEK n:Episodic(uuid) "
    "WHERE n.uuid = row.episode AND n.group_id = $group_id "
    "MATCH (n)-[e:MENTIONS]->(m:Entity) WHERE m.uuid = row.node AND e.group_id = $group_id "
    "DELETE e"
)

DELETE_NODES = f"{_by_uuid('Entity')} DETACH DELETE n RETURN count(*) AS gone"
DELETE_EPISODES = f"{_by_uuid('Episodic')} DETACH DELETE n RETURN count(*) AS gone"
DELETE_FACTS = (
    "UNWIND $uuids AS uuid MATCH ()-[e:RELATES_TO]->() USING INDEX SEEK e:RELATES_TO(uuid) "
    "WHERE e.uuid = uuid AND e.group_id = $group_id DELETE e RETURN count(*) AS gone"
)
CLEAR = (
    *(
        f"MATCH ()-[e:{kind}]->() USING INDEX SEEK e:{kind}(group_id) WHERE e.group_id = $group_id "
        "WITH e LIMIT $limit DELETE e RETURN count(*) AS gone"
        for kind in _TYPES
    ),
    *(
        f"MATCH (n:{label}) USING INDEX SEEK n:{label}(group_id) WHERE n.group_id = $group_id "
        "WITH n LIMIT $limit DETACH DELETE n RETURN count(*) AS gone"
        for label in _LABELS
    ),
)
"""Delete everything of the group: run each until it deletes fewer than ``$limit``.

Edges go first, so that nodes have few left.
"""
