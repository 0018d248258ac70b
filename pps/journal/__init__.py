"""What happened to one entity, durably: turns, jobs, the graph's tables and the outbox."""

from pps.journal.entries import (
    Appended,
    Change,
    DirtyChange,
    Extraction,
    Job,
    JobPayload,
    JobResult,
    JobState,
    TurnDraft,
)
from pps.journal.filters import ItemFilter
from pps.journal.journal import Journal

__all__ = [
    "Appended",
    "Change",
    "DirtyChange",
    "Extraction",
    "ItemFilter",
    "Job",
    "JobPayload",
    "JobResult",
    "JobState",
    "Journal",
    "TurnDraft",
]
