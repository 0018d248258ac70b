"""Whether an entity's ingestion is well: pure rules over what its queue and its worker say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pps.core.reports import IngestionStats
from pps.journal.values import QueueState

LEAST_TRIED = 10
"""Fewer turns within the window say nothing about a rate."""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """When ingestion counts as unwell; the bounds are those of the settings ``jobs``."""

    red_after_s: float = 300.0
    red_oldest_s: float = 3_600.0
    red_failure_rate: float = 0.5
    window_s: int = 600


def stalled_s(state: QueueState, started_at: datetime, now: datetime) -> float:
    """Return for how long nothing of the queue has come to an end although something waits, in seconds.

    It counts from whichever is latest: the oldest job's receipt, the last end of any job, the start of the
    worker. So a long import is well as long as it moves, and a start has its fair time.
    """
    if state.oldest_at is None:
        return 0.0
    return max(0.0, (now - max(state.oldest_at, state.moved_at or state.oldest_at, started_at)).total_seconds())


def problems(name: str, stats: IngestionStats, limits: HealthLimits, trouble: Sequence[str]) -> list[str]:
    """Return what is wrong, one line each, with what to do next; ``trouble`` is what the worker waits for."""
    found = [f"ingestion waits: {one}; it goes on by itself when that is mended" for one in trouble]
    waiting = stats.queued + stats.running
    if stats.stalled_s >= limits.red_after_s:
        found.append(
            f"nothing of {waiting:,} waiting turns has been taken in for {stats.stalled_s:,.0f} s; they are safe in "
            f"the journal, `pps jobs list {name}` shows what they wait for"
        )
    if stats.oldest_s >= limits.red_oldest_s:
        found.append(
            f"the oldest of {waiting:,} waiting turns came {stats.oldest_s:,.0f} s ago; they are safe in the journal, "
            f"`pps jobs list {name}` shows what they wait for; for a long import jobs.red_oldest_s may be raised"
        )
    if stats.tried >= LEAST_TRIED and stats.failing / stats.tried >= limits.red_failure_rate:
        found.append(
            f"{stats.failing:,} of {stats.tried:,} turns that were tried in the last {stats.window_s:,} s failed; "
            f"`pps jobs list {name}` shows why"
        )
    if stats.failed:
        found.append(
            f"{stats.failed:,} turns could not be taken into the graph; they are kept in the journal: `pps jobs list "
            f"{name} --state failed` shows why, `pps jobs retry {name} --all` tries again, `pps jobs drop` gives up"
        )
    return found
