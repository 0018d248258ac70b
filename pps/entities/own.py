"""What an entity sets for itself, in its ``entity.toml`` below its card."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pps.config import problems
from pps.config.settings import Hours, TimeZone, Week
from pps.config.toml_lines import TomlLines, syntax_mistake
from pps.core.errors import ConfigError, PPSError, StoreError
from pps.core.user_files import parse_toml, read_text
from pps.entities import folder as files
from pps.entities.folder import Entry, write

_CARD_KEYS = ("name", "group", "store", "created_at")


class _OwnSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AutomaticSection(_OwnSection):
    """What is read out of a text without being asked: ``#tags``, and relations by ``[[links]]``."""

    tags: bool = True
    relations: bool = True


class ExtractorSection(_OwnSection):
    """In place of the settings of the same names; ``tokens_per_day`` 0 is no bound."""

    mode: Literal["given", "rules", "command", "model"] | None = None
    command: str | list[str] | None = None
    model: str | None = None
    tokens_per_day: int | None = Field(default=None, ge=0, le=1_000_000_000_000)


class TalkSection(_OwnSection):
    """Who answers for an entity in a room. No key stands here: only where it is.

    Attributes:
        server: ``openai`` (any server with OpenAI's chat protocol), ``anthropic``, or ``command``;
            None is nobody.
        model: Its model's name; of a command the one that its table puts in.
        base_url: Of the server, up to and without ``/chat/completions``; the vendor's own when not
            given.
        command: A name of ``config/talkers.toml``, or the words of any other program.
        key_env: The variable of the environment that holds the key.
        key_file: A file of mode 0600 that holds the key; a relative path begins at the entity's
            folder.
        tools: Whether the model is offered its own recall and remember.
        tokens_per_day: Most tokens a day (UTC), in and out together; 0 is no bound.
        max_tokens: Most tokens of one answer.
        timeout_s: Longest silence of a model, and of a command its longest run.
    """

    server: Literal["openai", "anthropic", "command"] | None = None
    model: Annotated[str, Field(max_length=200)] = ""
    base_url: Annotated[str, Field(max_length=500)] = ""
    command: str | list[str] | None = None
    key_env: Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = (
        None
    )
    key_file: Annotated[str, Field(max_length=1_000)] = ""
    tools: bool = True
    tokens_per_day: int = Field(default=0, ge=0, le=1_000_000_000_000)
    max_tokens: int = Field(default=1_024, ge=16, le=32_000)
    timeout_s: float = Field(default=60.0, gt=0, le=3_600)


class CalendarSection(_OwnSection):
    """In place of the settings of the same names; relative files begin at the entity's folder."""

    files: Annotated[list[str], Field(max_length=50)] | None = None
    urls: Annotated[list[str], Field(max_length=50)] | None = None
    hours: Hours | Week | None = None
    time_zone: TimeZone | None = None


class OwnSettings(_OwnSection):
    """What ``entity.toml`` says: the entity's card, and its own settings.

    Attributes:
        packs: Names of its packs of kinds, beside the one that every memory has.
        time_zone: Whose days "yesterday" and "last month" are; None is the installation's setting
            of that name.
    """

    name: str
    group: str
    store: str
    created_at: str
    packs: list[str] = []
    time_zone: TimeZone | None = None
    automatic: AutomaticSection = AutomaticSection()
    extractor: ExtractorSection = ExtractorSection()
    talk: TalkSection = TalkSection()
    calendar: CalendarSection = CalendarSection()


def own_settings(folder: Path) -> OwnSettings:
    """Return what an entity's ``entity.toml`` sets.

    Raises:
        ConfigError: It is not TOML, a key is unknown or a value out of bounds; the key and the line
            are named.
        StoreError: The file cannot be read.
    """
    path = folder / "entity.toml"
    try:
        return _checked(read_text(path), path)
    except (OSError, UnicodeDecodeError):
        raise StoreError(f"{path}: cannot be read; restore it from a backup") from None


def unusable(entry: Entry) -> str:
    """Return why an entity cannot be opened, as far as its files tell; empty when they do not."""
    lost = files.unusable(entry)
    if lost:
        return lost
    try:
        own_settings(entry.folder)
    except PPSError as error:
        return error.message
    return ""


def own_lines(folder: Path) -> dict[str, tuple[str, int]]:
    """Return what an entity sets for itself: key → value as text and line.

    Of addresses only how many. Blocks.

    Raises as ``own_settings``.
    """
    own = own_settings(folder).model_dump(exclude_unset=True, exclude=set(_CARD_KEYS))
    lines = TomlLines(read_text(folder / "entity.toml"))
    settings: dict[str, tuple[str, int]] = {}
    for name, value in own.items():
        section = cast("dict[str, object]", value) if isinstance(value, dict) else {"": value}
        for key, setting in section.items():
            path = (name, key) if key else (name,)
            settings[".".join(path)] = _own_text(path, setting), lines.line(path)
    return settings


def _own_text(path: tuple[str, ...], setting: object) -> str:
    """Return a value to read; no address is told, since it may hold a key."""
    if isinstance(setting, str):
        return setting
    if path == ("calendar", "urls"):
        return f"{len(cast('list[str]', setting))} set"
    if path[-1] == "command":
        return shlex.join(cast("list[str]", setting))
    return json.dumps(setting, ensure_ascii=False)


def set_extractor(folder: Path, command: str) -> None:
    """Let a command read an entity's turns from its next opening on; an empty one takes that back.

    Only the lines ``mode`` and ``command`` of the section ``extractor`` change.

    Raises:
        ConfigError, StoreError: As ``own_settings``; nothing was changed.
    """

    def changed(text: str) -> str:
        head, section, rest = text.partition("[extractor]\n")
        own, following, others = rest.partition("\n[")
        own = re.sub(r"(?m)^(mode|command)\s*=.*\n?", "", own)
        new = "\n[extractor]\n"
        lines = f'mode = "command"\ncommand = {json.dumps(command)}\n' if command else ""
        return f"{head}{section or new}{lines}{own}{following}{others}"

    _rewrite(folder / "entity.toml", changed)


def set_store(folder: Path, store: str) -> None:
    """Note in an entity's card whether its graph is published; only the key ``store`` changes.

    As ``set_packs``.
    """

    def changed(text: str) -> str:
        return re.sub(r"(?m)^store\s*=.*$", f'store = "{store}"', text, count=1)

    _rewrite(folder / "entity.toml", changed)


def set_packs(folder: Path, names: Sequence[str]) -> None:
    """Give an entity packs of kinds, from its next opening on; only the key ``packs`` changes.

    Raises:
        ConfigError, StoreError: As ``own_settings``; nothing was changed.
    """

    def changed(text: str) -> str:
        head, following, rest = re.sub(r"(?ms)^packs\s*=\s*\[.*?\][^\n]*\n", "", text).partition(
            "\n["
        )
        lines = head.splitlines()
        at = len(lines)
        while (
            following and at and lines[at - 1].startswith("#")
        ):  # it is about the section that follows
            at -= 1
        about = "\n".join(["", *lines[at:], ""]) if lines[at:] else ""
        before = "\n".join(lines[:at]).rstrip()
        return f"{before}\npacks = {json.dumps([*names])}\n{about.rstrip()}{following}{rest}"

    _rewrite(folder / "entity.toml", changed)


def _rewrite(path: Path, changed: Callable[[str], str]) -> None:
    try:
        text = read_text(path)
        _checked(text, path)
        text = changed(text)
        _checked(text, path)
        write(path, text)
    except (OSError, UnicodeDecodeError):
        raise StoreError(f"{path}: cannot be read or written; restore it from a backup") from None


def _checked(text: str, path: Path) -> OwnSettings:
    try:
        tree = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        line, text_wrong = syntax_mistake(text, error)
        raise ConfigError(f"{path}: not valid TOML: {text_wrong} (line {line})") from None
    try:
        return OwnSettings.model_validate(tree)
    except ValidationError as error:
        problem = problems(error, OwnSettings)[0]
    key = _set_key(problem.path, tree)
    text_wrong = problem.problem
    if problem.unknown:
        text_wrong = "unknown key" + (f", did you mean {problem.near!r}?" if problem.near else "")
    elif key.startswith("calendar.hours"):
        text_wrong = "must be a number of 0 to 24, or seven of them"
    line = TomlLines(text).line(key.split("."))
    raise ConfigError(f"{path}: {key}: {text_wrong} (line {line})")


def _set_key(path: str, tree: object) -> str:
    """Return the part of a problem's path that is in a file, without the tried type of a value."""
    parts = path.split(".")
    for number, part in enumerate(parts):
        if not isinstance(tree, dict) or part not in tree:
            return ".".join(parts[: max(number, 1)]) if number else path
        tree = cast("dict[str, object]", tree)[part]
    return path
