"""Who has a memory here, who may open it, and which folders lead to it: for operators and the owner."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from pydantic import Field

from pps.app import App
from pps.entities import Entry, MappedFolder, RouterEntry
from pps.entities.paths import MAX_PATH
from pps.entities.routing import MAX_LABEL
from pps.operations.command_line import argument, option, unoffered
from pps.operations.inputs import Input, Label, Nothing
from pps.operations.table import ADDS, ERASES, READS, SETS, TOOLSETS, operation
from pps.server import RunFile

_LEFT_ON_NEO4J = (
    "No query finds anything of it on Neo4j. Neo4j's own files keep the deleted records until it uses their room "
    "again, its transaction logs until they are pruned, and the names of labels and properties for good."
)


class Named(Input):
    """An entity, by its name."""

    name: Label = Field(description="The entity's name.", json_schema_extra=argument())


class CreateInput(Named):
    """An entity to make."""

    store: Label = Field(default="", description="'embedded' or 'neo4j'; the setting's if not given.")


class IssueInput(Named):
    """A token to give out."""

    toolsets: tuple[Literal["core", "anchors", "records", "upkeep"], ...] = Field(
        default=(),
        max_length=len(TOOLSETS),
        description="The only toolsets that it opens; all if not given.",
        json_schema_extra=option("--toolset"),
    )


class ListInput(Input):
    """Which entities."""

    archived: bool = Field(default=False, description="Those at rest too.")


class ArchiveInput(Named):
    """An entity to put to rest or bring back."""

    undo: bool = Field(default=False, description="Bring it back.")


class CommandInput(Named):
    """A command that is to read an entity's turns."""

    command: Label = Field(description="The command; an empty one takes it back.", json_schema_extra=unoffered())


class FolderInput(Input):
    """A project's folder."""

    path: str = Field(
        max_length=MAX_PATH, description="The project's folder, absolute.", json_schema_extra=argument(path=True)
    )


class RouteInput(FolderInput):
    """A project's folder and whose it is."""

    entity: Label = Field(description="The entity's name.", json_schema_extra=argument())


class WatchedInput(Input):
    """Whose folders."""

    name: Label = Field(default="", description="Only this entity's.", json_schema_extra=argument())


class RouterInput(Input):
    """What a router may reach."""

    roots: tuple[str, ...] = Field(
        description="Absolute paths: projects at or below these.", json_schema_extra=argument(path=True)
    )
    label: str = Field(default="", max_length=MAX_LABEL, description="What it is for.")
    may_create: bool = Field(
        default=False,
        description="Make memories of projects without one.",
        json_schema_extra=option("--create/--no-create", default=True),
    )


class RouterIdInput(Input):
    """Which router."""

    id: Label = Field(description="Its id, as a list of routers shows it.", json_schema_extra=argument())


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
class Entities:
    """The entities by name."""

    entities: tuple[EntityView, ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is gone; ``left`` says what a store keeps of it."""

    name: str
    deleted: bool = True
    left: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Which command reads an entity's turns."""

    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, shown this once."""

    token: str = field(repr=False)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Revoked:
    """How many tokens are refused from now on."""

    revoked: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class RouteView:
    """A mapped folder and its entity. ``archived`` ones lead nowhere."""

    path: str
    entity: str
    created_at: datetime
    archived: bool


@dataclass(frozen=True, slots=True)
class RouteViews:
    """The mapped folders."""

    routes: tuple[RouteView, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose a path is; nobody's when ``entity`` is not there."""

    entity: str | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """A folder that is mapped no longer."""

    path: str
    removed: bool = True


@dataclass(frozen=True, slots=True)
class FolderView:
    """A folder that an entity follows."""

    path: str
    entity: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders that are followed."""

    folders: tuple[FolderView, ...]


@dataclass(frozen=True, slots=True)
class RouterView:
    """A router; ``token`` is shown once, when it is made."""

    id: str
    label: str
    roots: tuple[str, ...]
    may_create: bool
    created_at: datetime
    url: str | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Routers:
    """The routers, oldest first."""

    routers: tuple[RouterView, ...]


@dataclass(frozen=True, slots=True)
class RouterGone:
    """A router that is refused from now on."""

    id: str
    revoked: bool = True


def _made(one: EntityView) -> str:
    token = f"\nIts token, shown this once: {one.token}" if one.token else ""
    return f"{one.name} {'is made' if one.is_new else 'is there already'}: {one.folder} ({one.store}){token}"


def _listed(value: Entities) -> str:
    lines = [
        f"{one.name}  {one.store}  since {one.created_at:%Y-%m-%d}{'  archived' if one.archived else ''}"
        for one in value.entities
    ]
    return "\n".join(lines) or "None yet: `pps entity create NAME` makes one."


def _shown(one: EntityView) -> str:
    rest = f" is archived; `pps entity archive {one.name} --undo` brings it back" if one.archived else f" ({one.store})"
    return f"{one.name}{rest}\nfolder {one.folder}"


def _routes(value: RouteViews) -> str:
    lines = [f"{one.path}  {one.entity}{'  archived' if one.archived else ''}" for one in value.routes]
    return "\n".join(lines) or "None yet: `pps route add PATH ENTITY` maps one."


def _folders(value: Folders) -> str:
    lines = [f"{one.entity}  {one.path}" for one in value.folders]
    return "\n".join(lines) or "None: `pps watch add NAME FOLDER` adds one."


def _routers(value: Routers) -> str:
    lines = [
        "  ".join(filter(None, (one.id, " ".join(one.roots), "" if one.may_create else "makes none", one.label)))
        for one in value.routers
    ]
    return "\n".join(lines) or "None yet: `pps router create ROOT` makes one."


@operation(
    "Make an entity",
    _made,
    SETS,
    audience="operator",
    toolset="registry",
    command="entity create",
    examples=("pps entity create ana",),
)
async def entity_create(app: App, given: CreateInput) -> EntityView:
    """Makes an entity: its folder, memory, own node and token, which is shown this once.

    Asked again after a failure it completes what is missing and shows the token then. Done before, it changes nothing
    and shows none.
    """
    made = await app.create(given.name, store=given.store or None)
    entry = await asyncio.to_thread(app.registry.get, made.entity.name)
    return _entity(entry, url=_address(app), token=made.token, is_new=made.is_new)


@operation(
    "List the entities",
    _listed,
    READS,
    audience="operator",
    toolset="registry",
    command="entity list",
    examples=("pps entity list --archived",),
)
async def entity_list(app: App, given: ListInput) -> Entities:
    """Returns the entities by name, with store, folder and age."""
    found = await asyncio.to_thread(app.registry.list, include_archived=given.archived)
    return Entities(tuple(_entity(one) for one in found))


@operation(
    "Show an entity",
    _shown,
    READS,
    audience="operator",
    toolset="registry",
    command="entity show",
    examples=("pps entity show ana",),
)
async def entity_show(app: App, given: Named) -> EntityView:
    """Returns where an entity's memory is kept, and where clients find it."""
    return _entity(await asyncio.to_thread(app.registry.get, given.name), url=_address(app))


@operation(
    "Put an entity to rest",
    lambda one: f"{one.name} is {'archived' if one.archived else 'back'}.",
    SETS,
    audience="operator",
    toolset="registry",
    command="entity archive",
    examples=("pps entity archive ana", "pps entity archive ana --undo"),
)
async def entity_archive(app: App, given: ArchiveInput) -> EntityView:
    """Puts an entity to rest: nothing is lost, its tokens are refused; 'undo' brings it back."""
    await app.archive(given.name, undo=given.undo)
    return _entity(await asyncio.to_thread(app.registry.get, given.name))


@operation(
    "Erase an entity",
    lambda one: " ".join(filter(None, (f"{one.name} is gone.", one.left))),
    ERASES,
    audience="operator",
    toolset="registry",
    command="entity delete",
    examples=("pps entity delete ana --yes",),
)
async def entity_delete(app: App, given: Named) -> Deleted:
    """Erases an entity with all that it remembers. It cannot be undone.

    Begun once, it is finished: by the next start of the server when a kill or an absent Neo4j cut it short.
    """
    gone = await app.delete(given.name)
    return Deleted(given.name, left=_LEFT_ON_NEO4J if gone.store == "neo4j" else "")


@operation(
    "Let a command read",
    lambda one: f"{one.name} is read by {one.command or 'no command'}.",
    SETS,
    audience="owner",
    toolset="registry",
)
async def entity_extract(app: App, given: CommandInput) -> Reader:
    """Lets a command of this machine read an entity's turns for facts from now on; an empty one takes that back."""
    await app.extract_by(given.name, given.command)
    return Reader(given.name, given.command)


@operation(
    "Give out a token",
    lambda one: one.token,
    ADDS,
    audience="operator",
    toolset="registry",
    command="entity token",
    examples=("pps entity token ana", "pps entity token ana --toolset core"),
)
async def token_issue(app: App, given: IssueInput) -> Issued:
    """Gives out a token of an entity, shown this once; for some toolsets alone, where they are named."""
    return Issued(await asyncio.to_thread(app.registry.issue_token, given.name, given.toolsets), given.name)


@operation(
    "Refuse an entity's tokens",
    lambda one: f"{one.revoked} revoked.",
    SETS,
    audience="operator",
    toolset="registry",
    command="entity token --revoke",
    examples=("pps entity token ana --revoke",),
)
async def token_revoke(app: App, given: Named) -> Revoked:
    """Refuses every token of an entity from now on. Returns how many there were."""
    return Revoked(await asyncio.to_thread(app.registry.revoke_tokens, given.name), given.name)


@operation(
    "Give out an operator's token",
    lambda one: one.token,
    ADDS,
    audience="owner",
    toolset="registry",
    command="entity token --operator",
    examples=("pps entity token --operator",),
)
async def operator_issue(app: App, _: Nothing) -> Issued:
    """Gives out a token for metrics and the registry, shown this once."""
    return Issued(await asyncio.to_thread(app.registry.operator_token))


@operation(
    "Refuse operators' tokens",
    lambda one: f"{one.revoked} revoked.",
    SETS,
    audience="owner",
    toolset="registry",
    command="entity token --operator --revoke",
    examples=("pps entity token --operator --revoke",),
)
async def operator_revoke(app: App, _: Nothing) -> Revoked:
    """Refuses every operator's token from now on. Returns how many there were."""
    return Revoked(await asyncio.to_thread(app.registry.revoke_operator_tokens))


@operation(
    "Map a folder",
    lambda one: f"{one.path} belongs to {one.entity}.",
    SETS,
    audience="owner",
    toolset="registry",
    command="route add",
    examples=("pps route add ~/work/shop shop",),
)
async def route_add(app: App, given: RouteInput) -> RouteView:
    """Maps a folder to an entity that there is. Hooks in it, or below it, use that memory."""
    return _route(await asyncio.to_thread(app.registry.routes.add, given.path, given.entity))


@operation(
    "Whose a folder is",
    lambda one: one.entity or "nobody's",
    READS,
    audience="owner",
    toolset="registry",
)
async def route_find(app: App, given: FolderInput) -> Holder:
    """Returns the entity of the longest mapped folder that is or holds a path. Nothing is made."""
    found = await asyncio.to_thread(app.registry.route, given.path)
    return Holder(found.name if found else None)


@operation(
    "List the mapped folders",
    _routes,
    READS,
    audience="owner",
    toolset="registry",
    command="route list",
    examples=("pps route list",),
)
async def route_list(app: App, _: Nothing) -> RouteViews:
    """Returns the mapped folders with their entities."""
    return RouteViews(tuple(_route(one) for one in await asyncio.to_thread(app.registry.routes.list)))


@operation(
    "Take a folder's mapping away",
    lambda one: f"{one.path} belongs to nobody now.",
    SETS,
    audience="owner",
    toolset="registry",
    command="route remove",
    examples=("pps route remove ~/work/shop",),
)
async def route_remove(app: App, given: FolderInput) -> Removed:
    """Takes a folder's mapping away; the entity keeps what it knows."""
    await asyncio.to_thread(app.registry.routes.remove, given.path)
    return Removed(given.path)


@operation(
    "List the followed folders",
    _folders,
    READS,
    audience="owner",
    toolset="registry",
    command="watch list",
    examples=("pps watch list",),
)
async def watch_list(app: App, given: WatchedInput) -> Folders:
    """Returns the folders that entities follow, all of them or one entity's."""
    if given.name:
        await asyncio.to_thread(app.registry.get, given.name)
    found = await asyncio.to_thread(app.registry.watched.list, given.name or None)
    return Folders(tuple(folder_view(one) for one in found))


@operation(
    "Give out a router's token",
    lambda one: f"Router {one.id}. Its token, shown this once: {one.token}",
    ADDS,
    audience="owner",
    toolset="registry",
    command="router create",
    examples=("pps router create ~/work --label laptop",),
)
async def router_create(app: App, given: RouterInput) -> RouterView:
    """Gives out a router's token, shown this once.

    It reaches every memory that a folder at or below a root is mapped to. Links in the roots are followed now.
    """
    made = await asyncio.to_thread(
        app.registry.routers.create, given.roots, label=given.label, may_create=given.may_create
    )
    return _router(made.entry, url=_address(app), token=made.token)


@operation(
    "List the routers",
    _routers,
    READS,
    audience="owner",
    toolset="registry",
    command="router list",
    examples=("pps router list",),
)
async def router_list(app: App, _: Nothing) -> Routers:
    """Returns the routers with their roots, oldest first."""
    return Routers(tuple(_router(one) for one in await asyncio.to_thread(app.registry.routers.list)))


@operation(
    "Refuse a router",
    lambda one: f"{one.id} is refused from now on.",
    SETS,
    audience="owner",
    toolset="registry",
    command="router revoke",
    examples=("pps router revoke 3kq0c5vtw2az",),
)
async def router_revoke(app: App, given: RouterIdInput) -> RouterGone:
    """Refuses a router's token from now on."""
    await asyncio.to_thread(app.registry.routers.revoke, given.id)
    return RouterGone(given.id)


def folder_view(folder: MappedFolder) -> FolderView:
    return FolderView(folder.path, folder.entity.name, folder.created_at)


def _address(app: App) -> str:
    """Return where clients find the server as it is set, not where one that was started by need is just now."""
    server = app.settings.server
    return RunFile(0, server.host, server.port, "", False, "").url if server.port else ""


def _entity(
    entry: Entry, *, url: str | None = None, token: str | None = None, is_new: bool | None = None
) -> EntityView:
    seen = (entry.entity.name, entry.store, str(entry.folder), entry.created_at, entry.archived)
    return EntityView(*seen, url, token, is_new)


def _route(route: MappedFolder) -> RouteView:
    return RouteView(route.path, route.entity.name, route.created_at, route.archived)


def _router(entry: RouterEntry, *, url: str | None = None, token: str | None = None) -> RouterView:
    one = entry.router
    return RouterView(one.id, entry.label, one.roots, one.may_create, entry.created_at, url, token)


ADMINISTRATION = (
    entity_create,
    entity_list,
    entity_show,
    entity_archive,
    entity_delete,
    entity_extract,
    token_issue,
    token_revoke,
    operator_issue,
    operator_revoke,
    route_add,
    route_find,
    route_list,
    route_remove,
    watch_list,
    router_create,
    router_list,
    router_revoke,
)
