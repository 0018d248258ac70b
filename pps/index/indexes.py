"""Both indexes of one entity, with asynchronous methods that work in a few shared threads."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, cast

from pps.core.errors import InvalidRequest, StoreError, StoreUnavailable
from pps.core.values import ItemKind
from pps.index.collections import COLLECTIONS
from pps.index.text_index import TextDoc, TextHit, TextIndex
from pps.index.vector_index import IN_MEMORY, VectorHit, VectorIndex, VectorRow
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.models.token_encoder import PackedStates

__all__ = ["EntityIndexes", "IndexDoc", "IndexSettings", "TextQuery", "index_threads"]

T = TypeVar("T")
Search: TypeAlias = "tuple[Callable[[], object], asyncio.Future[object]]"
"""A search that waits for its thread, and the future that gets its result."""
Rebuild: TypeAlias = Literal["no", "vectors", "all"]
Cleared: TypeAlias = Literal["text", "vectors", "all"]
Follower: TypeAlias = Literal["text", "vectors"]
"""The indexes that follow the change log, each at its own position."""
FOLLOWERS: tuple[Follower, ...] = ("text", "vectors")
Index: TypeAlias = Literal["text", "vectors", "fields", "all"]
"""The index to make anew; the index of fields lies in the journal."""

_THREADS = 4
_TURNS_GATHERED = 2
"""Turns of the event loop in which searches are gathered for one thread: a recall starts its
searches in tasks, some of which begin a turn or two later. A turn takes some microseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexDoc:
    """The searchable text and vectors of one owner in one collection.

    Attributes:
        kind: The kind of the owner.
        text: The text for full-text search; empty together with an empty title leaves the owner out
            of the text index.
        title: A name, which counts twice as much as the text.
        at: A time in microseconds since 1970 UTC.
        passages: The embedded parts, one for each row of ``vectors``; they are not stored.
        vectors: Shape (parts, dimension); None or no rows leaves the owner out of the vector index.
        keeps_vectors: Leave the vector index as it is.
    """

    kind: ItemKind
    owner: str
    collection: str
    text: str
    title: str = ""
    at: int | None = None
    passages: tuple[str, ...] = ()
    vectors: Matrix | None = None
    keeps_vectors: bool = False


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A query of the text index; see ``TextIndex.search``.

    Attributes:
        needed: Of the ``k`` best, only those with any word of this text are hits; empty for all.
    """

    collection: str
    text: str
    k: int
    allowed: AbstractSet[str] | None = None
    needed: str = ""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Settings of indexes.

    Attributes:
        language: See ``TextIndex.open``.
        vectors_in_memory: See ``VectorIndex.open``.
    """

    language: str = "english"
    vectors_in_memory: int = IN_MEMORY


def index_threads(count: int = _THREADS) -> ThreadPoolExecutor:
    """Return threads for any number of entities' indexes; the caller shuts them down."""
    return ThreadPoolExecutor(max_workers=count, thread_name_prefix="pps-index")


class EntityIndexes:
    """An entity's text and vectors: ``text/``, ``vectors.db`` and ``chroma/`` in its data folder.

    All methods may run at once. Changes (``apply``, ``purge``, ``clear``) take turns; searches run
    at the same time and see a change when its call has returned. A cancelled call runs on in its
    thread; ``close`` waits for it. Searches of one index that start together share a thread: a
    recall starts about twenty, and switching threads for each costs more than the searches.
    """

    def __init__(
        self,
        text: TextIndex,
        vectors: VectorIndex | None,
        executor: Executor,
        *,
        owns_executor: bool,
    ) -> None:
        self._text = text
        self._vectors = vectors
        self._executor = executor
        self._owns_executor = owns_executor
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Future[object]] = set()
        self._pending: dict[str, list[Search]] = {}
        self._closing: asyncio.Future[None] | None = None
        self._positions: dict[Follower, int] = {}
        self._saved: dict[Follower, int] = {}

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        group: str,
        fingerprint: Fingerprint | None,
        kept: IndexSettings | None = None,
        executor: Executor | None = None,
        rebuild: Rebuild = "no",
    ) -> EntityIndexes:
        """Open both indexes in an entity's data folder, or start empty ones.

        Args:
            folder: The data folder; the files of both are made in it.
            group: The entity's group; indexes of another are refused.
            fingerprint: Of the embedder; None without a model, which leaves vectors untouched.
            kept: Settings of the indexes; None for the defaults.
            executor: Threads to work in, shared by entities; None makes own threads.
            rebuild: Start ``vectors`` or ``all`` empty: for an index that cannot be opened or is
                another model's. Its content can only be made again from journal and anchors.

        Raises:
            ConfigError, IsolationError, StoreConflict, StoreError: As ``TextIndex.open`` and
                ``VectorIndex.open``.
        """
        threads = executor or index_threads()
        opening = asyncio.get_running_loop().run_in_executor(
            threads, _open, folder, group, fingerprint, kept or IndexSettings(), rebuild
        )
        try:
            text, vectors = await asyncio.shield(opening)
        except BaseException:
            opening.add_done_callback(_close_unclaimed)  # the caller was cancelled
            if executor is None:
                threads.shutdown(wait=False)
            raise
        return cls(text, vectors, threads, owns_executor=executor is None)

    @property
    def has_vectors(self) -> bool:
        """False without a model: vector searches find nothing, and ``apply`` takes text only."""
        return self._vectors is not None

    def keep_namespace(self) -> None:
        """Make the entity's namespace in Chroma in the background, if it is absent."""
        if self._vectors is not None:
            self._vectors.keep_namespace()

    @property
    def positions(self) -> Mapping[Follower, int]:
        """Follower → its position in the change log; without a model, there is none of vectors."""
        return self._positions

    async def follow(self, dropped: int) -> None:
        """Begin to follow the change log: read the positions that were saved.

        Args:
            dropped: The position up to which the log's entries were dropped. An index of an earlier
                PPS has no position and starts at this one; an empty index starts at 0.
        """
        for name, index in self._following():
            saved = await self._run(index.position)
            if saved is None:
                is_empty = all(index.is_empty(collection) for collection in COLLECTIONS)
                saved = 0 if is_empty else dropped
            self._positions[name] = self._saved[name] = saved

    def passed(self, followers: Iterable[Follower], position: int) -> None:
        """Note that followers have applied the log up to a position; see ``save_positions``."""
        self._positions.update(dict.fromkeys(followers, position))

    async def save_positions(self) -> int:
        """Save the followers' positions; return the position that all of them have passed.

        Raises:
            StoreError: A disk failed. Entries behind a saved position are applied again after a
                start.
        """
        async with self._changing:
            for name, index in self._following():
                position = self._positions[name]
                if self._saved[name] != position:
                    await self._run(partial(index.save_position, position))
                    self._saved[name] = position
        return min(self._positions.values())

    def _following(self) -> list[tuple[Follower, TextIndex | VectorIndex]]:
        following: list[tuple[Follower, TextIndex | VectorIndex]] = [("text", self._text)]
        if self._vectors is not None:
            following.append(("vectors", self._vectors))
        return following

    async def apply(
        self,
        upserts: Sequence[IndexDoc],
        deletes: Iterable[tuple[str, str]] = (),
        to: Collection[Follower] = FOLLOWERS,
    ) -> None:
        """Replace the owners' documents in their collections; drop ``(collection, owner)`` pairs.

        On disk and searchable when it returns; safe to repeat. After an error, a part may have been
        done. Only the followers ``to`` change.

        Raises:
            StoreUnavailable: An index or its disk failed, never because of one document: try again
                when the cause in the message is mended.
            StoreConflict: Another process writes an index.
        """
        docs = _by_collection((doc.collection, doc) for doc in upserts)
        gone = _by_collection(deletes)
        work: list[Callable[[], None]] = []
        if self._vectors is not None and "vectors" in to:
            work += [partial(_apply_vectors, self._vectors, docs, gone)]  # first: it takes longest
        # The rest mostly waits for the disk, and every collection has its own files.
        if "text" in to:
            work += [
                partial(_apply_text, self._text, name, docs.get(name, []), gone.get(name, []))
                for name in dict.fromkeys((*docs, *gone))
            ]
        async with self._changing:
            for outcome in await asyncio.gather(*map(self._run, work), return_exceptions=True):
                if isinstance(outcome, StoreError) and not outcome.retryable:
                    raise StoreUnavailable(outcome.message) from outcome
                if outcome is not None:
                    raise outcome

    async def text_search(
        self, collection: str, query: str, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[TextHit]:
        """Return the ``k`` owners that match any word of a text best; see ``TextIndex.search``."""
        if self._closing is None and k > 0 and self._text.is_empty(collection):
            return []  # at once: a thread costs more than that
        return await self._search("text", lambda: self._text.search(collection, query, k, allowed))

    async def text_searches(self, queries: Sequence[TextQuery]) -> list[list[TextHit]]:
        """Return the hits of each query, as ``text_search``; one thread searches for all."""
        if self._closing is None and all(
            query.k <= 0 or self._text.is_empty(query.collection) for query in queries
        ):
            return [[] for _ in queries]
        return await self._search("text", lambda: [_hits(self._text, query) for query in queries])

    async def text_terms(self, collection: str, initials: str) -> list[str]:
        """Return the indexed (stemmed) terms of texts that begin with one of the letters."""
        if self._closing is None and self._text.is_empty(collection):
            return []
        return await self._run(lambda: self._text.terms(collection, initials))

    async def misspelt(self, collection: str, words: Sequence[str]) -> set[str]:
        """Return the words that no document has while some document has a similarly spelt word."""
        if not words or (self._closing is None and self._text.is_empty(collection)):
            return set()
        return await self._run(lambda: self._text.misspelt(collection, words))

    async def vector_search(
        self, collection: str, vector: Vector, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[VectorHit]:
        """Return the ``k`` owners most like a vector; see ``VectorIndex.query``.

        Empty without a model.
        """
        vectors = self._vectors
        if vectors is None or (self._closing is None and vectors.is_empty(collection)):
            return []
        return await self._search("vectors", lambda: vectors.query(collection, vector, k, allowed))

    async def nearest_of_each(
        self, collection: str, vectors: Sequence[Vector], k: int
    ) -> list[list[VectorHit]]:
        """Return for each vector the ``k`` owners most like it. Empty lists without a model."""
        index = self._vectors
        if index is None or not vectors or (self._closing is None and index.is_empty(collection)):
            return [[] for _ in vectors]
        return await self._run(lambda: [index.query(collection, vector, k) for vector in vectors])

    async def vectors(self, collection: str, owners: Iterable[str]) -> dict[str, Vector]:
        """Return the first vector of each owner that has one. Empty without a model."""
        index = self._vectors
        owner_list = list(owners)
        if index is None:
            return {}
        return await self._search("vectors", lambda: index.vectors(collection, owner_list))

    async def parts(self, collection: str, owners: Iterable[str]) -> dict[str, Matrix]:
        """Return owner → its vectors in the order of its parts. Empty without a model."""
        index = self._vectors
        owner_list = list(owners)
        if index is None:
            return {}
        return await self._run(lambda: index.parts(collection, owner_list))

    async def owners(self, collection: str) -> tuple[set[str] | None, set[str]]:
        """Return the owners with vectors in a collection (None: no model), and those with text."""
        return await self._run(
            lambda: (
                None if self._vectors is None else self._vectors.owners(collection),
                self._text.owners(collection),
            )
        )

    async def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return collection → number of owners, for text and for vectors (empty: no model)."""
        return await self._run(
            lambda: (
                {name: self._text.count(name) for name in COLLECTIONS},
                {}
                if self._vectors is None
                else {name: self._vectors.count(name) for name in COLLECTIONS},
            )
        )

    async def token_model(self) -> str:
        """Return the fingerprint of the model of the stored token states; empty without any."""
        vectors = self._vectors
        return "" if vectors is None else await self._run(lambda: vectors.token_model)

    async def keep_token_model(self, model: str) -> None:
        """Note the model that makes all token states."""
        vectors = self._vectors
        if vectors is not None:
            await self._run(lambda: vectors.keep_token_model(model))

    async def clear_tokens(self) -> None:
        """Drop all token states and the note of their model."""
        if self._vectors is not None:
            await self._run(self._vectors.clear_tokens)

    async def note_tokens(self, hashes: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Note owners whose token states must be made, and drop those of owners that are gone."""
        vectors = self._vectors
        if vectors is not None:
            await self._run(lambda: vectors.note_tokens(hashes, gone))

    async def tokens_due(self, limit: int) -> dict[str, str]:
        """Return owner → hash of at most ``limit`` texts that wait for their token states."""
        vectors = self._vectors
        return {} if vectors is None else await self._run(lambda: vectors.tokens_due(limit))

    async def put_tokens(self, states: Mapping[str, tuple[str, bytes]]) -> None:
        """Store owner → (hash of its text, token states); an owner whose text changed stays due."""
        vectors = self._vectors
        if vectors is not None:
            await self._run(lambda: vectors.put_tokens(states))

    async def tokens(self, owners: Iterable[str] | None) -> dict[str, bytes]:
        """Return owner → token states (int8) where there are any; None is all owners."""
        vectors = self._vectors
        return {} if vectors is None else await self._run(lambda: vectors.tokens(owners))

    async def token_states(self, owners: Sequence[str] | None) -> PackedStates:
        """Return the packed token states of owners, where there are any; None is all owners.

        Those of all owners stay in memory until one changes: request all only where they are few.
        """
        vectors = self._vectors
        if vectors is None:
            return PackedStates.of({})
        if owners is not None:
            return await self._run(lambda: PackedStates.of(vectors.tokens(owners)))
        if self._closing is None and vectors.known_token_states is not None:
            return vectors.known_token_states
        return await self._run(vectors.token_states)

    async def token_owners(self) -> set[str] | None:
        """Return the owners that have or await token states; None when none are stored."""
        vectors = self._vectors
        if vectors is None or not await self.token_model():
            return None
        return await self._run(vectors.token_owners)

    async def token_counts(self) -> tuple[int, int]:
        """Return the number of texts with token states, and of texts that wait for them."""
        vectors = self._vectors
        if vectors is None:
            return 0, 0
        known = vectors.known_token_counts  # at once: a thread costs more than that
        return await self._run(vectors.token_counts) if known is None else known

    async def purge(self, which: Cleared = "all") -> int:
        """Erase deleted and replaced documents from disk; return the number of erased texts."""
        async with self._changing:
            if self._vectors is not None and which != "text":
                await self._run(self._vectors.purge)
            return 0 if which == "vectors" else await self._run(self._text.purge)

    async def clear(self, which: Cleared = "all") -> None:
        """Empty one or both indexes, and set their positions to 0."""
        async with self._changing:
            for name, index in self._following():
                if which in (name, "all"):
                    await self._run(index.clear)
                    self._positions[name] = self._saved[name] = 0

    async def close(self) -> None:
        """Wait for running work, then release threads, files and folders; may be called again."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._drained_and_closed())
        await asyncio.shield(self._closing)

    async def _drained_and_closed(self) -> None:
        async with self._changing:
            while self._running or self._pending:
                if self._pending:
                    await asyncio.sleep(0)  # the loop starts them in its next turn
                else:
                    await asyncio.wait(set(self._running))
            try:
                await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
            finally:
                if self._owns_executor:
                    self._executor.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closing is not None:
            raise StoreError("the entity's indexes are closed")
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._running.add(cast("asyncio.Future[object]", future))
        future.add_done_callback(self._running.discard)
        return await asyncio.shield(future)

    async def _search(self, index: str, work: Callable[[], T]) -> T:
        """Run a search in one thread with other searches of the index that start now."""
        if self._closing is not None:
            raise StoreError("the entity's indexes are closed")
        loop = asyncio.get_running_loop()
        if index not in self._pending:
            self._pending[index] = []
            loop.call_soon(self._start_searches, index, _TURNS_GATHERED)
        future: asyncio.Future[object] = loop.create_future()
        self._pending[index].append((work, future))
        return cast("T", await future)

    def _start_searches(self, index: str, turns_left: int) -> None:
        """Start the pending searches after some more turns of the loop."""
        if turns_left:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._start_searches, index, turns_left - 1)
            return
        searches = self._pending.pop(index)
        works = [work for work, _ in searches]
        running = asyncio.get_running_loop().run_in_executor(self._executor, _outcomes, works)
        self._running.add(cast("asyncio.Future[object]", running))
        running.add_done_callback(partial(_deliver, [future for _, future in searches]))
        running.add_done_callback(self._running.discard)

    def _close(self) -> None:
        try:
            self._text.close()
        finally:
            if self._vectors is not None:
                self._vectors.close()


def _hits(index: TextIndex, query: TextQuery) -> list[TextHit]:
    hits = index.search(query.collection, query.text, query.k, query.allowed)
    if not query.needed or not hits:
        return hits
    owners = {hit.owner for hit in hits}
    telling = index.search(query.collection, query.needed, len(owners), owners)
    having = {hit.owner for hit in telling}
    return [hit for hit in hits if hit.owner in having]


def _outcomes(works: Sequence[Callable[[], object]]) -> list[object]:
    """Run each search; return its result or the exception that it raised."""
    outcomes: list[object] = []
    for work in works:
        try:
            outcomes.append(work())
        except Exception as error:  # noqa: BLE001 - it is raised again where the search was started
            outcomes.append(error)
    return outcomes


def _deliver(
    futures: Sequence[asyncio.Future[object]], running: asyncio.Future[list[object]]
) -> None:
    """Give each search its outcome."""
    if running.cancelled():
        for future in futures:
            future.cancel()
        return
    failure = running.exception()
    outcomes = [failure] * len(futures) if failure else running.result()
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.cancelled():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _apply_text(
    index: TextIndex, collection: str, docs: Sequence[IndexDoc], gone: Sequence[str]
) -> None:
    worded = [doc for doc in docs if doc.text or doc.title]
    index.delete(collection, [*gone, *(doc.owner for doc in docs if not (doc.text or doc.title))])
    index.replace(
        [TextDoc(doc.collection, doc.owner, doc.text, doc.title, doc.at) for doc in worded]
    )
    index.commit(collection)


def _apply_vectors(
    index: VectorIndex, docs: dict[str, list[IndexDoc]], gone: dict[str, list[str]]
) -> None:
    for collection in dict.fromkeys((*docs, *gone)):
        rows: list[VectorRow] = []
        bare: list[str] = list(gone.get(collection, ()))
        for doc in docs.get(collection, ()):
            if doc.keeps_vectors:
                continue
            if doc.vectors is None or not len(doc.vectors):
                bare.append(doc.owner)
                continue
            if doc.passages and len(doc.passages) != len(doc.vectors):
                raise InvalidRequest("vectors", "must have one row a passage")
            rows += [VectorRow(doc.owner, part, vector) for part, vector in enumerate(doc.vectors)]
        index.delete(collection, bare)
        index.replace(collection, rows)


def _by_collection(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    grouped: dict[str, list[T]] = {}
    for collection, item in pairs:
        grouped.setdefault(collection, []).append(item)
    return grouped


def _open(
    folder: Path,
    group: str,
    fingerprint: Fingerprint | None,
    settings: IndexSettings,
    rebuild: Rebuild,
) -> tuple[TextIndex, VectorIndex | None]:
    if rebuild != "no":
        shutil.rmtree(folder / "chroma", ignore_errors=True)
        for file in folder.glob("vectors.db*"):
            file.unlink()
    if rebuild == "all":
        shutil.rmtree(folder / "text", ignore_errors=True)
    text = TextIndex.open(folder / "text", group=group, language=settings.language)
    if fingerprint is None:
        return text, None
    try:
        return text, VectorIndex.open(
            folder, group=group, fingerprint=fingerprint, in_memory=settings.vectors_in_memory
        )
    except BaseException:
        text.close()
        raise


def _close_unclaimed(opened: asyncio.Future[tuple[TextIndex, VectorIndex | None]]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        for index in opened.result():
            if index is not None:
                index.close()
