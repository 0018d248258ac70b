"""A model of Anthropic, over its own protocol and library (the extra ``providers``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from importlib import import_module
from typing import Any, cast

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
from pps.models.chat_sdk import ended_midway, errors_as_ours, silence_of

_VENDOR = "Anthropic"


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
            "messages": _messages(messages),
            "stream": True,
        }
        if tools and server.calls_tools:
            request["tools"] = [_tool(tool) for tool in tools]
        elif called := {call.name for message in messages for call in message.calls}:
            # The protocol wants tools to be defined where a message has a call of one.
            names = sorted(called)
            request["tools"] = [_tool(ChatTool(name, "", {"type": "object"})) for name in names]
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
                    async for piece in _pieces(answer, server.base_url or _VENDOR):
                        yield piece


async def _pieces(answer: Any, where: str) -> AsyncGenerator[Piece]:
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


def _tool(tool: ChatTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
    }


def _messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
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
            rows.append({"role": message.role, "content": _content(message)})
        is_result = message.role == "tool"
    return rows


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
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
