"""What happened to one entity, durably: turns, jobs, the graph's tables and the change log."""

from pps.journal.entries import (
    Appended,
    Change,
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
    "Extraction",
    "Job",
    "JobPayload",
    "JobResult",
    "JobState",
    "TurnDraft",
]
