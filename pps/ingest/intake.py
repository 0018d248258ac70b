"""Where turns come in: a place in the queue first, then the journal, then the worker is told."""

from __future__ import annotations

from collections.abc import Sequence

from pps.ingest.backlog import EntityBacklog
from pps.ingest.worker import Worker
from pps.journal.journal import Journal
from pps.journal.values import Appended, JobPayload, TurnDraft
from pps.journal.versions import ChangeType, Revised, Rework


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
