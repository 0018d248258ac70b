"""The one error tree of PPS.

Outside libraries' errors are mapped to these where that library is called; surfaces translate
them once. A message says what happened and what to do next, in one line, and never quotes memory.
"""

from __future__ import annotations

from datetime import datetime


class PPSError(Exception):
    """Base of every error that PPS raises on purpose.

    Attributes:
        code: A stable, machine-readable word, such as ``not_found``.
        retryable: True when the same call may succeed later without any change.
    """

    code: str = "error"
    retryable: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(PPSError):
    """A setting is unknown, missing or out of bounds."""

    code = "config"


class NotSet(ConfigError):
    """What is asked for needs something that no setting names; trying again changes nothing before a new start."""


class InvalidRequest(PPSError):
    """An argument breaks a stated bound; nothing was changed."""

    code = "invalid_request"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class UnknownEntity(PPSError):
    """No entity of that name is registered here."""

    code = "unknown_entity"


class NotFound(PPSError):
    """Nothing of that id belongs to this entity; a foreign id reads exactly the same."""

    code = "not_found"

    def __init__(self, what: str = "id") -> None:
        super().__init__(f"{what} not found")


class IsolationError(PPSError):
    """A statement or a row reached across the boundary of an entity; nothing was returned."""

    code = "isolation"


class StoreError(PPSError):
    """A store refused or failed."""

    code = "store"


class StoreUnavailable(StoreError):
    """A store cannot be reached; safe to retry."""

    code = "store_unavailable"
    retryable = True


class StoreConflict(StoreError):
    """Somebody else holds the store, or changed it first."""

    code = "store_conflict"
    retryable = True


class Changed(StoreConflict):
    """What was to be changed is not as the caller knew it: the same call again is refused again; read it anew."""

    retryable = False


class Overloaded(PPSError):
    """More waits to be taken in than a bound allows; nothing was written, and it is safe to try again.

    Attributes:
        retry_after_s: Seconds after which another try makes sense.
    """

    code = "overloaded"
    retryable = True
    retry_after_s: float = 5.0

    def __init__(self, message: str, retry_after_s: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelError(PPSError):
    """A model failed.

    Attributes:
        provider: Which one: ``embedder``, ``extractor``, or empty when the caller knows.
        retry_after_s: Seconds for which the provider asked to be left alone; None when it did not say.
    """

    code = "model"
    provider: str = ""
    retry_after_s: float | None = None

    def __init__(
        self, message: str, *, provider: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.retry_after_s = retry_after_s


class BudgetSpent(PPSError):
    """Today's budget for language models is spent; nothing was asked, and it goes on by itself.

    Attributes:
        until: When there is a new budget (aware UTC).
    """

    code = "budget_spent"
    retryable = True

    def __init__(self, until: datetime) -> None:
        super().__init__(f"today's token budget is spent; reading goes on at {until.isoformat()}")
        self.until = until


class ModelUnavailable(ModelError):
    """A model cannot be loaded or reached; safe to retry once it can."""

    code = "model_unavailable"
    retryable = True


class ModelOutputInvalid(ModelError):
    """A model answered with something that is not what was asked for."""

    code = "model_output_invalid"
