"""Search of records by meaning, alone or with nearness to another record."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, Unpack

from pps.core.errors import InvalidRequest, StoreError
from pps.core.kinds import Kinds, Priority
from pps.core.recalled import Hit, Recall, Relationship, SearchStats, Step
from pps.core.reports import IndexStatus
from pps.core.text import estimate_tokens
from pps.core.values import Node, Turn
from pps.index.indexes import EntityIndexes
from pps.ingest.indexer import Indexer
from pps.ingest.record_vectors import DriftReport
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal
from pps.models.protocols import Embedder
from pps.recall.floor import least_similarity
from pps.recall.request import RecallOptions

SEMANTIC_LEAST = 0.7
HYBRID_LEAST = 0.65
"""Least cosines of the two searches.

They hold for a model that config/floor.toml has no threshold for.
"""


_MOST = 50
"""What the profiles let a caller ask for.

With an anchor, which takes a place that is not shown, one less comes back.
"""
WEAK_BAND = 0.15
"""How far above the threshold a cosine must stand not to be weak."""
CLEAR_GAP = 0.08
"""Least fall between two scores after which the rest is left out."""


class Recaller(Protocol):
    """``Memory.recall``."""

    async def __call__(self, query: str, **options: Unpack[RecallOptions]) -> Recall: ...


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """What records are looked for by.

    Attributes:
        layers, kinds, status: Only these; those of one are alternatives, none is no restriction.
        min_similarity: Least cosine of what meaning brings; None is the model's own threshold.
        anchor_node_id: Id of a node: what is near it in the graph counts too, by
            ``structural_weight``.
        max_depth: Most hops from it, 1 to 4.
    """

    query: str
    layers: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    limit: int = 10
    min_similarity: float | None = None
    include_relationships: bool = False
    anchor_node_id: str | None = None
    structural_weight: float = 0.6
    semantic_weight: float = 0.4
    max_depth: int = 2


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record that answers.

    Attributes:
        score: What it is ranked by: the cosine, or with an anchor the weighted sum of both.
        semantic: The cosine, 0 where there is none; structural: 1 / hops from the anchor, 0 where
            it is not reached.
        path: The way from the anchor.
        is_weak: Its cosine is that of many pairs that have little to do with each other.
    """

    node: Node
    summary: str
    layer: str
    score: float
    semantic: float
    structural: float = 0.0
    path: tuple[Step, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    is_weak: bool = False


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """What was found, best first, and the threshold that was used."""

    results: tuple[FoundRecord, ...]
    stats: SearchStats
    min_similarity: float
    notes: tuple[str, ...] = ()


class RecordFinder:
    """What one entity's records are found by.

    Args:
        recall: ``Memory.recall``.
        kinds: Of the entity's packs.
        journal, indexes, indexer: The entity's own.
    """

    def __init__(
        self,
        recall: Recaller,
        kinds: Kinds,
        journal: Journal,
        indexes: EntityIndexes,
        indexer: Indexer,
    ) -> None:
        self._recall = recall
        self._kinds = kinds
        self._journal = journal
        self._indexes = indexes
        self._indexer = indexer

    @property
    def embedder(self) -> Embedder | None:
        """What records are embedded with."""
        return self._indexer.records.embedder

    @property
    def model(self) -> str:
        """Its model's name; empty for none."""
        return self.embedder.fingerprint.model if self.embedder else ""

    async def search(self, wanted: RecordSearch) -> FoundRecords:
        """Return the records that answer best.

        Raises:
            InvalidRequest: A bound is broken, or a layer or kind is none of the packs'.
            NotFound: The anchor is not this entity's.
            StoreError: The nodes could not be searched.
        """
        least = wanted.min_similarity
        if least is None:
            least = least_similarity(self.model) or (
                HYBRID_LEAST if wanted.anchor_node_id else SEMANTIC_LEAST
            )
        options: RecallOptions = {
            "profile": "hybrid" if wanted.anchor_node_id else "semantic",
            "channels": ("nodes",),
            "limit": min(wanted.limit + (wanted.anchor_node_id is not None), _MOST),
            "min_similarity": least,
            "include_relationships": wanted.include_relationships,
            "filters": ItemFilter(kinds=_kinds(wanted, self._kinds), statuses=wanted.status),
        }
        if wanted.anchor_node_id:
            options["center"] = wanted.anchor_node_id
            options["max_hops"] = wanted.max_depth
            options["weights"] = {
                "structural": wanted.structural_weight,
                "dense": wanted.semantic_weight,
            }
        channel = (await self._recall(wanted.query, **options)).channels["nodes"]
        if channel.error:
            raise StoreError(f"the records could not be searched: {channel.error}")
        nodes = [
            (hit, hit.item)
            for hit in channel.hits
            if isinstance(hit.item, Node) and hit.item.uuid != wanted.anchor_node_id
        ]
        turns = await self._journal.records.texts([node.uuid for _, node in nodes])
        sure = least + WEAK_BAND
        records = tuple(
            _found(hit, node, turns.get(node.uuid), self._kinds, sure) for hit, node in nodes
        )[: wanted.limit]
        if wanted.min_similarity is None and not wanted.anchor_node_id:
            records = records[: cut_at_gap([record.score for record in records])]
        tokens = estimate_tokens(
            "".join(f"{record.node.name}{record.summary}" for record in records)
        )
        average = sum(record.score for record in records) / len(records) if records else None
        return FoundRecords(
            records, SearchStats(len(records), average, tokens), least, channel.notes
        )

    async def drift(self, priorities: Collection[Priority] = ()) -> DriftReport:
        """Embed the records of some priorities, or all, anew.

        Return those whose vectors changed by more than 0.1.

        Raises:
            ModelError: The model fails.
        """
        return await self._indexer.drift.report(priorities)

    async def index_status(self) -> IndexStatus:
        """Return how many documents each index has, and what is not in it yet."""
        states = self._journal.vector_states
        text, vectors = await self._indexes.counts()
        states_made, states_waiting = await self._indexes.token_counts()
        return IndexStatus(
            text=text,
            vectors=vectors,
            fields=await states.fields(),
            lag=await self._indexer.lag(),
            vectors_waiting=await states.waiting(),
            vectors_failed=len(await states.failed()),
            model=self.model,
            token_states=states_made,
            token_states_waiting=states_waiting,
        )


def _kinds(wanted: RecordSearch, kinds: Kinds) -> tuple[str, ...]:
    """Return the kinds to look among: those named, of the layers named; of all, where none is."""
    named = {kinds.kind(name).name for name in wanted.kinds}
    of_layers = (
        kinds.of_layers(wanted.layers) if wanted.layers else tuple(kind.name for kind in kinds)
    )
    chosen = tuple(name for name in of_layers if not named or name in named)
    if not chosen:
        if wanted.layers and not named:
            raise InvalidRequest("layers", f"no kind lies in {', '.join(wanted.layers)}")
        if not named:
            raise InvalidRequest("packs", "this memory has none: `pps pack enable` gives it one")
        raise InvalidRequest("kinds", "none of them lies in these layers")
    return chosen


def cut_at_gap(scores: Sequence[float]) -> int:
    """Return how many of some falling scores stand above the largest gap; all where none is clear.

    A gap is clear when it is at least ``CLEAR_GAP``.
    """
    gaps = [before - after for before, after in itertools.pairwise(scores)]
    if not gaps or max(gaps) < CLEAR_GAP:
        return len(scores)
    return gaps.index(max(gaps)) + 1


def _found(hit: Hit, node: Node, turn: Turn | None, kinds: Kinds, sure: float) -> FoundRecord:
    semantic = hit.signals.get("dense", 0.0)
    return FoundRecord(
        node,
        turn.content if turn else node.summary,
        kinds.kind(node.kind).layer,
        hit.score,
        semantic,
        hit.signals.get("structural", 0.0),
        hit.path,
        hit.relationships,
        is_weak=semantic < sure,
    )
