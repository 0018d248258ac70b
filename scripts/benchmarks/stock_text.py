"""The full text that stock Graphiti asks an embedded store for, which has none: an extension would be a download.

Of Graphiti's statement only the call of the extension is answered by a ranker that is handed in; the rest of it, its
pattern, filters and order, runs as it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from graphiti_core.driver.driver import GraphDriver, GraphDriverSession, GraphProvider
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import GroupsEdgesNotFoundError

from pps.isolation.client import EntityDriver

_FULL_TEXT = re.compile(
    r"CALL QUERY_FTS_INDEX\('RelatesToNode_', 'edge_name_and_fact', [^)]+\), TOP := \$limit\)\s+YIELD node, score"
)
_FOUND = "UNWIND $hits AS hit WITH hit.uuid AS found, hit.score AS score"


class Ranker(Protocol):
    """Full text over a list of texts."""

    def rank(self, query: str, most: int) -> Sequence[tuple[int, float]]:
        """Return (number of the text, score), best first."""
        ...


Index: TypeAlias = Callable[[Sequence[str]], Ranker]
"""Makes a ranker of texts: BM25, as the extension."""


async def with_full_text(opened: EntityDriver, group: str, index: Index) -> EntityDriver:
    """Return the driver of an embedded graph with full text over its facts; any other driver as it is."""
    driver = opened.driver
    if not isinstance(driver, GraphDriver) or driver.provider != GraphProvider.KUZU:
        return opened
    try:
        edges = await EntityEdge.get_by_group_ids(driver, [group])
    except GroupsEdgesNotFoundError:  # how Graphiti says that there are none
        edges = []
    ranker = await asyncio.to_thread(index, [f"{edge.name} {edge.fact}" for edge in edges])
    return replace(opened, driver=FullTextDriver(driver, ranker, [edge.uuid for edge in edges]))


class FullTextDriver(GraphDriver):
    """A driver whose full-text call is answered by a ranker."""

    provider = GraphProvider.KUZU
    aoss_client: None = None

    def __init__(self, driver: GraphDriver, ranker: Ranker, uuids: Sequence[str]) -> None:
        self._driver: Any = driver
        self._ranker = ranker
        self._uuids = uuids
        self._database = ""

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """Run a statement; what full text would have found is handed to it as a parameter."""
        statement, replaced = _FULL_TEXT.subn(_FOUND, cypher_query_)
        if not replaced:
            return await self._driver.execute_query(cypher_query_, **kwargs)
        hits = self._ranker.rank(str(kwargs.pop("query")), int(kwargs["limit"]))
        if not hits:
            return [], None, None
        rows = [{"uuid": self._uuids[number], "score": score} for number, score in hits]
        return await self._driver.execute_query(
            statement.replace("node.uuid", "found"), hits=rows, **kwargs
        )

    def session(self, database: str | None = None) -> GraphDriverSession:
        """Return a session of the driver below."""
        return self._driver.session(database)

    async def close(self) -> None:
        """Do nothing: the driver below belongs to whoever opened it."""

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Do nothing: the tables are made when the file is opened."""

    def delete_all_indexes(self) -> Coroutine[Any, Any, Any]:
        """Return what the driver below does."""
        return self._driver.delete_all_indexes()
