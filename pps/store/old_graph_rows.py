"""Pages of rows of an old graph file, in either format, and the protocol of its readers."""

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
"""Uuids of the episode, the node and the edge, and the time of the edge's creation."""
Section: TypeAlias = Literal[
    "nodes", "facts", "episodes", "mentions", "communities", "sagas", "links"
]


@dataclass(frozen=True, slots=True)
class OldPage:
    """A page of rows of one section of a graph; the lists of other sections are empty.

    Attributes:
        total: Number of rows in the section, as far as known before they are read.
        vectors: Uuid → vector of the page's communities. Vectors of nodes and facts are in the
            indexes.
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
        """The number of rows, without vectors."""
        links = sum(len(rows) for rows in self.links.values())
        lists = (self.nodes, self.facts, self.episodes, self.mentions, self.communities, self.sagas)
        return links + sum(len(rows) for rows in lists)


class OldGraph(Protocol):
    """An open graph file of an earlier PPS, bound to one group; it is read only."""

    def check_group(self) -> None:
        """Raise IsolationError for a row of another group, StoreError for an invalid group."""
        ...

    def pages(self) -> Iterator[OldPage]:
        """Yield all rows of the file: nodes, facts and episodes before links between them."""
        ...


OpenOldGraph: TypeAlias = AbstractContextManager[OldGraph]
