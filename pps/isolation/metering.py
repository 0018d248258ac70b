"""What a language model took, as its provider says in each answer; nothing is estimated here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

_IN = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_MORE_IN = ("cache_creation_input_tokens", "cache_read_input_tokens")
_MORE_OUT = ("thoughtsTokenCount",)


@dataclass(frozen=True, slots=True)
class TokensUsed:
    """Tokens of one model.

    Attributes:
        requests: Answers that came, usable or not: the provider counts them all.
        unmetered: Answers among them that did not say what they took.
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
    """Reads the usage out of every successful answer of a provider's HTTP client.

    Attributes:
        used: Tokens by model, as the answers name it, since they were last taken.
    """

    used: dict[str, TokensUsed] = field(default_factory=dict[str, TokensUsed])

    def attach(self, http: httpx.AsyncClient) -> None:
        """Look at each answer of this client."""
        hooks = http.event_hooks
        http.event_hooks = {**hooks, "response": [*hooks.get("response", []), self.look]}

    async def look(self, response: httpx.Response) -> None:
        """Note what an answer says that it took; an answer that is none is passed over."""
        if not response.is_success:
            return
        try:
            answer: object = json.loads(await response.aread())
        except ValueError:
            answer = None
        model, used = read_usage(cast("dict[str, Any]", answer) if isinstance(answer, dict) else {})
        self.used[model] = self.used.get(model, TokensUsed()) + used

    def take(self) -> dict[str, TokensUsed]:
        """Return what was used by model since this was last asked, and begin at nothing again."""
        taken, self.used = self.used, {}
        return taken


def read_usage(answer: Mapping[str, Any]) -> tuple[str, TokensUsed]:
    """Return the model's name (empty when it is not said) and the tokens of one answer, whatever the provider."""
    model = str(answer.get("model") or answer.get("modelVersion") or "")
    usage: object = answer.get("usage") or answer.get("usageMetadata")
    if not isinstance(usage, dict):
        return model, TokensUsed(1, 1)
    counts = cast("dict[str, object]", usage)
    tokens_in, tokens_out = _sum(counts, _IN, _MORE_IN), _sum(counts, _OUT, _MORE_OUT)
    return model, TokensUsed(1, int(tokens_in + tokens_out == 0), tokens_in, tokens_out)


def _sum(counts: Mapping[str, object], either: tuple[str, ...], more: tuple[str, ...]) -> int:
    first = next((number for name in either if (number := _number(counts.get(name)))), 0)
    return first + sum(_number(counts.get(name)) for name in more)


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
