"""Looking after memories, for the owner: imports and exports, folders that are followed, jobs, indexes, proof."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from pps.app import App
from pps.core.errors import InvalidRequest
from pps.core.reports import CostEstimate, JobReport, Ledger
from pps.core.values import Skipped
from pps.entities.paths import MAX_PATH, outside
from pps.ingest.importing import Imported, Wanted
from pps.ingest.indexer import Progress
from pps.journal.entries import JobState
from pps.operations.administration import folder_view
from pps.operations.command_line import argument
from pps.operations.inputs import Input, Label
from pps.operations.table import ADDS, ERASES, READS, SETS, operation
from pps.operations.words import counted
from pps.proof.verify import Report, verify

_SHOWN = 20
_WAITS = "; some still wait to be taken in, `pps jobs list` says which"
LocalPath = Annotated[str, Field(max_length=MAX_PATH)]


class OfEntity(Input):
    """Whose memory it is about."""

    entity: Label = Field(description="The entity's name.", json_schema_extra=argument())


class ImportInput(OfEntity):
    """Files to remember."""

    paths: tuple[LocalPath, ...] = Field(
        min_length=1,
        description="Files, folders or zip files of this machine, absolute.",
        json_schema_extra=argument(path=True),
    )
    format: Label = Field(
        default="auto",
        description="auto, jsonl, claude-code, chatgpt, claude, mem0, graphiti, basic-memory or markdown; 'auto' finds "
        "it by the content of each file.",
    )
    dry_run: bool = Field(default=False, description="Only read and count; nothing is stored.")


class FileInput(OfEntity):
    """A file to write."""

    path: LocalPath = Field(
        description="A new file, absolute; nothing is overwritten.", json_schema_extra=argument(path=True)
    )


class WatchInput(OfEntity):
    """A folder to follow."""

    path: LocalPath = Field(description="A folder of Markdown files, absolute.", json_schema_extra=argument(path=True))


class UnwatchInput(WatchInput):
    """A folder to follow no longer."""

    forget: bool = Field(default=False, description="Forget what it brought, too.")


class JobsInput(OfEntity):
    """Which jobs to list."""

    state: JobState | None = Field(
        default=None,
        description="queued, running, done, failed or dropped; unfinished and failed ones if not given.",
    )
    after: int = Field(default=0, ge=0, le=1 << 60, description="Only jobs with a greater number.")
    limit: int = Field(default=100, ge=1, le=1_000, description="Most jobs.")


class ChosenInput(OfEntity):
    """Which jobs: the ones named, or all that failed."""

    ids: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(), max_length=1_000, description="Numbers of jobs.", json_schema_extra=argument()
    )
    all: bool = Field(default=False, description="Every job that failed.")

    def chosen(self) -> list[int] | None:
        """Return the numbers; None stands for all, and has to be asked for as such."""
        if self.all == bool(self.ids):
            raise InvalidRequest("ids", "must be numbers of jobs, 1 or more; or say all=true, and not both")
        return None if self.all else list(self.ids)


class VerifyInput(Input):
    """How many attacks."""

    operations: int = Field(default=2_000, ge=1, le=10_000_000, description="How many attacks.")


@dataclass(slots=True)
class ImportView(Imported):
    """What an import did; ``estimate`` is what a language model would take, of a dry run where one reads."""

    estimate: CostEstimate | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """The file that was written, and how many lines it has."""

    path: str
    lines: int


@dataclass(frozen=True, slots=True)
class Followed:
    """What taking in a folder did, by files, and whether graph and indexes have all of it."""

    path: str
    entity: str
    created_at: datetime
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
class Unfollowed:
    """A folder that is followed no longer, and how many passages were forgotten."""

    path: str
    entity: str
    created_at: datetime
    forgotten: int


@dataclass(frozen=True, slots=True)
class AnchorsImported:
    """Slugs of the anchors that a folder became, and what was left out."""

    saved: tuple[str, ...]
    unchanged: int
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many documents were indexed, by kind."""

    indexed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs, oldest first; ``next`` is the last one's number when there may be more."""

    jobs: tuple[JobReport, ...]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Retried:
    """Numbers of the jobs that are queued again."""

    retried: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Numbers of the jobs that were given up."""

    dropped: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """Whether a memory is well and its journal, graph and indexes hold the same ids."""

    ok: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Verified(Report):
    """What the attacks found; ``ok`` when nothing of one entity reached another."""

    ok: bool = False  # pyright: ignore[reportIncompatibleMethodOverride] - a field is sent, a property is not


def estimated(value: CostEstimate) -> str:
    """Return what a language model would take, in a line."""
    cost = f", ${value.cost_usd:.2f}" if value.cost_usd is not None else ""
    days = f", the budget of {counted(value.days, 'day')}" if value.days is not None else ""
    return (
        f"the language model would take some {value.tokens_in:,} tokens in and {value.tokens_out:,} out"
        f"{cost}{days} (by {value.basis})"
    )


def _imported(value: ImportView) -> str:
    formats = ", ".join(f"{count} × {one}" for one, count in value.files.items())
    span = f", {value.first_at:%Y-%m-%d} to {value.last_at:%Y-%m-%d}" if value.first_at and value.last_at else ""
    lines = [
        f"read {formats or 'nothing'}: {counted(value.turns, 'turn')} in {counted(value.sessions, 'conversation')}"
        f"{span}, {counted(value.nodes, 'node')} and {counted(value.facts, 'fact')}, "
        f"about {counted(value.tokens, 'token')}"
    ]
    if value.dry_run:
        lines.append(f"would store {value.stored}, {value.duplicates} known already (dry run: nothing was stored)")
        lines += [estimated(value.estimate)] if value.estimate else []
    else:
        redacted = f"; {counted(value.redacted, 'secret')} taken out" if value.redacted else ""
        waits = "" if value.settled else _WAITS
        lines.append(f"{value.stored} stored, {value.duplicates} known already{redacted}{waits}")
    lines += [f"passed over: {count} {why}" for why, count in value.passed.items()]
    lines += [f"could not be read: {one.what}: {one.why}" for one in value.unreadable[:_SHOWN]]
    if value.unreadable_count:
        rest = f", the first {_SHOWN} are above; --json lists them" if value.unreadable_count > _SHOWN else ""
        lines.append(f"{value.unreadable_count} could not be read{rest}; everything else was")
    return "\n".join(lines)


def _followed(value: Followed) -> str:
    files = f"{counted(value.added, 'file')} new, {value.changed} changed, {value.unchanged} unchanged"
    waits = "" if value.settled else _WAITS
    head = f"{value.entity} follows {value.path}: {files}; {counted(value.stored, 'passage')} stored{waits}"
    return "\n".join([head, *(f"left out: {one.what}: {one.why}" for one in value.skipped)])


def _unfollowed(value: Unfollowed) -> str:
    return f"{value.entity} follows {value.path} no longer; {counted(value.forgotten, 'passage')} forgotten"


def _anchors(value: AnchorsImported) -> str:
    lines = [f"left out: {one.what}: {one.why}" for one in value.skipped]
    return "\n".join([f"{len(value.saved)} saved, {value.unchanged} unchanged", *lines])


def _indexed(value: Indexed) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in value.indexed.items())
    return f"indexed {counts or 'nothing: it is empty'}"


def _rebuilt(value: Indexed) -> str:
    return (
        f"{_indexed(value)}\n{value.indexed.get('to_read') or 'No'} turns wait to be read by a model again. Not back: "
        "what texts said before they were changed, merges, relations made by themselves, imported graphs, when each "
        "fact was learned."
    )


def _jobs(value: Jobs) -> str:
    lines = [
        f"{one.id:>7} {one.state:<8} {one.stage:<5} tried {one.attempts}  {one.text}"
        f"{f'  ({one.error})' if one.error else ''}"
        for one in value.jobs
    ]
    return "\n".join([*(lines or ["No such jobs."]), *([f"More: --after {value.next}"] if value.next else [])])


def _examined(value: Examined) -> str:
    lines = ["All is well." if value.ok else "Not well:"]
    return "\n".join([*lines, *(f"- {one}" for one in value.problems), *(f"note: {one}" for one in value.notes)])


def _verified(value: Verified) -> str:
    head = f"{counted(value.total, 'operation')} on {value.store}, {counted(len(value.leaks), 'leak')}"
    found = [*value.leaks, *value.told_apart, *value.broken]
    return "\n".join([head, *(f"{one.operation} ({one.entity}): {one.what}" for one in found)])


def _told(progress: Progress | None, what: str) -> None:
    if progress:
        progress(what, 0, 0)


@operation(
    "Import files",
    _imported,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="import",
    examples=(
        "pps import ana talk.jsonl",
        "pps import ana ~/.claude/projects",
        "pps import ana export.zip --dry-run",
    ),
    name="import",
)
async def import_files(app: App, given: ImportInput, progress: Progress | None) -> ImportView:
    """Remembers what other programs kept: conversations, notes, memories, graphs; a second time adds nothing.

    It may be cut short and asked again: it goes on from there. What could not be read is said, and the rest is stored.
    """
    paths = [_existing(app, one, "paths", around=True) for one in given.paths]
    wanted = Wanted(paths, format=given.format, dry_run=given.dry_run, avoid=app.settings.home)
    async with app.memory(given.entity) as memory:
        done = await memory.documents.import_files(wanted, progress)
        reads = wanted.dry_run and app.settings.extractor.mode == "model"
        new = done.characters * done.stored // max(1, done.turns)
        estimate = await memory.costs.estimate(done.stored, new) if reads else None
    return ImportView(**_fields(done), estimate=estimate)


@operation(
    "Export a memory",
    lambda value: f"{counted(value.lines, 'line')} written to {value.path}",
    ADDS,
    audience="owner",
    toolset="maintenance",
    command="export",
    examples=("pps export ana ana.jsonl",),
)
async def export(app: App, given: FileInput, progress: Progress | None) -> Exported:
    """Writes an entity's turns, nodes and facts as JSON lines to a new file, which 'import' reads again.

    The file holds everything in plain text and may be read by you alone. Anchors are files already.
    """
    path = Path(given.path)
    outside(app.settings.home, str(path))
    _told(progress, "writing")
    async with app.memory(given.entity) as memory:
        return Exported(str(path), await memory.documents.export(path))


@operation(
    "Follow a folder",
    _followed,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="watch add",
    examples=("pps watch add ana ~/notes",),
)
async def watch_add(app: App, given: WatchInput, progress: Progress | None) -> Followed:
    """Takes in a folder's Markdown files, and follows what changes in it while the server runs.

    A file that changes is read again, one that is deleted is forgotten; what changed while no server ran is seen at its
    next start. A folder feeds one entity.
    """
    folder = await asyncio.to_thread(app.registry.watched.add, given.path, given.entity)
    async with app.memory(given.entity) as memory:
        done = await memory.documents.follow(Path(folder.path), progress)
        settled = await memory.documents.settled(progress)
    return Followed(**_fields(folder_view(folder)), **_fields(done), settled=settled)


@operation(
    "Follow a folder no longer",
    _unfollowed,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="watch remove",
    examples=("pps watch remove ana ~/notes --forget",),
)
async def watch_remove(app: App, given: UnwatchInput, progress: Progress | None) -> Unfollowed:
    """Follows a folder no longer; what it brought stays, unless 'forget' is true."""
    folder = await asyncio.to_thread(app.registry.watched.remove, given.path, given.entity)
    forgotten = 0
    if given.forget:
        _told(progress, "forgetting")
        async with app.memory(given.entity) as memory:
            forgotten = await memory.documents.drop(Path(folder.path))
    return Unfollowed(**_fields(folder_view(folder)), forgotten=forgotten)


@operation(
    "Import anchors",
    _anchors,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="anchors import",
    examples=("pps anchors import ana ~/notes",),
)
async def anchors_import(app: App, given: WatchInput, progress: Progress | None) -> AnchorsImported:
    """Copies a folder of Markdown files into the anchors; a second time updates them."""
    path = _existing(app, given.path, "path")
    _told(progress, "anchors")
    async with app.memory(given.entity) as memory:
        report = await memory.anchor_import(path)
    return AnchorsImported(tuple(one.slug for one in report.saved), report.unchanged, report.skipped)


@operation(
    "Index anew",
    _indexed,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="reindex",
    examples=("pps reindex ana",),
)
async def reindex(app: App, given: OfEntity, progress: Progress | None) -> Indexed:
    """Rebuilds an entity's text and vector index from journal, graph and anchors."""
    return Indexed(await app.reindex(given.entity, progress))


@operation(
    "Embed anew",
    _indexed,
    SETS,
    audience="owner",
    toolset="maintenance",
    command="reembed",
    examples=("pps reembed ana",),
)
async def reembed(app: App, given: OfEntity, progress: Progress | None) -> Indexed:
    """Makes every vector of an entity anew with the embedder that is set now."""
    return Indexed(await app.reembed(given.entity, progress))


@operation(
    "Make a graph anew",
    _rebuilt,
    ERASES,
    audience="owner",
    toolset="maintenance",
    command="rebuild",
    examples=("pps rebuild ana --yes", "pps rebuild --registry"),
)
async def rebuild(app: App, given: OfEntity, progress: Progress | None) -> Indexed:
    """Makes an entity's graph anew from its journal, when it is gone or damaged; what is there of it is removed.

    What comes back: turns, records, facts that were given or found by rules, all under the ids they had. What a model
    read only comes back where it can read the texts again. What cannot come back: what texts said before they were
    changed, merges of nodes, relations made by themselves, imported graphs, and when each fact was learned.
    """
    return Indexed(await app.rebuild(given.entity, progress))


@operation(
    "List jobs",
    _jobs,
    READS,
    audience="owner",
    toolset="maintenance",
    command="jobs list",
    examples=("pps jobs list ana --state failed",),
)
async def jobs_list(app: App, given: JobsInput) -> Jobs:
    """Returns jobs, oldest first: number, state, attempts, the text's beginning, what went wrong."""
    async with app.memory(given.entity) as memory:
        found = await memory.jobs.list(given.state, after=given.after, limit=given.limit)
    return Jobs(tuple(found), found[-1].id if len(found) == given.limit else None)


@operation(
    "Try jobs again",
    lambda value: f"{len(value.retried)} retried.",
    SETS,
    audience="owner",
    toolset="maintenance",
    command="jobs retry",
    examples=("pps jobs retry ana 17 18", "pps jobs retry ana --all"),
)
async def jobs_retry(app: App, given: ChosenInput) -> Retried:
    """Takes turns in again, from the beginning: the ones named, or all that failed. What is there is not doubled."""
    chosen = given.chosen()
    async with app.memory(given.entity) as memory:
        return Retried(tuple(await memory.jobs.retry(chosen)))


@operation(
    "Give jobs up",
    lambda value: f"{len(value.dropped)} dropped.",
    ERASES,
    audience="owner",
    toolset="maintenance",
    command="jobs drop",
    examples=("pps jobs drop ana 17",),
)
async def jobs_drop(app: App, given: ChosenInput) -> Dropped:
    """Gives up turns that failed or wait: the ones named, or all that failed. Texts stay; a retry takes them up."""
    chosen = given.chosen()
    async with app.memory(given.entity) as memory:
        return Dropped(tuple(await memory.jobs.drop(chosen)))


@operation("Examine a memory", _examined, READS, audience="owner", toolset="maintenance")
async def doctor(app: App, given: OfEntity, progress: Progress | None) -> Examined:
    """Returns the health of an entity, and whether its journal, graph and indexes hold the same ids."""
    async with app.memory(given.entity) as memory:
        _told(progress, f"comparing {given.entity}")
        health = await memory.health()
        ledger = await memory.ledger()
    problems, notes = (*health.problems, *ledger.problems), (*health.notes, *ledger.notes)
    return Examined(health.ok and not ledger.problems, problems, notes, ledger)


@operation("Attack throw-away entities", _verified, SETS, audience="owner", toolset="maintenance")
async def verify_isolation(app: App, given: VerifyInput, progress: Progress | None) -> Verified:
    """Attacks throw-away entities on the store that is set. Returns whether anything of one reached another."""

    def tell(done: int, total: int) -> None:
        if progress:
            progress("attacks", done, total)

    report = await verify(app.settings, operations=given.operations, progress=tell)
    return Verified(**_fields(report), ok=report.ok)


def _fields(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields as they are."""
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _existing(app: App, value: str, field: str, *, around: bool = False) -> Path:
    """Return the path of something that is there, outside of the data folder; InvalidRequest says why not."""
    outside(app.settings.home, value, field, around=around)
    if not Path(value).exists():
        raise InvalidRequest(field, f"there is nothing at {value}")
    return Path(value)


MAINTENANCE = (
    import_files,
    export,
    watch_add,
    watch_remove,
    anchors_import,
    reindex,
    reembed,
    rebuild,
    jobs_list,
    jobs_retry,
    jobs_drop,
    doctor,
    verify_isolation,
)
