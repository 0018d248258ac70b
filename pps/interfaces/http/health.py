"""How the server is: whether it can take requests, and the health of what is open.

Probes try what it needs: a disk that takes writes; PostgreSQL and Neo4j where they are used.
"""

from __future__ import annotations

import asyncio
import os
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pps.app import App
from pps.core.errors import PPSError
from pps.core.time import now
from pps.core.values import JSON
from pps.core.version import __version__
from pps.interfaces.http.requests import Activity
from pps.operations.calls import Calls

_KEEP_S = 5.0
_CONNECT_S = 2.0
_BOLT_PORT = 7687


class Probes:
    """Probes what all entities share. A result is used for 5 seconds."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self._failing: dict[str, str] = {}
        self._publishing = ""
        self._until = 0.0

    async def failing(self) -> dict[str, str]:
        """Return the problems, by what was tried: ``registry``, ``disk``, ``postgresql``."""
        await self._try()
        return self._failing

    async def publishing(self) -> str:
        """Return why graphs cannot be published; empty when they can, or none is.

        Everything else works meanwhile.
        """
        await self._try()
        return self._publishing

    async def _try(self) -> None:
        async with self._lock:
            if clock.monotonic() >= self._until:
                self._failing = await self._tried()
                self._until = clock.monotonic() + _KEEP_S

    async def _tried(self) -> dict[str, str]:
        failing: dict[str, str] = {}
        reason = await asyncio.to_thread(_refused_write, self._app.settings.home)
        if reason:
            failing["disk"] = f"the data folder takes no writes ({reason})"
        try:
            entries = await asyncio.to_thread(self._app.registry.list)
        except PPSError as error:
            return {**failing, "registry": error.message}
        if any(entry.store == "postgresql" for entry in entries):
            from pps.journal.postgresql import refused_connection  # few servers need it

            reason = await refused_connection(self._app.settings.postgresql, _CONNECT_S)
            if reason:
                failing["postgresql"] = (
                    f"PostgreSQL does not answer ({reason}): check the server and postgresql.url"
                )
        self._publishing = ""
        if any(entry.is_published for entry in entries):
            uri = self._app.settings.neo4j.uri
            reason = await _refused_connection(uri)
            if reason:
                self._publishing = f"publishing waits: Neo4j does not answer at {uri} ({reason})"
        return failing


def _refused_write(home: Path) -> str:
    """Return why a file of 4 KB cannot be written to the disk of the data folder.

    Empty when it can.
    """
    probe = home / f".probe.{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, bytes(4096))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


async def _refused_connection(uri: str) -> str:
    """Return why nothing takes connections at the address; empty when something does."""
    parts = urlsplit(uri)
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _BOLT_PORT)
    except TimeoutError:
        return f"nothing within {_CONNECT_S:.0f} s"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or type(error).__name__
    writer.close()
    return ""


@dataclass(slots=True)
class Resuming:
    """What stands in the way of the jobs that closed entities have left, by entity.

    Empty while all is well.
    """

    in_the_way: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """One thing that is wrong, with what to do next.

    Attributes:
        entity: Whose it is; empty when it concerns all.
        outage: It comes from what all share: the disk, a server, a model. Only such a problem makes
            the server unwell: no caller of one entity can cause it. That no entity at all can be
            opened is one too; that some cannot is not, since whoever restarts an unwell server
            would restart it for ever, and the others with it.
    """

    entity: str
    text: str
    outage: bool = False


class HealthProbe:
    """Asks every open memory how it is."""

    def __init__(self, app: App, calls: Calls, activity: Activity) -> None:
        self._app = app
        self._calls = calls
        self._activity = activity
        self._probes = Probes(app)
        self.resuming = Resuming()

    async def problems(self) -> list[HealthProblem]:
        """Return the present problems; an entity that cannot process its turns is one."""
        shared = await self._probes.failing()
        problems = [HealthProblem("", reason, outage=True) for reason in shared.values()]
        if "registry" in shared:
            return problems
        return [*problems, *await self._of_publishing(), *await self._of_entities()]

    async def _of_publishing(self) -> list[HealthProblem]:
        """Return why graphs cannot be published on Neo4j, or removed there.

        Memories work without it.
        """
        away = await self._probes.publishing()
        left, why = await self._app.unpublished_graphs()
        problems = [HealthProblem("", away)] if away else []
        if left and why:
            graphs = "a graph that is" if left == 1 else f"{left} graphs that are"
            problems.append(
                HealthProblem("", f"{graphs} published no more waits to be removed: {why}")
            )
        return problems

    async def unready(self) -> dict[str, str]:
        """Return why the server cannot take requests now, by cause; empty if it can.

        The causes ``stopping``, ``registry``, ``disk`` and ``postgresql`` are tried out; ``outage``
        names problems of open memories.
        """
        if self._activity.stopping.is_set():
            return {"stopping": "the server is about to end"}
        failing = dict(await self._probes.failing())
        if "registry" not in failing:
            outages = [problem.text for problem in await self._of_entities() if problem.outage]
            if outages:
                failing["outage"] = "; ".join(dict.fromkeys(outages))
        return failing

    async def _of_entities(self) -> list[HealthProblem]:
        lost = await self._app.unopenable()
        all_lost = bool(lost) and len(lost) == len(await asyncio.to_thread(self._app.registry.list))
        waiting = {
            name: text for name, text in self.resuming.in_the_way.items() if name not in lost
        }
        health_problems = [HealthProblem(name, text, not name) for name, text in waiting.items()]
        health_problems += await self._stalled()
        health_problems += [HealthProblem(name, text, all_lost) for name, text in lost.items()]
        for name in self._app.open_names():
            if name in lost:
                continue
            try:
                async with self._app.memory(name, pool=True) as memory:
                    health = await memory.health()
                health_problems.extend(
                    HealthProblem(name, text, health.outage) for text in health.problems
                )
            except PPSError as error:
                health_problems.append(HealthProblem(name, error.message))
        return health_problems

    async def _stalled(self) -> list[HealthProblem]:
        """Return the closed entities whose jobs wait too long.

        The wait counts from the server's start at the earliest.
        """
        limit_s = self._app.settings.jobs.red_after_s
        waits = {
            name: min((now() - since).total_seconds(), self._activity.uptime_s)
            for name, since in (await self._app.closed_pending()).items()
        }
        return [
            HealthProblem(
                name,
                f"its unfinished jobs wait for {wait_s:,.0f} s while it is closed; `pps jobs list "
                f"{name}`",
            )
            for name, wait_s in waits.items()
            if wait_s >= limit_s and name not in self.resuming.in_the_way
        ]

    async def owners_status(self) -> dict[str, JSON]:
        """Return the status for the owner's clients, with values to compare their secrets with."""
        return {**await self.status(), "secrets": {**self._app.settings.told_secrets()}}

    async def status(self) -> dict[str, JSON]:
        """Return the server's status."""
        return {
            "pid": os.getpid(),
            "version": __version__,
            "uptime_s": round(self._activity.uptime_s, 1),
            "open": self._app.open_names(),
            "in_flight": self._activity.in_flight,
            "settings": {**self._app.settings.told(), **_by_option()},
            "stopping": self._activity.stopping.is_set(),
        }


def _by_option() -> dict[str, str]:
    """Return the host and port in the environment, which options of ``pps serve`` set."""
    names = ("PPS_SERVER__HOST", "PPS_SERVER__PORT")
    return {name: os.environ[name] for name in names if name in os.environ}
