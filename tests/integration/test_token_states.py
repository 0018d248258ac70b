"""Token states of turns: made behind the writes, kept with their turn, compared at the query, gone with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from pps.app import App
from pps.config import ColbertSettings, Settings
from pps.core.values import Turn
from pps.journal.filters import ItemFilter
from pps.memory import Memory
from pps.models.token_encoder import (
    TEXT_TOKENS,
    WIDTH,
    ColbertEncoder,
    find_colbert,
    max_similarities,
)

NOTES = (
    "The boiler man comes on Thursday between nine and eleven.",
    "Shoe size 38, wide fit.",
    "Our landlord is called Marek Nowak.",
    "The spare key is under the blue flower pot.",
)


@pytest.fixture(scope="module")
def encoder() -> ColbertEncoder:
    found = find_colbert()
    assert found is not None, "scripts/setup all brings the model's file"
    return found


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App.open(Settings(home=tmp_path / "home")) as opened:
        await opened.create("ana")
        yield opened


async def remembered(memory: Memory) -> list[str]:
    receipts = [await memory.remember(note, session="s") for note in NOTES]
    assert await memory.settled()
    return [receipt.turn_id for receipt in receipts]


def test_states_are_unit_vectors_and_do_not_depend_on_what_else_is_made(
    encoder: ColbertEncoder,
) -> None:
    [alone] = encoder.text_states([NOTES[0]])
    together = encoder.text_states(NOTES)
    assert np.array_equal(alone, together[0])
    assert alone.dtype == np.int8
    assert alone.shape[1] == WIDTH
    lengths = np.linalg.norm(alone.astype(np.float32), axis=1) / 127
    assert lengths == pytest.approx(np.ones(len(alone)), abs=0.05)
    [long] = encoder.text_states(["word " * 4_000])
    assert len(long) == TEXT_TOKENS


def test_the_nearest_word_of_each_token_counts(encoder: ColbertEncoder) -> None:
    texts = encoder.text_states(NOTES)
    for question, wanted in (
        ("When does the boiler man come?", 0),
        ("Who do we rent from?", 2),
        ("Where did I hide the key?", 3),
    ):
        scores = max_similarities(encoder.query_states(question), texts)
        assert scores.shape == (len(NOTES),)
        assert int(scores.argmax()) == wanted, question
    assert max_similarities(encoder.query_states("key"), []).shape == (0,)


async def test_states_follow_the_writes_and_rank_the_turns(app: App) -> None:
    async with app.memory("ana") as memory:
        ids = await remembered(memory)
        assert await memory.parts.indexes.token_counts() == (len(ids), 0)
        recalled = await memory.recall("What size shoes should I buy?", limit=3)
        [first, *_] = recalled.channels["episodes"].hits
        assert first.id == ids[1]
        assert first.ranks["colbert"] == 1
        status = await memory.finding.index_status()
        assert (status.token_states, status.token_states_waiting) == (len(ids), 0)
        ledger = await memory.ledger()
        assert "turns and token states" in {one.what for one in ledger.agreements}
        assert ledger.problems == ()


async def test_what_tools_did_has_no_states(app: App) -> None:
    async with app.memory("ana") as memory:
        await memory.remember("ls -la: 14 files", role="tool", session="s")
        await memory.remember(NOTES[1], session="s")
        assert await memory.settled()
        assert await memory.parts.indexes.token_counts() == (1, 0)
        assert (await memory.ledger()).problems == ()


async def test_a_final_forget_takes_the_bytes_off_the_disk(app: App) -> None:
    async with app.memory("ana") as memory:
        ids = await remembered(memory)
        kept = await memory.parts.indexes.tokens(None)
        assert kept.keys() == set(ids)
        files = [
            memory.parts.journal.path.parent / name for name in ("vectors.db", "vectors.db-wal")
        ]

        def is_on_disk(blob: bytes) -> bool:
            return any(blob[:256] in file.read_bytes() for file in files if file.exists())

        assert is_on_disk(kept[ids[1]])
        assert is_on_disk(kept[ids[3]])
        assert set((await memory.parts.indexes.token_states(None)).owners) == set(ids)
        await memory.forget([ids[1]], dry_run=False)
        assert await memory.settled()
        assert not is_on_disk(kept[ids[1]])
        assert is_on_disk(kept[ids[3]])
        assert (await memory.parts.indexes.tokens(None)).keys() == set(ids) - {ids[1]}
        in_memory = await memory.parts.indexes.token_states(None)
        assert set(in_memory.owners) == set(ids) - {ids[1]}
        assert kept[ids[1]] not in in_memory.states.tobytes()
        assert (await memory.ledger()).problems == ()


async def test_reindexing_makes_them_anew_and_switching_off_drops_them(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    async with App.open(settings) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await remembered(memory)
            await memory.reindex(which="vectors")
            assert await memory.settled()
            assert await memory.parts.indexes.token_counts() == (len(NOTES), 0)
    off = settings.model_copy(update={"colbert": ColbertSettings(name="none")})
    async with App.open(off) as app, app.memory("ana") as memory:
        assert await memory.settled()
        assert await memory.parts.indexes.token_counts() == (0, 0)
        recalled = await memory.recall("What size shoes should I buy?")
        assert all("colbert" not in hit.ranks for hit in recalled.channels["episodes"].hits)
    async with App.open(settings) as app, app.memory("ana") as memory:
        await memory.remember("A walk in the park.", session="s")
        assert await memory.settled()
        assert await memory.parts.indexes.token_counts() == (len(NOTES) + 1, 0)


async def test_a_filter_holds_for_what_is_compared(app: App) -> None:
    async with app.memory("ana") as memory:
        await remembered(memory)
        await memory.remember("Shoe size 40 for Ben, narrow fit.", session="other")
        assert await memory.settled()
        recalled = await memory.recall(
            "What size shoes?", filters=ItemFilter(sessions=("other",)), weights={"colbert": 9.0}
        )
        hits = recalled.channels["episodes"].hits
        assert [hit.item.session for hit in hits if isinstance(hit.item, Turn)] == ["other"]
        assert "colbert" in hits[0].ranks


async def test_beyond_the_bound_only_candidates_of_others_are_compared(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pps.recall.perspectives.retrievers.COMPARED_WHOLE", 3)
    async with app.memory("ana") as memory:
        ids = await remembered(memory)
        recalled = await memory.recall("What size shoes should I buy?", limit=3)
        [first, *_] = recalled.channels["episodes"].hits
        assert (first.id, first.ranks["colbert"]) == (ids[1], 1)
