"""Imports, exports and followed folders: operations of the owner on files of this machine."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pps.app import App
from pps.core.errors import InvalidRequest, NotFound
from pps.core.reports import CostEstimate
from pps.core.text import counted
from pps.core.values import Skipped
from pps.entities.paths import MAX_PATH, outside, real_path
from pps.entities.routing import MappedFolder
from pps.ingest.importing.run import Imported, Wanted
from pps.ingest.indexer import Progress
from pps.operations.inputs import Input, Label, argument, fields_of
from pps.operations.record_import import (
    SHOWN,
    RecordsImported,
    WantedRecords,
    import_records,
    recorded,
)
from pps.operations.table import ADDS, MAINTENANCE, OWNERS_REGISTRY, READS, SETS, WITHDRAWS


class OfEntity(Input):
    """Whose memory it is about."""

    entity: Label = Field(description="The entity's name.", json_schema_extra=argument())


LocalPath = Annotated[str, Field(max_length=MAX_PATH)]

_WAITS = "; some still wait to be taken in, `pps jobs list` says which"


class ImportInput(OfEntity):
    """Files to remember."""

    paths: tuple[LocalPath, ...] = Field(
        min_length=1,
        description="Files, folders or zip files of this machine, absolute; or a group that "
        "Graphiti keeps on a Neo4j: neo4j://HOST:PORT/DATABASE?group=NAME.",
        json_schema_extra=argument(
            path=True,
            help="Files, folders or zip files of this machine; or "
            "neo4j://HOST:PORT/DATABASE?group=NAME, a group of Graphiti's.",
        ),
    )
    format: Label = Field(
        default="auto",
        description="auto (found by the content of each file), jsonl, claude-code, chatgpt, "
        "claude, open-webui, librechat, codex, gemini-cli, whatsapp, messages, mem0, mcp-memory, "
        "claude-mem, mcp-memory-service, letta, graphiti, basic-memory or markdown. Or records: "
        "CSV or JSON of records of the packs' kinds, or of an export.",
    )
    kind: Label = Field(default="", description="With records: the kind of rows that name none.")
    skip: bool = Field(
        default=False, description="With records: keep the others when some have mistakes."
    )
    dry_run: bool = Field(default=False, description="Only read and count; nothing is stored.")


class FileInput(OfEntity):
    """A file to write."""

    path: LocalPath = Field(
        description="A new file, absolute; nothing is overwritten.",
        json_schema_extra=argument(path=True, help="A new file; nothing is overwritten."),
    )


class WatchInput(OfEntity):
    """A folder to follow."""

    path: LocalPath = Field(
        description="A folder of Markdown files, or one such file, absolute.",
        json_schema_extra=argument(path=True, help="A folder of Markdown files, or one such file."),
    )


class UnwatchInput(WatchInput):
    """A folder to follow no longer."""

    forget: bool = Field(default=False, description="True also forgets what was read from it.")


class WatchedInput(Input):
    """Whose folders."""

    name: Label = Field(
        default="", description="Only folders of this entity.", json_schema_extra=argument()
    )


@dataclass(slots=True)
class ImportView(Imported):
    """What an import did.

    Attributes:
        estimate: What a language model would take, of a dry run where one reads.
        records: What became of records, where the format was that; their mistakes are
            ``unreadable`` too.
    """

    estimate: CostEstimate | None = None
    records: RecordsImported | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """The file that was written, and how many lines it has."""

    path: str
    lines: int


@dataclass(frozen=True, slots=True)
class FolderView:
    """A folder that leads to an entity; those of an ``archived`` one lead nowhere."""

    path: str
    entity: str
    created_at: datetime
    archived: bool


@dataclass(frozen=True, slots=True)
class Followed(FolderView):
    """What taking in a folder did, by files, and whether graph and indexes have all of it."""

    added: int
    changed: int
    removed: int
    unchanged: int
    waiting: int
    away: int
    stored: int
    forgotten: int
    skipped: tuple[Skipped, ...]
    settled: bool


@dataclass(frozen=True, slots=True)
class Unfollowed(FolderView):
    """A folder that is followed no longer, and how many passages were forgotten."""

    forgotten: int


@dataclass(frozen=True, slots=True)
class AnchorsImported:
    """Slugs of the anchors that a folder became, and what was left out."""

    saved: tuple[str, ...]
    unchanged: int
    skipped: tuple[Skipped, ...]


def estimated(value: CostEstimate) -> str:
    """Return what a language model would take, in a line."""
    cost = f", ${value.cost_usd:.2f}" if value.cost_usd is not None else ""
    days = f", the budget of {counted(value.days, 'day')}" if value.days is not None else ""
    return (
        f"the language model would take some {value.tokens_in:,} tokens in and "
        f"{value.tokens_out:,} out"
        f"{cost}{days} (by {value.basis})"
    )


def _import_text(value: ImportView) -> str:
    if value.records is not None:
        return recorded(value.records, value.unreadable_count)
    formats = ", ".join(f"{count} × {format_name}" for format_name, count in value.files.items())
    span = (
        f", {value.first_at:%Y-%m-%d} to {value.last_at:%Y-%m-%d}"
        if value.first_at and value.last_at
        else ""
    )
    lines = [
        f"read {formats or 'nothing'}: {counted(value.turns, 'turn')} in "
        f"{counted(value.sessions, 'conversation')}"
        f"{span}, {counted(value.nodes, 'node')} and {counted(value.facts, 'fact')}, "
        f"about {counted(value.tokens, 'token')}"
    ]
    if value.dry_run:
        lines.append(
            f"would store {value.stored}, {value.duplicates} known already (dry run: nothing was "
            "stored)"
        )
        lines += [estimated(value.estimate)] if value.estimate else []
    else:
        redacted = f"; {counted(value.redacted, 'secret')} taken out" if value.redacted else ""
        waits = "" if value.settled else _WAITS
        lines.append(f"{value.stored} stored, {value.duplicates} known already{redacted}{waits}")
    lines += [f"passed over: {count} {why}" for why, count in value.passed.items()]
    lines += [
        f"could not be read: {unreadable.what}: {unreadable.why}"
        for unreadable in value.unreadable[:SHOWN]
    ]
    if value.unreadable_count:
        rest = (
            f", the first {SHOWN} are above; --json lists them"
            if value.unreadable_count > SHOWN
            else ""
        )
        lines.append(f"{value.unreadable_count} could not be read{rest}; everything else was")
    return "\n".join(lines)


def _followed_text(value: Followed) -> str:
    files = (
        f"{counted(value.added, 'file')} new, {value.changed} changed, {value.unchanged} unchanged"
    )
    waits = "" if value.settled else _WAITS
    head = (
        f"{value.entity} follows {value.path}: {files}; {counted(value.stored, 'passage')} "
        f"stored{waits}"
    )
    return "\n".join(
        [
            head,
            *(
                f"left out: {skipped_item.what}: {skipped_item.why}"
                for skipped_item in value.skipped
            ),
        ]
    )


def _unfollowed_text(value: Unfollowed) -> str:
    return (
        f"{value.entity} follows {value.path} no longer; {counted(value.forgotten, 'passage')} "
        "forgotten"
    )


def _folders_text(folders: Sequence[FolderView]) -> str:
    return (
        "\n".join(f"{folder.entity}  {folder.path}" for folder in folders)
        or "None: `pps watch add NAME FOLDER` adds one."
    )


def _anchors_text(value: AnchorsImported) -> str:
    lines = [f"left out: {skipped_item.what}: {skipped_item.why}" for skipped_item in value.skipped]
    return "\n".join([f"{len(value.saved)} saved, {value.unchanged} unchanged", *lines])


def told(progress: Progress | None, stage: str) -> None:
    if progress:
        progress(stage, 0, 0)


@MAINTENANCE.operation(
    "Import files",
    _import_text,
    SETS,
    command="import",
    examples=(
        "pps import ana talk.jsonl",
        "pps import ana ~/.claude/projects",
        "pps import ana export.zip --dry-run",
        "pps import ana goals.csv --format records --kind Goal --dry-run",
        "pps import ana 'neo4j://127.0.0.1:7687/neo4j?group=main' --format graphiti",
    ),
)
async def import_(app: App, request: ImportInput, progress: Progress | None) -> ImportView:
    """Remembers what other programs kept: conversations, notes, memories, graphs.

    Importing again adds nothing. An interrupted import continues when it is run again. What cannot
    be read is reported, and the rest is stored; for records nothing is stored, unless {skip} is
    set.
    """
    with tempfile.TemporaryDirectory(prefix="pps-import-") as folder:
        paths = list[Path]()
        for number, path in enumerate(request.paths):
            if _is_address(path):
                place = Path(folder) / str(number)
                await asyncio.to_thread(place.mkdir)
                paths.append(await _dumped(app, request, path, place, progress))
            else:
                paths.append(_existing(app, path, "paths", around=True))
        return await _imported_files(app, request, paths, progress)


def _is_address(path: str) -> bool:
    return path.partition("://")[0] in (
        "neo4j",
        "neo4j+s",
        "neo4j+ssc",
        "bolt",
        "bolt+s",
        "bolt+ssc",
    )


async def _dumped(
    app: App, request: ImportInput, address: str, folder: Path, progress: Progress | None
) -> Path:
    if request.format not in ("auto", "graphiti"):
        raise InvalidRequest("format", f"{request.format!r} is of files; a Neo4j has graphiti")
    told(progress, "reading Neo4j")
    return await app.dump_graphiti(address, folder)


async def _imported_files(
    app: App, request: ImportInput, paths: list[Path], progress: Progress | None
) -> ImportView:
    if request.format == "records":
        return await _records(app, request, paths, progress)
    wanted = Wanted(paths, format=request.format, dry_run=request.dry_run, avoid=app.settings.home)
    async with app.memory(request.entity) as memory:
        done = await memory.documents.import_files(wanted, progress)
        reads = wanted.dry_run and app.settings.extractor.mode == "model"
        new = done.characters * done.stored // max(1, done.turns)
        estimate = await memory.costs.estimate(done.stored, new) if reads else None
    return ImportView(**fields_of(done), estimate=estimate)


async def _records(
    app: App, request: ImportInput, paths: list[Path], progress: Progress | None
) -> ImportView:
    async with app.memory(request.entity) as memory:
        done = await import_records(
            memory, WantedRecords(paths, request.kind, request.skip, request.dry_run), progress
        )
        settled = await memory.documents.settled(progress) if done.kept else True
    return ImportView(
        request.dry_run,
        {"records": len(paths)},
        stored=(done.created + done.changed) * done.kept,
        duplicates=done.unchanged * done.kept,
        unreadable=[*done.mistakes],
        unreadable_count=len(done.mistakes),
        settled=settled,
        records=done,
    )


@MAINTENANCE.operation(
    "Export a memory",
    lambda value: f"{counted(value.lines, 'line')} written to {value.path}",
    ADDS,
    command="export",
    examples=("pps export ana ana.jsonl",),
)
async def export(app: App, request: FileInput, progress: Progress | None) -> Exported:
    """Writes an entity's turns, nodes, facts and records to a new file of JSON lines.

    {import} reads it. The file holds everything in plain text; only you may read it. Anchors are
    not included: they are files already.
    """
    path = Path(request.path)
    outside(app.settings.home, str(path))
    told(progress, "writing")
    async with app.memory(request.entity, pool=True) as memory:
        return Exported(str(path), await memory.documents.export(path))


@MAINTENANCE.operation(
    "Follow a folder",
    _followed_text,
    SETS,
    command="watch add",
    examples=(
        "pps watch add ana ~/notes",
        "pps watch add shop ~/work/shop/AGENTS.md",
        "pps watch add shop ~/.claude/projects/-home-ana-work-shop/memory",
    ),
)
async def watch_add(app: App, request: WatchInput, progress: Progress | None) -> Followed:
    """Imports a folder's Markdown files, or one file, and follows changes while the server runs.

    A changed file is read again, a deleted one is forgotten. Changes while no server ran are found
    at its next start. A folder belongs to one entity.
    """
    folder = await asyncio.to_thread(app.registry.watched.add, request.path, request.entity)
    async with app.memory(request.entity) as memory:
        done = await memory.documents.follow(Path(folder.path), progress)
        settled = await memory.documents.settled(progress)
    return Followed(**fields_of(folder_view(folder)), **fields_of(done), settled=settled)


@MAINTENANCE.operation(
    "Stop following a folder",
    _unfollowed_text,
    WITHDRAWS,
    command="watch remove",
    carried_through=True,
    examples=("pps watch remove ana ~/notes --forget",),
)
async def watch_remove(app: App, request: UnwatchInput, progress: Progress | None) -> Unfollowed:
    """Stops following a folder.

    What was read from it stays, unless {forget} is set.
    """
    watched = app.registry.watched
    forgotten = 0
    if request.forget:
        path = Path(real_path(request.path, "path"))
        if all(
            folder.path != str(path)
            for folder in await asyncio.to_thread(watched.list, request.entity)
        ):
            raise NotFound("watched folder")
        told(progress, "forgetting")
        async with app.memory(request.entity) as memory:
            forgotten = await memory.documents.drop(
                path
            )  # first: what fails here can be asked for again
            folder = await asyncio.to_thread(watched.remove, request.path, request.entity)
            forgotten += await memory.documents.drop(path)  # what was read of it between
    else:
        folder = await asyncio.to_thread(watched.remove, request.path, request.entity)
    return Unfollowed(**fields_of(folder_view(folder)), forgotten=forgotten)


@OWNERS_REGISTRY.operation(
    "List the followed folders",
    _folders_text,
    READS,
    items="folders",
    command="watch list",
    examples=("pps watch list",),
)
async def watch_list(app: App, request: WatchedInput) -> tuple[FolderView, ...]:
    """Returns the folders that entities follow, all of them or one entity's."""
    if request.name:
        await asyncio.to_thread(app.registry.get, request.name)
    folders = await asyncio.to_thread(app.registry.watched.list, request.name or None)
    return tuple(map(folder_view, folders))


@MAINTENANCE.operation(
    "Import anchors",
    _anchors_text,
    SETS,
    command="anchors import",
    examples=("pps anchors import ana ~/notes",),
)
async def anchors_import(
    app: App, request: WatchInput, progress: Progress | None
) -> AnchorsImported:
    """Copies a folder of Markdown files into the anchors; a second time updates them."""
    path = _existing(app, request.path, "path")
    told(progress, "anchors")
    async with app.memory(request.entity) as memory:
        report = await memory.anchor_import(path)
    return AnchorsImported(
        tuple(anchor.slug for anchor in report.saved), report.unchanged, report.skipped
    )


def folder_view(folder: MappedFolder) -> FolderView:
    return FolderView(folder.path, folder.entity.name, folder.created_at, folder.archived)


def _existing(app: App, value: str, field: str, *, around: bool = False) -> Path:
    """Return the path of something that is there, outside of the data folder.

    InvalidRequest says why not.
    """
    outside(app.settings.home, value, field, around=around)
    if not os.path.exists(value):  # noqa: PTH110 - Path.exists raises for a name that is too long
        raise InvalidRequest(field, f"there is nothing at {value}")
    return Path(value)
