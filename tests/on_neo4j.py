"""What lies on the Neo4j of the tests, asked of the database itself."""

from __future__ import annotations

from neo4j import AsyncGraphDatabase

from pps.config import Settings

_ANY = "any(key IN keys({0}) WHERE toStringOrNull({0}[key]) CONTAINS $word OR {0}[key] = $word)"
_NODES = f"MATCH (n) WHERE {_ANY.format('n')} RETURN labels(n) + keys(n) AS found"
_EDGES = f"MATCH ()-[r]->() WHERE {_ANY.format('r')} RETURN [type(r)] + keys(r) AS found"


async def anything_of(settings: Settings, word: str) -> list[object]:
    """Return labels and keys of every node and relationship with a property that holds a word, in any index too."""
    found = settings.neo4j
    async with AsyncGraphDatabase.driver(
        found.uri, auth=(found.user, found.password.get_secret_value())
    ) as driver:
        rows: list[object] = []
        for statement in (_NODES, _EDGES):
            answer = await driver.execute_query(statement, word=word, database_=found.database)
            rows += [record["found"] for record in answer.records]
        shown = await driver.execute_query(
            "SHOW FULLTEXT INDEXES YIELD name, entityType", database_=found.database
        )
        for record in shown.records:
            kind = "Nodes" if record["entityType"] == "NODE" else "Relationships"
            hits = await driver.execute_query(
                f"CALL db.index.fulltext.query{kind}($name, $word) YIELD score RETURN score",
                name=record["name"],
                word=f"{word}*",
                database_=found.database,
            )
            rows += [record["name"] for _ in hits.records]
        return rows
