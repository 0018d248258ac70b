"""The tools of an entity that talks: its own recall and remember, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pps.core.errors import PPSError
from pps.features.haven.room_messages import SOURCE
from pps.memory import Memory
from pps.models.chat import ChatTool, ToolCall
from pps.operations.calls import Caller, Calls

MOST_ROUNDS = 4
"""Most times that a model is asked for one answer; the last time it has no tools."""
MOST_CALLS = 8
"""Most calls of tools for one answer."""
_MOST_RESULT = 6_000
_WAIT_S = 5.0
_RECALL = ChatTool(
    "recall",
    "Search your memory. Use it when the message needs something that is not before you. "
    "Returns what you know.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for, in words."}},
        "required": ["query"],
    },
)
_REMEMBER = ChatTool(
    "remember",
    "Keep a note of your own for good. What is said here is kept anyway: "
    "use it for a conclusion or a decision.",
    {
        "type": "object",
        "properties": {"content": {"type": "string", "description": "One or two sentences."}},
        "required": ["content"],
    },
)


@dataclass
class RoomTools:
    """The tools of one answer.

    Attributes:
        written: Ids of the turns that the entity remembered.
    """

    memory: Memory
    calls: Calls
    room: str
    off_record: bool
    written: list[str] = field(default_factory=list[str])
    _called: int = 0

    def offered(self, round_number: int) -> Sequence[ChatTool]:
        """Return the tools of a round, the first of which is 0."""
        if round_number >= MOST_ROUNDS - 1 or self._called >= MOST_CALLS:
            return ()
        return (_RECALL,) if self.off_record else (_RECALL, _REMEMBER)

    async def call(self, call: ToolCall) -> str:
        """Return the result of a call, or the error as text, so that the model may try again."""
        self._called += 1
        if self._called > MOST_CALLS:
            return "error: no more calls for this answer"
        try:
            arguments: object = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return "error: the arguments are not JSON"
        if not isinstance(arguments, dict):
            return "error: the arguments must be an object"
        fields = cast("dict[str, object]", arguments)
        try:
            if call.name == "recall":
                return await self._recall(str(fields.get("query", "")))
            if call.name == "remember" and not self.off_record:
                return await self._remember(str(fields.get("content", "")))
        except PPSError as error:
            return f"error: {error.message}"
        return "error: there is no such tool"

    async def _recall(self, query: str) -> str:
        caller = Caller.of_entity(self.memory.entity)
        answer = await self.calls.answer(caller, "recall", {"query": query}, for_model=True)
        return answer.text[:_MOST_RESULT]

    async def _remember(self, content: str) -> str:
        receipt = await self.memory.remember(
            content,
            timeout_s=_WAIT_S,
            role="assistant",
            actor=self.memory.entity.name,
            session=self.room,
            source=SOURCE,
        )
        self.written.append(receipt.turn_id)
        return "kept"
