"""Programs as language models: each reads a prompt on stdin and writes its answer on stdout.

A program is run without a shell, in an empty folder, within limits of time and size. What it
inherits of the environment holds no setting of ours, and a mark that our hooks and ``pps mcp``
heed: inside it they do nothing. Its credentials are its own business. ``ModelCommand`` is the
program that reads texts for a memory (``[extractor]``).
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
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import TypeAdapter

from pps.config import INSIDE, ExtractorSettings, shipped
from pps.core.errors import ConfigError, ModelOutputInvalid, ModelUnavailable
from pps.core.text import estimate_tokens

_OURS = ("PPS_", "NEO4J_")
_MOST_OUT = 1024 * 1024
"""Bytes of an answer; a program that writes more is ended."""


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


AnyPreset = TypeVar("AnyPreset", bound=Preset)


@dataclass(frozen=True, slots=True)
class Program(Generic[AnyPreset]):
    """A program that the settings name.

    Attributes:
        section: Of the settings, and what it provides: ``extractor`` or ``talk``.
        name: What the reports of costs call it.
        words: The program and its arguments.
        max_output_bytes: One that writes more is ended.
    """

    section: str
    name: str
    words: tuple[str, ...]
    preset: AnyPreset
    max_output_bytes: int

    async def output(self, prompt: str, folder: Path) -> AsyncGenerator[bytes]:
        """Yield what the program writes, as it comes.

        It is ended with all that it started when this is left.

        Raises:
            ModelUnavailable: It cannot be run, or failed.
            ModelOutputInvalid: It writes too much.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                cwd=folder,
                env=_environment(self.preset, folder),
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailable(
                f"{self.section}.command: {self.words[0]!r} cannot be run ({error.strerror}); "
                "install it, or name another",
                provider=self.section,
            ) from None
        feeding = asyncio.create_task(_feed(process, prompt.encode()))
        try:
            size = 0
            while process.stdout and (piece := await process.stdout.read(65_536)):
                size += len(piece)
                if size > self.max_output_bytes:
                    raise self.invalid(f"wrote more than {self.max_output_bytes:,} bytes")
                yield piece
            code = await process.wait()
        finally:
            feeding.cancel()
            await _end(process)
        if code:
            raise self.away(f"ended with code {code}")

    def away(self, problem: str) -> ModelUnavailable:
        """Return the error of a program that gave no answer."""
        return ModelUnavailable(
            f"{self.section}.command: {self.name} {problem}; "
            f"run {self.words[0]!r} by hand to see why (logged in? quota?)",
            provider=self.section,
        )

    def invalid(self, problem: str) -> ModelOutputInvalid:
        """Return the error of a program whose answer is none."""
        return ModelOutputInvalid(
            f"{self.section}.command: {self.name} {problem}", provider=self.section
        )


def named_program(
    section: str,
    chosen_by: str,
    command: str | Sequence[str],
    model: str,
    presets: Mapping[str, AnyPreset],
    make_preset: type[AnyPreset],
    max_output_bytes: int,
) -> Program[AnyPreset]:
    """Return the program that settings name: a known one, or the words of any other.

    Args:
        section: As in ``Program``.
        chosen_by: What asks for a command, such as ``mode 'command'``; for errors.
        command: Its name, or its words.
        model: The model that it is to use; empty for its own choice.
        presets: The known programs by name.
        make_preset: Makes the preset of another program from its words.
        max_output_bytes: As in ``Program``.

    Raises:
        ConfigError: None is named, or it needs a model's name.
    """
    words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)
    if not words:
        raise ConfigError(
            f"{section}.command: {chosen_by} needs one: {', '.join(presets)}, "
            "or the words of any other"
        )
    preset = presets.get(words[0]) if len(words) == 1 else None
    name = words[0] if preset else Path(words[0]).name
    preset = preset or make_preset(words)
    if any("{model}" in word for word in preset.words) and not model:
        raise ConfigError(f"{section}.model: command '{name}' needs a model's name")
    words = (*preset.words, *(preset.model if model else ()))
    filled = tuple(word.replace("{model}", model) for word in words)
    return Program(section, name, filled, preset, max_output_bytes)


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


def _environment(preset: Preset, folder: Path) -> dict[str, str]:
    """Return a program's environment: without PPS's settings, with the mark that PPS runs it."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_OURS) and name not in preset.unset
    }
    home = {preset.own_home: str(folder)} if preset.own_home else {}
    return {**environment, **home, INSIDE: "1"}


async def _feed(process: Process, data: bytes) -> None:
    """Write a program's input and close it; a program that reads no more is no error."""
    if process.stdin:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()


async def _end(process: Process) -> None:
    """End a program with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


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
