"""Operations of the owner on mapped folders and on routers, which reach projects' memories."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field

from pps.app import App
from pps.entities.paths import MAX_PATH
from pps.entities.routing import MAX_LABEL, RouterEntry
from pps.operations.administration import address
from pps.operations.exchange import FolderView, folder_view
from pps.operations.inputs import Input, Label, Nothing, argument, option
from pps.operations.table import ADDS, OWNERS_REGISTRY, READS, SETS, WITHDRAWS


class FolderInput(Input):
    """A project's folder."""

    path: str = Field(
        max_length=MAX_PATH,
        description="The project's folder, absolute.",
        json_schema_extra=argument(path=True, help="The project's folder."),
    )


class RouteInput(FolderInput):
    """A project's folder and whose it is."""

    entity: Label = Field(description="The entity's name.", json_schema_extra=argument())


class RouterInput(Input):
    """What a router may reach."""

    roots: tuple[str, ...] = Field(
        description="Absolute paths. The token reaches projects at or below them.",
        json_schema_extra=argument(path=True, help="Paths: projects at or below these."),
    )
    label: str = Field(default="", max_length=MAX_LABEL, description="What the token is for.")
    may_create: bool = Field(
        default=False,
        description="True lets it make memories for projects that have none.",
        json_schema_extra=option("--create/--no-create", default=True),
    )


class RouterIdInput(Input):
    """Which router."""

    id: Label = Field(
        description="Id of the router, from {router_list}.", json_schema_extra=argument()
    )


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose a path is; nobody's when ``entity`` is not there."""

    entity: str | None = None


@dataclass(frozen=True, slots=True)
class RemovedFolder:
    """A folder that is mapped no longer."""

    path: str
    removed: bool = True


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
class RouterGone:
    """A router that is refused from now on."""

    id: str
    revoked: bool = True


def _routes_text(routes: Sequence[FolderView]) -> str:
    lines = [
        f"{route.path}  {route.entity}{'  archived' if route.archived else ''}" for route in routes
    ]
    return "\n".join(lines) or "None yet: `pps route add PATH ENTITY` maps one."


def _routers_text(routers: Sequence[RouterView]) -> str:
    lines = [
        "  ".join(
            filter(
                None,
                (
                    router.id,
                    " ".join(router.roots),
                    "" if router.may_create else "makes none",
                    router.label,
                ),
            )
        )
        for router in routers
    ]
    return "\n".join(lines) or "None yet: `pps router create ROOT` makes one."


@OWNERS_REGISTRY.operation(
    "Map a folder",
    lambda folder: f"{folder.path} belongs to {folder.entity}.",
    SETS,
    command="route add",
    examples=("pps route add ~/work/shop shop",),
)
async def route_add(app: App, request: RouteInput) -> FolderView:
    """Maps a folder to an existing entity.

    Hooks in the folder or below it use this entity's memory.
    """
    return folder_view(
        await asyncio.to_thread(app.registry.routes.add, request.path, request.entity)
    )


@OWNERS_REGISTRY.operation(
    "Find a folder's entity", lambda holder: holder.entity or "nobody's", READS
)
async def route_find(app: App, request: FolderInput) -> Holder:
    """Returns the entity of the longest mapped folder that is or contains a path.

    It makes nothing.
    """
    entity_id = await asyncio.to_thread(app.registry.route, request.path)
    return Holder(entity_id.name if entity_id else None)


@OWNERS_REGISTRY.operation(
    "List the mapped folders",
    _routes_text,
    READS,
    items="routes",
    command="route list",
    examples=("pps route list",),
)
async def route_list(app: App, _: Nothing) -> tuple[FolderView, ...]:
    """Returns the mapped folders with their entities."""
    return tuple(map(folder_view, await asyncio.to_thread(app.registry.routes.list)))


@OWNERS_REGISTRY.operation(
    "Remove a folder's mapping",
    lambda folder: f"{folder.path} belongs to nobody now.",
    WITHDRAWS,
    command="route remove",
    examples=("pps route remove ~/work/shop",),
)
async def route_remove(app: App, request: FolderInput) -> RemovedFolder:
    """Removes a folder's mapping; the entity keeps its memory."""
    await asyncio.to_thread(app.registry.routes.remove, request.path)
    return RemovedFolder(request.path)


@OWNERS_REGISTRY.operation(
    "Make a router's token",
    lambda router: f"Router {router.id}. Its token, shown this once: {router.token}",
    ADDS,
    command="router create",
    examples=("pps router create ~/work --label laptop",),
)
async def router_create(app: App, request: RouterInput) -> RouterView:
    """Makes a router's token, shown only once.

    It reaches every memory that a folder at or below a root is mapped to. Symbolic links in the
    roots are resolved now.
    """
    made = await asyncio.to_thread(
        app.registry.routers.create,
        request.roots,
        label=request.label,
        may_create=request.may_create,
    )
    return _router(made.entry, url=address(app), token=made.token)


@OWNERS_REGISTRY.operation(
    "List the routers",
    _routers_text,
    READS,
    items="routers",
    command="router list",
    examples=("pps router list",),
)
async def router_list(app: App, _: Nothing) -> tuple[RouterView, ...]:
    """Returns the routers with their roots, oldest first."""
    return tuple(map(_router, await asyncio.to_thread(app.registry.routers.list)))


@OWNERS_REGISTRY.operation(
    "Revoke a router's token",
    lambda router: f"{router.id} is refused from now on.",
    WITHDRAWS,
    command="router revoke",
    examples=("pps router revoke 3kq0c5vtw2az",),
)
async def router_revoke(app: App, request: RouterIdInput) -> RouterGone:
    """Revokes a router's token."""
    await asyncio.to_thread(app.registry.routers.revoke, request.id)
    return RouterGone(request.id)


def _router(entry: RouterEntry, *, url: str | None = None, token: str | None = None) -> RouterView:
    router = entry.router
    return RouterView(
        router.id, entry.label, router.roots, router.may_create, entry.created_at, url, token
    )
