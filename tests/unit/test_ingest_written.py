"""What a write passes on to the indexes is used only while nobody else has named the same id since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from pps.core.time import now
from pps.core.values import Fact, Node
from pps.ingest.indexer import Written
from pps.journal import change_log
from pps.journal.change_log import LogEntry
from pps.journal.db import MIGRATIONS
from pps.journal.entries import Change

_NODE = Node("11111111-1111-5111-8111-111111111111", "Ana", now())
_FACT = Fact(
    "22222222-2222-5222-8222-222222222222",
    _NODE.uuid,
    _NODE.uuid,
    "KNOWS",
    "Ana knows herself.",
    now(),
)
_CHANGES = [Change("node", _NODE.uuid), Change("fact", _FACT.uuid)]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        for statement in MIGRATIONS[0]:
            opened.execute(statement)
        for statement in (statement for version in MIGRATIONS[1:] for statement in version):
            if "CREATE TABLE change_log" in statement:
                opened.execute(statement)
        yield opened


def _held(connection: sqlite3.Connection, positions: range) -> Written:
    return Written(positions, {_NODE.uuid: _NODE}, {_FACT.uuid: _FACT}).of(
        change_log.log_entries(connection, 0, 100)
    )


def test_what_only_the_write_logged_is_passed_on(connection: sqlite3.Connection) -> None:
    held = _held(connection, change_log.log_changes(connection, _CHANGES))
    assert (list(held.nodes), list(held.facts)) == ([_NODE.uuid], [_FACT.uuid])


def test_what_somebody_logged_again_is_read_where_it_is_true(
    connection: sqlite3.Connection,
) -> None:
    rows = change_log.log_changes(connection, _CHANGES)
    change_log.log_changes(connection, _CHANGES[1:])
    held = _held(connection, rows)
    assert (list(held.nodes), list(held.facts)) == ([_NODE.uuid], [])


def test_what_was_logged_before_the_write_is_not_taken_for_its_own(
    connection: sqlite3.Connection,
) -> None:
    change_log.log_changes(connection, [Change("episode", "another")])
    rows = change_log.log_changes(connection, [])
    assert not rows
    assert not Written(rows, {_NODE.uuid: _NODE}).of([LogEntry(1, _CHANGES[0])]).nodes


def test_a_position_is_never_given_twice_even_after_all_was_dropped(
    connection: sqlite3.Connection,
) -> None:
    first = change_log.log_changes(connection, _CHANGES)
    change_log.drop_entries(connection, first[-1])
    assert change_log.log_changes(connection, _CHANGES).start == first.stop
