"""The folder where hooks leave events while no server runs; they are read in order, and once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time as clock
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from pps.core.errors import ConfigError, InvalidRequest, PPSError, UnknownEntity
from pps.core.log_context import unforeseen
from pps.core.values import JSON

_log = logging.getLogger(__name__)

_PAUSE_S = 2.0
_DRAFT_S = 600.0


@dataclass(frozen=True, slots=True)
class SpoolState:
    """What lies in the spool.

    Attributes:
        waiting, size: Events, and their bytes, that the next server takes in.
        bad: Events that could not be read or taken in; they are kept.
        dropped: Events that found no room.
    """

    waiting: int
    size: int
    bad: int
    dropped: int


def spool_folder(home: Path) -> Path:
    return home / "spool"


def waiting(home: Path) -> list[Path]:
    """Return the events that wait, oldest first."""
    return sorted(spool_folder(home).glob("[0-9]*.json"))


def erase(home: Path, is_theirs: Callable[[str, str, str], bool]) -> None:
    """Remove what was told to somebody, also what was put aside.

    What cannot be read is nobody's and stays.

    Args:
        home: The data folder.
        is_theirs: Asked with the name, the folder and the repository of an event.
    """
    for path in [*waiting(home), *spool_folder(home).glob("*.bad")]:
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
            event = json.loads(path.read_bytes())
            folder = event.get("project") or event.get("cwd") or ""
            if is_theirs(event.get("entity") or "", folder, event.get("repository") or ""):
                path.unlink()


def look(home: Path) -> SpoolState:
    """Return the state of the spool; there need not be one."""
    folder = spool_folder(home)
    sizes: list[int] = []
    for path in waiting(home):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    dropped = folder / "dropped"
    return SpoolState(
        len(sizes),
        sum(sizes),
        len(list(folder.glob("*.bad"))),
        dropped.stat().st_size if dropped.exists() else 0,
    )


class Handler(Protocol):
    """Takes one event; see ``Desk.handle``."""

    def __call__(
        self, message: Mapping[str, JSON], *, late: bool = False
    ) -> Awaitable[dict[str, JSON]]: ...


class SpoolDrain:
    """Drains a data folder's spool at the start, and whenever a hook left events."""

    def __init__(self, home: Path, handle: Handler) -> None:
        self._home = home
        self._handle = handle

    async def run(self) -> None:
        """Drain for ever."""
        while True:
            try:
                await self.once()
            except OSError as error:
                _log.warning("the hooks' spool cannot be read: %s", error.strerror)
            await asyncio.sleep(_PAUSE_S)

    async def once(self) -> int:
        """Take in what waits, up to the first event that must wait longer.

        Return how many were taken.
        """
        taken = 0
        await asyncio.to_thread(_sweep, spool_folder(self._home))
        for path in await asyncio.to_thread(waiting, self._home):
            if not await self._one(path):
                break
            taken += 1
        if taken:
            _log.info("%d events from the hooks' spool were taken in", taken)
        return taken

    async def _one(self, path: Path) -> bool:
        message = await asyncio.to_thread(_read, path)
        if message is None:
            _set_aside(path)
            return True
        try:
            await self._handle(message, late=True)
        except PPSError as error:
            if error.retryable:
                _log.info("the hooks' spool waits: %s", error.message)
                return False
            if isinstance(error, ConfigError):  # of one entity; others need not wait for it
                _log.info("an event of the hooks' spool waits: %s", error.message)
                return True
            if not isinstance(error, InvalidRequest | UnknownEntity):
                _log.warning("an event of the hooks' spool failed: %s", error.message)
                _set_aside(path)
                return True
            _log.info("an event of the hooks' spool is nobody's: %s", error.message)
        except Exception as error:  # noqa: BLE001 - `pps doctor` tells of it, and the others go on
            unforeseen(_log, "an event of the hooks' spool failed", error)
            _set_aside(path)
            return True
        await asyncio.to_thread(path.unlink, missing_ok=True)
        return True


def _read(path: Path) -> dict[str, JSON] | None:
    """Return an event; None when it is no file of a hook's."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JSON]", value) if isinstance(value, dict) else None


def _set_aside(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_suffix(".bad"))
    _log.warning("%s could not be taken in; it is kept there", path.with_suffix(".bad"))


def _sweep(folder: Path) -> None:
    """Remove drafts that a killed hook left behind."""
    for draft in folder.glob(".[0-9]*"):
        with contextlib.suppress(FileNotFoundError):
            if clock.time() - draft.stat().st_mtime > _DRAFT_S:
                draft.unlink()
