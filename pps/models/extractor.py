"""Which language model extracts nodes and facts; a value, from which isolation/ builds the client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pps.core.errors import ConfigError

Provider: TypeAlias = Literal["openai", "anthropic", "gemini", "groq", "ollama", "compatible"]

OLLAMA_URL = "http://127.0.0.1:11434/v1"
_PACKAGES = {"anthropic": "anthropic", "gemini": "google.genai", "groq": "groq"}


@dataclass(frozen=True, slots=True)
class ExtractorModel:
    """A language model and how to reach it.

    Attributes:
        model, small_model: Names at the provider; empty is the default of Graphiti's client.
        base_url: Empty is the provider's own address.
        api_key: Empty where none is needed.
        timeout_s: Seconds for one request.
    """

    provider: Provider
    model: str = ""
    small_model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.provider == "compatible" and not self.base_url:
            raise ConfigError("extractor.base_url: provider 'compatible' needs the server's address")
        if self.provider in ("compatible", "ollama") and not self.model:
            raise ConfigError(f"extractor.model: provider '{self.provider}' needs a model's name")
        if self.provider not in ("compatible", "ollama") and not (self.api_key or self.base_url):
            raise ConfigError(f"extractor.api_key: provider '{self.provider}' needs one")


def package_of(provider: Provider) -> str | None:
    """Return the package of the extra ``providers`` that a provider needs; None when it needs none."""
    return _PACKAGES.get(provider)
