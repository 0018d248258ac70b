"""When a failed job is tried again, and when it is not: exponential backoff with full jitter.

The wait after the n-th failure is uniform in ``[0, min(longest, first * 2 ** (n - 1))]``: tenacity's
``wait_random_exponential``, which is the "full jitter" of Brooker, "Exponential backoff and jitter", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
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
