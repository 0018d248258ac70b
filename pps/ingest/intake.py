"""Where turns come in: a place in the queue first, then the journal, then the worker is told."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from pps.core.errors import Overloaded
from pps.ingest.worker import Worker
from pps.journal.journal import Journal
from pps.journal.values import Appended, JobPayload, TurnDraft
from pps.journal.versions import ChangeType, Revised, Rework

_RETRY_AFTER_S = 5.0
_FLOWS_S = 0.25
_KEEPS_UP = 1_000


class Backlog:
    """Counts what waits in the queues of every open entity; ``most`` is the bound."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting = 0
        self._came_at = -math.inf

    def note_single(self) -> None:
        """Note that a turn came by itself, and somebody waits for its acknowledgement."""
        self._came_at = time.monotonic()

    def flows(self) -> bool:
        """Tell whether turns keep coming one by one, and so few wait that they may be taken in gently."""
        return time.monotonic() - self._came_at < _FLOWS_S and self.waiting < _KEEPS_UP


class EntityBacklog:
    """Counts what waits in one entity's queue. A place is taken before the journal is written, so nothing is lost.

    Not for several threads: it lives in one event loop, and no bound is overrun between two calls.
    """

    def __init__(self, total: Backlog, most: int) -> None:
        self._total = total
        self.most = most
        self.waiting = 0

    def reserve(self, count: int) -> None:
        """Take places in the queue.

        Raises:
            Overloaded: There are not so many left; nothing was taken.
        """
        if self.waiting and self.waiting + count > self.most:
            raise Overloaded(
                f"{self.waiting:,} turns of this memory wait to be taken in, and jobs.queue_entity allows "
                f"{self.most:,}: nothing was stored; try again in {_RETRY_AFTER_S:.0f} s, `pps doctor` says what "
                "they wait for",
                _RETRY_AFTER_S,
            )
        if self._total.waiting and self._total.waiting + count > self._total.most:
            raise Overloaded(
                f"{self._total.waiting:,} turns of all memories wait to be taken in, and jobs.queue_total allows "
                f"{self._total.most:,}: nothing was stored; try again in {_RETRY_AFTER_S:.0f} s, `pps doctor` says "
                "what they wait for",
                _RETRY_AFTER_S,
            )
        if count == 1:
            self._total.note_single()
        self._add(count)

    def release(self, count: int) -> None:
        """Give places back: jobs came to an end, or were never stored."""
        self._add(-min(count, self.waiting))

    def set(self, waiting: int) -> None:
        """Correct the count by what the journal says."""
        self._add(waiting - self.waiting)

    def close(self) -> None:
        """Give every place back: the entity is closed."""
        self.set(0)

    def _add(self, count: int) -> None:
        self.waiting += count
        self._total.waiting += count


class Intake:
    """Appends turns to one entity's journal. What it returns is on disk; what it refuses was never written."""

    def __init__(self, journal: Journal, worker: Worker, backlog: EntityBacklog) -> None:
        self._journal = journal
        self._worker = worker
        self._backlog = backlog

    async def append(self, draft: TurnDraft, payload: JobPayload) -> Appended:
        """Store one turn with its job.

        Raises:
            Overloaded: The queue is full; nothing was changed.
            InvalidRequest: A bound is broken; nothing was changed.
        """
        self._backlog.reserve(1)
        stored = False
        try:
            appended = await self._journal.append(draft, payload)
            stored = not appended.duplicate
        finally:
            if not stored:
                self._backlog.release(1)
        if stored:
            self._worker.notify(one_by_one=True)
        return appended

    async def revise(self, turn: str, change: ChangeType, actor: str, rework: Rework) -> Revised:
        """Change a turn's text and queue its job again.

        Raises:
            Overloaded: The queue is full; nothing was changed.
            NotFound, Revising, InvalidRequest: As ``Versions.revise``.
        """
        self._backlog.reserve(1)
        queued = False
        try:
            revised = await self._journal.versions.revise(turn, change, actor, rework)
            queued = revised.changed
        finally:
            if not queued:
                self._backlog.release(1)
        if queued:
            self._worker.notify()
        return revised

    async def append_many(self, entries: Sequence[tuple[TurnDraft, JobPayload]]) -> list[Appended]:
        """Store turns in the order given, all of them or none; raises as ``append``."""
        self._backlog.reserve(len(entries))
        stored = 0
        try:
            appended = await self._journal.append_many(entries)
            stored = sum(not one.duplicate for one in appended)
        finally:
            self._backlog.release(len(entries) - stored)
        if stored:
            self._worker.notify()
        return appended
