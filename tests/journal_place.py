"""Where the journal of one group is, on each SQL store: it can be opened again, and what it holds can be looked through."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path

from pps.core.ids import new_group
from pps.journal.journal import Journal
from pps.journal.postgresql import Database, database_of
from tests.postgresql_server import PostgresqlServer


class JournalPlace(ABC):
    """A place for one journal; ``close`` gives back what opening it took, beside the journals themselves."""

    def __init__(self) -> None:
        self.group = new_group()

    @abstractmethod
    async def open(self) -> Journal: ...

    @abstractmethod
    async def holds(self, text: str) -> bool:
        """Tell whether a text stands anywhere in what the journal wrote: in a byte of a file, or in a row."""

    @abstractmethod
    async def close(self) -> None: ...


class FilePlace(JournalPlace):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / "journal" / "memory.db"

    async def open(self) -> Journal:
        return await Journal.open(self._path, self.group)

    async def holds(self, text: str) -> bool:
        files = [file.read_bytes() for file in self._path.parent.iterdir()]
        return any(text.encode() in content for content in files)

    async def close(self) -> None:
        pass


class PostgresqlPlace(JournalPlace):
    def __init__(self, server: PostgresqlServer, folder: Path) -> None:
        super().__init__()
        self._server = server
        self._folder = folder
        self._database: Database | None = None

    async def open(self) -> Journal:
        if self._database is None:
            self._database = await asyncio.to_thread(database_of, self._server.settings)
        return await Journal.open_in(self._database, self._folder / "memory.db", self.group)

    async def holds(self, text: str) -> bool:
        return bool(await self._server.rows_with(text, self.group))

    async def close(self) -> None:
        if self._database is not None:
            await asyncio.to_thread(self._database.close)
