"""Topics of real memories: found where spaces agree, the same from day to day, without what was forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pps.features.topics import portfolio
from pps.recall.perspectives import PERSPECTIVES, Perspective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pps.app import App
    from pps.memory import Memory
    from pps.recall.search import Sources

BREAD = (
    "Rye dough rests overnight.",
    "The rye dough went into the oven.",
    "Oven hot, dough with rye and salt.",
)
BOATS = (
    "The keel of the boat needs paint.",
    "Paint the keel before the boat sails.",
    "A boat sails on its keel.",
)
LATER = ("More rye dough for the oven.", "The boat has a new keel.")
APART = ("Book the dentist.", "Renew the passport.", "Fix the bicycle chain.")


async def by_words(sources: Sources, ids: Sequence[str]) -> NDArray[np.float32]:
    """Return the share of long words that turns have in common."""
    texts = {one.uuid: one.content for one in await sources.journal.turns(ids)}
    words = [
        {word.strip(".,").lower() for word in texts[one].split() if len(word) > 2} - {"the"}
        for one in ids
    ]
    alike = [[len(a & b) / min(len(a), len(b)) for b in words] for a in words]
    return np.array(alike, dtype=np.float32).reshape(len(ids), len(ids))


async def always(sources: Sources, ids: Sequence[str]) -> NDArray[np.float32]:
    """All of one hour is alike."""
    del sources
    return np.ones((len(ids), len(ids)), dtype=np.float32)


@pytest.fixture(autouse=True)
def spaces_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three semantic spaces go by shared words, and every temporal one say that all is alike."""
    for name in (
        "dense",
        "bm25",
        "code",
        "cause",
        "near",
        "trigrams",
        "intent",
        "named",
        "late",
        "expand",
    ):
        alike = by_words if name in ("dense", "bm25", "code") else None
        known = PERSPECTIVES.get(name) or Perspective(name, name)
        monkeypatch.setitem(PERSPECTIVES, name, replace(known, alike=alike))
    for name in ("recency", "period", "sequence"):
        monkeypatch.setitem(PERSPECTIVES, name, Perspective(name, name, alike=always))


async def tell(memory: Memory, *texts: str) -> list[str]:
    return [(await memory.remember(one, session="s", extraction="none")).turn_id for one in texts]


async def test_topics_are_found_named_and_keep_their_ids_over_a_days_additions(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        bread, boats = await tell(memory, *BREAD), await tell(memory, *BOATS)
        told: list[str] = []
        found = await memory.topics.detect(lambda what, *_: told.append(what))
        assert told == ["E1", "E6", "E7"]
        assert {frozenset(one.members) for one in found.topics} == {
            frozenset(bread),
            frozenset(boats),
        }
        names = {one.id: one.name for one in found.topics}
        assert sorted(names.values()) == ["Boat, keel", "Rye dough, oven"]
        assert all(one.phase == "emerging" and 0 < one.confidence <= 1 for one in found.topics)
        assert found.entropy == pytest.approx(1.0)
        await tell(memory, *LATER)
        again = await memory.topics.detect()
        assert {one.id for one in again.topics} == set(names)
        assert sorted(one.size for one in again.topics) == [4, 4]
        assert (await memory.topics.detect()).at == again.at  # nothing came, so nothing is done
        assert (await memory.topics.stability(6)).topics == 2


async def test_three_unrelated_tasks_of_one_hour_make_no_topic(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *APART)
        assert (await memory.topics.detect(force=True)).topics == ()
        assert {id_ for id_, *_ in portfolio.comparing()} == {"E1", "E6", "E7"}


async def test_what_is_forgotten_is_in_no_topic_and_in_no_name(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        bread, _ = await tell(memory, *BREAD), await tell(memory, *BOATS)
        told = await tell(memory, "Quetzal quetzal quetzal quetzal: rye dough, oven.")
        assert "quetzal" in str(await memory.topics.detect())
        await memory.forget(told, dry_run=False, soft=True)
        found = await memory.topics.portfolio()
        assert "quetzal" not in str(found)
        assert told[0] not in str(found)
        await memory.forget(bread[:1], dry_run=False)
        assert len((await memory.topics.portfolio()).topics) == 1  # two are no topic


async def test_names_are_kept_while_topics_grow_and_hold_nothing_of_a_text_that_was_changed(
    app: App,
) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *BREAD, *BOATS)
        before = {one.id: one.name for one in (await memory.topics.detect()).topics}
        assert sorted(before.values()) == ["Boat, keel", "Rye dough, oven"]
        await tell(memory, *LATER, "The boat, the boat, the keel and a sail. Sails for the boat.")
        after = {one.id: one.name for one in (await memory.topics.detect()).topics}
        assert after == before
        rows = await memory.topics.sources.journal.topics.phrases()
        turns = {place.turn for (_, role), some in rows.items() if role == "name" for place in some}
        for turn in turns:
            await memory.records.update(turn, content="Gone quiet. Nothing here.")
        rows = await memory.topics.sources.journal.topics.phrases()
        assert not [place for some in rows.values() for place in some if place.turn in turns]
        names = [one.name for one in (await memory.topics.portfolio()).topics]
        assert all(name and "quiet" not in name.lower() for name in names), names


async def test_a_memory_of_before_names_were_kept_has_names_at_once(app: App) -> None:
    await app.create("ana")
    async with app.memory("ana") as memory:
        await tell(memory, *BREAD, *BOATS)
        found = await memory.topics.detect()
        rows = memory.topics.sources.journal.topics
        await rows.write(lambda db: db.execute("DELETE FROM topic_phrases"))
        again = await memory.topics.portfolio()
        assert [(one.id, one.name, one.terms, one.named) for one in again.topics] == [
            (one.id, one.name, one.terms, one.named) for one in found.topics
        ]
