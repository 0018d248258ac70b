"""What happened to one entity, durably: turns, jobs, the outbox and the mirror for filters."""

from pps.journal.journal import Journal
from pps.journal.values import (
    Appended,
    Change,
    DirtyChange,
    Extraction,
    ItemFilter,
    Job,
    JobPayload,
    JobResult,
    JobState,
    TurnDraft,
)

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
