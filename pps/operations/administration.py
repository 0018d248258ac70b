"""Who has a memory here and who may open it: for operators and the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.values import FactDraft, NodeDraft
from pps.entities.folder import Entry
from pps.entities.page_sessions import LINK_S
from pps.ingest.rules import USER
from pps.operations.command_line import argument, option, unoffered
from pps.operations.inputs import Input, Label, Labels, Nothing
from pps.operations.installation import InstallationState, state_of, state_words
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

_LEFT_ON_NEO4J = (
    "No query finds anything of it on Neo4j. Neo4j's own files keep the deleted records until it uses their room "
    "again, its transaction logs until they are pruned, and the names of labels and properties for good."
)


class EntityInput(Input):
    """An entity, by its name."""

    name: Label = Field(description="The entity's name.", json_schema_extra=argument())


class CreateInput(EntityInput):
    """An entity to make."""

    store: Label = Field(
        default="", description="'embedded' or 'neo4j'; the setting's if not given."
    )
    packs: tuple[Label, ...] = Field(
        default=(),
        max_length=20,
        description="A pack of kinds that it gets, as pack_list names it; may be repeated.",
        json_schema_extra=option("--pack"),
    )
    time_zone: Label = Field(
        default="",
        description="Of its person, such as Europe/Lisbon: whose days 'yesterday' and 'last month' are; the setting's "
        "if not given.",
    )


class IssueInput(EntityInput):
    """A token to give out."""

    toolsets: Labels = Field(
        default=(),
        description="A toolset it opens: core, anchors, records, upkeep, perspectives, or one of the entity's packs; "
        "commas between, or repeated. All if not given.",
        json_schema_extra=option("--toolset"),
    )
    actor: Annotated[str, StringConstraints(max_length=40)] = Field(
        default="", description="Who writes with it, such as plan; the person if not given."
    )


class ListInput(Input):
    """Which entities."""

    archived: bool = Field(default=False, description="Those at rest too.")


class ArchiveInput(EntityInput):
    """An entity to put to rest or bring back."""

    undo: bool = Field(default=False, description="Bring it back.")


class CommandInput(EntityInput):
    """A command that is to read an entity's turns."""

    command: Label = Field(
        description="The command; an empty one takes it back.", json_schema_extra=unoffered()
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
    """A link to an entity's page, with its secret behind the ``#``: good once, within ``lasts_s`` seconds."""

    name: str
    url: str = field(repr=False)
    lasts_s: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """How many tokens are refused from now on."""

    revoked: int
    name: str | None = None


def _made(one: EntityView) -> str:
    token = f"\nIts token, shown this once: {one.token}" if one.token else ""
    return f"{one.name} {'is made' if one.is_new else 'is there already'}: {one.folder} ({one.store}){token}"


def _listed(entities: Sequence[EntityView]) -> str:
    lines = [
        f"{one.name}  {one.store}  since {one.created_at:%Y-%m-%d}{'  archived' if one.archived else ''}"
        for one in entities
    ]
    return "\n".join(lines) or "None yet: `pps entity create NAME` makes one."


def _shown(one: EntityView) -> str:
    rest = (
        f" is archived; `pps entity archive {one.name} --undo` brings it back"
        if one.archived
        else f" ({one.store})"
    )
    return f"{one.name}{rest}\nfolder {one.folder}"


@OWNERS_REGISTRY.operation(
    "How things are",
    state_words,
    READS,
    command="status",
    examples=("pps status", "pps status --json"),
)
async def status(app: App, _: Nothing) -> InstallationState:
    """Returns the running server, every entity with what it keeps and what waits, and what is wrong.

    On the command line it starts no server; exit code 1 where an entity cannot be used.
    """
    home, registry = app.settings.home, app.registry
    entries = await asyncio.to_thread(registry.list, include_archived=True)
    stale = {one.entity.name for one in entries if app.waits_for_its_card(one)}
    return await asyncio.to_thread(
        state_of,
        home,
        entries,
        runfile.read(home),
        problems=await app.unopenable(),
        open_names=set(app.open_names()),
        stale=stale,
    )


@REGISTRY.operation(
    "Make an entity",
    _made,
    SETS,
    command="entity create",
    examples=("pps entity create ana", "pps entity create ana --pack constitution"),
)
async def entity_create(app: App, given: CreateInput) -> EntityView:
    """Makes an entity: its folder, memory, own node and token, which is shown this once.

    Asked again after a failure it completes what is missing and shows the token then. Done before, it changes nothing
    and shows none. It is told the person's name, where the setting `person` has one.
    """
    made = await app.create(
        given.name, store=given.store or None, packs=given.packs, time_zone=given.time_zone
    )
    if made.is_new and app.settings.person:
        await _tell_name(app, made.entity.name, app.settings.person)
    entry = await asyncio.to_thread(app.registry.get, made.entity.name)
    return _entity(entry, url=address(app), token=made.token, is_new=made.is_new)


async def _tell_name(app: App, entity: str, person: str) -> None:
    """Tell a new entity the person's name as they would say it; their node has the name in any language."""
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
    _listed,
    READS,
    items="entities",
    command="entity list",
    examples=("pps entity list --archived",),
)
async def entity_list(app: App, given: ListInput) -> tuple[EntityView, ...]:
    """Returns the entities by name, with store, folder and age."""
    found = await asyncio.to_thread(app.registry.list, include_archived=given.archived)
    return tuple(map(_entity, found))


@REGISTRY.operation(
    "Show an entity", _shown, READS, command="entity show", examples=("pps entity show ana",)
)
async def entity_show(app: App, given: EntityInput) -> EntityView:
    """Returns where an entity's memory is kept, and where clients find it."""
    return _entity(await asyncio.to_thread(app.registry.get, given.name), url=address(app))


@REGISTRY.operation(
    "Put an entity to rest",
    lambda one: f"{one.name} is {'archived' if one.archived else 'back'}.",
    WITHDRAWS,
    command="entity archive",
    examples=("pps entity archive ana", "pps entity archive ana --undo"),
)
async def entity_archive(app: App, given: ArchiveInput) -> EntityView:
    """Puts an entity to rest: nothing is lost, its tokens are refused; 'undo' brings it back."""
    await _no_pool(app, given.name)
    await app.archive(given.name, undo=given.undo)
    return _entity(await asyncio.to_thread(app.registry.get, given.name))


@REGISTRY.operation(
    "Erase an entity",
    lambda one: " ".join(filter(None, (f"{one.name} is gone.", one.left))),
    ERASES,
    command="entity delete",
    examples=("pps entity delete ana --yes",),
)
async def entity_delete(app: App, given: EntityInput) -> Deleted:
    """Erases an entity with all that it remembers. It cannot be undone.

    Begun once, it is finished: by the next start of the server when a kill or an absent Neo4j cut it short.
    """
    await _no_pool(app, given.name)
    await _no_member(app, given.name)
    gone = await app.delete(given.name)
    return Deleted(given.name, left=_LEFT_ON_NEO4J if gone.store == "neo4j" else "")


@OWNERS_REGISTRY.operation(
    "Let a command read", lambda one: f"{one.name} is read by {one.command or 'no command'}.", SETS
)
async def entity_extract(app: App, given: CommandInput) -> ReaderView:
    """Lets a command of this machine read an entity's turns for facts from now on; an empty one takes that back."""
    await app.extract_by(given.name, given.command)
    return ReaderView(given.name, given.command)


@REGISTRY.operation(
    "Give out a token",
    lambda one: one.token,
    ADDS,
    command="entity token",
    examples=("pps entity token ana", "pps entity token ana --actor plan --toolset core,records"),
)
async def token_issue(app: App, given: IssueInput) -> Issued:
    """Gives out a token of an entity, shown this once; for some toolsets alone, where they are named.

    Who writes with it goes by the token: a pack of kinds says what an actor may write.
    """
    named = [one.strip() for some in given.toolsets for one in some.split(",")]
    from pps.operations.pack_tools import toolsets  # not at the top: it imports records

    known = (*TOOLSETS, *toolsets((await app.kinds_of(given.name)).packs))
    if strange := [name for name in named if name not in known]:
        raise InvalidRequest("toolsets", f"{strange[0]!r} is none of {', '.join(known)}")
    token = await asyncio.to_thread(app.registry.issue_token, given.name, named, given.actor)
    return Issued(token, given.name, given.actor, tuple(named))


@REGISTRY.operation(
    "Refuse an entity's tokens",
    lambda one: f"{one.revoked} revoked.",
    WITHDRAWS,
    command="entity token --revoke",
    examples=("pps entity token ana --revoke",),
)
async def token_revoke(app: App, given: EntityInput) -> Revoked:
    """Refuses every token of an entity from now on. Returns how many there were."""
    return Revoked(await asyncio.to_thread(app.registry.revoke_tokens, given.name), given.name)


@OWNERS_REGISTRY.operation(
    "Give out an operator's token",
    lambda one: one.token,
    ADDS,
    command="entity token --operator",
    examples=("pps entity token --operator",),
)
async def operator_issue(app: App, _: Nothing) -> Issued:
    """Gives out a token for metrics and the registry, shown this once."""
    return Issued(await asyncio.to_thread(app.registry.operator_token))


@OWNERS_REGISTRY.operation(
    "Refuse operators' tokens",
    lambda one: f"{one.revoked} revoked.",
    WITHDRAWS,
    command="entity token --operator --revoke",
    examples=("pps entity token --operator --revoke",),
)
async def operator_revoke(app: App, _: Nothing) -> Revoked:
    """Refuses every operator's token from now on. Returns how many there were."""
    return Revoked(await asyncio.to_thread(app.registry.revoke_operator_tokens))


@OWNERS_REGISTRY.operation("Open an entity's page", lambda one: one.url, ADDS)
async def page_open(app: App, given: EntityInput) -> PageLink:
    """Returns a link that opens an entity's page in a browser, once and soon.

    The browser then has a session of a week, for that entity alone; page_close ends it.
    """
    entry = await asyncio.to_thread(app.registry.get, given.name)
    if entry.archived:
        raise InvalidRequest(
            "name", f"{given.name!r} is archived; `pps entity archive {given.name} --undo` first"
        )
    await _no_pool(app, given.name)
    run = await asyncio.to_thread(runfile.read, app.settings.home)
    secret = await asyncio.to_thread(app.registry.pages.link, entry.entity)
    return PageLink(
        given.name, f"{run.url if run else address(app)}/page/{given.name}/#open={secret}", LINK_S
    )


@OWNERS_REGISTRY.operation(
    "End the sessions of an entity's page", lambda one: f"{one.revoked} ended.", SETS
)
async def page_close(app: App, given: EntityInput) -> Revoked:
    """Ends every session of an entity's page, and its links. Returns how many sessions there were."""
    entry = await asyncio.to_thread(app.registry.get, given.name)
    return Revoked(await asyncio.to_thread(app.registry.pages.revoke, entry.entity), given.name)


def address(app: App) -> str:
    """Return where clients find the server as it is set, not where one that was started by need is just now."""
    server = app.settings.server
    return RunFile(0, server.host, server.port, "", False, "").url if server.port else ""


async def _no_pool(app: App, name: str) -> None:
    if squad := await asyncio.to_thread(app.registry.squads.pool_of, name):
        raise InvalidRequest(
            "name", f"is the pool of the squad {squad!r}; `pps squad delete {squad}` erases both"
        )


async def _no_member(app: App, name: str) -> None:
    """Refuse to erase a member: what it shared is shown, and withdrawn or kept, when it leaves its squad."""
    if found := await asyncio.to_thread(app.registry.squads.of_member, name):
        remove = f"`pps squad remove {found[0].name} {found[1].id}` shows what it shared; remove it first"
        raise InvalidRequest("name", f"is a member of the squad {found[0].name!r}; {remove}")


def _entity(
    entry: Entry, *, url: str | None = None, token: str | None = None, is_new: bool | None = None
) -> EntityView:
    seen = (entry.entity.name, entry.store, str(entry.folder), entry.created_at, entry.archived)
    return EntityView(*seen, url, token, is_new)
