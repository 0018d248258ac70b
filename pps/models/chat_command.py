"""A command that talks: it reads the prompt on stdin and streams its answer to stdout.

It is run as ``program`` says. It needs no key of ours, and gets no tools.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import tempfile
import tomllib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from pps.config import shipped
from pps.core.errors import ModelUnavailable
from pps.core.text import estimate_tokens
from pps.models.chat import ChatMessage, ChatTool, Piece, TalkSettings, Used, Words
from pps.models.program import Preset, Program, named_program, sum_at, values_at

_MOST_OUT = 4 * 1024 * 1024
"""Bytes of an answer with all that is around it; a program that writes more is ended."""
_SPEAKERS = {"user": "", "assistant": "You: ", "system": "", "tool": ""}


@dataclass(frozen=True, slots=True)
class TalkerPreset(Preset):
    """How a known program is run to talk.

    The shipped ``config/talkers.toml`` says what each field means.
    """

    piece: str = ""


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A program that answers prompts."""

    name: str
    words: tuple[str, ...]
    preset: TalkerPreset
    timeout_s: float
    calls_tools: bool = field(default=False, init=False)

    async def stream(
        self, messages: Sequence[ChatMessage], tools: Sequence[ChatTool]
    ) -> AsyncGenerator[Piece]:
        """Yield an answer as it comes; see ``ChatModel.stream``."""
        del tools
        prompt = prompt_text(messages)
        reading = _ProgramOutput(self)
        with tempfile.TemporaryDirectory(
            prefix="pps-talker-", ignore_cleanup_errors=True
        ) as folder:
            try:
                async with asyncio.timeout(self.timeout_s):
                    async for data in self.program.output(prompt, Path(folder)):
                        for text in reading.take(data):
                            yield Words(text)
            except TimeoutError:
                raise ModelUnavailable(
                    f"talk.command: {self.name} was not done within {self.timeout_s:g} s "
                    "(talk.timeout_s)",
                    provider="talk",
                ) from None
        for text in reading.end():
            yield Words(text)
        if reading.tokens_in or reading.tokens_out:
            yield Used(reading.tokens_in, reading.tokens_out, metered=True)
        else:
            yield Used(
                estimate_tokens(prompt), estimate_tokens("".join(reading.said)), metered=False
            )

    @property
    def program(self) -> Program[TalkerPreset]:
        """The program, as it is run."""
        return Program("talk", self.name, self.words, self.preset, _MOST_OUT)


class _ProgramOutput:
    """Makes words of a program's bytes: the bytes as text, or the texts at a path of their JSON."""

    def __init__(self, command: ChatCommand) -> None:
        self._command = command
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self.said: list[str] = []
        self.tokens_in = 0
        self.tokens_out = 0

    def take(self, data: bytes) -> list[str]:
        """Return the words of the next bytes."""
        return self._noted(self._texts(data, is_last=False))

    def end(self) -> list[str]:
        """Return the words of what is left at the end."""
        return self._noted(self._texts(b"", is_last=True))

    def _noted(self, texts: list[str]) -> list[str]:
        self.said += texts
        return texts

    def _texts(self, data: bytes, *, is_last: bool) -> list[str]:
        preset = self._command.preset
        try:
            text = self._decoder.decode(data, is_last)
        except UnicodeDecodeError:
            raise self._command.program.invalid("wrote something that is no UTF-8") from None
        if not (preset.piece or preset.answer):
            return [text] if text else []
        self._rest += text
        if not preset.piece:
            return self._of_json(self._rest) if is_last else []
        *lines, self._rest = self._rest.split("\n")
        if is_last:
            lines.append(self._rest)
        return [text for line in lines if line.strip() for text in self._of_json(line)]

    def _of_json(self, text: str) -> list[str]:
        preset = self._command.preset
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            raise self._command.program.invalid(
                "wrote something else than its documented output"
            ) from None
        if preset.failed and any(values_at(value, preset.failed)):
            raise self._command.program.away("could not ask its model")
        self.tokens_in += sum_at(value, preset.tokens_in)
        self.tokens_out += sum_at(value, preset.tokens_out)
        texts = values_at(value, preset.piece or preset.answer)
        return [text for text in texts if isinstance(text, str)]


def make_chat_command(settings: TalkSettings) -> ChatCommand:
    """Return the command that the settings name.

    ConfigError when none is named, or it needs a model's name.
    """
    program = named_program(
        "talk",
        "server 'command'",
        settings.command or "",
        settings.model,
        talkers(),
        TalkerPreset,
        _MOST_OUT,
    )
    return ChatCommand(program.name, program.words, program.preset, settings.timeout_s)


@cache
def talkers() -> Mapping[str, TalkerPreset]:
    """Return the programs that are known to talk, by name."""
    table = tomllib.loads(shipped("config/talkers.toml").read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, TalkerPreset]).validate_python(table)


def prompt_text(messages: Sequence[ChatMessage]) -> str:
    """Return a prompt as one text, for a program that takes no list of messages."""
    parts = [f"{_SPEAKERS[message.role]}{message.text}" for message in messages]
    return "\n\n".join([*parts, "Write your next message, and nothing else."])
