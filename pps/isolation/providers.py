"""Graphiti's clients for the six kinds of provider, each on an SDK client with our address, key and time-out."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import httpx
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_client import OpenAIClient
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from openai import AsyncOpenAI

from pps.core.errors import ConfigError
from pps.isolation.metering import TokenMeter
from pps.models.protocols import OLLAMA_URL, ExtractorModel, Provider

_RETRIES = 1
_NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Connection:
    """A client of Graphiti's, how to close the connections that it keeps, and what their answers say they took."""

    client: LLMClient
    close: Callable[[], Awaitable[None]]
    http: httpx.AsyncClient
    meter: TokenMeter = field(default_factory=TokenMeter)


def connect(extractor: ExtractorModel) -> Connection:
    """Return Graphiti's client for an extractor's provider.

    Raises:
        ConfigError: The provider's package is not installed.
    """
    connection = _MAKERS[extractor.provider](extractor)
    _without_waits(connection.client)
    connection.meter.attach(connection.http)
    return connection


def _without_waits(client: LLMClient) -> None:
    """Leave out the base class's retries, which wait for 5 to 120 s: the worker's queue tries again, and says so."""

    async def once(*args: Any, model: str | None = None, **kwargs: Any) -> Any:
        generate = cast(Any, client)._generate_response
        answer = await generate(*args, **kwargs, **({} if model is None else {"model": model}))
        return cast(Any, answer)[0] if isinstance(answer, tuple) else answer

    setattr(client, "_generate_response_with_retry", once)  # noqa: B010 - a private name of the library


def _config(extractor: ExtractorModel) -> LLMConfig:
    return LLMConfig(
        api_key=extractor.api_key or _NO_KEY,
        model=extractor.model or None,
        small_model=extractor.small_model or extractor.model or None,
        base_url=extractor.base_url or None,
        temperature=0,
    )


def _openai_sdk(extractor: ExtractorModel, base_url: str | None) -> AsyncOpenAI:
    return AsyncOpenAI(
        api_key=extractor.api_key or _NO_KEY, base_url=base_url, timeout=extractor.timeout_s, max_retries=_RETRIES
    )


def _openai(extractor: ExtractorModel) -> Connection:
    sdk = _openai_sdk(extractor, extractor.base_url or None)
    return Connection(OpenAIClient(_config(extractor), client=sdk), sdk.close, _http(sdk))


def _compatible(extractor: ExtractorModel) -> Connection:
    sdk = _openai_sdk(extractor, extractor.base_url)
    return Connection(OpenAIGenericClient(_config(extractor), client=sdk), sdk.close, _http(sdk))


def _ollama(extractor: ExtractorModel) -> Connection:
    return _compatible(replace(extractor, base_url=extractor.base_url or OLLAMA_URL))


def _anthropic(extractor: ExtractorModel) -> Connection:
    sdk = _package("anthropic", extractor.provider).AsyncAnthropic(
        api_key=extractor.api_key or _NO_KEY,
        base_url=extractor.base_url or None,
        timeout=extractor.timeout_s,
        max_retries=_RETRIES,
    )
    made = _package("graphiti_core.llm_client.anthropic_client", extractor.provider)
    return Connection(made.AnthropicClient(_config(extractor), client=_Anthropic(sdk)), sdk.close, _http(sdk))


class _Anthropic:
    """Anthropic's client as Graphiti's knows it: version 2 takes no temperature, and Graphiti's gives one."""

    def __init__(self, sdk: Any) -> None:
        self.messages = self
        self._create: Callable[..., Awaitable[Any]] = sdk.messages.create
        self._known = inspect.signature(self._create).parameters

    async def create(self, **request: Any) -> Any:
        """Ask for a message, leaving out what this version of the library does not take."""
        return await self._create(**{name: value for name, value in request.items() if name in self._known})


def _gemini(extractor: ExtractorModel) -> Connection:
    # The library would take aiohttp or httpx2, whichever is there; its errors are mapped where it takes httpx.
    http = httpx.AsyncClient(timeout=extractor.timeout_s)
    options = _package("google.genai.types", extractor.provider).HttpOptions(
        base_url=extractor.base_url or None, timeout=round(extractor.timeout_s * 1000), httpx_async_client=http
    )
    sdk = _package("google.genai", extractor.provider).Client(
        api_key=extractor.api_key or _NO_KEY, http_options=options
    )
    made = _package("graphiti_core.llm_client.gemini_client", extractor.provider)
    return Connection(made.GeminiClient(_config(extractor), client=sdk), http.aclose, http)


def _groq(extractor: ExtractorModel) -> Connection:
    sdk = _package("groq", extractor.provider).AsyncGroq(
        api_key=extractor.api_key or _NO_KEY,
        base_url=extractor.base_url or None,
        timeout=extractor.timeout_s,
        max_retries=_RETRIES,
    )
    client = _package("graphiti_core.llm_client.groq_client", extractor.provider).GroqClient(_config(extractor))
    client.client = sdk  # Graphiti's client takes none, so ours replaces the one that it made
    return Connection(client, sdk.close, _http(sdk))


_MAKERS: Mapping[Provider, Callable[[ExtractorModel], Connection]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "groq": _groq,
    "ollama": _ollama,
    "compatible": _compatible,
}


def _http(sdk: Any) -> httpx.AsyncClient:
    """Return the HTTP client inside an SDK's; these three SDKs come from one generator and keep it there."""
    return sdk._client


def _package(name: str, provider: Provider) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(
            f"extractor.provider: '{provider}' needs a package that is not installed; install pps[providers]"
        ) from None
