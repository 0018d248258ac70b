"""An entity's files: who holds them, which there must be once all were made, removing a graph that begins anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from pps.core.errors import StoreError
from pps.core.file_lock import FileLock
from pps.entities import template
from pps.entities.registry import Entry

JOURNAL, GRAPH = "memory.db", "graph.lbug"


@contextlib.asynccontextmanager
async def held(entry: Entry) -> AsyncGenerator[None]:
    """Hold an entity's files alone; the lock dies with the process.

    Raises:
        StoreConflict: Another process holds them; the message names it.
        StoreError: The folder is gone.
    """
    data = entry.folder / "data"
    if not data.is_dir():
        raise StoreError(f"{data} is gone; restore the entity's folder from a backup")
    remedy = "; ask it (`pps …` does) or stop it (`pps serve --stop`)"
    lock = FileLock(data / "lock", whose=f"{entry.entity.name}'s memory", remedy=remedy)
    await asyncio.to_thread(lock.acquire)
    try:
        yield
    finally:
        lock.release()


def check(entry: Entry, *, graph_begins_anew: bool = False) -> None:
    """Raise StoreError when a file of an entity is gone, and IsolationError when its folder is another's."""
    template.check(entry.folder, entry.entity)  # again, now that it is held: it may have been deleted before that
    lost = gone(replace(entry, store="neo4j") if graph_begins_anew else entry)
    if lost:
        raise StoreError(lost)


def gone(entry: Entry) -> str:
    """Return what is to be said of a file that was made once and is gone or empty; an empty text when none is.

    Such a file is never made anew by itself: its memory would look empty, and take in what it is told.
    """
    wanted = (JOURNAL, GRAPH) if entry.store == "embedded" else (JOURNAL,)
    lost = [name for name in wanted if entry.made and not _has_bytes(entry.folder / "data" / name)]
    name = entry.entity.name
    if JOURNAL in lost:
        return (
            f"{name}: {' and '.join(lost)} is gone or empty, so nothing was opened; restore {entry.folder} from a "
            "backup: no command can make the journal anew"
        )
    return graph_gone(name) if lost else ""


def graph_gone(name: str) -> str:
    """Return what is to be said of an entity whose graph is gone."""
    return (
        f"{name}: its graph is gone or empty, so nothing was opened; restore it from a backup, or run `pps rebuild "
        f"{name}`, which makes it anew from the journal and says what cannot come back"
    )


def remove_graph(folder: Path) -> None:
    """Remove an embedded graph with its logs; its lock stays. Raises StoreError."""
    try:
        for file in (folder / "data").glob(f"{GRAPH}*"):
            if file.suffix != ".lock":
                file.unlink()
    except OSError as error:
        raise StoreError(f"{folder}: its graph cannot be removed ({error.strerror})") from None


def _has_bytes(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
