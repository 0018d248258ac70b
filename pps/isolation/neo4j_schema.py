"""Lists and creates the indexes and constraints that PPS needs in a Neo4j database.

They are Graphiti's own, with four changes:

- Plain indexes on ``uuid`` become uniqueness constraints, so that two entities can never create the
    same id. They keep their names, so that stock Graphiti finds them and adds nothing.
- Every label has a range index on ``group_id``.
- Pages and timelines of one group have an index that returns them in order.
- The embeddings have vector indexes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol, cast

# isort: off
from pps.isolation import quiet as quiet  # before anything of Graphiti

from graphiti_core.driver.driver import GraphProvider
from graphiti_core.graph_queries import get_fulltext_indices, get_range_indices
# isort: on

from neo4j.exceptions import Neo4jError

from pps.core.errors import StoreError

_STATEMENT = re.compile(
    r"CREATE (?P<fulltext>FULLTEXT )?INDEX (?P<name>\w+) IF NOT EXISTS\s+"
    r"FOR (?P<node>\()?(?:\(\)-\[)?\w+:(?P<label>\w+)[\])](?:-\(\))?\s+"
    r"ON (?:EACH )?[\[(](?P<properties>[^\])]+)[\])]"
)
_EXTRA = (
    ("has_member_group_id", "RELATIONSHIP", "HAS_MEMBER", ("group_id",)),
    ("pps_entity_pages", "NODE", "Entity", ("group_id", "uuid")),
    ("pps_episode_pages", "NODE", "Episodic", ("group_id", "uuid")),
    ("pps_relation_pages", "RELATIONSHIP", "RELATES_TO", ("group_id", "uuid")),
    ("pps_relation_times", "RELATIONSHIP", "RELATES_TO", ("group_id", "valid_at", "uuid")),
)
_VECTORS = (
    ("pps_entity_vectors", "NODE", "Entity", ("name_embedding",)),
    ("pps_relation_vectors", "RELATIONSHIP", "RELATES_TO", ("fact_embedding",)),
)
"""Vector indexes for cosine similarity, of any dimension, because each entity has its own embedder.

An index cannot be restricted to a group, so Graphiti and PPS compare the vectors of one group
instead and do not use them; they are for Neo4j's own tools.
"""
_SHOW = (
    "SHOW INDEXES YIELD name, state, type, entityType, labelsOrTypes, properties, owningConstraint"
)
_MADE_MEANWHILE = (
    "EquivalentSchemaRuleAlreadyExists",
    "ConstraintAlreadyExists",
    "IndexAlreadyExists",
    "IndexDropFailed",
)


class Runs(Protocol):
    """A function that runs a statement and returns its rows; Neo4j's errors pass through."""

    async def __call__(self, query: LiteralString) -> list[dict[str, Any]]:
        """Run one statement."""
        ...


@dataclass(frozen=True, slots=True)
class Index:
    """A required index.

    Attributes:
        kind: ``unique`` (a constraint and its index), ``range``, ``fulltext`` or ``vector``.
        entity: ``NODE`` or ``RELATIONSHIP``.
    """

    name: str
    kind: str
    entity: str
    label: str
    properties: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} index on {self.label}({', '.join(self.properties)})"

    @property
    def keeps_apart(self) -> bool:
        """Return whether isolation depends on it: unique ids, and look-ups by group."""
        return self.kind == "unique" or self.properties == ("group_id",)

    def statement(self) -> LiteralString:
        """Return the statement that creates it, from names of this module or Graphiti only."""
        pattern = f"(x:{self.label})" if self.entity == "NODE" else f"()-[x:{self.label}]-()"
        properties = ", ".join(f"x.{name}" for name in self.properties)
        head = {
            "unique": "CONSTRAINT",
            "range": "RANGE INDEX",
            "fulltext": "FULLTEXT INDEX",
            "vector": "VECTOR INDEX",
        }[self.kind]
        tail = {
            "unique": f"REQUIRE {properties} IS UNIQUE",
            "range": f"ON ({properties})",
            "fulltext": f"ON EACH [{properties}]",
            "vector": f"ON ({properties})",
        }[self.kind]
        return cast(LiteralString, f"CREATE {head} {self.name} IF NOT EXISTS FOR {pattern} {tail}")


def wanted() -> tuple[Index, ...]:
    """Return every required index: Graphiti's, parsed from its statements, and PPS's own.

    Raises:
        StoreError: A statement of Graphiti cannot be parsed.
    """
    own = (*get_range_indices(GraphProvider.NEO4J), *get_fulltext_indices(GraphProvider.NEO4J))
    extra = (
        Index(name, "range", entity, label, properties)
        for name, entity, label, properties in _EXTRA
    )
    vectors = (
        Index(name, "vector", entity, label, properties)
        for name, entity, label, properties in _VECTORS
    )
    return (*map(_parse, own), *extra, *vectors)


async def missing(run: Runs) -> tuple[Index, ...]:
    """Return the required indexes that are absent or not online, whatever their names."""
    existing = {_shape(row) for row in await run(_SHOW) if row["state"] == "ONLINE"}
    return tuple(index for index in wanted() if not _exists(index, existing))


async def ensure(run: Runs) -> tuple[Index, ...]:
    """Create the missing indexes and wait until they are online; return those that failed.

    Creating a constraint fails if the data violate it (a uuid that another program used twice).
    """
    absent = await missing(run)
    if not absent:
        return ()
    for index in absent:
        await _make(run, index)
    await run("CALL db.awaitIndexes(300)")
    return await missing(run)


async def _make(run: Runs, index: Index) -> None:
    plain = (
        [row["name"] for row in await run(_SHOW) if _shape(row) == _plain(index)]
        if index.kind == "unique"
        else []
    )
    for name in plain:  # stock Graphiti's index on the same property blocks the constraint
        await _quietly(
            run, cast(LiteralString, f"DROP INDEX `{name.replace('`', '``')}` IF EXISTS")
        )
    try:
        await _quietly(run, index.statement())
    except Neo4jError as error:
        if "ConstraintCreationFailed" not in str(
            error.code
        ) and "ConstraintValidationFailed" not in str(error.code):
            raise
        if plain:
            await _quietly(
                run,
                Index(index.name, "range", index.entity, index.label, index.properties).statement(),
            )


async def _quietly(run: Runs, statement: LiteralString) -> None:
    """Run a CREATE or DROP; ignore the error if another process did the same meanwhile.

    While another process creates the constraint, the constraint's index looks like a plain one but
    cannot be dropped, which is ignored too.
    """
    try:
        await run(statement)
    except Neo4jError as error:
        if not str(error.code).endswith(_MADE_MEANWHILE):
            raise


def _parse(statement: str) -> Index:
    match = _STATEMENT.match(statement.strip())
    if not match:
        raise StoreError("Graphiti declares an index in a new way; PPS must be told how to read it")
    properties = tuple(name.strip().partition(".")[2] for name in match["properties"].split(","))
    kind = "fulltext" if match["fulltext"] else "unique" if properties == ("uuid",) else "range"
    return Index(
        match["name"], kind, "NODE" if match["node"] else "RELATIONSHIP", match["label"], properties
    )


_Shape = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def _shape(row: dict[str, Any]) -> _Shape:
    kind = "unique" if row["owningConstraint"] else str(row["type"]).lower()
    return (
        kind,
        row["entityType"],
        tuple(row["labelsOrTypes"] or ()),
        tuple(row["properties"] or ()),
    )


def _plain(index: Index) -> _Shape:
    return ("range", index.entity, (index.label,), index.properties)


def _exists(index: Index, existing: set[_Shape]) -> bool:
    return (index.kind, *_plain(index)[1:]) in existing or (
        index.kind == "range" and ("unique", *_plain(index)[1:]) in existing
    )
