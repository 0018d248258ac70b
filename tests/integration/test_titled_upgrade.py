"""Upgrades from the last schema without whole rows of titled texts: each store completes its rows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.core.record_values import TITLED_PACK, Record
from pps.core.values import RecordDraft
from pps.journal import db, postgresql
from pps.journal.entries import JobPayload, TurnDraft
from pps.journal.journal import Journal
from pps.journal.postgresql import database_of
from tests.postgresql_server import running_postgresql

NODE = "10000000-0000-5000-8000-000000000001"
_FILE_VERSION = 27
_DATABASE_VERSION = 2


async def _write_earlier_row(journal: Journal) -> str:
    """Store a titled text with a row of the earlier schema; return its turn."""
    draft = RecordDraft("Harbour light", "voice", "", {"place": "pier 3"})
    appended = await journal.append(
        TurnDraft("The light is out. Since nine.", actor="mara", kind="voice", tags=("harbour",)),
        JobPayload(record=draft),
    )
    turn = appended.turn.uuid
    await journal.write(
        lambda rows: rows.execute("INSERT INTO records (turn, node) VALUES (?, ?)", (turn, NODE))
    )
    return turn


async def _check_completed(journal: Journal, turn: str) -> None:
    by_id: dict[str, Record] = await journal.records.read(
        lambda rows: rows.find([NODE], titled=True)
    )
    record = by_id[NODE]
    assert by_id == {NODE: record, turn: record}
    assert (record.kind, record.title, record.pack) == ("voice", "Harbour light", TITLED_PACK)
    assert (record.summary, record.fields) == ("The light is out.", {"place": "pier 3"})
    assert (record.version, record.author, record.tags) == (1, "mara", ("harbour",))


async def test_a_file_of_the_earlier_schema_is_completed_when_it_is_opened(tmp_path: Path) -> None:
    path, group = tmp_path / "memory.db", new_group()
    db.prepare_file(path, group, db.MIGRATIONS[:_FILE_VERSION])
    async with Journal(path, group) as journal:
        turn = await _write_earlier_row(journal)
    for _ in range(2):
        async with await Journal.open(path, group) as journal:
            await _check_completed(journal, turn)


@pytest.mark.postgresql
async def test_a_database_of_the_earlier_schema_is_completed_for_each_entity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    groups = [new_group(), new_group()]
    with running_postgresql() as server:
        with monkeypatch.context() as patch:
            patch.setattr(postgresql, "MIGRATIONS", postgresql.MIGRATIONS[:_DATABASE_VERSION])
            before = await asyncio.to_thread(database_of, server.settings)
            turns: dict[str, str] = {}
            for group in groups:
                async with Journal(path, group, database=before) as journal:
                    turns[group] = await _write_earlier_row(journal)
            await asyncio.to_thread(before.close)
        database = await asyncio.to_thread(database_of, server.settings)
        for group, turn in turns.items():
            async with await Journal.open_in(database, path, group) as journal:
                await _check_completed(journal, turn)
        await asyncio.to_thread(database.close)
