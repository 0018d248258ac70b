"""The rules of a worker, and the handling of failed attempts: retry, park, wait for a provider."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pps.config import JobsSettings
from pps.core import time
from pps.core.errors import ModelOutputInvalid, PPSError, StoreConflict, StoreUnavailable
from pps.core.log_context import unforeseen
from pps.ingest.drafts import Backlog, EntityBacklog
from pps.ingest.limits import Breakers, Fault, Places, Provider, RetryPolicy, fault_of, provider_of
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job, Stage
from pps.journal.journal import Journal
from pps.models.protocols import Embedder

_log = logging.getLogger(__name__)
LEAST_FREE_BYTES = 4 * 1024 * 1024
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
"""A moment at which every wait is over."""
Probe = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class WorkRules:
    """The retry policy, breakers and bounds of one entity's worker.

    Attributes:
        places: Shared by all entities whose texts a language model reads.
        probes: Ask a provider, apart from any job, whether it answers; raise a PPSError if not.
    """

    policy: RetryPolicy
    breakers: Breakers
    backlog: EntityBacklog
    probes: Mapping[Provider, Probe] = field(default_factory=dict[Provider, Probe])
    places: Places = field(default_factory=lambda: Places(1))


@dataclass(frozen=True, slots=True)
class SharedWork:
    """The rules, breakers and bounds that the workers of a process share."""

    settings: JobsSettings
    policy: RetryPolicy
    breakers: Breakers
    backlog: Backlog
    places: Places

    @classmethod
    def of(cls, settings: JobsSettings) -> SharedWork:
        waits = settings.first_wait_s, settings.longest_wait_s
        policy = RetryPolicy(*waits, settings.attempts, float(settings.give_up_s))
        breakers = Breakers.make(policy, settings.breaker_failures)
        return cls(
            settings, policy, breakers, Backlog(settings.queue_total), Places(settings.read_at_once)
        )

    def rules(
        self,
        client: IsolatedGraphitiClient,
        embedder: Embedder | None,
        own_node: str,
        own: Iterable[Provider],
    ) -> WorkRules:
        """Return the rules of one entity's worker.

        Reading ``own_node`` probes the graph. A failure of one of the entity's ``own`` providers
        stops no other entity and is reported to none.
        """
        breakers = self.breakers.with_own(own, self.policy, self.settings.breaker_failures)
        probes: dict[Provider, Probe] = {"store": lambda: client.nodes([own_node])}
        if embedder is not None:
            probes["embedder"] = lambda: asyncio.to_thread(embedder.embed_passages, ["."])
        backlog = EntityBacklog(self.backlog, self.settings.queue_entity)
        return WorkRules(self.policy, breakers, backlog, probes, self.places)


class Door:
    """The lock that every change of an entity's graph runs under."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def held(self, timeout_s: float | None = 120.0) -> AsyncGenerator[None]:
        """Wait for the lock, then hold it.

        Read what a write depends on while holding it: another writer may change earlier reads.

        Raises:
            StoreConflict: The holder did not end in time, as when a language model reads a text.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._lock.acquire()
        except TimeoutError:
            since = f"a text is being taken in for more than {timeout_s or 0:.0f} s"
            raise StoreConflict(f"{since}; try again when `ingestion_stats` shows none") from None
        try:
            yield
        finally:
            self._lock.release()


class Failing:
    """Notes failed attempts of one entity's jobs in its queue and in the breakers."""

    def __init__(self, journal: Journal, name: str, rules: WorkRules) -> None:
        self._journal = journal
        self._queue = journal.queue
        self._name = name
        self._rules = rules
        self._doubted = 0

    def fault_of(self, error: PPSError) -> Fault:
        """Return the cause of an error; on a full disk every error is an outage."""
        return "outage" if self.full_disk() else fault_of(error)

    def full_disk(self) -> StoreUnavailable | None:
        """Return the error of a full disk under the entity's files, else None."""
        try:
            free = shutil.disk_usage(self._journal.path.parent).free
        except FileNotFoundError:
            return None
        if free >= LEAST_FREE_BYTES:
            return None
        return StoreUnavailable(
            "the disk is full: free some space; what was acknowledged is taken in after that"
        )

    async def note(self, job: Job, error: PPSError, model: Provider) -> bool:
        """Put a job off or park it, by the cause of the error; tell whether it was parked."""
        fault = self.fault_of(error)
        failures = job.failures + 1
        error = (self.full_disk() or error) if fault == "outage" else error
        provider = provider_of(error, model)
        if isinstance(error, ModelOutputInvalid) and fault == "passing":
            self._rules.breakers.succeeded(
                [provider]
            )  # it answers: others need not wait for one's text
        elif fault != "lasting":
            self._rules.breakers.failed(provider, error)
        parks = fault == "lasting" or await self._is_over(job, failures, fault, provider)
        wait_s = self._rules.policy.wait_s(failures, getattr(error, "retry_after_s", None))
        next_at = None if parks else time.now() + timedelta(seconds=wait_s)
        await self._queue.fail(job.id, error.code, error.message, next_at)
        text = f"tried again at {time.iso(next_at)}" if next_at else "parked"
        _log.warning(
            "entity %s: job %d failed (%s), %s: %s",
            self._name,
            job.id,
            error.code,
            text,
            error.message,
        )
        return parks

    async def park(self, job: Job, error: BaseException) -> None:
        """Park a job after an unforeseen error."""
        await self._queue.fail(job.id, "internal", _unforeseen(error).removeprefix("an "), None)
        self._rules.backlog.release(1)

    def unforeseen(self, error: BaseException) -> str:
        """Log an unforeseen error; return its text for the health report."""
        unforeseen(_log, f"entity {self._name}: an unforeseen error in ingestion", error)
        return _unforeseen(error)

    async def wait_s(self, needed: Mapping[Stage, Sequence[Provider]]) -> float | None:
        """Return the seconds until a waiting job may be tried; None if no job waits."""
        waits: list[float] = []
        for stage, providers in needed.items():
            due = await self._queue.due_at(stage)
            if due is not None:
                breakers = [self._rules.breakers.by_provider[name] for name in providers]
                until = [
                    breaker.wait_s or (0.1 if breaker.state == "half-open" else 0.0)
                    for breaker in breakers
                ]
                waits.append(max((due - time.now()).total_seconds(), *until))
        return min(waits) if waits else None

    async def _is_over(self, job: Job, failures: int, fault: Fault, provider: Provider) -> bool:
        """Tell whether a job has used up its attempts."""
        since = job.first_failed_at or time.now()
        if (time.now() - since).total_seconds() >= self._rules.policy.give_up_s:
            return True
        if failures < self._rules.policy.attempts:
            return False
        if fault == "passing":
            return True
        if not await self._answers(provider):
            self._doubted = 0
            return False
        # The provider may have come back after the attempt: only a second failure is the job's.
        before = self._doubted
        self._doubted = job.id
        return before == job.id

    async def _answers(self, provider: Provider) -> bool:
        """Tell whether a provider answers its probe: then a job that keeps failing is the cause."""
        probe = self._rules.probes.get(provider)
        if probe is None or self.full_disk():
            return False
        try:
            await probe()
        except PPSError:
            return False
        return True


def _unforeseen(error: BaseException) -> str:
    return f"an unforeseen {type(error).__name__}; the server's log has the details"
