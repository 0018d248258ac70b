"""Token states are their entity's own: another's are not read, not compared, not counted and not dropped."""

from __future__ import annotations

from pathlib import Path

from pps.app import App
from pps.config import Settings

SECRET = "The vault code of Ben is heron seven amber."
QUESTION = "What is the code of the vault?"


async def test_late_interaction_compares_nothing_of_another(tmp_path: Path) -> None:
    async with App.open(Settings(home=tmp_path / "home")) as app:
        for name in ("ana", "ben"):
            await app.create(name)
        async with app.memory("ana") as ana, app.memory("ben") as ben:
            hers = await ana.remember("The code of the garage is on the fridge.", session="s")
            his = await ben.remember(SECRET, session="s")
            for memory in (ana, ben):
                assert await memory.settled()
            indexes = ana.parts.indexes
            assert await indexes.tokens([his.turn_id]) == {}
            assert (await indexes.tokens(None)).keys() == {hers.turn_id}
            assert await indexes.token_counts() == (1, 0)
            recalled = await ana.recall(QUESTION, weights={"colbert": 100.0}, limit=50)
            assert [hit.id for hit in recalled.channels["episodes"].hits] == [hers.turn_id]
            assert (await indexes.token_states(None)).owners == (hers.turn_id,)
            assert (await indexes.token_states([his.turn_id])).owners == ()
            pack = await ana.ambient_recall(QUESTION, session="new")
            assert "heron" not in pack.text

            # Another's id drops, replaces and completes nothing.
            kept = await ben.parts.indexes.tokens([his.turn_id])
            await indexes.note_tokens({}, [his.turn_id])
            await indexes.put_tokens({his.turn_id: ("", b"")})
            assert await ben.parts.indexes.tokens([his.turn_id]) == kept
            assert await indexes.token_counts() == (1, 0)
            await ana.forget([hers.turn_id], dry_run=False)
            assert await indexes.token_counts() == (0, 0)
            assert (await indexes.token_states(None)).owners == ()
            assert (await ben.parts.indexes.token_states(None)).owners == (his.turn_id,)
            assert await ben.parts.indexes.token_counts() == (1, 0)
        files = list((tmp_path / "home").rglob("vectors.db*"))
        [state] = kept.values()
        holding = {file.parent.parent.name for file in files if state[:128] in file.read_bytes()}
        assert len(holding) == 1
