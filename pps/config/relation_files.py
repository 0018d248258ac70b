"""The table of relations: ``config/relations.toml``, changed by ``$PPS_HOME/relations.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pps.config.packaged import shipped
from pps.config.toml_lines import TomlLines, syntax_mistake
from pps.core.errors import ConfigError
from pps.core.relation_table import RelationRule, Relations, relation_key

FILE = "relations.toml"
_LABEL = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_MOST_NAMES = 200
_MOST_BYTES = 1_000_000
_Label: TypeAlias = Annotated[str, Field(pattern=_LABEL)]
_OtherNames: TypeAlias = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(max_length=_MOST_NAMES)
]


class _Entry(BaseModel):
    """One table of the file; keys that it lacks stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    subject: _Label | None = None
    object: _Label | None = None
    single: bool | None = None
    dated: bool | None = None
    also: _OtherNames = Field(default=(), strict=False)
    also_if: _OtherNames = Field(default=(), strict=False)
    topics: _OtherNames = Field(default=(), strict=False)


_ENTRIES = TypeAdapter(dict[str, _Entry])


@lru_cache(maxsize=1)
def shipped_relations() -> Relations:
    """Return the shipped table."""
    text = shipped("config/relations.toml").read_text("utf-8")
    return Relations(_merged({}, _entries(text, "config/relations.toml")).values())


def load_relations(home: Path) -> Relations:
    """Return the shipped table with the changes of ``$PPS_HOME/relations.toml``, if it exists.

    Raises:
        ConfigError: The file cannot be read, or there is a mistake in it: ``PATH:LINE: PROBLEM``.
    """
    path = home / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return shipped_relations()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__})") from None
    return Relations(_merged(shipped_relations().by_name, _entries(text, str(path))).values())


def _entries(text: str, path: str) -> dict[str, _Entry]:
    """Return the tables of a file by their names.

    Raises:
        ConfigError: The file has mistakes; the line of the first is named.
    """
    if len(text.encode()) > _MOST_BYTES:
        raise ConfigError(f"{path}:1: the file is longer than {_MOST_BYTES:,} bytes")
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, problem = syntax_mistake(text, error)
        raise ConfigError(f"{path}:{line}: not valid TOML: {problem}") from None
    lines = TomlLines(text)
    for name in tree:
        if not _NAME.fullmatch(name):
            problem = "a relation's name has capitals, digits and underscores, at most 64"
            raise ConfigError(f"{path}:{lines.line((name,))}: {name}: {problem}")
    try:
        entries = _ENTRIES.validate_python(tree)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = tuple(str(part) for part in first["loc"])
        problem = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        where = ".".join(place)
        raise ConfigError(f"{path}:{lines.line(place)}: {where}: {problem}") from None
    _check_names(entries, path, lines)
    return entries


def _check_names(entries: Mapping[str, _Entry], path: str, lines: TomlLines) -> None:
    """Raise ConfigError when a name stands for two relations of one file."""
    owners: dict[str, str] = {relation_key(name): name for name in entries}
    for relation, entry in entries.items():
        for name in entry.topics:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*\*", name):
                line = lines.line((relation, "topics"), name)
                problem = f"{name!r} must be a name's beginning and a '*', such as FAVOURITE_*"
                raise ConfigError(f"{path}:{line}: {relation}.topics: {problem}")
        for field, names in (("also", entry.also), ("also_if", entry.also_if)):
            for name in names:
                line = lines.line((relation, field), name)
                if not relation_key(name):
                    raise ConfigError(f"{path}:{line}: {relation}.{field}: {name!r} has no letter")
                owner = owners.setdefault(relation_key(name), relation)
                if owner != relation:
                    problem = f"{name!r} stands for {owner} already"
                    raise ConfigError(f"{path}:{line}: {relation}.{field}: {problem}")


def _merged(
    known: Mapping[str, RelationRule], entries: Mapping[str, _Entry]
) -> dict[str, RelationRule]:
    """Return relations with the changes of a file's tables.

    A name that a table lists is removed from all other relations.
    """
    claimed = {
        relation_key(name): relation
        for relation, entry in entries.items()
        for name in (relation, *entry.also, *entry.also_if)
    }

    def left(relation: str, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            name for name in names if claimed.get(relation_key(name), relation) == relation
        )

    merged = {
        name: replace(rule, also=left(name, rule.also), also_if=left(name, rule.also_if))
        for name, rule in known.items()
    }
    for name, entry in entries.items():
        before = merged.get(name) or RelationRule(name)
        changes = entry.model_dump(exclude_none=True, exclude={"also", "also_if", "topics"})
        also = dict.fromkeys((*before.also, *entry.also))
        also_if = dict.fromkeys((*before.also_if, *entry.also_if))
        topics = dict.fromkeys((*before.topics, *entry.topics))
        merged[name] = replace(
            before,
            **changes,
            also=tuple(also),
            also_if=tuple(also_if),
            topics=tuple(topics),
        )
    return merged
