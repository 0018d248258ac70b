"""PPS: a private, lasting memory for AI agents. Cheap to import; the rest loads on first use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from pps.core.version import __version__ as __version__

if TYPE_CHECKING:
    from pathlib import Path

    from pps.app import App
    from pps.config import Settings, load
    from pps.core.errors import (
        ConfigError,
        InvalidRequest,
        IsolationError,
        ModelError,
        ModelOutputInvalid,
        ModelUnavailable,
        NotFound,
        PPSError,
        StoreConflict,
        StoreError,
        StoreUnavailable,
        UnknownEntity,
    )
    from pps.core.recalled import Pack, Recall
    from pps.core.values import FactDraft, NodeDraft, Receipt
    from pps.features.squad.agent import AgentMemory
    from pps.interfaces.remote import RemoteMember, RemoteMemory
    from pps.memory import Memory

# A private memory does not phone home: libraries that report usage unless told otherwise are told
# here,
# before any of them is imported (ONNX Runtime keeps a device id in the home folder, too).
for _switch, _off in (
    ("ORT_DISABLE_TELEMETRY", "1"),
    ("ANONYMIZED_TELEMETRY", "False"),
    ("GRAPHITI_TELEMETRY_ENABLED", "false"),
    ("HF_HUB_DISABLE_TELEMETRY", "1"),
    ("DO_NOT_TRACK", "1"),
):
    os.environ.setdefault(_switch, _off)

_WHERE = {
    "App": "pps.app",
    "Memory": "pps.memory",
    "Settings": "pps.config",
    "load": "pps.config",
    **dict.fromkeys(("FactDraft", "NodeDraft", "Receipt"), "pps.core.values"),
    **dict.fromkeys(("Pack", "Recall"), "pps.core.recalled"),
    **dict.fromkeys(
        (
            "ConfigError",
            "InvalidRequest",
            "IsolationError",
            "ModelError",
            "ModelOutputInvalid",
            "ModelUnavailable",
            "NotFound",
            "PPSError",
            "StoreConflict",
            "StoreError",
            "StoreUnavailable",
            "UnknownEntity",
        ),
        "pps.core.errors",
    ),
}

__all__ = [
    "App",
    "ConfigError",
    "FactDraft",
    "InvalidRequest",
    "IsolationError",
    "Memory",
    "ModelError",
    "ModelOutputInvalid",
    "ModelUnavailable",
    "NodeDraft",
    "NotFound",
    "PPSError",
    "Pack",
    "Recall",
    "Receipt",
    "Settings",
    "StoreConflict",
    "StoreError",
    "StoreUnavailable",
    "UnknownEntity",
    "connect",
    "connect_member",
    "load",
    "open",
    "open_member",
]


@contextlib.asynccontextmanager
async def open(
    name: str, *, home: Path | None = None, create: bool = False
) -> AsyncGenerator[Memory]:
    """Open one entity's memory in this process, under its lock, with the settings of the environment.

    Args:
        name: An entity of this data folder.
        home: The data folder; ``$PPS_HOME`` or the platform's when None.
        create: Make the entity when there is none of that name.

    What a squad's member forgets is out of the pool when it is closed.

    Raises:
        UnknownEntity: No such entity, and ``create`` is False.
        StoreConflict: A server or another program holds its files; the message names it.
    """
    from pps.app import App
    from pps.config import load

    settings = load()
    if home is not None:
        settings = settings.model_copy(update={"home": home})
    async with App.open(settings) as app:
        if create:
            await app.create(name)
        try:
            async with app.memory(name) as memory:
                yield memory
        finally:
            if app.registry.squads.is_member(name):
                await _settle(app, name)


async def _settle(app: App, name: str) -> None:
    """Take out of a squad's pool what its member forgot: no other program could read it meanwhile."""
    from pps.features.squad.desk import desk_of
    from pps.features.squad.sharing import withdraw_orphans

    async with desk_of(app, name) as desk:
        await withdraw_orphans(desk)


@contextlib.asynccontextmanager
async def open_member(
    squad: str, member: str, *, home: Path | None = None
) -> AsyncGenerator[AgentMemory]:
    """Open the memory of a squad's member in this process, with the pool beside it; as ``open``.

    Args:
        squad: Its name, as ``pps squad list`` shows it.
        member: Its id or alias there.
        home: As ``open``.

    Raises:
        NotFound: No such squad, or nobody is that member.
        StoreConflict: As ``open``.
    """
    from pps.app import App
    from pps.config import load
    from pps.core.errors import NotFound
    from pps.features.squad.agent import AgentMemory
    from pps.features.squad.desk import desk_of, rules_of

    settings = load()
    if home is not None:
        settings = settings.model_copy(update={"home": home})
    async with App.open(settings) as app:
        squad_row = app.registry.squads.get(squad)
        id_ = rules_of(squad_row).member(member)
        if id_ not in squad_row.members:
            raise NotFound("member")
        async with desk_of(app, squad_row.members[id_].entity) as desk:
            yield AgentMemory(desk)


@contextlib.asynccontextmanager
async def connect(
    name: str, *, home: Path | None = None, actor: str = ""
) -> AsyncGenerator[RemoteMemory]:
    """Lend one entity's memory of the running server, which is started when it is away.

    With ``Memory``'s methods.

    Args:
        name: An entity of the data folder.
        home: The data folder; ``$PPS_HOME`` or the platform's when None.
        actor: Who writes; empty is the person.

    Raises:
        UnknownEntity: No such entity.
        StoreUnavailable: The server did not come up in time.
    """
    import asyncio

    from pps.config.home import home_folder
    from pps.core.errors import UnknownEntity
    from pps.interfaces.remote import RemoteMemory
    from pps.server import Link
    from pps.server import connect as to_server

    link = await asyncio.to_thread(to_server, home or home_folder())
    found = (await asyncio.to_thread(link.call, "entity_show", "", {"name": name}))["data"]
    if isinstance(found, dict) and found["archived"]:
        raise UnknownEntity(
            f"entity {name!r} is archived; `pps entity archive {name} --undo` brings it back"
        )
    yield RemoteMemory(Link(link.run, actor), name)


@contextlib.asynccontextmanager
async def connect_member(
    squad: str, member: str, *, home: Path | None = None
) -> AsyncGenerator[RemoteMember]:
    """Lend a squad member's memory of the running server, with the pool beside it; as ``connect``.

    Args:
        squad: Its name, as ``pps squad list`` shows it.
        member: Its id or alias there.
        home: As ``connect``.

    Raises:
        NotFound: No such squad, or nobody is that member.
        StoreUnavailable: The server did not come up in time.
    """
    import asyncio

    from pps.config.home import home_folder
    from pps.core.errors import NotFound
    from pps.interfaces.remote import RemoteMember
    from pps.server import connect as to_server

    link = await asyncio.to_thread(to_server, home or home_folder())
    answer = await asyncio.to_thread(link.call, "squad_show", "", {"name": squad})
    for view in cast("dict[str, Any]", answer["data"])["members"]:
        if member == view["id"] or member in view.get("aliases", ()):
            yield RemoteMember(link, view["entity"])
            return
    raise NotFound("member")


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
