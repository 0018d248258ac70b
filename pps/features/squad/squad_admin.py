"""Which agents share a pool: squads and their members, for operators and the owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.entities.memberships import Squad
from pps.features.squad import sharing, squad_members
from pps.features.squad.desk import Desk, desk_of, rules_of
from pps.features.squad.openclaw_files import Taken, take_in
from pps.features.squad.sharing import WithdrawnRecord
from pps.features.squad.squad_members import introduce
from pps.operations.administration import Deleted
from pps.operations.exchange import LocalPath
from pps.operations.inputs import Input, Label, Nothing, argument, option
from pps.operations.pages import NOTHING_CHANGED
from pps.operations.table import ADDS, ERASES, OWNERS_REGISTRY, READS, REGISTRY, SETS

Binding = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*=[a-z][a-z0-9_]*$", max_length=100)
]


class SquadInput(Input):
    """A squad, by its name."""

    name: Label = Field(description="The squad's name.", json_schema_extra=argument())


class SquadCreateInput(SquadInput):
    """A squad to make."""

    file: Label = Field(
        default="openclaw",
        description=(
            "Name of a squad's file: one in squads/ of the data folder, or 'openclaw', the "
            "shipped squad of six."
        ),
        json_schema_extra=option("--from"),
    )
    members: tuple[Binding, ...] = Field(
        default=(),
        max_length=50,
        description=(
            "member=entity: the existing entity becomes this member; may be repeated. "
            "Entities for other members are made."
        ),
        json_schema_extra=option("--member"),
    )
    store: Label = Field(
        default="",
        description="Store of the new memories: 'embedded', 'postgresql' or 'neo4j'. Default: the "
        "setting.",
    )


class MemberInput(SquadInput):
    """A member of a squad."""

    member: Label = Field(
        description="Id of the member in the squad's file.", json_schema_extra=argument()
    )


class SquadAddInput(MemberInput):
    """A member to add."""

    entity: Label = Field(
        default="",
        description="Name of an existing entity. Default: a new one is made.",
        json_schema_extra=argument(default=""),
    )


class SquadRemoveInput(MemberInput):
    """A member to remove."""

    keep: bool = Field(default=False, description="True keeps what the member shared in the pool.")
    dry_run: bool = Field(
        default=True,
        description="True only lists what would be withdrawn.",
        json_schema_extra=option("--yes", inverts=True),
    )


class SquadImportInput(MemberInput):
    """A folder to take in, and whose memory it goes into."""

    path: LocalPath = Field(
        description="The folder, absolute.",
        json_schema_extra=argument(path=True, help="The folder."),
    )


@dataclass(frozen=True, slots=True)
class RemovedMember:
    """A former member, and what was withdrawn from the pool with it.

    Attributes:
        withdrawn: Ids; ``records`` has them with titles and owners.
        weaker: What stays with another confidence, by id.
        marked: Records of others that stay, though they cite what goes.
    """

    name: str
    member: str
    withdrawn: tuple[str, ...]
    weaker: dict[str, float]
    dry_run: bool
    records: tuple[WithdrawnRecord, ...] = ()
    marked: tuple[WithdrawnRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member; ``token`` is shown once, when its memory is made for the squad."""

    id: str
    title: str
    role: str
    entity: str
    token: str | None = field(default=None, repr=False)
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SquadView:
    """A squad; ``missing`` has the members of its file that are none yet."""

    name: str
    pool: str
    gate: str
    created_at: datetime
    members: tuple[MemberView, ...]
    missing: tuple[str, ...] = ()


def _squad_text(squad: SquadView) -> str:
    lines = [
        f"{squad.name}  pool {squad.pool}, gate {squad.gate}, since {squad.created_at:%Y-%m-%d}"
    ]
    for member in squad.members:
        token = f"\n    its token, shown this once: {member.token}" if member.token else ""
        lines.append(f"  {member.id}  {member.role}  {member.entity}{token}")
    lines += [
        f"  {name}  is no member yet: `pps squad add {squad.name} {name}`" for name in squad.missing
    ]
    return "\n".join(lines)


def _removed_text(removed: RemovedMember) -> str:
    would = "would leave" if removed.dry_run else "has left"
    verb = "go" if removed.dry_run else "are gone"
    lines = [
        (
            f"{removed.member} {would} {removed.name}; {len(removed.withdrawn)} records of the "
            f"pool {verb} with it"
        )
    ]
    lines += [
        f"  {record.kind} {record.title} of {record.owner} ({record.id[:8]})"
        for record in removed.records
    ]
    lines += [
        f"  stays, its citation marked: {record.kind} {record.title} of {record.owner} "
        f"({record.id[:8]})"
        for record in removed.marked
    ]
    if removed.dry_run:
        lines += ["With --keep what it shared stays.", NOTHING_CHANGED]
    return "\n".join(lines)


def _view(squad: Squad, tokens: dict[str, str] | None = None) -> SquadView:
    rules = rules_of(squad)
    members = tuple(
        MemberView(
            member.id,
            rules.members[member.id].title,
            member.role,
            member.entity.name,
            (tokens or {}).get(member.id),
            tuple(rules.members[member.id].aliases),
        )
        for member in squad.members.values()
        if member.id in rules.members
    )
    missing = tuple(name for name in rules.members if name not in squad.members)
    return SquadView(
        squad.name, squad.pool.name, rules.pool.gate, squad.created_at, members, missing
    )


@asynccontextmanager
async def _desk(app: App, request: MemberInput) -> AsyncGenerator[Desk]:
    squad = await asyncio.to_thread(app.registry.squads.get, request.name)
    member = rules_of(squad).member(request.member)
    if member not in squad.members:
        raise NotFound("member")
    async with desk_of(app, squad.members[member].entity) as desk:
        yield desk


@REGISTRY.operation(
    "Make a squad",
    _squad_text,
    SETS,
    command="squad create",
    examples=("pps squad create team --from openclaw", "pps squad create team --member kublai=ana"),
)
async def squad_create(app: App, request: SquadCreateInput) -> SquadView:
    """Makes a squad: a pool for what its members share, and a memory for each member without one.

    Called again, it only updates the rules from a changed file. Returns the members, with the
    tokens of new memories, shown only once.
    """
    bound = dict(member.split("=", 1) for member in request.members)
    if len(set(bound.values())) < len(request.members):
        raise InvalidRequest("members", "must bind each member and each entity once")
    made = await squad_members.found(app, request.name, request.file, bound, request.store or None)
    return _view(made.squad, dict(made.tokens))


@REGISTRY.operation(
    "Show a squad", _squad_text, READS, command="squad show", examples=("pps squad show team",)
)
async def squad_show(app: App, request: SquadInput) -> SquadView:
    """Returns a squad's pool and members."""
    return _view(await asyncio.to_thread(app.registry.squads.get, request.name))


@REGISTRY.operation(
    "List the squads",
    lambda squads: (
        "\n".join(map(_squad_text, squads)) or "None yet: `pps squad create NAME` makes one."
    ),
    READS,
    items="squads",
    command="squad list",
    examples=("pps squad list",),
)
async def squad_list(app: App, _: Nothing) -> tuple[SquadView, ...]:
    """Returns the squads with their members."""
    return tuple(map(_view, await asyncio.to_thread(app.registry.squads.list)))


@REGISTRY.operation(
    "Add a member",
    _squad_text,
    SETS,
    command="squad add",
    examples=("pps squad add team kublai ana",),
)
async def squad_add(app: App, request: SquadAddInput) -> SquadView:
    """Adds an entity to a squad as a member, or makes an entity for it.

    An entity belongs to at most one squad.
    """
    squad = await asyncio.to_thread(app.registry.squads.get, request.name)
    token = await squad_members.join(app, squad, request.member, request.entity)
    await introduce(app, squad)
    rules = rules_of(squad)
    tokens = {rules.member(request.member): token} if token else {}
    return _view(await asyncio.to_thread(app.registry.squads.get, request.name), tokens)


@REGISTRY.operation(
    "Remove a member",
    _removed_text,
    ERASES,
    command="squad remove",
    examples=("pps squad remove team kublai", "pps squad remove team kublai --yes --keep"),
)
async def squad_remove(app: App, request: SquadRemoveInput) -> RemovedMember:
    """Removes a member from its squad, and its shared copies from the pool unless {keep} is set.

    Its own memory stays. Records of other members stay; those that cite a removed copy are marked.
    By default it is a dry run: it lists the copies that would be withdrawn and the records that
    would be marked, with titles and owners.
    """
    async with _desk(app, request) as desk:
        withdrawal = await sharing.leave(desk, keep=request.keep, dry_run=request.dry_run)
    return RemovedMember(
        desk.squad.name,
        desk.me.id,
        withdrawal.gone,
        dict(withdrawal.weaker),
        withdrawal.dry_run,
        withdrawal.records,
        withdrawal.marked,
    )


@REGISTRY.operation(
    "Erase a squad",
    lambda deleted: f"{deleted.name} is gone, with its pool.",
    ERASES,
    command="squad delete",
    examples=("pps squad delete team --yes",),
)
async def squad_delete(app: App, request: SquadInput) -> Deleted:
    """Erases a squad and its pool.

    The members keep their own memories.
    """
    await squad_members.disband(app, await asyncio.to_thread(app.registry.squads.get, request.name))
    return Deleted(request.name)


@REGISTRY.operation(
    "Make a new token for a member",
    _squad_text,
    SETS,
    command="squad token",
    examples=("pps squad token team kublai",),
)
async def squad_token(app: App, request: MemberInput) -> SquadView:
    """Makes a new token for a member's memory; earlier tokens stay valid.

    Returns the squad with the token, shown only once.
    """
    squad = await asyncio.to_thread(app.registry.squads.get, request.name)
    member = rules_of(squad).member(request.member)
    if member not in squad.members:
        raise NotFound("member")
    entity = squad.members[member].entity
    token = await asyncio.to_thread(app.registry.issue_token, entity.name)
    return _view(squad, {member: token})


@OWNERS_REGISTRY.operation(
    "Import OpenClaw's files",
    lambda taken: (
        f"{taken.new} new of {sum(taken.records.values())} records; anchors: "
        f"{', '.join(taken.anchors) or 'none'}"
        + (f"; not read: {', '.join(taken.skipped)}" if taken.skipped else "")
    ),
    ADDS,
    command="squad import",
    examples=("pps squad import team kublai ~/openclaw",),
)
async def squad_import(app: App, request: SquadImportInput) -> Taken:
    """Imports OpenClaw's files into a member's own memory.

    Importing again adds nothing, and nothing is shared. MEMORY.md becomes beliefs, memory/*.md
    experiences of their days, HEARTBEAT.md documentation, IDENTITY.md what the agent says of itself
    (AgentState); SOUL.md, USER.md, AGENTS.md and TOOLS.md anchors that every session starts with.
    """
    async with _desk(app, request) as desk:
        return await take_in(desk, Path(request.path))
