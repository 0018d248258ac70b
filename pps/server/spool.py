"""The folder where hooks leave events when no server takes them. Standard library only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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
    """Return where the spool of a data folder lies."""
    return home / "spool"


def waiting(home: Path) -> list[Path]:
    """Return the events that wait, oldest first."""
    return sorted(spool_folder(home).glob("[0-9]*.json"))


def erase(home: Path, is_theirs: Callable[[str, str], bool]) -> None:
    """Remove what was told to somebody, also what was put aside; what cannot be read is nobody's and stays.

    Args:
        home: The data folder.
        is_theirs: Asked with the name and the folder of an event.
    """
    for path in [*waiting(home), *spool_folder(home).glob("*.bad")]:
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
            event = json.loads(path.read_bytes())
            if is_theirs(event.get("entity") or "", event.get("project") or event.get("cwd") or ""):
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
        len(sizes), sum(sizes), len(list(folder.glob("*.bad"))), dropped.stat().st_size if dropped.exists() else 0
    )
