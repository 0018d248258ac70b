"""Who has a memory here and who may open it: for operators and the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.app import App
from pps.core.errors import InvalidRequest, PPSError
from pps.core.values import FactDraft, NodeDraft
from pps.entities.folder import Entry
from pps.entities.tokens import LINK_S
from pps.journal.outline import Outline
from pps.operations.inputs import Input, Label, Labels, Nothing, argument, option, unoffered
from pps.operations.installation import InstallationState, outlines_in, state_of, state_words
from pps.operations.table import (
    ADDS,
    ERASES,
    OWNERS_REGISTRY,
    READS,
    REGISTRY,
    SETS,
    TOOLSETS,
    WITHDRAWS,
)
from pps.server import RunFile, runfile

_WAITS_FOR_NEO4J = (
    "Neo4j is away: the graph that is published there is removed when it answers; `/health` says "
    "while it waits."
)
_LEFT_ON_NEO4J = (
    "No query finds anything of it on Neo4j. Neo4j's own files keep the deleted records until it "
    "uses their room again, its transaction logs until they are pruned, and the names of labels "
    "and properties for good."
)


class EntityInput(Input):
    """An entity, by its name."""

    name: Label = Field(description="The entity's name.", json_schema_extra=argument())


class CreateInput(EntityInput):
    """An entity to make."""

    store: Label = Field(
        default="", description="'embedded', 'postgresql' or 'neo4j'. Default: the setting."
    )
    packs: tuple[Label, ...] = Field(
        default=(),
        max_length=20,
        description="Pack of kinds to enable, from {pack_list}; may be repeated.",
        json_schema_extra=option("--pack"),
    )
    time_zone: Label = Field(
        default="",
        description="Time zone of its person, such as Europe/Lisbon: decides what 'yesterday' and "
        "'last month' are. Default: the setting.",
    )


class IssueInput(EntityInput):
    """A token to give out."""

    toolsets: Labels = Field(
        default=(),
        description="A toolset it opens: core, anchors, records, upkeep, perspectives, or one of "
        "the entity's packs; commas between, or repeated. All if not given.",
        json_schema_extra=option("--toolset"),
    )
    actor: Annotated[str, StringConstraints(max_length=40)] = Field(
        default="", description="Who writes with the token, such as plan. Default: the person."
    )


class ListInput(Input):
    """Which entities."""

    archived: bool = Field(default=False, description="True lists archived entities too.")


class ArchiveInput(EntityInput):
    """An entity to put to rest or bring back."""

    undo: bool = Field(default=False, description="True brings an archived entity back.")


class CommandInput(EntityInput):
    """A command that is to read an entity's turns."""

    command: Label = Field(
        description="The command; an empty one removes it.", json_schema_extra=unoffered()
    )


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity; ``url`` is where clients find it, ``token`` is shown once, when it is made."""

    name: str
    store: str
    folder: str
    created_at: datetime
    archived: bool
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    is_new: bool | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is gone; ``left`` says what a store keeps of it."""

    name: str
    deleted: bool = True
    left: str = ""


@dataclass(frozen=True, slots=True)
class ReaderView:
    """Which command reads an entity's turns."""

    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, shown this once."""

    token: str = field(repr=False)
    name: str | None = None
    actor: str | None = None
    toolsets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to an entity's page with a secret after the ``#``, valid once within ``lasts_s`` s."""

    name: str
    url: str = field(repr=False)
    lasts_s: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """How many tokens are refused from now on."""

    revoked: int
    name: str | None = None


def _created_text(entity: EntityView) -> str:
    token = f"\nIts token, shown this once: {entity.token}" if entity.token else ""
    return (
        f"{entity.name} {'is made' if entity.is_new else 'is there already'}: {entity.folder} "
        f"({entity.store}){token}"
    )


def _entities_text(entities: Sequence[EntityView]) -> str:
    lines = [
        f"{entity.name}  {entity.store}  since "
        f"{entity.created_at:%Y-%m-%d}{'  archived' if entity.archived else ''}"
        for entity in entities
    ]
    return "\n".join(lines) or "None yet: `pps entity create NAME` makes one."


def _entity_text(entity: EntityView) -> str:
    rest = (
        f" is archived; `pps entity archive {entity.name} --undo` brings it back"
        if entity.archived
        else f" ({entity.store})"
    )
    return f"{entity.name}{rest}\nfolder {entity.folder}"


@OWNERS_REGISTRY.operation(
    "Show server and entities",
    state_words,
    READS,
    command="status",
    examples=("pps status", "pps status --json"),
)
async def status(app: App, _: Nothing) -> InstallationState:
    """Returns the running server, every entity with what it holds and what waits, and problems.

    On the command line it starts no server; the exit code is 1 if an entity cannot be used.
    """
    home = app.settings.home
    registry = app.registry
    entries = await asyncio.to_thread(registry.list, include_archived=True)
    stale = {entry.entity.name for entry in entries if app.waits_for_its_card(entry)}
    outlines = await _outlines_on_postgresql(app, entries)
    return await asyncio.to_thread(
        state_of,
        home,
        entries,
        runfile.read(home),
        problems=await app.unopenable(),
        open_names=set(app.open_names()),
        stale=stale,
        outlines=outlines,
    )


async def _outlines_on_postgresql(
    app: App, entries: Sequence[Entry]
) -> Mapping[str, Outline | str]:
    names = [entry.entity.name for entry in entries if entry.store == "postgresql"]
    if not names:
        return {}
    try:
        database = await app.database()
    except PPSError as error:
        return dict.fromkeys(names, error.message)
    return await asyncio.to_thread(outlines_in, database, entries)


@REGISTRY.operation(
    "Make an entity",
    _created_text,
    SETS,
    command="entity create",
    examples=("pps entity create ana", "pps entity create ana --pack constitution"),
)
async def entity_create(app: App, request: CreateInput) -> EntityView:
    """Makes an entity: its folder, memory, own node and token, which is shown only once.

    Called again after a failure, it completes what is missing and shows the token. If the entity
    exists, it changes nothing and shows no token. The entity learns the person's name if the
    setting `person` has one.
    """
    made = await app.create(
        request.name, store=request.store or None, packs=request.packs, time_zone=request.time_zone
    )
    if made.is_new and app.settings.person:
        await _tell_name(app, made.entity.name, app.settings.person)
    entry = await asyncio.to_thread(app.registry.get, made.entity.name)
    return _entity(entry, url=address(app), token=made.token, is_new=made.is_new)


async def _tell_name(app: App, entity: str, person: str) -> None:
    """Tell a new entity the person's name as they would say it.

    Their node has the name in any language.
    """
    from pps.ingest.rules import USER  # not at the top: a server starts without what reads texts

    names = tuple(dict.fromkeys((person, person.split()[0])))
    text = f"My name is {person}."
    async with app.memory(entity) as memory:
        await memory.remember(
            text,
            source="pps init",
            source_ref="person",
            nodes=[NodeDraft(USER, "Person", aliases=names)],
            facts=[FactDraft(USER, "NAMED", person, text=text)],
        )


@REGISTRY.operation(
    "List the entities",
    _entities_text,
    READS,
    items="entities",
    command="entity list",
    examples=("pps entity list --archived",),
)
async def entity_list(app: App, request: ListInput) -> tuple[EntityView, ...]:
    """Returns the entities by name, with store, folder and age."""
    entries = await asyncio.to_thread(app.registry.list, include_archived=request.archived)
    return tuple(map(_entity, entries))


@REGISTRY.operation(
    "Show an entity", _entity_text, READS, command="entity show", examples=("pps entity show ana",)
)
async def entity_show(app: App, request: EntityInput) -> EntityView:
    """Returns where an entity's memory is kept, and where clients find it."""
    return _entity(await asyncio.to_thread(app.registry.get, request.name), url=address(app))


@REGISTRY.operation(
    "Archive an entity",
    lambda entity: f"{entity.name} is {'archived' if entity.archived else 'back'}.",
    WITHDRAWS,
    command="entity archive",
    examples=("pps entity archive ana", "pps entity archive ana --undo"),
)
async def entity_archive(app: App, request: ArchiveInput) -> EntityView:
    """Archives an entity: nothing is lost, and its tokens are refused.

    {undo} brings it back.
    """
    await _no_pool(app, request.name)
    await app.archive(request.name, undo=request.undo)
    return _entity(await asyncio.to_thread(app.registry.get, request.name))


@REGISTRY.operation(
    "Erase an entity",
    lambda deleted: " ".join(filter(None, (f"{deleted.name} is gone.", deleted.left))),
    ERASES,
    command="entity delete",
    examples=("pps entity delete ana --yes",),
)
async def entity_delete(app: App, request: EntityInput) -> Deleted:
    """Erases an entity with its whole memory.

    It cannot be undone. If the server is killed meanwhile, its next start finishes the deletion.
    Its graph on Neo4j is removed too, when Neo4j answers.
    """
    await _no_pool(app, request.name)
    await _no_member(app, request.name)
    gone = await app.delete(request.name)
    if not gone.was_published:
        return Deleted(request.name)
    waiting = await asyncio.to_thread(app.registry.unpublishing.groups)
    is_left = gone.entity.group in waiting
    return Deleted(request.name, left=_WAITS_FOR_NEO4J if is_left else _LEFT_ON_NEO4J)


@OWNERS_REGISTRY.operation(
    "Set an entity's extraction command",
    lambda reader: f"{reader.name} is read by {reader.command or 'no command'}.",
    SETS,
)
async def entity_extract(app: App, request: CommandInput) -> ReaderView:
    """Sets the command of this machine that finds facts in an entity's turns from now on.

    An empty command removes it.
    """
    await app.extract_by(request.name, request.command)
    return ReaderView(request.name, request.command)


@REGISTRY.operation(
    "Make a token",
    lambda issued: issued.token,
    ADDS,
    command="entity token",
    examples=("pps entity token ana", "pps entity token ana --actor plan --toolset core,records"),
)
async def token_issue(app: App, request: IssueInput) -> Issued:
    """Makes a token of an entity, shown only once.

    It is limited to the named toolsets, if any. The token also says who writes: a pack of kinds
    says what each actor may write.
    """
    named = [toolset.strip() for listed in request.toolsets for toolset in listed.split(",")]
    from pps.operations.pack_tools import toolsets  # not at the top: it imports records

    known = (*TOOLSETS, *toolsets((await app.kinds_of(request.name)).packs))
    unknown = [name for name in named if name not in known]
    if unknown:
        raise InvalidRequest("toolsets", f"{unknown[0]!r} is none of {', '.join(known)}")
    token = await asyncio.to_thread(app.registry.issue_token, request.name, named, request.actor)
    return Issued(token, request.name, request.actor, tuple(named))


@REGISTRY.operation(
    "Revoke an entity's tokens",
    lambda revoked: f"{revoked.revoked} revoked.",
    WITHDRAWS,
    command="entity token --revoke",
    examples=("pps entity token ana --revoke",),
)
async def token_revoke(app: App, request: EntityInput) -> Revoked:
    """Revokes every token of an entity.

    Returns how many there were.
    """
    return Revoked(await asyncio.to_thread(app.registry.revoke_tokens, request.name), request.name)


@OWNERS_REGISTRY.operation(
    "Make an operator's token",
    lambda issued: issued.token,
    ADDS,
    command="entity token --operator",
    examples=("pps entity token --operator",),
)
async def operator_issue(app: App, _: Nothing) -> Issued:
    """Makes a token for metrics and the registry, shown only once."""
    return Issued(await asyncio.to_thread(app.registry.operator_token))


@OWNERS_REGISTRY.operation(
    "Revoke operators' tokens",
    lambda revoked: f"{revoked.revoked} revoked.",
    WITHDRAWS,
    command="entity token --operator --revoke",
    examples=("pps entity token --operator --revoke",),
)
async def operator_revoke(app: App, _: Nothing) -> Revoked:
    """Revokes every operator's token.

    Returns how many there were.
    """
    return Revoked(await asyncio.to_thread(app.registry.revoke_operator_tokens))


@OWNERS_REGISTRY.operation("Open an entity's page", lambda page_link: page_link.url, ADDS)
async def page_open(app: App, request: EntityInput) -> PageLink:
    """Returns a link that opens an entity's page in a browser.

    It works once, within a minute. The browser then has a session of a week, for that entity alone;
    {page_close} ends it.
    """
    entry = await asyncio.to_thread(app.registry.get, request.name)
    if entry.archived:
        raise InvalidRequest(
            "name",
            f"{request.name!r} is archived; `pps entity archive {request.name} --undo` first",
        )
    await _no_pool(app, request.name)
    run = await asyncio.to_thread(runfile.read, app.settings.home)
    secret = await asyncio.to_thread(app.registry.pages.link, entry.entity)
    return PageLink(
        request.name,
        f"{run.url if run else address(app)}/page/{request.name}/#open={secret}",
        LINK_S,
    )


@OWNERS_REGISTRY.operation(
    "End the sessions of an entity's page", lambda revoked: f"{revoked.revoked} ended.", SETS
)
async def page_close(app: App, request: EntityInput) -> Revoked:
    """Ends every session of an entity's page, and its links.

    Returns how many sessions there were.
    """
    entry = await asyncio.to_thread(app.registry.get, request.name)
    return Revoked(await asyncio.to_thread(app.registry.pages.revoke, entry.entity), request.name)


def address(app: App) -> str:
    """Return the server's address by the settings, not that of a server started by need."""
    server = app.settings.server
    return RunFile(0, server.host, server.port, "", False, "").url if server.port else ""


async def _no_pool(app: App, name: str) -> None:
    """Raise InvalidRequest if an entity is the pool of a squad."""
    squad = await asyncio.to_thread(app.registry.squads.pool_of, name)
    if squad:
        raise InvalidRequest(
            "name", f"is the pool of the squad {squad!r}; `pps squad delete {squad}` erases both"
        )


async def _no_member(app: App, name: str) -> None:
    """Raise InvalidRequest if an entity is a squad's member, whose copies must be settled first."""
    membership = await asyncio.to_thread(app.registry.squads.of_member, name)
    if membership:
        squad, member = membership
        remove = (
            f"`pps squad remove {squad.name} {member.id}` shows what it shared; remove it first"
        )
        raise InvalidRequest("name", f"is a member of the squad {squad.name!r}; {remove}")


def _entity(
    entry: Entry, *, url: str | None = None, token: str | None = None, is_new: bool | None = None
) -> EntityView:
    return EntityView(
        entry.entity.name,
        entry.store,
        str(entry.folder),
        entry.created_at,
        entry.archived,
        url,
        token,
        is_new,
    )
