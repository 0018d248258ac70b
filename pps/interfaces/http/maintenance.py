"""Looking after memories, for the owner: their jobs, and whether journal, graph and indexes agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import cast, get_args

from pydantic import TypeAdapter

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.reports import JobReport, Ledger
from pps.core.time import parse
from pps.core.values import JSON
from pps.ingest.indexer import Progress
from pps.interfaces.http.answers import text
from pps.journal.values import JobState

_JOB: TypeAdapter[JobReport] = TypeAdapter(JobReport)
_LEDGER: TypeAdapter[Ledger] = TypeAdapter(Ledger)
_PAGE = 1_000


async def list_jobs(app: App, arguments: Mapping[str, JSON], _: Progress) -> dict[str, JSON]:
    """Return jobs of a state (else unfinished and parked ones), oldest first, a page at a time."""
    state = text(arguments, "state", "")
    if state not in ("", *get_args(JobState)):
        raise InvalidRequest("state", f"must be one of {', '.join(get_args(JobState))}")
    after, limit = _number(arguments, "after", 0, 0, 1 << 60), _number(arguments, "limit", 100, 1, _PAGE)
    async with app.memory(text(arguments, "entity")) as memory:
        found = await memory.jobs.list(cast("JobState", state) if state else None, after=after, limit=limit)
    return {"jobs": [_shown(job) for job in found], "next": found[-1].id if len(found) == limit else None}


async def retry_jobs(app: App, arguments: Mapping[str, JSON], _: Progress) -> dict[str, JSON]:
    """Queue ended jobs again: the ones named, or all that are parked."""
    async with app.memory(text(arguments, "entity")) as memory:
        return {"retried": list(await memory.jobs.retry(_ids(arguments)))}


async def drop_jobs(app: App, arguments: Mapping[str, JSON], _: Progress) -> dict[str, JSON]:
    """Give jobs up: the parked or waiting ones named, or all that are parked."""
    async with app.memory(text(arguments, "entity")) as memory:
        return {"dropped": list(await memory.jobs.drop(_ids(arguments)))}


async def examine(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Return the health of an entity, and whether its journal, graph and indexes hold the same ids."""
    name = text(arguments, "entity")
    async with app.memory(name) as memory:
        progress(f"comparing {name}", 0, 0)
        health = await memory.health()
        ledger = await memory.ledger()
    return {
        "ok": health.ok and not ledger.problems,
        "problems": [*health.problems, *ledger.problems],
        "notes": [*health.notes, *ledger.notes],
        "ledger": cast("JSON", _LEDGER.dump_python(ledger, mode="json")),
    }


async def extract(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Have the turns read that nothing has read, or say what it would take."""
    since, dry_run = text(arguments, "since", ""), arguments.get("dry_run") is True
    async with app.memory(text(arguments, "entity")) as memory:
        found = await memory.jobs.extract(parse(since) if since else None, dry_run=dry_run, progress=progress)
    return asdict(found)


def _shown(job: JobReport) -> dict[str, JSON]:
    return cast("dict[str, JSON]", _JOB.dump_python(job, mode="json"))


def _ids(arguments: Mapping[str, JSON]) -> list[int] | None:
    """Return the numbers under ``ids``; None stands for all, and has to be asked for as such."""
    if arguments.get("all") is True:
        return None
    ids = arguments.get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(one, int) and one > 0 for one in ids):
        raise InvalidRequest("ids", "must be a list of numbers of jobs, 1 or more; or say all=true")
    return cast("list[int]", ids)


def _number(arguments: Mapping[str, JSON], name: str, default: int, least: int, most: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or not least <= value <= most:
        raise InvalidRequest(name, f"must be a number, {least:,} to {most:,}")
    return value
