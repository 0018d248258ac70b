"""Profiles: the channels, perspectives, weights, filters and limits of a recall, read from TOML."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError

from pps.config import Settings, shipped
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.time import coarse, iso
from pps.core.user_files import parse_toml, read_text
from pps.core.values import CHANNELS, JSON, ChannelName
from pps.isolation.recipes import RECIPES
from pps.journal.filters import ItemFilter
from pps.recall.channel_profile import ChannelProfile, ProfileTable
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.request import DEFAULT_PROFILE
from pps.recall.search import Tuning

_log = logging.getLogger(__name__)

Origin: TypeAlias = Literal["shipped", "yours", "graphiti"]
"""Where a profile is from: shipped with PPS, a file of the user's own, or Graphiti's."""
MAX_LIMIT = 100
"""Most results in each channel that a recall may ask for, where its profile does not say less."""
_MIN_MAX_LIMIT = 10


def parse_filter_time(value: object) -> datetime:
    """Return a TOML time with a zone in UTC, or a date as a coarse time of the entity's zone."""
    if isinstance(value, datetime) and value.tzinfo:
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise ValueError("must be in the years 1 to 9999 of UTC") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return coarse(value)
    raise ValueError("must be a date, or a time with its zone, such as 2026-01-31T08:00:00Z")


def _check_tag(value: str) -> str:
    if value.startswith("#") or any(map(str.isspace, value)):
        raise ValueError("must be a tag without '#' and without spaces")
    return value


_Limit = Annotated[int, Field(ge=1, le=100)]
_Time = Annotated[datetime, BeforeValidator(parse_filter_time)]
_Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Labels = Annotated[tuple[_Label, ...], Field(max_length=50)]
_Tag = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_check_tag)]


# ---- Filters ----


class Filters(ProfileTable):
    """The table ``[filters]`` of a profile's file; ``ItemFilter`` explains its fields.

    Attributes:
        kinds, sources, relations, sessions, layers, statuses: At most 50 of 1 to 200 characters
            each.
        tags: At most 50 of 1 to 64 characters, without ``#``.
        since, until: Half-open, ``since`` before ``until``: times with a zone, or dates of the
            entity's zone.
    """

    kinds: _Labels = ()
    tags: Annotated[tuple[_Tag, ...], Field(max_length=50)] = ()
    sources: _Labels = ()
    relations: _Labels = ()
    sessions: _Labels = ()
    roles: Annotated[
        tuple[Literal["user", "assistant", "system", "tool"], ...], Field(max_length=4)
    ] = ()
    layers: _Labels = ()
    statuses: _Labels = ()
    since: _Time | None = None
    until: _Time | None = None

    def over(self, parent: ItemFilter) -> ItemFilter:
        """Return the parent's filter with the fields that this one sets in place of its own.

        An empty list is no restriction.

        Raises:
            ValueError: ``until`` is not after ``since``; the text names the field and the bound.
        """
        own: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        merged = replace(parent, **own)
        if merged.since and merged.until and merged.until <= merged.since:
            raise ValueError(f"filters.until: must be after since, which is {iso(merged.since)}")
        return merged


def restrictions(filters: ItemFilter) -> dict[str, tuple[str, ...] | datetime]:
    """Return the fields of a filter that restrict something, by name."""
    values = {field_.name: getattr(filters, field_.name) for field_ in fields(filters)}
    return {name: value for name, value in values.items() if value}


def as_json(filters: ItemFilter) -> dict[str, JSON]:
    """Return the restrictions of a filter as JSON: lists, and times in ISO 8601."""
    values: dict[str, JSON] = {}
    for name, value in restrictions(filters).items():
        values[name] = iso(value) if isinstance(value, datetime) else list(value)
    return values


def in_words(filters: ItemFilter) -> str:
    """Return the restrictions of a filter in one line for people; empty if there are none."""
    phrases: list[str] = []
    for name, value in restrictions(filters).items():
        text = iso(value) if isinstance(value, datetime) else ", ".join(value)
        phrases.append(f"{name} {text}")
    return "; ".join(phrases)


# ---- Profiles ----


class ProfileFile(ProfileTable):
    """A profile's file."""

    description: str = Field(default="", max_length=300)
    extends: str = ""
    channels: dict[ChannelName, ChannelProfile] = Field(
        default_factory=dict[ChannelName, ChannelProfile]
    )
    limits: dict[ChannelName, _Limit] = Field(default_factory=dict[ChannelName, _Limit])
    usual_limits: dict[ChannelName, _Limit] = Field(default_factory=dict[ChannelName, _Limit])
    max_limit: int | None = Field(default=None, ge=_MIN_MAX_LIMIT, le=MAX_LIMIT)
    filters: Filters = Filters()
    floor: bool | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A named way to recall. ``recipe`` is set when Graphiti's own search answers.

    Attributes:
        limits: Most results of a channel, where that is fewer than the caller's limit.
        usual_limits: The same where the caller names no limit.
        max_limit: Most that a caller may ask for, 10 to 100; more is refused.
        origin: Where its own file is from; what it extends may be from elsewhere.
        floor: Judge which hits have to do with the query; the others are not injected. See
            ``recall.floor``.
        filters: Applied before ranking in every perspective, beside the caller's own filter.
    """

    name: str
    description: str
    channels: Mapping[ChannelName, ChannelProfile]
    limits: Mapping[ChannelName, int]
    recipe: str = ""
    max_limit: int = MAX_LIMIT
    origin: Origin = "shipped"
    filters: ItemFilter = field(default_factory=ItemFilter)
    floor: bool = False
    usual_limits: Mapping[ChannelName, int] = field(default_factory=dict[ChannelName, int])

    def limit_of(self, channel: ChannelName, limit: int, *, is_usual: bool) -> int:
        """Return the most results of a channel; ``is_usual``: the caller named no limit."""
        most = min(limit, self.limits.get(channel, limit))
        return min(most, self.usual_limits.get(channel, most)) if is_usual else most


class Profiles:
    """The shipped profiles, the user's own, and Graphiti's recipes, by name.

    Attributes:
        tuning: Settings that hold for every profile.
        refused: Name → what is wrong with a profile of the user's own, with its file, key and
            bound.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        tuning: Tuning | None = None,
        places: Mapping[str, Path] | None = None,
        own: Mapping[str, str | ConfigError] | None = None,
    ) -> None:
        """Read profiles from TOML texts by name.

        Args:
            files: Name → text.
            tuning: Settings that hold for every profile.
            places: Name → file, of those that are the user's own.
            own: Name → text of the user's own, each in place of one of ``files`` of its name; or
                why it cannot be read. One with a mistake is refused alone.

        Raises:
            ConfigError: One of ``files`` is broken: names the profile, the key and the bound.
        """
        self.tuning = tuning or Tuning()
        self.refused: dict[str, str] = {}
        self._places = places or {}
        self._settings: Settings | None = None
        self._shipped: dict[str, ProfileFile] = {}
        known = frozenset(PERSPECTIVES)
        for name, text in files.items():
            file = _parse(f"profile {name!r}", text, known)
            if file is not None:
                self._shipped[name] = file
        self._files = dict(self._shipped)
        for name, text in (own or {}).items():
            self._files.pop(name, None)
            try:
                if isinstance(text, ConfigError):
                    raise text
                file = _parse(self._place(name), text, known)
            except ConfigError as error:
                self.refused[name] = error.message
                continue
            if file is not None:
                self._files[name] = file
        self._profiles: dict[str, Profile] = {}
        for name in self._files:
            try:
                self._profiles[name] = self._resolve(name, ())
            except ConfigError as error:
                if name not in self._places:
                    raise
                self.refused[name] = error.message

    @classmethod
    def load(cls, settings: Settings) -> Profiles:
        """Read ``config/profiles`` and ``$PPS_HOME/profiles``.

        A user's file replaces a shipped one.

        A user's file that cannot be read, or has a mistake, is refused alone: see ``refused``.

        Raises:
            ConfigError: The folder cannot be read.
        """
        files = {
            Path(file.name).stem: file.read_text("utf-8")
            for file in shipped("config/profiles").iterdir()
        }
        own = _own_files(settings)
        tuning = Tuning(
            **settings.recall.model_dump(exclude={"budget_tokens"}),
            rerank_deadline_s=settings.reranker.deadline_ms / 1000,
        )
        texts = {name: _read(file) for name, file in own.items()}
        profiles = cls(files, tuning, own, texts)
        profiles._settings = settings
        return profiles

    def __contains__(self, name: str) -> bool:
        return name in self._profiles or name in RECIPES

    def look_for(self, name: str) -> None:
        """Read the files again if there is one of that name that was absent or refused before.

        Raises:
            ConfigError: As ``load``; the profiles read before stay.
        """
        if self._settings is None or name in self or name not in _own_files(self._settings):
            return
        self._reload(self._settings)

    def mistakes(self) -> tuple[str, ...]:
        """Return what is wrong with the user's own profiles, one line each.

        Reads refused files again.

        Raises:
            ConfigError: As ``load``; the profiles read before stay.
        """
        if self._settings is not None and self.refused:
            self._reload(self._settings)
        return tuple(self.refused.values())

    def get(self, name: str) -> Profile:
        """Return a profile or a recipe.

        Raises:
            InvalidRequest: There is none of that name; the text lists them.
            ConfigError: It is a profile of the user's own with a mistake.
        """
        if name in self._profiles:
            return self._profiles[name]
        if name in self.refused:
            raise ConfigError(self.refused[name])
        if name in RECIPES:
            return Profile(name, f"Graphiti's own {name}", {}, {}, recipe=name, origin="graphiti")
        raise InvalidRequest(
            "profile", f"must be one of {', '.join(sorted(self._profiles))} or a Graphiti recipe"
        )

    def origins(self, name: str) -> dict[str, Origin]:
        """Return name → origin of a profile and those that it extends; raises as ``get``."""
        origins: dict[str, Origin] = {}
        while name:
            origins[name] = self.get(name).origin
            name = self._files[name].extends if name in self._files else ""
        return origins

    def all(self) -> list[Profile]:
        """Return the profiles by name, then Graphiti's recipes."""
        own = [self._profiles[name] for name in sorted(self._profiles)]
        return own + [self.get(name) for name in RECIPES]

    def _reload(self, settings: Settings) -> None:
        loaded: Profiles = Profiles.load(settings)
        self._places = loaded._places
        self._files = loaded._files
        self._profiles = loaded._profiles
        self.refused = loaded.refused

    def _resolve(self, name: str, extending: tuple[str, ...]) -> Profile:
        """Return a profile with all that it takes from those that it extends.

        ``extending`` are the profiles that are being resolved.
        """
        # A profile that extends a refused one extends the shipped one of its name.
        file = self._files.get(name) or self._shipped.get(name)
        if name in extending or file is None:
            first = (*extending, name)[0]
            raise ConfigError(
                f"{self._place(first)}: extends: {name!r} is unknown or goes in a circle"
            )
        parent = Profile("", "", {}, {})
        if file.extends:
            parent = self._resolve(file.extends, (*extending, name))
        namesake = self._shipped.get(name, file)
        channels = dict(parent.channels)
        for channel, table in file.channels.items():
            channels[channel] = self._complete(name, channel, table, parent)
        if not channels:
            raise ConfigError(
                f"{self._place(name)}: channels: fills no channel; give one, such as "
                "[channels.facts]"
            )
        try:
            filters = file.filters.over(parent.filters)
        except ValueError as error:
            raise ConfigError(f"{self._place(name)}: {error}") from error
        floor = parent.floor
        if file.floor is not None:
            floor = file.floor
        elif namesake.floor is not None:
            floor = namesake.floor
        description = file.description or parent.description or namesake.description
        return Profile(
            name,
            description or "A profile of yours",
            {channel: channels[channel] for channel in CHANNELS if channel in channels},
            {**parent.limits, **file.limits},
            max_limit=file.max_limit or parent.max_limit,
            origin="yours" if name in self._places else "shipped",
            filters=filters,
            floor=floor,
            usual_limits={**parent.usual_limits, **file.usual_limits},
        )

    def _complete(
        self, name: str, channel: ChannelName, table: ChannelProfile, parent: Profile
    ) -> ChannelProfile:
        """Return a channel.

        One whose table names no perspective is an inherited one with changes.
        """
        if table.perspectives:
            return table
        inherited = parent.channels.get(channel)
        for namesake in (name, DEFAULT_PROFILE):
            if inherited is None and namesake in self._shipped:
                inherited = self._shipped[namesake].channels.get(channel)
        if inherited is None or not inherited.perspectives:
            raise ConfigError(
                f"{self._place(name)}: channels.{channel}.perspectives: {_FINDS_NOTHING}"
                f"{_perspectives_in_words()}"
            )
        changes = {name: getattr(table, name) for name in table.model_fields_set}
        return inherited.model_copy(update=changes)

    def _place(self, name: str) -> str:
        return str(self._places.get(name, f"profile {name!r}"))


# ---- Files ----

_FINDS_NOTHING = "names none with a weight above 0 that finds anything; there are "


def _own_files(settings: Settings) -> dict[str, Path]:
    folder = settings.home / "profiles"
    try:
        return {file.stem: file for file in sorted(folder.iterdir()) if file.suffix == ".toml"}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be read ({error.strerror}): check its permissions"
        ) from None


def _read(file: Path) -> str | ConfigError:
    """Return a file's text, or why it cannot be read."""
    try:
        return read_text(file)
    except ConfigError as error:
        return error
    except (OSError, UnicodeDecodeError) as error:
        return ConfigError(f"{file}: cannot be read as UTF-8 text: {error}")


def _perspectives_in_words() -> str:
    return ", ".join(
        name if perspective.finds else f"{name} (only orders)"
        for name, perspective in PERSPECTIVES.items()
    )


@lru_cache(maxsize=256)
def _parse(place: str, text: str, known: frozenset[str]) -> ProfileFile | None:
    """Return a profile's file; None if it has nothing but a channel of earlier versions.

    ``known`` are the names of the perspectives: the cache must not outlive them.
    """
    try:
        tree = parse_toml(text)
        had_communities = _drop_communities(place, tree)
        if had_communities and not (tree["channels"] or tree.get("extends")):
            return None
        file = ProfileFile.model_validate(tree)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place}: is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{place}: {key}: {problem}") from error
    for channel, profile in file.channels.items():
        _check_perspectives(f"{place}: channels.{channel}.perspectives", profile, known)
    return file


def _check_perspectives(place: str, profile: ChannelProfile, known: frozenset[str]) -> None:
    """Check that all perspectives are known and one of the channel's finds something.

    Raises:
        ConfigError: Names the place and lists the perspectives.
    """
    named = set(profile.perspectives)
    for weights in profile.routing.values():
        named.update(weights)
    for changes in profile.kinds.values():
        named.update(changes.perspectives)
    unknown = sorted(named - known)
    if unknown:
        raise ConfigError(
            f"{place}: no perspective is called {', '.join(unknown)}; there are "
            f"{_perspectives_in_words()}"
        )
    finds = any(
        weight > 0 and PERSPECTIVES[name].finds for name, weight in profile.perspectives.items()
    )
    if profile.perspectives and not finds:
        raise ConfigError(f"{place}: {_FINDS_NOTHING}{_perspectives_in_words()}")


def _drop_communities(place: str, tree: dict[str, Any]) -> bool:
    """Leave out a channel of earlier versions that was never filled; return whether it was named.

    A profile that names it still opens.
    """
    tables = [tree[key] for key in ("channels", "limits") if isinstance(tree.get(key), dict)]
    dropped = [table.pop("communities") for table in tables if "communities" in table]
    if dropped:
        _log.warning("%s: communities: there is no such channel any more; it is left out", place)
    return bool(dropped) and "channels" in tree
