"""What an entity sets for itself, in its ``entity.toml`` below its card."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pps.config.settings import Hours, TimeZone, Week
from pps.core.errors import ConfigError, StoreError
from pps.core.user_files import parse_toml, read_text
from pps.entities.folder import write


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AutomaticSection(_Section):
    """What is read out of a text without being asked: ``#tags``, and relations by ``[[links]]``."""

    tags: bool = True
    relations: bool = True


class ExtractorSection(_Section):
    """In place of the settings of the same names; ``tokens_per_day`` 0 is no bound."""

    mode: Literal["given", "rules", "command", "model"] | None = None
    command: str | list[str] | None = None
    model: str | None = None
    tokens_per_day: int | None = Field(default=None, ge=0, le=1_000_000_000_000)


class CalendarSection(_Section):
    """In place of the settings of the same names; relative files begin at the entity's folder."""

    files: Annotated[list[str], Field(max_length=50)] | None = None
    urls: Annotated[list[str], Field(max_length=50)] | None = None
    hours: Hours | Week | None = None
    time_zone: TimeZone | None = None


class OwnSettings(_Section):
    """What ``entity.toml`` says: the entity's card, and its own settings.

    Attributes:
        packs: Names of its packs of kinds, beside the one that every memory has.
        time_zone: Whose days "yesterday" and "last month" are; None is the installation's setting of that name.
    """

    name: str
    group: str
    store: str
    created_at: str
    packs: list[str] = []
    time_zone: TimeZone | None = None
    automatic: AutomaticSection = AutomaticSection()
    extractor: ExtractorSection = ExtractorSection()
    calendar: CalendarSection = CalendarSection()


def own_settings(folder: Path) -> OwnSettings:
    """Return what an entity's ``entity.toml`` sets.

    Raises:
        ConfigError: A key is unknown or a value out of bounds; it is named.
        StoreError: The file cannot be read.
    """
    path = folder / "entity.toml"
    try:
        return _checked(read_text(path), path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise StoreError(f"{path}: cannot be read; restore it from a backup") from None


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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise StoreError(f"{path}: cannot be read or written; restore it from a backup") from None


def _checked(text: str, path: Path) -> OwnSettings:
    try:
        return OwnSettings.model_validate(parse_toml(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        if key.startswith("calendar.hours"):
            raise ConfigError(
                f"{path}: calendar.hours: must be a number of 0 to 24, or seven of them"
            ) from None
        raise ConfigError(f"{path}: {key}: {first['msg'].removeprefix('Value error, ')}") from None
