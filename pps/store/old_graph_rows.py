"""The pages that a graph file of an earlier PPS is read in, whatever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol, TypeAlias

from pps.core.values import Vector
from pps.store.graph_rows import StoredEpisode, StoredFact, StoredNode
from pps.store.graphiti_tables import GraphitiCommunity, GraphitiLink, GraphitiSaga, LinkTable

ROWS_IN_A_PAGE: Final = 1_000
Mention: TypeAlias = tuple[str, str, str, datetime]
"""Episode, node, uuid of the edge, and when it was made."""
Section: TypeAlias = Literal[
    "nodes", "facts", "episodes", "mentions", "communities", "sagas", "links"
]


@dataclass(frozen=True, slots=True)
class OldPage:
    """Rows of one section of a graph; what a page is not about is empty.

    Attributes:
        total: Rows that the section has as far as it is known before they are read.
        vectors: By uuid, of the page's communities; the indexes have those of nodes and facts.
    """

    section: Section
    total: int
    nodes: list[StoredNode] = field(default_factory=list[StoredNode])
    facts: list[StoredFact] = field(default_factory=list[StoredFact])
    episodes: list[StoredEpisode] = field(default_factory=list[StoredEpisode])
    mentions: list[Mention] = field(default_factory=list[Mention])
    communities: list[GraphitiCommunity] = field(default_factory=list[GraphitiCommunity])
    sagas: list[GraphitiSaga] = field(default_factory=list[GraphitiSaga])
    links: dict[LinkTable, list[GraphitiLink]] = field(
        default_factory=dict["LinkTable", "list[GraphitiLink]"]
    )
    vectors: dict[str, Vector] = field(default_factory=dict[str, Vector])

    @property
    def rows(self) -> int:
        """How many rows it brings, vectors not counted."""
        links = sum(len(rows) for rows in self.links.values())
        lists = (self.nodes, self.facts, self.episodes, self.mentions, self.communities, self.sagas)
        return links + sum(len(rows) for rows in lists)


class OldGraph(Protocol):
    """An open graph file of an earlier PPS, bound to one group. Reading it changes nothing."""

    def check_group(self) -> None:
        """Raise IsolationError for a row of another group, StoreError for one of no valid group."""
        ...

    def pages(self) -> Iterator[OldPage]:
        """Return all rows of the file: nodes, facts and episodes before the links between them."""
        ...


OpenOldGraph: TypeAlias = AbstractContextManager[OldGraph]
