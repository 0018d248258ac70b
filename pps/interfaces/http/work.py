"""Long work for the owner: it reports as it goes, a JSON line a report, the result or the error last."""

from __future__ import annotations

import asyncio
import json
import logging
import time as clock
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress

from pps.app import App
from pps.core.errors import InvalidRequest, PPSError
from pps.core.log_context import unforeseen
from pps.core.values import JSON
from pps.ingest.indexer import Progress
from pps.interfaces.http import documents, maintenance
from pps.interfaces.http.answers import internal, said, text
from pps.proof.verify import Finding, verify

_log = logging.getLogger(__name__)

_BEAT_S = 10.0
_LEAST_PAUSE_S = 0.1
Task = Callable[[App, Mapping[str, JSON], Progress], Coroutine[None, None, dict[str, JSON]]]


def find(task: str) -> Task:
    """Return a task by name; InvalidRequest when there is none."""
    found = _TASKS.get(task)
    if found is None:
        raise InvalidRequest("task", f"there is none of that name; there are {', '.join(_TASKS)}")
    return found


async def events(task: Task, app: App, arguments: Mapping[str, JSON]) -> AsyncGenerator[bytes]:
    """Yield reports while the work runs; when the reader goes away the work is cancelled."""
    reports = _Reports()
    work = asyncio.create_task(task(app, arguments, reports.told))
    work.add_done_callback(lambda _: reports.wake.set())
    try:
        while not work.done():
            with suppress(TimeoutError):
                await asyncio.wait_for(reports.wake.wait(), _BEAT_S)
            reports.wake.clear()
            if not work.done():
                yield _line(reports.last)
        yield _line(_outcome(work))
    finally:
        work.cancel()
        await asyncio.wait([work])


class _Reports:
    """The latest report; a reader is woken at most ten times a second."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.last: dict[str, JSON] = {"what": "starting", "done": 0, "total": 0}
        self._told_at = 0.0

    def told(self, what: str, done: int, total: int) -> None:
        self.last = {"what": what, "done": done, "total": total}
        if done >= total or clock.monotonic() - self._told_at > _LEAST_PAUSE_S:
            self._told_at = clock.monotonic()
            self.wake.set()


async def _reindex(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    return {"indexed": await app.reindex(text(arguments, "entity"), progress)}


async def _reembed(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    return {"indexed": await app.reembed(text(arguments, "entity"), progress)}


async def _rebuild(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    return {"indexed": await app.rebuild(text(arguments, "entity"), progress)}


async def _import_anchors(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    path = documents.existing(app, arguments.get("path"))
    async with app.memory(text(arguments, "entity")) as memory:
        progress("anchors", 0, 0)
        report = await memory.anchor_import(path)
    skipped: list[JSON] = [{"what": one.what, "why": one.why} for one in report.skipped]
    return {"saved": [one.slug for one in report.saved], "unchanged": report.unchanged, "skipped": skipped}


async def _verify(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Attack throw-away entities on the store that is set."""
    operations = arguments.get("operations", 2000)
    if not isinstance(operations, int) or operations < 1:
        raise InvalidRequest("operations", "must be a number, 1 or more")
    report = await verify(
        app.settings, operations=operations, progress=lambda done, total: progress("attacks", done, total)
    )
    return {
        "ok": report.ok,
        "store": report.store,
        "entities": report.entities,
        "operations": report.operations,
        "refused": report.refused,
        "leaks": _findings(report.leaks),
        "told_apart": _findings(report.told_apart),
        "broken": _findings(report.broken),
        "second_lock": report.second_lock,
        "seconds": round(report.seconds, 2),
    }


def _findings(found: Sequence[Finding]) -> list[JSON]:
    return [{"operation": one.operation, "entity": one.entity, "what": one.what} for one in found]


def _outcome(work: asyncio.Task[dict[str, JSON]]) -> dict[str, JSON]:
    error = work.exception()
    if error is None:
        return {"result": work.result()}
    if isinstance(error, PPSError):
        return said(error)
    unforeseen(_log, "long work failed", error)
    return internal()


def _line(event: Mapping[str, JSON]) -> bytes:
    return json.dumps(event).encode() + b"\n"


_TASKS: dict[str, Task] = {
    "reindex": _reindex,
    "reembed": _reembed,
    "rebuild": _rebuild,
    "import": documents.import_files,
    "export": documents.export,
    "watch.add": documents.watch,
    "watch.remove": documents.unwatch,
    "anchors.import": _import_anchors,
    "verify": _verify,
    "jobs.list": maintenance.list_jobs,
    "jobs.retry": maintenance.retry_jobs,
    "jobs.drop": maintenance.drop_jobs,
    "doctor": maintenance.examine,
    "extract": maintenance.extract,
}
