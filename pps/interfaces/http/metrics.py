"""Numbers for Prometheus, in its text format 0.0.4.

No label names an entity or anything that an entity's owner wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
import time as clock
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

from pps.app import App
from pps.core.errors import PPSError
from pps.core.version import __version__
from pps.interfaces.http.health import HealthProbe
from pps.interfaces.http.requests import BUCKETS_S, Activity, RequestTallies
from pps.operations.calls import Calls

MEDIA_TYPE = "text/plain; version=0.0.4"
_STARTED = clock.time()
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """A number with its labels.

    ``suffix`` follows the metric's name, such as ``_bucket`` of a histogram.
    """

    value: float
    labels: Mapping[str, str]
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """The samples of one name. Counters end in ``_total``, times are in seconds, sizes in bytes."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    help_text: str
    samples: tuple[Sample, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield f"# HELP {self.name} {self.help_text}"
        yield f"# TYPE {self.name} {self.kind}"
        for sample in self.samples:
            labels = ",".join(
                f'{name}="{value.translate(_ESCAPES)}"' for name, value in sample.labels.items()
            )
            braced = f"{{{labels}}}" if labels else ""
            yield f"{self.name}{sample.suffix}{braced} {sample.value}"


class Metrics:
    """Gathers the numbers of a server when they are asked for."""

    def __init__(
        self,
        app: App,
        calls: Calls,
        activity: Activity,
        condition: HealthProbe,
        requests: RequestTallies,
    ) -> None:
        self._app = app
        self._calls = calls
        self._activity = activity
        self._condition = condition
        self._requests = requests

    async def text(self) -> str:
        """Return all of them in Prometheus' text format."""
        metrics = [
            _gauge("pps_info", "The running version.", 1, version=__version__),
            _gauge("pps_uptime_seconds", "Seconds since the start.", self._activity.uptime_s),
            _gauge("pps_requests_in_flight", "Requests in hand.", self._activity.in_flight),
            *await self._of_entities(),
            *await self._of_backlog(),
            *self._of_calls(),
            *self._of_requests(),
            *_of_process(),
        ]
        return "".join(f"{line}\n" for metric in metrics for line in metric.lines())

    async def _of_entities(self) -> list[Metric]:
        entries = await asyncio.to_thread(self._app.registry.list, include_archived=True)
        archived = sum(entry.archived for entry in entries)
        states = (
            Sample(len(entries) - archived, {"state": "active"}),
            Sample(archived, {"state": "archived"}),
        )
        pending = await self._app.closed_pending()
        problems = await self._condition.problems()
        with_problems = {problem.entity for problem in problems if problem.entity}
        return [
            Metric("gauge", "pps_entities", "Entities registered.", states),
            _gauge("pps_open_entities", "Entities open.", len(self._app.open_names())),
            _gauge("pps_pending_entities", "Closed entities with unfinished jobs.", len(pending)),
            _gauge("pps_problems", "Problems, of entities and of the server.", len(problems)),
            _gauge("pps_entity_problems", "Entities that have a problem.", len(with_problems)),
        ]

    async def _of_backlog(self) -> list[Metric]:
        jobs = lag = 0
        for name in self._app.open_names():
            # One that cannot be asked counts among the problems; the other numbers are told.
            with contextlib.suppress(PPSError):
                async with self._app.memory(name, pool=True) as memory:
                    stats = await memory.stats()
                jobs = jobs + stats.unfinished_jobs
                lag = lag + stats.index_lag
        return [
            _gauge("pps_unfinished_jobs", "Acknowledged turns not yet in graph and indexes.", jobs),
            _gauge("pps_index_lag", "Index entries to be made anew.", lag),
        ]

    def _of_calls(self) -> list[Metric]:
        tallies = [
            ({"operation": name, "outcome": outcome}, tally)
            for (name, outcome), tally in self._calls.tallies.items()
        ]
        times = tuple(Sample(tally.times, labels) for labels, tally in tallies)
        seconds = tuple(Sample(tally.seconds, labels) for labels, tally in tallies)
        return [
            Metric("counter", "pps_calls_total", "Operations by how they ended.", times),
            Metric("counter", "pps_call_seconds_total", "Seconds spent in operations.", seconds),
        ]

    def _of_requests(self) -> list[Metric]:
        counts = tuple(
            Sample(count, {"method": method, "route": route, "status": str(status)})
            for (method, route, status), count in self._requests.requests.items()
        )
        return [
            Metric("counter", "pps_http_requests_total", "Requests that were answered.", counts),
            Metric(
                "histogram",
                "pps_http_request_duration_seconds",
                "Seconds from a request to the beginning of its answer.",
                tuple(self._histogram()),
            ),
        ]

    def _histogram(self) -> Iterator[Sample]:
        bounds = [*(str(bound) for bound in BUCKETS_S), "+Inf"]
        for route, durations in self._requests.durations.items():
            labels = {"route": route}
            upto = [*accumulate(durations.counts)]
            for bound, count in zip(bounds, upto, strict=True):
                yield Sample(count, {**labels, "le": bound}, "_bucket")
            yield Sample(durations.seconds, labels, "_sum")
            yield Sample(upto[-1], labels, "_count")


def _gauge(name: str, help_text: str, value: float, **labels: str) -> Metric:
    return Metric("gauge", name, help_text, (Sample(value, labels),))


def _of_process() -> Iterable[Metric]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime
    yield Metric(
        "counter", "process_cpu_seconds_total", "Processor time in seconds.", (Sample(cpu_s, {}),)
    )
    yield _gauge("process_start_time_seconds", "Start, in seconds since 1970.", _STARTED)
    yield _gauge("process_threads", "Python threads.", threading.active_count())
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY:
        yield _gauge("process_max_fds", "Most file descriptors that may be open.", limit)
    files = Path("/proc/self/fd")
    if files.exists():
        open_files = sum(1 for _ in files.iterdir())
        yield _gauge("process_open_fds", "Open file descriptors.", open_files)
    pages = Path("/proc/self/statm")
    if pages.exists():
        resident = int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        yield _gauge("process_resident_memory_bytes", "Resident memory.", resident)
