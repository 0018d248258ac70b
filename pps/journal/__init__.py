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

__all__ = [
    "Appended",
    "Change",
    "DirtyChange",
    "Extraction",
    "Job",
    "JobPayload",
    "JobResult",
    "JobState",
    "TurnDraft",
]
