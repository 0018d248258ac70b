"""A graph that an earlier PPS left in a file of its own moves into ``memory.db``, whole or not at all."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pps.core.errors import ConfigError, IsolationError, StoreError, StoreUnavailable
from pps.core.time import micros
from pps.journal import old_graph
from pps.journal.db import MIGRATIONS
from pps.store import graph_upgrade
from tests.integration.upgrade.old_graphs import (
    AT,
    GRAPH_ROWS,
    GROUP,
    WORD,
    LadybugFile,
    an_id,
    make_ladybug_graph,
    make_memory,
    make_sql_graph,
    tables_of,
)


def upgrade(data: Path, group: str = GROUP) -> graph_upgrade.Upgraded | None:
    return graph_upgrade.upgrade(data, group, "ana", lambda *_: None)


def version(memory: Path) -> int:
    with closing(sqlite3.connect(memory)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def whole(memory: Path) -> bool:
    with closing(sqlite3.connect(memory)) as db:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)] and not (
            db.execute("PRAGMA foreign_key_check").fetchall()
        )


def names(data: Path) -> list[str]:
    return sorted(file.name for file in data.iterdir())


def contents(data: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(data)): file.read_bytes() for file in data.rglob("*") if file.is_file()
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    make_ladybug_graph(tmp_path / "data")
    return tmp_path / "data"


def test_everything_of_the_graph_is_in_the_tables(data: Path) -> None:
    done = upgrade(data)
    assert done is not None
    assert (done.source, done.rows, done.left_out) == ("graph.lbug", GRAPH_ROWS, 0)
    rows = tables_of(data / "memory.db")
    assert {table: len(some) for table, some in rows.items()} == GRAPH_ROWS
    ada, bob, first, second = map(an_id, ("Ada", "Bob", "first", "second"))
    node = next(row for row in rows["node"] if row[0] == ada)
    assert node[:11] == (
        *(ada, GROUP, "Ada", "Person", '["Entity", "Person"]', f"Ada {WORD}", '["Lady Ada"]'),
        *('["math"]', '{"born":1815}', '{"mood":"calm"}', micros(AT)),
    )
    fact = next(row for row in rows["fact"] if row[0] == an_id("knows"))
    assert fact[:16] == (
        *(an_id("knows"), GROUP, ada, bob, "knows", f"knows {WORD}", "fact", '{"by":"hand"}'),
        *('{"strength":3}', micros(AT), micros(datetime(2024, 5, 1, tzinfo=UTC)), "month"),
        *(micros(AT), "instant", micros(AT), micros(AT)),
    )
    unnamed = next(row for row in rows["fact"] if row[0] == an_id("likes"))
    assert unnamed[2:4] == (bob, bob)
    assert [row[3] for row in sorted(rows["support"], key=lambda row: row[1])] == [second, first]
    by_pipeline = next(row for row in rows["mention"] if row[0] == first)
    assert by_pipeline[3] == an_id("mention of the pipeline")
    assert rows["saga"][0][4] == first
    assert whole(data / "memory.db")


def test_the_file_with_its_log_lies_in_a_private_copy_alone(data: Path) -> None:
    before = {name: (data / name).read_bytes() for name in ("graph.lbug", "graph.lbug.wal")}
    done = upgrade(data)
    assert done is not None
    assert done.copy is not None
    assert names(data) == [done.copy.name, "memory.db"]
    assert names(done.copy) == ["graph.lbug", "graph.lbug.wal", "memory.db"]
    assert {name: (done.copy / name).read_bytes() for name in before} == before
    assert done.copy.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in done.copy.iterdir()} == {0o600}
    assert version(done.copy / "memory.db") == 22
    assert version(data / "memory.db") == len(MIGRATIONS)
    assert upgrade(data) is None


def test_what_lies_in_the_copy_is_the_memory_as_it_was(data: Path, tmp_path: Path) -> None:
    """To go back: the files of the copy in the place of ``memory.db``."""
    done = upgrade(data)
    assert done is not None
    assert done.copy is not None
    stored = tables_of(data / "memory.db")
    back = tmp_path / "back"
    shutil.copytree(done.copy, back)
    again = upgrade(back)
    assert again is not None
    assert again.rows == done.rows
    assert tables_of(back / "memory.db") == stored


def test_a_dry_run_counts_the_same_and_changes_nothing(data: Path) -> None:
    before = contents(data)
    planned = graph_upgrade.plan(data, GROUP, "ana", lambda *_: None)
    assert planned is not None
    assert contents(data) == before
    done = upgrade(data)
    assert done is not None
    assert (planned.rows, planned.left_out) == (done.rows, done.left_out)
    assert planned.copy is None


def test_a_graph_in_sql_tables_of_its_own_moves_the_same_way(data: Path, tmp_path: Path) -> None:
    upgrade(data)
    other = tmp_path / "other"
    make_sql_graph(other, data / "memory.db")
    done = upgrade(other)
    assert done is not None
    assert (done.source, done.rows) == ("graph.db", GRAPH_ROWS)
    assert done.copy is not None
    assert names(other) == [done.copy.name, "memory.db"]
    assert names(done.copy) == ["graph.db", "memory.db"]
    assert tables_of(other / "memory.db") == tables_of(data / "memory.db")


def test_the_graph_is_read_in_pages(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pps.store.ladybug_reader.ROWS_IN_A_PAGE", 1)
    told: list[tuple[str, int, int]] = []
    graph_upgrade.upgrade(data, GROUP, "ana", lambda *step: told.append(step))
    rows = tables_of(data / "memory.db")
    assert {table: len(some) for table, some in rows.items()} == GRAPH_ROWS
    assert [step for step in told if step[0] == "nodes"] == [("nodes", 1, 2), ("nodes", 2, 2)]


def test_the_end_of_a_log_that_was_cut_off_is_left_out_and_kept_in_the_copy(data: Path) -> None:
    log = data / "graph.lbug.wal"
    cut = log.read_bytes()[:-5]
    log.write_bytes(cut)
    done = upgrade(data)
    assert done is not None
    assert done.rows == {**{name: n for name, n in GRAPH_ROWS.items() if name != "episode_order"}}
    assert done.copy is not None
    assert (done.copy / log.name).read_bytes() == cut


def test_facts_of_nodes_that_are_gone_are_left_out_and_counted(tmp_path: Path) -> None:
    make_memory(tmp_path)
    with LadybugFile(tmp_path / "graph.lbug") as file:
        ada = file.node("Ada")
        file.fact("knows", ada, ada)
        file.fact("haunts", ada, an_id("nobody"))
    done = upgrade(tmp_path)
    assert done is not None
    assert (done.left_out, done.rows["fact"]) == (1, 1)
    mark = json.loads(_mark(tmp_path / "memory.db"))
    assert mark["left_out"] == 1


def _mark(memory: Path) -> str:
    with closing(sqlite3.connect(memory)) as db:
        return str(
            db.execute("SELECT value FROM meta WHERE key = ?", (old_graph.MARK,)).fetchone()[0]
        )


def test_columns_that_an_older_file_lacks_are_empty(data: Path) -> None:
    import ladybug

    database = ladybug.Database(data / "graph.lbug", buffer_pool_size=2**28, max_db_size=2**36)
    connection = ladybug.Connection(database)
    connection.execute("ALTER TABLE RelatesToNode_ DROP reference_time")
    connection.execute("DROP TABLE NEXT_EPISODE")
    connection.close()
    database.close()
    done = upgrade(data)
    assert done is not None
    assert done.rows == {name: n for name, n in GRAPH_ROWS.items() if name != "episode_order"}
    assert {row[15] for row in tables_of(data / "memory.db")["fact"]} == {None}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: (data / "graph.lbug").write_bytes(b"no graph" * 900), "pps rebuild ana"),
        (lambda data: (data / "graph.db").write_bytes(b"SQLite format 3\0"), "both lie"),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(data: Path, damage, said: str) -> None:
    damage(data)
    (data / "graph.lbug.wal").unlink()
    before = contents(data)
    with pytest.raises(StoreError, match=said):
        upgrade(data)
    assert contents(data) == before


def test_rows_that_are_not_what_was_read_change_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(data)
    put = graph_upgrade.put_facts

    def put_fewer(session, facts) -> None:
        put(session, facts[1:])

    monkeypatch.setattr(graph_upgrade, "put_facts", put_fewer)
    with pytest.raises(StoreError, match="2 rows of the table fact were read and 1 are stored"):
        upgrade(data)
    assert contents(data) == before


def test_a_text_that_changed_on_the_way_changes_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(data)

    def put_and_change(session, episodes) -> None:
        put(session, episodes)
        session.change("UPDATE episode SET content = 'other' WHERE grp = :grp")

    put = graph_upgrade.put_episodes
    monkeypatch.setattr(graph_upgrade, "put_episodes", put_and_change)
    with pytest.raises(StoreError, match="or they differ"):
        upgrade(data)
    assert contents(data) == before


def test_a_disk_without_room_changes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(data)
    usage = shutil.disk_usage(data)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**20))
    with pytest.raises(StoreUnavailable, match=r"needs .* MiB of free disk, and there are 1"):
        upgrade(data)
    assert contents(data) == before


def test_without_the_extra_it_is_refused_with_the_command(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(data)
    monkeypatch.setitem(sys.modules, "ladybug", None)
    with pytest.raises(ConfigError, match=r"pip install 'pps\[migrate\]'.*pps upgrade ana"):
        upgrade(data)
    assert contents(data) == before


def test_a_file_beside_a_graph_in_the_tables_is_not_read(data: Path, tmp_path: Path) -> None:
    """Somebody put it there: what it holds is older than what is stored, or another memory's."""
    done = upgrade(data)
    assert done is not None
    old_graph.drop_copies(data)
    stored = tables_of(data / "memory.db")
    make_ladybug_graph(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "graph.lbug", data)
    assert upgrade(data) is None
    assert tables_of(data / "memory.db") == stored
    assert (data / "graph.lbug").exists()


def test_another_groups_graph_is_refused_and_not_copied(tmp_path: Path) -> None:
    make_memory(tmp_path / "data")
    make_ladybug_graph(tmp_path / "other", "ent_" + "b" * 26)
    for file in (tmp_path / "other").glob("graph.*"):
        shutil.copy(file, tmp_path / "data")
    before = contents(tmp_path / "data")
    with pytest.raises(IsolationError, match="another entity's data"):
        upgrade(tmp_path / "data")
    assert contents(tmp_path / "data") == before


def test_killed_at_any_step_a_memory_is_as_it_was_or_upgraded_and_the_next_call_goes_on(
    tmp_path: Path,
) -> None:
    make_ladybug_graph(tmp_path / "old")
    old = contents(tmp_path / "old")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.integration.upgrade.killed", str(tmp_path), GROUP],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    upgraded = tables_of(tmp_path / "whole" / "memory.db")
    assert {table: len(rows) for table, rows in upgraded.items()} == GRAPH_ROWS
    seen = {"as it was": 0, "upgraded": 0}
    for at in json.loads(ended.stdout):
        data = tmp_path / str(at)
        if version(data / "memory.db") == 22:
            seen["as it was"] += 1
            assert {
                name: (data / name).read_bytes() for name in ("graph.lbug", "graph.lbug.wal")
            } == {name: old[name] for name in ("graph.lbug", "graph.lbug.wal")}, at
        else:
            seen["upgraded"] += 1
            assert tables_of(data / "memory.db") == upgraded, at
            copy = old_graph.copies(data)[-1]
            assert copy.is_whole, at
            assert (copy.path / "graph.lbug").read_bytes() == old["graph.lbug"], at
        assert whole(data / "memory.db"), at
        upgrade(data)
        assert tables_of(data / "memory.db") == upgraded, at
        assert old_graph.old_files(data) == [], at
        (copy,) = old_graph.copies(data)
        assert copy.is_whole, at
        assert names(copy.path) == ["graph.lbug", "graph.lbug.wal", "memory.db"], at
    assert min(seen.values()) > 2, seen
