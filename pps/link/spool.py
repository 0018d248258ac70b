"""The folder where hooks leave events when no server takes them. Standard library only."""

from __future__ import annotations

import contextlib
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
