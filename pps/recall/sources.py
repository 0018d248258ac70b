"""What the engine reads from: one entity's client, journal, indexes, models and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pps.core.values import AnchorPassage
from pps.index.indexes import EntityIndexes
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.journal import Journal
from pps.models.protocols import Embedder, Reranker


class AnchorSource(Protocol):
    """Where the text of anchors is read; the files are the truth, the indexes keep none of it."""

    async def passages(self, slug: str) -> Sequence[AnchorPassage]:
        """Return an anchor's passages in order; NotFound when there is none of that slug."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings that hold for every profile: see ``RecallSettings`` and ``RerankerSettings``.

    Attributes:
        novelty_weight: What a session was shown within ``novelty_window_s`` keeps ``(1 - w) ** times``.
        freshness_half_life_d, freshness_weight: Of ``score * ((1 - w) + w * 2 ** (-age / half_life))``.
        rerank_deadline_s: Past it a reranked list keeps the order it had.
    """

    novelty_weight: float = 0.5
    novelty_window_s: int = 1800
    freshness_half_life_d: float = 14.0
    freshness_weight: float = 0.3
    rerank_deadline_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Sources:
    """One entity's sources. ``embedder`` None is recall by text and graph only.

    Attributes:
        self_node: Uuid of the entity's own node: the default centre.
    """

    client: IsolatedGraphitiClient
    journal: Journal
    indexes: EntityIndexes
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    anchors: AnchorSource | None = None
    self_node: str | None = None
    tuning: Tuning = field(default_factory=Tuning)
