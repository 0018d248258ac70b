"""How the server is: the health of what is open, and numbers for Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pps import __version__
from pps.app import App
from pps.core.errors import PPSError
from pps.core.time import now
from pps.core.values import JSON
from pps.interfaces.http.activity import Activity
from pps.operations.calls import Calls


@dataclass(slots=True)
class Resuming:
    """What stands in the way of the jobs that closed entities have left, by entity; empty while all is well."""

    in_the_way: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with what to do next.

    Attributes:
        entity: Whose it is; empty when it concerns all.
        outage: It comes from what all share: the disk, a server, a model. Only such a problem makes the server unwell:
            no caller of one entity can cause it. That no entity at all can be opened is one too; that some cannot is
            not, since whoever restarts an unwell server would restart it for ever, and the others with it.
    """

    entity: str
    text: str
    outage: bool = False


class Condition:
    """Asks every open memory how it is."""

    def __init__(self, app: App, calls: Calls, activity: Activity) -> None:
        self._app = app
        self._calls = calls
        self._activity = activity
        self.resuming = Resuming()

    async def problems(self) -> list[Problem]:
        """Return what is wrong now; an entity that cannot take in what it is told is a problem."""
        lost = await self._app.unopenable()
        all_lost = bool(lost) and len(lost) == len(await asyncio.to_thread(self._app.registry.list))
        waiting = {
            name: text for name, text in self.resuming.in_the_way.items() if name not in lost
        }
        found = [Problem(name, text, not name) for name, text in waiting.items()]
        found += await self._stalled()
        found += [Problem(name, text, all_lost) for name, text in lost.items()]
        for name in self._app.open_names():
            if name in lost:
                continue
            try:
                async with self._app.memory(name, pool=True) as memory:
                    health = await memory.health()
                found.extend(Problem(name, text, health.outage) for text in health.problems)
            except PPSError as error:
                found.append(Problem(name, error.message))
        return found

    async def _stalled(self) -> list[Problem]:
        """Return the closed entities whose jobs wait too long, counted from the start of the server at the earliest."""
        limit_s = self._app.settings.jobs.red_after_s
        waits = {
            name: min((now() - since).total_seconds(), self._activity.uptime_s)
            for name, since in (await self._app.closed_pending()).items()
        }
        return [
            Problem(
                name,
                f"its unfinished jobs wait for {wait_s:,.0f} s while it is closed; `pps jobs list {name}`",
            )
            for name, wait_s in waits.items()
            if wait_s >= limit_s and name not in self.resuming.in_the_way
        ]

    async def owners_status(self) -> dict[str, JSON]:
        """Return what the owner's clients ask first; with what their secrets can be compared with."""
        return {**await self.status(), "secrets": {**self._app.settings.told_secrets()}}

    async def status(self) -> dict[str, JSON]:
        """Return how the server is."""
        return {
            "pid": os.getpid(),
            "version": __version__,
            "uptime_s": round(self._activity.uptime_s, 1),
            "open": self._app.open_names(),
            "in_flight": self._activity.in_flight,
            "settings": {**self._app.settings.told(), **_by_option()},
            "stopping": self._activity.stopping.is_set(),
        }

    async def metrics(self) -> str:
        """Return the numbers in Prometheus' text format."""
        entries = await asyncio.to_thread(self._app.registry.list, include_archived=True)
        pending = await self._app.closed_pending()
        problems = await self.problems()
        by_entity = Counter(f'entity="{one.entity}"' for one in problems if one.entity)
        lines = [
            *_gauge("pps_info", "The running version.", {f'version="{__version__}"': 1}),
            *_gauge(
                "pps_uptime_seconds",
                "Seconds since the start.",
                {"": round(self._activity.uptime_s, 3)},
            ),
            *_gauge("pps_requests_in_flight", "Requests in hand.", {"": self._activity.in_flight}),
            *_gauge(
                "pps_entities",
                "Entities registered.",
                _by_state(entry.archived for entry in entries),
            ),
            *_gauge("pps_open_entities", "Entities open.", {"": len(self._app.open_names())}),
            *_gauge(
                "pps_pending_entities", "Closed entities with unfinished jobs.", {"": len(pending)}
            ),
            *_gauge(
                "pps_problems", "Problems, of entities and of the server.", {"": len(problems)}
            ),
            *_gauge("pps_entity_problems", "Problems of an entity that has some.", by_entity),
            *self._call_lines(),
            *await self._backlog_lines(),
            *_process_lines(),
        ]
        return "\n".join(lines) + "\n"

    def _call_lines(self) -> list[str]:
        keys = {
            f'operation="{name}",outcome="{outcome}"': tally
            for (name, outcome), tally in self._calls.tallies.items()
        }
        times = {key: tally.times for key, tally in keys.items()}
        seconds = {key: round(tally.seconds, 6) for key, tally in keys.items()}
        return [
            *_metric("counter", "pps_calls_total", "Operations by how they ended.", times),
            *_metric("counter", "pps_call_seconds_total", "Time spent in operations.", seconds),
        ]

    async def _backlog_lines(self) -> list[str]:
        jobs = lag = 0
        for name in self._app.open_names():
            with contextlib.suppress(
                PPSError
            ):  # it counts among the problems; the other numbers are told
                async with self._app.memory(name, pool=True) as memory:
                    stats = await memory.stats()
                jobs, lag = jobs + stats.unfinished_jobs, lag + stats.index_lag
        return [
            *_gauge(
                "pps_unfinished_jobs",
                "Acknowledged turns not yet in graph and indexes.",
                {"": jobs},
            ),
            *_gauge("pps_index_lag", "Index entries to be made anew.", {"": lag}),
        ]


def _by_option() -> dict[str, str]:
    """Return what this process's environment says of settings that an option of ``pps serve`` may have replaced."""
    names = ("PPS_SERVER__HOST", "PPS_SERVER__PORT")
    return {name: os.environ[name] for name in names if name in os.environ}


def _by_state(archived: Iterable[bool]) -> dict[str, float]:
    states = list(archived)
    return {'state="active"': states.count(False), 'state="archived"': states.count(True)}


def _gauge(name: str, help_text: str, values: Mapping[str, float]) -> list[str]:
    return _metric("gauge", name, help_text, values)


def _metric(kind: str, name: str, help_text: str, values: Mapping[str, float]) -> list[str]:
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    return lines + [
        f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"
        for labels, value in values.items()
    ]


def _process_lines() -> list[str]:
    pages = (
        int(Path("/proc/self/statm").read_text().split()[1])
        if Path("/proc/self/statm").exists()
        else 0
    )
    files = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    return [
        *_gauge(
            "process_resident_memory_bytes",
            "Resident memory.",
            {"": pages * os.sysconf("SC_PAGE_SIZE")},
        ),
        *_gauge("process_open_fds", "Open file descriptors.", {"": files}),
        *_gauge("process_threads", "Python threads.", {"": threading.active_count()}),
    ]
