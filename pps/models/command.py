"""A command as a language model: it reads a prompt on stdin and writes its answer on stdout.

See ``program``.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from pps.config import ExtractorSettings, shipped
from pps.core.text import estimate_tokens
from pps.models.program import Preset, Program, named_program, sum_at, values_at

_MOST_OUT = 1024 * 1024
"""Bytes of an answer; a program that writes more is ended."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """An answer, and what it took in tokens; ``metered`` is False where that is an estimate."""

    text: str
    tokens_in: int
    tokens_out: int
    metered: bool


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """A program that answers prompts: its name in reports of costs, and its command line."""

    name: str
    words: tuple[str, ...]
    preset: Preset
    timeout_s: float

    async def ask(self, prompt: str) -> CommandAnswer:
        """Return the program's answer.

        ModelUnavailable or ModelOutputInvalid say why there is none.
        """
        program = self._program
        with tempfile.TemporaryDirectory(
            prefix="pps-extractor-", ignore_cleanup_errors=True
        ) as folder:
            try:
                async with asyncio.timeout(self.timeout_s):
                    pieces = [piece async for piece in program.output(prompt, Path(folder))]
            except TimeoutError:
                raise program.away(
                    f"did not answer within {self.timeout_s:g} s (extractor.command_timeout_s)"
                ) from None
        try:
            text = b"".join(pieces).decode()
            data: object = json.loads(text) if self.preset.answer else None
        except (ValueError, RecursionError):
            raise program.invalid("wrote something else than its documented output") from None
        if self.preset.failed and any(values_at(data, self.preset.failed)):
            raise program.away("could not ask its model")
        if self.preset.answer:
            text = next(
                (part for part in values_at(data, self.preset.answer) if isinstance(part, str)), ""
            )
        tokens_in = sum_at(data, self.preset.tokens_in)
        tokens_out = sum_at(data, self.preset.tokens_out)
        if tokens_in or tokens_out:
            return CommandAnswer(text, tokens_in, tokens_out, metered=True)
        return CommandAnswer(text, estimate_tokens(prompt), estimate_tokens(text), metered=False)

    @property
    def _program(self) -> Program[Preset]:
        return Program("extractor", self.name, self.words, self.preset, _MOST_OUT)


def make_command(settings: ExtractorSettings) -> ModelCommand:
    """Return the command that the settings name.

    ConfigError when none is named, or it needs a model's name.
    """
    program = named_program(
        "extractor",
        "mode 'command'",
        settings.command,
        settings.model,
        presets(),
        Preset,
        _MOST_OUT,
    )
    return ModelCommand(program.name, program.words, program.preset, settings.command_timeout_s)


@cache
def presets() -> Mapping[str, Preset]:
    tables = tomllib.loads(shipped("config/extractors.toml").read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Preset]).validate_python(tables)
