"""What a worker goes by, and what it does about a failed attempt: wait, park, or wait for a provider."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pps.core import time
from pps.core.errors import ModelOutputInvalid, PPSError, StoreUnavailable
from pps.core.logs import unforeseen
from pps.ingest.backlog import Backlog, EntityBacklog
from pps.ingest.breaker import Breakers
from pps.ingest.retrying import Fault, Provider, RetryPolicy, fault_of, provider_of
from pps.ingest.slots import Places
from pps.journal.journal import Journal
from pps.journal.values import Job, Stage

_log = logging.getLogger(__name__)
_LEAST_FREE_BYTES = 4 * 1024 * 1024
Probe = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class WorkRules:
    """What a worker goes by.

    Attributes:
        places: Shared by all entities whose texts a language model reads.
        probes: How a provider is asked whether it answers, apart from any job; raises a PPSError when not.
    """

    policy: RetryPolicy
    breakers: Breakers
    backlog: EntityBacklog
    probes: Mapping[Provider, Probe] = field(default_factory=dict[Provider, Probe])
    places: Places = field(default_factory=lambda: Places(1))

    @classmethod
    def default(cls) -> WorkRules:
        """Return rules of a worker that shares nothing with others."""
        policy = RetryPolicy()
        return cls(policy, Breakers.make(policy, 5), EntityBacklog(Backlog(1 << 40), 1 << 40))

    @property
    def end_of_time(self) -> datetime:
        """A moment at which every wait is over."""
        return datetime.max.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """Return the present instant."""
        return time.now()


class Failing:
    """Notes failed attempts of one entity's jobs in its queue, and tells the breakers."""

    def __init__(self, journal: Journal, name: str, rules: WorkRules) -> None:
        self._journal = journal
        self._queue = journal.queue
        self._name = name
        self._rules = rules
        self._doubted = 0

    def fault_of(self, error: PPSError) -> Fault:
        """Tell whose fault an error is; on a full disk nothing is a job's fault."""
        return "outage" if self.full_disk() else fault_of(error)

    def full_disk(self) -> StoreUnavailable | None:
        """Return the error that says so when the disk of the entity's files is full; a folder that is gone has none."""
        try:
            free = shutil.disk_usage(self._journal.path.parent).free
        except FileNotFoundError:
            return None
        if free >= _LEAST_FREE_BYTES:
            return None
        return StoreUnavailable("the disk is full: free some space; what was acknowledged is taken in after that")

    async def note(self, job: Job, error: PPSError, model: Provider) -> bool:
        """Put a job off or park it, as the error says; tell whether it was parked."""
        fault, failures = self.fault_of(error), job.failures + 1
        error = (self.full_disk() or error) if fault == "outage" else error
        if isinstance(error, ModelOutputInvalid) and fault == "passing":
            self._rules.breakers.succeeded(
                [provider_of(error, model)]
            )  # it answers: others need not wait for one's text
        elif fault != "lasting":
            self._rules.breakers.failed(provider_of(error, model), error)
        parks = fault == "lasting" or await self._is_over(job, failures, fault, provider_of(error, model))
        wait_s = self._rules.policy.wait_s(failures, getattr(error, "retry_after_s", None))
        next_at = None if parks else self._rules.now() + timedelta(seconds=wait_s)
        await self._queue.fail(job.id, error.code, error.message, next_at)
        text = "parked" if parks else f"tried again at {time.iso(next_at)}" if next_at else ""
        _log.warning("entity %s: job %d failed (%s), %s: %s", self._name, job.id, error.code, text, error.message)
        return parks

    async def park(self, job: Job, error: BaseException) -> None:
        """Park a job for an error that nobody foresaw."""
        why = f"unforeseen {type(error).__name__}; the server's log has the details"
        await self._queue.fail(job.id, "internal", why, None)
        self._rules.backlog.release(1)

    def unforeseen(self, error: BaseException) -> str:
        """Log an error that nobody foresaw; return what may be shown of it."""
        unforeseen(_log, f"entity {self._name}: an unforeseen error in ingestion", error)
        return f"an unforeseen {type(error).__name__}; the server's log has the details"

    async def wait_s(self, needed: Mapping[Stage, Sequence[Provider]]) -> float | None:
        """Return how long it is until a waiting job may be tried; None when no job waits."""
        waits: list[float] = []
        for stage, providers in needed.items():
            due = await self._queue.due_at(stage)
            if due is not None:
                breakers = [self._rules.breakers.by_provider[name] for name in providers]
                until = [one.wait_s or (0.1 if one.state == "half-open" else 0.0) for one in breakers]
                waits.append(max((due - self._rules.now()).total_seconds(), *until))
        return min(waits) if waits else None

    async def _is_over(self, job: Job, failures: int, fault: Fault, provider: Provider) -> bool:
        """Tell whether a job has had its attempts."""
        since = job.first_failed_at or self._rules.now()
        if (self._rules.now() - since).total_seconds() >= self._rules.policy.give_up_s:
            return True
        if failures < self._rules.policy.attempts:
            return False
        if fault == "passing":
            return True
        if not await self._answers(provider):
            self._doubted = 0
            return False
        # The provider may have come back between the attempt and this: what fails once more is at fault itself.
        before, self._doubted = self._doubted, job.id
        return before == job.id

    async def _answers(self, provider: Provider) -> bool:
        """Tell whether a provider answers others: then a job that it keeps failing is at fault itself."""
        probe = self._rules.probes.get(provider)
        if probe is None or self.full_disk():
            return False
        try:
            await probe()
        except PPSError:
            return False
        return True
