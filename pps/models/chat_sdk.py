"""Shared by the models of vendors' libraries: the longest silence, and errors as PPS's errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable
from pps.models.chat import ChatServer

_CONNECT_S = 10.0
_PROVIDER = "talk"
_PASSING = (408, 409, 429)
"""Refusals that a later request may not get, beside all of 500 and above."""


def silence_of(sdk: Any, server: ChatServer) -> Any:
    """Return the timeout that a library's client is given, of the class that this library takes."""
    return sdk.Timeout(server.timeout_s, connect=min(_CONNECT_S, server.timeout_s))


def ended_midway(where: str) -> ModelUnavailable:
    """Return the error of a stream that stopped before the answer's end."""
    return ModelUnavailable(f"{where} ended the answer midway", provider=_PROVIDER)


@contextmanager
def errors_as_ours(
    sdk: Any, base_error: type[Exception], server: ChatServer, where: str
) -> Generator[None]:
    """Raise a library's errors as ours; none quotes a key or what was asked.

    Args:
        sdk: The library: ``openai`` or ``anthropic``, whose errors have the same names.
        base_error: What all its errors are.
        server: The one that is asked.
        where: What messages call the server.

    Raises:
        ConfigError: The server refuses the key, or knows no such model.
        ModelUnavailable: It cannot be reached, is busy or silent, or ended the answer midway.
        ModelOutputInvalid: It streams something else than its protocol.
        ModelError: It refuses the request.
    """
    http = _http_library(sdk)
    silent = ModelUnavailable(
        f"{where} said nothing for {server.timeout_s:g} s (talk.timeout_s)", provider=_PROVIDER
    )
    invalid = ModelOutputInvalid(
        f"{where} streams something else than its protocol", provider=_PROVIDER
    )
    try:
        yield
    except (sdk.AuthenticationError, sdk.PermissionDeniedError):
        raise ConfigError(f"talk.key_env, talk.key_file: {where} refuses the key") from None
    except sdk.NotFoundError:
        raise ConfigError(
            f"talk.base_url, talk.model: {where} knows no model {server.model!r} (HTTP 404)"
        ) from None
    except (sdk.APITimeoutError, http.TimeoutException):
        raise silent from None
    except sdk.APIConnectionError:
        raise ModelUnavailable(
            f"{where} cannot be reached; is the model's server running?", provider=_PROVIDER
        ) from None
    except sdk.APIStatusError as error:
        if error.status_code < 400:  # it came within the stream
            raise ended_midway(where) from None
        is_passing = error.status_code in _PASSING or error.status_code >= 500
        kind = ModelUnavailable if is_passing else ModelError
        raise kind(f"{where} answers HTTP {error.status_code}", provider=_PROVIDER) from None
    except sdk.APIResponseValidationError:
        raise invalid from None
    except (sdk.APIError, http.HTTPError):
        raise ended_midway(where) from None
    except (base_error, AttributeError, KeyError, TypeError, ValueError):
        raise invalid from None


def _http_library(sdk: Any) -> Any:
    """Return the HTTP library of a vendor's library: httpx or httpx2. Streams raise its errors."""
    modules = (base.__module__.partition(".")[0] for base in sdk.DefaultAsyncHttpxClient.__mro__)
    return import_module(next(name for name in modules if name.startswith("httpx")))
