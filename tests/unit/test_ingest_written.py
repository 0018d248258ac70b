"""What a write passes on to the indexes is used only while nobody else has named the same id since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from pps.core.time import now
from pps.core.values import Fact, Node
from pps.ingest.indexer import Written
from pps.journal import turns
from pps.journal.db import MIGRATIONS
from pps.journal.entries import Change, DirtyChange

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
        yield opened


def _held(connection: sqlite3.Connection, rows: range) -> Written:
    return Written(rows, {_NODE.uuid: _NODE}, {_FACT.uuid: _FACT}).of(turns.dirty(connection, 100))


def test_what_only_the_write_marked_is_passed_on(connection: sqlite3.Connection) -> None:
    held = _held(connection, turns.mark_dirty(connection, _CHANGES))
    assert (list(held.nodes), list(held.facts)) == ([_NODE.uuid], [_FACT.uuid])


def test_what_somebody_marked_again_is_read_where_it_is_true(
    connection: sqlite3.Connection,
) -> None:
    rows = turns.mark_dirty(connection, _CHANGES)
    turns.mark_dirty(connection, _CHANGES[1:])
    held = _held(connection, rows)
    assert (list(held.nodes), list(held.facts)) == ([_NODE.uuid], [])


def test_what_was_marked_before_the_write_is_not_taken_for_its_own(
    connection: sqlite3.Connection,
) -> None:
    turns.mark_dirty(connection, [Change("episode", "another")])
    rows = turns.mark_dirty(connection, [])
    assert not rows
    assert not Written(rows, {_NODE.uuid: _NODE}).of([DirtyChange(1, _CHANGES[0])]).nodes


def test_a_number_is_never_given_twice_even_after_all_was_cleared(
    connection: sqlite3.Connection,
) -> None:
    first = turns.mark_dirty(connection, _CHANGES)
    turns.clear_dirty(connection, list(first))
    assert turns.mark_dirty(connection, _CHANGES).start == first.stop
