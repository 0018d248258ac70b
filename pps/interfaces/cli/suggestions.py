"""What a person may have meant who typed a command or an option that there is not.

Nothing that takes something away is ever suggested: a hint that is followed without a thought must
do no harm.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

import click

from pps.config.home import home_folder

_CUTOFF = 0.75
_MOST_WORDS = 12

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "ls": ("list", "entity list"),
    "list": ("entity list",),
    "entities": ("entity list",),
    "new": ("create", "add", "entity create NAME"),
    "create": ("save", "add", "entity create NAME"),
    "make": ("create", "entity create NAME"),
    "add": ("create", "save"),
    "start": ("serve",),
    "run": ("serve",),
    "up": ("serve",),
    "server": ("serve",),
    "query": ("search", "recall NAME …"),
    "find": ("search", "recall NAME …"),
    "grep": ("search", "recall NAME …"),
    "chat": ("recall NAME …",),
    "save": ("remember NAME …",),
    "store": ("remember NAME …",),
    "note": ("remember NAME …",),
    "write": ("remember NAME …",),
    "info": ("show", "status"),
    "ps": ("status",),
    "quit": ("stop",),
    "exit": ("stop",),
    "shutdown": ("stop",),
    "down": ("stop",),
    "kill": ("stop",),
    "restart": ("stop",),
    "settings": ("config",),
    "set": ("config",),
    "show": ("get", "entity show NAME"),
    "cat": ("get", "get NAME ID"),
    "health": ("doctor",),
    "check": ("doctor",),
    "install": ("hooks install",),
    "page": ("open NAME",),
    "web": ("open NAME",),
    "ui": ("open NAME",),
    "backup": ("export NAME FILE",),
    "load": ("import NAME FILE",),
    "context": ("ambient NAME …",),
    "version": ("--version",),
    "man": ("help",),
}
"""Words that people type → the commands that they may mean.

A suggestion is the first of them that exists in the group, or a whole path."""


class _Group(Protocol):
    """The parts of a group of commands that a suggestion needs."""

    @property
    def commands(self) -> Mapping[str, click.Command]: ...

    @property
    def aliases(self) -> Mapping[str, str]: ...


def entity_names() -> list[str]:
    """Return the names of the entities that have folders here, without a server."""
    return sorted(path.parent.name for path in (home_folder() / "entities").glob("*/entity.toml"))


def unknown_command(group: _Group, path: str, words: Sequence[str]) -> str:
    """Return what to say of a command that there is not: its name, and what may have been meant.

    Args:
        group: Where it was looked for.
        path: The group's, such as ``pps entity``.
        words: What was typed: the command's name, and what followed it.
    """
    name, *rest = words
    problem = f"no such command {name!r}"
    is_root = path == "pps"
    if is_root and name in entity_names():
        return f"{problem}: the command goes before the entity, as in `pps recall {name} …`"
    meant = _synonym(group, path, name.lower()) or _nearest(group, path, name, rest)
    if meant:
        return f"{problem}; did you mean `{meant}`?"
    if is_root and len(" ".join(words).split()) > 1:
        return f"{problem}; a memory is asked so: `{_with_words('recall', words)}`"
    return problem


def unknown_entity(name: str, command: str, words: Sequence[str], *, reads: bool) -> str:
    """Return what to say of an entity that there is not.

    Args:
        name: What was typed in its place.
        command: The path of the command, such as ``recall``; empty for one that takes something
            away, for which nothing is suggested.
        words: The text that followed, where the command takes one.
        reads: The command changes nothing: only such a one is shown whole, with the name of the
            entity that there is.
    """
    problem = f"no entity {name!r}"
    names = entity_names()
    remedy = "`pps entity list` shows those there are, `pps entity create` makes one"
    if not command or not names:
        return f"{problem}; {remedy}"
    near = difflib.get_close_matches(name.lower(), names, 1, cutoff=_CUTOFF)
    if near:
        return f"{problem}; did you mean {near[0]!r}? {remedy}"
    if words and reads:
        return f"{problem}; its name goes first: `{_with_words(command, [name, *words])}`; {remedy}"
    return f"{problem}; {remedy}"


def name_first(command: str, text: str) -> str:
    """Return what to say where a text stands in the place of an entity's name."""
    return f"the entity's name goes first: `pps {command} NAME {shlex.quote(text)}`"


def harmless_options(error: click.NoSuchOption) -> list[str]:
    """Return the options that a wrong one may have meant.

    None for a command that takes something away.
    """
    command = error.ctx.command if error.ctx else None
    if command is None or getattr(command, "takes_away", True):
        return []
    wrong = error.option_name
    return difflib.get_close_matches(wrong, error.possibilities or (), 1, cutoff=_CUTOFF)


def _with_words(command: str, words: Sequence[str]) -> str:
    """Return a command with a text; of the entity that there is, if there is only one."""
    names = entity_names()
    name = names[0] if len(names) == 1 else "NAME"
    more = " …" if len(words) > _MOST_WORDS else ""
    return f"pps {command} {name} {shlex.join(words[:_MOST_WORDS])}{more}"


def _synonym(group: _Group, path: str, name: str) -> str:
    for meant in SYNONYMS.get(name, ()):
        command = group.commands.get(meant)
        if command is not None and not _takes_away(command):
            return f"{path} {meant}"
        if path == "pps" and (" " in meant or meant.startswith("-")):
            return f"pps {meant}"
    return ""


def _nearest(group: _Group, path: str, name: str, rest: Sequence[str]) -> str:
    """Return the command whose name is nearest.

    A group only where the next word is one of its commands.
    """
    names = [
        *(name for name, command in group.commands.items() if _fits(command, rest)),
        *(alias for alias, aliase in group.aliases.items() if _fits(group.commands[aliase], rest)),
    ]
    near = difflib.get_close_matches(name.lower(), names, 1, cutoff=_CUTOFF)
    return f"{path} {near[0]}" if near else ""


def _fits(command: click.Command, rest: Sequence[str]) -> bool:
    if isinstance(command, click.Group):
        return not rest or rest[0] in command.commands
    return not _takes_away(command)


def _takes_away(command: click.Command) -> bool:
    return bool(getattr(command, "takes_away", False))
