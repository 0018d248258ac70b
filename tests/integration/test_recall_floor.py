"""The floor: what it costs with a model that no table knows, and what recall says of what is near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pps.context.ambient import Ambient, AmbientRequest
from pps.core.recalled import NOTHING_NEAR, Evidence, Recall
from pps.memory import Memory
from pps.models.hash import HashEmbedder
from pps.models.protocols import Fingerprint, Matrix, Vector
from pps.recall.request import RecallRequest
from tests.integration.recall_scene import engine


class Unknown:
    """An embedder of a model that ``config/floor.toml`` does not have; counts what it embeds."""

    fingerprint = Fingerprint("never-measured", 256, "mean")

    def __init__(self) -> None:
        self.inner = HashEmbedder(256)
        self.queries: list[str] = []
        self.passages: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return self.inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        self.passages.extend(texts)
        return np.asarray(self.inner.embed_passages(texts))

    def split(self, text: str) -> list[str]:
        return [text]


async def test_a_young_memory_measures_a_model_that_no_table_has_once(
    scene: Memory, tmp_path: Path
) -> None:
    embedder = Unknown()
    asked = engine(scene, tmp_path, embedder=embedder)
    await asked.recall(RecallRequest("Mira grows roses", profile="ambient"))
    first = len(embedder.queries), len(embedder.passages)
    await asked.recall(RecallRequest("Tomas opens a bakery", profile="ambient"))

    assert first == (21, 20)  # the question and the probes
    assert (len(embedder.queries), len(embedder.passages)) == (22, 20)


async def test_recall_says_when_nothing_is_near_and_only_then(scene: Memory) -> None:
    far = await scene.recall("Why does my regular expression match too much?")
    rare = await scene.recall("Something about Tarn?")

    assert far.notes == (NOTHING_NEAR,)
    assert rare.notes == ()


async def test_a_node_is_shown_only_when_the_text_is_about_it(scene: Memory) -> None:
    recalled = await scene.recall("Who opens a bakery in Oslo?", profile="ambient")

    assert recalled.evidence
    shown = {hit.text for hit in recalled["nodes"] if hit.id in recalled.evidence.shown}
    assert "Oslo" in shown
    assert "Mira: A gardener." not in shown


async def test_facts_come_before_nodes_when_there_is_little_room(scene: Memory) -> None:
    pack = await scene.ambient_recall("Mira grows roses", budget_tokens=100)
    assert pack.sections.get("facts", 0) >= pack.sections.get("nodes", 0)
    assert "Mira grows roses." in pack.text


async def test_the_first_prompt_gets_all_that_is_near_and_later_ones_what_is_near_by_itself(
    scene: Memory,
) -> None:
    asked = "Mira and the roses"
    ids = [hit.id for hit in (await scene.recall(asked, profile="ambient"))["facts"]]

    async def judged(request: RecallRequest) -> Recall:
        seen = Evidence("much", frozenset(ids), frozenset(ids[1:2]))
        return replace(await scene.recall(request.query, profile=request.profile), evidence=seen)

    ambient = Ambient("ana", scene.parts.journal, scene.parts.client)
    await scene.parts.journal.given.record("later", "turn", 50, ())
    first = await ambient.pack(AmbientRequest(asked, 2_000, session="new"), judged)
    later = await ambient.pack(AmbientRequest(asked, 2_000, session="later"), judged)

    assert set(first.shown) == set(ids)
    assert set(later.shown) == set(ids[1:2])


async def test_what_a_reader_has_takes_no_place_and_is_evidence_all_the_same(scene: Memory) -> None:
    asked = RecallRequest("Mira grows roses", profile="ambient", limit=2)
    first = await scene.parts.engine.recall(asked)
    had = frozenset(hit.id for hit in first["facts"])
    then = await scene.parts.engine.recall(replace(asked, without=had))

    assert len(had) == len(then["facts"]) == 2
    assert not had & {hit.id for hit in then["facts"]}
    assert first.evidence
    assert then.evidence
    assert then.evidence.level == first.evidence.level == "much"
