"""What operators and the owner may do to the registry: entities and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.time import iso
from pps.core.values import JSON
from pps.entities import Entry, MappedFolder, RouterEntry
from pps.interfaces.http.answers import text
from pps.interfaces.http.documents import watched
from pps.server import RunFile

Action = Callable[[App, Mapping[str, JSON]], Awaitable[dict[str, JSON]]]


OWNERS = frozenset(
    {
        "entity.extract",
        "operator.issue",
        "operator.revoke",
        "route.add",
        "route.find",
        "route.list",
        "route.remove",
        "router.create",
        "router.list",
        "router.revoke",
        "watch.list",
    }
)
"""Actions for the owner alone: an operator makes no operators, and learns no paths of this machine."""


_LEFT_ON_NEO4J = (
    "No query finds anything of it on Neo4j. Neo4j's own files keep the deleted records until it uses their room "
    "again, its transaction logs until they are pruned, and the names of labels and properties for good."
)


async def do(app: App, action: str, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Do one action; InvalidRequest when there is none of that name."""
    found = _ACTIONS.get(action)
    if found is None:
        raise InvalidRequest("action", f"there is none of that name; there are {', '.join(_ACTIONS)}")
    return await found(app, arguments)


async def _create(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    store = text(arguments, "store", "") or None
    made = await app.create(text(arguments, "name"), store=store)
    return {**_shown(app.registry.get(made.entity.name)), **_address(app), "token": made.token, "is_new": made.is_new}


async def _list(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    entries = await asyncio.to_thread(app.registry.list, include_archived=arguments.get("archived") is True)
    return {"entities": [_shown(entry) for entry in entries]}


async def _show(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    return {**_shown(await asyncio.to_thread(app.registry.get, text(arguments, "name"))), **_address(app)}


async def _archive(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name = text(arguments, "name")
    await app.archive(name, undo=arguments.get("undo") is True)
    return _shown(app.registry.get(name))


async def _delete(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name = text(arguments, "name")
    gone = await app.delete(name)
    return {"name": name, "deleted": True, "left": _LEFT_ON_NEO4J if gone.store == "neo4j" else ""}


async def _extract(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name, command = text(arguments, "name"), text(arguments, "command")
    await app.extract_by(name, command)
    return {"name": name, "command": command}


async def _issue(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name = text(arguments, "name")
    return {"name": name, "token": await asyncio.to_thread(app.registry.issue_token, name)}


async def _revoke(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name = text(arguments, "name")
    return {"name": name, "revoked": await asyncio.to_thread(app.registry.revoke_tokens, name)}


async def _operator_issue(app: App, _: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"token": await asyncio.to_thread(app.registry.operator_token)}


async def _operator_revoke(app: App, _: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"revoked": await asyncio.to_thread(app.registry.revoke_operator_tokens)}


async def _route_add(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    path, name = text(arguments, "path"), text(arguments, "entity")
    return _route(await asyncio.to_thread(app.registry.routes.add, path, name))


async def _route_find(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Say whose a path is; what the hooks ask. Nothing is made."""
    found = await asyncio.to_thread(app.registry.route, text(arguments, "path"))
    return {"entity": found.name if found else None}


async def _route_list(app: App, _: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"routes": [_route(one) for one in await asyncio.to_thread(app.registry.routes.list)]}


async def _route_remove(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    path = text(arguments, "path")
    await asyncio.to_thread(app.registry.routes.remove, path)
    return {"path": path, "removed": True}


async def _watch_list(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    name = text(arguments, "name", "") or None
    if name is not None:
        await asyncio.to_thread(app.registry.get, name)
    found = await asyncio.to_thread(app.registry.watched.list, name)
    return {"folders": [watched(one) for one in found]}


def _route(route: MappedFolder) -> dict[str, JSON]:
    return {
        "path": route.path,
        "entity": route.entity.name,
        "created_at": iso(route.created_at),
        "archived": route.archived,
    }


async def _router_create(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    given = arguments.get("roots")
    roots = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    if not isinstance(given, list) or len(roots) != len(given):
        raise InvalidRequest("roots", "must be a list of paths")
    label, may_create = text(arguments, "label", ""), arguments.get("may_create") is True
    made = await asyncio.to_thread(app.registry.routers.create, roots, label=label, may_create=may_create)
    return {**_router(made.entry), **_address(app), "token": made.token}


async def _router_list(app: App, _: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"routers": [_router(one) for one in await asyncio.to_thread(app.registry.routers.list)]}


async def _router_revoke(app: App, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    router_id = text(arguments, "id")
    await asyncio.to_thread(app.registry.routers.revoke, router_id)
    return {"id": router_id, "revoked": True}


def _router(entry: RouterEntry) -> dict[str, JSON]:
    return {
        "id": entry.router.id,
        "label": entry.label,
        "roots": list(entry.router.roots),
        "may_create": entry.router.may_create,
        "created_at": iso(entry.created_at),
    }


def _address(app: App) -> dict[str, JSON]:
    """Return where clients find the server as it is set, not where one that was started by need is just now."""
    server = app.settings.server
    return {"url": RunFile(0, server.host, server.port, "", False, "").url if server.port else ""}


def _shown(entry: Entry) -> dict[str, JSON]:
    return {
        "name": entry.entity.name,
        "store": entry.store,
        "folder": str(entry.folder),
        "created_at": iso(entry.created_at),
        "archived": entry.archived,
    }


_ACTIONS: dict[str, Action] = {
    "entity.create": _create,
    "entity.list": _list,
    "entity.show": _show,
    "entity.archive": _archive,
    "entity.delete": _delete,
    "entity.extract": _extract,
    "token.issue": _issue,
    "token.revoke": _revoke,
    "operator.issue": _operator_issue,
    "operator.revoke": _operator_revoke,
    "route.add": _route_add,
    "route.find": _route_find,
    "route.list": _route_list,
    "route.remove": _route_remove,
    "watch.list": _watch_list,
    "router.create": _router_create,
    "router.list": _router_list,
    "router.revoke": _router_revoke,
}
