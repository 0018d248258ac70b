"""One collection's text index: a folder of tantivy, its searcher and its short-lived writer."""

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
"""The least that tantivy takes; it is used as it fills, not at once."""
_FEW = 64
_PRICE = 0.08
"""Looking up an allowed owner takes about 18 us, dropping a hit about 1 us: see ``_filtered``."""
_SURPLUS = 1.5
_MARGIN = 10
_TAGS_PAY = 32
"""Tags are compared when more than one found owner in 32 allowed ones would have to be read."""

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
    """An owner and its BM25 score, above 0; compares only within one search."""

    owner: str
    score: float


class Shelf:
    """One collection. Searches run beside each other and beside a write; writes take turns.

    It is a tantivy index of its own, because BM25 counts all documents of an index: on a shared one
    the turns would set the length and rarity by which nodes are ranked. It holds no thread and no
    open file between commits; a writer lives from the first change to the commit.
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
        """Make each document all that its owner has here, from the next commit on."""
        with self._changing():
            for doc in {doc.owner: doc for doc in docs}.values():
                self._open_writer().delete_documents_by_term("owner", doc.owner)
                self._open_writer().add_document(self._terms.document(doc))

    def delete(self, owners: Iterable[str]) -> None:
        """Drop owners from the next commit on; an absent one is no error."""
        with self._changing():
            for owner in owners:
                self._open_writer().delete_documents_by_term("owner", owner)

    def commit(self) -> None:
        """Save every change and make it visible to later searches; wait for merges that are due."""
        with self._changing():
            if self._writer is not None:
                self._writer.commit()
                self._writer.wait_merging_threads()
                self._writer = None
                self._reload()

    def search(self, text: str, k: int, allowed: AbstractSet[str] | None) -> list[TextHit]:
        """Return the ``k`` best owners for a text, best first; fewer only when no more match."""
        searcher = self._searcher
        with text_errors(self._folder):
            query = self._terms.query(text, searcher)
            if query is None or searcher.num_docs == 0:
                return []
            if allowed is None:
                return _read(searcher, searcher.search(query, k, count=False).hits)
            return self._filtered(searcher, query, k, allowed)

    def misspelt(self, words: Iterable[str]) -> set[str]:
        """Return the words that no document has while some document has a similar one."""
        searcher = self._searcher
        with text_errors(self._folder):
            return {word for word in words if self._is_misspelt(word, searcher)}

    def _is_misspelt(self, word: str, searcher: Searcher) -> bool:
        query, nearly = self._terms.query(word, searcher), self._terms.nearly(word)
        if query is None or nearly is None or searcher.search(query, 1, count=False).hits:
            return False
        return bool(searcher.search(nearly, 1, count=False).hits)

    def purge(self) -> int:
        """Write what shares a file with deleted documents anew, so that their text leaves the disk.

        Returns how many deleted documents were freed. Cost: about 20 us a document rewritten.
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
        """Return the indexed (stemmed) terms of bodies that begin with one of the letters."""
        with text_errors(self._folder):
            return [
                term
                for initial in initials
                for term, _ in self._searcher.terms_with_prefix("body", initial, Query.all_query())
            ]

    def close(self) -> None:
        """Drop what is not committed and give the writer back."""
        with self._writing:
            self._writer = None

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Hold the writer; drop it after a failure: a writer after a full disk refuses all work.

        No caller keeps it in a variable of its own: a traceback would keep it, and its lock, alive.
        """
        with self._writing, text_errors(self._folder):
            try:
                yield
            except BaseException:
                self._writer, self._swept = None, False
                raise

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
            if not self._swept:
                # A commit that was cut short leaves files in no list; the next would take their
                # very names.
                self._writer.garbage_collect_files()
                self._swept = True
        return self._writer

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def _filtered(
        self, searcher: Searcher, query: Query, k: int, allowed: AbstractSet[str]
    ) -> list[TextHit]:
        """Look few allowed owners up in the index; for many, fetch more hits and drop others."""
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
        """Delete and add again the documents of some or all segments; drop emptied segments."""
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
        """Return each segment's number of deleted documents, by tantivy's own list."""
        return [deleted for _, deleted in segments(self._folder)]

    def _with_deleted(self, searcher: Searcher) -> set[int] | None:
        """Return the segments with deleted documents; None (all) if the list cannot be matched."""
        listed = segments(self._folder)
        every = searcher.search(Query.all_query(), max(1, searcher.num_docs), count=False).hits
        live = Counter(address.segment_ord for _, address in every)
        if any(live[at] != held - deleted for at, (held, deleted) in enumerate(listed)):
            return None
        return {at for at, (_, deleted) in enumerate(listed) if deleted}


def segments(folder: Path) -> list[tuple[int, int]]:
    """Return each segment's numbers of documents and of deleted ones, by tantivy's own list.

    A folder without the list is one whose making was cut short: it never held anything.
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
    """Raise what tantivy raises as a StoreError that names the command that helps."""
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
    """Return a StoreError for a failure of tantivy or of its files."""
    if "LockBusy" in str(error):
        return StoreConflict(f"the text index in {folder} is being written by somebody else")
    return StoreError(
        f"the text index in {folder} failed ({type(error).__name__}: {first_line(str(error), 200)}); "
        "`pps reindex` rebuilds it from the journal, the anchors and the graph"
    )
