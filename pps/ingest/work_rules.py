"""The rules of a worker: when failed attempts are retried or parked, and limits on providers.

The wait after the n-th failure is uniform in ``[0, min(longest, first * 2 ** (n - 1))]``:
tenacity's ``wait_random_exponential``, the "full jitter" of Brooker, "Exponential backoff and
jitter", 2015.

A breaker is closed (every caller may ask the provider), open (none may, until a time that moves
further away with each failed try or that the provider named) or half-open (one caller may try; if
it succeeds, the breaker closes). Source: Nygard, "Release It!", 2007, chapter 5.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time as clock
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from tenacity import RetryCallState, Retrying, wait_random_exponential

from pps.config import JobsSettings
from pps.core import time
from pps.core.errors import (
    ConfigError,
    ModelOutputInvalid,
    ModelUnavailable,
    NotSet,
    PPSError,
    StoreConflict,
    StoreUnavailable,
)
from pps.core.log_context import unforeseen
from pps.ingest.drafts import Backlog, EntityBacklog
from pps.isolation.client import IsolatedGraphitiClient
from pps.journal.entries import Job, Stage
from pps.journal.journal import Journal
from pps.models.protocols import Embedder

_log = logging.getLogger(__name__)
LEAST_FREE_BYTES = 4 * 1024 * 1024
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
"""A moment at which every wait is over."""
Probe = Callable[[], Awaitable[object]]
Fault: TypeAlias = Literal["outage", "passing", "lasting"]
"""Cause of a failure.

``outage``: a store or a model is at fault. ``passing``: the job is, and a retry may succeed.
``lasting``: the job is, and a retry cannot succeed.
"""
Provider: TypeAlias = Literal["store", "embedder", "extractor"]
_LONGEST_ASKED_S = 3_600.0
"""Upper bound on the wait that a provider may ask for."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon to retry, in seconds; bounds are those of the settings ``jobs``."""

    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    attempts: int = 5
    give_up_s: float = 86_400.0

    def wait_s(self, failures: int, asked_s: float | None = None) -> float:
        """Return the seconds to wait after the n-th failure in a row, n from 1.

        Random in 0 to ``longest_wait_s``, and at least ``asked_s``, the wait that the provider asks
        for, of which an hour counts at most.
        """
        strategy = wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s)
        state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
        state.attempt_number = max(1, failures)
        return max(strategy(state), min(asked_s or 0.0, _LONGEST_ASKED_S))


def fault_of(error: PPSError) -> Fault:
    """Return the cause of an error.

    A wrong key or setting is an outage: no turn causes it, and parking every turn would not mend
    it. A missing setting for the extractor is the job's and lasting: only a new start can set it,
    and a start tries parked jobs again. An embedder fails independently of the turn, so its invalid
    output is an outage as well.
    """
    if isinstance(error, NotSet):
        return "lasting"
    if isinstance(error, (StoreUnavailable, StoreConflict, ModelUnavailable, ConfigError)):
        return "outage"
    if isinstance(error, ModelOutputInvalid):
        return "outage" if error.provider == "embedder" else "passing"
    return "passing" if error.retryable else "lasting"


def provider_of(error: PPSError, model: Provider) -> Provider:
    """Return the provider that failed; ``model`` if the error of a model names none."""
    if isinstance(error, (StoreUnavailable, StoreConflict)):
        return "store"
    named = getattr(error, "provider", "")
    return named if named in ("embedder", "extractor") else model


class Breaker:
    """One provider's circuit breaker. Not thread-safe: it lives in one event loop.

    Attributes:
        why: The error that opened it; empty while it is closed.
        shared: Whether other entities depend on the provider too.
    """

    def __init__(
        self,
        name: str,
        policy: RetryPolicy,
        failures: int,
        monotonic: Callable[[], float] = clock.monotonic,
        *,
        shared: bool = True,
    ) -> None:
        self.name = name
        self.shared = shared
        self.why = ""
        self._policy = policy
        self._limit = failures
        self._now = monotonic
        self._failures = 0
        self._opened = 0
        self._until = 0.0
        self._trying: object | None = None
        self._listeners: set[Callable[[], None]] = set()

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        if not self._opened:
            return "closed"
        return "half-open" if self._now() >= self._until else "open"

    @property
    def wait_s(self) -> float:
        """Seconds until a caller may try; 0 if it is closed or half-open."""
        return max(0.0, self._until - self._now()) if self._opened else 0.0

    def claim(self, who: object) -> bool:
        """Tell whether ``who`` may ask now; in the half-open state the first claim gets the try."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._trying not in (None, who):
            return False
        self._trying = who
        return True

    def release(self, who: object) -> None:
        """Give back the try of the half-open state, if ``who`` holds it and learned nothing."""
        if self._trying is who:
            self._trying = None

    def succeeded(self) -> None:
        """Note an answer: close the breaker and notify its listeners."""
        was_open = bool(self._opened)
        self._failures = 0
        self._opened = 0
        self._trying = None
        self.why = ""
        if was_open:
            for listener in list(self._listeners):
                listener()

    def failed(self, why: str, retry_after_s: float | None = None) -> None:
        """Note a failure.

        The breaker opens after ``failures`` in a row, after a failed try in the half-open state, or
        if the provider asks for a wait of ``retry_after_s``.
        """
        self._failures += 1
        self._trying = None
        if not (self._opened or retry_after_s or self._failures >= self._limit):
            return
        self._opened += 1
        self.why = why
        self._until = self._now() + self._policy.wait_s(self._opened, retry_after_s)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever the breaker closes."""
        self._listeners.add(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        self._listeners.discard(listener)


@dataclass(frozen=True, slots=True)
class Breakers:
    """The breakers of one entity's work; those of models and of a server are shared by entities."""

    by_provider: dict[Provider, Breaker] = field(default_factory=dict[Provider, Breaker])

    @classmethod
    def make(cls, policy: RetryPolicy, failures: int) -> Breakers:
        names: tuple[Provider, ...] = ("store", "embedder", "extractor")
        return cls({name: Breaker(name, policy, failures) for name in names})

    def with_own(self, names: Iterable[Provider], policy: RetryPolicy, failures: int) -> Breakers:
        """Return a copy with new breakers for providers of this entity alone: an embedded store."""
        own: dict[Provider, Breaker] = {
            name: Breaker(name, policy, failures, shared=False) for name in names
        }
        return Breakers({**self.by_provider, **own})

    def claim(self, needed: Sequence[Provider], who: object) -> Breaker | None:
        """Claim every needed provider; return the first breaker that refuses, or None.

        After a refusal none of them is claimed.
        """
        for name in needed:
            if not self.by_provider[name].claim(who):
                self.release(needed, who)
                return self.by_provider[name]
        return None

    def release(self, needed: Iterable[Provider], who: object) -> None:
        for name in needed:
            self.by_provider[name].release(who)

    def succeeded(self, needed: Iterable[Provider]) -> None:
        for name in needed:
            self.by_provider[name].succeeded()

    def failed(self, provider: Provider, error: PPSError) -> None:
        self.by_provider[provider].failed(error.message, getattr(error, "retry_after_s", None))

    def open(self) -> list[Breaker]:
        return [breaker for breaker in self.by_provider.values() if breaker.state != "closed"]


class Places:
    """Bounds how many entities a language model reads for at the same time, 1 or more.

    Not thread-safe: it lives in one event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[object] = set()
        self._waiting: dict[object, Callable[[], None]] = {}

    def claim(self, who: object, notify: Callable[[], None]) -> bool:
        """Take a place, or wait for one: then return False and call ``notify`` when one is free.

        A newcomer lets those who wait go first.
        """
        if len(self._taken) >= self._most or (self._waiting and who not in self._waiting):
            self._waiting.setdefault(who, notify)
            return False
        self._waiting.pop(who, None)
        self._taken.add(who)
        return True

    def waits(self, who: object) -> bool:
        return who in self._waiting

    def release(self, who: object) -> None:
        """Give a place back, or stop waiting for one."""
        self._waiting.pop(who, None)
        if who in self._taken:
            self._taken.remove(who)
            for notify in list(self._waiting.values()):
                notify()


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
