"""What workers share: a circuit breaker for each store and model, and places for readings."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pps.core.errors import PPSError
from pps.ingest.retry import Provider, RetryPolicy


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
        """How it stands now."""
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
        was_open, self._failures, self._opened, self._trying, self.why = bool(self._opened), 0, 0, None, ""
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
        """Call it no more."""
        self._listeners.discard(told)


@dataclass(frozen=True, slots=True)
class Breakers:
    """The breakers that one entity's work depends on; those of models and of a server are shared by all entities."""

    by_provider: dict[Provider, Breaker] = field(default_factory=dict[Provider, Breaker])

    @classmethod
    def make(cls, policy: RetryPolicy, failures: int) -> Breakers:
        """Return a breaker for each provider."""
        names: tuple[Provider, ...] = ("store", "embedder", "extractor")
        return cls({name: Breaker(name, policy, failures) for name in names})

    def with_own(self, names: Iterable[Provider], policy: RetryPolicy, failures: int) -> Breakers:
        """Return the same with other breakers for what is one entity's own, as an embedded store is."""
        own: dict[Provider, Breaker] = {name: Breaker(name, policy, failures, shared=False) for name in names}
        return Breakers({**self.by_provider, **own})

    def claim(self, needed: Sequence[Provider], who: object) -> Breaker | None:
        """Claim each of them; return the first that refuses (then none is held), or None."""
        for name in needed:
            if not self.by_provider[name].claim(who):
                self.release(needed, who)
                return self.by_provider[name]
        return None

    def release(self, needed: Iterable[Provider], who: object) -> None:
        """Give back what ``who`` claimed and learned nothing about."""
        for name in needed:
            self.by_provider[name].release(who)

    def succeeded(self, needed: Iterable[Provider]) -> None:
        """Note that all of them answered."""
        for name in needed:
            self.by_provider[name].succeeded()

    def failed(self, provider: Provider, error: PPSError) -> None:
        """Note that one of them failed."""
        self.by_provider[provider].failed(error.message, getattr(error, "retry_after_s", None))

    def open(self) -> list[Breaker]:
        """Return those that are not closed."""
        return [one for one in self.by_provider.values() if one.state != "closed"]


class Places:
    """A bounded number of places, 1 or more. Not for several threads: it lives in one event loop."""

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
        """Tell whether ``who`` found no place and still wants one."""
        return who in self._waiting

    def release(self, who: object) -> None:
        """Give a place back, or the wish for one."""
        self._waiting.pop(who, None)
        if who in self._taken:
            self._taken.remove(who)
            for told in list(self._waiting.values()):
                told()
