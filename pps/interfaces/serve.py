"""``pps serve``: the memories, the tools and the routes, in one process for a data folder."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
from collections.abc import Callable
from functools import partial

from pps.app import App
from pps.config import Settings
from pps.core.errors import PPSError
from pps.core.file_lock import FileLock
from pps.core.footprint import give_back, keep_what_is_loaded, switch_threads_often
from pps.interfaces.hooks.hook_desk import HookEventDesk
from pps.interfaces.http import life
from pps.interfaces.http.auth import Names, Trust
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.page.browsers import Browsers
from pps.interfaces.http.page.site import Talking
from pps.interfaces.http.requests import Activity
from pps.interfaces.http.routes import HttpRoutes, ServerParts
from pps.interfaces.mcp.server_ends import BridgeDesk, LateEndpoint
from pps.interfaces.watching import FolderWatch
from pps.operations.calls import Calls
from pps.server import owner_socket, runfile
from pps.server.owner_socket import OwnHome
from pps.server.spool import SpoolDrain

_log = logging.getLogger(__name__)

_WAIT_S = 30.0
_OPEN_FILES = 8_192
_RESUME_S = 10.0
_GIVE_BACK_S = 60.0
_ERASE_S = 1_800.0
_RESUME_PATIENCE_S = 30.0


def serve(settings: Settings, *, auto: bool = False) -> None:
    """Serve until a signal, the owner or (when ``auto``) idleness ends it. Blocks.

    Raises:
        StoreConflict: Another server holds the data folder; the message names it.
        ConfigError: A setting cannot be used.
    """
    with FileLock(
        runfile.lock_file(settings.home), what="pps serve", wait_s=_WAIT_S if auto else 1
    ):
        runfile.run_file(settings.home).unlink(
            missing_ok=True
        )  # of one that was killed: its port may be anybody's
        if auto:
            os.chdir(settings.home)
        os.umask(0o077)  # the libraries that index make files of their own
        _room_for_files()
        switch_threads_often()
        keep_what_is_loaded()
        asyncio.run(_serve(settings, auto=auto))


def _room_for_files() -> None:
    """Raise the soft limit of open files: an entity holds about 40, and 1,024 is usual."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(settings: Settings, *, auto: bool) -> None:
    secret = runfile.new_secret()
    async with App.open(settings) as app:
        app.makes_namespaces = True
        desk = HookEventDesk(app)
        parts = _parts(app, secret, desk)
        routes = HttpRoutes(parts)
        listener = life.bind(settings.server.host, settings.server.port, or_free=auto)
        by_socket = owner_socket.listen(settings.home)
        parts.trust.has_socket = by_socket is not None
        resuming = asyncio.create_task(_resume(app, parts))
        draining = asyncio.create_task(SpoolDrain(settings.home, desk.handle).run())
        watching = asyncio.create_task(FolderWatch(app).run())
        serving = asyncio.Event()
        warming = asyncio.create_task(_warm_up(app, serving))
        plan = life.ServerPlan(
            settings.home,
            secret,
            auto,
            settings.server.idle_stop_s,
            lambda: _busy(app),
            by_socket,
            partial(setattr, parts.trust, "has_socket", False),
            serving.set,
        )
        try:
            await life.run(routes.starlette(), listener, parts.activity, plan)
        finally:
            resuming.cancel()
            draining.cancel()
            watching.cancel()
            warming.cancel()
            await asyncio.wait([watching, warming])
            await routes.settled()
            talk = parts.talk()
            if talk is not None:
                await talk.close()
            await desk.settled()
            await parts.calls.settled()


async def _warm_up(app: App, serving: asyncio.Event) -> None:
    """Import a memory's packages once the run file is written, while a client connects."""
    await serving.wait()
    await app.warm_up()


def _parts(app: App, secret: str, desk: HookEventDesk) -> ServerParts:
    server = app.settings.server
    calls = Calls(app)
    activity = Activity()
    trust = Trust(app.registry, secret)
    names = Names(server.host, server.allowed_hosts, server.allowed_origins)
    endpoint = LateEndpoint(calls, trust.caller, hosts=names.hosts, origins=names.origins)
    return ServerParts(
        app,
        calls,
        trust,
        Browsers(app.registry),
        names,
        activity,
        HealthProbe(app, calls, activity),
        endpoint,
        desk,
        BridgeDesk(calls),
        OwnHome(runfile.lock_file(app.settings.home)),
        _talk_of(app, calls),
    )


def _talk_of(app: App, calls: Calls) -> Callable[[], Talking | None]:
    """Return a function that returns the rooms, made at its first call.

    None while ``haven`` is off.
    """
    made: list[Talking] = []

    def talk() -> Talking | None:
        make = app.features.provided("talk")
        if make is None:
            return None
        if not made:
            made.append(make(app, calls))
        return made[0]

    return talk


async def _busy(app: App) -> bool:
    """Tell whether an open memory still has turns to take in."""
    for name in app.open_names():
        # A memory that cannot be used has nothing to wait for; /health reports it.
        with contextlib.suppress(PPSError):
            async with app.memory(name, pool=True) as memory:
                if await memory.pending():
                    return True
    return False


async def _resume(app: App, parts: ServerParts) -> None:
    """Finish what closed entities have left, again and again.

    What stands in the way is seen in /health.

    And once a memory is open, the last libraries are loaded: the garbage collector is told. What
    many clients at once have taken goes back to the system when they rest: the allocator would keep
    it.
    """
    loaded = False
    given_back = erased_at = 0.0
    while True:
        try:
            parts.condition.resuming.in_the_way = await app.resume_pending(_RESUME_PATIENCE_S)
        except PPSError as error:
            _log.error("unfinished jobs could not be resumed: %s", error.message)
            parts.condition.resuming.in_the_way = {"": error.message}
        if not loaded and app.open_names():
            keep_what_is_loaded()
            loaded = True
        if not parts.activity.in_flight and parts.activity.uptime_s - given_back > _GIVE_BACK_S:
            await asyncio.to_thread(give_back)
            given_back = parts.activity.uptime_s
        if not erased_at or parts.activity.uptime_s - erased_at > _ERASE_S:
            await app.erase_overdue()
            erased_at = max(parts.activity.uptime_s, 0.001)
        await asyncio.sleep(_RESUME_S)
