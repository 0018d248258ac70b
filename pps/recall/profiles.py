"""Profiles: which channels a recall fills, by which perspectives, how they are joined, what they let through. Data."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from pps.config import Settings, shipped
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.time import coarse, iso
from pps.core.user_files import parse_toml, read_text
from pps.core.values import CHANNELS, JSON, ChannelName
from pps.isolation.recipes import RECIPES
from pps.journal.filters import ItemFilter
from pps.recall.perspectives import PERSPECTIVES
from pps.recall.query import Tuning
from pps.recall.question import AskKind, Route
from pps.recall.request import DEFAULT_PROFILE

_log = logging.getLogger(__name__)

Origin: TypeAlias = Literal["shipped", "yours", "graphiti"]
"""Where a profile is from: shipped with PPS, a file of the user's own, or Graphiti's."""
MAX_LIMIT = 100
"""Most results in each channel that a recall may ask for, where its profile does not say less."""
_USUAL_LIMIT = 10


def _moment(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo:
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise ValueError("must be in the years 1 to 9999 of UTC") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return coarse(value)
    raise ValueError("must be a date, or a time with its zone, such as 2026-01-31T08:00:00Z")


def _tag(value: str) -> str:
    if value.startswith("#") or any(map(str.isspace, value)):
        raise ValueError("must be a tag without '#' and without spaces")
    return value


_Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
_Limit = Annotated[int, Field(ge=1, le=100)]
_Moment = Annotated[datetime, BeforeValidator(_moment)]
_Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Labels = Annotated[tuple[_Label, ...], Field(max_length=50)]
_Tag = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_tag)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Filters(_Table):
    """The table ``[filters]`` of a profile's file; what its fields mean is told at ``ItemFilter``.

    Attributes:
        kinds, sources, relations, sessions, layers, statuses: At most 50 of 1 to 200 characters each.
        tags: At most 50 of 1 to 64 characters, without ``#``.
        since, until: Half-open, ``since`` before ``until``: times with a zone, or dates of the entity's zone.
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
    since: _Moment | None = None
    until: _Moment | None = None

    def over(self, parent: ItemFilter) -> ItemFilter:
        """Return the parent's filter with the fields that this one names in place of its own; an empty list is none.

        Raises:
            ValueError: ``until`` is not after ``since``; says so in words that name the field and the bound.
        """
        own: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        found = replace(parent, **own)
        if found.since and found.until and found.until <= found.since:
            raise ValueError(f"filters.until: must be after since, which is {iso(found.since)}")
        return found


def said(filters: ItemFilter) -> Mapping[str, tuple[str, ...] | datetime]:
    """Return the fields of a filter that restrict something, by name."""
    named = {one.name: getattr(filters, one.name) for one in fields(filters)}
    return cast(
        "Mapping[str, tuple[str, ...] | datetime]",
        {name: value for name, value in named.items() if value},
    )


def as_json(filters: ItemFilter) -> dict[str, JSON]:
    return {
        name: iso(one) if isinstance(one, datetime) else list(one)
        for name, one in said(filters).items()
    }


def in_words(filters: ItemFilter) -> str:
    """Return what a filter lets through, in one line for people; empty when it restricts nothing."""
    shown = {
        name: iso(one) if isinstance(one, datetime) else ", ".join(one)
        for name, one in said(filters).items()
    }
    return "; ".join(f"{name} {value}" for name, value in shown.items())


class Substance(_Table):
    """How much less a turn counts that tells little; see ``ranking.substance``."""

    floor: float = Field(default=0.4, ge=0, le=1)
    words: float = Field(default=10, gt=0, le=1000)


class ForKind(_Table):
    """What is otherwise for one kind of text.

    Attributes:
        perspectives: Name to weight, in place of the channel's or beside them.
        k, substance: In place of the channel's, where set.
    """

    perspectives: Mapping[str, _Weight] = Field(default_factory=dict[str, _Weight])
    k: float | None = Field(default=None, ge=0, le=1000)
    substance: Substance | None = None


class ChannelProfile(_Table):
    """How one channel is ranked.

    Attributes:
        perspectives: Name to weight; 0 leaves one out. A channel whose table is empty is that of the profile that
            it extends, of the shipped one of its name, or of ``default``.
        fusion: ``rrf`` joins ranks; ``sum`` adds signals in [0, 1], weights renormalised over those that apply.
        k: Of reciprocal rank fusion: small trusts the first ranks of each list.
        depth: Length of each perspective's list; twice the limit when that is more.
        min_similarity: Raw cosine below which the dense perspective drops a hit; None keeps all.
        pairs: Keep one fact of each unordered (subject, object).
        distinct: Keep one turn of those that say the same, and none that only asks the query's question again.
        mmr: Maximal marginal relevance with this lambda; None is off.
        led: Meaning leads: where it is sure the others count half, where it is weak twice, and words by how many of
            them match; see ``ranking.led``.
        routing: By kind of query, what some weigh instead: ``cause`` asks why, ``code`` has
            identifiers, ``intent`` asks for a purpose, ``named`` names a thing, ``exact`` quotes words.
        kinds: What is otherwise for a text of a kind: ``question``, ``advice`` (asks what to do, buy or see) or
            ``talk`` (tells more than it asks); see ``question.ask_kind``.
        without: Perspective → weights instead where its model is not installed (``colbert`` alone has one).
        latest: Put the last of several statements of one thing before the others, where the query asks about now.
        statements_first: Put turns that only ask behind all others, unless the query is after what was asked.
        freshness, novelty: Damp what is old, and what the session was shown lately.
        substance: Damp turns that tell little, but none of the first three by meaning (``dense``) that says something.
        assistant: What a turn counts that no user said: of an assistant, a tool, a system.
        speaker: How much more a turn counts whose speaker the query names.
        standing: How much more "always …" and "never …" count where the query is about how to act.
        importance: Of turns with equal scores put the one first that was stored as more important.

    Whatever these say, a hit that every finding perspective ranks first comes first, unless the caller gives weights or
    a centre, the session was shown it lately (novelty), it only asks (statements_first, distinct), or a later
    statement takes its place (latest).
    """

    perspectives: Mapping[str, _Weight] = Field(default_factory=dict[str, float])
    fusion: Literal["rrf", "sum"] = "rrf"
    k: float = Field(default=5, ge=0, le=1000)
    depth: int = Field(default=50, ge=1, le=1000)
    min_similarity: float | None = Field(default=None, ge=-1, le=1)
    pairs: bool = False
    distinct: bool = False
    mmr: float | None = Field(default=None, ge=0, le=1)
    freshness: bool = False
    novelty: bool = False
    latest: bool = False
    statements_first: bool = False
    led: bool = False
    routing: Mapping[Route, Mapping[str, _Weight]] = Field(
        default_factory=dict[Route, Mapping[str, _Weight]]
    )
    kinds: Mapping[AskKind, ForKind] = Field(default_factory=dict[AskKind, ForKind])
    without: Mapping[Literal["colbert"], Mapping[str, _Weight]] = Field(
        default_factory=dict[Literal["colbert"], Mapping[str, _Weight]]
    )
    substance: Substance | None = None
    assistant: float = Field(default=1, ge=0, le=1)
    speaker: float = Field(default=1, ge=1, le=2)
    standing: float = Field(default=1, ge=1, le=2)
    importance: bool = False

    def without_colbert(self) -> ChannelProfile:
        """Return the channel as it is where the token model is not installed."""
        instead = self.without.get("colbert")
        if not instead:
            return self
        return self.model_copy(update={"perspectives": {**self.perspectives, **instead}})

    def of_kind(self, kind: AskKind) -> ChannelProfile:
        """Return the channel as it is for a text of this kind."""
        own = self.kinds.get(kind)
        if own is None:
            return self
        changed: dict[str, object] = {"perspectives": {**self.perspectives, **own.perspectives}}
        if own.k is not None:
            changed["k"] = own.k
        if own.substance is not None:
            changed["substance"] = own.substance
        return self.model_copy(update=changed)


class _File(_Table):
    description: str = Field(default="", max_length=300)
    extends: str = ""
    channels: dict[ChannelName, ChannelProfile] = Field(
        default_factory=dict[ChannelName, ChannelProfile]
    )
    limits: dict[ChannelName, _Limit] = Field(default_factory=dict[ChannelName, _Limit])
    usual_limits: dict[ChannelName, _Limit] = Field(default_factory=dict[ChannelName, _Limit])
    max_limit: int | None = Field(default=None, ge=_USUAL_LIMIT, le=MAX_LIMIT)
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
        floor: Say what of the answer has to do with the text; the rest is not injected. See ``recall.floor``.
        filters: What alone it lets through, before ranking in every perspective and beside the caller's own filter.
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
        """Return the most results of a channel where a caller wants ``limit``, or names none (``is_usual``)."""
        most = min(limit, self.limits.get(channel, limit))
        return min(most, self.usual_limits.get(channel, most)) if is_usual else most


class Profiles:
    """The shipped profiles, the user's own, and Graphiti's recipes, by name."""

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
            tuning: What holds for every profile.
            places: Name → file, of those that are the user's own.
            own: Name → text of the user's own, each in place of one of ``files`` of its name; or why it cannot be read.
                One with a mistake is refused alone.

        Attributes:
            refused: Name → what is wrong with a profile of the user's own, with its file, key and bound.

        Raises:
            ConfigError: One of ``files`` is broken: names the profile, the key and the bound.
        """
        self.tuning = tuning or Tuning()
        self._places = places or {}
        self._settings: Settings | None = None
        self.refused: dict[str, str] = {}
        known = frozenset(PERSPECTIVES)
        parsed = {name: _parsed(f"profile {name!r}", text, known) for name, text in files.items()}
        self._shipped = {name: file for name, file in parsed.items() if file is not None}
        self._files = dict(self._shipped)
        for name, text in (own or {}).items():
            self._files.pop(name, None)
            try:
                if isinstance(text, ConfigError):
                    raise text
                file = _parsed(self._place(name), text, known)
            except ConfigError as error:
                self.refused[name] = error.message
                continue
            if file is not None:
                self._files[name] = file
        self._profiles: dict[str, Profile] = {}
        for name in self._files:
            try:
                self._profiles[name] = self._resolved(name, ())
            except ConfigError as error:
                if name not in self._places:
                    raise
                self.refused[name] = error.message

    @classmethod
    def load(cls, settings: Settings) -> Profiles:
        """Read ``config/profiles`` and ``$PPS_HOME/profiles``; a user's file replaces a shipped one of its name.

        A user's file that cannot be read, or says what no profile can, is refused alone: see ``refused``.

        Raises:
            ConfigError: The folder cannot be read.
        """
        files = {
            Path(one.name).stem: one.read_text("utf-8")
            for one in shipped("config/profiles").iterdir()
        }
        own = _own(settings)
        tuning = Tuning(
            **settings.recall.model_dump(exclude={"budget_tokens"}),
            rerank_deadline_s=settings.reranker.deadline_ms / 1000,
        )
        texts = {name: _read(file) for name, file in own.items()}
        found = cls(files, tuning, own, texts)
        found._settings = settings
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._profiles or name in RECIPES

    def look_for(self, name: str) -> None:
        """Read the files again when one has come of that name, which was not there when they were read, or was refused.

        Raises:
            ConfigError: As ``load``; what was read before stays.
        """
        if self._settings is None or name in self or name not in _own(self._settings):
            return
        self._read_again(self._settings)

    def mistakes(self) -> tuple[str, ...]:
        """Return what is wrong with profiles of the user's own, one line each; refused files are read again.

        Raises:
            ConfigError: As ``load``; what was read before stays.
        """
        if self._settings is not None and self.refused:
            self._read_again(self._settings)
        return tuple(self.refused.values())

    def _read_again(self, settings: Settings) -> None:
        found: Profiles = Profiles.load(settings)
        self._places, self._files, self._profiles = found._places, found._files, found._profiles
        self.refused = found.refused

    def get(self, name: str) -> Profile:
        """Return a profile or a recipe.

        Raises:
            InvalidRequest: There is none of that name; says which there are.
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
        """Return where a profile and those that it extends are from, by name; raises as ``get``."""
        found: dict[str, Origin] = {}
        while name:
            found[name] = self.get(name).origin
            name = self._files[name].extends if name in self._files else ""
        return found

    def all(self) -> list[Profile]:
        return [self._profiles[name] for name in sorted(self._profiles)] + [
            self.get(name) for name in RECIPES
        ]

    def _resolved(self, name: str, seen: tuple[str, ...]) -> Profile:
        # What extends a profile that was refused extends the shipped one of its name.
        file = self._files.get(name) or self._shipped.get(name)
        if name in seen or file is None:
            first = (*seen, name)[0]
            raise ConfigError(
                f"{self._place(first)}: extends: {name!r} is unknown or goes in a circle"
            )
        parent = (
            self._resolved(file.extends, (*seen, name)) if file.extends else Profile("", "", {}, {})
        )
        namesake = self._shipped.get(name, file)
        own = {
            one: self._completed(name, one, table, parent) for one, table in file.channels.items()
        }
        channels = {**parent.channels, **own}
        if not channels:
            raise ConfigError(
                f"{self._place(name)}: channels: fills no channel; give one, such as [channels.facts]"
            )
        try:
            filters = file.filters.over(parent.filters)
        except ValueError as error:
            raise ConfigError(f"{self._place(name)}: {error}") from error
        return Profile(
            name,
            file.description or parent.description or namesake.description or "A profile of yours",
            {one: channels[one] for one in CHANNELS if one in channels},
            {**parent.limits, **file.limits},
            max_limit=file.max_limit or parent.max_limit,
            origin="yours" if name in self._places else "shipped",
            filters=filters,
            floor=next(
                (said for said in (file.floor, namesake.floor) if said is not None), parent.floor
            ),
            usual_limits={**parent.usual_limits, **file.usual_limits},
        )

    def _completed(
        self, name: str, channel: ChannelName, table: ChannelProfile, parent: Profile
    ) -> ChannelProfile:
        """Return a channel whose table names no perspective as it is elsewhere, with what the table says of it."""
        if table.perspectives:
            return table
        whole = parent.channels.get(channel)
        for namesake in (name, DEFAULT_PROFILE):
            if whole is None and namesake in self._shipped:
                whole = self._shipped[namesake].channels.get(channel)
        if whole is None or not whole.perspectives:
            raise ConfigError(
                f"{self._place(name)}: channels.{channel}.perspectives: names none with a weight above 0 that finds "
                f"anything; there are {_perspectives_named()}"
            )
        said = {field: getattr(table, field) for field in table.model_fields_set}
        return whole.model_copy(update=said)

    def _place(self, name: str) -> str:
        return str(self._places.get(name, f"profile {name!r}"))


def _own(settings: Settings) -> dict[str, Path]:
    folder = settings.home / "profiles"
    try:
        return {one.stem: one for one in sorted(folder.iterdir()) if one.suffix == ".toml"}
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


def _perspectives_named() -> str:
    return ", ".join(
        name if one.finds else f"{name} (only orders)" for name, one in PERSPECTIVES.items()
    )


@lru_cache(maxsize=256)
def _parsed(place: str, text: str, known: frozenset[str]) -> _File | None:
    """Return a profile's file, checked against the perspectives that are known; None where nothing of it is left."""
    try:
        tree = parse_toml(text)
        if _drop_communities(place, tree) and not (tree["channels"] or tree.get("extends")):
            return None
        file = _File.model_validate(tree)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{place}: is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{place}: {key}: {first['msg'].removeprefix('Value error, ')}"
        ) from error
    there = _perspectives_named()
    for channel, profile in file.channels.items():
        key = f"{place}: channels.{channel}.perspectives"
        routed = {one for weights in profile.routing.values() for one in weights}
        routed.update(one for kind in profile.kinds.values() for one in kind.perspectives)
        if unknown := sorted((set(profile.perspectives) | routed) - known):
            raise ConfigError(
                f"{key}: no perspective is called {', '.join(unknown)}; there are {there}"
            )
        if profile.perspectives and not any(
            weight > 0 and PERSPECTIVES[one].finds for one, weight in profile.perspectives.items()
        ):
            raise ConfigError(
                f"{key}: names none with a weight above 0 that finds anything; there are {there}"
            )
    return file


def _drop_communities(place: str, tree: dict[str, Any]) -> bool:
    """Leave out a channel of earlier versions, which nothing ever filled: a profile that names it still opens."""
    tables = [tree[key] for key in ("channels", "limits") if isinstance(tree.get(key), dict)]
    found = [table.pop("communities") for table in tables if "communities" in table]
    if found:
        _log.warning("%s: communities: there is no such channel any more; it is left out", place)
    return bool(found) and "channels" in tree
