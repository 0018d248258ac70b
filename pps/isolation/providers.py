"""Graphiti's language-model clients for the six providers, with PPS's address, key and timeout.

Counts of tokens are those that the provider reports in each answer; nothing is estimated.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import httpx
from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig

from pps.core.errors import ConfigError
from pps.models.protocols import OLLAMA_URL, ExtractorModel, Provider

_RETRIES = 1
_NO_KEY = "none"
_IN = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_MORE_IN = ("cache_creation_input_tokens", "cache_read_input_tokens")
_MORE_OUT = ("thoughtsTokenCount",)


@dataclass(frozen=True, slots=True)
class TokensUsed:
    """Tokens of one model.

    Attributes:
        requests: Number of answers, usable or not: the provider counts them all.
        unmetered: Number of those that did not report their tokens.
    """

    requests: int = 0
    unmetered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: TokensUsed) -> TokensUsed:
        return TokensUsed(
            self.requests + other.requests,
            self.unmetered + other.unmetered,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )


@dataclass(slots=True)
class TokenMeter:
    """Adds up the usage that a provider reports in its successful HTTP responses.

    Attributes:
        used: Model, as the responses name it → its tokens since the last ``take``.
    """

    used: dict[str, TokensUsed] = field(default_factory=dict[str, TokensUsed])

    def attach(self, http: httpx.AsyncClient) -> None:
        hooks = http.event_hooks
        http.event_hooks = {**hooks, "response": [*hooks.get("response", []), self.look]}

    async def look(self, response: httpx.Response) -> None:
        """Add the usage of a response; without valid JSON it counts as unmetered."""
        if not response.is_success:
            return
        try:
            answer: object = json.loads(await response.aread())
        except ValueError:
            answer = None
        model, used = read_usage(cast("dict[str, Any]", answer) if isinstance(answer, dict) else {})
        self.used[model] = self.used.get(model, TokensUsed()) + used

    def take(self) -> dict[str, TokensUsed]:
        """Return model → tokens used since the last call, and reset the counts."""
        taken = self.used
        self.used = {}
        return taken


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """A client of Graphiti's, its HTTP client, the function that closes it, and its token meter."""

    client: LLMClient
    close: Callable[[], Awaitable[None]]
    http: httpx.AsyncClient
    meter: TokenMeter = field(default_factory=TokenMeter)


def connect(extractor: ExtractorModel) -> ProviderConnection:
    """Return Graphiti's client for an extractor's provider.

    Raises:
        ConfigError: The provider's package is not installed.
    """
    connection = _MAKERS[extractor.provider](extractor)
    _without_waits(connection.client)
    connection.meter.attach(connection.http)
    return connection


def _without_waits(client: LLMClient) -> None:
    """Disable the base class's retries, which wait for 5 to 120 s.

    PPS's job queue retries instead, and reports it.
    """

    async def once(*args: Any, model: str | None = None, **kwargs: Any) -> Any:
        generate = cast(Any, client)._generate_response  # noqa: SLF001 - the library's single try
        answer = await generate(*args, **kwargs, **({} if model is None else {"model": model}))
        return cast(Any, answer)[0] if isinstance(answer, tuple) else answer

    setattr(client, "_generate_response_with_retry", once)  # noqa: B010 - private in the library


def _config(extractor: ExtractorModel) -> LLMConfig:
    return LLMConfig(
        api_key=extractor.api_key or _NO_KEY,
        model=extractor.model or None,
        small_model=extractor.small_model or extractor.model or None,
        base_url=extractor.base_url or None,
        temperature=0,
    )


def _options(extractor: ExtractorModel) -> dict[str, Any]:
    """Return the constructor's options of three SDKs, which come from one generator."""
    return {
        "api_key": extractor.api_key or _NO_KEY,
        "base_url": extractor.base_url or None,
        "timeout": extractor.timeout_s,
        "max_retries": _RETRIES,
    }


def _openai(extractor: ExtractorModel) -> ProviderConnection:
    sdk = _package("openai", extractor.provider).AsyncOpenAI(**_options(extractor))
    made = _package("graphiti_core.llm_client.openai_client", extractor.provider)
    return ProviderConnection(
        made.OpenAIClient(_config(extractor), client=sdk), sdk.close, _http(sdk)
    )


def _compatible(extractor: ExtractorModel) -> ProviderConnection:
    sdk = _package("openai", extractor.provider).AsyncOpenAI(**_options(extractor))
    made = _package("graphiti_core.llm_client.openai_generic_client", extractor.provider)
    return ProviderConnection(
        made.OpenAIGenericClient(_config(extractor), client=sdk), sdk.close, _http(sdk)
    )


def _ollama(extractor: ExtractorModel) -> ProviderConnection:
    return _compatible(replace(extractor, base_url=extractor.base_url or OLLAMA_URL))


def _anthropic(extractor: ExtractorModel) -> ProviderConnection:
    sdk = _package("anthropic", extractor.provider).AsyncAnthropic(**_options(extractor))
    made = _package("graphiti_core.llm_client.anthropic_client", extractor.provider)
    return ProviderConnection(
        made.AnthropicClient(_config(extractor), client=_Anthropic(sdk)), sdk.close, _http(sdk)
    )


class _Anthropic:
    """Anthropic's client without the arguments that it does not know.

    Graphiti passes a temperature, which version 2 of the SDK does not accept.
    """

    def __init__(self, sdk: Any) -> None:
        self.messages = self
        self._create: Callable[..., Awaitable[Any]] = sdk.messages.create
        self._known = inspect.signature(self._create).parameters

    async def create(self, **request: Any) -> Any:
        return await self._create(
            **{name: value for name, value in request.items() if name in self._known}
        )


def _gemini(extractor: ExtractorModel) -> ProviderConnection:
    # The library would use aiohttp or httpx2 if installed; PPS maps the errors of httpx only.
    http = httpx.AsyncClient(timeout=extractor.timeout_s)
    options = _package("google.genai.types", extractor.provider).HttpOptions(
        base_url=extractor.base_url or None,
        timeout=round(extractor.timeout_s * 1000),
        httpx_async_client=http,
    )
    sdk = _package("google.genai", extractor.provider).Client(
        api_key=extractor.api_key or _NO_KEY, http_options=options
    )
    made = _package("graphiti_core.llm_client.gemini_client", extractor.provider)
    return ProviderConnection(made.GeminiClient(_config(extractor), client=sdk), http.aclose, http)


def _groq(extractor: ExtractorModel) -> ProviderConnection:
    sdk = _package("groq", extractor.provider).AsyncGroq(**_options(extractor))
    client = _package("graphiti_core.llm_client.groq_client", extractor.provider).GroqClient(
        _config(extractor)
    )
    client.client = sdk  # its constructor takes no SDK client: replace the one that it made
    return ProviderConnection(client, sdk.close, _http(sdk))


_MAKERS: Mapping[Provider, Callable[[ExtractorModel], ProviderConnection]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "groq": _groq,
    "ollama": _ollama,
    "compatible": _compatible,
}


def _http(sdk: Any) -> httpx.AsyncClient:
    """Return the HTTP client inside an SDK's client (three SDKs that come from one generator)."""
    return sdk._client  # noqa: SLF001 - no public way


def _package(name: str, provider: Provider) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(
            f"extractor.provider: '{provider}' needs a package that is not installed; "
            "install pps[providers]"
        ) from None


def read_usage(answer: Mapping[str, Any]) -> tuple[str, TokensUsed]:
    """Return the model's name (empty when unknown) and the tokens of any provider's answer."""
    model = str(answer.get("model") or answer.get("modelVersion") or "")
    usage: object = answer.get("usage") or answer.get("usageMetadata")
    if not isinstance(usage, dict):
        return model, TokensUsed(1, 1)
    counts = cast("dict[str, object]", usage)
    tokens_in = _sum(counts, _IN, _MORE_IN)
    tokens_out = _sum(counts, _OUT, _MORE_OUT)
    return model, TokensUsed(1, int(tokens_in + tokens_out == 0), tokens_in, tokens_out)


def _sum(counts: Mapping[str, object], either: tuple[str, ...], more: tuple[str, ...]) -> int:
    numbers = (_number(counts.get(name)) for name in either)
    first = next((number for number in numbers if number), 0)
    return first + sum(_number(counts.get(name)) for name in more)


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
