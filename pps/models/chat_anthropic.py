"""A model of Anthropic, over its own protocol and library (the extra ``providers``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import httpx

from pps.core.errors import ConfigError, ModelError, ModelOutputInvalid, ModelUnavailable
from pps.models.chat import (
    ChatMessage,
    ChatServer,
    ChatTool,
    CutShort,
    Piece,
    ToolCall,
    Used,
    Words,
)

_CONNECT_S = 10.0
_PROVIDER = "talk"


class AnthropicChat:
    """A model of Anthropic's messages."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server

    @property
    def name(self) -> str:
        return self._server.model

    @property
    def calls_tools(self) -> bool:
        return self._server.calls_tools

    async def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatTool]
    ) -> AsyncGenerator[Piece]:
        """Yield an answer as it comes; see ``ChatModel.stream``."""
        anthropic: Any = await asyncio.to_thread(import_module, "anthropic")
        server = self._server
        request: dict[str, Any] = {
            "model": server.model,
            "max_tokens": server.max_tokens,
            "system": "\n\n".join(one.text for one in messages if one.role == "system"),
            "messages": [_message(one) for one in messages if one.role != "system"],
            "stream": True,
        }
        if tools and server.calls_tools:
            request["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in tools
            ]
        named: dict[str, Any] = {"base_url": server.base_url} if server.base_url else {}
        timeout = httpx.Timeout(server.timeout_s, connect=min(_CONNECT_S, server.timeout_s))
        with _mapped(anthropic, server):
            async with anthropic.AsyncAnthropic(
                api_key=server.key, timeout=timeout, max_retries=1, **named
            ) as client:
                answer = await client.messages.create(**request)
                async with answer:
                    async for piece in _pieces(answer):
                        yield piece


async def _pieces(answer: Any) -> AsyncGenerator[Piece]:
    calls: dict[int, ToolCall] = {}
    tokens_in = tokens_out = 0
    is_cut = False
    async for event in answer:
        if event.type == "message_start":
            tokens_in = int(event.message.usage.input_tokens or 0)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = ToolCall(event.content_block.id, event.content_block.name, "")
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield Words(event.delta.text)
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            call = calls[event.index]
            calls[event.index] = ToolCall(
                call.id, call.name, call.arguments + event.delta.partial_json
            )
        elif event.type == "message_delta":
            tokens_out = int(event.usage.output_tokens or 0)
            is_cut = event.delta.stop_reason == "max_tokens"
    for _, call in sorted(calls.items()):
        yield call
    yield Used(tokens_in, tokens_out, metered=True)
    if is_cut:
        yield CutShort()


def _message(message: ChatMessage) -> dict[str, Any]:
    if message.role == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message.call_id,
            "content": message.text,
        }
        return {"role": "user", "content": [result]}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    content: list[dict[str, Any]] = []
    if message.text:
        content.append({"type": "text", "text": message.text})
    for call in message.calls:
        try:
            arguments: object = json.loads(call.arguments or "{}")
        except ValueError:
            arguments = {}
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return {"role": "assistant", "content": content}


@contextmanager
def _mapped(anthropic: Any, server: ChatServer) -> Generator[None]:
    """Raise the library's errors as ours; none quotes a key or what was asked."""
    try:
        yield
    except (anthropic.AuthenticationError, anthropic.PermissionDeniedError):
        raise ConfigError("talk.key_env, talk.key_file: Anthropic refuses the key") from None
    except anthropic.NotFoundError:
        raise ConfigError(
            f"talk.model: Anthropic knows no model {server.model!r} (HTTP 404)"
        ) from None
    except (anthropic.APITimeoutError, httpx.TimeoutException):
        raise ModelUnavailable(
            f"Anthropic said nothing for {server.timeout_s:g} s (talk.timeout_s)",
            provider=_PROVIDER,
        ) from None
    except (anthropic.APIConnectionError, httpx.HTTPError):
        raise ModelUnavailable("Anthropic cannot be reached", provider=_PROVIDER) from None
    except anthropic.APIStatusError as error:
        is_passing = error.status_code in (408, 409, 429) or error.status_code >= 500
        kind = ModelUnavailable if is_passing else ModelError
        raise kind(f"Anthropic answers HTTP {error.status_code}", provider=_PROVIDER) from None
    except (anthropic.AnthropicError, AttributeError, KeyError, TypeError, ValueError):
        raise ModelOutputInvalid(
            "Anthropic streams something else than its protocol", provider=_PROVIDER
        ) from None
