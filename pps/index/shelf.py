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

from tantivy import DocAddress, Index, IndexWriter, Query, Searcher

from pps.core.errors import StoreError
from pps.index.terms import Terms, TextDoc, only, tag

_HEAP_BYTES = 15_000_000
"""The least that tantivy takes; it is used as it fills, not at once."""
_FEW = 64
_PRICE = 0.5
_SURPLUS = 1.5


@dataclass(frozen=True, slots=True)
class TextHit:
    """An owner and its BM25 score, above 0; compares only within one search."""

    owner: str
    score: float


class Shelf:
    """One collection. Searches run beside each other and beside a write; writes take turns.

    It is a tantivy index of its own, because BM25 counts all documents of an index: on a shared one the
    turns would set the length and rarity by which nodes are ranked. It holds no thread and no open file
    between commits; a writer lives from the first change to the commit.
    """

    def __init__(self, folder: Path, terms: Terms) -> None:
        self._folder = folder
        self._terms = terms
        self._writer: IndexWriter | None = None
        self._writing = threading.RLock()
        with text_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = Index(terms.schema, path=str(folder))
            terms.register(self._index)
            self._index.config_reader("manual")
            self._searcher = self._index.searcher()

    def replace(self, docs: Sequence[TextDoc]) -> None:
        """Make each document all that its owner has here, from the next commit on."""
        with self._writing, text_errors(self._folder):
            writer = self._open_writer()
            for doc in {doc.owner: doc for doc in docs}.values():
                writer.delete_documents_by_term("owner", doc.owner)
                writer.add_document(self._terms.document(doc))

    def delete(self, owners: Iterable[str]) -> None:
        """Drop owners from the next commit on; an absent one is no error."""
        with self._writing, text_errors(self._folder):
            for owner in owners:
                self._open_writer().delete_documents_by_term("owner", owner)

    def commit(self) -> None:
        """Put every change on disk and let searches that start now see it; merges that fall due are waited for."""
        with self._writing:
            writer, self._writer = self._writer, None
            if writer is None:
                return
            with text_errors(self._folder):
                writer.commit()
                writer.wait_merging_threads()
                self._reload()

    def search(self, text: str, k: int, allowed: AbstractSet[str] | None) -> list[TextHit]:
        """Return the ``k`` best owners for a text, best first; fewer only when no more match."""
        searcher = self._searcher
        with text_errors(self._folder):
            query = self._terms.query(text, searcher)
            if query is None or searcher.num_docs == 0:
                return []
            if allowed is None:
                hits = searcher.search(query, k, count=False).hits
                return _ranked(_Found(searcher, hits).owners())
            return _ranked(self._filtered(searcher, query, k, allowed))

    def purge(self) -> int:
        """Write segments that still hold deleted documents anew without them; return how many were freed."""
        with self._writing, text_errors(self._folder):
            self.commit()
            searcher = self._searcher
            marked = self._segments_with_deleted(searcher)
            if not marked:
                return 0
            writer = self._open_writer()
            for address in _all(searcher):
                if address.segment_ord in marked:
                    stored = self._terms.again(searcher.doc(address))
                    writer.delete_documents_by_term("owner", stored["owner"][0])
                    writer.add_document(stored)
            del searcher
            self.commit()
            self._collect()
            return sum(marked.values())

    def owners(self) -> set[str]:
        """Return every owner that has a committed document."""
        with text_errors(self._folder):
            return {owner for owner, _ in self._searcher.terms_with_prefix("owner", "", Query.all_query())}

    def count(self) -> int:
        """Return how many owners have a committed document."""
        return self._searcher.num_docs

    def close(self) -> None:
        """Drop what is not committed and give the writer back."""
        with self._writing:
            self._writer = None

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP_BYTES, 1)
        return self._writer

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()
