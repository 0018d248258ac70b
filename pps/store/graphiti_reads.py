"""Reads of nodes, facts and episodes that only Graphiti's pipeline and recipes ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pps.core.time import micros
from pps.store.graph_rows import (
    SELECT_EPISODE,
    SELECT_FACT,
    SELECT_NODE,
    StoredEpisode,
    StoredFact,
    StoredNode,
)
from pps.store.graph_tables import GraphTables
from pps.store.sql_session import Row, Value, page_before

TimeColumn: TypeAlias = Literal["valid_at", "invalid_at", "created_at", "expired_at"]
Comparison: TypeAlias = Literal["=", "<>", ">", "<", ">=", "<=", "IS NULL", "IS NOT NULL"]

_WITHOUT_VALUE: Final = ("IS NULL", "IS NOT NULL")
_LABELLED = "EXISTS (SELECT 1 FROM json_each({node}.labels) l WHERE l.value IN EACH(:labels))"
_LATEST = f"{SELECT_EPISODE} WHERE e.valid_at <= :before AND e.grp = :grp"
_OF_SAGA = (
    " AND e.uuid IN (SELECT t.episode FROM saga_episode t "
    "JOIN saga g ON g.uuid = t.saga AND g.grp = t.grp "
    "WHERE g.name = :saga AND t.grp = :grp)"
)
_MENTIONING = (
    f"{SELECT_EPISODE} WHERE e.uuid IN "
    "(SELECT episode FROM mention WHERE node = :node AND grp = :grp) "
    "AND e.grp = :grp ORDER BY e.uuid"
)
_MENTIONED = (
    f"{SELECT_NODE} WHERE n.uuid IN "
    "(SELECT node FROM mention WHERE episode IN EACH(:episodes) AND grp = :grp) "
    "AND n.grp = :grp ORDER BY n.uuid"
)
_TOUCHING = (
    f"{SELECT_FACT} WHERE f.uuid IN (SELECT uuid FROM fact WHERE subject = :node AND grp = :grp "
    "UNION SELECT uuid FROM fact WHERE object = :node AND grp = :grp) "
    "AND f.grp = :grp ORDER BY f.uuid"
)
_LINKS = (
    "SELECT a, b, count(*) FROM (SELECT subject AS a, object AS b FROM fact WHERE grp = :grp "
    "UNION ALL SELECT object, subject FROM fact WHERE grp = :grp AND subject <> object) x "
    "GROUP BY a, b ORDER BY a, b"
)


@dataclass(frozen=True, slots=True)
class TimeTest:
    """One comparison of a fact's time; ``moment`` is None for ``IS NULL`` and ``IS NOT NULL``."""

    comparison: Comparison
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class FactFilter:
    """A filter of facts; a part that is None restricts nothing, an empty part passes nothing.

    Attributes:
        labels: Both ends of a fact have one of them.
        times: For each column alternatives, each a list of tests that all hold.
    """

    uuids: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    subjects: Sequence[str] | None = None
    objects: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    times: tuple[tuple[TimeColumn, Sequence[Sequence[TimeTest]]], ...] = ()

    def restricts(self) -> bool:
        return self != FactFilter()


class GraphitiReads:
    """Reads for Graphiti, bound to the group of the tables."""

    def __init__(self, file: GraphTables) -> None:
        self._file = file

    async def nodes_before(self, cursor: str | None, limit: int | None) -> list[StoredNode]:
        """Return nodes with ``uuid < cursor`` (None: no bound), last uuid first.

        ``facts_before`` and ``episodes_before`` do the same.
        """
        return [
            StoredNode.from_row(row) for row in await self._before(SELECT_NODE, "n", cursor, limit)
        ]

    async def facts_before(self, cursor: str | None, limit: int | None) -> list[StoredFact]:
        return [
            StoredFact.from_row(row) for row in await self._before(SELECT_FACT, "f", cursor, limit)
        ]

    async def episodes_before(self, cursor: str | None, limit: int | None) -> list[StoredEpisode]:
        return [
            StoredEpisode.from_row(row)
            for row in await self._before(SELECT_EPISODE, "e", cursor, limit)
        ]

    async def nodes_named(self, names: Iterable[str]) -> list[StoredNode]:
        """Return the nodes whose name equals one of the names, in uuid order."""
        wanted = sorted({name for name in names if name})
        statement = f"{SELECT_NODE} WHERE n.name IN EACH(:names) AND n.grp = :grp ORDER BY n.uuid"
        rows = await self._select(statement, names=wanted) if wanted else []
        return [StoredNode.from_row(row) for row in rows]

    async def nodes_mentioned(self, episodes: Sequence[str]) -> list[StoredNode]:
        """Return the nodes that are mentioned by any of the episodes, in uuid order."""
        rows = await self._select(_MENTIONED, episodes=episodes) if episodes else []
        return [StoredNode.from_row(row) for row in rows]

    async def nodes_labelled(self, labels: Sequence[str]) -> set[str]:
        """Return the uuids of the nodes with any of the labels."""
        statement = f"SELECT n.uuid FROM node n WHERE {_LABELLED.format(node='n')} AND n.grp = :grp"
        return {uuid for (uuid,) in await self._select(statement, labels=labels)}

    async def facts_touching(self, node: str) -> list[StoredFact]:
        """Return the facts with the node as subject or object, in uuid order."""
        return [StoredFact.from_row(row) for row in await self._select(_TOUCHING, node=node)]

    async def facts_between(self, subject: str, target: str) -> list[StoredFact]:
        """Return the facts from one node to another, in uuid order."""
        statement = (
            f"{SELECT_FACT} WHERE f.subject = :subject AND f.object = :target AND f.grp = :grp "
            "ORDER BY f.uuid"
        )
        rows = await self._select(statement, subject=subject, target=target)
        return [StoredFact.from_row(row) for row in rows]

    async def facts_matching(self, wanted: FactFilter) -> set[str]:
        """Return the uuids of the facts that pass a filter."""
        statement, values = _matching(wanted)
        return {uuid for (uuid,) in await self._select(statement, **values)}

    async def latest_episodes(
        self, before: datetime, limit: int, *, source: str | None = None, saga: str | None = None
    ) -> list[StoredEpisode]:
        """Return the latest episodes with ``valid_at <= before``, oldest first.

        Args:
            before: World time, aware.
            limit: Maximum number of episodes.
            source: Only episodes of this source, such as ``message``.
            saga: Only episodes of the saga with this name.
        """
        statement = _LATEST
        values: dict[str, Value] = {"before": micros(before), "most": limit}
        if source is not None:
            statement += " AND e.source = :source"
            values["source"] = source
        if saga is not None:
            statement += _OF_SAGA
            values["saga"] = saga
        statement += " ORDER BY e.valid_at DESC, e.created_at DESC, e.uuid LIMIT :most"
        rows = await self._select(statement, **values)
        return [StoredEpisode.from_row(row) for row in reversed(rows)]

    async def episodes_mentioning(self, node: str) -> list[StoredEpisode]:
        return [StoredEpisode.from_row(row) for row in await self._select(_MENTIONING, node=node)]

    async def episodes_of_nodes(self, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Return node → the uuids of the episodes that mention it; other nodes are left out."""
        statement = (
            "SELECT node, episode FROM mention WHERE node IN EACH(:nodes) AND grp = :grp "
            "ORDER BY episode"
        )
        episodes: dict[str, list[str]] = {}
        for node, episode in await self._select(statement, nodes=nodes) if nodes else []:
            episodes.setdefault(node, []).append(episode)
        return episodes

    async def mentions_of(self, episode: str) -> list[tuple[str, str]]:
        """Return (uuid of the mention, uuid of the node) for each mention of an episode."""
        statement = (
            "SELECT uuid, node FROM mention WHERE episode = :episode AND grp = :grp ORDER BY node"
        )
        return [(uuid, node) for uuid, node in await self._select(statement, episode=episode)]

    async def neighbours(self) -> list[tuple[str, str, int]]:
        """Return (node, neighbour, number of facts between them) for each pair, both ways."""
        return [(a, b, count) for a, b, count in await self._select(_LINKS)]

    async def _before(
        self, select: str, alias: str, cursor: str | None, limit: int | None
    ) -> list[Row]:
        statement, values = page_before(select, alias, cursor, limit)
        return await self._select(statement, **values)

    async def _select(self, statement: str, **values: Value | Sequence[str]) -> list[Row]:
        return await self._file.read(lambda session: session.rows(statement, **values))


def _matching(wanted: FactFilter) -> tuple[str, dict[str, Value | Sequence[str]]]:
    conditions = ["f.grp = :grp"]
    values = dict[str, Value | Sequence[str]]()
    for name, column, allowed in (
        ("uuids", "uuid", wanted.uuids),
        ("relations", "relation", wanted.relations),
        ("subjects", "subject", wanted.subjects),
        ("objects", "object", wanted.objects),
    ):
        if allowed is not None:
            conditions.append(f"f.{column} IN EACH(:{name})")
            values[name] = allowed
    if wanted.labels is not None:
        values["labels"] = wanted.labels
        labelled = _LABELLED.format(node="n")
        conditions += [
            f"EXISTS (SELECT 1 FROM node n WHERE n.uuid = f.{end} AND n.grp = f.grp AND {labelled})"
            for end in ("subject", "object")
        ]
    for column, alternatives in wanted.times:
        options = [_all_hold(column, tests, values) for tests in alternatives]
        conditions.append(f"({' OR '.join(options) or '1 = 0'})")
    return f"SELECT f.uuid FROM fact f WHERE {' AND '.join(conditions)}", values


def _all_hold(
    column: TimeColumn, tests: Sequence[TimeTest], values: dict[str, Value | Sequence[str]]
) -> str:
    terms: list[str] = []
    for test in tests:
        if test.comparison in _WITHOUT_VALUE or test.moment is None:
            terms.append(f"f.{column} {test.comparison}")
            continue
        name = f"at_{len(values)}"
        values[name] = micros(test.moment)
        terms.append(f"f.{column} {test.comparison} :{name}")
    return f"({' AND '.join(terms) or '1 = 1'})"
