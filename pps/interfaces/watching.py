"""Following folders of notes while the server runs, with one watch on all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from watchfiles import (
    Change,
    awatch,  # pyright: ignore[reportUnknownVariableType] - an event of any library
)

from pps.app import App
from pps.core.errors import PPSError
from pps.entities.routing import MappedFolder
from pps.ingest.anchor_files import MARKDOWN

if TYPE_CHECKING:
    from pps.ingest.documents import Synced

_log = logging.getLogger(__name__)

DEBOUNCE_MS = 1_600
"""Time over which changes are gathered, so that an editor that saves often causes one reading."""
_FIRST_MS = 1_000
_LOOK_S = 2.0
"""Interval of asking the registry for the watched folders."""
_AGAIN_S = 60.0
"""Interval before a folder is read again that could not be read, or that has waiting files."""


class FolderWatch:
    """Reads each watched folder into its entity: once at the start, then at each change in it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._again: dict[str, float] = {}
        self._seen: set[str] = set()

    async def run(self) -> None:
        """Follow the folders until cancelled.

        A folder that cannot be read does not delay another.
        """
        while True:
            folders = await self._folders()
            present = await asyncio.to_thread(_present, folders)
            existing = {path: folder for path, folder in folders.items() if path in present}
            self._seen &= existing.keys()
            for path, watched in existing.items():
                if path not in self._seen:
                    await self._follow(watched)
                    self._seen.add(path)
            ended = asyncio.Event()
            looking = asyncio.create_task(self._until_others(folders, existing, ended))
            try:
                await self._watch(existing, ended)
            finally:
                looking.cancel()

    async def _watch(self, existing: dict[str, MappedFolder], ended: asyncio.Event) -> None:
        if not existing:
            await ended.wait()
            return
        is_first = True
        is_file = await asyncio.to_thread(lambda: {path: Path(path).is_file() for path in existing})
        try:
            async for changes in awatch(
                *await asyncio.to_thread(_roots, existing),
                watch_filter=partial(_concerns, existing.keys()),
                debounce=DEBOUNCE_MS,
                stop_event=ended,
                rust_timeout=_FIRST_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                for path, folder in existing.items():
                    if is_first or any(
                        Path(changed).is_relative_to(path) for _, changed in changes
                    ):
                        await self._follow(folder)
                is_first = False  # changes from before the watch have been read now
                if any(changed in existing and not is_file[changed] for _, changed in changes):
                    return  # a folder was removed or replaced: this watch does not see the new one
        except (OSError, RuntimeError) as error:
            # A folder was removed meanwhile, or the system has no watches left.
            _log.warning("folders cannot be watched (%s); looking again in %.0f s", error, _AGAIN_S)
            self._seen.clear()
            await asyncio.sleep(_AGAIN_S)

    async def _until_others(
        self,
        folders: dict[str, MappedFolder],
        existing: dict[str, MappedFolder],
        ended: asyncio.Event,
    ) -> None:
        """Set the event when other folders are to be watched, or one must be looked at again."""
        while True:
            await asyncio.sleep(_LOOK_S)
            now = asyncio.get_running_loop().time()
            due = {path for path, at in self._again.items() if at <= now}
            present = await asyncio.to_thread(_present, folders)
            if await self._folders() != folders or present != existing.keys() or due:
                self._seen -= due
                self._again = {path: at for path, at in self._again.items() if path not in due}
                ended.set()
                return

    async def _folders(self) -> dict[str, MappedFolder]:
        folders = await asyncio.to_thread(self._app.registry.watched.list)
        return {folder.path: folder for folder in folders if not folder.archived}

    async def _follow(self, folder: MappedFolder) -> None:
        """Read the changes of one folder.

        An error is logged, and the folder is tried again later.
        """

        def wanted() -> bool:
            # The folder may have been unwatched and forgotten while this waited for its turn.
            return any(
                followed.path == folder.path for followed in self._app.registry.watched.list()
            )

        try:
            async with self._app.memory(folder.entity) as memory:
                done = await memory.documents.follow(Path(folder.path), wanted=wanted)
        except PPSError as error:
            _log.warning(
                "entity %s: %s could not be followed: %s",
                folder.entity.name,
                folder.path,
                error.message,
            )
            self._again[folder.path] = asyncio.get_running_loop().time() + _AGAIN_S
        else:
            self._note(folder, done)

    def _note(self, folder: MappedFolder, done: Synced) -> None:
        if done.waiting or done.away:
            self._again[folder.path] = asyncio.get_running_loop().time() + _AGAIN_S
        if done.added or done.changed or done.removed:
            _log.info(
                "entity %s: %s: %d files new, %d changed, %d gone; %d passages stored, %d "
                "forgotten",
                folder.entity.name,
                folder.path,
                done.added,
                done.changed,
                done.removed,
                done.stored,
                done.forgotten,
            )


def _present(paths: Iterable[str]) -> set[str]:
    return {path for path in paths if Path(path).is_dir() or Path(path).is_file()}


def _roots(paths: Iterable[str]) -> set[str]:
    """Return the folders to watch.

    For a file, its folder, since programs replace a file to save it.
    """
    return {path if Path(path).is_dir() else str(Path(path).parent) for path in paths}


def _concerns(roots: Collection[str], change: Change, path: str) -> bool:
    """Tell whether a change may concern a note: a Markdown file, or a folder that may hold some."""
    if path in roots:
        return True
    name = Path(path).name
    if name.startswith("."):
        return False
    if name.lower().endswith(MARKDOWN) or "." not in name:
        return True
    return change is Change.deleted or Path(path).is_dir()  # a folder's name may have a dot too
