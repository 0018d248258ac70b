"""What comes in as documents: imports of other programs' files, and folders of Markdown that are followed.

A folder's files are the truth; their passages are turns. What is known of a folder (each file's stamp and digest)
is kept in the journal, so a start catches up with what changed while nobody looked.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from pps.core.errors import InvalidRequest, StoreConflict
from pps.core.values import Receipt, Skipped, Turn
from pps.ingest.anchor_files import (
    AnchorFile,
    Outside,
    Unread,
    is_markdown,
    read_below,
    read_one,
)
from pps.ingest.drafts import RememberOptions
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
    """What following a folder did so far: files by what became of them, and passages.

    Attributes:
        waiting: Files whose old passages could not be forgotten yet, since they are still being taken in; the
            next look does it.
        away: Files and folders that could not be looked at now; what is known of them stays as it is.
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
    """What was last seen of a file: its stamp, and the digest of what it held."""

    size: int
    changed_ns: int
    digest: str


_State = TypeAdapter(dict[str, _Known])


class Documents:
    """The documents of one entity; followings run one after another."""

    def __init__(
        self,
        keep: Keep,
        journal: Journal,
        forgetter: Forgetter,
        worker: Worker,
        exporter: Callable[[], Exporter],
        identifier: Callable[[str], str],
    ) -> None:
        self._keep, self._identifier, self._exporter = keep, identifier, exporter
        self._journal, self._forgetter, self._worker = journal, forgetter, worker
        self._lock = asyncio.Lock()

    async def import_files(self, wanted: Wanted, progress: Progress | None = None) -> Imported:
        """Remember what files and folders of other programs hold; what is there already is not stored twice."""
        done = await import_files(
            wanted, Into(self._keep_new, self._count_known, self._journal.zone), progress
        )
        return done if wanted.dry_run else replace(done, settled=await self.settled(progress))

    async def export(self, path: Path) -> int:
        await self.settled()
        return await self._exporter().write(path)

    async def follow(
        self,
        folder: Path,
        progress: Progress | None = None,
        wanted: Callable[[], bool] | None = None,
    ) -> Synced:
        """Bring the turns of a folder's Markdown files, or of one file, to what the files say now.

        Of a file that changed only passages that changed are stored; those that are no longer in it are
        forgotten, with what only they supported. Hidden, binary and huge files are left out. ``wanted`` is asked when
        the followings before this one are done: nothing is done if it is no longer.

        Raises:
            StoreError: The folder is away or cannot be read; nothing was changed.
        """
        async with self._lock:
            if wanted and not await asyncio.to_thread(wanted):
                return Synced()
            known = await self._state(folder)
            found = await asyncio.to_thread(lambda: _looked(folder, known, self._identifier))
            tally = Synced()
            gone = _gone(found, known)
            if len(found) > MAX_FILES:
                tally.skipped.append(
                    Skipped(str(folder), f"holds over {MAX_FILES:,} files; the rest is left out")
                )
                found = found[:MAX_FILES]
            state = {path: seen for path, seen in known.items() if path not in gone}
            for number, one in enumerate(found, 1):
                await self._file(folder, one, state, tally)
                if progress:
                    progress(
                        f"{tally.stored:,} passages, {one.path}", number, len(found) + len(gone)
                    )
                if number % _KEEP_EVERY == 0:
                    await self._keep_state(folder, {**gone, **state})
            if await self._forget(
                [turn for path in gone for turn in await self._passages(folder, path)], tally
            ):
                tally.removed += len(gone)
            else:
                state.update(gone)
            await self._keep_state(folder, state)
        return tally

    async def drop(self, folder: Path) -> int:
        """Forget every passage of a folder that is followed no longer; returns how many there were."""
        async with self._lock:
            known = await self._state(folder)
            tally = Synced()
            done = await self._forget(
                [turn for path in known for turn in await self._passages(folder, path)], tally
            )
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

    async def _file(
        self, folder: Path, found: Outside, state: dict[str, _Known], tally: Synced
    ) -> None:
        """Bring one file's passages up to date and note what was seen of it, once all of it is done."""
        before = state.get(found.path)
        if found.read is None:
            tally.unchanged += 1
            return
        if not isinstance(found.read, AnchorFile):
            tally.skipped.append(Skipped(found.path, found.read.why))
            if found.read.is_away:
                tally.away += 1
            elif before and await self._forget(await self._passages(folder, found.path), tally):
                del state[found.path]
            return
        seen = _Known(*found.stamp, found.read.digest)
        if before and before.digest == seen.digest:
            state[found.path] = seen
            tally.unchanged += 1
            return
        if await self._rewritten(folder, found.path, found.read, tally):
            state[found.path] = seen
            tally.changed += before is not None
            tally.added += before is None

    async def _rewritten(self, folder: Path, path: str, file: AnchorFile, tally: Synced) -> bool:
        """Store what is new in a file, forget what is gone; False when the latter must wait."""
        note = Note(folder, path, file.text, file.modified_at)
        wanted = await asyncio.to_thread(lambda: _items(note))
        held = {turn.source_ref: turn for turn in await self._passages(folder, path)}
        new = [item for item in wanted if item.options.get("source_ref") not in held]
        for start in range(0, len(new), _AT_ONCE):
            given = [item.arguments for item in new[start : start + _AT_ONCE]]
            stored = await keep_each(
                partial(kept_patiently, self._keep),
                given,
                lambda _, why: tally.skipped.append(Skipped(path, why)),
            )
            tally.stored += len(stored)
        now_wanted = {
            item.options.get("source_ref", ""): item.options.get("chunk") for item in wanted
        }
        moved = [
            (turn.uuid, chunk)
            for ref, turn in held.items()
            if (chunk := now_wanted.get(ref)) and chunk != turn.chunk
        ]
        if moved:
            await self._journal.renumber(moved)
        return await self._forget(
            [turn for ref, turn in held.items() if ref not in now_wanted], tally
        )

    async def _forget(self, turns: Sequence[Turn], tally: Synced) -> bool:
        """Forget passages with what only they supported; False when some of it is still being taken in."""
        if not turns:
            return True
        if tally.waiting or not await self._worker.saved(_PATIENCE_S):  # waited for once a look
            tally.waiting += 1
            return False
        ids = [turn.uuid for turn in turns]
        for start in range(0, len(ids), MAX_IDS):
            try:
                done = await self._forgetter.forget(ids[start : start + MAX_IDS], dry_run=False)
            except InvalidRequest:  # something new that shares a fact with it is in work
                tally.waiting += 1
                return False
            tally.forgotten += len(done.turns)
        return True

    async def _passages(self, folder: Path, path: str) -> list[Turn]:
        turns = await self._journal.of_session(self._identifier(session_of(folder, path)))
        return [turn for turn in turns if turn.source == SOURCE]

    async def _state(self, folder: Path) -> dict[str, _Known]:
        return _State.validate_json(await self._journal.get_meta(_key(folder)) or "{}")

    async def _keep_state(self, folder: Path, state: Mapping[str, _Known]) -> None:
        await self._journal.set_meta(_key(folder), _State.dump_json(dict(state)).decode())

    async def _keep_new(self, given: Messages) -> list[Receipt]:
        """Store messages; one that this very memory exported without a reference of its own is there already."""
        uuids = {at: _exported(options) for at, (_, options) in enumerate(given)}
        own = {
            turn.uuid
            for turn in await self._journal.turns([uuid for uuid in uuids.values() if uuid])
        }
        known = {at: uuid for at, uuid in uuids.items() if uuid in own}
        new = [one for at, one in enumerate(given) if at not in known]
        receipts = iter(await self._keep(new) if new else [])
        return [
            Receipt(known[at], 0, "duplicate") if at in known else next(receipts)
            for at in range(len(given))
        ]

    async def _count_known(self, given: Messages) -> int:
        clean = self._identifier
        origins = [
            (clean(one.get("source") or "api"), clean(one.get("session") or "default"), clean(ref))
            for _, one in given
            if (ref := one.get("source_ref", ""))
        ]
        return await self._journal.count_known(origins)

    async def settled(self, progress: Progress | None = None) -> bool:
        """Wait until all is in graph and indexes; tell whether it is.

        What a model has yet to read is waited for while it moves, but not while the model is away; nothing is waited
        for that does not move for a minute.
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


def _exported(options: RememberOptions) -> str:
    """Return the uuid that a turn had where it was exported from; empty when it has a reference of its own."""
    ref = options.get("source_ref", "")
    return ref.removeprefix(KNOWN) if ref.startswith(KNOWN) else ""


def _looked(
    folder: Path, known: Mapping[str, _Known], clean: Callable[[str], str]
) -> list[Outside]:
    """Return what is in a folder, or a file, each path without secrets, as it is known by; blocks."""
    stamps = {path: seen[:2] for path, seen in known.items()}
    found: list[Outside] = []
    read = read_one if is_markdown(folder) else read_below
    for one in read(folder, stamps):
        found.append(replace(one, path=clean(one.path)))
        if len(found) > MAX_FILES:
            break
    return found


def _gone(found: Sequence[Outside], known: Mapping[str, _Known]) -> dict[str, _Known]:
    """Return what was there and is no more; of what was not looked at, nothing is known."""
    if len(found) > MAX_FILES:
        return {}
    met = {one.path for one in found}
    away = [
        (one.path, one.read.name)
        for one in found
        if isinstance(one.read, Unread) and one.read.is_away
    ]
    if any(
        path != name for path, name in away
    ):  # it was redacted, so what is below it cannot be told
        return {}
    closed = tuple(f"{path}/" for path, _ in away)
    return {
        path: seen
        for path, seen in known.items()
        if path not in met and not path.startswith(closed)
    }


def _items(note: Note) -> list[Item]:
    turns = note_turns(note)
    read = (one for content, options in turns for one in pieces(content, options, note.path))
    return [one for one in read if isinstance(one, Item)]


def _key(folder: Path) -> str:
    return (
        _STATE
        + hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    )
