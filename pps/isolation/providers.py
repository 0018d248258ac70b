"""Graphiti's clients for the six kinds of provider, each on an SDK client with our address, key and time-out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from graphiti_core.llm_client.client import LLMClient
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_client import OpenAIClient
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from openai import AsyncOpenAI

from pps.core.errors import ConfigError
from pps.models.extractor import OLLAMA_URL, ExtractorModel, Provider

_RETRIES = 1
_NO_KEY = "none"


def make_provider(extractor: ExtractorModel) -> LLMClient:
    """Return Graphiti's client for an extractor's provider.

    Raises:
        ConfigError: The provider's package is not installed.
    """
    client = _MAKERS[extractor.provider](extractor)
    _without_waits(client)
    return client


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


def _openai(extractor: ExtractorModel) -> LLMClient:
    return OpenAIClient(_config(extractor), client=_openai_sdk(extractor, extractor.base_url or None))


def _compatible(extractor: ExtractorModel) -> LLMClient:
    return OpenAIGenericClient(_config(extractor), client=_openai_sdk(extractor, extractor.base_url))


def _ollama(extractor: ExtractorModel) -> LLMClient:
    return OpenAIGenericClient(_config(extractor), client=_openai_sdk(extractor, extractor.base_url or OLLAMA_URL))


def _anthropic(extractor: ExtractorModel) -> LLMClient:
    sdk = _package("anthropic", extractor.provider).AsyncAnthropic(
        api_key=extractor.api_key or _NO_KEY,
        base_url=extractor.base_url or None,
        timeout=extractor.timeout_s,
        max_retries=_RETRIES,
    )
    made = _package("graphiti_core.llm_client.anthropic_client", extractor.provider)
    return made.AnthropicClient(_config(extractor), client=sdk)


def _gemini(extractor: ExtractorModel) -> LLMClient:
    types = _package("google.genai.types", extractor.provider)
    options = types.HttpOptions(base_url=extractor.base_url or None, timeout=round(extractor.timeout_s * 1000))
    sdk = _package("google.genai", extractor.provider).Client(
        api_key=extractor.api_key or _NO_KEY, http_options=options
    )
    made = _package("graphiti_core.llm_client.gemini_client", extractor.provider)
    return made.GeminiClient(_config(extractor), client=sdk)


def _groq(extractor: ExtractorModel) -> LLMClient:
    made = _package("graphiti_core.llm_client.groq_client", extractor.provider)
    client = made.GroqClient(_config(extractor))
    # Groq's client of Graphiti takes no SDK client, so ours replaces the one that it made.
    client.client = _package("groq", extractor.provider).AsyncGroq(
        api_key=extractor.api_key or _NO_KEY,
        base_url=extractor.base_url or None,
        timeout=extractor.timeout_s,
        max_retries=_RETRIES,
    )
    return client


_MAKERS: Mapping[Provider, Callable[[ExtractorModel], LLMClient]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "groq": _groq,
    "ollama": _ollama,
    "compatible": _compatible,
}


def _package(name: str, provider: Provider) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(
            f"extractor.provider: '{provider}' needs a package that is not installed; install pps[providers]"
        ) from None
