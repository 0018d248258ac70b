"""Looking after memories, for the owner: indexes, jobs, examination, proof, and features."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from pps.app import App
from pps.app.features import InstalledFeature
from pps.app.hosting import PublishedState
from pps.app.moving import MoveReport
from pps.app.upgrading import UpgradeReport, copy_notes
from pps.core.errors import InvalidRequest, PPSError
from pps.core.ids import short_id
from pps.core.reports import Ledger
from pps.core.text import counted
from pps.core.time import now
from pps.core.version import __version__
from pps.entities import last_proof
from pps.entities.folder import Entry
from pps.entities.last_proof import Proof
from pps.entities.moves import place_of
from pps.index.indexes import Index
from pps.ingest.indexer import Progress
from pps.operations import journal_tools
from pps.operations.exchange import OfEntity, told
from pps.operations.inputs import Input, Label, Nothing, argument, fields_of
from pps.operations.journal_tools import ChosenInput, JobPage, JobsInput, jobs_words, retried_words
from pps.operations.table import ERASES, MAINTENANCE, READS, SETS
from pps.operations.upkeep import Examined, health_text
from pps.proof.by_feature import with_features
from pps.proof.verify import Report, verify


class EntityJobsInput(JobsInput, OfEntity):
    """Which jobs to list."""


class EntityChosenInput(ChosenInput, OfEntity):
    """Which jobs: the ones named, or all that failed."""


class VerifyInput(Input):
    """How many attacks."""

    operations: int = Field(default=2_000, ge=1, le=10_000_000, description="How many attacks.")


class ReindexInput(OfEntity):
    """Whose indexes, and which."""

    index: Index = Field(
        default="all",
        description=(
            "Which index: text, vectors or fields. Default: all; needed when they cannot be opened."
        ),
    )


class PublishInput(OfEntity):
    """Whose graph to publish, and where."""

    target: Literal["neo4j"] = Field(
        description="Where to publish: neo4j, at the address in NEO4J_URI.",
        json_schema_extra=argument(),
    )
    anew: bool = Field(
        default=False, description="True removes what is published and writes all of it again."
    )
    stop: bool = Field(
        default=False, description="True stops publishing and removes what is published."
    )


class MoveInput(OfEntity):
    """Whose memory to move, and where to."""

    to: Literal["", "postgresql", "embedded"] = Field(
        default="",
        description="Where to: postgresql, as [postgresql] is set, or embedded, a file of its own.",
    )
    drop_source: bool = Field(
        default=False,
        description="Erase what the last move left in the store before it, or what one that was "
        "cut short left.",
    )


class UpgradeInput(Input):
    """Which entities, and what to do."""

    entity: Label = Field(
        default="",
        description="The entity's name; none with 'all'.",
        json_schema_extra=argument(),
    )
    all: bool = Field(default=False, description="Every entity, archived ones and pools too.")
    dry_run: bool = Field(default=False, description="Only read and count; nothing is changed.")
    drop_copy: bool = Field(
        default=False, description="Erase the copy from before the upgrade instead."
    )

    def names(self, known: Sequence[str]) -> Sequence[str]:
        """Return the entities that are meant.

        InvalidRequest for none, one and all, or two things to do.
        """
        if bool(self.entity) == self.all:
            raise InvalidRequest("entity", "give the name of one, or all=true")
        if self.dry_run and self.drop_copy:
            raise InvalidRequest("drop_copy", "is not taken with dry_run")
        return known if self.all else (self.entity,)


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many documents were indexed, by kind."""

    indexed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Verified(Report):
    """What the attacks found; ``ok`` when nothing of one entity reached another."""

    # A field, because a property would not be sent.
    ok: bool = False  # pyright: ignore[reportIncompatibleMethodOverride]


def _upgrades_text(reports: Sequence[UpgradeReport]) -> str:
    return "\n".join(map(_upgrade_line, reports)) or "No entities."


def _upgrade_line(report: UpgradeReport) -> str:
    if report.state == "failed":
        return report.problem
    if report.state == "copy_erased":
        return f"{report.entity}: the copy from before its upgrade is erased"
    if report.state == "nothing_to_do":
        copy = f"; the copy from before its upgrade is {report.copy}" if report.copy else ""
        return f"{report.entity}: nothing to do{copy}"
    counts = ", ".join(
        counted(report.rows.get(table, 0), word)
        for table, word in (("node", "node"), ("fact", "fact"), ("episode", "episode"))
    )
    if report.left_out:
        counts += f"; {counted(report.left_out, 'fact')} of nodes that are not there left out"
    size = counted(max(1, report.copy_bytes >> 20), "MiB")
    if report.state == "would_upgrade":
        return f"{report.entity}: would move {counts}, after a copy of {size}; nothing was changed"
    return (
        f"{report.entity}: moved {counts} in {report.seconds:.1f} s; the copy ({size}) is "
        f"{report.copy}"
    )


def _indexed_text(value: Indexed) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in value.indexed.items())
    return f"indexed {counts or 'nothing: it is empty'}"


def _rebuilt_text(value: Indexed) -> str:
    return (
        f"{_indexed_text(value)}\n{value.indexed.get('to_read') or 'No'} turns wait to be read by "
        "a model again. Not back: what texts said before they were changed, merges, relations made "
        "by themselves, imported graphs, when each fact was learned."
    )


def _misfit_notes(misfits: Mapping[str, str]) -> Iterator[str]:
    """Say which records do not fit their packs as they are now, the first 20 of them."""
    if misfits:
        lines = [f"{short_id(id_)} {why}" for id_, why in [*misfits.items()][:20]]
        more = f"; and {len(misfits) - 20:,} more" if len(misfits) > 20 else ""
        head = (
            f"{counted(len(misfits), 'record')} no longer fit the packs, can be read and will be "
            "checked when saved"
        )
        yield f"{head}: {'; '.join(lines)}{more}"


def _verified_text(value: Verified) -> str:
    head = (
        f"{counted(value.total, 'operation')} on {value.store}, {counted(len(value.leaks), 'leak')}"
    )
    findings = [*value.leaks, *value.told_apart, *value.broken]
    return "\n".join(
        [head, *(f"{finding.operation} ({finding.entity}): {finding.what}" for finding in findings)]
    )


def _proof_of(report: Report) -> Proof:
    counts = (len(report.leaks), len(report.told_apart), len(report.broken))
    return Proof(
        now(), __version__, report.store, report.total, *counts, round(report.seconds, 2), report.ok
    )


@MAINTENANCE.operation(
    "Rebuild the indexes",
    _indexed_text,
    SETS,
    command="reindex",
    examples=("pps reindex ana", "pps reindex ana --index vectors"),
)
async def reindex(app: App, request: ReindexInput, progress: Progress | None) -> Indexed:
    """Rebuilds an entity's text and vector index, or one of them, from journal, graph and anchors."""
    return Indexed(await app.reindex(request.entity, progress, request.index))


@MAINTENANCE.operation(
    "Rebuild the vectors",
    _indexed_text,
    SETS,
    command="reembed",
    carried_through=True,
    examples=("pps reembed ana",),
)
async def reembed(app: App, request: OfEntity, progress: Progress | None) -> Indexed:
    """Computes every vector of an entity again with the current embedder."""
    return Indexed(await app.reembed(request.entity, progress))


@MAINTENANCE.operation(
    "Rebuild a graph",
    _rebuilt_text,
    ERASES,
    command="rebuild",
    carried_through=True,
    examples=("pps rebuild ana --yes", "pps rebuild --registry"),
)
async def rebuild(app: App, request: OfEntity, progress: Progress | None) -> Indexed:
    """Rebuilds an entity's graph from its journal, when the graph is lost or damaged.

    Remains of the old graph are removed. Turns, records, and facts that were given or found by
    rules come back under their old ids. Facts found by a model come back only if the model can read
    the texts again. Lost are earlier versions of texts, merges of nodes, relations made without a
    turn, imported graphs, and when each fact was learned.
    """
    return Indexed(await app.rebuild(request.entity, progress))


def _published_text(value: PublishedState) -> str:
    if not value.is_published:
        removed = "what was published is removed from Neo4j"
        if value.waits_for:
            removed = f"it is removed from Neo4j when that answers ({value.waits_for})"
        return f"{value.name} is published no more; {removed}"
    if value.behind is None:
        return f"{value.name} is published on Neo4j; all of it is being written there"
    lacks = f"{counted(value.behind, 'change')} behind" if value.behind else "up to date"
    return f"{value.name} is published on Neo4j; {lacks}"


@MAINTENANCE.operation(
    "Publish a graph on Neo4j",
    _published_text,
    SETS,
    command="publish",
    examples=(
        "pps publish ana neo4j",
        "pps publish ana neo4j --anew",
        "pps publish ana neo4j --stop",
    ),
)
async def publish(app: App, request: PublishInput) -> PublishedState:
    """Publishes an entity's graph on Neo4j from now on.

    Neo4j's own tools and stock Graphiti can read it. The memory itself stays where it is and works
    while Neo4j is away; changes are written there later. Changes made in Neo4j are not read back;
    {anew} overwrites them. {stop} removes the graph from Neo4j, as soon as Neo4j answers.
    """
    if request.anew and request.stop:
        raise InvalidRequest("stop", "is not taken with anew")
    if request.stop:
        return await app.unpublish(request.entity)
    return await app.publish(request.entity, anew=request.anew)


def _moved_text(report: MoveReport) -> str:
    name = report.entity
    store = report.store
    if report.state == "dropped":
        return f"{name} is in {store}; what another store held of it is erased"
    if report.state == "nothing_to_do":
        return f"{name} is in {store}: nothing to do{_kept_text(report)}"
    count = counted(sum(report.rows.values()), "row")
    return (
        f"{name} is in {store} now: {count} moved and compared in {report.seconds:.1f} s"
        f"{_kept_text(report)}"
    )


def _kept_text(report: MoveReport) -> str:
    if not report.kept:
        return ""
    return (
        f". {report.kept} keeps it as it was: `pps move {report.entity} --drop-source` erases that"
    )


@MAINTENANCE.operation(
    "Move a memory to another store",
    _moved_text,
    SETS,
    command="move",
    carried_through=True,
    examples=(
        "pps move ana --to postgresql",
        "pps move ana --to embedded",
        "pps move ana --drop-source",
    ),
)
async def move(app: App, request: MoveInput, progress: Progress | None) -> MoveReport:
    """Moves an entity's memory into PostgreSQL, or back into a file: everything is copied, compared, then used there.

    It waits until nobody uses the memory; calls that come meanwhile wait for it. Killed at any
    moment, exactly one store is the memory, and the same command finishes it. The store that it was
    in keeps it as it was: drop_source erases that, and so does the first forgetting for good.
    Indexes and anchors stay on this machine.
    """
    if bool(request.to) == request.drop_source:
        raise InvalidRequest("to", "say where to, or drop_source")
    if request.drop_source:
        return await app.drop_moved_source(request.entity)
    return await app.move(request.entity, place_of(request.to), progress)


@MAINTENANCE.operation(
    "Upgrade entities",
    _upgrades_text,
    SETS,
    items="entities",
    command="upgrade",
    carried_through=True,
    examples=("pps upgrade --all --dry-run", "pps upgrade ana", "pps upgrade ana --drop-copy"),
)
async def upgrade(
    app: App, request: UpgradeInput, progress: Progress | None
) -> tuple[UpgradeReport, ...]:
    """Moves the graph file of an earlier PPS into memory.db, as opening the memory does.

    Before that, memory.db and the graph file are copied into a folder beside them. The copy is
    erased after 30 days, by the first forgetting for good, or with drop_copy. If it is killed, the
    memory is either unchanged or upgraded.
    """
    known = await asyncio.to_thread(app.registry.list, include_archived=True)
    reports: list[UpgradeReport] = []
    for name in request.names([entry.entity.name for entry in known]):
        told(progress, f"upgrading {name}")
        try:
            reports.append(await _upgrade_one(app, name, request, progress))
        except PPSError as error:
            if not request.all:
                raise
            reports.append(UpgradeReport(name, "failed", problem=error.message))
    return tuple(reports)


async def _upgrade_one(
    app: App, name: str, request: UpgradeInput, progress: Progress | None
) -> UpgradeReport:
    if request.drop_copy:
        is_erased = await app.erase_upgrade_copy(name)
        return UpgradeReport(name, "copy_erased" if is_erased else "nothing_to_do")
    return await app.upgrade(name, progress, dry_run=request.dry_run)


@MAINTENANCE.operation(
    "List jobs",
    jobs_words,
    READS,
    command="jobs list",
    examples=("pps jobs list ana --state failed",),
)
async def jobs_list(app: App, request: EntityJobsInput) -> JobPage:
    """Returns jobs, oldest first: number, state, attempts, the text's beginning, and the error."""
    async with app.memory(request.entity, pool=True) as memory:
        return await journal_tools.jobs_list.act(memory, request)


@MAINTENANCE.operation(
    "Try jobs again",
    retried_words,
    SETS,
    items="retried",
    command="jobs retry",
    examples=("pps jobs retry ana 17 18", "pps jobs retry ana --all"),
)
async def jobs_retry(app: App, request: EntityChosenInput) -> tuple[int, ...]:
    """Processes turns again, from the beginning: the named ones, or all that failed.

    Nothing is stored twice.
    """
    request.chosen()  # a bound that is broken is told before the memory is opened
    async with app.memory(request.entity, pool=True) as memory:
        return await journal_tools.jobs_retry.act(memory, request)


@MAINTENANCE.operation(
    "Give up jobs",
    lambda dropped: f"{len(dropped)} dropped.",
    ERASES,
    items="dropped",
    command="jobs drop",
    examples=("pps jobs drop ana 17",),
)
async def jobs_drop(app: App, request: EntityChosenInput) -> tuple[int, ...]:
    """Gives up turns that failed or wait: the named ones, or all that failed.

    The texts stay; a retry processes them.
    """
    chosen = request.chosen()
    async with app.memory(request.entity, pool=True) as memory:
        return tuple(await memory.jobs.drop(chosen))


@MAINTENANCE.operation("Examine a memory", health_text, READS)
async def doctor(app: App, request: OfEntity, progress: Progress | None) -> Examined:
    """Returns the health of an entity, and whether its journal, graph and indexes hold the same ids.

    Of an archived entity, which is not opened, only what another store or an upgrade keeps of it.
    """
    entry = await asyncio.to_thread(app.registry.get, request.entity)
    if entry.archived:
        return await _examine_archived(app, entry)
    async with app.memory(request.entity, pool=True) as memory:
        told(progress, f"comparing {request.entity}")
        health = await memory.health()
        ledger = await memory.ledger()
        misfits = await memory.records.misfits()
    copies = await asyncio.to_thread(copy_notes, entry)
    kept_copies, cut_short = await app.moved_copy(request.entity)
    problems = (*health.problems, *ledger.problems, *cut_short)
    notes = (*health.notes, *ledger.notes, *copies, *kept_copies, *_misfit_notes(misfits))
    is_well = health.ok and not ledger.problems and not cut_short
    return Examined(is_well, problems, notes, ledger)


async def _examine_archived(app: App, entry: Entry) -> Examined:
    name = entry.entity.name
    state = f"archived, so it was not opened; `pps entity archive {name} --undo` brings it back"
    copies = await asyncio.to_thread(copy_notes, entry)
    kept_copies, cut_short = await app.moved_copy(name)
    notes = (state, *copies, *kept_copies)
    return Examined(not cut_short, (*cut_short,), notes, Ledger((), waiting=0))


@MAINTENANCE.operation("Attack throw-away entities", _verified_text, SETS)
async def verify_isolation(app: App, request: VerifyInput, progress: Progress | None) -> Verified:
    """Attacks throw-away entities on the configured store.

    Returns whether anything of one reached another.
    """

    def tell(done: int, total: int) -> None:
        if progress:
            progress("attacks", done, total)

    report = await verify(app.settings, operations=request.operations, progress=tell)
    report = await with_features(report, app.settings)
    await asyncio.to_thread(last_proof.keep, app.settings.home, _proof_of(report))
    return Verified(**fields_of(report), ok=report.ok)


class FeatureInput(Input):
    """A feature, by its name."""

    name: Label = Field(
        description="Name of the feature, from {feature_list}.", json_schema_extra=argument()
    )


@dataclass(frozen=True, slots=True)
class FeatureLine:
    """A feature of this installation.

    Attributes:
        package: The distribution that it comes from; empty for one that is no longer installed.
        on: Its operations and views are offered.
        operations: How many it has.
        commands: Its commands.
        problem: Why it cannot be used; empty when it can.
    """

    name: str
    summary: str
    package: str
    on: bool
    operations: int = 0
    commands: tuple[str, ...] = ()
    problem: str = ""


def _feature_line(feature: InstalledFeature, *, on: bool) -> FeatureLine:
    if feature.feature is None:
        return FeatureLine(feature.name, "", feature.package, on=False, problem=feature.problem)
    own = feature.feature.operations()
    commands = tuple(f"pps {operation.command}" for operation in own if operation.command)
    return FeatureLine(
        feature.name, feature.feature.summary, feature.package, on, len(own), commands
    )


def _feature_text(line: FeatureLine) -> str:
    state = "on" if line.on else "off"
    if line.problem:
        return f"{line.name}  cannot be used: {line.problem}"
    if not line.package:
        return f"{line.name}  {state}, not installed; its data are kept"
    origin = "" if line.package == "pps" else f", from {line.package}"
    return f"{line.name}  {state}{origin}, {counted(line.operations, 'operation')}: {line.summary}"


def _switched_text(line: FeatureLine) -> str:
    if line.on:
        return f"{line.name} is on: {counted(line.operations, 'operation')}."
    return (
        f"{line.name} is off: its operations and views are hidden. Its data are kept, and "
        f"forgetting still reaches them; `pps feature enable {line.name}` brings it back."
    )


@MAINTENANCE.operation(
    "List the features",
    lambda lines: "\n".join(map(_feature_text, lines)),
    READS,
    items="features",
    command="feature list",
    examples=("pps feature list",),
)
async def feature_list(app: App, _: Nothing) -> tuple[FeatureLine, ...]:
    """Returns the installed features, each with its commands, its package, and whether it is on."""
    features = app.features
    lines = [
        _feature_line(feature, on=features.is_on(feature.name)) for feature in features.installed()
    ]
    gone = [FeatureLine(name, "", "", on=False) for name in features.absent()]
    return (*lines, *gone)


@MAINTENANCE.operation(
    "Switch a feature on",
    _switched_text,
    SETS,
    command="feature enable",
    examples=("pps feature enable squad",),
)
async def feature_enable(app: App, request: FeatureInput) -> FeatureLine:
    """Offers a feature's operations and views again.

    Its listeners continue where they stopped.
    """
    return _feature_line(await app.switch_feature(request.name, on=True), on=True)


@MAINTENANCE.operation(
    "Switch a feature off",
    _switched_text,
    SETS,
    command="feature disable",
    examples=("pps feature disable squad",),
)
async def feature_disable(app: App, request: FeatureInput) -> FeatureLine:
    """Hides a feature's operations and views.

    Its data is kept, and is still forgotten, erased and exported.
    """
    return _feature_line(await app.switch_feature(request.name, on=False), on=False)
