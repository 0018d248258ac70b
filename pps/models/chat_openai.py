"""A model behind OpenAI's chat protocol: Ollama, LM Studio, vLLM, llama.cpp, or a hosted one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from importlib import import_module
from typing import Any

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

_NO_KEY = "none"
"""What servers that need no key are sent, as the library wants one."""


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
                    async for piece in _pieces(answer, where):
                        yield piece

    def _request(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        bound = "max_tokens" if self._server.base_url else "max_completion_tokens"
        return {
            "model": self._server.model,
            "messages": [_message(message) for message in messages],
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
                    **request, tools=[_tool(tool) for tool in tools]
                )
            except openai.BadRequestError as error:
                if "tool" not in str(error).lower():
                    raise
                self._takes_tools = False
        return await client.chat.completions.create(**request)


async def _pieces(answer: Any, where: str) -> AsyncGenerator[Piece]:
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


def _message(message: ChatMessage) -> dict[str, Any]:
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


def _tool(tool: ChatTool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}
