"""The full-text index of one entity: BM25 in tantivy, with one small index per collection."""

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
"""File with the change log's position that the index has reached, and its collections then."""


class TextIndex:
    """All text of one entity. Every method blocks and may be called from several threads.

    Searches run concurrently, also with a write; writes of a collection take turns. When ``commit``
    returns, the changes are on disk and visible to every search that starts afterwards.
    """

    def __init__(self, folder: Path, lock: FileLock, terms: Terms) -> None:
        self._folder = folder
        self._lock = lock
        self._terms = terms
        self._changing = threading.RLock()
        self._shelves: dict[str, Shelf] = {}
        # Collections that have a folder. This process holds the lock, so no other makes one.
        self._present: set[str] = set()
        self._closed = False

    @classmethod
    def open(cls, path: Path, *, group: str, language: str = "english") -> TextIndex:
        """Open the index in its folder, or create an empty one.

        An index of another language or an older layout is emptied; its position in the change log
        is lost with it, so the follower fills it again.

        Args:
            path: The folder; created if absent.
            group: The group that must own the folder.
            language: Language of tantivy's stemmer, such as ``english`` or ``german``; ``none``
                disables stemming.

        Raises:
            IsolationError: The folder belongs to another entity.
            ConfigError: tantivy has no such language.
            StoreConflict: The folder is already open, in this or another process.
            StoreError: tantivy cannot open it; the error names ``pps reindex``.
        """
        terms = Terms(language)
        lock = FileLock(path / "held.lock", in_new_folder=True).acquire()
        index = cls(path, lock, terms)
        try:
            _claim(path, {"group": group, "language": language, "layout": _LAYOUT})
            for name in COLLECTIONS:
                index.count(name)
            index._present.update(name for name in COLLECTIONS if (path / name).is_dir())
        except BaseException:
            index.close()
            raise
        return index

    def replace(self, docs: Sequence[TextDoc]) -> None:
        """Replace the documents of their owners in their collections with the next commit."""
        by_collection: dict[str, list[TextDoc]] = {}
        for doc in docs:
            by_collection.setdefault(check_collection(doc.collection), []).append(doc)
        for collection, documents in by_collection.items():
            self._open_shelf(collection).replace(documents)

    def delete(self, collection: str, owners: Iterable[str]) -> None:
        """Delete the documents of owners with the next commit; absent owners are ignored."""
        shelf = self._existing_shelf(collection)
        if shelf is not None:
            shelf.delete(owners)

    def commit(self, collection: str | None = None) -> None:
        """Save all changes, or those of one collection, and make them visible to searches."""
        for name in COLLECTIONS if collection is None else (check_collection(collection),):
            shelf = self._shelves.get(name)
            if shelf is not None:
                shelf.commit()

    def search(
        self, collection: str, query: str, k: int, allowed: AbstractSet[str] | None = None
    ) -> list[TextHit]:
        """Return the ``k`` best owners whose text has any word of the query, best first.

        Args:
            collection: One of ``COLLECTIONS``.
            query: Any text, without operators. Beyond 48 distinct words only the most significant
                ones are used.
            k: Maximum number of owners, at least 1; fewer are returned only if no more match.
            allowed: Restricts the owners; None allows all, an empty set none.
        """
        if k < 1:
            raise InvalidRequest("k", "must be 1 or more")
        shelf = self._existing_shelf(collection)
        if shelf is None or (allowed is not None and not allowed):
            return []
        return shelf.search(query, k, allowed)

    def terms(self, collection: str, initials: str) -> list[str]:
        """Return the indexed (stemmed) terms of a collection that begin with any of the letters."""
        shelf = self._existing_shelf(collection)
        return shelf.terms(initials) if shelf is not None else []

    def misspelt(self, collection: str, words: Iterable[str]) -> set[str]:
        """Return the words that occur in no document although a similar word does."""
        shelf = self._existing_shelf(collection)
        return set() if shelf is None else shelf.misspelt(words)

    def is_empty(self, collection: str) -> bool:
        """Return whether a collection never had a document; reads no file."""
        return self._existing_shelf(collection) is None

    def purge(self) -> int:
        """Commit, and erase deleted and replaced documents from disk; return their number."""
        shelves = (self._existing_shelf(name) for name in COLLECTIONS)
        return sum(shelf.purge() for shelf in shelves if shelf is not None)

    def owners(self, collection: str) -> set[str]:
        """Return the owners with a committed document in the collection."""
        shelf = self._existing_shelf(collection)
        return set() if shelf is None else shelf.owners()

    def count(self, collection: str) -> int:
        """Return the number of owners with a committed document in the collection."""
        self._open()
        folder = self._folder / check_collection(collection)
        if not folder.is_dir():
            return 0
        return sum(total - deleted for total, deleted in segments(folder))

    def position(self) -> int | None:
        """Return the saved position in the change log; None without one.

        0 if the file is unreadable or a collection's folder is missing: the index must be rebuilt.
        """
        self._open()
        path = self._folder / _POSITION
        if not path.exists():
            return None
        try:
            saved = json.loads(path.read_text())
            position = int(saved["position"])
            names = [str(name) for name in saved["collections"]]
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        return position if all((self._folder / name).is_dir() for name in names) else 0

    def save_position(self, position: int) -> None:
        """Save the position in the change log up to which the committed index is complete.

        Raises:
            StoreError: The file cannot be written.
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
        """Delete the files of all collections and set the saved position to 0."""
        self.save_position(0)
        with self._changing:
            self._open()
            for name in COLLECTIONS:
                shelf = self._shelves.pop(name, None)
                if shelf is not None:
                    shelf.close()
                if (self._folder / name).is_dir():
                    shutil.rmtree(self._folder / name)
                self._present.discard(name)

    def close(self) -> None:
        """Discard uncommitted changes and release the folder; can be called twice."""
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

    def _existing_shelf(self, collection: str) -> Shelf | None:
        """Return a collection, opened at its first use; None if it never had a document."""
        self._open()
        shelf = self._shelves.get(check_collection(collection))
        if shelf is None and collection in self._present:
            shelf = self._open_shelf(collection)
        return shelf

    def _open_shelf(self, collection: str) -> Shelf:
        with self._changing:
            self._open()
            shelf = self._shelves.get(collection)
            if shelf is None:
                shelf = self._shelves[collection] = Shelf(self._folder / collection, self._terms)
                self._present.add(collection)
            return shelf


def _claim(folder: Path, marks: dict[str, str | int]) -> None:
    """Check that the group owns the folder; empty it if its language or layout differs."""
    path = folder / _MARKS
    try:
        stored = (
            cast("dict[str, str | int] | None", json.loads(path.read_text()))
            if path.exists()
            else None
        )
        group = stored["group"] if stored else marks["group"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise text_failure(folder, error) from error
    if stored == marks:
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
