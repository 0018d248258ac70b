"""Commands of ``pps`` that a text shows, and what is wrong with them: a name or an option that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pps.interfaces.cli.main import build

if TYPE_CHECKING:
    import click

_SHOWN = re.compile(
    r"```(?P<language>\w*)\n(?P<block>.*?)```|`(?P<inline>[^`\n]+(?:\n[^`\n]+)?)`", re.DOTALL
)
_SHELLS = ("", "bash", "sh")
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?pps (?P<words>[^#|&;<>]*)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PLACEHOLDER = re.compile(r"[A-Z_…\W]+|…")
_OPTION = re.compile(r"--?[a-z]")


def strings_of(program: str) -> Iterator[str]:
    """Yield the texts of a Python program, docstrings included; a value that is filled in is ``…``."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def shown_commands(text: str) -> Iterator[str]:
    """Yield the commands of ``pps`` that a Markdown text shows, without ``pps``."""
    for shown in _SHOWN.finditer(text):
        if shown["inline"] is not None:
            lines = [" ".join(shown["inline"].split())]
        elif shown["language"] in _SHELLS:
            lines = shown["block"].replace("\\\n", " ").splitlines()
        else:
            continue
        for line in lines:
            match = _COMMAND.match(line.strip())
            if match:
                yield match["words"].strip()


def mistake_in(shown: str) -> str:
    """Return what is wrong with a command, given without ``pps``; empty for one that can be typed.

    Only names of commands and options are compared, not their values.
    """
    level = _commands()
    known = _options(level)
    words = iter(_QUOTED.sub("X", shown).split())
    rest: list[str] = []
    for word in words:
        if not hasattr(level, "commands"):
            rest.append(word)
        elif word == "--actor":
            next(words, "")
        elif not word.startswith("-") and not _PLACEHOLDER.fullmatch(word):
            command = level.get_command(None, word)
            if command is None:
                return f"there is no command {word!r}"
            level = command
            known |= _options(level)
        else:
            rest.append(word)
    for word in rest:
        if _OPTION.match(word) and word.split("=")[0] not in known:
            return f"there is no option {word!r}"
    return ""


@lru_cache(maxsize=1)
def _commands() -> Any:
    return build()


def _options(level: click.Command) -> set[str]:
    options = {"-h", "--help"}
    for parameter in level.params:
        options.update(parameter.opts, parameter.secondary_opts)
    return options
