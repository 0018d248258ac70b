"""Import files of other programs, and follow folders of Markdown.

The files of a folder are the truth; their passages are turns. The journal keeps each file's stamp
and digest, so a start catches up with the files that changed meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from pps.core.errors import InvalidRequest, StoreConflict
from pps.core.values import Chunk, Receipt, Skipped, Turn
from pps.ingest.anchor_files import (
    AnchorFile,
    Outside,
    Unread,
    is_markdown,
    read_below,
    read_one,
)
from pps.ingest.exporting import Exporter
from pps.ingest.forget import MAX_IDS, Forgetter
from pps.ingest.importing.items import Item, pieces
from pps.ingest.importing.markdown import SOURCE, Note, note_turns, session_of
from pps.ingest.importing.run import (
    Imported,
    Into,
    Keep,
    Messages,
    Progress,
    Wanted,
    import_files,
    keep_each,
    kept_patiently,
)
from pps.ingest.worker import Worker
from pps.journal.journal import Journal
from pps.journal.kept_records import KNOWN

MAX_FILES = 20_000
"""Most files of one watched folder; more are reported and left out."""

_STATE = "watched:"
_KEEP_EVERY = 50
_AT_ONCE = 200
_PATIENCE_S = 60.0
_BEAT_S = 0.5


@dataclass(slots=True)
class Synced:
    """Counts of one look at a followed folder: files by outcome, passages stored and forgotten.

    Attributes:
        waiting: Files whose old passages could not be forgotten, since their jobs have not ended;
            the next look forgets them.
        away: Files and folders that could not be opened now; their passages stay.
        skipped: Files and passages that were left out, and why.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    waiting: int = 0
    away: int = 0
    stored: int = 0
    forgotten: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class _Known(NamedTuple):
    """The stamp of a file when it was last read, and the digest of its content."""

    size: int
    changed_ns: int
    digest: str


_State = TypeAdapter(dict[str, _Known])


class Documents:
    """The documents of one entity; it follows one folder at a time."""

    def __init__(
        self,
        keep: Keep,
        journal: Journal,
        forgetter: Forgetter,
        worker: Worker,
        exporter: Callable[[], Exporter],
        identifier: Callable[[str], str],
    ) -> None:
        self._keep = keep
        self._journal = journal
        self._forgetter = forgetter
        self._worker = worker
        self._exporter = exporter
        self._identifier = identifier
        self._lock = asyncio.Lock()

    async def import_files(self, wanted: Wanted, progress: Progress | None = None) -> Imported:
        """Store the messages in files and folders of other programs; known ones are left out."""
        into = Into(self._keep_new, self._count_known, self._journal.zone)
        imported = await import_files(wanted, into, progress)
        if wanted.dry_run:
            return imported
        return replace(imported, settled=await self.settled(progress))

    async def export(self, path: Path) -> int:
        await self.settled()
        return await self._exporter().write(path)

    async def follow(
        self,
        folder: Path,
        progress: Progress | None = None,
        wanted: Callable[[], bool] | None = None,
    ) -> Synced:
        """Bring the turns of a folder's Markdown files, or of one file, up to date with the files.

        Of a changed file only new passages are stored; passages that it no longer has are
        forgotten, with the facts that only they support. Hidden, binary and huge files are left
        out.

        Args:
            folder: A folder, or one Markdown file.
            progress: Called with a text, the number of files done, and their total.
            wanted: Called when earlier calls have ended; if it returns False, nothing is done.

        Raises:
            StoreError: The folder is missing or cannot be read; nothing was changed.
        """
        async with self._lock:
            if wanted and not await asyncio.to_thread(wanted):
                return Synced()
            known = await self._state(folder)
            files = await asyncio.to_thread(lambda: _files_in(folder, known, self._identifier))
            tally = Synced()
            gone = _files_gone(files, known)
            if len(files) > MAX_FILES:
                tally.skipped.append(
                    Skipped(str(folder), f"holds over {MAX_FILES:,} files; the rest is left out")
                )
                files = files[:MAX_FILES]
            state = {path: seen for path, seen in known.items() if path not in gone}
            total = len(files) + len(gone)
            for number, file in enumerate(files, 1):
                await self._sync_file(folder, file, state, tally)
                if progress:
                    progress(f"{tally.stored:,} passages, {file.path}", number, total)
                if number % _KEEP_EVERY == 0:
                    await self._keep_state(folder, {**gone, **state})
            if await self._forget(await self._passages_of(folder, gone), tally):
                tally.removed += len(gone)
            else:
                state.update(gone)
            await self._keep_state(folder, state)
        return tally

    async def drop(self, folder: Path) -> int:
        """Forget every passage of a folder that is no longer followed; return their number."""
        async with self._lock:
            known = await self._state(folder)
            tally = Synced()
            done = await self._forget(await self._passages_of(folder, known), tally)
            if done:
                await self._forgetter.erase_sessions(
                    {self._identifier(session_of(folder, path)) for path in known}
                )
                await self._keep_state(folder, {})
        if not done:
            raise StoreConflict(
                "some passages are still being taken in: run the command again in a minute"
            )
        return tally.forgotten

    async def _sync_file(
        self, folder: Path, file: Outside, state: dict[str, _Known], tally: Synced
    ) -> None:
        """Bring one file's passages up to date, then note its stamp and digest."""
        path = file.path
        before = state.get(path)
        if file.read is None:
            tally.unchanged += 1
            return
        if not isinstance(file.read, AnchorFile):
            tally.skipped.append(Skipped(path, file.read.why))
            if file.read.is_away:
                tally.away += 1
            elif before and await self._forget(await self._passages(folder, path), tally):
                del state[path]
            return
        seen = _Known(*file.stamp, file.read.digest)
        if before and before.digest == seen.digest:
            state[path] = seen
            tally.unchanged += 1
            return
        if await self._sync_passages(folder, path, file.read, tally):
            state[path] = seen
            tally.changed += before is not None
            tally.added += before is None

    async def _sync_passages(
        self, folder: Path, path: str, file: AnchorFile, tally: Synced
    ) -> bool:
        """Store the new passages of a file, forget its old ones; False if forgetting must wait."""
        note = Note(folder, path, file.text, file.modified_at)
        wanted = await asyncio.to_thread(lambda: _items(note))
        held = {turn.source_ref: turn for turn in await self._passages(folder, path)}
        new = [item.arguments for item in wanted if item.options.get("source_ref") not in held]
        for start in range(0, len(new), _AT_ONCE):
            stored = await keep_each(
                partial(kept_patiently, self._keep),
                new[start : start + _AT_ONCE],
                lambda _, why: tally.skipped.append(Skipped(path, why)),
            )
            tally.stored += len(stored)
        chunks = {item.options.get("source_ref", ""): item.options.get("chunk") for item in wanted}
        moved: list[tuple[str, Chunk]] = []
        gone: list[Turn] = []
        for reference, turn in held.items():
            chunk = chunks.get(reference)
            if reference not in chunks:
                gone.append(turn)
            elif chunk and chunk != turn.chunk:
                moved.append((turn.uuid, chunk))
        if moved:
            await self._journal.renumber(moved)
        return await self._forget(gone, tally)

    async def _forget(self, turns: Sequence[Turn], tally: Synced) -> bool:
        """Forget passages and facts that only they support; False while a job uses some of them."""
        if not turns:
            return True
        if tally.waiting or not await self._worker.saved(_PATIENCE_S):  # waited for once a look
            tally.waiting += 1
            return False
        ids = [turn.uuid for turn in turns]
        for start in range(0, len(ids), MAX_IDS):
            try:
                done = await self._forgetter.forget(ids[start : start + MAX_IDS], dry_run=False)
            except InvalidRequest:  # a new turn that shares a fact with it is being saved
                tally.waiting += 1
                return False
            tally.forgotten += len(done.turns)
        return True

    async def _passages(self, folder: Path, path: str) -> list[Turn]:
        turns = await self._journal.of_session(self._identifier(session_of(folder, path)))
        return [turn for turn in turns if turn.source == SOURCE]

    async def _passages_of(self, folder: Path, paths: Iterable[str]) -> list[Turn]:
        return [turn for path in paths for turn in await self._passages(folder, path)]

    async def _state(self, folder: Path) -> dict[str, _Known]:
        return _State.validate_json(await self._journal.get_meta(_key(folder)) or "{}")

    async def _keep_state(self, folder: Path, state: Mapping[str, _Known]) -> None:
        await self._journal.set_meta(_key(folder), _State.dump_json(dict(state)).decode())

    async def _keep_new(self, messages: Messages) -> list[Receipt]:
        """Store messages; those that this memory exported without a reference are duplicates."""
        references = [options.get("source_ref", "") for _, options in messages]
        uuids = [
            reference.removeprefix(KNOWN) if reference.startswith(KNOWN) else ""
            for reference in references
        ]
        turns = await self._journal.turns([uuid for uuid in uuids if uuid])
        known = {turn.uuid for turn in turns}
        new = [message for message, uuid in zip(messages, uuids, strict=True) if uuid not in known]
        receipts = iter(await self._keep(new) if new else [])
        return [
            Receipt(uuid, 0, "duplicate") if uuid in known else next(receipts) for uuid in uuids
        ]

    async def _count_known(self, messages: Messages) -> int:
        clean = self._identifier
        origins: list[tuple[str, str, str]] = []
        for _, options in messages:
            reference = options.get("source_ref", "")
            if reference:
                source = clean(options.get("source") or "api")
                session = clean(options.get("session") or "default")
                origins.append((source, session, clean(reference)))
        return await self._journal.count_known(origins)

    async def settled(self, progress: Progress | None = None) -> bool:
        """Wait until every turn is in graph and indexes; tell whether they all are.

        It waits for turns that a model has yet to read, but not while the model is unavailable;
        without any progress for ``_PATIENCE_S`` it gives up.
        """
        total = least = await self._journal.unfinished()
        patience_s = _PATIENCE_S
        while not await self._worker.settled(_BEAT_S):
            left = await self._journal.unfinished()
            patience_s = _PATIENCE_S if left < least else patience_s - _BEAT_S
            least = min(least, left)
            if patience_s <= 0 or (self._worker.waits_for and await self._worker.saved(0)):
                return False
            if progress:
                progress(f"taking in, {left:,} left", max(0, total - left), total)
        return True


def _files_in(
    folder: Path, known: Mapping[str, _Known], clean: Callable[[str], str]
) -> list[Outside]:
    """Return the files of a folder, or one file; secrets in paths are replaced. Blocks."""
    stamps = {path: seen[:2] for path, seen in known.items()}
    files: list[Outside] = []
    read = read_one if is_markdown(folder) else read_below
    for file in read(folder, stamps):
        files.append(replace(file, path=clean(file.path)))
        if len(files) > MAX_FILES:
            break
    return files


def _files_gone(files: Sequence[Outside], known: Mapping[str, _Known]) -> dict[str, _Known]:
    """Return the known files that are gone; those in folders that did not open stay known."""
    if len(files) > MAX_FILES:
        return {}
    paths = {file.path for file in files}
    closed: list[str] = []
    for file in files:
        if isinstance(file.read, Unread) and file.read.is_away:
            if file.path != file.read.name:
                return {}  # its name was redacted, so its files cannot be recognised
            closed.append(f"{file.path}/")
    return {
        path: seen
        for path, seen in known.items()
        if path not in paths and not path.startswith(tuple(closed))
    }


def _items(note: Note) -> list[Item]:
    items: list[Item] = []
    for content, options in note_turns(note):
        read = pieces(content, options, note.path)
        items += [piece for piece in read if isinstance(piece, Item)]
    return items


def _key(folder: Path) -> str:
    return (
        _STATE
        + hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    )
