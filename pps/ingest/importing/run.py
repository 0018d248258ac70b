"""An import from its paths to its report: files are read a batch at a time, each batch is on disk before the next.

Every message has the reference that it had at its origin, so an import that was cut short is run again as it was:
what is there already is counted and not stored twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pps.core.errors import InvalidRequest, Overloaded, StoreError
from pps.core.values import Receipt, Skipped
from pps.ingest.drafts import RememberOptions
from pps.ingest.extraction import MARK
from pps.ingest.importing.formats import FORMATS, Format, format_of
from pps.ingest.importing.items import Item, Passed, Read, Unreadable
from pps.ingest.importing.source_files import Source, find
from pps.models.token_counts import estimate_tokens

MAX_TOLD = 1_000
"""Most unreadable places that a report names; all are counted."""

_BATCH = 200
_BATCH_CHARACTERS = 1_000_000
_LONGEST_WAIT_S = 5.0

Given = Sequence[tuple[str, RememberOptions]]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do when ``dry_run``.

    Attributes:
        files: Files read, by format.
        turns: Messages that were read; ``stored`` and ``duplicates`` are what became of them.
        nodes, facts: Those given with the messages, before names are resolved.
        tokens: An estimate of 3.5 characters each.
        redacted: Secrets that were taken out.
        unreadable: What should have been read and could not be, the first 1,000; ``unreadable_count`` is all.
        passed: What is no memory, counted by reason.
        settled: Graph and indexes have all of it.
    """

    dry_run: bool
    files: Mapping[str, int]
    turns: int
    stored: int
    duplicates: int
    nodes: int
    facts: int
    sessions: int
    characters: int
    tokens: int
    redacted: int
    unreadable: tuple[Skipped, ...]
    unreadable_count: int
    passed: Mapping[str, int]
    first_at: datetime | None
    last_at: datetime | None
    settled: bool


@dataclass(frozen=True, slots=True)
class Into:
    """Where an import goes: ``keep`` stores messages, all or none; ``known`` counts those that are there already."""

    keep: Callable[[Given], Awaitable[list[Receipt]]]
    known: Callable[[Given], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be imported: files, folders, zip files; links below a folder are not followed.

    Attributes:
        format: A name of ``FORMATS``; ``auto`` finds each file's format by its content.
        dry_run: Only read and count; nothing is stored.
        avoid: A folder of which nothing is read: that of the entities.
    """

    paths: Sequence[Path]
    format: str = "auto"
    dry_run: bool = False
    avoid: Path | None = None


async def import_files(wanted: Wanted, into: Into, progress: Progress | None = None) -> Imported:
    """Read files and folders into a memory; see ``Documents.import_files``."""
    if wanted.format != "auto" and wanted.format not in FORMATS:
        raise InvalidRequest("format", f"must be 'auto' or one of {', '.join(FORMATS)}")
    for path in wanted.paths:
        if not path.exists():
            raise InvalidRequest("path", f"there is nothing at {path}")
    found = await asyncio.to_thread(lambda: list(find(wanted.paths, wanted.avoid)))
    total = sum(one.size for one in found if isinstance(one, Source))
    run = _Run(into, wanted.dry_run, progress, total)
    reader = _read_all(found, FORMATS.get(wanted.format), run)
    try:
        while batch := await asyncio.to_thread(_batch, reader, run):
            await run.take(batch)
    except BaseException:
        for one in found:  # a thread may still read, and a server that is to end would wait for it
            if isinstance(one, Source):
                one.archives.stopped = True
        raise
    if not run.files and not run.unreadable:
        raise InvalidRequest("path", f"holds nothing that can be imported; formats are {', '.join(FORMATS)}")
    return run.report()


@dataclass(slots=True)
class _Run:
    """What an import has seen so far; ``counts`` are fields of its report."""

    into: Into
    dry_run: bool
    progress: Progress | None
    total: int
    source: Source | None = None
    done: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    counts: Counter[str] = field(default_factory=Counter[str])
    files: Counter[str] = field(default_factory=Counter[str])
    passed: Counter[str] = field(default_factory=Counter[str])
    sessions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unreadable: list[Skipped] = field(default_factory=list[Skipped])

    def note(self, read: Read) -> Item | None:
        """Count something that was read; return it when it is a message."""
        if isinstance(read, Item):
            return read
        if isinstance(read, Passed):
            self.passed[read.why] += 1
        else:
            self.counts["unreadable_count"] += 1
            if len(self.unreadable) < MAX_TOLD:
                self.unreadable.append(Skipped(read.where, read.why))
        return None

    async def take(self, batch: Sequence[Item]) -> None:
        """Store a batch, or count what of it would be stored."""
        for item in batch:
            self._counted(item)
        if self.dry_run:
            known = await self.into.known([(item.content, item.options) for item in batch])
            self.counts["stored"] += len(batch) - known
        else:
            await self._store(batch)
        self._tell(self.source.name if self.source else "")

    def report(self) -> Imported:
        names = ("turns", "stored", "nodes", "facts", "characters", "tokens", "redacted", "unreadable_count")
        return Imported(
            **{name: self.counts[name] for name in names},
            dry_run=self.dry_run,
            files=dict(self.files),
            duplicates=self.counts["turns"] - self.counts["stored"],
            sessions=len(self.sessions),
            unreadable=tuple(self.unreadable),
            passed=dict(self.passed),
            first_at=self.first_at,
            last_at=self.last_at,
            settled=True,
        )

    def _counted(self, item: Item) -> None:
        options = item.options
        self.counts.update(
            turns=1,
            nodes=len(options.get("nodes", ())),
            facts=len(options.get("facts", ())),
            characters=len(item.content),
            tokens=estimate_tokens(item.content),
        )
        self.sessions.add((options.get("source", ""), options.get("session", "")))
        if at := options.get("occurred_at"):
            self.first_at = min(at, self.first_at or at)
            self.last_at = max(at, self.last_at or at)

    async def _store(self, batch: Sequence[Item]) -> None:
        """Store a batch; when one message of it is refused, the others are stored one by one."""
        try:
            self._noted(await self._kept(batch))
        except InvalidRequest:
            for item in batch:
                try:
                    self._noted(await self._kept([item]))
                except InvalidRequest as error:
                    self.counts["turns"] -= 1
                    self.note(Unreadable(item.where, error.message))

    async def _kept(self, batch: Sequence[Item]) -> list[Receipt]:
        def told() -> None:
            self._tell("waiting until what is stored is taken in")

        return await kept_patiently(self.into.keep, [(item.content, item.options) for item in batch], told)

    def _tell(self, what: str) -> None:
        if self.progress:
            at = self.done + (self.source.position if self.source else 0)
            self.progress(f"{self.counts['turns']:,} turns, {what}", min(at, self.total), self.total)

    def _noted(self, receipts: Sequence[Receipt]) -> None:
        self.counts["stored"] += sum(receipt.state != "duplicate" for receipt in receipts)
        self.counts["redacted"] += sum(receipt.redacted for receipt in receipts)


async def kept_patiently(
    keep: Callable[[Given], Awaitable[list[Receipt]]], given: Given, told: Callable[[], None] | None = None
) -> list[Receipt]:
    """Store messages; while too much waits to be taken in, wait too and say so."""
    while True:
        try:
            return await keep(given)
        except Overloaded as error:
            if told:
                told()
            await asyncio.sleep(min(error.retry_after_s, _LONGEST_WAIT_S))


def _batch(reader: Iterator[Read], run: _Run) -> list[Item]:
    """Return the next messages: at most 200, and about a million characters; none at the end."""
    batch: list[Item] = []
    size = 0
    for read in reader:
        if item := run.note(read):
            batch.append(item)
            size += len(item.content)
            if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
                break
    return batch


def _read_all(found: Sequence[Source | Read], wanted: Format | None, run: _Run) -> Iterator[Read]:
    for one in found:
        if not isinstance(one, Source):
            yield one
            continue
        run.source = one
        try:
            yield from _read(one, wanted, run)
        except StoreError as error:
            yield Unreadable(one.name, error.message.removeprefix(f"{one.name}: "))
        run.source = None
        run.done += one.size


def _read(source: Source, wanted: Format | None, run: _Run) -> Iterator[Read]:
    if wanted is None:
        chosen = format_of(source)
    else:
        chosen = wanted if source.given or source.suffix in wanted.suffixes else None
    if chosen is not None:
        run.files[chosen.name] += 1
        for read in chosen.read(source):
            if isinstance(read, Item) and read.content.lstrip().startswith(MARK):
                yield Passed("conversations of the program that reads turns for this memory")
                return
            yield read
    elif source.given:
        yield Unreadable(source.name, "is in no format that is known by its content; --format says which it is")
    else:
        yield Passed("files of no known format")
