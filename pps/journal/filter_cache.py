"""What filters let through, kept for a moment: an agent asks again and again under the same filter."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pps.core.values import ItemKind
from pps.journal import filters
from pps.journal.reader import Readers
from pps.journal.values import ItemFilter
from pps.journal.writer import Writer

KEPT_IDS = 200_000
"""Most ids kept for one memory: about 20 MB."""
_KEPT_FILTERS = 64
KEPT_S = 30.0
"""Longest that an answer is kept: facts begin and end by the clock alone."""


@dataclass(frozen=True, slots=True)
class _Kept:
    ids: set[str] | None
    commits: int
    until: float


class Allowing:
    """Answers filters; an answer serves again until the memory changes, for half a minute at most.

    Working out which of 50,000 facts a filter lets through takes longer than a search among them.
    """

    def __init__(self, writer: Writer, readers: Readers, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def allowed(self, kind: ItemKind, wanted: ItemFilter) -> set[str] | None:
        """Return the ids of a kind that pass a filter, not to be changed; None means that nothing is restricted."""
        key = f"{kind} {wanted!r}"  # a caller's filter may hold lists, which have no hash
        found = self._kept.get(key)
        if found and found.commits == self._writer.commits and self._clock() < found.until:
            self._kept.move_to_end(key)
            return found.ids
        commits = self._writer.commits  # before the read: what is committed after it makes the answer old
        ids = await self._readers.read(partial(filters.allowed, kind=kind, wanted=wanted))
        self._keep(key, _Kept(ids, commits, self._clock() + KEPT_S))
        return ids

    def _keep(self, key: str, one: _Kept) -> None:
        self._kept.pop(key, None)
        self._kept[key] = one
        while sum(len(kept.ids or ()) for kept in self._kept.values()) > KEPT_IDS or len(self._kept) > _KEPT_FILTERS:
            self._kept.popitem(last=False)
