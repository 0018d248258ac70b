"""Models behind the libraries of vendors: OpenAI's chat protocol, and Anthropic's own.

Many servers speak OpenAI's protocol: Ollama, LM Studio, vLLM, llama.cpp, hosted ones. Anthropic's
library is in the extra ``providers``. Errors of both libraries become errors of PPS.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

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
_PASSING = (408, 409, 429)
"""Refusals that a later request may not get, beside all of 500 and above."""
_NO_KEY = "none"
"""What servers that need no key are sent, as the library wants one."""
_VENDOR = "Anthropic"


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


class OpenAIChat:
    """A model of a server that speaks OpenAI's protocol."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._takes_tools = server.calls_tools

    @property
    def name(self) -> str:
        return self._server.model

    @property
    def calls_tools(self) -> bool:
        return self._takes_tools

    async def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatTool]
    ) -> AsyncGenerator[Piece]:
        """Yield an answer as it comes; see ``ChatModel.stream``."""
        openai: Any = await asyncio.to_thread(import_module, "openai")
        server = self._server
        where = server.base_url or "OpenAI"
        with errors_as_ours(openai, openai.OpenAIError, server, where):
            async with openai.AsyncOpenAI(
                api_key=server.key or _NO_KEY,
                base_url=server.base_url or "https://api.openai.com/v1",
                timeout=silence_of(openai, server),
                max_retries=1,
            ) as client:
                request = self._request(messages)
                answer = await self._begun(openai, client, request, tools)
                async with answer:
                    async for piece in _openai_pieces(answer, where):
                        yield piece

    def _request(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        bound = "max_tokens" if self._server.base_url else "max_completion_tokens"
        return {
            "model": self._server.model,
            "messages": [_openai_message(message) for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            bound: self._server.max_tokens,
        }

    async def _begun(
        self, openai: Any, client: Any, request: dict[str, Any], tools: Sequence[ChatTool]
    ) -> Any:
        """Ask; a server whose model takes no tools is asked again without them."""
        if tools and self._takes_tools:
            try:
                return await client.chat.completions.create(
                    **request, tools=[_openai_tool(tool) for tool in tools]
                )
            except openai.BadRequestError as error:
                if "tool" not in str(error).lower():
                    raise
                self._takes_tools = False
        return await client.chat.completions.create(**request)


async def _openai_pieces(answer: Any, where: str) -> AsyncGenerator[Piece]:
    """Yield what a stream of chunks says.

    A call of a tool comes in parts, which belong together by their index.
    """
    calls: dict[int, ToolCall] = {}
    reason = ""
    async for chunk in answer:
        for choice in (chunk.choices or ())[:1]:
            delta = choice.delta
            if delta is not None and delta.content:
                yield Words(str(delta.content))
            for part in (delta.tool_calls if delta is not None else None) or ():
                calls[part.index] = _joined(calls.get(part.index), part)
            reason = choice.finish_reason or reason
        if (usage := getattr(chunk, "usage", None)) is not None:
            yield Used(int(usage.prompt_tokens or 0), int(usage.completion_tokens or 0), True)
    for _, call in sorted(calls.items()):
        yield call
    if reason == "length":
        yield CutShort()
    elif not reason:
        raise ended_midway(where)


def _joined(call: ToolCall | None, part: Any) -> ToolCall:
    before = call or ToolCall("", "", "")
    function = part.function
    return ToolCall(
        before.id or str(part.id or f"call_{part.index}"),
        before.name or str((function and function.name) or ""),
        before.arguments + str((function and function.arguments) or ""),
    )


def _openai_message(message: ChatMessage) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        row["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    if message.role == "tool":
        row["tool_call_id"] = message.call_id
    return row


def _openai_tool(tool: ChatTool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


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
            "system": "\n\n".join(message.text for message in messages if message.role == "system"),
            "messages": _anthropic_messages(messages),
            "stream": True,
        }
        if tools and server.calls_tools:
            request["tools"] = [_anthropic_tool(tool) for tool in tools]
        elif called := {call.name for message in messages for call in message.calls}:
            # The protocol wants tools to be defined where a message has a call of one.
            names = sorted(called)
            request["tools"] = [
                _anthropic_tool(ChatTool(name, "", {"type": "object"})) for name in names
            ]
            request["tool_choice"] = {"type": "none"}
        named: dict[str, Any] = {"base_url": server.base_url} if server.base_url else {}
        with errors_as_ours(
            anthropic, anthropic.AnthropicError, server, server.base_url or _VENDOR
        ):
            async with anthropic.AsyncAnthropic(
                api_key=server.key, timeout=silence_of(anthropic, server), max_retries=1, **named
            ) as client:
                answer = await client.messages.create(**request)
                async with answer:
                    async for piece in _anthropic_pieces(answer, server.base_url or _VENDOR):
                        yield piece


async def _anthropic_pieces(answer: Any, where: str) -> AsyncGenerator[Piece]:
    calls: dict[int, ToolCall] = {}
    tokens_in = tokens_out = 0
    stop_reason = ""
    async for event in answer:
        if event.type == "message_start":
            tokens_in = int(event.message.usage.input_tokens or 0)
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            calls[event.index] = ToolCall(event.content_block.id, event.content_block.name, "")
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield Words(_checked_text(event.delta.text))
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            call = calls[event.index]
            calls[event.index] = ToolCall(
                call.id, call.name, call.arguments + event.delta.partial_json
            )
        elif event.type == "message_delta":
            tokens_out = int(event.usage.output_tokens or 0)
            stop_reason = event.delta.stop_reason or stop_reason
    for _, call in sorted(calls.items()):
        yield call
    yield Used(tokens_in, tokens_out, metered=True)
    if stop_reason == "max_tokens":
        yield CutShort()
    elif not stop_reason:
        raise ended_midway(where)


def _checked_text(text: object) -> str:
    """Return a text; the library hands on whatever the server sends in its place."""
    if not isinstance(text, str):
        raise TypeError("a delta's text is no text")
    return text


def _anthropic_tool(tool: ChatTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
    }


def _anthropic_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return a prompt without its system message.

    The results of one answer's tools are one message of the user.
    """
    rows: list[dict[str, Any]] = []
    is_result = False
    for message in messages:
        if message.role == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.call_id,
                "content": message.text,
            }
            if is_result:
                rows[-1]["content"] += [result]
            else:
                rows.append({"role": "user", "content": [result]})
        elif message.role != "system":
            rows.append({"role": message.role, "content": _anthropic_content(message)})
        is_result = message.role == "tool"
    return rows


def _anthropic_content(message: ChatMessage) -> str | list[dict[str, Any]]:
    if not message.calls:
        return message.text
    content: list[dict[str, Any]] = []
    if message.text:
        content.append({"type": "text", "text": message.text})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call)}
        for call in message.calls
    ]
    return content


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments.

    None of them for what the model wrote that is no object of JSON.
    """
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
