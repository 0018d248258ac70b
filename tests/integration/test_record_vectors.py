"""When records are embedded: at once, later, never, again; what a failing model leaves and reindexing takes up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pps.app import App
from pps.config import EmbedderSettings, Settings
from pps.core.errors import ModelUnavailable
from pps.core.kinds import KindPack, Kinds, KindSpec
from pps.core.time import now
from pps.ingest import record_vectors
from pps.ingest.record_vectors import MAX_TEXT, embedding_text
from pps.memory import Memory
from pps.models.hash import HashEmbedder
from pps.models.protocols import Matrix

PACK = KindPack(
    "small",
    1,
    kinds={
        "Goal": KindSpec(
            "Goal", "small", 1, embed=("title", "summary", "target", "due_date"), priority="P1"
        ),
        "Note": KindSpec("Note", "small", 1, priority="P4"),
        "Secret": KindSpec("Secret", "small", 1, priority="none"),
    },
)


class Fickle(HashEmbedder):
    """Notes what it is given, and fails while it is told to."""

    def __init__(self) -> None:
        super().__init__(dimension=64)
        self.texts: list[str] = []
        self.away = False
        self.turned = 0.0

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        if self.away and any(text.startswith(("Goal: ", "Note: ")) for text in texts):
            raise ModelUnavailable("away")
        self.texts += texts
        rows = super().embed_passages(texts)
        if self.turned:
            rows = rows[:, ::-1].copy()
        return rows

    def about(self, word: str) -> int:
        return sum(word in text and ": " in text for text in self.texts)


class Scene:
    def __init__(self, memory: Memory, model: Fickle) -> None:
        self.memory, self.model = memory, model
        self.parts = memory.parts
        self.parts.indexer.records.kinds = Kinds([PACK])

    async def save(self, kind: str, title: str, summary: str, **fields: Any) -> str:
        receipt = await self.memory.records.add_event(
            summary, title=title, source="manual", kind=kind, metadata=fields
        )
        assert receipt.state == "done"
        assert receipt.node_id
        return receipt.node_id

    async def vectors(self, *ids: str) -> Mapping[str, Any]:
        return await self.parts.indexes.vectors("records", ids)

    async def state(self, one: str) -> Any:
        return (await self.parts.journal.vector_states.of([one])).get(one)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    model = Fickle()
    settings = Settings(home=tmp_path, embedder=EmbedderSettings(name="hash", dimension=64))
    async with App.open(settings, embedder=model) as app:
        await app.create("ana")
        async with app.memory("ana") as memory:
            yield Scene(memory, model)


def test_a_record_is_found_by_labelled_lines_of_its_kinds_fields() -> None:
    text = embedding_text(
        PACK.kinds["Goal"],
        "Run",
        "A marathon.",
        {"target": "4 h", "due_date": "2026-05-01", "owner": "Ana"},
    )
    assert text == "Goal: Run\nSummary: A marathon.\nTarget: 4 h\nDue date: 2026-05-01"
    assert (
        embedding_text(PACK.kinds["Goal"], "Run", "A.", {"target": None})
        == "Goal: Run\nSummary: A."
    )
    assert embedding_text(PACK.kinds["Goal"], "Run", "A.", {"target": ["x", {"y": 2}]}).endswith(
        "Target: x, y 2"
    )
    assert len(embedding_text(PACK.kinds["Goal"], "Run", "word " * 2_000, {})) == MAX_TEXT


async def test_a_goal_is_embedded_at_once_and_a_note_when_the_worker_is_idle(scene: Scene) -> None:
    goal, note = (
        await scene.save("Goal", "Run", "A marathon."),
        await scene.save("Note", "Shoes", "They are worn."),
    )
    assert set(await scene.vectors(goal)) == {goal}
    await scene.memory.settled()
    assert set(await scene.vectors(goal, note)) == {goal, note}
    assert await scene.parts.journal.vector_states.waiting() == 0


async def test_a_kind_of_priority_none_is_never_embedded_but_found_by_words(scene: Scene) -> None:
    secret = await scene.save("Secret", "Vault", "Under the third stair.")
    await scene.memory.settled()
    assert await scene.vectors(secret) == {}
    assert await scene.parts.indexes.vectors("nodes", [secret]) == {}
    found = await scene.memory.recall("third stair", channels=("nodes",))
    assert secret in [hit.id for hit in found["nodes"]]
    ledger = await scene.memory.ledger()
    assert not ledger.problems


async def test_a_change_that_leaves_its_words_as_they_were_costs_no_call(scene: Scene) -> None:
    goal = await scene.save("Goal", "Run", "A marathon.", target="4 h", owner="Ana")
    await scene.memory.settled()
    before = list(scene.model.texts)
    await scene.memory.records.update(goal, metadata={"target": "4 h", "owner": "Ben"})
    await scene.memory.settled()
    assert [
        one for one in scene.model.texts[len(before) :] if one.startswith("Goal") or one == "Run"
    ] == []
    assert set(await scene.vectors(goal)) == {goal}
    await scene.memory.records.update(goal, metadata={"target": "3 h", "owner": "Ben"})
    assert scene.model.about("Target: 3 h") == 1


async def test_a_failed_embedding_blocks_no_save_is_tried_three_times_told_and_taken_up_by_reindex(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_vectors, "BACKOFF_S", (0.0, 0.0, 3600.0))
    scene.model.away = True
    goal = await scene.save("Goal", "Run", "A marathon.")
    found = await scene.memory.recall("marathon", channels=("nodes",))
    assert goal in [hit.id for hit in found["nodes"]]
    await scene.memory.settled()
    state = await scene.state(goal)
    assert (state.failures, state.hash, state.error) == (3, "", "model_unavailable: away")
    assert state.due > now() + timedelta(minutes=50)
    later = now() + timedelta(hours=2)
    monkeypatch.setattr(record_vectors, "now", lambda: later)
    await scene.parts.indexer.embed_due()
    state = await scene.state(goal)
    assert (state.failures, state.due) == (4, None)
    health = await scene.memory.health()
    assert not health.ok
    assert "1 record could not be embedded (model_unavailable: away)" in health.problems[0]
    assert "pps reindex ana --index vectors" in health.problems[0]
    assert not (await scene.memory.ledger()).problems
    scene.model.away = False
    await scene.memory.reindex()
    assert set(await scene.vectors(goal)) == {goal}
    assert (await scene.memory.health()).ok


async def test_one_text_that_no_model_takes_keeps_no_other_from_its_vectors(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_vectors, "BACKOFF_S", (0.0, 3600.0, 3600.0))
    fine, whole = HashEmbedder.embed_passages, scene.model

    def choosy(texts: Sequence[str]) -> Matrix:
        if any("Unspeakable" in text for text in texts):
            raise record_vectors.ModelOutputInvalid("refused")
        return fine(whole, texts)

    monkeypatch.setattr(scene.model, "embed_passages", choosy)
    good, bad = (
        await scene.save("Note", "Bread", "Rye."),
        await scene.save("Note", "Unspeakable", "Nothing."),
    )
    await scene.memory.settled()
    assert set(await scene.vectors(good, bad)) == {good}
    assert (await scene.state(bad)).failures == 2


async def test_what_waits_for_a_pause_waits_a_minute_at_most(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment: datetime = now()
    note = await scene.save("Note", "Shoes", "They are worn.")
    await scene.memory.settled()
    await scene.parts.journal.vector_states.clear()
    await scene.parts.indexes.clear()
    records = scene.parts.indexer.records
    node = (await scene.parts.client.nodes([note]))[0]
    assert all(doc.vectors is None for doc in await records.docs([(node, "They are worn.")]))
    assert not records.waited_too_long()
    monkeypatch.setattr(record_vectors, "now", lambda: moment + timedelta(seconds=62))
    assert records.waited_too_long()


async def test_vectors_that_are_lost_are_made_again(scene: Scene) -> None:
    goal = await scene.save("Goal", "Run", "A marathon.")
    await scene.memory.settled()
    await scene.parts.indexes.apply([], [("records", goal), ("nodes", goal)])
    assert (await scene.memory.ledger()).problems
    await scene.memory.reindex(which="vectors")
    await scene.memory.settled()
    assert set(await scene.vectors(goal)) == {goal}


async def test_a_forgotten_record_leaves_no_account(scene: Scene) -> None:
    goal = await scene.save("Goal", "Run", "A marathon.")
    await scene.memory.forget([goal], dry_run=False)
    assert await scene.state(goal) is None
    assert await scene.vectors(goal) == {}
