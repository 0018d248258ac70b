"""Following folders of notes while the server runs: one watch on all of them, each change brought to its entity."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType] - an event of any library

from pps.app import App
from pps.core.errors import PPSError
from pps.entities.routing import MappedFolder
from pps.ingest.anchor_files import MARKDOWN

if TYPE_CHECKING:
    from pps.ingest.documents import Synced

_log = logging.getLogger(__name__)

DEBOUNCE_MS = 1_600
"""How long changes are gathered before they are taken in: an editor that saves often causes one look."""
_FIRST_MS = 1_000
_LOOK_S = 2.0
"""How often the registry is asked which folders there are."""
_AGAIN_S = 60.0
"""After how long a folder is looked at again that could not be read, or of which something had to wait."""


class FolderWatch:
    """Brings each watched folder to its entity: once at the start, then whenever something in it changes."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._again: dict[str, float] = {}
        self._seen: set[str] = set()

    async def run(self) -> None:
        """Follow until cancelled; a folder that cannot be read holds up no other."""
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
                is_first = False  # what changed before the watch began has been seen now
                if any(changed in existing and not is_file[changed] for _, changed in changes):
                    return  # a folder itself went or was replaced: this watch would never see what is there now
        except (
            OSError,
            RuntimeError,
        ) as error:  # a folder went away in between, or the system watches no more
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
        """Bring one folder up to date; what stands in the way is logged and tried again later."""

        def wanted() -> (
            bool
        ):  # it may have been given up, and forgotten, while this waited for its turn
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
    """Return the folders to watch: of a file its folder, since a program that saves puts a new file in its place."""
    return {path if Path(path).is_dir() else str(Path(path).parent) for path in paths}


def _concerns(roots: Collection[str], change: Change, path: str) -> bool:
    """Tell whether a change may concern a note: a Markdown file, or a folder that came or went with some."""
    if path in roots:
        return True
    name = Path(path).name
    if name.startswith("."):
        return False
    if name.lower().endswith(MARKDOWN) or "." not in name:
        return True
    return change is Change.deleted or Path(path).is_dir()  # a folder's name may have a dot too
