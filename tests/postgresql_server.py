"""A real PostgreSQL for tests: started by scripts/postgresql in a folder of its own, with a database for each run."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pps.config import PostgresqlSettings

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "postgresql"
_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PPS_")}


class CannotStart(Exception):
    """There is no server; the message is what scripts/postgresql said."""


@dataclass(frozen=True, slots=True)
class PostgresqlServer:
    """A running server.

    Attributes:
        url, owner_url: Of its database.
        folder: Its files.
    """

    url: str
    owner_url: str
    folder: Path

    @property
    def settings(self) -> PostgresqlSettings:
        return PostgresqlSettings.model_validate({"url": self.url, "owner_url": self.owner_url})

    @property
    def superuser_url(self) -> str:
        """The URL of the role that may do anything, row-level security aside."""
        password = json.loads((self.folder / "passwords.json").read_text())["postgres"]
        return f"postgresql://postgres:{password}@{self.owner_url.partition('@')[2]}"

    def as_superuser(self, *statements: str) -> list[list[object]]:
        """Run statements past every check; return the rows of the last one."""
        return asyncio.run(self.as_superuser_async(*statements))

    async def as_superuser_async(self, *statements: str) -> list[list[object]]:
        import asyncpg

        connection = await asyncpg.connect(self.superuser_url)
        try:
            await connection.execute("SET search_path = pps")
            for statement in statements[:-1]:
                await connection.execute(statement)
            return [list(row) for row in await connection.fetch(statements[-1])]
        finally:
            await connection.close()

    async def rows_with(self, text: str, group: str = "") -> list[str]:
        """Return ``table: row`` of every row of every table that has a text anywhere, of a group where one is named."""
        tables = await self.as_superuser_async(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'pps' AND tablename <> 'schema_version'"
        )
        found: list[str] = []
        for (table,) in tables:
            where = f"strpos(t::text, '{text}') > 0"
            if group:
                where += f" AND strpos(t::text, '{group}') > 0"
            statement = f'SELECT t::text FROM "{table}" AS t WHERE {where}'  # noqa: S608 - of a test
            rows = await self.as_superuser_async(statement)
            found += [f"{table}: {row}" for (row,) in rows]
        return found

    def with_database(self, name: str) -> PostgresqlServer:
        """Return the same server with another database, which is made empty."""
        import asyncpg

        async def make() -> None:
            connection = await asyncpg.connect(self.superuser_url)
            try:
                await connection.execute(
                    f"CREATE DATABASE {name} OWNER pps_owner TEMPLATE template0"
                )
            finally:
                await connection.close()

        asyncio.run(make())
        return PostgresqlServer(
            self.url.replace("/pps?", f"/{name}?"),
            self.owner_url.replace("/pps?", f"/{name}?"),
            self.folder,
        )


def postgresql_script(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/postgresql as a person would and return its exit code and what it said."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**_ENVIRONMENT, **environment},
    )


def start_postgresql(folder: Path) -> PostgresqlServer:
    """Start a server that ends with this process at the latest; raise CannotStart with the reason."""
    answer = postgresql_script(
        "start", "--json", "--data", str(folder), "--with-pid", str(os.getpid()), "--wait", "240"
    )
    if answer.returncode:
        raise CannotStart(answer.stderr.strip() or answer.stdout.strip())
    said = json.loads(answer.stdout)
    return PostgresqlServer(said["url"], said["owner_url"], folder)


def stop_postgresql(folder: Path) -> None:
    """Stop the server of a folder; nothing happens when there is none."""
    answer = postgresql_script("stop", "--data", str(folder))
    if answer.returncode:
        raise CannotStart(answer.stderr.strip())


@contextmanager
def postgresql_folder() -> Iterator[Path]:
    """Yield a folder that any user may enter, as a server that root starts runs as another one."""
    folder = Path(tempfile.mkdtemp(prefix="pps-pg-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder / secrets.token_hex(4)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """Start a server for the block and stop it at its end, whatever happened."""
    with postgresql_folder() as folder:
        try:
            yield start_postgresql(folder)
        finally:
            stop_postgresql(folder)
