"""How hard stores and models are pressed: backoff, breakers, places for readings.

The wait after the n-th failure is uniform in ``[0, min(longest, first * 2 ** (n - 1))]``: tenacity's
``wait_random_exponential``, which is the "full jitter" of Brooker, "Exponential backoff and jitter", 2015.

A breaker is closed (everybody may ask), open (nobody, until a moment that moves further away with each failed try, or
that the provider itself named) or half-open (one may try; if that goes well, it is closed).
Source: Nygard, "Release It!", 2007, chapter 5.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tenacity import RetryCallState, Retrying, wait_random_exponential

from pps.core.errors import (
    ConfigError,
    ModelOutputInvalid,
    ModelUnavailable,
    NotSet,
    PPSError,
    StoreConflict,
    StoreUnavailable,
)

Fault: TypeAlias = Literal["outage", "passing", "lasting"]
"""Whose fault a failure is: a store's or a model's; the job's, and it may go better; the job's, for good."""
Provider: TypeAlias = Literal["store", "embedder", "extractor"]
_LONGEST_ASKED_S = 3_600.0
"""A provider that asks to be left alone for longer is asked again after this."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon. Times are seconds; the bounds are those of the settings ``jobs``."""

    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    attempts: int = 5
    give_up_s: float = 86_400.0

    def wait_s(self, failures: int, asked_s: float | None = None) -> float:
        """Return how long to wait after the n-th failure in a row, 1 upwards: random, 0 to ``longest_wait_s``.

        It is at least ``asked_s``, which the provider asks for, up to an hour.
        """
        strategy = wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s)
        state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
        state.attempt_number = max(1, failures)
        return max(strategy(state), min(asked_s or 0.0, _LONGEST_ASKED_S))


def fault_of(error: PPSError) -> Fault:
    """Tell whose fault an error is.

    A wrong key or setting is an outage: it is never one turn's fault, and parking every turn would not mend it.
    A reader that no setting names is the job's: the next start tries what is parked again, and only a start can set it.
    What an embedder answers does not depend on the turn, so its nonsense is an outage as well.
    """
    if isinstance(error, NotSet):
        return "lasting"
    if isinstance(error, (StoreUnavailable, StoreConflict, ModelUnavailable, ConfigError)):
        return "outage"
    if isinstance(error, ModelOutputInvalid):
        return "outage" if error.provider == "embedder" else "passing"
    return "passing" if error.retryable else "lasting"


def provider_of(error: PPSError, model: Provider) -> Provider:
    """Tell who failed; ``model`` is meant where an error of a model does not say which one."""
    if isinstance(error, (StoreUnavailable, StoreConflict)):
        return "store"
    named = getattr(error, "provider", "")
    return named if named in ("embedder", "extractor") else model


class Breaker:
    """One provider's breaker. Not for several threads: it lives in one event loop.

    Attributes:
        why: The error that opened it; empty while it is closed.
        shared: Other entities depend on the provider too.
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
        """Seconds until somebody may try; 0 when it is closed or half-open."""
        return max(0.0, self._until - self._now()) if self._opened else 0.0

    def claim(self, who: object) -> bool:
        """Tell whether ``who`` may ask now; in the half-open state that makes it the one who tries."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._trying not in (None, who):
            return False
        self._trying = who
        return True

    def release(self, who: object) -> None:
        """Let another one try, if ``who`` was to and learned nothing."""
        if self._trying is who:
            self._trying = None

    def succeeded(self) -> None:
        """Note an answer: it is closed, and who waited for that is told."""
        was_open = bool(self._opened)
        self._failures = 0
        self._opened = 0
        self._trying = None
        self.why = ""
        if was_open:
            for listener in list(self._listeners):
                listener()

    def failed(self, why: str, retry_after_s: float | None = None) -> None:
        """Note a failure; it opens at the last of a row, when one who tried fails, or when the provider asks for it."""
        self._failures += 1
        self._trying = None
        if not (self._opened or retry_after_s or self._failures >= self._limit):
            return
        self._opened += 1
        self.why = why
        self._until = self._now() + self._policy.wait_s(self._opened, retry_after_s)

    def listen(self, told: Callable[[], None]) -> None:
        """Call ``told`` whenever it closes."""
        self._listeners.add(told)

    def forget(self, told: Callable[[], None]) -> None:
        self._listeners.discard(told)


@dataclass(frozen=True, slots=True)
class Breakers:
    """The breakers that one entity's work depends on; those of models and of a server are shared by all entities."""

    by_provider: dict[Provider, Breaker] = field(default_factory=dict[Provider, Breaker])

    @classmethod
    def make(cls, policy: RetryPolicy, failures: int) -> Breakers:
        names: tuple[Provider, ...] = ("store", "embedder", "extractor")
        return cls({name: Breaker(name, policy, failures) for name in names})

    def with_own(self, names: Iterable[Provider], policy: RetryPolicy, failures: int) -> Breakers:
        """Return the same with other breakers for what is one entity's own, as an embedded store is."""
        own: dict[Provider, Breaker] = {
            name: Breaker(name, policy, failures, shared=False) for name in names
        }
        return Breakers({**self.by_provider, **own})

    def claim(self, needed: Sequence[Provider], who: object) -> Breaker | None:
        """Claim each of them; return the first that refuses (then none is held), or None."""
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
        return [one for one in self.by_provider.values() if one.state != "closed"]


class Places:
    """How many entities a language model reads for at the same time, 1 or more; who finds no place is told of one.

    Not for several threads: it lives in one event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[object] = set()
        self._waiting: dict[object, Callable[[], None]] = {}

    def claim(self, who: object, told: Callable[[], None]) -> bool:
        """Take a place; without one, ``told`` is called when one is free. Newcomers let those who wait go first."""
        if len(self._taken) >= self._most or (self._waiting and who not in self._waiting):
            self._waiting.setdefault(who, told)
            return False
        self._waiting.pop(who, None)
        self._taken.add(who)
        return True

    def waits(self, who: object) -> bool:
        return who in self._waiting

    def release(self, who: object) -> None:
        """Give a place back, or the wish for one."""
        self._waiting.pop(who, None)
        if who in self._taken:
            self._taken.remove(who)
            for told in list(self._waiting.values()):
                told()
