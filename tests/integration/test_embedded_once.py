"""A backlog of turns with facts costs the model each text once, although its turns are indexed twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.values import FactDraft
from pps.models.hash import HashEmbedder
from pps.models.protocols import Matrix

TURNS = 1_500


class Counting(HashEmbedder):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        return super().embed_passages(texts)


async def test_no_text_of_a_backlog_is_embedded_twice(tmp_path: Path) -> None:
    model = Counting()
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash", dimension=64))
    async with App.open(settings, embedder=model) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            await memory.remember_many(
                [
                    (
                        f"Note {number} of the year.",
                        {
                            "source_ref": str(number),
                            "extraction": "given",
                            "facts": [
                                FactDraft(
                                    f"Person {number % 97}",
                                    "KEEPS",
                                    f"Thing {number}",
                                    text=f"{number}: {part}",
                                )
                                for part in ("kept", "seen", "lent")
                            ],
                        },
                    )
                    for number in range(TURNS)
                ]
            )
            await memory.settled()
            stats = await memory.stats()
            found = await memory.recall("What is Note 1234 of the year?")
    assert (stats.facts, stats.vector_indexed["episodes"]) == (3 * TURNS, TURNS)
    assert "Note 1234 of the year." in found["episodes"][0].text
    assert len(set(model.texts)) >= 4 * TURNS
    assert len(model.texts) <= 1.01 * len(
        set(model.texts)
    )  # now and then a name is embedded by two at once
