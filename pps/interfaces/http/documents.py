"""Long work with documents for the owner: imports, and folders that are followed from now on or no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.time import iso
from pps.core.values import JSON, Skipped
from pps.entities import MappedFolder
from pps.entities.paths import outside
from pps.ingest.documents import Synced
from pps.ingest.importing import Imported, Wanted
from pps.ingest.indexer import Progress
from pps.interfaces.http.answers import text


async def import_files(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Remember what files and folders hold; what was read before is known by its reference."""
    given = arguments.get("paths")
    listed = given if isinstance(given, list) else []
    paths = [existing(app, one, "paths", around=True) for one in listed]
    if not paths:
        raise InvalidRequest("paths", "must be a list with a path or more")
    wanted = Wanted(
        paths,
        format=text(arguments, "format", "auto"),
        dry_run=arguments.get("dry_run") is True,
        avoid=app.settings.home,
    )
    async with app.memory(text(arguments, "entity")) as memory:
        done = await memory.documents.import_files(wanted, progress)
        reads = wanted.dry_run and app.settings.extractor.mode == "model"
        new = done.characters * done.stored // max(1, done.turns)
        estimate = await memory.costs.estimate(done.stored, new) if reads else None
    return {**_imported(done), "estimate": asdict(estimate) if estimate else None}


async def export(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Write what a memory holds to a new file that an import reads again."""
    path = Path(text(arguments, "path"))
    outside(app.settings.home, str(path))
    progress("writing", 0, 0)
    async with app.memory(text(arguments, "entity")) as memory:
        count = await memory.documents.export(path)
    return {"path": str(path), "lines": count}


async def watch(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Let a folder feed an entity from now on, and take in what is in it."""
    name = text(arguments, "entity")
    folder = await asyncio.to_thread(app.registry.watched.add, text(arguments, "path"), name)
    async with app.memory(name) as memory:
        done = await memory.documents.follow(Path(folder.path), progress)
        settled = await memory.documents.settled(progress)
    return {**watched(folder), **_synced(done), "settled": settled}


async def unwatch(app: App, arguments: Mapping[str, JSON], progress: Progress) -> dict[str, JSON]:
    """Let a folder feed its entity no longer; what it brought stays unless ``forget`` is true."""
    name = text(arguments, "entity")
    folder = await asyncio.to_thread(app.registry.watched.remove, text(arguments, "path"), name)
    forgotten = 0
    if arguments.get("forget") is True:
        progress("forgetting", 0, 0)
        async with app.memory(name) as memory:
            forgotten = await memory.documents.drop(Path(folder.path))
    return {**watched(folder), "forgotten": forgotten}


def watched(folder: MappedFolder) -> dict[str, JSON]:
    """Return a watched folder as JSON data."""
    return {"path": folder.path, "entity": folder.entity.name, "created_at": iso(folder.created_at)}


def _imported(done: Imported) -> dict[str, JSON]:
    return {
        **asdict(done),
        "unreadable": _skipped(done.unreadable),
        "first_at": iso(done.first_at) if done.first_at else None,
        "last_at": iso(done.last_at) if done.last_at else None,
    }


def _synced(done: Synced) -> dict[str, JSON]:
    return {**asdict(done), "skipped": _skipped(done.skipped)}


def _skipped(found: Sequence[Skipped]) -> list[JSON]:
    return [{"what": one.what, "why": one.why} for one in found]


def existing(app: App, value: JSON, field: str = "path", *, around: bool = False) -> Path:
    """Return the path of something that is there, outside of the data folder; InvalidRequest says why not."""
    path = Path(value) if isinstance(value, str) else Path()
    outside(app.settings.home, str(path), field, around=around)
    if not path.exists():
        raise InvalidRequest(field, f"there is nothing at {path}")
    return path
