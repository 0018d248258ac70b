"""The text index of one entity: full text by BM25 in tantivy, one small index a collection."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import cast

from pps.core.errors import InvalidRequest, IsolationError, StoreError
from pps.core.file_lock import FileLock
from pps.index.collections import COLLECTIONS, check_collection
from pps.index.terms import Terms, TextDoc
from pps.index.text_collection import Shelf, TextHit, segments, text_failure

__all__ = ["TextDoc", "TextHit", "TextIndex"]

_LAYOUT = 2
_MARKS = "index.json"
_POSITION = "position.json"
"""The change log's position up to which all is here, and the collections at that time."""


class TextIndex:
    """All text of one entity. Every method blocks; all may be called from several threads at once.

    Searches run beside each other and beside a write; writes of a collection take turns. A change
    is on disk and found when ``commit`` returns, by every search that starts after that.
    """

    def __init__(self, folder: Path, lock: FileLock, terms: Terms) -> None:
        self._folder = folder
        self._lock = lock
        self._terms = terms
        self._changing = threading.RLock()
        self._shelves: dict[str, Shelf] = {}
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, group: str, language: str = "english") -> TextIndex:
        """Open the index in a folder of its own, or start an empty one there.

        An index of another language or an older layout is started anew, empty: its owner finds the
        lag and fills it.

        Args:
            path: The folder; made when absent.
            group: The owner's group, checked against the one that the folder was made for.
            language: What tantivy stems, such as ``english`` or ``german``; ``none`` leaves words
                as they are.

        Raises:
            IsolationError: The folder holds another entity's text.
            ConfigError: There is no such language.
            StoreConflict: The folder is open already, here or in another process.
            StoreError: tantivy cannot open it; the message names ``pps reindex``.
        """
        terms = Terms(language)
        lock = FileLock(path / "held.lock", in_new_folder=True).acquire()
        index = cls(path, lock, terms)
        try:
            _claim(path, {"group": group, "language": language, "layout": _LAYOUT})
            for name in COLLECTIONS:
                index.count(name)
        except BaseException:
            index.close()
            raise
        return index

    def replace(self, docs: Sequence[TextDoc]) -> None:
        """Make each document all that its owner has in its collection, from the next commit on."""
        by_collection: dict[str, list[TextDoc]] = {}
        for doc in docs:
            by_collection.setdefault(check_collection(doc.collection), []).append(doc)
        for collection, some in by_collection.items():
            self._made(collection).replace(some)

    def delete(self, collection: str, owners: Iterable[str]) -> None:
        """Drop owners from the next commit on; an absent one is no error."""
        shelf = self._found(collection)
        if shelf is not None:
            shelf.delete(owners)

    def commit(self, collection: str | None = None) -> None:
        """Save every change, or one collection's, and make it visible to later searches."""
        for name in COLLECTIONS if collection is None else (check_collection(collection),):
            shelf = self._shelves.get(name)
            if shelf is not None:
                shelf.commit()

    def search(
        self, collection: str, query: str, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[TextHit]:
        """Return the ``k`` owners that match any word of a text best, best first.

        Args:
            collection: One of ``COLLECTIONS``.
            query: Any text; nothing in it is an operator. Past 48 different words it is condensed.
            k: Most owners, 1 or more; fewer come back only when no more match.
            allowed: Only these owners; None allows all, an empty set none.
        """
        if k < 1:
            raise InvalidRequest("k", "must be 1 or more")
        shelf = self._found(collection)
        if shelf is None or (allowed is not None and not allowed):
            return []
        return shelf.search(query, k, allowed)

    def terms(self, collection: str, initials: str) -> list[str]:
        """Return the indexed (stemmed) terms of a collection that begin with one of the letters."""
        shelf = self._found(collection)
        return shelf.terms(initials) if shelf is not None else []

    def misspelt(self, collection: str, words: Iterable[str]) -> set[str]:
        """Return the words that no document has while some document has a similar one."""
        shelf = self._found(collection)
        return set() if shelf is None else shelf.misspelt(words)

    def is_empty(self, collection: str) -> bool:
        """Tell, without reading a file, whether a collection never had a document."""
        return self._found(collection) is None

    def purge(self) -> int:
        """Commit, erase texts of deleted and replaced documents from disk; return their number."""
        shelves = (self._found(name) for name in COLLECTIONS)
        return sum(shelf.purge() for shelf in shelves if shelf is not None)

    def owners(self, collection: str) -> set[str]:
        """Return every owner that has a committed document in the collection."""
        shelf = self._found(collection)
        return set() if shelf is None else shelf.owners()

    def count(self, collection: str) -> int:
        """Return a collection's number of owners with a committed document."""
        self._open()
        folder = self._folder / check_collection(collection)
        return sum(held - deleted for held, deleted in segments(folder)) if folder.is_dir() else 0

    def position(self) -> int | None:
        """Return the saved position of the change log; None for none, 0 if a collection is gone."""
        self._open()
        path = self._folder / _POSITION
        if not path.exists():
            return None
        try:
            saved = json.loads(path.read_text())
            position, names = int(saved["position"]), [str(name) for name in saved["collections"]]
        except (OSError, ValueError, KeyError, TypeError):
            return 0  # it is no proof of anything: the index is made anew
        return position if all((self._folder / name).is_dir() for name in names) else 0

    def save_position(self, position: int) -> None:
        """Save the position of the change log up to which everything committed is here.

        Raises:
            StoreError: The disk refused.
        """
        with self._changing:
            self._open()
            present = [name for name in COLLECTIONS if (self._folder / name).is_dir()]
            text = json.dumps({"position": position, "collections": present})
            draft = self._folder / f"{_POSITION}.tmp"
            try:
                with draft.open("w") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(self._folder / _POSITION)
            except OSError as error:
                raise text_failure(self._folder, error) from error

    def clear(self) -> None:
        """Drop every document of every collection, with its files; set the saved position to 0."""
        self.save_position(0)
        with self._changing:
            self._open()
            for name in COLLECTIONS:
                shelf = self._shelves.pop(name, None)
                if shelf is not None:
                    shelf.close()
                if (self._folder / name).is_dir():
                    shutil.rmtree(self._folder / name)

    def close(self) -> None:
        """Drop what is not committed and let the folder go; a second call does nothing."""
        with self._changing:
            if not self._closed:
                self._closed = True
                for shelf in self._shelves.values():
                    shelf.close()
                self._shelves.clear()
                self._lock.release()

    def _open(self) -> None:
        if self._closed:
            raise StoreError(f"the text index in {self._folder} is closed")

    def _found(self, collection: str) -> Shelf | None:
        """Return a collection, opened at its first use; None when it never had a document."""
        self._open()
        shelf = self._shelves.get(check_collection(collection))
        if shelf is None and (self._folder / collection).is_dir():
            shelf = self._made(collection)
        return shelf

    def _made(self, collection: str) -> Shelf:
        with self._changing:
            self._open()
            shelf = self._shelves.get(collection)
            if shelf is None:
                shelf = self._shelves[collection] = Shelf(self._folder / collection, self._terms)
            return shelf


def _claim(folder: Path, marks: dict[str, str | int]) -> None:
    """Check whose the folder is; empty it when it is of another language or layout."""
    path = folder / _MARKS
    try:
        held = (
            cast("dict[str, str | int] | None", json.loads(path.read_text()))
            if path.exists()
            else None
        )
        group = held["group"] if held else marks["group"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise text_failure(folder, error) from error
    if held == marks:
        return
    if group != marks["group"]:
        raise IsolationError(f"{folder} holds the text of another entity")
    try:
        (folder / _POSITION).unlink(missing_ok=True)
        for name in COLLECTIONS:
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(marks))
        draft.replace(path)
    except OSError as error:
        raise text_failure(folder, error) from error
