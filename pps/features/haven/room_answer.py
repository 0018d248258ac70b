"""One answer of one entity: call its model, stream the words, store the text so far."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from pps.core.errors import ConfigError, ModelOutputInvalid
from pps.core.text import estimate_tokens
from pps.entities.own import own_settings
from pps.entities.rooms import TalkRoom
from pps.features.haven.room_messages import RoomMessage, RoomMessages
from pps.features.haven.room_prompt import make_prompt
from pps.features.haven.room_tools import MOST_ROUNDS, RoomTools
from pps.memory import Memory
from pps.models.chat import (
    MOST_CHARACTERS,
    ChatMessage,
    ChatModel,
    CutShort,
    TalkSettings,
    ToolCall,
    Used,
    Words,
)
from pps.models.chat_factory import make_chat_model
from pps.operations.calls import Calls

_NOTE_S = 1.0
"""Interval at which the text so far is stored: a killed process loses at most so much of it."""
_LONGEST_S = 900.0
"""Longest time of one answer, with its calls of tools."""


class AnswerEnded(ModelOutputInvalid):
    """An answer was ended at a bound; its text so far is stored."""


def talk_settings(folder: Path) -> tuple[TalkSettings, int]:
    """Return the model settings of the entity of a folder, and its most tokens a day.

    Blocks; raises as ``own_settings``.
    """
    own = own_settings(folder).talk
    settings = TalkSettings(
        server=own.server,
        folder=folder,
        model=own.model,
        base_url=own.base_url,
        command=own.command,
        key_env=own.key_env,
        key_file=own.key_file,
        tools=own.tools,
        max_tokens=own.max_tokens,
        timeout_s=own.timeout_s,
    )
    return settings, own.tokens_per_day


def chat_model_of(folder: Path, name: str) -> ChatModel:
    """Return the model that answers for an entity. Blocks.

    Raises:
        NotSet: No model is set; the message names the setting.
        ConfigError: The model that is set cannot be used.
    """
    settings, _ = talk_settings(folder)
    return make_chat_model(settings, name)


class RoomAnswer:
    """An answer in progress.

    Attributes:
        message: The answer's message, with its text so far.
        audience: Names of the entities that have been in the room since the answer began.
        is_stopped: The person ended the answer, or its author is about to be archived or deleted.
        is_finished: Set when the answer is stored.
    """

    def __init__(
        self, message: RoomMessage, audience: Sequence[str], hear: Callable[[int, str], None]
    ) -> None:
        """Begin with an empty message; ``hear`` gets each new piece: its position and text."""
        self.message = message
        self.audience = tuple(audience)
        self.is_stopped = False
        self.is_finished = asyncio.Event()
        self._hear = hear
        self._row = ""
        self._giving: asyncio.Task[None] | None = None

    async def give(
        self, memory: Memory, calls: Calls, room: TalkRoom, history: Sequence[RoomMessage]
    ) -> None:
        """Call the model until it has answered; ``message`` has the text so far, however this ends.

        Args:
            memory: The memory of the entity that answers.
            calls: Carries out its recalls.
            room: The room as it is now.
            history: The messages that the entity heard in the room, the one to answer last.

        Raises:
            AnswerEnded: The answer was ended at a bound.
            PPSError: The model, its settings or the memory failed.
        """
        if self.is_stopped:
            return
        self._giving = asyncio.create_task(self._give(memory, calls, room, history))
        noting = asyncio.create_task(self._keep_noting(RoomMessages(memory)))
        try:
            await asyncio.shield(self._giving)
        except asyncio.CancelledError:
            self._giving.cancel()
            await asyncio.wait([self._giving])
            if not self.is_stopped:
                raise
        finally:
            noting.cancel()
            await asyncio.wait([noting])

    def stop(self) -> None:
        """End the answer; its text so far stays."""
        self.is_stopped = True
        if self._giving is not None:
            self._giving.cancel()

    def lose(self, name: str) -> None:
        """Remove an entity from the audience: it left the room meanwhile, even if it comes back."""
        self.audience = tuple(other for other in self.audience if other != name)

    async def drop_note(self, messages: RoomMessages) -> None:
        """Erase the stored text so far: the answer is a message now, or was dropped."""
        if self._row:
            row = self._row
            self._row = ""
            await messages.drop_answer(row)

    async def _give(
        self, memory: Memory, calls: Calls, room: TalkRoom, history: Sequence[RoomMessage]
    ) -> None:
        messages = RoomMessages(memory)
        folder = memory.parts.journal.path.parents[1]
        settings, tokens_per_day = await asyncio.to_thread(talk_settings, folder)
        model = await asyncio.to_thread(make_chat_model, settings, memory.entity.name)
        await _check_budget(messages, tokens_per_day)
        off_record = self.message.off_record
        prompt = await make_prompt(memory, room, history, off_record=off_record)
        self.message = replace(self.message, model=model.name, shown=prompt.shown)
        await self._note(messages)
        tools = RoomTools(memory, calls, room.id, off_record)
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self._rounds(model, list(prompt.messages), tools, messages, tokens_per_day)
        except TimeoutError:
            raise AnswerEnded(f"it took longer than {_LONGEST_S:.0f} s") from None
        if not self.message.text.strip():
            raise ModelOutputInvalid(f"{model.name} said nothing")

    async def _rounds(
        self,
        model: ChatModel,
        chat: list[ChatMessage],
        tools: RoomTools,
        messages: RoomMessages,
        tokens_per_day: int,
    ) -> None:
        for number in range(MOST_ROUNDS):
            offered = tools.offered(number) if model.calls_tools else ()
            start = len(self.message.text)
            calls: list[ToolCall] = []
            used: Used | None = None
            is_cut = False
            try:
                async with aclosing(model.stream(chat, offered)) as pieces:
                    async for piece in pieces:
                        match piece:
                            case Words():
                                self._add(piece.text, start)
                            case ToolCall():
                                calls.append(piece)
                            case Used():
                                used = piece
                            case CutShort():
                                is_cut = True
            finally:
                new_text = self.message.text[start:]
                await messages.add_spent(model.name, used or _estimated_use(chat, new_text))
            if is_cut:
                raise AnswerEnded("it reached its most tokens (talk.max_tokens)")
            if not calls:
                return
            chat.append(ChatMessage("assistant", new_text, tuple(calls)))
            for call in calls:
                result = await tools.call(call)
                chat.append(ChatMessage("tool", result, call_id=call.id))
            self.message = replace(self.message, written=tuple(tools.written))
            await _check_budget(messages, tokens_per_day)

    def _add(self, text: str, round_start: int) -> None:
        """Append a piece of text; ``round_start`` is where the text of this round begins."""
        before = self.message.text
        if before and len(before) == round_start:  # after a tool: another paragraph
            text = f"\n\n{text}"
        elif not before:
            text = text.lstrip()
        text = text[: MOST_CHARACTERS - len(before)]
        if text:
            self.message = replace(self.message, text=before + text)
            self._hear(len(before), text)
        if len(self.message.text) >= MOST_CHARACTERS:
            raise AnswerEnded(f"it grew longer than {MOST_CHARACTERS:,} characters")

    async def _keep_noting(self, messages: RoomMessages) -> None:
        noted = ""
        while True:
            await asyncio.sleep(_NOTE_S)
            if self._row and self.message.text != noted:
                noted = self.message.text
                await self._note(messages)

    async def _note(self, messages: RoomMessages) -> None:
        if not self.message.off_record:
            noting = asyncio.create_task(
                messages.note_answer(self.message, self.audience, self._row)
            )
            with contextlib.suppress(asyncio.CancelledError):
                self._row = await asyncio.shield(noting)
                return
            self._row = await noting  # stopped meanwhile: the row exists, and must be erased later
            raise asyncio.CancelledError


async def _check_budget(messages: RoomMessages, tokens_per_day: int) -> None:
    if tokens_per_day and await messages.spent_today() >= tokens_per_day:
        raise ConfigError(
            f"today's {tokens_per_day:,} tokens for talking are spent (until midnight UTC); "
            "talk.tokens_per_day in entity.toml raises it"
        )


def _estimated_use(chat: Sequence[ChatMessage], text: str) -> Used:
    tokens_in = sum(estimate_tokens(message.text) for message in chat)
    return Used(tokens_in, estimate_tokens(text), metered=False)
