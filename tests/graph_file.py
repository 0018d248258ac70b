"""The graph tables of a file that a test opens alone."""

from __future__ import annotations

from pathlib import Path

from pps.journal.journal import Journal
from pps.store.graph_tables import GraphTables


class OpenedTables(GraphTables):
    """Graph tables with the journal that they are in."""

    async def close(self) -> None:
        await self.journal.close()


async def open_graph_file(path: Path, group: str, remedy: str = "") -> OpenedTables:
    """Open the file of a group's memory, or make it; errors as ``Journal.open``."""
    return OpenedTables(await Journal.open(path, group), remedy)
