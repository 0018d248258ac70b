"""The text index of one collection: a tantivy folder, its searcher and a short-lived writer."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

from tantivy import DocAddress, Index, IndexWriter, Query, Searcher

from pps.core.errors import StoreConflict, StoreError
from pps.core.text import first_line
from pps.index.terms import HALVES, Terms, TextDoc, only, owner_of, tag

_HEAP_BYTES = 15_000_000
"""The minimum that tantivy accepts; memory is used as the heap fills."""
_FEW = 64
_PRICE = 0.08
"""Looking up an allowed owner takes about 18 µs, dropping a hit about 1 µs: see ``_filtered``."""
_SURPLUS = 1.5
_MARGIN = 10
_TAGS_PAY = 32
"""Tags are compared if the number of hits exceeds 1/32 of the number of allowed owners."""

_Hits: TypeAlias = Sequence[tuple[float, DocAddress]]


class _Deletes(TypedDict):
    num_deleted_docs: int


class _Segment(TypedDict):
    max_doc: int
    deletes: _Deletes | None


class _Listed(TypedDict):
    segments: list[_Segment]


@dataclass(frozen=True, slots=True)
class TextHit:
    """An owner and its BM25 score, above 0; scores compare only within one search."""

    owner: str
    score: float


class Shelf:
    """One collection. Searches run concurrently, also with a write; writes take turns.

    Each collection is a tantivy index of its own, because BM25 uses statistics of the whole index:
    in a shared one, the lengths and frequencies of turns would distort the ranking of nodes. It
    holds no thread and no open file between commits; a writer exists from the first change to the
    commit.
    """

    def __init__(self, folder: Path, terms: Terms) -> None:
        self._folder = folder
        self._terms = terms
        self._writer: IndexWriter | None = None
        self._swept = False
        self._writing = threading.RLock()
        with text_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = Index(terms.schema, path=str(folder))
            terms.register(self._index)
            self._index.config_reader("manual")
            self._searcher = self._index.searcher()

    def replace(self, docs: Sequence[TextDoc]) -> None:
        """Replace the documents of the owners; takes effect with the next commit."""
        with self._changing():
            for doc in {doc.owner: doc for doc in docs}.values():
                self._open_writer().delete_documents_by_term("owner", doc.owner)
                self._open_writer().add_document(self._terms.document(doc))

    def delete(self, owners: Iterable[str]) -> None:
        """Delete the documents of owners with the next commit; absent owners are ignored."""
        with self._changing():
            for owner in owners:
                self._open_writer().delete_documents_by_term("owner", owner)

    def commit(self) -> None:
        """Save all changes, wait for due merges, and make the changes visible to searches."""
        with self._changing():
            if self._writer is not None:
                self._writer.commit()
                self._writer.wait_merging_threads()
                self._writer = None
                self._reload()

    def search(self, text: str, k: int, allowed: AbstractSet[str] | None) -> list[TextHit]:
        """Return the ``k`` best owners for a text, best first; fewer only if no more match."""
        searcher = self._searcher
        with text_errors(self._folder):
            query = self._terms.query(text, searcher)
            if query is None or searcher.num_docs == 0:
                return []
            if allowed is None:
                return _read(searcher, searcher.search(query, k, count=False).hits)
            return self._filtered(searcher, query, k, allowed)

    def misspelt(self, words: Iterable[str]) -> set[str]:
        """Return the words that occur in no document although a similar word does."""
        searcher = self._searcher
        with text_errors(self._folder):
            return {word for word in words if self._is_misspelt(word, searcher)}

    def _is_misspelt(self, word: str, searcher: Searcher) -> bool:
        query = self._terms.query(word, searcher)
        similar = self._terms.nearly(word)
        if query is None or similar is None or searcher.search(query, 1, count=False).hits:
            return False
        return bool(searcher.search(similar, 1, count=False).hits)

    def purge(self) -> int:
        """Rewrite the segments with deleted documents, so that their text is removed from disk.

        Takes about 20 µs per rewritten document.

        Returns:
            The number of deleted documents that were removed.
        """
        with self._writing:
            self.commit()
            freed = sum(self._deleted())
            with self._changing():
                if freed:
                    self._rewrite(self._with_deleted(self._searcher))
                if any(self._deleted()):
                    self._rewrite(None)
            return freed

    def owners(self) -> set[str]:
        """Return every owner that has a committed document."""
        with text_errors(self._folder):
            return {
                owner
                for owner, _ in self._searcher.terms_with_prefix("owner", "", Query.all_query())
            }

    def terms(self, initials: str) -> list[str]:
        """Return the indexed (stemmed) terms of bodies that begin with any of the letters."""
        with text_errors(self._folder):
            return [
                term
                for initial in initials
                for term, _ in self._searcher.terms_with_prefix("body", initial, Query.all_query())
            ]

    def close(self) -> None:
        """Discard uncommitted changes and close the writer."""
        with self._writing:
            self._writer = None

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Lock the writer for a change; discard it on failure.

        After a full disk a writer refuses all work. Callers must not store the writer in a local
        variable: a traceback would keep it and its lock alive.
        """
        with self._writing, text_errors(self._folder):
            try:
                yield
            except BaseException:
                self._writer = None
                self._swept = False
                raise

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
            if not self._swept:
                # An interrupted commit leaves unlisted files; the next commit would reuse their
                # names.
                self._writer.garbage_collect_files()
                self._swept = True
        return self._writer

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def _filtered(
        self, searcher: Searcher, query: Query, k: int, allowed: AbstractSet[str]
    ) -> list[TextHit]:
        """Return the ``k`` best allowed owners.

        A few allowed owners are looked up in the index. For many, more hits than ``k`` are fetched
        and those of other owners dropped.
        """
        total = searcher.num_docs
        if len(allowed) <= max(_FEW, math.isqrt(int(_PRICE * k * total))):
            limited = only(query, allowed, self._terms.schema)
            return _read(searcher, searcher.search(limited, k, count=False).hits)
        n = min(total, math.ceil(_SURPLUS * k * max(1.0, total / len(allowed))) + _MARGIN)
        tags: frozenset[int] | None = None
        while True:
            hits: _Hits = searcher.search(query, n, count=False).hits
            if tags is None and n * _TAGS_PAY > len(allowed):
                tags = frozenset(map(tag, allowed))
            passing = _read(
                searcher, hits if tags is None else _tagged(searcher, hits, tags), allowed
            )[:k]
            if len(passing) == k or len(hits) < n or n >= total:
                return passing
            n = min(total, n * 4)

    def _rewrite(self, segments: AbstractSet[int] | None) -> None:
        """Delete and re-add the documents of segments (None: of all); remove emptied segments."""
        searcher = self._searcher
        for _, address in searcher.search(
            Query.all_query(), max(1, searcher.num_docs), count=False
        ).hits:
            if segments is None or address.segment_ord in segments:
                stored = searcher.doc(address)
                self._open_writer().delete_documents_by_term("owner", stored["owner"][0])
                self._open_writer().add_document(self._terms.again(stored))
        self.commit()
        self._index.writer(_HEAP_BYTES, 1).garbage_collect_files()

    def _deleted(self) -> list[int]:
        """Return each segment's number of deleted documents, from tantivy's ``meta.json``."""
        return [deleted for _, deleted in segments(self._folder)]

    def _with_deleted(self, searcher: Searcher) -> set[int] | None:
        """Return the ordinals of the segments with deleted documents.

        None (all segments) if the segments of the searcher do not match those in ``meta.json``.
        """
        sizes = segments(self._folder)
        hits = searcher.search(Query.all_query(), max(1, searcher.num_docs), count=False).hits
        live = Counter(address.segment_ord for _, address in hits)
        if any(live[at] != total - deleted for at, (total, deleted) in enumerate(sizes)):
            return None
        return {at for at, (_, deleted) in enumerate(sizes) if deleted}


def segments(folder: Path) -> list[tuple[int, int]]:
    """Return each segment's (number of documents, number of deleted ones) from ``meta.json``.

    Without that file the folder's creation was interrupted, and it never had a document.
    """
    if not (folder / "meta.json").exists():
        return []
    try:
        listed = cast(_Listed, json.loads((folder / "meta.json").read_text()))["segments"]
        return [
            (
                segment["max_doc"],
                segment["deletes"]["num_deleted_docs"] if segment["deletes"] else 0,
            )
            for segment in listed
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise text_failure(folder, error) from error


def _read(
    searcher: Searcher, hits: _Hits, allowed: AbstractSet[str] | None = None
) -> list[TextHit]:
    addresses = [address for _, address in hits]
    columns = [searcher.fast_field_values(half, addresses) for half in HALVES]
    text_hits = [
        TextHit(searcher.doc(address)["owner"][0] if high is None else owner_of(high, low), score)
        for (score, address), high, low in zip(hits, *columns, strict=True)
    ]
    text_hits.sort(key=lambda hit: (-hit.score, hit.owner))
    return text_hits if allowed is None else [hit for hit in text_hits if hit.owner in allowed]


def _tagged(searcher: Searcher, hits: _Hits, tags: AbstractSet[int]) -> _Hits:
    values = searcher.fast_field_values("tag", [address for _, address in hits])
    return [hit for hit, value in zip(hits, values, strict=True) if value in tags]


@contextmanager
def text_errors(folder: Path) -> Generator[None]:
    """Raise tantivy's errors inside the block as ``StoreError`` with the command that helps."""
    try:
        yield
    except BaseException as error:
        if (
            not isinstance(error, OSError | ValueError | RuntimeError)
            and type(error).__name__ != "PanicException"
        ):
            raise
        raise text_failure(folder, error) from error


def text_failure(folder: Path, error: BaseException) -> StoreError:
    """Return the ``StoreError`` for a failure of tantivy or of its files."""
    if "LockBusy" in str(error):
        return StoreConflict(f"the text index in {folder} is being written by somebody else")
    reason = f"{type(error).__name__}: {first_line(str(error), 200)}"
    return StoreError(
        f"the text index in {folder} failed ({reason}); "
        "`pps reindex` rebuilds it from the journal, the anchors and the graph"
    )
