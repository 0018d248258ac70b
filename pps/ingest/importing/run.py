"""An import from its paths to its report: each batch of a file is on disk before the next is read.

Every message has the reference of its origin, so an import that was cut short can be run again:
known messages are counted and not stored twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from pps.core.errors import InvalidRequest, Overloaded, StoreError
from pps.core.time import utc, zoned
from pps.core.values import Receipt, Skipped
from pps.ingest.drafts import RememberOptions
from pps.ingest.extraction import MARK
from pps.ingest.importing.formats import FORMATS, Format, format_of
from pps.ingest.importing.items import Item, Passed, Read, Unreadable
from pps.ingest.importing.source_files import Source, SourceError, find
from pps.models.token_counts import estimate_tokens

MAX_TOLD = 1_000
"""Most unreadable elements that a report names; all are counted."""

_BATCH = 200
_BATCH_CHARACTERS = 1_000_000
_LONGEST_WAIT_S = 5.0

Messages = Sequence[tuple[str, RememberOptions]]
"""Content and options of each, as ``remember`` takes them."""
Keep = Callable[[Messages], Awaitable[list[Receipt]]]
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Imported:
    """The results of an import so far, or those that it would have if ``dry_run``.

    Attributes:
        files: Files read, by format.
        turns: Messages that were read, of which ``stored`` are new and ``duplicates`` known.
        nodes, facts: Given with the messages, before names are resolved.
        sessions: Different conversations.
        tokens: An estimate of 3.5 characters each.
        redacted: Secrets that were replaced.
        unreadable: The first 1,000 elements that could not be read, of ``unreadable_count``.
        passed: Numbers of elements that are no memory, by reason.
        settled: Whether graph and indexes have all of it.
    """

    dry_run: bool
    files: dict[str, int] = field(default_factory=dict[str, int])
    turns: int = 0
    stored: int = 0
    duplicates: int = 0
    nodes: int = 0
    facts: int = 0
    sessions: int = 0
    characters: int = 0
    tokens: int = 0
    redacted: int = 0
    unreadable: list[Skipped] = field(default_factory=list[Skipped])
    unreadable_count: int = 0
    passed: dict[str, int] = field(default_factory=dict[str, int])
    first_at: datetime | None = None
    last_at: datetime | None = None
    settled: bool = True


@dataclass(frozen=True, slots=True)
class Into:
    """The memory that an import writes to.

    Attributes:
        keep: Stores messages, all or none.
        known: Counts the messages that are stored already.
        zone: The zone of times without one.
    """

    keep: Keep
    known: Callable[[Messages], Awaitable[int]]
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files, folders and zip files to import; links below a folder are not followed.

    Attributes:
        format: A name of ``FORMATS``; ``auto`` finds each file's format by its content.
        dry_run: Only read and count; nothing is stored.
        avoid: The folder of the entities, of which nothing is read.
    """

    paths: Sequence[Path]
    format: str = "auto"
    dry_run: bool = False
    avoid: Path | None = None


async def import_files(wanted: Wanted, into: Into, progress: Progress | None = None) -> Imported:
    if wanted.format != "auto" and wanted.format not in FORMATS:
        raise InvalidRequest("format", f"must be 'auto' or one of {', '.join(FORMATS)}")
    for path in wanted.paths:
        if not path.exists():
            raise InvalidRequest("path", f"there is nothing at {path}")
    files = await asyncio.to_thread(lambda: list(find(wanted.paths, wanted.avoid)))
    sources = [file for file in files if isinstance(file, Source)]
    total = sum(source.size for source in sources)
    run = _Run(into, Imported(wanted.dry_run), progress, total)
    reader = _read_all(files, FORMATS.get(wanted.format), run)
    try:
        while batch := await asyncio.to_thread(_next_batch, reader, run):
            await run.take(batch)
    except BaseException:
        for source in sources:  # a thread may still read; a server that ends would wait for it
            source.archives.stopped = True
        raise
    if not run.report.files and not run.report.unreadable:
        raise InvalidRequest(
            "path", f"holds nothing that can be imported; formats are {', '.join(FORMATS)}"
        )
    return run.report


@dataclass(slots=True)
class _Run:
    """An import under way."""

    into: Into
    report: Imported
    progress: Progress | None
    total: int
    source: Source | None = None
    done: int = 0
    sessions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def note(self, read: Read) -> Item | None:
        """Count an element that was read; return it if it is a message."""
        if isinstance(read, Item):
            return read
        if isinstance(read, Passed):
            self.report.passed[read.why] = self.report.passed.get(read.why, 0) + 1
        else:
            self.report.unreadable_count += 1
            if len(self.report.unreadable) < MAX_TOLD:
                self.report.unreadable.append(Skipped(read.where, read.why))
        return None

    async def take(self, batch: Sequence[Item]) -> None:
        """Store the messages of a batch, or count them in a dry run."""
        for item in batch:
            self._count(item)
        messages = [item.arguments for item in batch]
        report = self.report
        if report.dry_run:
            report.stored += len(batch) - await self.into.known(messages)
        else:
            receipts = await keep_each(
                self._keep, messages, lambda place, why: self._note_refused(batch[place], why)
            )
            report.stored += sum(receipt.state != "duplicate" for receipt in receipts)
            report.redacted += sum(receipt.redacted for receipt in receipts)
        report.duplicates = report.turns - report.stored
        self._report_progress(self.source.name if self.source else "")

    def _count(self, item: Item) -> None:
        report = self.report
        options = item.options
        report.turns += 1
        report.nodes += len(options.get("nodes", ()))
        report.facts += len(options.get("facts", ()))
        report.characters += len(item.content)
        report.tokens += estimate_tokens(item.content)
        self.sessions.add((options.get("source", ""), options.get("session", "")))
        report.sessions = len(self.sessions)
        occurred_at = options.get("occurred_at")
        if occurred_at:
            at = utc(zoned(occurred_at, self.into.zone))
            report.first_at = min(at, report.first_at or at)
            report.last_at = max(at, report.last_at or at)

    def _note_refused(self, item: Item, why: str) -> None:
        self.report.turns -= 1
        self.note(Unreadable(item.where, why))

    async def _keep(self, messages: Messages) -> list[Receipt]:
        def report_waiting() -> None:
            self._report_progress("waiting until what is stored is taken in")

        return await kept_patiently(self.into.keep, messages, report_waiting)

    def _report_progress(self, stage: str) -> None:
        if self.progress:
            at = self.done + (self.source.position if self.source else 0)
            self.progress(f"{self.report.turns:,} turns, {stage}", min(at, self.total), self.total)


async def keep_each(
    keep: Keep, messages: Messages, refused: Callable[[int, str], None]
) -> list[Receipt]:
    """Store messages; if the batch is refused, store each by itself.

    Args:
        keep: Stores messages, all or none.
        messages: The batch.
        refused: Called with the place of a message that is refused by itself, and why.
    """
    try:
        return await keep(messages)
    except InvalidRequest as error:
        if len(messages) == 1:
            refused(0, error.message)
            return []
    receipts: list[Receipt] = []
    for place, message in enumerate(messages):
        receipts += await keep_each(
            keep, [message], lambda _, why, place=place: refused(place, why)
        )
    return receipts


async def kept_patiently(
    keep: Keep, messages: Messages, waiting: Callable[[], None] | None = None
) -> list[Receipt]:
    """Store messages; while the queue is full, call ``waiting`` and try again."""
    while True:
        try:
            return await keep(messages)
        except Overloaded as error:
            if waiting:
                waiting()
            await asyncio.sleep(min(error.retry_after_s, _LONGEST_WAIT_S))


def _next_batch(reader: Iterator[Read], run: _Run) -> list[Item]:
    """Return the next messages: at most 200, and about a million characters; none at the end."""
    batch: list[Item] = []
    size = 0
    for read in reader:
        item = run.note(read)
        if item:
            batch.append(item)
            size += len(item.content)
            if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
                break
    return batch


def _read_all(files: Sequence[Source | Read], wanted: Format | None, run: _Run) -> Iterator[Read]:
    for file in files:
        if not isinstance(file, Source):
            yield file
            continue
        run.source = file
        try:
            yield from _read(file, wanted, run)
        except SourceError as error:
            yield Unreadable(file.name, error.why)
        except StoreError as error:
            yield Unreadable(file.name, error.message)
        run.source = None
        run.done += file.size


def _read(source: Source, wanted: Format | None, run: _Run) -> Iterator[Read]:
    if wanted is None:
        chosen = format_of(source)
    else:
        chosen = wanted if source.given or source.suffix in wanted.suffixes else None
    if chosen is not None:
        files = run.report.files
        files[chosen.name] = files.get(chosen.name, 0) + 1
        for read in chosen.read(source):
            if isinstance(read, Item) and read.content.lstrip().startswith(MARK):
                yield Passed("conversations of the program that reads turns for this memory")
                return
            yield read
    elif source.given:
        yield Unreadable(
            source.name, "is in no format that is known by its content; --format says which it is"
        )
    else:
        yield Passed("files of no known format")
