"""PostgreSQL with many entities' rows in the same tables: row-level security, the pool, the lock, and what shows both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pps.config import Settings
from pps.core.errors import ConfigError, IsolationError, PPSError, StoreError
from pps.core.ids import new_group
from pps.core.sql import Connection
from pps.core.time import now
from pps.core.values import Fact, Node
from pps.journal import postgresql
from pps.journal.entries import JobPayload, NodeDraft, TurnDraft
from pps.journal.journal import Journal
from pps.journal.postgresql import MIGRATIONS, Database, database_of
from pps.journal.postgresql_statements import Statement, translated
from pps.proof.arena import Arena
from pps.proof.verify import attack, throw_away, verify
from pps.store.graph_tables import GraphTables
from pps.store.sql_graph import GRAPH_TABLES, SqlGraphStore
from tests.postgresql_server import PostgresqlServer
from tests.sampling import sized
from tests.waiting import wait_until

pytestmark = [pytest.mark.postgresql, pytest.mark.timeout(300)]

_WRITER = Path(__file__).parent / "postgresql_writer.py"


@pytest.fixture
async def database(postgresql_server: PostgresqlServer) -> AsyncIterator[Database]:
    opened = await asyncio.to_thread(database_of, postgresql_server.settings)
    yield opened
    await asyncio.to_thread(opened.close)


@pytest.fixture
async def pair(database: Database, tmp_path: Path) -> AsyncIterator[tuple[Journal, Journal]]:
    """Two memories, each with a turn, two nodes and a fact of its own."""
    opened = [
        await Journal.open_in(database, tmp_path / name / "memory.db", new_group())
        for name in ("ana", "ben")
    ]
    for number, journal in enumerate(opened):
        payload = JobPayload(nodes=(NodeDraft("Rome"),))
        await journal.append(TurnDraft(f"word{number} of mine", tags=("home",)), payload)
        await journal.set_meta("fingerprint", f"word{number}")
        nodes = [
            Node(f"{number}0000000-0000-5000-8000-00000000000{n}", f"word{number}", now())
            for n in (1, 2)
        ]
        fact = Fact(
            f"{number}0000000-0000-5000-8000-000000000003",
            nodes[0].uuid,
            nodes[1].uuid,
            "KNOWS",
            f"word{number}",
            now(),
        )
        store = SqlGraphStore(GraphTables(journal))
        await store.save_nodes(nodes, {})
        await store.save_facts([fact], {})
    ana, ben = opened
    yield ana, ben
    for journal in opened:
        await journal.close()


def tables_of(database: Database, group: str) -> list[str]:
    rows = database.read(
        group,
        lambda db: db.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'pps' AND tablename <> 'schema_version'"
        ).fetchall(),
    )
    return sorted(table for (table,) in rows)


async def test_a_statement_without_the_group_reads_and_changes_own_rows_alone(
    database: Database, pair: tuple[Journal, Journal]
) -> None:
    ana, ben = pair

    def every_row(db: Connection) -> dict[str, list[str]]:
        return {
            table: [str(row) for row in db.execute(f'SELECT * FROM "{table}"').fetchall()]  # noqa: S608
            for table in tables_of(database, ana.group)
        }

    rows = await ana.read(every_row)
    assert rows["turns"]
    assert rows["fact"]
    assert all(ana.group in row for table in rows.values() for row in table)
    assert not any(ben.group in row or "word1" in row for table in rows.values() for row in table)
    before = await ben.read(every_row)
    assert await ana.write(lambda db: db.execute("UPDATE turns SET content = 'x'").rowcount) == 1
    assert await ana.write(lambda db: db.execute("DELETE FROM fact").rowcount) == 1
    deleted = "DELETE FROM node WHERE grp = ?"
    assert await ana.write(lambda db: db.execute(deleted, (ben.group,)).rowcount) == 0
    assert await ben.read(every_row) == before


@pytest.mark.parametrize("table", GRAPH_TABLES)
async def test_no_statement_of_the_graph_needs_its_group_to_stay_inside(
    pair: tuple[Journal, Journal], table: str
) -> None:
    """The second lock alone holds: what the WHERE of a statement says of the group is taken out."""
    ana, ben = pair
    (seen,) = await ana.read(lambda db: db.execute(f"SELECT count(*) FROM {table}").fetchone())  # noqa: S608
    named = f"SELECT count(*) FROM {table} WHERE grp = ?"  # noqa: S608
    (own,) = await ana.read(lambda db: db.execute(named, (ana.group,)).fetchone())
    assert seen == own
    assert await ana.read(lambda db: db.execute(named, (ben.group,)).fetchone()) == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO turn_links (grp, folded, turn) VALUES (?, 'x', 'y')",
        "INSERT INTO meta (grp, key, value) VALUES (?, 'fingerprint', 'x')",
        "INSERT INTO node (grp, uuid, name, kind, labels, summary, aliases, tags, attributes, created_at, source, status) "
        "VALUES (?, 'n', 'n', '', '[]', '', '[]', '[]', '{}', 0, '', '')",
        "UPDATE turns SET grp = ?",
        "UPDATE node SET grp = ?",
        "INSERT INTO meta (grp, key, value) VALUES (?, 'fingerprint', 'x') ON CONFLICT (grp, key) DO UPDATE SET value = 'x'",
    ],
)
async def test_no_row_of_another_group_is_written(
    pair: tuple[Journal, Journal], statement: str
) -> None:
    ana, ben = pair
    with pytest.raises((IsolationError, StoreError)):
        await ana.write(lambda db: db.execute(statement, (ben.group,)))
    assert await ben.get_meta("fingerprint") == "word1"
    assert await ana.count_turns() == await ben.count_turns() == 1


async def test_an_edge_to_a_node_of_another_group_is_impossible(
    pair: tuple[Journal, Journal], postgresql_server: PostgresqlServer
) -> None:
    ana, ben = pair
    mine = "00000000-0000-5000-8000-000000000001"
    theirs = "10000000-0000-5000-8000-000000000001"
    assert await SqlGraphStore(GraphTables(ben)).nodes([theirs])
    crossing = Fact("a0000000-0000-5000-8000-000000000009", mine, theirs, "KNOWS", "x", now())
    with pytest.raises(PPSError):
        await SqlGraphStore(GraphTables(ana)).save_facts([crossing], {})
    columns = "grp, uuid, subject, object, relation, text, kind, attributes, created_at, valid_precision, invalid_precision"
    import asyncpg

    with pytest.raises(asyncpg.ForeignKeyViolationError):  # also past row-level security
        await postgresql_server.as_superuser_async(
            f"INSERT INTO fact ({columns}) VALUES ('{ana.group}', 'x', '{mine}', '{theirs}', 'R', '', 'fact', '{{}}', 0, "  # noqa: S608
            "'', '') RETURNING 1"
        )


async def test_without_a_group_nothing_is_seen_and_nothing_can_be_written(
    pair: tuple[Journal, Journal], postgresql_server: PostgresqlServer, database: Database
) -> None:
    import asyncpg

    connection = await asyncpg.connect(postgresql_server.url)
    try:
        await connection.execute("SET search_path = pps")
        for table in tables_of(database, pair[0].group):
            assert await connection.fetchval(f'SELECT count(*) FROM "{table}"') == 0, table  # noqa: S608
        for statement in ("DELETE FROM turns", "UPDATE node SET name = 'x'"):
            assert (await connection.execute(statement)).endswith(" 0")
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute("INSERT INTO meta (key, value) VALUES ('a', 'b')")
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute(
                "INSERT INTO meta (grp, key, value) VALUES ($1, 'a', 'b')", pair[0].group
            )
    finally:
        await connection.close()


async def test_row_level_security_is_forced_on_every_table_for_a_role_that_owns_nothing(
    pair: tuple[Journal, Journal], postgresql_server: PostgresqlServer
) -> None:
    tables = await postgresql_server.as_superuser_async(
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner), "
        "(SELECT count(*) FROM pg_policies p WHERE p.schemaname = 'pps' AND p.tablename = c.relname) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'pps' AND c.relkind IN ('r', 'p')"
    )
    guarded = [row for row in tables if row[0] != "schema_version"]
    assert len(guarded) > 40
    assert all(row[1:] == [True, True, "pps_owner", 1] for row in guarded)
    [role] = await postgresql_server.as_superuser_async(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = 'pps'"
    )
    assert role == [False, False, False, False]
    assert await postgresql_server.as_superuser_async(
        "SELECT max(version) FROM schema_version"
    ) == [[len(MIGRATIONS)]]


async def test_roles_that_row_level_security_does_not_bind_are_refused(
    postgresql_server: PostgresqlServer, database: Database
) -> None:
    for url in (postgresql_server.superuser_url, postgresql_server.owner_url):
        with pytest.raises(ConfigError, match="row-level security would not bind it"):
            await asyncio.to_thread(Database.open, url, postgresql_server.owner_url)


def test_tables_that_are_not_guarded_are_refused(postgresql_server: PostgresqlServer) -> None:
    server = postgresql_server.with_database("unguarded")
    database_of(server.settings).close()
    for statement in (
        "ALTER TABLE turns NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE turns DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_group ON turns",
        "CREATE POLICY everybody ON turns USING (true)",
    ):
        server.as_superuser(statement, "SELECT 1")
        with pytest.raises(ConfigError, match="row-level security is not forced on turns"):
            database_of(server.settings)


_GROUP_CONDITION = re.compile(r"\b(?:\w+\.)?(?:grp|group_id) = (:\w+|\?)")


async def test_with_the_group_taken_out_of_every_statement_no_attack_gets_through(
    postgresql_server: PostgresqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row-level security alone holds: what each statement of PPS says of the group is replaced by what is always true."""
    without_group = 0

    def translated_without_group(statement: str) -> Statement:
        nonlocal without_group
        text, count = _GROUP_CONDITION.subn(r"CAST(\1 AS TEXT) IS NOT NULL", statement)
        without_group += bool(count)
        return translated(text)

    settings = Settings(
        home=tmp_path / "home", store="postgresql", postgresql=postgresql_server.settings
    )
    async with throw_away(settings) as (folder, store), Arena.open(folder, store) as arena:
        monkeypatch.setattr(postgresql, "translated", translated_without_group)
        report = await attack(arena, operations=sized(300, 3_000), seed=39)
    assert without_group > report.total
    assert (report.leaks, report.told_apart, report.broken) == ((), (), ())


async def test_with_row_level_security_off_the_suite_reports_leaks(
    postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    """The suite sees what row-level security keeps from happening: without it, entities' rows mix."""
    server = await asyncio.to_thread(postgresql_server.with_database, "without_rls")
    settings = Settings(home=tmp_path / "home", store="postgresql", postgresql=server.settings)
    async with (
        throw_away(settings) as (folder, store),
        Arena.open(folder, store) as arena,
    ):
        report = await attack(arena, operations=300, seed=3)
        assert report.ok
        tables = await server.as_superuser_async(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'pps'"
        )
        await server.as_superuser_async(
            *[f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY' for (table,) in tables],
            "SELECT 1",
        )
        report = await attack(arena, operations=600, seed=3)
        assert report.leaks
        assert not report.ok


async def test_no_attack_gets_through(postgresql_server: PostgresqlServer, tmp_path: Path) -> None:
    wanted = sized(900, 3_000)
    settings = Settings(
        home=tmp_path / "home", store="postgresql", postgresql=postgresql_server.settings
    )
    report = await verify(settings, operations=wanted, seed=20)
    assert (report.leaks, report.told_apart, report.broken) == ((), (), ())
    assert (report.total, report.store) == (wanted, "postgresql")


def _sleep(db: Connection) -> None:
    db.execute("SELECT pg_sleep(0.05)").fetchall()


def _divide(db: Connection) -> None:
    db.execute("SELECT 1 / 0").fetchall()


def _raise(db: Connection) -> None:
    raise ValueError("stop")


@pytest.mark.parametrize("work", [_sleep, _divide, _raise])
async def test_a_connection_of_the_pool_never_carries_a_group_over(
    database: Database, pair: tuple[Journal, Journal], work: Callable[[Connection], None]
) -> None:
    for journal in pair:
        for run in (journal.read, journal.write):
            with contextlib.suppress(PPSError, ValueError):
                await run(work)
    taken = [database.acquire() for _ in range(3)]
    try:
        for connection in taken:
            row = database.run(
                connection.fetch("SELECT current_setting('pps.grp', true), count(*) FROM pps.turns")
            )[0]
            assert not row[0]
            assert row[1] == 0
            assert not connection.is_in_transaction()
            locks = database.run(
                connection.fetch(
                    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
                )
            )
            assert locks == []
    finally:
        for connection in taken:
            database.release(connection)


async def test_sums_and_averages_are_numbers_as_a_file_has_them(
    pair: tuple[Journal, Journal],
) -> None:
    row = await pair[0].read(
        lambda db: db.execute(
            "SELECT sum(n), avg(n), sum(n) * 0.5 FROM (VALUES (CAST(1 AS BIGINT)), (2)) AS v (n)"
        ).fetchone()
    )
    assert [(type(value), value) for value in row] == [(int, 3), (float, 1.5), (float, 1.5)]


async def test_a_transaction_given_back_open_is_closed(
    database: Database, pair: tuple[Journal, Journal]
) -> None:
    connection = database.acquire()
    database.run(connection.execute("BEGIN"))
    database.run(connection.execute(f"SELECT set_config('pps.grp', '{pair[0].group}', true)"))
    database.release(connection)
    for _ in range(4):
        again = database.acquire()
        assert database.run(again.fetchval("SELECT count(*) FROM pps.turns")) == 0
        database.release(again)


async def _run_writer(server: PostgresqlServer, group: str, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "URL": server.url, "OWNER_URL": server.owner_url}
    return await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, str(_WRITER), group, *words],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_two_processes_that_write_one_entity_double_nothing(
    database: Database, postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    group = new_group()
    journal = await Journal.open_in(database, tmp_path / "memory.db", group)
    writers = [await _run_writer(postgresql_server, group, "names", "120") for _ in range(2)]
    for writer in writers:
        output, _ = await asyncio.to_thread(writer.communicate)
        assert writer.returncode == 0, output
    turns = await journal.scan(0, 1_000)
    assert len({turn.source_ref for turn in turns}) == len(turns) == 120
    assert [turn.seq for turn in turns] == list(range(1, 121))
    names = await journal.read(lambda db: db.execute("SELECT name FROM node").fetchall())
    assert len(names) == len(set(names)) == 40
    await journal.close()


async def test_a_writer_that_is_killed_under_the_lock_leaves_nothing_and_holds_nobody_up(
    database: Database, postgresql_server: PostgresqlServer, tmp_path: Path
) -> None:
    group = new_group()
    journal = await Journal.open_in(database, tmp_path / "memory.db", group)
    kept = (await journal.append(TurnDraft("kept"))).turn
    for _ in range(sized(3, 20)):
        writer = await _run_writer(postgresql_server, group, "hang")
        assert writer.stdout is not None
        assert (await asyncio.to_thread(writer.stdout.readline)).strip() == "written"

        def waiting() -> bool:
            rows = postgresql_server.as_superuser(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
            return bool(rows[0][0])

        blocked = asyncio.create_task(journal.append(TurnDraft("after the kill")))
        await asyncio.to_thread(wait_until, waiting)
        writer.send_signal(signal.SIGKILL)
        await asyncio.to_thread(writer.communicate)
        await blocked
    texts = [turn.content for turn in await journal.scan(0, 100)]
    assert texts[0] == kept.content
    assert "never acknowledged" not in texts
    assert set(texts) == {"kept", "after the kill"}
    await journal.close()
