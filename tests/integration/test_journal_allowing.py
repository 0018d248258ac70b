"""What filters let through is kept only as long as it is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from pps.core.ids import new_group
from pps.journal.db import prepare_file
from pps.journal.entries import TurnDraft
from pps.journal.filters import KEPT_IDS, KEPT_S, FilterCache, ItemFilter
from pps.journal.journal import Journal
from pps.journal.store import SqliteReaders
from pps.journal.writer import SqliteWriter


async def test_a_turn_is_let_through_as_soon_as_it_is_acknowledged(tmp_path: Path) -> None:
    async with await Journal.open(tmp_path / "memory.db", new_group()) as journal:
        wanted = ItemFilter(tags=("sea",))
        seen: set[str] = set()
        for number in range(5):
            turn = (await journal.append(TurnDraft(f"wave {number}", tags=("sea",)))).turn
            seen.add(turn.uuid)
            assert await journal.allowed("episode", wanted) == seen
        assert await journal.allowed("episode", wanted) is await journal.allowed("episode", wanted)
        assert await journal.allowed("episode", ItemFilter(tags=("land",))) == set()
        assert await journal.allowed("episode", ItemFilter()) is None
        await journal.forget_turns(sorted(seen))
        assert await journal.allowed("episode", wanted) == set()


async def test_an_answer_serves_half_a_minute_and_big_ones_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = tmp_path / "memory.db", [100.0]
    prepare_file(path, new_group())
    writer, readers = SqliteWriter(path), SqliteReaders(path)
    try:
        allowing = FilterCache(writer, readers, clock=lambda: now[0])
        first = await allowing.allowed("episode", ItemFilter(tags=("sea",)))
        now[0] += KEPT_S - 1
        assert await allowing.allowed("episode", ItemFilter(tags=("sea",))) is first
        now[0] += 2
        assert await allowing.allowed("episode", ItemFilter(tags=("sea",))) is not first
        monkeypatch.setattr(
            "pps.journal.filters.allowed_ids", lambda *_, **__: set(map(str, range(KEPT_IDS + 1)))
        )
        many = await allowing.allowed("node", ItemFilter(tags=("sea",)))
        assert await allowing.allowed("node", ItemFilter(tags=("sea",))) is not many
    finally:
        readers.close()
        writer.close()
