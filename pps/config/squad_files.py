"""Squads of agents as files: who they are, who hears of what, who may approve what.

Every mistake with its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pps.config.border import problems
from pps.config.pack_reading import MAX_BYTES, Mistake
from pps.config.packaged import shipped
from pps.config.packs import shipped_pack
from pps.config.toml_lines import TomlLines
from pps.core.errors import ConfigError, InvalidRequest
from pps.core.user_files import parse_toml, read_text

PACK = "squad"
"""The pack of kinds that members and pool have."""
Gate: TypeAlias = Literal["confidence", "approve", "risk"]
Tier: TypeAlias = Literal["direct", "pool", "orchestrator", "analyst", "ops"]

_Text = Annotated[str, Field(max_length=500)]
_Texts = Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)]
_MemberId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,19}$")]
_Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolRules(_Part):
    """How a record gets into the pool: at once, or after a review, for all or for risky kinds only.

    Attributes:
        steps: Step of an approved improvement → roles that may take another's improvement there.
        unasked: Packs of members (``ambient_recall`` and hooks) have a section with what the pool
            shares about the prompt.
    """

    gate: Gate = "confidence"
    share_from: _Share = 0.7
    risky: _Texts = []
    reviewers: _Texts = []
    steps: dict[Literal["implementing", "measuring", "complete"], _Texts] = {
        "measuring": ["analyst"]
    }
    unasked: bool = True


class MemberRules(_Part):
    """Who a member is; types of what it makes and takes are advice."""

    title: _Text = ""
    aliases: _Texts = []
    role: Annotated[str, Field(min_length=1, max_length=100)]
    capabilities: _Texts = []
    personality: _Text = ""
    output_types: _Texts = []
    input_types: _Texts = []
    heartbeat_minute: int = Field(default=0, ge=0, le=59)
    minimum: Annotated[str, Field(max_length=200)] = ""


class BroadcastRule(_Part):
    """What goes to everyone: what is not given is any."""

    kinds: _Texts = []
    source: str = Field(default="", alias="from")
    states: _Texts = []


class BroadcastRules(_Part):
    """What goes to everyone, in batches of an interval."""

    interval: timedelta = timedelta(0)
    rules: list[BroadcastRule] = Field(default=[], max_length=50)


class Subscription(_Part):
    """Who hears of whose records; no ``interval`` is at once, and what is not given is any."""

    to: str
    source: str = Field(default="", alias="from")
    kinds: _Texts = []
    domains: _Texts = []
    min_confidence: _Share = 0
    interval: timedelta = timedelta(0)
    tier: Tier = "direct"


class Tie(_Part):
    """Who works with whom on what."""

    source: str = Field(alias="from")
    type: Literal["IMPROVES_WITH", "ANALYZES_FOR"]
    to: str
    domain: Annotated[str, Field(max_length=100)] = ""


class _File(_Part):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    about: _Text = ""
    pool: PoolRules = PoolRules()
    members: Annotated[dict[_MemberId, MemberRules], Field(min_length=2, max_length=50)]
    broadcast: BroadcastRules = BroadcastRules()
    subscriptions: list[Subscription] = Field(default=[], max_length=500)
    ties: list[Tie] = Field(default=[], max_length=500)


@dataclass(frozen=True)
class SquadRules:
    """A squad's file."""

    text: str = field(repr=False)
    name: str
    about: str
    pool: PoolRules
    members: Mapping[str, MemberRules]
    broadcast: BroadcastRules
    subscriptions: tuple[Subscription, ...]
    ties: tuple[Tie, ...]

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Every name of a member → its id."""
        return {
            name: id_ for id_, member in self.members.items() for name in (id_, *member.aliases)
        }

    def member(self, name: str, field_name: str = "member") -> str:
        """Return a member's id for its id or alias.

        InvalidRequest names the members that there are.
        """
        if name not in self.aliases:
            raise InvalidRequest(
                field_name, f"{name!r} is no member; there are {', '.join(self.members)}"
            )
        return self.aliases[name]


def read_squad(text: str) -> tuple[SquadRules | None, tuple[Mistake, ...]]:
    """Return the squad that a TOML text is, or None and its mistakes by their lines."""
    if len(text.encode()) > MAX_BYTES:
        return None, (Mistake(1, "", f"the file is longer than {MAX_BYTES:,} bytes"),)
    try:
        tree = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        message, _, at = str(error).partition(" (at line ")
        return None, (
            Mistake(
                int(at.partition(",")[0] or len(text.splitlines()) or 1),
                "",
                f"not valid TOML: {message}",
            ),
        )
    lines = TomlLines(text)
    file = None
    wrong = list[tuple[str, str]]()
    try:
        file = _File.model_validate(tree)
        wrong = [*_find_mistakes(file)]
    except ValidationError as error:
        wrong = [
            (problem.path, "unknown key" if problem.unknown else problem.problem)
            for problem in problems(error, _File)
        ]
    if file is None or wrong:
        mistakes = [
            Mistake(lines.line(path.split("."), path.rpartition(".")[2]), path, problem)
            for path, problem in wrong
        ]
        return None, tuple(sorted(mistakes, key=lambda mistake: mistake.line))
    rest = (
        file.name,
        file.about,
        file.pool,
        file.members,
        file.broadcast,
        tuple(file.subscriptions),
    )
    return SquadRules(text, *rest, tuple(file.ties)), ()


def _find_mistakes(file: _File) -> Iterator[tuple[str, str]]:
    """Yield path and problem of each mistake, such as an unknown member, kind or state."""
    names = [name for id_, member in file.members.items() for name in (id_, *member.aliases)]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        yield "members", f"the name {min(repeated)!r} is of two members"
    pack = shipped_pack(PACK)
    states = {
        state for kind in pack.kinds.values() if kind.lifecycle for state in kind.lifecycle.states
    }
    uses = [("pool.reviewers", name, file.members) for name in file.pool.reviewers]
    uses += [("pool.risky", kind, pack.kinds) for kind in file.pool.risky]
    for number, subscription in enumerate(file.subscriptions):
        at = f"subscriptions.{number}"
        uses += [
            (f"{at}.to", subscription.to, file.members),
            *((f"{at}.kinds", kind, pack.kinds) for kind in subscription.kinds),
        ]
        uses += [(f"{at}.from", subscription.source, file.members)] if subscription.source else []
    uses += [
        (f"ties.{at}", who, file.members)
        for at, tie in enumerate(file.ties)
        for who in (tie.source, tie.to)
    ]
    for number, rule in enumerate(file.broadcast.rules):
        at = f"broadcast.rules.{number}"
        uses += [*((f"{at}.kinds", kind, pack.kinds) for kind in rule.kinds)]
        uses += [(f"{at}.states", state, dict.fromkeys(states)) for state in rule.states]
        uses += [(f"{at}.from", rule.source, file.members)] if rule.source else []
    yield from ((path, f"there is no {name!r}") for path, name, known in uses if name not in known)
    if file.pool.gate != "confidence" and not file.pool.reviewers:
        yield "pool.gate", "needs reviewers: name a member in pool.reviewers"


@lru_cache(maxsize=64)
def squad_rules(text: str) -> SquadRules:
    """Return the rules in a squad's file.

    Raises:
        ConfigError: The file has mistakes; the first are named.
    """
    rules, mistakes = read_squad(text)
    if rules is None:
        raise ConfigError(f"the squad's file: {'; '.join(map(str, mistakes[:3]))}")
    return rules


def load_squad(home: Path, name: str) -> SquadRules:
    """Return a squad's rules from the data folder's ``squads``, a shipped file, or a path.

    Raises:
        InvalidRequest: There is no such file.
        ConfigError: It has mistakes; the first are named with their lines.
    """
    own = Path(name) if name.endswith(".toml") else home / "squads" / f"{name}.toml"
    try:
        text = read_text(own)
    except FileNotFoundError:
        shipped_files = {
            file.name.removesuffix(".toml"): file for file in shipped("config/squads").iterdir()
        }
        if name not in shipped_files:
            raise InvalidRequest(
                "from",
                f"there is no {own} and no squad {name!r}; there are {', '.join(shipped_files)}",
            ) from None
        return squad_rules(shipped_files[name].read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{own}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{own}: cannot be read as UTF-8 text") from None
    return squad_rules(text)
