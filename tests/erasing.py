"""An entity erased by hand, and whether anything of one is left in a data folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pps.app import App
from pps.entities.registry import Registry
from pps.journal.journal import Journal
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import clear
from tests.held_files import files_below, paths_below


def deleted(registry: Registry, name: str) -> None:
    """Delete an entity that no process has open, as one that runs beside this process would."""
    deletion = registry.deletions.begin(registry.get(name).entity)
    registry.deletions.remove_files(deletion)
    registry.deletions.end(deletion)


def left_in(home: Path, words: Sequence[str]) -> list[str]:
    """Return the files below a folder that hold one of some words, or are called by one."""
    wanted = [word.encode() for word in words]
    called = {
        str(path.relative_to(home))
        for path in paths_below(home)
        if any(word in str(path.relative_to(home)) for word in words)
    }
    holding = {
        str(path.relative_to(home))
        for path, content in files_below(home)
        if any(word in content for word in wanted)
    }
    return sorted(called | holding)


async def lose_graph(app: App, name: str) -> None:
    """Take away the rows of the graph of an entity that is closed."""
    entry = app.registry.get(name)
    path, group = entry.folder / "data" / "memory.db", entry.entity.group
    if entry.store == "postgresql":
        journal = await Journal.open_in(await app.database(), path, group)
    else:
        journal = await Journal.open(path, group)
    await GraphTables(journal).write(clear)
    await journal.close()
