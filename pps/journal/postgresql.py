"""The PostgreSQL store: one database for the memories of many entities.

asyncpg runs on an event loop in a thread of its own; the journal's threads call it and wait. Each
transaction sets its group (``pps.grp``) for itself only: row-level security shows and accepts only
rows of that group, and a connection returned to the pool keeps no group. A writing transaction
holds the entity's advisory lock until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

from pps.config import PostgresqlSettings
from pps.core.errors import (
    ConfigError,
    InvalidRequest,
    IsolationError,
    PPSError,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)
from pps.core.feature_parts import ColumnType
from pps.core.ids import check_group
from pps.core.sql import Connection, Cursor, Value
from pps.journal import meta
from pps.journal.db import Migrations, Work, migrations_of
from pps.journal.postgresql_statements import Statement, translated
from pps.journal.store import Readers
from pps.journal.writer import Writer

T = TypeVar("T")

_log = logging.getLogger(__name__)

OLDEST_SERVER: Final = 15
SCHEMA: Final = "pps"
MIGRATIONS: Final = migrations_of((files("pps.journal") / "postgresql.sql").read_text("utf-8"))
LOCK_WAIT_S: Final = 30
"""Maximum wait for another process that writes the same entity."""
_MOST_CONNECTIONS = 16
_READERS = 4
_CONNECT_S = 10.0
_STATEMENT_S = 300.0
_LOGS_GRAPH = (
    f"CASE WHEN EXISTS (SELECT 1 FROM meta WHERE key = '{meta.PUBLISHED_AT}') "  # noqa: S608
    "THEN 'on' ELSE '' END"
)
_MIGRATION_LOCK = "hashtextextended('pps schema', 0)"
_VACUUM_DUE = "vacuum_due"
_VACUUM_RETRY_S = 60.0
_OLDER_READS_S = 5.0
_OLDER_READS_POLL_S = 0.02
_OLDER_READS = """SELECT count(*) FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND xact_start < $1 AND pid <> pg_backend_pid()
        AND datname = current_database()"""
_NUL = "has the character U+0000, which PostgreSQL cannot store"


def database_of(settings: PostgresqlSettings) -> Database:
    """Open the database of ``postgresql.url``. Blocks; errors as ``Database.open``."""
    url = settings.url.get_secret_value()
    if not url:
        raise ConfigError(
            'postgresql.url: is empty; store "postgresql" needs '
            "postgresql://USER:PASSWORD@HOST/DATABASE"
        )
    return Database.open(url, settings.owner_url.get_secret_value())


async def refused_connection(settings: PostgresqlSettings, timeout_s: float) -> str:
    """Try to connect as the role of ``postgresql.url``.

    Returns:
        The reason of a failure in a few words, or an SQLSTATE; empty when the server answers.
    """
    if importlib.util.find_spec("asyncpg") is None:
        return "asyncpg is not installed"
    asyncpg = _library()
    try:
        async with asyncio.timeout(timeout_s):
            connection: Session = await asyncpg.connect(settings.url.get_secret_value())
            try:
                await connection.execute("SELECT 1")
            finally:
                connection.terminate()
    except TimeoutError:
        return f"nothing within {timeout_s:.0f} s"
    except (*library_errors(), asyncpg.ClientConfigurationError, ValueError) as error:
        return getattr(error, "sqlstate", None) or type(error).__name__
    return ""


class Session(Protocol):
    """The methods of an asyncpg connection that PPS uses."""

    async def execute(self, statement: str, *values: Any) -> str: ...

    async def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None: ...

    async def fetch(self, statement: str, *values: Any) -> list[Any]: ...

    async def fetchval(self, statement: str, *values: Any) -> Any: ...

    async def close(self) -> None: ...

    def get_server_version(self) -> Any: ...

    def is_closed(self) -> bool: ...

    def is_in_transaction(self) -> bool: ...

    def terminate(self) -> None: ...


class _Pool(Protocol):
    async def acquire(self, *, timeout: float) -> Session: ...  # noqa: ASYNC109 - asyncpg's own

    async def release(self, connection: Session) -> None: ...

    async def close(self) -> None: ...


def _library() -> Any:
    """Import asyncpg, which has no types and is installed by the extra ``postgresql`` only."""
    return importlib.import_module("asyncpg")


class Database:
    """The connection pool of one PostgreSQL database, shared by all entities of a process.

    Args:
        url: ``postgresql://…`` with the role that reads and writes rows.
        owner_url: The URL with the role that owns the tables: it creates, upgrades and vacuums
            them. Empty if an administrator does that.
    """

    def __init__(self, url: str, owner_url: str = "") -> None:
        self._url = url
        self._owner_url = owner_url
        self.name = f"PostgreSQL database {urlsplit(url).path.lstrip('/')}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="pps-postgresql", daemon=True
        )
        self._thread.start()
        self._pool: _Pool | None = None
        self.threads = ThreadPoolExecutor(_READERS, thread_name_prefix="pps-postgresql-read")

    @classmethod
    def open(cls, url: str, owner_url: str = "") -> Database:
        """Connect, upgrade the tables, and check that row-level security applies to the role.

        Blocks.

        Raises:
            ConfigError: asyncpg is not installed; a URL is invalid; the role can bypass row-level
                security; or the tables are missing or outdated and ``owner_url`` is empty.
            StoreError: The tables were created by a newer PPS.
            StoreUnavailable: The server does not answer, or rejects the role.
        """
        if importlib.util.find_spec("asyncpg") is None:
            raise ConfigError(
                'store: "postgresql" needs asyncpg: `pip install "pps[postgresql]"`, '
                'or set store to "embedded"'
            )
        _check_url("postgresql.url", url)
        if owner_url:
            _check_url("postgresql.owner_url", owner_url)
        database = cls(url, owner_url)
        try:
            with database.mapping_errors():
                database.run(database._open())
        except BaseException:
            database.close()
            raise
        return database

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on asyncpg's loop and return its result.

        Blocks; must not be called on that loop.
        """
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def acquire(self) -> Session:
        """Take a connection out of the pool; no group is set on it."""
        if self._pool is None:
            raise StoreUnavailable(f"{self.name} is closed: open the memory again")
        return self.run(self._acquire(self._pool))

    def release(self, connection: Session) -> None:
        """Return a connection to the pool; close it instead if a transaction is still open."""
        pool = self._pool
        if pool is None:
            connection.terminate()
            return
        if not connection.is_closed() and connection.is_in_transaction():
            connection.terminate()
        with contextlib.suppress(Exception):
            self.run(pool.release(connection))

    def close(self) -> None:
        """Close every connection. Blocks."""
        self.threads.shutdown(wait=True)
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(Exception):
                self.run(asyncio.wait_for(pool.close(), _CONNECT_S))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def check(self) -> None:
        """Raise StoreUnavailable if the server does not answer. Blocks."""
        with self.mapping_errors():
            connection = self.acquire()
            try:
                self.run(connection.execute("SELECT 1"))
            finally:
                self.release(connection)

    def read(self, group: str, work: Work[T]) -> T:
        """Run ``work`` read-only on one snapshot of a group's rows. Blocks."""
        with self.mapping_errors():
            raw = self.acquire()
            try:
                connection = PostgresConnection(self, raw, group)
                connection.begin_reading()
                try:
                    return work(connection)
                finally:
                    connection.roll_back()
            finally:
                self.release(raw)

    def write(self, group: str, work: Work[T]) -> T:
        """Run ``work`` in one transaction that holds the group's advisory lock. Blocks.

        Independent of the group's ``PostgresWriter``, which takes the same lock.
        """
        with self.mapping_errors():
            raw = self.acquire()
            try:
                connection = PostgresConnection(self, raw, group)
                connection.begin_writing()
                try:
                    result = work(connection)
                    connection.commit()
                    return result
                finally:
                    connection.roll_back()
            finally:
                self.release(raw)

    def erase(self, group: str) -> None:
        """Delete every row of a group in one transaction, then vacuum the tables. Blocks."""
        self.vacuum(self.write(group, delete_all))

    def vacuum(self, tables: Iterable[str]) -> bool:
        """Vacuum tables, so that deleted rows are removed from their pages. Blocks.

        Includes the tables whose rows are deleted by ``ON DELETE CASCADE`` from these.

        Returns:
            False if nothing was done, because ``owner_url`` is empty.
        """
        if not self._owner_url:
            return False

        async def work(owner: Session) -> None:
            for (table,) in await owner.fetch(_WITH_REFERRING, SCHEMA, [*tables]):
                await owner.execute(f"VACUUM (ANALYZE) {_quoted(table)}")

        with self.mapping_errors():
            self.run(self._as_owner([], work))
        return True

    def wait_for_older_reads(self) -> bool:
        """Wait up to 5 s until every transaction that began before this call has ended. Blocks.

        A vacuum removes no row that such a transaction can still see. Transactions of other roles
        are not visible here.

        Returns:
            Whether all of them ended in time.
        """
        with self.mapping_errors():
            connection = self.acquire()
            try:
                server_time = self.run(connection.fetchval("SELECT clock_timestamp()"))
                deadline = time.monotonic() + _OLDER_READS_S
                while self.run(connection.fetchval(_OLDER_READS, server_time)):
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(_OLDER_READS_POLL_S)
            finally:
                self.release(connection)
        return True

    def define(self, statements: Sequence[str]) -> None:
        """Run statements that create or change tables as the owner. Blocks.

        Raises:
            ConfigError: ``owner_url`` is empty.
        """
        if not self._owner_url:
            raise ConfigError(
                "postgresql.owner_url: is needed to make tables; "
                "set it to the URL of the role that owns them"
            )
        with self.mapping_errors():
            self.run(self._as_owner(statements))

    @contextlib.contextmanager
    def mapping_errors(self) -> Generator[None]:
        """Raise asyncpg's errors inside the block as ``PPSError`` (see ``explain``)."""
        try:
            yield
        except PPSError:
            raise
        except library_errors() as error:
            raise self.explain(error) from error

    def explain(self, error: Exception) -> BaseException:
        """Return the ``PPSError`` for an error of asyncpg; its text contains no stored value."""
        asyncpg = _library()
        state = getattr(error, "sqlstate", None) or ""
        if isinstance(error, PPSError):
            return error
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            if "row-level security" in str(error.args[:1]):
                return IsolationError(f"{self.name} refused a row of another entity")
            return StoreUnavailable(
                f"{self.name}: the role lacks a right that PPS needs: check it with `pps doctor`"
            )
        if state in ("55P03", "40P01", "40001", "57014"):
            return StoreConflict(f"{self.name}: another process writes this entity: try again")
        if state in ("22021", "22P05"):
            return InvalidRequest("text", _NUL)
        if isinstance(error, asyncpg.DataError | OverflowError):
            return InvalidRequest("value", "is of another type, or a number of more than 64 bits")
        if state[:2] in ("08", "53", "57", "28", "3D") or not isinstance(
            error, asyncpg.PostgresError
        ):
            reason = f" (SQLSTATE {state})" if state else f" ({type(error).__name__})"
            return StoreUnavailable(
                f"{self.name} cannot be used{reason}: "
                "check the server and postgresql.url, then try again"
            )
        return StoreError(
            f"{self.name}: {type(error).__name__} ({state}): "
            "this is a defect of PPS, please report it"
        )

    async def _open(self) -> None:
        asyncpg = _library()
        try:
            pool: _Pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=_MOST_CONNECTIONS,
                timeout=_CONNECT_S,
                command_timeout=_STATEMENT_S,
                statement_cache_size=1_024,
                max_cached_statement_lifetime=0,
                server_settings=_SERVER_SETTINGS,
                init=_read_numbers,
            )
        except (asyncpg.ClientConfigurationError, ValueError):
            raise _invalid_url("postgresql.url") from None
        self._pool = pool
        connection = await self._acquire(pool)
        try:
            version = connection.get_server_version().major
            if version < OLDEST_SERVER:
                raise ConfigError(
                    f"{self.name}: is version {version}; PPS needs {OLDEST_SERVER} or later"
                )
            role = str(await connection.fetchval("SELECT current_user"))
            await self._migrate(connection, role)
            await self._check_role(connection, role)
        finally:
            await pool.release(connection)

    async def _migrate(self, connection: Session, role: str) -> None:
        """Create or upgrade the tables in one transaction."""
        version = await _schema_version(connection)
        newest = len(MIGRATIONS)
        if version == newest:
            return
        if version > newest:
            raise StoreError(
                f"{self.name} was made by a newer PPS "
                f"(schema {version}, this one knows {newest}): upgrade pps"
            )
        if not self._owner_url:
            action = "upgrade" if version else "make"
            raise ConfigError(
                f"postgresql.owner_url: is needed to {action} the tables of {self.name}; "
                "set it to the URL of the role that owns them"
            )
        await self._as_owner(
            ["BEGIN", f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"],
            then=lambda owner: _upgrade(owner, role, MIGRATIONS),
        )

    async def _check_role(self, connection: Session, role: str) -> None:
        """Raise ConfigError unless row-level security is forced and applies to the role."""
        bypasses = await connection.fetchval(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        owned = await connection.fetchval(
            "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relkind = 'r' "
            "AND pg_has_role(current_user, c.relowner, 'MEMBER')",
            SCHEMA,
        )
        if bypasses or owned:
            raise ConfigError(
                f"postgresql.url: the role {role} is a superuser, has BYPASSRLS, "
                "or owns the tables (or belongs to their owner): "
                "row-level security would not bind it; use a role of its own"
            )
        unguarded = await unguarded_tables(connection)
        if unguarded:
            raise ConfigError(
                f"{self.name}: row-level security is not forced on {', '.join(unguarded)}; "
                "nothing was read"
            )

    async def _as_owner(
        self,
        statements: Sequence[str],
        then: Callable[[Session], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Run statements, then ``then``, on a new connection of the owner."""
        asyncpg = _library()
        owner: Session = await asyncpg.connect(
            self._owner_url,
            timeout=_CONNECT_S,
            command_timeout=_STATEMENT_S,
            server_settings={**_SERVER_SETTINGS, "lock_timeout": f"{LOCK_WAIT_S}s"},
        )
        try:
            for statement in statements:
                await owner.execute(statement)
            if then is not None:
                await then(owner)
        finally:
            await owner.close()

    async def _acquire(self, pool: _Pool) -> Session:
        return await pool.acquire(timeout=LOCK_WAIT_S)


_COLUMN_TYPES: Final[Mapping[ColumnType, str]] = {
    "text": 'TEXT COLLATE "C"',
    "integer": "BIGINT",
    "real": "DOUBLE PRECISION",
}
_SERVER_SETTINGS: Final = {
    "search_path": SCHEMA,
    "application_name": "pps",
    "jit": "off",
    "idle_in_transaction_session_timeout": "600000",
}


_WITH_REFERRING: Final = """
    WITH RECURSIVE touched (relation) AS (
        SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])
        UNION
        SELECT k.conrelid FROM pg_constraint k JOIN touched ON k.confrelid = touched.relation
            WHERE k.contype = 'f' AND k.confdeltype = 'c'
    )
    SELECT relname FROM pg_class WHERE oid IN (SELECT relation FROM touched) ORDER BY relname"""
"""The named tables, and those that reference them with ``ON DELETE CASCADE``."""


async def _read_numbers(connection: Any) -> None:
    """Decode ``numeric``, the type of PostgreSQL's sums of integers, as int where it is whole.

    SQLite returns such sums as integers.
    """
    await connection.set_type_codec(
        "numeric", schema="pg_catalog", encoder=str, decoder=_number, format="text"
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _check_url(setting: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("postgresql", "postgres") and len(parts.path) > 1
        _ = parts.port
    except ValueError:
        is_url = False
    if not is_url:
        raise _invalid_url(setting)


def _invalid_url(setting: str) -> ConfigError:
    """Return the error for an invalid URL, without the URL: it may contain a password."""
    return ConfigError(f"{setting}: must be postgresql://USER:PASSWORD@HOST/DATABASE")


def library_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of asyncpg, and those of the network that it lets through."""
    asyncpg = _library()
    return (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
        TimeoutError,
        OverflowError,
    )


async def unguarded_tables(connection: Session) -> list[str]:
    """Return the tables of PPS without forced row-level security or without exactly our policy."""
    rows = await connection.fetch(
        """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_policies p ON p.schemaname = n.nspname AND p.tablename = c.relname
            WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_version'
            GROUP BY c.relname, c.relrowsecurity, c.relforcerowsecurity
            HAVING NOT c.relrowsecurity OR NOT c.relforcerowsecurity OR count(p.policyname) <> 1
                OR bool_or(p.qual NOT LIKE '%current_setting(''pps.grp''%' OR p.with_check IS NULL)
            ORDER BY c.relname""",
        SCHEMA,
    )
    return [row[0] for row in rows]


def delete_all(connection: Connection) -> list[str]:
    """Delete the group's rows from every table; return the names of the tables.

    The transaction's changes of the graph are not logged for the published graph.
    """
    connection.execute("SELECT set_config('pps.logs_graph', '', true)").fetchall()
    tables = tables_of(connection)
    for table in tables:
        connection.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608 - names of the catalogue
    return tables


def tables_of(connection: Connection) -> list[str]:
    """Return the names of all tables with rows of entities, sorted, with those of features."""
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = ? "
        "AND tablename <> 'schema_version' ORDER BY tablename",
        (SCHEMA,),
    )
    return [table for (table,) in rows]


async def _schema_version(connection: Session) -> int:
    existing = await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.schema_version")
    if existing is None:
        return 0
    latest = f"SELECT max(version) FROM {SCHEMA}.schema_version"  # noqa: S608 - a constant
    version = await connection.fetchval(latest)
    return int(version or 0)


async def _upgrade(owner: Session, role: str, migrations: Migrations) -> None:
    """Apply missing migrations, force row-level security, grant rights to the role, and commit.

    Runs in the owner's open transaction.
    """
    version = await _schema_version(owner)  # again: another process may have upgraded meanwhile
    if version == 0:
        await owner.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await owner.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)"
        )
    for number, statements in enumerate(migrations[version:], version + 1):
        for statement in statements:
            await owner.execute(statement)
        await owner.execute("INSERT INTO schema_version VALUES ($1)", number)
    tables = await owner.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename <> 'schema_version'",
        SCHEMA,
    )
    for (table,) in tables:
        for statement in guard_statements(table):
            await owner.execute(statement)
    quoted = _quoted(role)
    await owner.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted}")
    await owner.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {quoted}"
    )
    await owner.execute(f"REVOKE INSERT, UPDATE, DELETE ON schema_version FROM {quoted}")
    await owner.execute(
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {SCHEMA} "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {quoted}"
    )
    await owner.execute("COMMIT")


def guard_statements(table: str, column: str = "grp") -> list[str]:
    """Return the statements that restrict a table to rows of the transaction's group.

    Row-level security is forced, so the policy applies to the owner too.
    """
    name = _quoted(table)
    is_own_row = f"{column} = current_setting('pps.grp', true)"
    return [
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS own_group ON {name}",
        f"CREATE POLICY own_group ON {name} USING ({is_own_row}) WITH CHECK ({is_own_row})",
    ]


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


class PostgresCursor:
    """A ``Cursor`` over rows that were fetched completely."""

    def __init__(self, rows: list[tuple[Any, ...]], names: Sequence[str], rowcount: int) -> None:
        self._rows = iter(rows)
        self.description = [(name,) for name in names]
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class PostgresConnection:
    """A ``Connection`` for one transaction of one group.

    Attributes:
        touched: Tables with rows that the transaction deleted or updated.
    """

    def __init__(self, database: Database, connection: Session, group: str) -> None:
        self._database = database
        self._connection = connection
        self.group = check_group(group)
        self.touched: set[str] = set()

    def begin_reading(self) -> None:
        """Begin a read-only transaction on one snapshot."""
        self._run_plain(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SELECT set_config('pps.grp', '{self.group}', true)"
        )

    def begin_writing(self) -> None:
        """Begin a READ COMMITTED transaction and wait for the entity's advisory lock.

        If the entity's graph is published, triggers log each changed row of the graph (since
        schema version 2).
        """
        self._run_plain(  # the group was checked, everything else is a constant
            f"BEGIN; SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'; "
            f"SELECT set_config('pps.grp', '{self.group}', true); "
            f"SELECT pg_advisory_xact_lock(hashtextextended('pps {self.group}', 0)); "
            f"SELECT set_config('pps.logs_graph', {_LOGS_GRAPH}, true)"
        )

    def commit(self) -> None:
        self._run_plain("COMMIT")

    def roll_back(self) -> None:
        if self.is_open():
            self._run_plain("ROLLBACK")

    def is_open(self) -> bool:
        """Return whether the connection is alive and inside a transaction."""
        return not self._connection.is_closed() and self._connection.is_in_transaction()

    def execute(
        self, statement: str, values: Sequence[Value] | Mapping[str, Value] = (), /
    ) -> Cursor:
        """Run a statement written for SQLite; see ``Connection``."""
        translation = translated(statement)
        if translation.table and not statement.startswith("INSERT"):
            self.touched.add(translation.table)
        return self._database.run(self._execute(translation, translation.arguments(values)))

    def executemany(
        self, statement: str, rows: Iterable[Sequence[Value] | Mapping[str, Value]], /
    ) -> Cursor:
        """Run a statement that returns no rows once for each row of values."""
        translation = translated(statement)
        arguments = [translation.arguments(row) for row in rows]
        if translation.table and not statement.startswith("INSERT"):
            self.touched.add(translation.table)
        if arguments:
            self._database.run(self._connection.executemany(translation.text, arguments))
        return PostgresCursor([], (), len(arguments))

    async def _execute(self, statement: Statement, arguments: Sequence[Any]) -> PostgresCursor:
        if not statement.has_rows:
            status = await self._connection.execute(statement.text, *arguments)
            count = re.search(r" (\d+)$", status)
            return PostgresCursor([], (), int(count[1]) if count else -1)
        records = await self._connection.fetch(statement.text, *arguments)
        names = list(records[0].keys()) if records else []
        return PostgresCursor([tuple(record) for record in records], names, len(records))

    def have_feature_table(self, name: str, columns: Mapping[str, ColumnType]) -> None:
        """Create a feature's table, or add its missing columns.

        All entities of the database share the table. The owner creates it in a separate
        transaction: an empty table does no harm if this one is rolled back.
        """
        rows = self.execute(
            "SELECT attname FROM pg_attribute "
            "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped",
            (f"{SCHEMA}.{name}",),
        )
        existing = {column for (column,) in rows}
        statements: list[str] = []
        if not existing:
            statements = [
                f"""CREATE TABLE IF NOT EXISTS {_quoted(name)} (
                    group_id TEXT COLLATE "C" NOT NULL DEFAULT current_setting('pps.grp'),
                    id TEXT COLLATE "C" NOT NULL, PRIMARY KEY (group_id, id))""",
                *guard_statements(name, "group_id"),
            ]
        statements += [
            f"ALTER TABLE {_quoted(name)} "
            f"ADD COLUMN IF NOT EXISTS {_quoted(column)} {_COLUMN_TYPES[type_]}"
            for column, type_ in columns.items()
            if column not in existing
        ]
        if statements:
            self._database.define(["BEGIN", *statements, "COMMIT"])

    def _run_plain(self, statements: str) -> None:
        self._database.run(self._connection.execute(statements))


class PostgresReaders(Readers):
    """Reads one group's rows, each read in a transaction of its own."""

    def __init__(self, database: Database, group: str, writer: Writer) -> None:
        super().__init__(writer)
        self._database = database
        self._group = group
        self._closed = False

    async def _read(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"{self._database.name} is closed: open the memory again")
        return await asyncio.get_running_loop().run_in_executor(
            self._database.threads, self._database.read, self._group, work
        )

    async def _look_up(self, work: Work[T], rows: int) -> T:
        return await self._read(work)  # a round trip to the server: always in a thread

    async def _mark(self) -> int:
        counted = "SELECT value FROM counter WHERE name = 'commits'"
        row = await self._read(lambda db: db.execute(counted).fetchone())
        return 0 if row is None else row[0]

    def close(self) -> None:
        self._closed = True


def _clear_vacuum_due(db: Connection) -> None:
    db.execute("DELETE FROM meta WHERE key = ?", (_VACUUM_DUE,))


class PostgresWriter(Writer):
    """Writes one group's rows; vacuums the touched tables after secure writes."""

    def __init__(self, database: Database, group: str) -> None:
        self._database = database
        self._group = group
        self._open: PostgresConnection | None = None
        self._raw: Session | None = None
        self.errors = library_errors()
        with database.mapping_errors():
            due = database.read(group, partial(meta.get, key=_VACUUM_DUE))
        self._vacuum_due: set[str] = {*(due or "").split()}
        self._not_before = 0.0
        super().__init__(database.name)

    def _begin(self) -> Connection:
        self._raw = self._database.acquire()
        self._open = PostgresConnection(self._database, self._raw, self._group)
        self._open.begin_writing()
        return self._open

    def _commit(self, *, secure: bool) -> None:
        if self._open is None:
            return
        due = self._vacuum_due | self._open.touched if secure else set[str]()
        if secure:
            self._open.execute(meta.PUT, (_VACUUM_DUE, " ".join(sorted(due))))
        self._open.execute(
            "INSERT INTO counter (name, value) VALUES ('commits', 1) "
            "ON CONFLICT (name) DO UPDATE SET value = counter.value + 1"
        )
        self._open.commit()
        self._vacuum_due |= due

    def _roll_back(self) -> None:
        connection = self._open
        raw = self._raw
        self._open = None
        self._raw = None
        if connection is None or raw is None:
            return
        with contextlib.suppress(*library_errors()):
            connection.roll_back()
        self._database.release(raw)

    def _is_open(self) -> bool:
        return self._open is not None and self._open.is_open()

    def _explain(self, error: Exception) -> BaseException:
        mapped = self._database.explain(error)
        mapped.__cause__ = error
        return mapped

    def _tidy(self, *, deleted: bool) -> None:
        if deleted:
            self._vacuum()

    def _patience_s(self) -> float | None:
        return max(0.1, self._not_before - time.monotonic()) if self._vacuum_due else None

    def _idle(self) -> None:
        if self._vacuum_due and time.monotonic() >= self._not_before:
            self._vacuum()

    def _end(self) -> None:
        if self._vacuum_due:
            self._vacuum()

    def _vacuum(self) -> None:
        """Vacuum the tables of secure writes, so that deleted rows are removed from their pages.

        If that fails, or an older transaction may still see the rows, it is tried again after
        ``_VACUUM_RETRY_S``, and after a restart.
        """
        try:
            older_reads_ended = self._database.wait_for_older_reads()
            vacuumed = self._database.vacuum(self._vacuum_due)
            if vacuumed and not older_reads_ended:
                self._not_before = time.monotonic() + _VACUUM_RETRY_S
                return
            if vacuumed:
                self._database.write(self._group, _clear_vacuum_due)
        except PPSError:
            self._not_before = time.monotonic() + _VACUUM_RETRY_S
            _log.warning("%s could not be vacuumed yet; it will be tried again", self._name)
            return
        self._vacuum_due = set()
