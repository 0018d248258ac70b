"""One recall in progress: its request and sources, and every look-up that its retrievers share."""

from __future__ import annotations

import asyncio
import re
import time as clock
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar, cast

from cachetools import TTLCache

from pps.core.errors import IsolationError
from pps.core.relation_table import Relations
from pps.core.time import Span, in_zone, now
from pps.core.time_reading import names_time, read_times
from pps.core.values import AnchorPassage, ChannelName, Episode, Fact, ItemKind, Node, Turn, spoken
from pps.index.indexes import EntityIndexes, TextQuery
from pps.index.prompts import PromptKind, about_the_person, prompt_kind
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal
from pps.journal.links import FactOutline, NodeOutline, Reached, Support
from pps.models.onnx import wordpiece
from pps.models.protocols import Embedder, Reranker, Vector
from pps.models.token_encoder import ColbertEncoder
from pps.recall.question import (
    MIN_NAME_LETTERS,
    condensed,
    content_words,
    kind_asked_for,
    may_be_stem_of,
    possible_initials,
    spelled_alike,
    telling_words,
)
from pps.recall.request import RecallRequest

Item: TypeAlias = Node | Fact | Episode | Turn | AnchorPassage
Candidate: TypeAlias = FactOutline | NodeOutline | Episode | Turn | AnchorPassage
"""What ranking needs of an item: a fact or node is read from the graph only to be shown."""
T = TypeVar("T")

MAX_NAMED_NODES = 8
"""Most nodes that a query is taken to name."""
_MAX_DESCRIBED_NODES = 3
"""If more nodes than that are described by a word, it does not say which of them is meant."""
_MAX_WORDS_CHECKED = 24
_PIECES_OF_KNOWN_WORD = 3
"""Word pieces of a word that the vocabulary has, with the two special ones around it."""
_PUNCTUATION = ".,;:!?()[]{}\"'`“”«»…"
_NAME_LIKE = re.compile(rf"\b[A-Z][^\W\d_]{{{MIN_NAME_LETTERS - 1},}}\b")
_CAPITALISED = re.compile(r"\b[^\W\d_a-z][^\W\d_]+\b")
_MAX_STEMS = 8
_TURNS_PER_STEM = 3

QUERIES_KEPT = 256
QUERY_KEPT_S = 900.0

COLLECTION_KINDS: dict[str, ItemKind] = {
    "facts": "fact",
    "past_facts": "fact",
    "nodes": "node",
    "records": "node",
    "episodes": "episode",
    "windows": "episode",
    "anchors": "anchor",
}
"""Kind of the items in each collection of the indexes."""


class AnchorSource(Protocol):
    """Reads the text of anchors; the files are the truth, the indexes hold none of it."""

    async def passages(self, slug: str) -> Sequence[AnchorPassage]:
        """Return an anchor's passages in order; NotFound if there is no such anchor."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings that hold for every profile: see ``RecallSettings`` and ``RerankerSettings``.

    Attributes:
        novelty_weight: An item that a session was shown within ``novelty_window_s`` has its score
            multiplied by ``(1 - w) ** times``.
        freshness_half_life_d, freshness_weight: Of ``score * ((1 - w) + w * 2 ** (-age /
            half_life))``.
        rerank_deadline_s: Past it a reranked list keeps the order it had.
    """

    novelty_weight: float = 0.5
    novelty_window_s: int = 1800
    freshness_half_life_d: float = 14.0
    freshness_weight: float = 0.3
    rerank_deadline_s: float = 0.5


class QueryVectors:
    """Vectors of an entity's latest 256 queries, for 15 minutes each."""

    def __init__(self, timer: Callable[[], float] = clock.monotonic) -> None:
        self._vectors: TTLCache[tuple[str, str, int], Vector] = TTLCache(
            QUERIES_KEPT, QUERY_KEPT_S, timer
        )

    async def of(self, text: str, embedder: Embedder) -> Vector:
        """Return a query's vector, shape (dimension,)."""
        key = (text, embedder.fingerprint.model, embedder.fingerprint.dimension)
        vector = self._vectors.get(key)
        if vector is None:
            vector = await asyncio.to_thread(embedder.embed_query, text)
            self._vectors[key] = vector
        return vector


@dataclass(frozen=True, slots=True)
class Sources:
    """What one entity's recalls read from. Without ``embedder`` they go by text and graph only.

    Attributes:
        self_node: Uuid of the entity's own node: the default centre.
        relations: The installation's table, which tells what a subject has one of at a time.
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
    relations: Relations = field(default_factory=lambda: Relations(()))


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


@dataclass(frozen=True, slots=True)
class Trace:
    """How a channel was filled, for ``why``.

    Attributes:
        fusion, weights, min_similarity: Of the channel's profile, as it was for this query.
        lists: Perspective → its list.
        fused: Id → score of the fused lists.
        scores: Id → score after the factors (freshness, novelty, …).
        order: The ranked ids, best first.
        duplicates: Ids that were passed over; they only fill a short list.
        moves: Id → why it stands before better scores.
    """

    fusion: str
    weights: Mapping[str, float]
    min_similarity: float | None
    limit: int
    lists: Mapping[str, list[Scored]]
    fused: Mapping[str, float]
    scores: Mapping[str, float]
    order: tuple[str, ...]
    duplicates: tuple[str, ...]
    moves: Mapping[str, str]


class Search:
    """A recall in progress: each look-up runs once, on first need, and its result is shared.

    Attributes:
        text: The query as it is searched for: condensed, and with the memory's spelling of names.
        words: ``text`` without stop words.
        moment: The instant the query is asked at: ``as_of`` or now, in the person's zone.
        as_of: The instant of world time that was asked for; None is now.
        filters: All of them must hold.
        items, outlines, supports, names: What was read so far, by id.
        best_parts: (collection, owner) → the part of the owner that is nearest in meaning.
        reached: The nodes within reach of the centre, once ``reachable`` was called.
        excluded_turns: Turns among the request's ``without`` that would have been found.
        warnings: What a perspective could not see yet, for the notes.
        traces: Channel → how it was filled; None unless the caller wants to know.
    """

    def __init__(self, sources: Sources, request: RecallRequest) -> None:
        self.sources = sources
        self.request = request
        self.kind: PromptKind = prompt_kind(request.query)
        self.about_the_person = about_the_person(request.query)
        query = self.about_the_person.seek if self.about_the_person else request.query
        self.text = condensed(query)
        self.words = content_words(self.text)
        zone = sources.journal.zone
        self.moment: datetime = in_zone(request.as_of or now(), zone)
        as_of = request.as_of or request.filters.as_of
        self.as_of = as_of and in_zone(as_of, zone)
        # An empty filter is kept too, because ``as_of`` is put into each.
        self.filters: tuple[ItemFilter, ...] = (request.filters,)
        self.add_filter(request.filters)
        self.items: dict[str, Item] = {}
        self.names: dict[str, str] = {}
        self.outlines: dict[str, FactOutline | NodeOutline] = {}
        self.supports: dict[str, Support] = {}
        self.best_parts: dict[tuple[str, str], int] = {}
        self.traces: dict[ChannelName, Trace] | None = None
        self.warnings: set[str] = set()
        self.reached: Mapping[str, Reached] = {}
        self.excluded_turns: set[str] = set()
        self._seconds: dict[tuple[str, str], float] = {}
        self._look_ups: dict[Hashable, _LookUp] = {}
        self._begun: list[asyncio.Task[object]] = []
        # Collection → id → its raw cosine; None for one without a vector.
        self._cosines: dict[str, dict[str, Scored | None]] = {}

    def add_filter(self, filters: ItemFilter) -> None:
        """AND another filter (the profile's) into this search. Call before searching.

        Raises:
            InvalidRequest: It names a layer that the entity's packs do not have.
        """
        self.sources.journal.allowing.kinds.of_layers(filters.layers, "filters.layers")
        if filters not in (ItemFilter(), *self.filters):
            self.filters = (*self.filters, filters)

    async def correct_names(self) -> None:
        """Replace names that no text has by the memory's own spelling of them.

        Call before searching.

        The query that the caller sees stays as it was.
        """
        names = list(dict.fromkeys(_NAME_LIKE.findall(self.words)))
        known = await self._known_names(names)
        for word in names:
            if word in known:
                continue
            spelling = await self._spelling_of(word)
            if spelling:
                whole_word = re.compile(rf"\b{re.escape(word)}\b")
                self.text = whole_word.sub(spelling, self.text)
                self.words = whole_word.sub(spelling, self.words)

    @cached_property
    def telling_words(self) -> Sequence[str]:
        """The words of ``text`` without stop words and small talk. Read after ``correct_names``."""
        return telling_words(self.text)

    def depth(self, usual: int, limit: int) -> int:
        """Return the length of lists: at least twice the limit, more if the reader has some hits."""
        return max(usual, 2 * limit) + min(len(self.request.without), 2 * limit)

    async def once(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work`` unless it was started under this key before; return its result.

        The first caller runs it itself: a task of its own for each of some hundred look-ups costs
        more than most of them take.
        """
        look_up = self._look_ups.get(key)
        if look_up is None:
            look_up = self._look_ups[key] = _LookUp()
            return cast("T", await look_up.run(work))
        return cast("T", await look_up.outcome())

    # ---- Lists of the indexes ----

    async def query_vector(self) -> Vector | None:
        """Return the query's vector, shape (dimension,); None without an embedder."""
        return await self.once("vector", self._embed)

    async def text_matches(self, collection: str, text: str, depth: int) -> list[Scored]:
        """Return BM25's best of a collection for a text; ``signal`` is not set."""
        key = ("text", collection, text, depth)
        return await self.once(key, lambda: self._text_matches(collection, text, depth))

    async def window_matches(self, depth: int) -> list[Scored]:
        """Return BM25's best windows for the whole query that have a word of its own.

        Stop words count, since the turn before an answer is often the same question. Alone they
        are no match: in a memory of a few turns "I" and "what" would order all that is there.
        ``signal`` is not set.
        """
        return await self.once(("windows", depth), lambda: self._window_matches(depth))

    async def word_matches(
        self, collections: Sequence[str], words: Sequence[str], depth: int
    ) -> dict[str, list[list[Scored]]]:
        """Return collection → BM25's best ``depth`` for each of the words alone, in their order.

        One search of the indexes for all of them. What a filter keeps out is not among them.
        """
        if not words:
            return {collection: [] for collection in collections}
        key = ("words", tuple(collections), tuple(words), depth)
        return await self.once(key, lambda: self._word_matches(collections, words, depth))

    async def vector_matches(self, collection: str, depth: int) -> list[Scored]:
        """Return the nearest of a collection by raw cosine; empty without an embedder."""
        key = ("vectors", collection, depth)
        return await self.once(key, lambda: self._vector_matches(collection, depth))

    async def text_matches_among(
        self, collection: str, text: str, ids: AbstractSet[str], depth: int | None = None
    ) -> list[Scored]:
        """Return the BM25 scores of the best ``depth`` (all) of some ids; ``signal`` is not set."""
        if not ids:
            return []
        hits = await self.sources.indexes.text_search(collection, text, depth or len(ids), ids)
        return [Scored(hit.owner, hit.score, 0.0) for hit in hits]

    async def vector_matches_among(
        self, collection: str, ids: AbstractSet[str], depth: int | None = None
    ) -> list[Scored]:
        """Return the raw cosines of the nearest ``depth`` (all) of some ids.

        Empty without an embedder.
        """
        if not ids:
            return []
        vector = await self.query_vector()
        if vector is None:
            return []
        hits = await self.sources.indexes.vector_search(collection, vector, depth or len(ids), ids)
        return [Scored(hit.owner, hit.similarity, max(0.0, hit.similarity)) for hit in hits]

    async def cosines(self, collection: str, ids: AbstractSet[str]) -> list[Scored]:
        """Return the raw cosines of those of some ids that have a vector; each is asked for once.

        Empty without an embedder.
        """
        known = self._cosines.setdefault(collection, {})
        for entry in await self.vector_matches_among(collection, ids - known.keys()):
            known[entry.id] = entry
        for id_ in ids - known.keys():
            known[id_] = None
        entries = (known[id_] for id_ in ids)
        return [entry for entry in entries if entry is not None]

    # ---- What the query names ----

    async def reachable(self) -> Mapping[str, Reached]:
        """Return the nodes within ``max_hops`` of the centre, each with its way.

        Empty without a centre.
        """
        return await self.once("reachable", self._reach)

    async def named_nodes(self) -> list[str]:
        """Return the nodes that the query calls by name, longest name first."""
        return await self.once(
            "named nodes", lambda: self.sources.journal.named_in(self.text, MAX_NAMED_NODES)
        )

    async def meant_nodes(self) -> list[str]:
        """Return the nodes that the query calls by name, by their kind or by a description.

        "Which ORM do we use?" means Diesel if its type is ORM, or if its summary or an attribute
        says so.
        """
        return await self.once("meant nodes", self._meant_nodes)

    async def misspelt_words(self) -> list[str]:
        """Return the query's words that no turn has, while one has a word spelt almost like it."""
        return await self.once("misspelt words", self._misspelt_words)

    async def named_spans(self) -> list[Span]:
        """Return the spans of time that the query names, read against the moment of the query.

        A span after all that was ever said is read once more against the latest turn: asked of a
        conversation of three years ago, "in May" is the May that it knew.
        """
        return await self.once("named spans", self._read_spans)

    # ---- Filters and channels ----

    async def allowed(self, kind: ItemKind) -> set[str] | None:
        """Return the ids of a kind that all filters let through; None is no restriction."""
        return await self.once(("allowed", kind), lambda: self._allowed(kind))

    async def permitted(self, kind: ItemKind, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that the filters let through, in their order."""
        allowed = await self.allowed(kind)
        return list(ids) if allowed is None else [id_ for id_ in ids if id_ in allowed]

    async def turn_count(self) -> int:
        """Return how many turns the memory has."""
        return await self.once("turn count", self.sources.journal.count_turns)

    def begin(self, work: Coroutine[object, object, object]) -> None:
        """Start look-ups that are needed later, beside others; ``close`` waits for them.

        What fails there fails again where it is needed.
        """
        self._begun.append(asyncio.ensure_future(work))

    def center(self) -> str | None:
        return self.request.center or self.sources.self_node

    def collections(self, channel: ChannelName) -> tuple[str, ...]:
        """Return the collections that hold a channel's items; past facts only for another time."""
        if channel == "facts":
            return ("facts", "past_facts") if self.as_of else ("facts",)
        return ("episodes",) if channel == "turns" else (channel,)

    # ---- Time spent ----

    @contextmanager
    def timed(self, part: str, channel: str = "") -> Generator[None]:
        """Add the time of the block to a part of the work in a channel."""
        started = clock.perf_counter()
        try:
            yield
        finally:
            self.add_time(part, channel, clock.perf_counter() - started)

    def add_time(self, part: str, channel: str, seconds: float) -> None:
        self._seconds[part, channel] = self._seconds.get((part, channel), 0.0) + seconds

    def took_s(self, part: str) -> float:
        """Return the seconds of a part of the work in the slowest channel.

        The channels run side by side.
        """
        seconds = [spent for (name, _), spent in self._seconds.items() if name == part]
        return max(seconds, default=0.0)

    async def close(self) -> None:
        """Wait for every look-up that was started.

        Raises:
            IsolationError: One that was started ahead met a foreign row: no answer may be given.
        """
        outcomes = await asyncio.gather(*self._begun, return_exceptions=True)
        for look_up in list(self._look_ups.values()):
            await look_up.ended()
        for outcome in outcomes:
            if isinstance(outcome, IsolationError):
                raise outcome

    # ---- The look-ups themselves ----

    async def _embed(self) -> Vector | None:
        embedder = self.sources.embedder
        if embedder is None:
            return None
        with self.timed("embed"):
            return await self.sources.query_vectors.of(self.text, embedder)

    async def _text_matches(self, collection: str, text: str, depth: int) -> list[Scored]:
        allowed = await self.allowed(COLLECTION_KINDS[collection])
        hits = await self.sources.indexes.text_search(collection, text, depth, allowed)
        return [Scored(hit.owner, hit.score, 0.0) for hit in hits]

    async def _window_matches(self, depth: int) -> list[Scored]:
        allowed = await self.allowed("episode")
        needed = "" if self.words == self.text else self.words
        query = TextQuery("windows", self.text, depth, allowed, needed)
        [hits] = await self.sources.indexes.text_searches([query])
        return [Scored(hit.owner, hit.score, 0.0) for hit in hits]

    async def _word_matches(
        self, collections: Sequence[str], words: Sequence[str], depth: int
    ) -> dict[str, list[list[Scored]]]:
        lists_of: dict[str, list[list[Scored]]] = {}
        queries: list[TextQuery] = []
        for collection in collections:
            allowed = await self.allowed(COLLECTION_KINDS[collection])
            queries += [TextQuery(collection, word, depth, allowed) for word in words]
        hits_of = await self.sources.indexes.text_searches(queries)
        for query, hits in zip(queries, hits_of, strict=True):
            entries = [Scored(hit.owner, hit.score, 0.0) for hit in hits]
            lists_of.setdefault(query.collection, []).append(entries)
        return lists_of

    async def _vector_matches(self, collection: str, depth: int) -> list[Scored]:
        vector = await self.query_vector()
        if vector is None:
            return []
        allowed = await self.allowed(COLLECTION_KINDS[collection])
        hits = await self.sources.indexes.vector_search(collection, vector, depth, allowed)
        self.best_parts.update(((collection, hit.owner), hit.part) for hit in hits)
        entries = [Scored(hit.owner, hit.similarity, max(0.0, hit.similarity)) for hit in hits]
        self._cosines.setdefault(collection, {}).update((entry.id, entry) for entry in entries)
        return entries

    async def _allowed(self, kind: ItemKind) -> set[str] | None:
        allowed: set[str] | None = None
        filters = [replace(each, as_of=self.as_of) for each in self.filters]
        for each in filters:
            ids = None if each == ItemFilter() else await self.sources.journal.allowed(kind, each)
            if ids is not None:
                allowed = ids if allowed is None else allowed & ids
        return allowed

    async def _known_names(self, words: Sequence[str]) -> set[str]:
        """Return the words that a turn or a node has."""
        collections = ("episodes", "nodes")
        queries = [TextQuery(name, word, 1) for word in words for name in collections]
        hits_of = await self.sources.indexes.text_searches(queries)
        return {query.text for query, hits in zip(queries, hits_of, strict=True) if hits}

    async def _spelling_of(self, word: str) -> str:
        """Return another spelling of a name from the memory's latest texts.

        Empty if there is none.
        """
        terms = await self.sources.indexes.text_terms("episodes", possible_initials(word))
        stems = [term for term in terms if may_be_stem_of(term, word)]
        for stem in stems[:_MAX_STEMS]:
            hits = await self.sources.indexes.text_search("episodes", stem, _TURNS_PER_STEM)
            for turn in await self.sources.journal.turns([hit.owner for hit in hits]):
                for name in _CAPITALISED.findall(spoken(turn)):
                    if spelled_alike(word, name):
                        return name
        return ""

    async def _reach(self) -> Mapping[str, Reached]:
        center = self.center()
        if center:
            self.reached = await self.sources.journal.reach(
                center, self.request.max_hops, self.moment
            )
        return self.reached

    async def _meant_nodes(self) -> list[str]:
        named, by_kind, described = await asyncio.gather(
            self.named_nodes(), self._nodes_by_kind(), self._described_nodes()
        )
        return list(dict.fromkeys([*named, *by_kind, *described]))

    async def _nodes_by_kind(self) -> list[str]:
        return await self.sources.journal.of_kinds_in(self.text, MAX_NAMED_NODES)

    async def _described_nodes(self) -> list[str]:
        """Return the nodes whose summary or attributes have the kind that the query asks for."""
        kind = kind_asked_for(self.text)
        if not kind:
            return []
        hits = await self.sources.indexes.text_search("nodes", kind, _MAX_DESCRIBED_NODES + 1)
        return [hit.owner for hit in hits] if len(hits) <= _MAX_DESCRIBED_NODES else []

    async def _misspelt_words(self) -> list[str]:
        words = [word.strip(_PUNCTUATION) for word in self.words.split()[:_MAX_WORDS_CHECKED]]
        # A word of English is no slip of the pen, however near another one is: "went" and "want".
        unknown = [
            word
            for word in dict.fromkeys(words)
            if word.isalpha()
            and len(word) > 3
            and len(wordpiece().encode(word).ids) > _PIECES_OF_KNOWN_WORD
        ]
        misspelt = await self.sources.indexes.misspelt("episodes", unknown)
        return [word for word in unknown if word in misspelt]

    async def _read_spans(self) -> list[Span]:
        if not names_time(self.text):
            return []
        spans = await asyncio.to_thread(read_times, self.text, self.moment)
        if not spans or self.request.as_of:
            return spans
        _, latest = await self.sources.journal.span()
        if latest is None or all(span.start is None or span.start <= latest for span in spans):
            return spans
        latest_moment = in_zone(latest, self.moment.tzinfo or UTC)
        return await asyncio.to_thread(read_times, self.text, latest_moment)


class _LookUp:
    """Work that several callers need: the first runs it, the others wait for its outcome.

    Who waits goes on in the next turn of the loop, so that what all do next starts together. One
    that is cancelled leaves the others alone.
    """

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self._result: object = None
        self._error: BaseException | None = None

    async def run(self, work: Callable[[], Awaitable[object]]) -> object:
        """Return the result of the work, or raise its error."""
        try:
            self._result = await work()
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._ended.set()
        return self._result

    async def outcome(self) -> object:
        """Wait for the end of the work; return its result, or raise its error."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    async def ended(self) -> None:
        """Wait for the end of the work, however it ends."""
        await self._ended.wait()
