"""One recall under way: what its perspectives share is worked out once, on first need."""

from __future__ import annotations

import asyncio
import re
import time as clock
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

from pps.core.time import Span, in_zone, now
from pps.core.time_reading import names_time, read_times
from pps.core.values import AnchorPassage, ChannelName, Episode, Fact, ItemKind, Node, Turn, spoken
from pps.index.indexes import EntityIndexes
from pps.index.prompts import PromptKind, about_the_person, prompt_kind
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal
from pps.journal.links import FactOutline, NodeOutline, Reached, Support
from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Reranker, Vector
from pps.models.token_encoder import ColbertEncoder
from pps.recall.query_words import (
    MIN_NAME_LETTERS,
    content_words,
    may_be_stem_of,
    possible_initials,
    spelled_alike,
)
from pps.recall.question import condensed, kind_asked_for
from pps.recall.request import RecallRequest

if TYPE_CHECKING:
    from pps.recall.why import Trace

Item: TypeAlias = Node | Fact | Episode | Turn | AnchorPassage
Candidate: TypeAlias = FactOutline | NodeOutline | Episode | Turn | AnchorPassage
"""What an order is made of: a fact or node need not be read from the graph for that, only to be shown."""
T = TypeVar("T")

NAMED = 8
"""Most nodes that a query is taken to name."""

_MOST_DESCRIBED = 3
"""More nodes than that which are described by a word say nothing of which is meant."""
_MOST_WORDS = 24
_ONE_PIECE = 3
"""Word pieces of a word that the vocabulary has, with the two special ones around it."""
_MARKS = ".,;:!?()[]{}\"'`“”«»…"

QUERIES_KEPT, QUERY_KEPT_S = 256, 900.0
_NAME_LIKE = re.compile(rf"\b[A-Z][^\W\d_]{{{MIN_NAME_LETTERS - 1},}}\b")
_CAPITALISED = re.compile(r"\b[^\W\d_a-z][^\W\d_]+\b")
_MOST_STEMS, _MOST_SPELLED = 8, 3

KINDS: dict[str, ItemKind] = {
    "facts": "fact",
    "past_facts": "fact",
    "nodes": "node",
    "records": "node",
    "episodes": "episode",
    "windows": "episode",
    "anchors": "anchor",
}
"""What a collection of the indexes holds."""


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


class QueryVectors:
    """Vectors of an entity's latest queries, 15 minutes each: what is asked again costs no call of the model."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int], tuple[float, Vector]] = OrderedDict()

    async def of(self, text: str, embedder: Embedder) -> Vector:
        """Return a query's vector, shape (dimension,)."""
        made = embedder.fingerprint
        key = (text, made.model, made.dimension)
        kept = self._kept.get(key)
        if kept is None or kept[0] < clock.monotonic():
            kept = (
                clock.monotonic() + QUERY_KEPT_S,
                await asyncio.to_thread(embedder.embed_query, text),
            )
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > QUERIES_KEPT:
            self._kept.popitem(last=False)
        return kept[1]


@dataclass(frozen=True, slots=True)
class Sources:
    """What one entity's recalls read from. Without ``embedder`` they go by text and graph only.

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
    query_vectors: QueryVectors = field(default_factory=QueryVectors)
    colbert: ColbertEncoder | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """One entry of a perspective's list.

    Attributes:
        score: In the perspective's own unit; only its order counts in rank fusion.
        signal: The same in [0, 1], for weighted sums.
    """

    id: str
    score: float
    signal: float


class Ask:
    """A recall's question, its sources and what was found out for it so far."""

    def __init__(self, sources: Sources, request: RecallRequest) -> None:
        self.sources = sources
        self.request = request
        self.kind: PromptKind = prompt_kind(request.query)
        self.about_the_person = about_the_person(request.query)
        self.text = condensed(
            self.about_the_person.seek if self.about_the_person else request.query
        )
        self.words = content_words(self.text)
        zone = sources.journal.zone
        self.moment: datetime = in_zone(request.as_of or now(), zone)
        as_of = request.as_of or request.filters.as_of
        self.as_of = as_of and in_zone(as_of, zone)
        self.filters: tuple[ItemFilter, ...] = (
            request.filters,
        )  # an empty one too: ``as_of`` is asked of each
        self.narrow(request.filters)
        self.items: dict[str, Item] = {}
        self.names: dict[str, str] = {}
        self.outlines: dict[str, FactOutline | NodeOutline] = {}
        self.supports: dict[str, Support] = {}
        self.parts: dict[tuple[str, str], int] = {}
        self.traces: dict[ChannelName, Trace] | None = None
        self.lacking: set[str] = set()  # what a perspective could not see yet, for the notes
        self.reached: Mapping[str, Reached] = {}
        self.left_out: set[str] = (
            set()
        )  # turns found among ``without``: what the reader has before it
        self._took_s: dict[tuple[str, str], float] = {}
        self._running: dict[Hashable, asyncio.Task[object]] = {}

    def narrow(self, filters: ItemFilter) -> None:
        """Let through only what another filter lets through too: a profile's, before anything is asked.

        Raises:
            InvalidRequest: It names a layer that the entity's packs do not have.
        """
        self.sources.journal.allowing.kinds.of_layers(filters.layers, "filters.layers")
        if filters not in (ItemFilter(), *self.filters):
            self.filters = (*self.filters, filters)

    async def respell(self) -> None:
        """Put the memory's own spelling in place of names that it does not know as the query writes them.

        Call before anything is looked for. A name that no text has, and that some text spells otherwise, is replaced
        by that spelling; the query that the caller sees stays as it was.
        """
        for word in dict.fromkeys(_NAME_LIKE.findall(self.words)):
            if await self._is_known(word):
                continue
            spelling = await self._spelling_of(word)
            if spelling:
                whole = re.compile(rf"\b{re.escape(word)}\b")
                self.text = whole.sub(spelling, self.text)
                self.words = whole.sub(spelling, self.words)

    async def _is_known(self, word: str) -> bool:
        found = await asyncio.gather(
            *(self.sources.indexes.text_search(one, word, 1) for one in ("episodes", "nodes"))
        )
        return any(found)

    async def _spelling_of(self, word: str) -> str:
        """Return how the memory's latest texts spell a name, where they spell it otherwise; else empty."""
        terms = await self.sources.indexes.text_terms("episodes", possible_initials(word))
        stems = [term for term in terms if may_be_stem_of(term, word)][:_MOST_STEMS]
        for stem in stems:
            hits = await self.sources.indexes.text_search("episodes", stem, _MOST_SPELLED)
            for turn in await self.sources.journal.turns([hit.owner for hit in hits]):
                for other in _CAPITALISED.findall(spoken(turn)):
                    if spelled_alike(word, other):
                        return other
        return ""

    def depth(self, usual: int, limit: int) -> int:
        """Return how many of each list are looked at: twice as many as are wanted, and more where some are left out."""
        return max(usual, 2 * limit) + min(len(self.request.without), 2 * limit)

    async def once(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` unless it was started under this key already; return its result."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(_awaited(work))
        return cast("T", await asyncio.shield(task))

    async def vector(self) -> Vector | None:
        """Return the query's vector, shape (dimension,); None when there is no embedder."""
        return await self.once("vector", self._embed)

    async def matches(self, collection: str, text: str, depth: int) -> list[Scored]:
        """Return BM25's best of a collection for a text, the query or its ``words``; ``signal`` is not set."""
        return await self.once(
            ("text", collection, text, depth), lambda: self._text(collection, text, depth)
        )

    async def similar(self, collection: str, depth: int) -> list[Scored]:
        """Return the nearest of a collection by raw cosine; empty when there is no embedder."""
        return await self.once(("dense", collection, depth), lambda: self._dense(collection, depth))

    async def matches_among(
        self, collection: str, text: str, ids: AbstractSet[str], depth: int | None = None
    ) -> list[Scored]:
        """Return the BM25 scores of the best ``depth`` (all) of the ids that match a text; ``signal`` is not set."""
        if not ids:
            return []
        hits = await self.sources.indexes.text_search(collection, text, depth or len(ids), ids)
        return [Scored(hit.owner, hit.score, 0.0) for hit in hits]

    async def similar_among(
        self, collection: str, ids: AbstractSet[str], depth: int | None = None
    ) -> list[Scored]:
        """Return the raw cosines of the nearest ``depth`` (all) of the ids with a vector; empty without a model."""
        vector = await self.vector()
        if vector is None or not ids:
            return []
        hits = await self.sources.indexes.vector_search(collection, vector, depth or len(ids), ids)
        return [Scored(hit.owner, hit.similarity, max(0.0, hit.similarity)) for hit in hits]

    async def reach(self) -> Mapping[str, Reached]:
        """Return the nodes within ``max_hops`` of the centre and how one comes to them; empty without a centre."""
        return await self.once("reach", self._reach)

    async def named(self) -> list[str]:
        return await self.once("named", lambda: self.sources.journal.named_in(self.text, NAMED))

    async def meant(self) -> list[str]:
        """Return the nodes that the query calls by name, those of a kind that it names, and those described as one.

        "Which ORM do we use?" means Diesel where that is of type ORM, and where its summary or an attribute says so.
        """
        kinds = self.once("kinds", lambda: self.sources.journal.of_kinds_in(self.text, NAMED))
        described = self.once("described", self._described)
        return list(dict.fromkeys([*await self.named(), *await kinds, *await described]))

    async def misspelt_words(self) -> list[str]:
        """Return the words that the query is about and no turn has, while one has a word spelt almost like it."""
        return await self.once("misspelt words", self._misspelt_words)

    async def times(self) -> list[Span]:
        """Return the stretches of time that the query names, read against the moment of the question.

        A stretch after all that was ever said is read once more against the latest turn: asked of a conversation
        of three years ago, "in May" is the May that it knew.
        """
        return await self.once("times", self._times)

    async def allowed(self, kind: ItemKind) -> set[str] | None:
        """Return the ids of a kind that all filters let through; None is no restriction."""
        wanted = [replace(one, as_of=self.as_of) for one in self.filters]
        if all(one == ItemFilter() for one in wanted):
            return None
        return await self.once(("allowed", kind), lambda: self._allowed(kind, wanted))

    async def permitted(self, kind: ItemKind, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that the filters let through, in the order given."""
        allowed = await self.allowed(kind)
        return list(ids) if allowed is None else [one for one in ids if one in allowed]

    def center(self) -> str | None:
        return self.request.center or self.sources.self_node

    def collections(self, channel: ChannelName) -> tuple[str, ...]:
        """Return the collections that a channel is found in; past facts only for another time."""
        if channel == "facts":
            return ("facts", "past_facts") if self.as_of else ("facts",)
        return ("episodes",) if channel == "turns" else (channel,)

    @contextmanager
    def timed(self, part: str, channel: str = "") -> Generator[None]:
        """Note how long a part of the work takes in a channel; its pieces add up."""
        started = clock.perf_counter()
        try:
            yield
        finally:
            self.spent(part, channel, clock.perf_counter() - started)

    def spent(self, part: str, channel: str, seconds: float) -> None:
        self._took_s[part, channel] = self._took_s.get((part, channel), 0.0) + seconds

    def took_s(self, part: str) -> float:
        """Return how long a part of the work took: of channels side by side, the longest counts."""
        return max(
            (seconds for (one, _), seconds in self._took_s.items() if one == part), default=0.0
        )

    async def close(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _described(self) -> list[str]:
        """Return the nodes whose summary or attributes have what the query wants one of; none where many have it."""
        kind = kind_asked_for(self.text)
        if not kind:
            return []
        found = await self.sources.indexes.text_search("nodes", kind, _MOST_DESCRIBED + 1)
        return [hit.owner for hit in found] if len(found) <= _MOST_DESCRIBED else []

    async def _misspelt_words(self) -> list[str]:
        words = [word.strip(_MARKS) for word in self.words.split()][:_MOST_WORDS]
        spelt = [word for word in dict.fromkeys(words) if word.isalpha() and len(word) > 3]
        # A word of English is no slip of the pen, however near another one is: "went" and "want".
        spelt = [word for word in spelt if len(wordpiece().encode(word).ids) > _ONE_PIECE]
        misspelt = await self.sources.indexes.misspelt("episodes", spelt)
        return [word for word in spelt if word in misspelt]

    async def _embed(self) -> Vector | None:
        embedder = self.sources.embedder
        if embedder is None:
            return None
        with self.timed("embed"):
            return await self.sources.query_vectors.of(self.text, embedder)

    async def _reach(self) -> Mapping[str, Reached]:
        if center := self.center():
            self.reached = await self.sources.journal.reach(
                center, self.request.max_hops, self.moment
            )
        return self.reached

    async def _times(self) -> list[Span]:
        if not names_time(self.text):
            return []
        spans = await asyncio.to_thread(read_times, self.text, self.moment)
        if not spans or self.request.as_of:
            return spans
        _, latest = await self.sources.journal.span()
        if latest is None or all(span.start is None or span.start <= latest for span in spans):
            return spans
        return await asyncio.to_thread(
            read_times, self.text, in_zone(latest, self.moment.tzinfo or UTC)
        )

    async def _allowed(self, kind: ItemKind, wanted: Sequence[ItemFilter]) -> set[str] | None:
        passed: set[str] | None = None
        for one in wanted:
            ids = await self.sources.journal.allowed(kind, one) if one != ItemFilter() else None
            if ids is not None:
                passed = ids if passed is None else passed & ids
        return passed

    async def _text(self, collection: str, text: str, depth: int) -> list[Scored]:
        allowed = await self.allowed(KINDS[collection])
        hits = await self.sources.indexes.text_search(collection, text, depth, allowed)
        return [Scored(hit.owner, hit.score, 0.0) for hit in hits]

    async def _dense(self, collection: str, depth: int) -> list[Scored]:
        vector = await self.vector()
        if vector is None:
            return []
        allowed = await self.allowed(KINDS[collection])
        hits = await self.sources.indexes.vector_search(collection, vector, depth, allowed)
        self.parts.update(((collection, hit.owner), hit.part) for hit in hits)
        return [Scored(hit.owner, hit.similarity, max(0.0, hit.similarity)) for hit in hits]


async def _awaited(work: Callable[[], Awaitable[object]]) -> object:
    return await work()
