"""Perspectives with stored features: what they find that words miss, and how features follow a memory."""

from __future__ import annotations

import asyncio
import signal

import numpy as np
import pytest

from pps.app import App
from pps.config import Settings
from pps.core.errors import ConfigError, ModelError, ModelUnavailable, PPSError
from pps.ingest.passage_vectors import PassageVectors
from pps.journal.perspective_rows import PerspectiveRows
from pps.memory import Memory
from pps.recall.perspectives import PERSPECTIVES
from tests.acceptance.killed_steps import arm, deadly, process
from tests.integration.recall_scene import ask, sources
from tests.integration.test_recall_perspectives import found

FLOOD = "The cellar flooded because the pump broke."
CODE = "We fixed parseConfigFile in src/app/loader.py yesterday."
TEXTS = (FLOOD, CODE, "Kubernetes runs the bakery's ovens.", "We ate soup and slept.")


async def told(memory: Memory, *texts: str) -> list[str]:
    """Remember turns and return their ids."""
    ids = [(await memory.remember(text, session="s")).turn_id for text in texts]
    assert await memory.settled()
    return ids


async def kept(memory: Memory) -> set[tuple[str, str]]:
    """Return item and perspective of every feature."""
    return set(
        await memory.parts.journal.select(
            "SELECT item, perspective FROM features WHERE version > 0"
        )
    )


async def test_each_finds_what_words_miss(memory: Memory) -> None:
    await told(memory, *TEXTS)
    assert await found(ask(memory, "kuberentes"), "bm25", "turns") == []
    assert await found(ask(memory, "kuberentes"), "trigrams", "turns") == [TEXTS[2]]
    assert await found(ask(memory, "loading the config file"), "code", "turns") == [CODE]
    assert await found(ask(memory, "Why is the cellar flooded?"), "cause", "turns") == [FLOOD]
    assert await found(ask(memory, "What did the pump broke lead to?"), "cause", "turns") == [FLOOD]
    assert await found(ask(memory, "the cellar flooded"), "cause", "turns") == []
    assert await found(ask(memory, "soup"), "trigrams", "anchors") == []


async def test_likeness_is_unknown_where_one_has_no_feature(memory: Memory) -> None:
    ids = await told(
        memory, *TEXTS, "The pump broke because of the frost.", "parse_config_file is slow"
    )
    for name, one, other, neither in (
        ("code", 1, 5, 3),
        ("cause", 0, 4, 3),
        ("trigrams", 0, 4, None),
    ):
        alike = PERSPECTIVES[name].alike
        assert alike is not None
        likeness = await alike(sources(memory), ids)
        assert likeness.shape == (6, 6)
        np.testing.assert_allclose(likeness, likeness.T, atol=1e-5)
        assert likeness[one, other] > 0.2
        assert neither is None or np.isnan(likeness[one, neither])
    assert likeness[0, 3] < 0.2, "unrelated letters"
    assert likeness[0, 0] == pytest.approx(1.0, abs=1e-5)


async def test_forgetting_a_turn_takes_its_features_along_and_reindex_makes_the_same(
    memory: Memory,
) -> None:
    ids = await told(memory, *TEXTS)
    before = await kept(memory)
    assert {(ids[0], "cause"), (ids[0], "trigrams"), (ids[1], "code")} <= before
    await memory.reindex()
    assert await kept(memory) == before
    await memory.forget([ids[0]], dry_run=False)
    assert await memory.settled()
    assert not [one for one in await kept(memory) if one[0] == ids[0]]
    assert await found(ask(memory, "Why is the cellar flooded?"), "cause", "turns") == []


async def test_a_memory_of_other_rules_is_given_its_features_again(memory: Memory) -> None:
    await told(memory, *TEXTS)
    before, journal = await kept(memory), memory.parts.journal
    await journal.perspective_data.clear()
    await journal.set_meta("features", "")
    assert await memory.parts.indexer.settle() is None or await kept(memory)
    assert await kept(memory) == before


async def test_a_perspective_that_fails_is_marked_noted_and_made_later(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = PassageVectors.of

    async def fails(self: PassageVectors, texts: list[str], soon: tuple[str, ...] = ()) -> object:
        if "the pump broke" in texts:
            raise ModelUnavailable("away")
        return await embed(self, texts, soon)

    monkeypatch.setattr(PassageVectors, "of", fails)
    (flood,) = await told(memory, FLOOD)
    assert (flood, "cause") not in await kept(memory)
    assert (flood, "trigrams") in await kept(memory)
    asked = ask(memory, "Why is the cellar flooded?")
    assert await found(asked, "bm25", "turns") == [FLOOD]
    assert await found(asked, "cause", "turns") == []
    assert any("not embedded yet" in one for one in asked.warnings)
    monkeypatch.setattr(PassageVectors, "of", embed)
    await memory.parts.indexer.settle()
    assert (flood, "cause") in await kept(memory)


@pytest.mark.parametrize(
    ("error", "is_split"),
    [
        (ModelError("the provider refuses a text", provider="embedder"), True),
        (ConfigError("the provider refuses the key"), False),
        (ModelUnavailable("away"), False),
    ],
    ids=["text", "key", "away"],
)
async def test_a_text_that_a_provider_refuses_keeps_no_other_from_having_its_causes(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, error: PPSError, *, is_split: bool
) -> None:
    embed = PassageVectors.of
    tried: list[list[str]] = []

    async def refuses(self: PassageVectors, texts: list[str], soon: tuple[str, ...] = ()) -> object:
        if any(text in ("the pump broke", "a tree had fallen") for text in texts):
            tried.append(texts)
        if "the pump broke" in texts:
            raise error
        return await embed(self, texts, soon)

    monkeypatch.setattr(PassageVectors, "of", refuses)
    other = "The road was closed because a tree had fallen."
    receipts = await memory.remember_many([(FLOOD, {}), (other, {})])
    assert await memory.settled()
    causes = [item for item, perspective in await kept(memory) if perspective == "cause"]
    assert causes == ([receipts[1].turn_id] if is_split else [])
    assert (["a tree had fallen", "The road was closed"] in tried) is is_split


def killed_while_features_are_written(settings: Settings) -> None:
    """Remember in a process that dies right after features were written, before anything is indexed."""
    deadly(PerspectiveRows, "put")

    async def work() -> None:
        async with App.open(settings) as app, app.memory("ana") as memory:
            arm()
            await memory.remember(FLOOD)
            await memory.settled()

    asyncio.run(work())


async def test_a_kill_while_features_are_written_heals(settings: Settings) -> None:
    async with App.open(settings) as app:
        await app.create("ana")
    child = process(killed_while_features_are_written, settings)
    await asyncio.to_thread(child.join, 60)
    assert child.exitcode == -signal.SIGKILL
    async with App.open(settings) as app, app.memory("ana") as memory:
        assert await memory.settled()
        assert await found(ask(memory, "Why is the cellar flooded?"), "cause", "turns") == [FLOOD]
        assert {"cause", "trigrams"} <= {perspective for _, perspective in await kept(memory)}
        assert (await memory.ledger()).problems == ()
