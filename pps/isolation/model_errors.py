"""Maps what providers' libraries and Graphiti raise to the errors of PPS. Messages never quote an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import cast

import httpx
from graphiti_core.llm_client.errors import EmptyResponseError, RateLimitError, RefusalError
from pydantic import ValidationError

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable, PPSError

_REFUSED_KEY = frozenset((401, 403))
_LATER = frozenset((408, 409, 425, 429))
_NETWORK = (TimeoutError, ConnectionError, httpx.TransportError)
_BAD_ANSWER = (json.JSONDecodeError, ValidationError, EmptyResponseError, RefusalError, ValueError, KeyError, TypeError)


def model_error(error: BaseException) -> PPSError:
    """Return the error of ours that says the same; one of ours is returned as it is."""
    for cause in _causes(error):
        mapped = _mapped(cause)
        if mapped is not None:
            return mapped
    return ModelOutputInvalid(f"the language model's answer could not be used ({type(error).__name__})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what caused it: some clients wrap everything in a bare Exception."""
    present: BaseException | None = error
    while present is not None:
        yield present
        present = present.__cause__


def _mapped(error: BaseException) -> PPSError | None:
    name = type(error).__name__
    if isinstance(error, PPSError):
        return error
    if isinstance(error, RateLimitError):
        return ModelUnavailable(
            "the language model's provider limits the rate of requests",
            provider="extractor",
            retry_after_s=_retry_after_s(error),
        )
    if isinstance(error, _NETWORK) or name in ("APIConnectionError", "APITimeoutError"):
        return ModelUnavailable(f"the language model cannot be reached ({name})", provider="extractor")
    status = _status(error)
    if status is not None:
        return _of_status(status, _retry_after_s(error))
    if isinstance(error, _BAD_ANSWER):
        return ModelOutputInvalid(f"the language model's answer could not be used ({name})")
    return None


def _status(error: BaseException) -> int | None:
    """Return the HTTP status: ``status_code`` in most libraries' errors, ``code`` in Google's."""
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _retry_after_s(error: BaseException) -> float | None:
    """Return how long the answer asks to be left alone, in seconds; a date there is not read.

    Graphiti's error of a limited rate has no answer, what caused it has.
    """
    for cause in _causes(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            return _seconds(str(cast("Mapping[str, object]", headers).get("retry-after", "")))
    return None


def _seconds(text: str) -> float | None:
    try:
        asked = float(text)
    except ValueError:
        return None
    return asked if math.isfinite(asked) and asked > 0 else None


def _of_status(status: int, retry_after_s: float | None) -> PPSError:
    if status >= 500 or status in _LATER:
        return ModelUnavailable(
            f"the language model's provider answered with HTTP {status}",
            provider="extractor",
            retry_after_s=retry_after_s,
        )
    if status in _REFUSED_KEY:
        return ConfigError(f"extractor.api_key: the language model's provider refused it (HTTP {status})")
    if status == 404:
        return ConfigError(
            "extractor.base_url, extractor.model: the language model's provider knows no such thing (HTTP 404)"
        )
    return ModelError(f"the language model's provider refused the request (HTTP {status})", provider="extractor")
