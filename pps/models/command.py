"""A command as a language model: it reads a prompt on stdin and writes its answer on stdout.

It is run without a shell, in an empty folder of its own that is erased, with limits of time and
size. What it inherits of the environment holds no setting of ours, and a mark that our hooks and
``pps mcp`` heed: inside it they do nothing. Its credentials are its own business.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import tempfile
import tomllib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter

from pps.config import INSIDE, ExtractorSettings, shipped
from pps.core.errors import ConfigError, ModelOutputInvalid, ModelUnavailable
from pps.core.text import estimate_tokens

_MOST_OUT = 1024 * 1024
"""Bytes of an answer; a program that writes more is ended."""
_OURS = ("PPS_", "NEO4J_")


@dataclass(frozen=True, slots=True)
class Preset:
    """How a known program is run.

    The shipped ``config/extractors.toml`` says what each field means.
    """

    words: tuple[str, ...]
    model: tuple[str, ...] = ()
    answer: str = ""
    failed: str = ""
    tokens_in: tuple[str, ...] = ()
    tokens_out: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    own_home: str = ""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """An answer, and what it took in tokens; ``metered`` is False where that is an estimate."""

    text: str
    tokens_in: int
    tokens_out: int
    metered: bool


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """A program that answers prompts: what the reports of costs call it, and its words with their arguments."""

    name: str
    words: tuple[str, ...]
    preset: Preset
    timeout_s: float

    async def ask(self, prompt: str) -> CommandAnswer:
        """Return the program's answer.

        ModelUnavailable or ModelOutputInvalid say why there is none.
        """
        with tempfile.TemporaryDirectory(
            prefix="pps-extractor-", ignore_cleanup_errors=True
        ) as folder:
            output = await self._run(prompt, Path(folder))
        try:
            text = output.decode()
            data: object = json.loads(text) if self.preset.answer else None
        except (ValueError, RecursionError):
            raise self._invalid("wrote something else than its documented output") from None
        if self.preset.failed and any(values_at(data, self.preset.failed)):
            raise self._away("could not ask its model")
        if self.preset.answer:
            text = next(
                (part for part in values_at(data, self.preset.answer) if isinstance(part, str)), ""
            )
        tokens_in = sum_at(data, self.preset.tokens_in)
        tokens_out = sum_at(data, self.preset.tokens_out)
        if tokens_in or tokens_out:
            return CommandAnswer(text, tokens_in, tokens_out, metered=True)
        return CommandAnswer(text, estimate_tokens(prompt), estimate_tokens(text), metered=False)

    async def _run(self, prompt: str, folder: Path) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                cwd=folder,
                env=program_environment(self.preset, folder),
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailable(
                f"extractor.command: {self.words[0]!r} cannot be run ({error.strerror}); install "
                "it, or name another",
                provider="extractor",
            ) from None
        feeding = asyncio.create_task(feed_program(process, prompt.encode()))
        try:
            async with asyncio.timeout(self.timeout_s):
                output = await self._output(process)
                code = await process.wait()
        except TimeoutError:
            raise self._away(
                f"did not answer within {self.timeout_s:g} s (extractor.command_timeout_s)"
            ) from None
        finally:
            feeding.cancel()
            await end_program(process)
        if code:
            raise self._away(f"ended with code {code}")
        return output

    async def _output(self, process: Process) -> bytes:
        output = bytearray()
        while process.stdout and (piece := await process.stdout.read(65_536)):
            output += piece
            if len(output) > _MOST_OUT:
                raise self._invalid(f"wrote more than {_MOST_OUT:,} bytes")
        return bytes(output)

    def _away(self, problem: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"extractor.command: {self.name} {problem}; run {self.words[0]!r} by hand to see why "
            "(logged in? quota?)",
            provider="extractor",
        )

    def _invalid(self, problem: str) -> ModelOutputInvalid:
        return ModelOutputInvalid(f"extractor.command: {self.name} {problem}", provider="extractor")


def make_command(settings: ExtractorSettings) -> ModelCommand:
    """Return the command that the settings name.

    ConfigError when none is named, or it needs a model's name.
    """
    command = settings.command
    words = tuple(shlex.split(command)) if isinstance(command, str) else command
    if not words:
        raise ConfigError(
            f"extractor.command: mode 'command' needs one: {', '.join(presets())}, or the words of "
            "any other"
        )
    preset = presets().get(words[0]) if len(words) == 1 else None
    name = words[0] if preset else Path(words[0]).name
    preset = preset or Preset(words)
    if any("{model}" in word for word in preset.words) and not settings.model:
        raise ConfigError(f"extractor.model: command '{name}' needs a model's name")
    words = (*preset.words, *(preset.model if settings.model else ()))
    filled = tuple(word.replace("{model}", settings.model) for word in words)
    return ModelCommand(name, filled, preset, settings.command_timeout_s)


@cache
def presets() -> Mapping[str, Preset]:
    tables = tomllib.loads(shipped("config/extractors.toml").read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, Preset]).validate_python(tables)


def program_environment(preset: Preset, folder: Path) -> dict[str, str]:
    """Return the environment of a program: without our settings, and with our mark that it is inside."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OURS) and name not in preset.unset
    }
    home = {preset.own_home: str(folder)} if preset.own_home else {}
    return {**environment, **home, INSIDE: "1"}


async def feed_program(process: Process, data: bytes) -> None:
    """Write a program's input and close it; a program that reads no more is no error."""
    if process.stdin:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()


async def end_program(process: Process) -> None:
    """End a program with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def values_at(data: object, path: str) -> Iterator[object]:
    """Yield what stands at a path of names in JSON; ``*`` is each name."""
    name, _, rest = path.partition(".")
    if not isinstance(data, dict):
        return
    values = cast("dict[str, object]", data)
    for value in values.values() if name == "*" else [values[name]] if name in values else []:
        if rest:
            yield from values_at(value, rest)
        else:
            yield value


def sum_at(data: object, paths: tuple[str, ...]) -> int:
    """Return the sum of the whole numbers above 0 that stand at some paths."""
    return sum(
        count
        for path in paths
        for count in values_at(data, path)
        if isinstance(count, int) and count > 0
    )
